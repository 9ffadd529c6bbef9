// The first view: what landed, what waits for you, what still runs, and the one command to take it.
import { Undo, Ways } from "./actions.jsx";
import { Copy, Empty, Foreign, Mark, Rows, Section } from "./parts.jsx";
import { counts, doing, kept, now, request, rows, to, view } from "./store.js";
import { STATUS, clock, count, moment, price, span, status } from "./words.js";

export function Morning() {
  const { run, questions } = view.value;
  const all = rows.value;
  const landed = all.filter((row) => row.status === "complete" && row.attempts).sort((a, b) => (b.at ?? 0) - (a.at ?? 0));
  const active = all.filter((row) => ["running", "verifying", "waiting", "interrupted"].includes(row.status));
  return (
    <div class="column">
      <Headline />
      {run.unapproved && <Unapproved />}
      {questions.length > 0 && (
        <Section id="waits" title={questions.length === 1 ? "One question for you" : `${questions.length} questions for you`}>
          {questions.slice(0, 50).map((one) => (
            <Question key={one.tasks[0]} one={one} />
          ))}
          {questions.length > 50 && <p class="muted">And {questions.length - 50} more, under Tasks.</p>}
        </Section>
      )}
      {active.length > 0 && (
        <Section id="now" title={run.live ? "At work" : "Interrupted"}>
          <div class="cards" role="list">
            {active.slice(0, 24).map((row) => (
              <Active key={row.id} row={row} />
            ))}
          </div>
        </Section>
      )}
      <Taking />
      {landed.length > 0 && (
        <Section id="landed" title="Landed" aside={count(landed.length, "task")}>
          <Rows items={landed} height={60} label="Landed tasks" draw={(row) => <Landed row={row} />} />
        </Section>
      )}
      <Asked />
      <Remarks />
    </div>
  );
}

function Headline() {
  const { run } = view.value;
  const had = counts.value;
  const total = rows.value.length;
  const settled = (had.complete ?? 0) + (had.skipped ?? 0);
  const facts = [
    run.live ? `working since ${clock(run.began)}` : `ended ${moment(run.last)}`,
    `${span(run.live ? now.value - run.began : run.seconds)}${run.live ? "" : " of work"}`,
    price(run.cost),
    run.agents.join(", "),
    `profile ${run.profile}`,
  ].filter(Boolean);
  return (
    <header class="headline">
      <p class="eyebrow">
        <Foreign>{run.title || run.plan}</Foreign>
      </p>
      <h1>{sentence(run, had, settled, total)}</h1>
      <Bar total={total} />
      <p class="facts">
        {facts.map((fact) => (
          <Foreign key={fact}>{fact}</Foreign>
        ))}
      </p>
      {run.halted && <p class="notice">Halted: <Foreign>{run.halted}</Foreign></p>}
    </header>
  );
}

function sentence(run, had, settled, total) {
  const noun = total === 1 ? run.noun : `${run.noun}s`;
  const stuck = had.stuck ?? 0;
  const waits = stuck ? ` ${stuck === 1 ? "One waits" : `${stuck} wait`} for you.` : "";
  if (settled === total && total) return total === 1 ? `The ${run.noun} is done.` : `All ${total} ${noun} are done.`;
  if (run.live) return `${settled} of ${total} ${noun} landed, and counting.${waits}`;
  return `${settled} of ${total} ${noun} landed.${waits || (run.exit == null ? " The run was interrupted." : "")}`;
}

const IN_BAR = ["complete", "skipped", "running", "verifying", "waiting", "interrupted", "stuck", "blocked", "pending"];
function Bar({ total }) {
  const had = counts.value;
  const told = IN_BAR.filter((name) => had[name]).map((name) => `${had[name]} ${status(name).word}`);
  return (
    <>
      <div class="bar" role="img" aria-label={told.join(", ")}>
        {IN_BAR.filter((name) => had[name]).map((name) => (
          <i key={name} class={`fill-${STATUS[name].tone}`} style={{ flexGrow: had[name] / total }} />
        ))}
      </div>
      <ul class="legend">
        {IN_BAR.filter((name) => had[name]).map((name) => (
          <li key={name}>
            <i class={`dot fill-${STATUS[name].tone}`} />
            <b>{had[name].toLocaleString("en")}</b> {status(name).word}
          </li>
        ))}
      </ul>
    </>
  );
}

function Unapproved() {
  return (
    <div class="card question">
      <p class="asked">The plan waits for your approval.</p>
      {kept ? <Copy text="unstuck approve && unstuck resume" /> : (
        <button type="button" class="main" onClick={() => request("approve", null)}>Approve the plan</button>
      )}
    </div>
  );
}

function Question({ one }) {
  const many = one.tasks.length > 1;
  const row = view.value.tasks.get(one.tasks[0]);
  const blocked = row?.blocks ? `${count(row.blocks, "task")} wait${row.blocks === 1 ? "s" : ""} for it` : "";
  return (
    <article class="card question" aria-label={`Question about task ${one.tasks.join(", ")}`}>
      <p class="about">
        <Mark name="stuck" />
        {one.tasks.slice(0, 6).map((id) => (
          <a key={id} href={to("task", id)}>
            {id}
          </a>
        ))}
        {one.tasks.length > 6 && <span>and {one.tasks.length - 6} more</span>}
        {!many && <Foreign class="title">{row?.title}</Foreign>}
        <span class="aside">{[row?.attempts && count(row.attempts, "attempt"), price(row?.cost), blocked].filter(Boolean).join(" · ")}</span>
      </p>
      <p class="asked">
        <Foreign>{one.question}</Foreign>
      </p>
      {!one.outside && adds(one) && (
        <p class="detail">
          <Foreign>{one.detail}</Foreign>
        </p>
      )}
      <Ways id={one.tasks[0]} tree={one.tree} approval={one.approval} outside={one.outside} />
      <p class="more">
        <a href={to("task", one.tasks[0])}>Read its story</a>
        {one.files.length > 0 && <span class="muted">changed {one.files.join(", ")}</span>}
      </p>
    </article>
  );
}

// Whether the second line says what the first does not.
export const adds = (one) => one.detail && !one.detail.includes(one.question.replace(/^\S+ asks: /, ""));

function Active({ row }) {
  const waits = row.status === "waiting" && row.wait_until;
  return (
    <a class="card active" role="listitem" href={to("task", row.id)}>
      <span class="top">
        <Mark name={row.status} />
        <b>{row.id}</b>
        <span class={`word tone-${status(row.status).tone}`}>{status(row.status).word}</span>
        <span class="aside">{row.began && row.status !== "interrupted" ? span(now.value - row.began) : ""}</span>
      </span>
      <Foreign class="title">{row.title}</Foreign>
      <span class="muted">
        {waits
          ? `${row.waits_on ? `for ${row.waits_on} ` : ""}until ${clock(row.wait_until)}, ${span(row.wait_until - now.value)} left`
          : [row.agent, row.attempts > 1 && `attempt ${row.attempts}`, row.slot != null && `slot ${row.slot}`].filter(Boolean).join(" · ")}
      </span>
      {row.status === "running" && <Foreign class="doing">{doing.value[row.id] ?? "…"}</Foreign>}
    </a>
  );
}

function Taking() {
  const { run } = view.value;
  const landed = rows.value.some((row) => row.commit);
  if (run.live || (!run.home && !run.landed && !landed)) return null;
  return (
    <Section id="take" title="Your work">
      <div class="card">
        <p>
          <Foreign>{run.home || run.landed || `It is on branch ${run.branch}.`}</Foreign>
        </p>
        {run.commands.map(([what, command]) => (
          <div class="way" key={command}>
            <span class="muted">{what}</span>
            <Copy text={command} />
          </div>
        ))}
        {run.exit !== 0 && <div class="way"><span class="muted">go on</span><Copy text="unstuck resume" /></div>}
      </div>
    </Section>
  );
}

function Landed({ row }) {
  return (
    <a class="row" href={to("task", row.id)}>
      <Mark name="complete" />
      <span class="what">
        <span class="name">
          <b>{row.id}</b> <Foreign>{row.title}</Foreign>
        </span>
        <span class="muted">
          {row.commit && <code>{row.commit.slice(0, 10)}</code>}
          {row.agent && <Foreign>{row.agent}</Foreign>}
          {row.recovered && <span class="tag">recovered from {row.recovered.join(", ").replaceAll("_", " ")}</span>}
        </span>
      </span>
      <span class="numbers">
        {row.files ? <span><i class="plus">+{row.plus ?? 0}</i> <i class="minus">−{row.minus ?? 0}</i></span> : <span />}
        <span>{price(row.cost)}</span>
        <span>{span(row.seconds)}</span>
      </span>
    </a>
  );
}

function Asked() {
  const done = view.value.events.filter((one) => one.type === "operated").slice(-5).reverse();
  if (!done.length) return null;
  return (
    <Section id="asked" title="What you asked for">
      <ul class="plain">
        {done.map((one) => (
          <li key={one.seq}>
            <span class="muted time">{clock(one.at)}</span> <Foreign>{one.text}</Foreign> {one.undo && <Undo seq={one.seq} />}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Remarks() {
  const { run } = view.value;
  const lists = [["Worth a look", run.cautions], ["While agents were at work", run.meanwhile], ["Notes", run.notes]];
  return lists
    .filter(([, texts]) => texts.length)
    .map(([title, texts]) => (
      <Section key={title} id={title.replaceAll(" ", "-")} title={title}>
        <ul class="plain">
          {texts.slice(-20).map((text, at) => (
            <li key={at}>
              <Foreign>{text}</Foreign>
            </li>
          ))}
        </ul>
      </Section>
    ));
}

export const NoRun = () => (
  <Empty title="No run yet.">
    <p>Start one in this repository; it appears here by itself.</p>
    <Copy text="unstuck run PLAN" />
  </Empty>
);
