// All tasks, by status and by words; ten thousand of them scroll as ten do.
import { useState } from "preact/hooks";
import { Empty, Foreign, Mark, Rows, Status } from "./parts.jsx";
import { counts, rows, to, view } from "./store.js";
import { STATUS, clock, count, price, span } from "./words.js";

export function Tasks() {
  const [only, setOnly] = useState("");
  const [words, setWords] = useState("");
  const wanted = words.trim().toLowerCase();
  const found = rows.value.filter(
    (row) =>
      (!only || row.status === only) &&
      (!wanted || row.id.toLowerCase().includes(wanted) || row.title.toLowerCase().includes(wanted) || (row.agent ?? "").toLowerCase().includes(wanted)),
  );
  return (
    <div class="column wide">
      <header class="title-row">
        <h1>Tasks</h1>
        <span class="aside" aria-live="polite">{count(found.length, view.value.run.noun)}</span>
      </header>
      <div class="filters">
        <input id="search" type="search" placeholder="Find by id, title or agent  (/)" aria-label="Find tasks" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
        <div class="chips" role="group" aria-label="Only tasks that are">
          {Object.keys(STATUS).filter((name) => counts.value[name]).map((name) => (
            <button type="button" key={name} class="chip" aria-pressed={only === name} onClick={() => setOnly(only === name ? "" : name)}>
              <i class={`dot fill-${STATUS[name].tone}`} /> {STATUS[name].word} <b>{counts.value[name].toLocaleString("en")}</b>
            </button>
          ))}
        </div>
      </div>
      {found.length ? <Rows items={found} height={52} label="Tasks" draw={(row) => <Line row={row} />} /> : <Empty title="No task is like that." />}
    </div>
  );
}

export const Line = ({ row }) => (
  <a class="row" href={to("task", row.id)} data-task={row.id}>
    <Mark name={row.status} />
    <span class="what">
      <span class="name">
        <b>{row.id}</b> <Foreign>{row.title}</Foreign>
      </span>
      {(row.why || row.agent || row.wait_until) && (
        <span class="muted">
          {row.wait_until ? `waits${row.waits_on ? ` for ${row.waits_on}` : ""} until ${clock(row.wait_until)}` : <Foreign>{[row.agent, row.why?.replaceAll("_", " ")].filter(Boolean).join(" · ")}</Foreign>}
        </span>
      )}
    </span>
    <span class="numbers">
      <span>{row.attempts > 1 ? `${row.attempts} attempts` : ""}</span>
      <span>{price(row.cost)}</span>
      <Status name={row.status} />
    </span>
  </a>
);
