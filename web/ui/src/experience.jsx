// What was learned here: which agents bring work home, and which remedies help.
import { useEffect, useState } from "preact/hooks";
import { Empty, Foreign, Section } from "./parts.jsx";
import { experience, view } from "./store.js";
import { span } from "./words.js";

export function Experience() {
  const [found, setFound] = useState(null);
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    experience().then(setFound).catch((error) => setWrong(error.message));
  }, [view.value.run.live]);
  const agents = Object.entries(found?.agents ?? {}).sort(([, a], [, b]) => b.landed + b.failed - a.landed - a.failed);
  return (
    <div class="column">
      <header class="title-row"><h1>Experience</h1><span class="aside">of all runs in this repository</span></header>
      {wrong && <p class="notice">{wrong}</p>}
      {found && !agents.length && !found.rows.length && <Empty title="Nothing was learned here yet."><p>Runs teach how agents do; remedies that are run teach which of them help.</p></Empty>}
      {agents.length > 0 && (
        <Section id="who" title="Agents">
          <ul class="meters">{agents.map(([name, one]) => (
            <li key={name}><Foreign>{name}</Foreign><span class="meter two" role="img" aria-label={`${one.landed} landed, ${one.failed} failed`}><i style={{ width: `${(100 * one.landed) / (one.landed + one.failed || 1)}%` }} /></span><span class="aside"><b>{Math.round((100 * one.landed) / (one.landed + one.failed || 1))} %</b> · {one.landed} landed, {one.failed} failed</span></li>
          ))}</ul>
        </Section>
      )}
      {found?.rows.length > 0 && (
        <Section id="remedies" title="Remedies">
          <div class="scroll"><table class="words">
            <thead><tr><th>For</th><th>Way</th><th>Where</th><th>Worked</th><th>Time</th><th>Listed</th><th>Now</th><th>Place</th></tr></thead>
            <tbody>{found.rows.map((row, at) => (
              <tr key={at}><th scope="row">{row.chain.replaceAll("_", " ")}</th><td>{row.strategy.replaceAll("_", " ")}</td><td><Foreign>{[row.context, row.tool].filter(Boolean).join(", ") || "–"}</Foreign></td><td>{row.successes} of {row.tries}</td><td>{span(row.seconds / row.tries)}</td><td>{row.confidence.toFixed(2)}</td><td><b>{row.adapted.toFixed(2)}</b></td><td>{row.place}</td></tr>
            ))}</tbody>
          </table></div>
        </Section>
      )}
      {found?.proposals.length > 0 && <Section id="proposals" title="Proposals"><ul class="plain">{found.proposals.map((one) => <li key={one}><Foreign>{one}</Foreign></li>)}</ul></Section>}
    </div>
  );
}
