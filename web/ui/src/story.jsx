// The story of one task: its attempts as a timeline, and whatever one wants to see of each.
import { useEffect, useState } from "preact/hooks";
import { Undo, Ways } from "./actions.jsx";
import { Diff } from "./diff.jsx";
import { adds } from "./morning.jsx";
import { Copy, Empty, Foreign, Mark, Status } from "./parts.jsx";
import { brief, diff, kept, rows, story, task, to, view } from "./store.js";
import { clock, count, moment, price, span, tokens } from "./words.js";

export function Story({ id }) {
  const [told, setTold] = useState(null);
  const [wrong, setWrong] = useState("");
  const row = task(id);
  const stamp = `${row?.status} ${row?.attempts} ${row?.at}`;
  useEffect(() => {
    let left = false;
    story(id).then((one) => !left && (setTold(one), setWrong(""))).catch((error) => !left && setWrong(error.message));
    return () => (left = true);
  }, [id, stamp, view.value.run.id]);
  if (!row) return <Empty title={`There is no task ${id} in this run.`} />;
  const question = view.value.questions.find((one) => one.tasks.includes(id));
  return (
    <div class="column">
      <Head row={row} told={told} />
      {wrong && <p class="notice">{wrong}</p>}
      {question && row.status === "stuck" && (
        <article class="card question">
          <p class="asked"><Foreign>{question.question}</Foreign></p>
          {adds(question) && <p class="detail"><Foreign>{question.detail}</Foreign></p>}
          <Ways id={id} tree={question.tree} approval={question.approval} outside={question.outside} />
        </article>
      )}
      {told && <Attempts id={id} told={told} row={row} />}
      {told && <Plan told={told} />}
      {told?.events && <Events told={told} />}
      {!told && !wrong && (kept ? <p class="muted">Nobody has worked on it{row.attempts ? ", as far as this file tells" : ""}.</p> : <p class="muted">Reading…</p>)}
    </div>
  );
}

function Head({ row, told }) {
  const ids = rows.value.map((one) => one.id);
  const at = ids.indexOf(row.id);
  const facts = [
    row.attempts && count(row.attempts, "attempt"), row.agent, span(row.seconds), price(row.cost), row.files && `${count(row.files, "file")} +${row.plus ?? 0} −${row.minus ?? 0}`, row.commit && row.commit.slice(0, 12),
  ].filter(Boolean);
  const linked = (title, names) => names?.length > 0 && (
    <span>{title} {names.map((name, place) => <span key={name}>{place > 0 && ", "}<a href={to("task", name)}>{name}</a></span>)}</span>
  );
  return (
    <header class="headline story-head">
      <nav class="eyebrow" aria-label="Other tasks">
        <a href={to("tasks")}>Tasks</a>
        <span class="aside">
          {ids[at - 1] && <a href={to("task", ids[at - 1])} rel="prev" aria-label={`Previous task, ${ids[at - 1]}`}>← {ids[at - 1]}</a>}
          {ids[at + 1] && <a href={to("task", ids[at + 1])} rel="next" aria-label={`Next task, ${ids[at + 1]}`}>{ids[at + 1]} →</a>}
        </span>
      </nav>
      <h1><span class="number">{row.label ?? row.id}</span> <Foreign>{row.title}</Foreign></h1>
      <p class="facts">
        <span class="pair"><Mark name={row.status} /> <Status name={row.status} /></span>
        {facts.map((fact) => <Foreign key={fact}>{fact}</Foreign>)}
      </p>
      <p class="facts links">
        {linked("needs", row.needs)}
        {linked("repairs", row.fixes ? [row.fixes] : [])}
        {linked("repaired by", row.fix_tasks)}
        {row.blocks > 0 && <span>{count(row.blocks, "task")} wait{row.blocks === 1 ? "s" : ""} for it</span>}
        {row.why && row.status !== "complete" && <Foreign>{row.why}</Foreign>}
      </p>
      {told?.hint && <p class="notice soft">For the next attempt: <Foreign>{told.hint}</Foreign></p>}
    </header>
  );
}

function Attempts({ id, told, row }) {
  if (!told.attempts.length) return <p class="muted">Nobody has worked on it yet.</p>;
  const last = told.attempts.length;
  return (
    <ol class="attempts" aria-label="Attempts">
      {told.attempts.map((one, at) => (
        <Attempt key={one.number} id={id} one={one} before={told.attempts.slice(0, at).filter((other) => other.work)} open={at + 1 === last || told.attempts.length <= 3} landed={at + 1 === last && row.status === "complete"} />
      ))}
    </ol>
  );
}

function Attempt({ id, one, before, open, landed }) {
  const tone = landed ? "landed" : one.failed ? "stuck" : "running";
  const head = [one.agent, span(one.seconds), price(one.cost), one.sessions > 1 && count(one.sessions, "session")].filter(Boolean);
  return (
    <li class={`attempt edge-${tone}`}>
      <details open={open}>
        <summary>
          <h2>Attempt {one.number}</h2>
          <span class="facts">{head.map((fact) => <Foreign key={fact}>{fact}</Foreign>)}</span>
          <time class="aside">{moment(one.began)}</time>
        </summary>
        <div class="steps">
          {one.steps.map((step) => <Step key={step.seq} step={step} />)}
        </div>
        <Tabs id={id} one={one} before={before} />
      </details>
    </li>
  );
}

const TITLES = { session: "Session", ended: "Agent", verdict: "Checks", failure: "Failure", decision: "Decision", acted: "Done", rebased: "Merged" };
const TONES = { pass: "landed", fail: "stuck", inconclusive: "waiting" };

function Step({ step }) {
  if (step.what === "session") return step.session > 1 ? <Note step={step} title={`Session ${step.session}`}>{step.text}</Note> : null;
  if (step.what === "ended") {
    const facts = [step.claim === "done" && "says it is done", step.claim === "failed" && "says it failed", step.input != null && `${tokens(step.input)} tokens in, ${tokens(step.output)} out`].filter(Boolean);
    return (
      <Note step={step} title="Agent" tone={step.ending === "exited" && !step.exit ? "" : "waiting"}>
        <Foreign>{step.text}</Foreign>
        {facts.length > 1 && <span class="muted"> · {facts.slice(1).join(" · ")}</span>}
        {step.approach && <p class="quote">“<Foreign>{step.approach}</Foreign>”</p>}
        {step.denied && <p class="muted">Was not allowed: <Foreign>{step.denied.join("; ")}</Foreign></p>}
      </Note>
    );
  }
  if (step.what === "verdict") return <Verdict step={step} />;
  if (step.what === "failure")
    return (
      <Note step={step} title="Failure" tone="stuck">
        <code class="kind">{step.kind}</code> <span class="muted">{step.means}; blame: {step.blame}{step.charged ? "" : ", not charged"}</span>
        <p><Foreign>{step.error || step.summary}</Foreign></p>
        {step.tests && <p class="muted">Failing: <Foreign>{step.tests.slice(0, 5).join(", ")}</Foreign>{step.tests.length > 5 && ` and ${step.tests.length - 5} more`}</p>}
      </Note>
    );
  if (step.what === "decision")
    return (
      <Note step={step} title="Decision">
        <b>{step.deed[0].toUpperCase() + step.deed.slice(1)}</b> <code class="rung">{step.rung}</code>
        <p class="muted"><Foreign>{step.reason}</Foreign></p>
      </Note>
    );
  return <Note step={step} title={TITLES[step.what]} tone={step.commit ? "landed" : ""}><Foreign>{step.text}</Foreign></Note>;
}

const Note = ({ step, title, tone, children }) => (
  <div class={`step ${tone ? `edge-${tone}` : ""}`}>
    <span class="when"><b>{title}</b><time>{clock(step.at, true)}</time></span>
    <div class="said">{children}</div>
  </div>
);

function Verdict({ step }) {
  return (
    <Note step={step} title="Checks" tone={TONES[step.status]}>
      <Foreign>{step.text}</Foreign>
      <ul class="checks">
        {step.checks?.map((one, at) => (
          <li key={at}>
            <details open={one.status === "fail"}>
              <summary>
                <i class={`dot fill-${TONES[one.status]}`} aria-hidden="true" /> <span class="out">{one.status}: </span><code><Foreign>{one.command}</Foreign></code>
                <span class="aside">{[one.counts && `${one.counts.passed} passed${one.counts.failed ? `, ${one.counts.failed} failed` : ""}`, one.flaky && "wavers", one.cached ? "known" : span(one.seconds)].filter(Boolean).join(" · ")}</span>
              </summary>
              {one.why && <p class="muted"><Foreign>{one.why}</Foreign></p>}
              <pre class="output" tabIndex={0}>{one.output || "It printed nothing."}</pre>
            </details>
          </li>
        ))}
      </ul>
      {step.remarks?.map((one, at) => (
        <p key={at} class="muted"><code>{one.rule}</code> <Foreign>{one.path && `${one.path}:${one.line}: `}{one.says}</Foreign></p>
      ))}
    </Note>
  );
}

function Tabs({ id, one, before }) {
  const [shown, setShown] = useState("");
  const words = one.steps.filter((step) => step.what === "ended" && step.words);
  const tabs = [one.work && ["diff", "Changes"], words.length > 0 && ["words", "Last words"], one.tools.length > 0 && ["tools", `Tools (${one.calls})`], ["brief", "Brief"]].filter(Boolean);
  return (
    <div class="tabs">
      <div role="group" aria-label={`More about attempt ${one.number}`}>
        {tabs.map(([name, word]) => (
          <button type="button" key={name} class="tab" aria-expanded={shown === name} onClick={() => setShown(shown === name ? "" : name)}>{word}</button>
        ))}
      </div>
      {shown === "diff" && <Changes id={id} one={one} before={before} />}
      {shown === "words" && words.map((step) => <pre key={step.seq} class="output" tabIndex={0}>{step.words}</pre>)}
      {shown === "tools" && <Tools calls={one.tools} />}
      {shown === "brief" && <Fetched of={() => brief(id, one.number)} draw={(text) => <pre class="output prose" tabIndex={0}>{text || "It was not kept."}</pre>} />}
    </div>
  );
}

function Changes({ id, one, before }) {
  const [since, setSince] = useState("");
  return (
    <div>
      <p class="facts">
        {before.length > 0 && !kept && (
          <label>Compare with <select value={since} onChange={(event) => setSince(event.currentTarget.value)}>
            <option value="">where it began</option>
            {before.map((other) => <option key={other.number} value={other.number}>attempt {other.number}</option>)}
          </select></label>
        )}
      </p>
      <Fetched key={since} of={() => diff(id, one.number, since)} draw={(text) => <Diff text={text} />} />
      {one.shown_by && <Copy text={one.shown_by} />}
    </div>
  );
}

function Fetched({ of, draw }) {
  const [text, setText] = useState(null);
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    let left = false;
    of().then((found) => !left && setText(found)).catch((error) => !left && setWrong(error.message));
    return () => (left = true);
  }, []);
  if (wrong) return <p class="muted pad">{wrong}</p>;
  return text === null ? <p class="muted pad">Reading…</p> : draw(text);
}

const Tools = ({ calls }) => (
  <ol class="calls">
    {calls.map((one, at) => (
      <li key={at}>
        <i class={`dot fill-${one.ok === false ? "stuck" : one.ok ? "landed" : "pending"}`} /> <b>{one.name}</b> <code><Foreign>{one.input}</Foreign></code>
        {one.exit ? <span class="aside">exit {one.exit}</span> : null}
      </li>
    ))}
  </ol>
);

const Plan = ({ told }) => (
  <details class="fold">
    <summary>What the plan says</summary>
    <pre class="output prose" tabIndex={0}>{told.body || "Nothing but its title."}</pre>
    {told.checks.length > 0 && <p class="muted">Its checks: {told.checks.map((one) => <code key={one}>{one}</code>)}</p>}
    {told.notes.map((note, at) => <p key={at} class="muted"><Foreign>{note}</Foreign></p>)}
  </details>
);

const Events = ({ told }) => (
  <details class="fold">
    <summary>All of its events <span class="aside">{told.events.length}</span></summary>
    <ul class="plain log">
      {told.events.map((one) => (
        <li key={one.seq}><span class="muted time">{clock(one.at, true)}</span> <span class="muted">{one.seq}</span> <Foreign>{one.text}</Foreign> {one.undo && <Undo seq={one.seq} />}</li>
      ))}
    </ul>
  </details>
);
