// The page: a rail with the views, the view, and what is said at its foot.
import { effect } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { Cost } from "./cost.jsx";
import { Experience } from "./experience.jsx";
import { Log } from "./log.jsx";
import { Morning, NoRun } from "./morning.jsx";
import { Copy, Icon } from "./parts.jsx";
import { Plan } from "./plan.jsx";
import { counts, fleet, follow, go, heard, kept, link, listRuns, lookAtFleet, now, place, rows, runs, theme, toast, to, turnTheme, view, wanted } from "./store.js";
import { Story } from "./story.jsx";
import { Tasks } from "./tasks.jsx";
import { Timeline } from "./timeline.jsx";
import { clock, day } from "./words.js";
import { Workers } from "./workers.jsx";

const VIEWS = { morning: ["Morning", Morning], plan: ["Plan", Plan], tasks: ["Tasks", Tasks], timeline: ["Timeline", Timeline], cost: ["Cost", Cost], experience: ["Experience", Experience], log: ["Log", Log], workers: ["Workers", Workers] };
const LINKS = { kept: "kept page", open: "live", opening: "opening…", lost: "reconnecting…", gone: "reconnecting…", empty: "no run yet", refused: "refused" };

function Page() {
  const { name, about } = place.value;
  const [, View] = VIEWS[name] ?? VIEWS.morning;
  useEffect(() => scrollTo(0, 0), [name, about]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main").focus())}>To the content</a>
      <Rail />
      <main id="main" tabIndex={-1}>
        {link.value === "refused" ? <Refused /> : !view.value ? (link.value === "empty" ? <NoRun /> : <p class="muted pad">Opening…</p>) : name === "task" ? <Story key={about} id={about} /> : <View />}
      </main>
      <Foot />
    </>
  );
}

function Rail() {
  const here = place.value.name === "task" ? "tasks" : place.value.name;
  return (
    <nav class="rail" aria-label="Views">
      <a class="brand" href={to("morning")}><svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="9" /><path d="M9 17.5l5 5 9.5-12" /></svg>unstuck</a>
      <RunChoice />
      <ul>
        {Object.entries(VIEWS).filter(([name]) => name !== "workers" || fleet.value).map(([name, [word]], at) => (
          <li key={name} class={`link-${name}`}>
            <a href={to(name)} aria-current={here === name ? "page" : undefined} title={`${word} (${at + 1})`}>
              <Icon name={name} /> <span>{word}</span>
              {name === "morning" && counts.value.stuck > 0 && <b class="badge" aria-label={`${counts.value.stuck} stuck`}>{counts.value.stuck}</b>}
            </a>
          </li>
        ))}
      </ul>
      <div class="end">
        <span class={`link ${view.value?.run.live && link.value === "open" ? "live" : link.value}`} role="status">{view.value && !view.value.run.live && link.value === "open" ? "not running" : LINKS[link.value]}</span>
        <button type="button" class="quiet" onClick={turnTheme} aria-label="Light or dark (d)"><Icon name="theme" /></button>
      </div>
    </nav>
  );
}

function RunChoice() {
  const run = view.value?.run;
  if (!run) return null;
  if (kept || runs.value.length < 2) return <p class="run"><span class="id">{run.id}</span><span class="muted">{day(run.began)}, {clock(run.began)}</span></p>;
  return (
    <label class="run">
      <span class="out">Run</span>
      <select value={run.id} onChange={(event) => go(place.value.name === "task" ? "morning" : place.value.name, "", event.currentTarget.value)}>
        {runs.value.map((one) => <option key={one.id} value={one.id}>{one.id}{one.live ? " · live" : ""} · {one.landed}/{one.tasks} · {one.plan}</option>)}
      </select>
    </label>
  );
}

const Refused = () => (
  <div class="empty"><p class="lead">This board was opened again.</p><p>Use the address that <code>unstuck ui</code> printed last.</p></div>
);

function Foot() {
  useEffect(() => {
    if (!toast.value || toast.value.bad) return;
    const left = setTimeout(() => (toast.value = null), 8000);
    return () => clearTimeout(left);
  }, [toast.value]);
  return (
    <>
      <div class="out" aria-live="polite">{heard.value}</div>
      <div class="foot" role="status">
        {toast.value && (
          <div class={`toast ${toast.value.bad ? "bad" : ""}`}>
            <span>{toast.value.text}</span>
            {toast.value.command && <><span class="muted">Go on with</span><Copy text={toast.value.command} /></>}
            <button type="button" class="quiet" onClick={() => (toast.value = null)} aria-label="Close">×</button>
          </div>
        )}
      </div>
      <dialog id="keys" aria-label="Keys">
        <form method="dialog">
          <h2>Keys</h2>
          <dl>{[[fleet.value ? "1 – 8" : "1 – 7", "the views"], ["/", "find a task"], ["j, k", "next and previous task"], ["d", "light or dark"], ["Esc", "back to the tasks"], ["?", "these keys"]].map(([key, what]) => <><dt key={key}><kbd>{key}</kbd></dt><dd>{what}</dd></>)}</dl>
          <button>Close</button>
        </form>
      </dialog>
    </>
  );
}

function pressed(event) {
  if (event.metaKey || event.ctrlKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const names = Object.keys(VIEWS);
  const { name, about } = place.value;
  const ids = rows.value.map((row) => row.id);
  if (names[event.key - 1]) go(names[event.key - 1]);
  else if (event.key === "d") turnTheme();
  else if (event.key === "?") document.getElementById("keys").showModal();
  else if (event.key === "Escape" && name === "task") go("tasks");
  else if (event.key === "j" || event.key === "k") {
    const next = name === "task" ? ids[ids.indexOf(about) + (event.key === "j" ? 1 : -1)] : ids[0];
    if (next) go("task", next);
  } else if (event.key === "/") {
    go("tasks");
    requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById("search")?.focus()));
  } else return;
  event.preventDefault();
}

addEventListener("keydown", pressed);
effect(() => {
  if (theme.value) document.documentElement.dataset.theme = theme.value;
});
effect(() => {
  const { run } = view.value ?? {};
  const stuck = counts.value.stuck ? `(${counts.value.stuck}) ` : "";
  document.title = run ? `${stuck}${(VIEWS[place.value.name] ?? ["Task"])[0]} · ${run.id} · unstuck` : "unstuck";
});
effect(() => {
  wanted.value;
  follow();
  listRuns();
  lookAtFleet();
});
setInterval(() => place.value.name === "workers" && lookAtFleet(), 3000);
setInterval(() => link.value === "open" && !view.value?.run.live && listRuns(), 5000);
setInterval(() => view.value?.run.live && (now.value = Date.now() / 1000), 1000);
render(<Page />, document.getElementById("page"));
