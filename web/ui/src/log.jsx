// The last events of the journal, the newest first.
import { Undo } from "./actions.jsx";
import { Foreign, Rows } from "./parts.jsx";
import { to, view } from "./store.js";
import { clock } from "./words.js";

export function Log() {
  const events = [...view.value.events].reverse();
  return (
    <div class="column wide">
      <header class="title-row"><h1>Log</h1><span class="aside">the last {events.length} events; all of them: <code>unstuck log</code></span></header>
      <Rows items={events} height={34} label="Events" draw={(one) => (
        <div class="event">
          <span class="muted time">{clock(one.at, true)}</span><span class="muted seq">{one.seq}</span>
          {one.task ? <a href={to("task", one.task)}><Foreign>{one.text}</Foreign></a> : <Foreign>{one.text}</Foreign>}
          {one.undo && <Undo seq={one.seq} />}
        </div>
      )} />
    </div>
  );
}
