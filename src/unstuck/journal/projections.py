"""Edge: Write the files that people read, atomically, from the state, and the log of events; notice what a person edited in them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unstuck.decide import Limits
from unstuck.journal.event import Entry
from unstuck.journal.hand_edits import Edit, edits, phase_file
from unstuck.journal.phase_file import config, phase
from unstuck.journal.run_state import RunState
from unstuck.journal.spec_folders import SpecFolder
from unstuck.journal.storing import show_store
from unstuck.line import blocked
from unstuck.ports import PlanFile
from unstuck.process import DiskDesk, put
from unstuck.tell import attempt_history, build_commits, escalation, lineage_text, sentence, told
from unstuck.verify import junit, sarif_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Projections:
    """The JSON files and reports under `.unstuck/`, and the plan's ticks."""

    home: Path
    store: Path
    """Where logs and transcripts really are."""
    plan: PlanFile
    told: Callable[[str], None]
    """Hears of files that had to be set aside."""
    stack: Mapping[str, str | None] = field(default_factory=dict)
    """What the project is made of, for those who read our files."""
    commands: Mapping[str, str | None] = field(default_factory=dict)
    """The gates, by the names that those readers know."""
    spec: SpecFolder | None = None
    """The folder of a spec, whose own files are kept up, too."""
    limits: Limits = field(default_factory=Limits)

    def write(self, state: RunState, changed: Sequence[str]) -> None:
        """Bring everything up to date; the config, which names the last event covered, comes last."""
        if not self.home.parent.is_dir():  # the checkout was moved or removed: nothing is made in its place
            return
        gone = [name for name, task in state.tasks.items() if task.last_seq and not self._phase(name).exists()]
        if not changed and not gone and (self.home / "config.json").exists():
            return
        ticks, changed = changed, tuple(dict.fromkeys((*changed, *gone)))  # somebody may remove our folder at any time
        show_store(self.home, self.store)
        waiting = blocked(state)
        for name in changed:
            task = state.tasks[name]
            if name not in waiting and (task.last_seq or task.status != "pending" or self._phase(name).exists()):
                put_json(self._phase(name), phase(state, name, waiting))
            if task.status == "stuck":
                blocks = [other for other, causes in waiting.items() if name in causes]
                put(self.home / "reports" / f"{name}.md", escalation(task, lineage_text(state, name), blocks))
        newly = any(state.tasks[name].status == "stuck" for name in changed)
        for name in (name for name in waiting if newly or name in changed or not self._phase(name).exists()):
            put_json(self._phase(name), phase(state, name, waiting))
        put_json(self.home / "attempt_history.json", attempt_history(state))
        put_json(self.home / "build_commits.json", build_commits(state))
        self._write_checks(state)
        if ticks:
            self.plan.mark(
                {name: "blocked" if name in waiting else state.tasks[name].status for name in (*ticks, *waiting)}
            )
        if self.spec is not None:
            self.spec.write(state, self.limits)
        put_json(
            self.home / "config.json", config(state) | {"stack": dict(self.stack), "commands": dict(self.commands)}
        )

    def _write_checks(self, state: RunState) -> None:
        """Write the last verdict of every task for other tools."""
        run = state.started.run if state.started else ""
        tasks = [task for task in state.tasks.values() if task.attempts and task.current.verdict is not None]
        verdicts = [
            (f"{task.task.id} {task.task.title}", task.current.verdict) for task in tasks if task.current.verdict
        ]
        if not verdicts:
            return
        put(self.home / "checks" / f"{run}.junit.xml", junit(run, verdicts))
        remarks = [remark for _, verdict in verdicts for remark in verdict.remarks]
        findings = self.home / "checks" / f"{run}.sarif"
        if remarks or findings.exists():
            put(findings, sarif_text(remarks))

    def edits(self, run: str, entries: Sequence[Entry]) -> Iterator[Edit]:
        """Yield what to do about which task, and what a person did to our files to ask for that."""
        return edits(self.home, run, entries, self.told)

    def _phase(self, name: str) -> Path:
        return phase_file(self.home, name)


def put_json(path: Path, content: dict[str, Any]) -> None:
    put(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


@dataclass(frozen=True, slots=True)
class ExecutionLog:
    path: Path

    def __call__(self, entry: Entry, state: RunState) -> None:
        when = datetime.fromtimestamp(entry.at, UTC).isoformat(timespec="seconds")
        lines = [f"[{when}] {entry.seq} {entry.event.type} {sentence(entry.event)}", told(entry, state)]
        DiskDesk().append(self.path, "".join(f"{line}\n" for line in lines if line))
