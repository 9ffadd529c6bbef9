"""Edge: Follow a repository's journal from outside: what is new since the last look, and who works on it."""

import time
from collections.abc import Sequence
from pathlib import Path

from unstuck.git import find
from unstuck.journal import Entry, SqliteJournal, journal_path
from unstuck.process import Owner


class Follower:
    """Reads a journal on from where it left off. There need be none yet: it is opened when there is one."""

    def __init__(self, cwd: Path) -> None:
        self.repository = find(cwd)
        self._journal: SqliteJournal | None = None

    def runs(self) -> tuple[str, ...]:
        """List all runs, oldest first."""
        journal = self._opened()
        return journal.runs() if journal is not None else ()

    def news(self, run: str, after: int) -> Sequence[Entry]:
        """Return the run's events behind a number."""
        journal = self._opened()
        return tuple(journal.read(run, after)) if journal is not None else ()

    def owner(self, run: str) -> Owner | None:
        """Return the living supervisor of a run, if there is one."""
        journal = self._opened()
        owner = journal.owner() if journal is not None else None
        return owner if owner is not None and owner.run == run and owner.alive(time.time()) else None

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

    def _opened(self) -> SqliteJournal | None:
        if self._journal is None and (path := journal_path(self.repository)).exists():
            self._journal = SqliteJournal(path)
        return self._journal
