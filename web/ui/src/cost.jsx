// What it cost: over time, by agent, and which tasks took the most.
import { useMemo } from "preact/hooks";
import { Empty, Foreign, Section } from "./parts.jsx";
import { rows, to, view } from "./store.js";
import { clock, count, price, span, tokens } from "./words.js";

const WIDE = 860, HIGH = 240, LEFT = 52, BOTTOM = 24;

export function Cost() {
  const { bills, run } = view.value;
  const agents = useMemo(() => byAgent(), [view.value]);
  const dear = rows.value.filter((row) => row.cost).sort((a, b) => b.cost - a.cost).slice(0, 12);
  const paid = bills.some((bill) => bill.usd);
  const used = bills.some((bill) => bill.input || bill.output);
  return (
    <div class="column">
      <header class="title-row">
        <h1>Cost</h1>
        <span class="aside">{[price(run.cost), run.budget && `of ${price(run.budget)} at most`].filter(Boolean).join(" ")}</span>
      </header>
      {!agents.length && <Empty title="Nobody has worked yet." />}
      {paid && <Section id="money" title="Over time"><Chart bills={bills} agents={agents} field={(bill) => bill.usd} told={price} budget={run.budget} /></Section>}
      {used && <Section id="tokens" title="Tokens"><Chart bills={bills} agents={agents} field={(bill) => bill.input + bill.output} told={tokens} /></Section>}
      {agents.length > 0 && !paid && <p class="muted">The agents of this run do not say what they cost.</p>}
      {agents.length > 0 && (
        <Section id="agents" title="By agent">
          <div class="scroll"><table>
            <thead><tr><th>Agent</th><th>Attempts</th><th>Landed</th><th>Worked</th><th>Cost</th><th>Each landed</th><th>Tokens in</th><th>out</th></tr></thead>
            <tbody>{agents.map((one, at) => (
              <tr key={one.name}><th scope="row"><i class={`dot hue-${at % 6}`} /> <Foreign>{one.name}</Foreign></th><td>{one.attempts}</td><td>{one.landed}</td><td>{span(one.seconds)}</td><td>{one.usd ? price(one.usd) : "–"}</td><td>{one.usd && one.landed ? price(one.usd / one.landed) : "–"}</td><td>{one.input ? tokens(one.input) : "–"}</td><td>{one.output ? tokens(one.output) : "–"}</td></tr>
            ))}</tbody>
          </table></div>
        </Section>
      )}
      {dear.length > 0 && (
        <Section id="dear" title="Dearest tasks">
          <ul class="meters">{dear.map((row) => (
            <li key={row.id}><a href={to("task", row.id)}><b>{row.id}</b> <Foreign>{row.title}</Foreign></a><span class="meter"><i style={{ width: `${(100 * row.cost) / dear[0].cost}%` }} /></span><span class="aside">{price(row.cost)} · {count(row.attempts, "attempt")}</span></li>
          ))}</ul>
        </Section>
      )}
    </div>
  );
}

function byAgent() {
  const found = new Map();
  const of = (name) => found.get(name) ?? found.set(name, { name, attempts: 0, landed: 0, seconds: 0, usd: 0, input: 0, output: 0 }).get(name);
  const tries = new Set();
  const end = view.value.run.last;
  for (const one of view.value.spans.values()) {
    if (one.what !== "work") continue;
    const key = `${one.task} ${one.attempt}`;
    of(one.agent).seconds += (one.end ?? end) - one.begin;
    if (!tries.has(key)) tries.add(key), of(one.agent).attempts++;
  }
  for (const bill of view.value.bills) {
    const one = of(bill.agent);
    one.usd += bill.usd;
    one.input += bill.input;
    one.output += bill.output;
  }
  for (const row of rows.value) if (row.status === "complete" && row.attempts) of(row.agent).landed++;
  return [...found.values()].sort((a, b) => b.usd - a.usd || b.seconds - a.seconds);
}

// Areas on each other, in steps: a bill is paid at once.
function Chart({ bills, agents, field, told, budget }) {
  const { run } = view.value;
  const from = run.began, till = Math.max(run.last, from + 1);
  const sums = new Map(agents.map((one) => [one.name, 0]));
  const points = [];
  for (const bill of bills.filter(field)) {
    sums.set(bill.agent, sums.get(bill.agent) + field(bill));
    const levels = agents.map((one) => sums.get(one.name));
    const last = points.at(-1);
    if (last && ((bill.at - last.at) / (till - from)) * WIDE < 1) last.levels = levels; // no more points than there is room for
    else points.push({ at: bill.at, levels });
  }
  const total = [...sums.values()].reduce((sum, one) => sum + one, 0);
  const top = nice(Math.max(total, 1e-9));
  const x = (at) => LEFT + ((at - from) / (till - from)) * (WIDE - LEFT - 8);
  const y = (value) => HIGH - BOTTOM - (value / top) * (HIGH - BOTTOM - 12);
  const upTo = (levels, place) => levels.slice(0, place + 1).reduce((sum, one) => sum + one, 0);
  const area = (place) => {
    const line = (level) => {
      let path = "", before = 0;
      for (const point of points) {
        const value = upTo(point.levels, level);
        path += `L${x(point.at)} ${y(before)}L${x(point.at)} ${y(value)}`;
        before = value;
      }
      return { path: `${path}L${x(till)} ${y(before)}`, end: before };
    };
    const upper = line(place);
    const lower = place ? line(place - 1) : null;
    const back = lower ? lower.path.split("L").filter(Boolean).reverse().map((one) => `L${one}`).join("") : `L${x(till)} ${y(0)}`;
    return `M${LEFT} ${y(0)}${upper.path}${back}Z`;
  };
  const hours = [0, 1 / 3, 2 / 3, 1].map((part) => from + part * (till - from));
  return (
    <svg class="chart" viewBox={`0 0 ${WIDE} ${HIGH}`} role="img" aria-label={`${told(total)} in all: ${agents.map((one) => `${one.name} ${told(sums.get(one.name))}`).join(", ")}`}>
      {[0, 0.5, 1].map((part) => (
        <g key={part}><line x1={LEFT} x2={WIDE} y1={y(top * part)} y2={y(top * part)} class="grid" /><text x={LEFT - 8} y={y(top * part) + 4} text-anchor="end">{told(top * part)}</text></g>
      ))}
      {agents.map((one, place) => <path key={one.name} d={area(place)} class={`area hue-${place % 6}`} />)}
      {budget && budget <= top && <line x1={LEFT} x2={WIDE} y1={y(budget)} y2={y(budget)} class="limit" />}
      {hours.map((at, place) => <text key={at} x={x(at)} y={HIGH - 6} text-anchor={place === 0 ? "start" : place === 3 ? "end" : "middle"}>{clock(at, till - from < 600)}</text>)}
    </svg>
  );
}

function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}
