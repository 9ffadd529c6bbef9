"""Supervisors that die by SIGKILL at the place that DIE_AT names.

`python -m tests.engine.doomed PLAN COMMIT` runs a plan as `unstuck run` does, with places to die: `before|after append TYPE TASK N` and `before|after rename FILE N`, the N-th event of a type for a task and the
N-th time that a file of this name is put. Other places are in the commands that the supervisor starts; they find it by
the variable SUPERVISOR.
"""

import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from unstuck.app.open_run import open_run
from unstuck.journal.sqlite import SqliteJournal
from unstuck.model.event import Entry, Event, Options


class DoomedJournal(SqliteJournal):
    """A journal in which every append is a place to die, before it and after it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._places: Counter[str] = Counter()

    def append(self, event: Event) -> Entry:
        name = f"append {event.type} {getattr(event, 'task', None) or 'run'}"
        self._places[name] += 1
        reach(f"before {name} {self._places[name]}")
        entry = super().append(event)
        reach(f"after {name} {self._places[name]}")
        return entry


class Renames:
    """An audit hook that sees every file that is put; the first event after a rename comes after it."""

    def __init__(self) -> None:
        self._places: Counter[str] = Counter()
        self._last = ""

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._last:
            last, self._last = self._last, ""
            reach(f"after {last}")
        if event == "os.rename":
            name = f"rename {os.path.basename(os.fsdecode(arguments[1]))}"  # noqa: PTH119  # called for everything: be quick
            self._places[name] += 1
            reach(f"before {name} {self._places[name]}")
            self._last = f"{name} {self._places[name]}"


def reach(place: str) -> None:
    if place == os.environ.get("DIE_AT"):
        os.kill(os.getpid(), signal.SIGKILL)


def main(plan: str, commit: Any) -> int:
    os.environ["SUPERVISOR"] = str(os.getpid())
    if " rename " in os.environ["DIE_AT"]:
        sys.addaudithook(Renames())
    options = Options(agents=(), commit=commit)
    return open_run(plan, options=options, open_journal=DoomedJournal).go().exit_code or 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
