// Where each task stands in the picture of the plan. Layers from top to bottom: a task stands below all that it needs;
// a fix task stands under its original. A layer that is wider than the page goes on in the next line.

export const NODE = { width: 208, height: 54, gap: 20, fix: 30, layer: 46, line: 18, left: 64, top: 16 };

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
  const layers = stacked(own, needs);
  const across = Math.max(1, Math.floor((width - NODE.left + NODE.gap) / (NODE.width + NODE.gap)));
  const nodes = new Map();
  const bands = [];
  let top = NODE.top;
  layers.forEach((layer, at) => {
    const ordered = sorted(layer, needs, nodes);
    const began = top;
    for (let from = 0; from < ordered.length; from += across) {
      const line = ordered.slice(from, from + across);
      const used = line.length * (NODE.width + NODE.gap) - NODE.gap;
      const left = NODE.left + Math.max(0, (width - NODE.left - used) / 2);
      let tallest = 0;
      line.forEach((row, place) => {
        const x = left + place * (NODE.width + NODE.gap);
        nodes.set(row.id, { row, x, y: top, width: NODE.width, height: NODE.height });
        const under = fixes.get(row.id) ?? [];
        under.forEach((id, step) =>
          nodes.set(id, { row: known.get(id), fix: true, x: x + 18, y: top + NODE.height + 6 + step * (NODE.fix + 4), width: NODE.width - 18, height: NODE.fix }),
        );
        tallest = Math.max(tallest, NODE.height + (under.length ? 6 + under.length * (NODE.fix + 4) : 0));
      });
      top += tallest + NODE.line;
    }
    bands.push({ number: at + 1, y: began, height: top - NODE.line - began, tasks: layer.length });
    top += NODE.layer - NODE.line;
  });
  return { nodes, bands, edges: edges(needs, nodes), width, height: top };
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
  const rows = new Map(own.map((row) => [row.id, row]));
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
        if (!depth.has(id)) depth.set(id, 1 + Math.max(-1, ...needs.get(id).map((above) => depth.get(above) ?? -1)));
      }
    }
  }
  const layers = [];
  for (const [id, row] of rows) (layers[depth.get(id)] ??= []).push(row);
  return layers.filter(Boolean);
}

// Each task near the middle of those it needs, so that few lines cross.
function sorted(layer, needs, nodes) {
  const middle = new Map();
  layer.forEach((row, at) => {
    const xs = needs.get(row.id).map((id) => nodes.get(id)?.x).filter((x) => x !== undefined);
    middle.set(row.id, [xs.length ? xs.reduce((sum, x) => sum + x, 0) / xs.length : Infinity, at]);
  });
  if (![...middle.values()].some(([x]) => x !== Infinity)) return layer;
  return [...layer].sort((one, other) => compare(middle.get(one.id), middle.get(other.id)));
}

const compare = (one, other) => (one[0] === other[0] ? one[1] - other[1] : one[0] - other[0]);

// A line that another way tells already is left out.
function edges(needs, nodes) {
  const found = [];
  for (const [id, above] of needs) {
    const near = above.filter((one) => !above.some((other) => other !== one && (needs.get(other) ?? []).includes(one)));
    for (const one of near) {
      const from = nodes.get(one), to = nodes.get(id);
      if (from && to) found.push({ from: one, to: id, ...ends(from, to) });
    }
  }
  return found;
}

function ends(from, to) {
  const x1 = from.x + from.width / 2, y1 = from.y + from.height;
  const x2 = to.x + to.width / 2, y2 = to.y;
  const bend = Math.max(16, Math.abs(y2 - y1) / 2);
  return { y1: Math.min(y1, y2), y2: Math.max(y1, y2), path: `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}` };
}
