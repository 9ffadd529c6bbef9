"""Write the files that people read, atomically, from the state; and notice what a person edited in them."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unstuck.adapters.desk import put
from unstuck.core import report
from unstuck.core.event import Entry
from unstuck.core.state import RunState, fold
from unstuck.ports import PlanFile

REOPENS = ("pending", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Projections:
    """The JSON files and reports under `.unstuck/`, and the plan's ticks."""

    home: Path
    plan: PlanFile

    def write(self, state: RunState, changed: Sequence[str]) -> None:
        """Bring everything up to date; the config, which names the last event covered, comes last."""
        if not changed and (self.home / "config.json").exists():
            return
        for name in changed:
            task = state.tasks[name]
            if task.last_seq or task.status != "pending" or self._phase(name).exists():
                put_json(self._phase(name), report.phase(state, name))
            if task.status == "stuck":
                put(self.home / "reports" / f"{name}.md", report.escalation(task))
        put_json(self.home / "attempt_history.json", report.attempt_history(state))
        put_json(self.home / "build_commits.json", report.build_commits(state))
        ticks = {name: state.tasks[name].status == "complete" for name in changed}
        if ticks:
            self.plan.tick(ticks)
        put_json(self.home / "config.json", report.config(state))

    def edits(self, run: str, entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
        """Yield (task, what was done) for every task that a person set back by editing or deleting its file.

        A file says from which event it was made, so it is compared with the state at that event: a file that is
        merely older than the journal is not an edit.
        """
        covered = _made_at(read_json(self.home / "config.json"), run)
        if covered is None:
            return
        written = fold(entry for entry in entries if entry.seq <= covered)
        now = fold(entries)
        for name, task in written.tasks.items():
            if task.status not in ("complete", "stuck", "skipped") or name not in now.tasks:
                continue
            if not self._phase(name).exists():
                if task.attempts and now.tasks[name].status == task.status:
                    yield name, f"its file {self._phase(name).name} was deleted"
                continue
            content = read_json(self._phase(name))
            at = _made_at(content, run)
            if content is None or at is None:
                continue
            then = written if at >= covered else fold(entry for entry in entries if entry.seq <= at)
            if content.get("status") in REOPENS and report.phase(then, name)["status"] != content["status"]:
                yield name, f"its status was set to {content['status']} by hand"

    def _phase(self, name: str) -> Path:
        return self.home / "phases" / f"phase-{name}.json"


def put_json(path: Path, content: dict[str, Any]) -> None:
    put(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """Read an object; one that does not parse is set aside under another name, and nothing is lost."""
    try:
        content = json.loads(path.read_bytes())
    except OSError:
        return None
    except ValueError:
        path.rename(path.with_name(f"{path.name}.unreadable-{time.strftime('%Y%m%d-%H%M%S')}"))
        return None
    return content if isinstance(content, dict) else None


def _made_at(content: dict[str, Any] | None, run: str) -> int | None:
    """Say from which event a file was made; None for another run's file, or one that does not say."""
    made = (content or {}).get("unstuck")
    if not isinstance(made, dict) or made.get("run") != run or not isinstance(made.get("event"), int):
        return None
    event: int = made["event"]
    return event
