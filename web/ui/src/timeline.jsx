// Who worked when: a line for each slot, sessions and checks and waits on it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Empty, Foreign, Mark, Rows, Section } from "./parts.jsx";
import { now, rows, to, view } from "./store.js";
import { clock, count, day, span } from "./words.js";

const QUIET = 0.12;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

export function Timeline() {
  const box = useRef(null);
  const [width, setWidth] = useState(0);
  const [zoom, setZoom] = useState(1);
  useEffect(() => {
    const look = () => box.current && setWidth(box.current.clientWidth);
    look();
    addEventListener("resize", look);
    return () => removeEventListener("resize", look);
  }, []);
  const spans = [...view.value.spans.values()];
  const agents = [...new Set(spans.map((one) => one.agent))].sort();
  const end = view.value.run.live ? now.value : view.value.run.last;
  const scale = useMemo(() => (width && spans.length ? scaled(spans, end, Math.max(200, (width - 72) * zoom)) : null), [view.value, width, zoom, view.value.run.live ? Math.floor(end) : 0]);
  if (!spans.length) return <div class="column wide"><h1>Timeline</h1><Empty title="Nobody has worked yet." /></div>;
  const lanes = laneOf(spans);
  const busy = spans.filter((one) => one.what === "work").reduce((sum, one) => sum + (one.end ?? end) - one.begin, 0);
  return (
    <div class="column wide">
      <header class="title-row">
        <h1>Timeline</h1>
        <span class="aside">{count(lanes.length, "slot")}, {span(busy)} of agents at work</span>
      </header>
      <div class="filters">
        <ul class="legend">
          {agents.map((agent, at) => <li key={agent}><i class={`dot hue-${at % 6}`} /> <Foreign>{agent}</Foreign></li>)}
          <li><i class="dot check" /> checks</li>
          <li><i class="dot wait" /> waits</li>
          <li><i class="dot fill-stuck" /> red</li>
        </ul>
        <div class="chips" role="group" aria-label="Zoom">
          <button type="button" class="chip" onClick={() => setZoom(Math.max(1, zoom / 2))} disabled={zoom === 1} aria-label="Zoom out">−</button>
          <button type="button" class="chip" onClick={() => setZoom(Math.min(64, zoom * 2))} aria-label="Zoom in">+</button>
        </div>
      </div>
      <div class="lanes" ref={box} tabIndex={0} aria-label="Timeline; scrolls sideways">
        {scale && (
          <div class="inner" style={{ width: `${scale.width + 72}px` }}>
            <div class="axis">
              {scale.ticks.map((tick) => <span key={tick.at} style={{ left: `${72 + tick.x}px` }}>{tick.text}</span>)}
            </div>
            {lanes.map(([slot, own]) => (
              <div key={slot} class="lane">
                <span class="slot">slot {slot}</span>
                {bars(own, scale, end).map((bar) => <Bar key={bar.key} bar={bar} hue={agents.indexOf(bar.agent) % 6} />)}
              </div>
            ))}
            {scale.ticks.map((tick) => <i key={tick.at} class="rule" style={{ left: `${72 + tick.x}px` }} />)}
            {scale.gaps.map((gap) => <span key={gap.x} class="gap" style={{ left: `${72 + gap.x}px`, width: `${gap.width}px` }} title={`${span(gap.seconds)} without work`} />)}
          </div>
        )}
      </div>
      <ByTask spans={spans} agents={agents} end={end} />
    </div>
  );
}

const WHOLE = 1000;
function ByTask({ spans, agents, end }) {
  const own = new Map();
  for (const one of spans) own.has(one.task) ? own.get(one.task).push(one) : own.set(one.task, [one]);
  const scale = scaled(spans, end, WHOLE);
  const items = rows.value.filter((row) => own.has(row.id)).sort((a, b) => own.get(a.id)[0].begin - own.get(b.id)[0].begin);
  return (
    <Section id="by-task" title="By task" aside={`${clock(spans[0].begin)} – ${clock(end)}`}>
      <Rows items={items} height={34} label="Tasks by time" draw={(row) => (
        <a class="track-row" href={to("task", row.id)}>
          <Mark name={row.status} still />
          <span class="name"><b>{row.id}</b> <Foreign>{row.title}</Foreign></span>
          <span class="track" aria-hidden="true">
            {bars(own.get(row.id), scale, end).map((bar) => (
              <i key={bar.key} class={`span ${bar.what} ${bar.what === "work" ? `hue-${agents.indexOf(bar.agent) % 6}` : ""} ${bar.what === "check" && bar.good === false ? "red" : ""}`} style={{ left: `${(100 * bar.x) / WHOLE}%`, width: `${(100 * bar.width) / WHOLE}%` }} />
            ))}
          </span>
          <span class="took">{span(own.get(row.id).reduce((sum, one) => sum + (one.end ?? end) - one.begin, 0))}</span>
        </a>
      )} />
    </Section>
  );
}

function Bar({ bar, hue }) {
  const row = view.value.tasks.get(bar.task);
  const told = bar.tasks > 1 ? `${bar.tasks} tasks` : `${bar.task} ${row?.title ?? ""}`;
  const what = { work: bar.agent, check: bar.good === false ? "checks, red" : "checks", wait: "waits" }[bar.what];
  return (
    <a
      href={to("task", bar.task)}
      class={`span ${bar.what} ${bar.what === "work" ? `hue-${hue}` : ""} ${bar.what === "check" && bar.good === false ? "red" : ""}`}
      style={{ left: `${72 + bar.x}px`, width: `${bar.width}px` }}
      title={`${told}\n${what}, attempt ${bar.attempt}\n${clock(bar.begin, true)} – ${clock(bar.end, true)} (${span(bar.end - bar.begin)})`}
      aria-label={`${told}: ${what}, attempt ${bar.attempt}, ${span(bar.end - bar.begin)}`}
      tabIndex={bar.width > 6 ? 0 : -1}
    >
      {bar.width > 29 && bar.what === "work" ? bar.task : ""}
    </a>
  );
}

function laneOf(spans) {
  const lanes = new Map();
  for (const one of spans) lanes.set(one.slot, [...(lanes.get(one.slot) ?? []), one]);
  return [...lanes].sort(([one], [other]) => one - other);
}

// What is narrower than a few points is drawn with its neighbour: never more bars than there are points.
function bars(spans, scale, end) {
  const found = [];
  for (const one of [...spans].sort((a, b) => a.begin - b.begin)) {
    const till = one.end ?? end;
    const x = scale.at(one.begin), width = Math.max(2, scale.at(till) - x);
    const last = found.at(-1);
    if (last && width < 3 && x - (last.x + last.width) < 1 && last.width < 12) {
      last.tasks += last.task === one.task ? 0 : 1;
      last.width = Math.max(last.width, x + width - last.x);
      last.end = till;
      if (one.good === false && one.what === "check") last.what = "check", last.good = false;
    } else found.push({ ...one, end: till, x, width, tasks: 1, key: `${one.task} ${one.attempt} ${one.what} ${one.begin}` });
  }
  return found;
}

// Time to points. A long time without any work, a night between two supervisors, is drawn as a short gap.
function scaled(spans, end, width) {
  const busy = [];
  for (const one of [...spans].sort((a, b) => a.begin - b.begin)) {
    const till = Math.max(one.end ?? end, one.begin + 0.01);
    if (busy.length && one.begin <= busy.at(-1)[1]) busy.at(-1)[1] = Math.max(busy.at(-1)[1], till);
    else busy.push([one.begin, till]);
  }
  const total = busy.at(-1)[1] - busy[0][0];
  const pieces = [];
  for (const part of busy) {
    if (pieces.length && part[0] - pieces.at(-1)[1] < total * QUIET) pieces.at(-1)[1] = part[1];
    else pieces.push([...part]);
  }
  const gap = 28;
  const worked = pieces.reduce((sum, [from, till]) => sum + till - from, 0);
  const unit = Math.max(1, width - gap * (pieces.length - 1)) / worked;
  let x = 0;
  const placed = pieces.map(([from, till]) => {
    const piece = { from, till, x };
    x += (till - from) * unit + gap;
    return piece;
  });
  const at = (time) => {
    const piece = placed.findLast((one) => time >= one.from) ?? placed[0];
    return piece.x + (Math.min(time, piece.till) - piece.from) * unit;
  };
  const gaps = placed.slice(1).map((piece, place) => ({ x: piece.x - gap, width: gap, seconds: piece.from - placed[place].till }));
  return { at, width, gaps, ticks: ticks(placed, unit) };
}

function ticks(pieces, unit) {
  const step = STEPS.find((one) => one * unit > 78) ?? STEPS.at(-1);
  const found = [];
  const zone = new Date().getTimezoneOffset() * 60;
  let before = "";
  for (const piece of pieces) {
    for (let at = Math.ceil((piece.from - zone) / step) * step + zone; at <= piece.till; at += step) {
      const x = piece.x + (at - piece.from) * unit;
      if (found.length && x - found.at(-1).x < 60) continue;
      const date = day(at);
      found.push({ at, x, text: date !== before && pieces.length > 1 ? `${date} ${clock(at)}` : clock(at, step < 60) });
      before = date;
    }
  }
  return found;
}
