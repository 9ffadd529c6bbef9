// Where each task stands in the picture of the plan. Layers from top to bottom: a task stands below all that it needs;
// a fix task stands under its original. A line over several layers gets a lane of its own in those between. A layer
// that is wider than the page goes on in the next line; a page that is one task wide has no lines at all.

const NODE = { widest: 228, narrowest: 158, height: 68, gap: 18, fix: 30, layer: 50, line: 18, left: 56, top: 8, lane: 10 };
const MANY = 600;

export function arrange(rows, width) {
  const known = new Map(rows.map((row) => [row.id, row]));
  const fixes = new Map();
  for (const row of rows) {
    const original = root(row, known);
    if (original !== row.id) fixes.set(original, [...(fixes.get(original) ?? []), row.id]);
  }
  const inside = new Map([...fixes].flatMap(([original, ids]) => ids.map((id) => [id, original])));
  const own = rows.filter((row) => !inside.has(row.id));
  const needs = new Map(own.map((row) => [row.id, parents(row, fixes.get(row.id) ?? [], known, inside)]));
  const { depth, layers } = stacked(own, needs);
  const lines = edges(needs);
  const room = width - NODE.left;
  if (rows.length <= MANY) addLanes(lines, layers, depth);
  const { size, across } = sized(layers, room);
  const places = new Map();
  const nodes = new Map();
  const bands = [];
  let top = NODE.top;
  layers.forEach((layer, at) => {
    const began = top;
    const cells = across === 1 ? layer.filter((cell) => !cell.lane) : sorted(layer, places);
    for (const line of broken(cells, size, room)) {
      const used = line.reduce((sum, cell) => sum + breadth(cell, size) + NODE.gap, -NODE.gap);
      let x = NODE.left + Math.max(0, (room - used) / 2);
      const tallest = Math.max(NODE.lane, ...line.map((cell) => (cell.lane ? 0 : whole(fixes.get(cell.id)))));
      for (const cell of line) {
        const middle = x + breadth(cell, size) / 2;
        if (cell.lane) places.set(cell.id, { x: middle, top, bottom: top + tallest });
        else {
          const under = fixes.get(cell.id) ?? [];
          places.set(cell.id, { x: middle, top, bottom: top + whole(under) });
          nodes.set(cell.id, { row: known.get(cell.id), x, y: top, width: size, height: NODE.height });
          under.forEach((id, step) =>
            nodes.set(id, { row: known.get(id), fix: true, x: x + 18, y: top + NODE.height + 6 + step * (NODE.fix + 4), width: size - 18, height: NODE.fix }),
          );
        }
        x += breadth(cell, size) + NODE.gap;
      }
      top += tallest + NODE.line;
    }
    bands.push({ number: at + 1, y: began, height: top - NODE.line - began });
    top += NODE.layer - NODE.line;
  });
  return { nodes, bands, narrow: across === 1, edges: across === 1 ? [] : lines.map((edge) => drawn(edge, places)), width, height: top };
}

// The task at the top of those that repair each other.
function root(row, known) {
  const seen = new Set([row.id]);
  while (row.fixes && known.has(row.fixes) && !seen.has(row.fixes)) {
    seen.add(row.fixes);
    row = known.get(row.fixes);
  }
  return row.id;
}

function parents(row, own, known, inside) {
  const found = new Set();
  for (const id of row.needs ?? []) {
    const above = inside.get(id) ?? id;
    if (known.has(above) && above !== row.id && !own.includes(id)) found.add(above);
  }
  return [...found];
}

// The length of the longest way down to each task, without recursion: a plan may be ten thousand tasks deep.
function stacked(own, needs) {
  const depth = new Map();
  for (const row of own) {
    const walk = [row.id];
    const open = new Set();
    while (walk.length) {
      const id = walk.at(-1);
      const missing = depth.has(id) || open.has(id) ? [] : needs.get(id).filter((above) => !depth.has(above) && !open.has(above));
      open.add(id);
      if (missing.length) walk.push(...missing);
      else {
        walk.pop();
        if (!depth.has(id)) depth.set(id, needs.get(id).reduce((most, above) => Math.max(most, 1 + (depth.get(above) ?? -1)), 0));
      }
    }
  }
  const layers = [];
  for (const row of own) (layers[depth.get(row.id)] ??= []).push({ id: row.id, from: needs.get(row.id) });
  return { depth, layers: Array.from(layers, (layer) => layer ?? []) };
}

// A line that another way tells already is left out.
function edges(needs) {
  const found = [];
  for (const [id, above] of needs) {
    const near = above.filter((one) => !above.some((other) => other !== one && (needs.get(other) ?? []).includes(one)));
    for (const one of near) found.push({ from: one, to: id, via: [] });
  }
  return found;
}

// Lines from one task share their lanes.
function addLanes(lines, layers, depth) {
  const made = new Map();
  for (const edge of lines) {
    let before = edge.from;
    for (let at = depth.get(edge.from) + 1; at < depth.get(edge.to); at++) {
      const id = `${edge.from}\0${at}`;
      if (!made.has(id)) made.set(id, layers[at].push({ id, lane: true, from: [before] }));
      edge.via.push(id);
      before = id;
    }
    if (edge.via.length) {
      const cell = layers[depth.get(edge.to)].find((one) => one.id === edge.to);
      cell.from = [...cell.from.filter((id) => id !== edge.from), before];
    }
  }
}

function sized(layers, room) {
  let fitting = NODE.widest;
  for (const layer of layers) {
    const lanes = layer.filter((cell) => cell.lane).length;
    const tasks = Math.min(layer.length - lanes, 6);
    if (tasks) fitting = Math.min(fitting, (room + NODE.gap - lanes * (NODE.lane + NODE.gap)) / tasks - NODE.gap);
  }
  const size = Math.min(room, Math.max(NODE.narrowest, Math.min(NODE.widest, fitting)));
  const across = Math.max(1, Math.floor((room + NODE.gap) / (size + NODE.gap)));
  return across === 1 ? { size: room, across } : { size, across };
}

const breadth = (cell, size) => (cell.lane ? NODE.lane : size);
const whole = (under = []) => NODE.height + (under.length ? 2 + under.length * (NODE.fix + 4) : 0);

function broken(layer, size, room) {
  const found = [[]];
  let used = 0;
  for (const cell of layer) {
    const more = breadth(cell, size) + NODE.gap;
    if (found.at(-1).length && used + more - NODE.gap > room + 1) found.push([]), (used = 0);
    found.at(-1).push(cell);
    used += more;
  }
  return found;
}

// Each task near the middle of those it needs, so that few lines cross.
function sorted(layer, places) {
  const middles = new Map();
  layer.forEach((cell, at) => {
    const xs = cell.from.map((id) => places.get(id)?.x).filter((x) => x !== undefined);
    middles.set(cell.id, [xs.length ? xs.reduce((sum, x) => sum + x, 0) / xs.length : Infinity, at]);
  });
  return [...layer].sort((one, other) => {
    const [a, b] = [middles.get(one.id), middles.get(other.id)];
    return a[0] === b[0] ? a[1] - b[1] : a[0] - b[0];
  });
}

function drawn(edge, places) {
  const stops = [edge.from, ...edge.via, edge.to].map((id) => places.get(id));
  let path = `M${stops[0].x} ${stops[0].bottom}`;
  for (let at = 1; at < stops.length; at++) {
    const one = stops[at - 1], other = stops[at];
    const bend = Math.max(14, (other.top - one.bottom) / 2);
    path += `C${one.x} ${one.bottom + bend} ${other.x} ${other.top - bend} ${other.x} ${other.top}`;
    if (at < stops.length - 1) path += `V${other.bottom}`;
  }
  return { from: edge.from, to: edge.to, path, y1: stops[0].bottom, y2: stops.at(-1).top };
}
