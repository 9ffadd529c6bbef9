"""Look at runs from outside, by their journal."""

import time
from dataclasses import dataclass
from pathlib import Path

from unstuck.errors import BadUsage
from unstuck.git import find
from unstuck.journal import Entry, RunState, SqliteJournal, encode, fold, journal_path
from unstuck.plans import named
from unstuck.process import Owner
from unstuck.tell import Summary, summary


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One run as the journal has it, for whoever looks at it from outside."""

    run: str
    entries: tuple[Entry, ...]
    state: RunState
    owner: Owner | None
    """The living supervisor, if there is one."""

    @property
    def summary(self) -> Summary:
        live = self.owner is not None
        return summary(self.state, time.time() if live else self.entries[-1].at, live=live)

    def named(self, task: str) -> str:
        """Return the id of the task that a person means."""
        found = named((one.task for one in self.state.tasks.values()), task)
        if found is None:
            raise BadUsage(f"There is no task {task} in run {self.run}.", hint="See all of them with `unstuck status`.")
        return found


def look(cwd: Path, run: str | None = None) -> View:
    """Return the latest run of the repository, or the one named."""
    repository = find(cwd)
    path = journal_path(repository)
    if not path.exists():
        raise BadUsage("There is no run in this repository yet.", hint="Start one with `unstuck run PLAN`.")
    journal = SqliteJournal(path)
    try:
        runs = journal.runs()
        if not runs or (run is not None and run not in runs):
            raise BadUsage(
                f"There is no run{f' {run}' if run else ''} in this repository.",
                hint=f"Runs: {', '.join(runs[-5:]) or 'none'}.",
            )
        chosen = run or runs[-1]
        owner = journal.owner()
        alive = owner if owner is not None and owner.run == chosen and owner.alive(time.time()) else None
        entries = tuple(journal.read(chosen))
    finally:
        journal.close()
    return View(run=chosen, entries=entries, state=fold(entries), owner=alive)


def entry_json(entry: Entry) -> str:
    """Return one event as one line of JSON."""
    return f'{{"schema": 1, "seq": {entry.seq}, "at": {entry.at:.6f}, "event": {encode(entry.event)}}}'
