// What the page knows: one run as the server tells it, or as the file holds it. Everything else is drawn from here.
import { batch, computed, signal } from "@preact/signals";

const held = document.getElementById("kept");
export const kept = held ? JSON.parse(held.textContent) : null;

export const view = signal(null);
export const doing = signal({});
export const link = signal(kept ? "kept" : "opening");
export const runs = signal([]);
export const now = signal(Date.now() / 1000);
export const place = signal(readPlace());
export const toast = signal(null);
export const heard = signal("");
export const theme = signal(readTheme());

export const wanted = computed(() => place.value.run);
export const rows = computed(() => (view.value ? view.value.order.map((id) => view.value.tasks.get(id)) : []));
export const counts = computed(() => {
  const found = {};
  for (const row of rows.value) found[row.status] = (found[row.status] ?? 0) + 1;
  return found;
});
export const task = (id) => view.value?.tasks.get(id);

// --- where one is -----------------------------------------------------------------------------------------------------

function readPlace() {
  const parts = decodeURI(location.hash).replace(/^#\/?/, "").split("/");
  const run = parts[0]?.startsWith("@") ? parts.shift().slice(1) : "";
  return { run, name: parts[0] || "morning", about: parts.slice(1).join("/") };
}

export function to(name, about = "", run = place.value.run) {
  const parts = [run && `@${run}`, name, about].filter(Boolean);
  return `#/${encodeURI(parts.join("/"))}`;
}

export const go = (...where) => (location.hash = to(...where));
addEventListener("hashchange", () => (place.value = readPlace()));

// --- light and dark ---------------------------------------------------------------------------------------------------

function readTheme() {
  try {
    return localStorage.getItem("unstuck-theme") ?? "";
  } catch {
    return ""; // a file in a browser that keeps nothing
  }
}

export function turnTheme() {
  const dark = theme.value ? theme.value === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  theme.value = dark ? "light" : "dark";
  try {
    localStorage.setItem("unstuck-theme", theme.value);
  } catch {
    /* it holds until the page is closed */
  }
}

// --- the run ----------------------------------------------------------------------------------------------------------

const spanKey = (span) => `${span.task}\0${span.attempt}\0${span.what}\0${span.begin}`;

export function takeView(whole) {
  view.value = {
    ...whole,
    order: whole.tasks.map((row) => row.id),
    tasks: new Map(whole.tasks.map((row) => [row.id, row])),
    spans: new Map(whole.spans.map((span) => [spanKey(span), span])),
  };
}

export function takePatch(patch) {
  const before = view.value;
  if (!before) return;
  for (const row of patch.tasks) {
    tell(before.tasks.get(row.id), row);
    before.tasks.set(row.id, row);
  }
  for (const span of patch.spans) before.spans.set(spanKey(span), span);
  const undoable = new Set(patch.undoable);
  const events = [...before.events.filter((one) => one.seq <= before.seq), ...patch.events].slice(-400);
  view.value = {
    ...before,
    seq: patch.seq,
    run: patch.run,
    questions: patch.questions,
    order: patch.order ?? before.order,
    bills: patch.bills.length ? [...before.bills, ...patch.bills] : before.bills,
    events: events.map((one) => (one.undo === undoable.has(one.seq) ? one : { ...one, undo: undoable.has(one.seq) })),
  };
}

const TOLD = { complete: "landed", stuck: "is stuck and waits for you", waiting: "waits" };
function tell(before, row) {
  if (before && before.status !== row.status && TOLD[row.status]) heard.value = `Task ${row.id} ${TOLD[row.status]}.`;
}

let stream = null;
export function follow() {
  if (kept) {
    takeView(kept.view);
    return;
  }
  stream?.close();
  link.value = "opening";
  stream = new EventSource(`/api/events?run=${encodeURIComponent(wanted.value)}`);
  stream.addEventListener("view", (event) => batch(() => (takeView(JSON.parse(event.data)), (link.value = "open"))));
  stream.addEventListener("patch", (event) => batch(() => (takePatch(JSON.parse(event.data)), (link.value = "open"))));
  stream.addEventListener("doing", (event) => (doing.value = JSON.parse(event.data)));
  stream.onopen = () => (link.value = "open");
  stream.onerror = () => {
    const gone = stream.readyState === EventSource.CLOSED;
    link.value = gone ? "gone" : "lost";
    if (gone) setTimeout(retry, 3000);
  };
}

async function retry() {
  // No run yet, a server that is gone, or one that does not know our cookie: only the last needs a person.
  try {
    const answer = await fetch("/api/runs");
    if (answer.status === 401) link.value = "refused";
    else if ((await answer.json()).latest) follow();
    else {
      link.value = "empty";
      setTimeout(retry, 1500);
    }
  } catch {
    setTimeout(retry, 3000);
  }
}

export async function listRuns() {
  if (kept) return;
  try {
    runs.value = (await ask("/api/runs")).runs;
  } catch {
    return; // told by the link
  }
  // Who looks at the latest run, and not at one by its name, is taken along to the next.
  if (!wanted.value && view.value && runs.value[0] && runs.value[0].id !== view.value.run.id) follow();
}

// --- asking -----------------------------------------------------------------------------------------------------------

export async function ask(path, body) {
  const options = body && { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, options);
  const value = await answer.json().catch(() => ({ error: `The board answers ${answer.status}.` }));
  if (!answer.ok) throw new Error([value.error, value.hint].filter(Boolean).join(" "));
  return value;
}

const about = (path, id, more = {}) =>
  ask(`${path}?${new URLSearchParams({ run: view.value.run.id, task: id, ...more })}`);

export const story = async (id) => (kept ? (kept.stories[id] ?? null) : about("/api/story", id));
export const brief = async (id, attempt) =>
  kept ? (kept.briefs[id]?.[attempt] ?? "") : (await about("/api/brief", id, { attempt })).brief;
export const diff = async (id, attempt, since) =>
  kept
    ? (kept.diffs[id]?.[attempt] ?? "")
    : (await about("/api/diff", id, since ? { attempt, since } : { attempt })).diff;
export const fleet = signal(null);
export async function lookAtFleet() {
  if (kept) return;
  try {
    fleet.value = await ask("/api/fleet");
  } catch (error) {
    if (fleet.value) fleet.value = { ...fleet.value, wrong: error.message };
  }
}
export const experience = async () => (kept ? kept.experience : ask("/api/experience"));

export async function request(verb, id, text = "", shown = "") {
  try {
    const done = await ask("/api/ask", { run: view.value.run.id, verb, task: id, text, shown });
    const what = done.left ? "Left for the running supervisor." : "Done.";
    toast.value = { text: what, command: done.next };
    return true;
  } catch (error) {
    toast.value = { text: error.message, bad: true };
    return false;
  }
}
