"""Supervisors that die by SIGKILL at the place that DIE_AT names.

    python doomed.py          then, line by line on stdin, as JSON: {"cwd", "env", "said", "argv"}

For each line a process is forked that runs the command line with `argv`, and its exit status is printed; what it says
goes to the file `said`. Forking saves the half second in which Python loads everything; the process is a supervisor
like any other. An `argv` of `doomed PLAN COMMIT` runs a plan as `unstuck run` does, with places to die:
`before|after append TYPE TASK N` and `before|after rename FILE N`, the N-th event of a type for a task and the N-th
time that a file of this name is put. Other places are in the commands that the supervisor starts; they find it by the
variable SUPERVISOR.
"""

import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from unstuck import api
from unstuck.adapters.codec import encode
from unstuck.adapters.sqlite import SqliteJournal
from unstuck.core.event import Entry, Event, Noted, Options
from unstuck.surfaces.cli import cli, run_cli


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


def main() -> None:
    """Fork a supervisor for every line, and say how it ended."""
    encode(Noted(text=""))
    cli.get_command(None, "resume")  # type: ignore[arg-type]  # only to load what it needs
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(job)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


def _become(job: dict[str, Any]) -> None:
    code = 1
    try:
        said = os.open(job["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.environ.clear()
        os.environ.update(job["env"])
        os.chdir(job["cwd"])
        code = _doomed(*job["argv"][1:]) if job["argv"][0] == "doomed" else run_cli(job["argv"])
        sys.stderr.flush()
    finally:
        os._exit(code)


def _doomed(plan: str, commit: Any) -> int:
    os.environ["SUPERVISOR"] = str(os.getpid())
    if " rename " in os.environ["DIE_AT"]:
        sys.addaudithook(Renames())
    options = Options(agents=(), commit=commit)
    return api.open_run(plan, options=options, open_journal=DoomedJournal).go().exit_code or 0


if __name__ == "__main__":
    main()
