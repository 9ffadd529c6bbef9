// Who does the work of a run that has a fleet: what each worker does, and when it was last heard of.
import { Empty, Foreign, Section } from "./parts.jsx";
import { fleet, to } from "./store.js";
import { span } from "./words.js";

export function Workers() {
  const seen = fleet.value;
  if (!seen) return <Empty title="This run stays on one machine."><p>A fleet shares one Postgres: see <code>unstuck run --store</code>.</p></Empty>;
  return (
    <div class="column">
      <header class="title-row"><h1>Workers</h1><span class="aside">of everybody who shares this store</span></header>
      {seen.wrong && <p class="notice">{seen.wrong}</p>}
      {!seen.workers.length && <Empty title="There is no worker."><p>Start one with <code>unstuck worker --store URL --repo URL</code>.</p></Empty>}
      {seen.workers.map((one) => <Worker key={one.id} one={one} />)}
      {seen.queued.length > 0 && <Section id="queued" title="Waiting"><ul class="plain">{seen.queued.map((wait, at) => <li key={at}>{wait.jobs} {wait.agent ? <>for <Foreign>{wait.agent}</Foreign></> : "to verify"} in <Foreign>{wait.run}</Foreign>, priority {wait.priority}</li>)}</ul></Section>}
      {seen.held.length > 0 && <Section id="held" title="Held back"><ul class="plain">{seen.held.map((held) => <li key={held.agent}><Foreign>{held.agent}</Foreign> for {span(held.seconds)}: <Foreign>{held.why}</Foreign></li>)}</ul></Section>}
      {seen.limits.length > 0 && <Section id="limits" title="Limits"><ul class="plain">{seen.limits.map((limit) => <li key={limit.name}><Foreign>{limit.name}</Foreign>: {limit.most} at most (<Foreign>{limit.members.join(", ")}</Foreign>)</li>)}</ul></Section>}
    </div>
  );
}

function Worker({ one }) {
  const silent = one.beat > one.lease;
  return (
    <Section id={`worker-${one.id}`} title={<Foreign>{one.id}</Foreign>}>
      <p class="muted">
        {one.jobs.length} of {one.slots} slots · {one.state}{one.said && <>: <Foreign>{one.said}</Foreign></>} · {silent ? <b>silent for {span(one.beat)}</b> : <>heard of {span(one.beat)} ago</>} · <Foreign>{[...one.agents, ...one.labels.map((label) => `+${label}`)].join(", ") || "no agents"}</Foreign>
      </p>
      <ul class="plain">{one.jobs.map((job, at) => (
        <li key={at}>{job.kind} of <a href={to("task", job.task, job.run)}><Foreign>{job.task}</Foreign></a>{job.agent && <> by <Foreign>{job.agent}</Foreign></>}, {span(job.seconds)}{job.said && <>: <Foreign>{job.said}</Foreign></>}</li>
      ))}</ul>
    </Section>
  );
}
