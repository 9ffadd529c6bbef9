"""The runs of one repository as the pages of the board read them."""

import json
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unstuck.app.config_file import readable_config
from unstuck.app.experience_table import experience_rows
from unstuck.app.inspect import Follower, View, brief_of, changed, tools_used
from unstuck.app.open_run import reopen_run
from unstuck.app.worker_setup import fleet_of
from unstuck.journal.run_state import RunState
from unstuck.model.errors import BadUsage, UnstuckError
from unstuck.model.event import Entry, Verb
from unstuck.model.text import iso
from unstuck.web.overview import LAST_EVENTS, Charts, clean, event_object, overview
from unstuck.web.task_story import task_story


class Followed:
    """A run as it was last seen. `version` counts the looks at which something was new; a dead supervisor is new, too."""

    def __init__(self) -> None:
        self.state = RunState()
        self.entries: list[Entry] = []
        self.version = 0
        self._charts = Charts()
        self._live: bool | None = None
        self._view: dict[str, Any] = {}
        self._rows: dict[str, dict[str, Any]] = {}
        self._changed: dict[str, int] = {}
        self._order: tuple[list[str], int] = ([], 0)
        self._seqs: list[int] = []

    @property
    def seq(self) -> int:
        return self.state.seq

    def take(self, entries: Iterable[Entry], *, live: bool, now: float) -> None:
        """Take in what is new; a version is counted if anything is."""
        before = self.seq
        for entry in entries:
            owed = self.state.cost_usd
            self.state.apply(entry)
            self._charts.take(entry, self.state.cost_usd - owed)
            self.entries.append(entry)
        if self.seq == before and live == self._live:
            return
        self._live = live
        self.version += 1
        self._seqs.append(self.seq)
        self._view = overview(self.state, self._charts, self.entries, live=live, now=now)
        rows = {row["id"]: row for row in self._view["tasks"]}
        self._changed |= {name: self.version for name, row in rows.items() if self._rows.get(name) != row}
        if list(rows) != self._order[0]:
            self._order = (list(rows), self.version)
        self._rows = rows

    def whole(self) -> dict[str, Any]:
        """Return the whole run as it is now."""
        whole: dict[str, Any] = clean(self._view)
        return whole

    def since(self, version: int) -> dict[str, Any]:
        """Return what changed after a version; the page puts it over what it has."""
        seq = self._seqs[version - 1]
        order, ordered = self._order
        patch: dict[str, Any] = clean({
            "seq": self.seq,
            "run": self._view["run"],
            "questions": self._view["questions"],
            "tasks": [row for name, row in self._rows.items() if self._changed[name] > version],
            "spans": [span for span in self._charts.spans if span["seq"] > seq],
            "bills": [bill for bill in self._charts.bills if bill["seq"] > seq],
            "events": [event_object(one, self.state) for one in self.entries[-LAST_EVENTS:] if one.seq > seq],
            "undoable": sorted(self.state.undoable),
            **({"order": order} if ordered > version else {}),
        })  # fmt: skip
        return patch

    def version_at(self, seq: int) -> int:
        """Return the version that who saw an event of the journal has at least; 0 for one that is not known here."""
        place = bisect_left(self._seqs, seq)
        return place + 1 if place < len(self._seqs) and self._seqs[place] == seq else 0


TICK_SECONDS = 0.25
DIFF_CHARS, LINE_CHARS, BRIEF_CHARS = 400_000, 1_000, 60_000
VERBS: dict[str, Verb] = {
    verb: verb for verb in ("answer", "retry", "skip", "accept", "approve", "reset", "undo", "stop")
}
"""What a page may ask for: what the commands of the same names do. Nothing that names a path or a commit is among them."""
NEED_WORDS = ("answer", "accept")
LONGEST_WORDS = 10_000


class UnknownRun(BadUsage):
    """A request names a run that the journal does not have."""


class Hub:
    """What all pages share. Its methods may be called from any thread."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._follower = Follower(root)
        self._agents = readable_config(self._follower.repository.root).config.agents
        self._lock = threading.RLock()
        self._runs: dict[str, Followed] = {}
        self._seen: dict[str, float] = {}

    def latest(self) -> str:
        """Return the name of the latest run; empty where there is none yet."""
        runs = self._follower.runs()
        return runs[-1] if runs else ""

    def require(self, run: str) -> None:
        """Raise UnknownRun unless the journal has the run."""
        with self._lock:
            if run not in self._runs and run not in self._follower.runs():
                raise UnknownRun(f"There is no run {run[:80]!r} here.", hint="See all of them with `unstuck runs`.")

    def refresh(self, run: str) -> int:
        """Read what the journal has new of a run; return its version."""
        with self._lock:
            followed = self._runs.setdefault(run, Followed())
            news = self._follower.news(run, followed.seq)
            self._seen[run] = time.monotonic()
            followed.take(news, live=self._follower.owner(run) is not None, now=time.time())
            return followed.version

    def told(self, run: str, version: int) -> tuple[int, int, str]:
        """Return the version and the event of now, and as text what changed since a version; of 0, the whole run."""
        with self._lock:
            followed = self._followed(run)
            if version == followed.version:
                return version, followed.seq, ""
            value = followed.since(version) if version else followed.whole()
            return followed.version, followed.seq, json.dumps(value, separators=(",", ":"))

    def doing(self, run: str) -> str:
        """Return as text what the agents at work last did; empty where nobody is."""
        with self._lock:
            tasks = self._followed(run).state.tasks
            busy = [name for name in self._runs[run].state.open if tasks[name].status == "running"]
            if self._follower.owner(run) is None:
                return ""
        return json.dumps(clean({name: did for name in busy if (did := self._follower.doing(name))}))

    def version_at(self, run: str, seq: int) -> int:
        with self._lock:
            return self._followed(run).version_at(seq)

    def runs(self) -> list[dict[str, Any]]:
        """List all runs, the latest first."""
        found = []
        for run in reversed(self._follower.runs()):
            with self._lock:
                whole = self._followed(run).state
                tasks = whole.tasks.values()
                found.append({
                    "id": run,
                    "plan": whole.started.plan if whole.started else "",
                    "began": iso(whole.created),
                    "live": self._follower.owner(run) is not None,
                    "tasks": len(tasks),
                    "landed": sum(task.status in ("complete", "skipped") for task in tasks),
                    "stuck": sum(task.status == "stuck" for task in tasks),
                })  # fmt: skip
        listed: list[dict[str, Any]] = clean(found)
        return listed

    def whole(self, run: str) -> dict[str, Any]:
        with self._lock:
            return self._followed(run).whole()

    def story(self, run: str, task: str) -> dict[str, Any]:
        """Tell the story of a task."""
        view = self._view(run)
        name = view.named(task)
        tools = tools_used(view, name, self._agents)
        return task_story(view.state, view.entries, name, tools)

    def diff(self, run: str, task: str, attempt: int | None, since: int | None) -> str:
        """Return what an attempt changed, or what differs between two."""
        view = self._view(run)
        patch = changed(view, view.named(task), attempt, stat=False, since=since)
        lines = patch[: 4 * DIFF_CHARS].split("\n")
        short = "\n".join(line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]} …" for line in lines)
        return str(clean(short, DIFF_CHARS))

    def brief(self, run: str, task: str, attempt: int) -> str:
        """Return what the last session of an attempt was told."""
        view = self._view(run)
        return str(clean(brief_of(view, view.named(task), attempt), BRIEF_CHARS))

    def experience(self) -> dict[str, Any]:
        """Return which remedies and agents work here."""
        found = experience_rows(self.root)
        learned: dict[str, Any] = clean({name: found[name] for name in ("rows", "proposals", "agents")})
        return learned

    def fleet(self) -> dict[str, Any] | None:
        """Return the workers, what they do and what waits for them; nothing where runs stay on this machine."""
        seen = fleet_of(self.root)
        shown: dict[str, Any] | None = clean(asdict(seen)) if seen is not None else None
        return shown

    def ask(self, run: str, verb: str, task: str | None, text: str, shown: str) -> dict[str, Any]:
        """Leave a request as the command of that name does; say whether it was done or left for the supervisor."""
        if verb not in VERBS:
            raise BadUsage(f"Nobody can ask for {verb[:40]!r} here.", hint=f"There are: {', '.join(VERBS)}.")
        if (verb in NEED_WORDS and not text.strip()) or len(text) > LONGEST_WORDS:
            raise BadUsage("That needs a few words, and not too many.", hint="Write them, and ask again.")
        view = self._view(run)
        name = view.named(task) if task is not None else None
        answer = reopen_run(run, cwd=self.root).operate(VERBS[verb], task=name, text=text, shown=shown)
        if answer is not None and answer.refused:
            raise BadUsage(answer.refused, hint="Nothing was changed.")
        return {"left": answer is None, "next": "" if answer is None or verb == "stop" else "unstuck resume"}

    def close(self) -> None:
        self._follower.close()

    def _followed(self, run: str) -> Followed:
        """Return a run that is known and not older than a tick."""
        self.require(run)
        if time.monotonic() - self._seen.get(run, 0.0) > TICK_SECONDS:
            self.refresh(run)
        return self._runs[run]

    def _view(self, run: str) -> View:
        with self._lock:
            followed = self._followed(run)
            entries = tuple(followed.entries)
            return self._follower.view(run, entries, followed.state.copied())  # others read on meanwhile


def refusal(error: UnstuckError) -> dict[str, str]:
    """Return an error of ours as the page shows it."""
    return {"error": str(clean(error.message)), "hint": str(clean(error.hint))}
