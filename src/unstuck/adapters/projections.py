"""Write the files that people read, atomically, from the state; and notice what a person edited in them."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unstuck.adapters.desk import put
from unstuck.adapters.edits import edits, phase_file
from unstuck.adapters.states.spec_folder import SpecFolder
from unstuck.core import report
from unstuck.core.escalation import escalation
from unstuck.core.event import Entry
from unstuck.core.policy import Limits
from unstuck.core.state import RunState
from unstuck.ports import PlanFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Projections:
    """The JSON files and reports under `.unstuck/`, and the plan's ticks."""

    home: Path
    plan: PlanFile
    told: Callable[[str], None]
    """Hears of files that had to be set aside."""
    spec: SpecFolder | None = None
    """The folder of a spec, whose own files are kept up, too."""
    limits: Limits = field(default_factory=Limits)

    def write(self, state: RunState, changed: Sequence[str]) -> None:
        """Bring everything up to date; the config, which names the last event covered, comes last."""
        if not changed and (self.home / "config.json").exists():
            return
        for name in changed:
            task = state.tasks[name]
            if task.last_seq or task.status != "pending" or self._phase(name).exists():
                put_json(self._phase(name), report.phase(state, name))
            if task.status == "stuck":
                put(self.home / "reports" / f"{name}.md", escalation(task, report.lineage_text(state, name)))
        put_json(self.home / "attempt_history.json", report.attempt_history(state))
        put_json(self.home / "build_commits.json", report.build_commits(state))
        ticks = {name: state.tasks[name].status == "complete" for name in changed}
        if ticks:
            self.plan.tick(ticks)
        if self.spec is not None:
            self.spec.write(state, self.limits)
        put_json(self.home / "config.json", report.config(state))

    def edits(self, run: str, entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
        """Yield (task, what was done) for every task that a person set back by editing our files."""
        return edits(self.home, run, entries, self.told)

    def _phase(self, name: str) -> Path:
        return phase_file(self.home, name)


def put_json(path: Path, content: dict[str, Any]) -> None:
    put(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
