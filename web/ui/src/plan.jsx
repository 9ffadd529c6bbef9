// The picture of the plan: what needs what, where everything stands, and what a stuck task blocks.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { arrange } from "./layout.js";
import { Foreign, Mark } from "./parts.jsx";
import { rows, to, view } from "./store.js";
import { count, status } from "./words.js";

const AROUND = 600;

export function Plan() {
  const box = useRef(null);
  const [width, setWidth] = useState(0);
  const [sight, setSight] = useState([0, 2000]);
  const [near, setNear] = useState("");
  useEffect(() => {
    let asked = 0;
    const look = () => {
      asked = 0;
      if (!box.current) return;
      setWidth(box.current.clientWidth);
      const top = -box.current.getBoundingClientRect().top;
      setSight((before) => (Math.abs(before[0] - (top - AROUND)) < AROUND / 3 ? before : [top - AROUND, top + innerHeight + AROUND]));
    };
    const soon = () => (asked ||= requestAnimationFrame(look));
    look();
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);
    return () => (removeEventListener("scroll", soon), removeEventListener("resize", soon), cancelAnimationFrame(asked));
  }, []);
  const shape = rows.value.map((row) => `${row.id}<${row.needs ?? ""}<${row.fixes ?? ""}`).join();
  const picture = useMemo(() => (width ? arrange(rows.value, width) : null), [shape, width]);
  const family = useMemo(() => (near && picture ? related(near, picture.edges) : null), [near, picture]);
  const held = useMemo(() => (picture ? blockedBy(picture) : new Set()), [picture, view.value]);
  const [from, till] = sight;
  const shown = picture ? [...picture.nodes.values()].filter((node) => node.y + node.height > from && node.y < till) : [];
  const lines = picture ? picture.edges.filter((edge) => edge.y2 > from && edge.y1 < till) : [];
  return (
    <div class="column wide">
      <header class="title-row">
        <h1>Plan</h1>
        <span class="aside">{picture && `${count(rows.value.length, view.value.run.noun)} in ${count(picture.bands.length, "step")}`}</span>
      </header>
      <div class="picture" ref={box} style={{ height: picture ? `${picture.height}px` : "60vh" }} onMouseLeave={() => setNear("")}>
        {picture && (
          <>
            <svg width={picture.width} height={picture.height} aria-hidden="true">
              {lines.map((edge) => (
                <path
                  key={`${edge.from} ${edge.to}`}
                  d={edge.path}
                  class={`edge ${held.has(edge.to) && (held.has(edge.from) || view.value.tasks.get(edge.from)?.status === "stuck") ? "held" : ""} ${family ? (family.has(edge.from) && family.has(edge.to) ? "near" : "far") : ""}`}
                />
              ))}
            </svg>
            {picture.bands.filter((band) => band.y + band.height > from && band.y < till).map((band) => (
              <span key={band.number} class="band" style={{ top: `${band.y}px`, height: `${band.height}px` }}>{band.number}</span>
            ))}
            {shown.map((node) => <Node key={node.row.id} node={node} narrow={picture.narrow} far={family && !family.has(node.row.id)} onNear={setNear} />)}
          </>
        )}
      </div>
    </div>
  );
}

function Node({ node, narrow, far, onNear }) {
  const row = view.value.tasks.get(node.row.id) ?? node.row;
  const facts = [row.attempts > 1 && `${row.attempts} attempts`, row.status === "stuck" && row.blocks && `blocks ${row.blocks}`, narrow && row.needs && `needs ${row.needs.join(", ")}`].filter(Boolean).join(" · ");
  return (
    <a
      href={to("task", row.id)}
      class={`node ${node.fix ? "fix" : ""} edge-${status(row.status).tone} ${far ? "far" : ""} ${row.status === "pending" || row.status === "blocked" ? "open" : ""}`}
      style={{ left: `${node.x}px`, top: `${node.y}px`, width: `${node.width}px`, height: `${node.height}px` }}
      aria-label={`${node.fix ? "Fix task" : "Task"} ${row.id}, ${row.title}: ${status(row.status).word}${facts && `, ${facts}`}`}
      onMouseEnter={() => onNear(row.id)}
      onFocus={() => onNear(row.id)}
    >
      <Mark name={row.status} />
      <span class="what">
        <Foreign class="name"><b>{row.label ?? row.id}</b> {row.title}</Foreign>
        {!node.fix && <span class="muted">{facts || status(row.status).word}</span>}
      </span>
    </a>
  );
}

// Everything that a task needs, and everything that needs it.
function related(id, edges) {
  const up = new Map(), down = new Map();
  for (const edge of edges) {
    up.set(edge.to, [...(up.get(edge.to) ?? []), edge.from]);
    down.set(edge.from, [...(down.get(edge.from) ?? []), edge.to]);
  }
  const found = new Set([id]);
  for (const ways of [up, down]) {
    const walk = [id];
    for (const one of walk) for (const next of ways.get(one) ?? []) if (!found.has(next)) found.add(next), walk.push(next);
  }
  return found;
}

function blockedBy(picture) {
  const found = new Set();
  for (const { row } of picture.nodes.values()) if (view.value.tasks.get(row.id)?.status === "blocked") found.add(row.id);
  return found;
}
