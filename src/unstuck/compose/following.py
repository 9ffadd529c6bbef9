"""Edge: Follow a repository's journal from outside: what is new since the last look, and who works on it."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

from unstuck.agents import gist
from unstuck.compose.fleets.stores import open_to_look
from unstuck.git import find
from unstuck.journal import Entry, Store
from unstuck.line import Layout
from unstuck.process import Owner
from unstuck.tell import one_line

TAIL_BYTES, DID_CHARS = 8192, 200


class Follower:
    """Reads a journal on from where it left off. There need be none yet: it is opened when there is one."""

    def __init__(self, cwd: Path) -> None:
        self.repository = find(cwd)
        self._journal: Store | None = None

    def runs(self) -> tuple[str, ...]:
        """List all runs, oldest first."""
        journal = self._opened()
        return tuple(journal.runs()) if journal is not None else ()

    def news(self, run: str, after: int) -> Sequence[Entry]:
        """Return the run's events behind a number."""
        journal = self._opened()
        return tuple(journal.read(run, after)) if journal is not None else ()

    def owner(self, run: str) -> Owner | None:
        """Return the living supervisor of a run, if there is one."""
        journal = self._opened()
        owner = journal.owner(run) if journal is not None else None
        return owner if owner is not None and owner.run == run and owner.alive(time.time()) else None

    def doing(self, task: str) -> str:
        """Return in a line what the agent of a task last did, as far as its log tells."""
        path = Layout(self.repository.root, self.repository.store).log(task)
        try:
            with path.open("rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - TAIL_BYTES))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        found = (one_line(gist(line), DID_CHARS) for line in reversed(lines))
        return next((line for line in found if line), "")

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

    def _opened(self) -> Store | None:
        if self._journal is None:
            self._journal = open_to_look(self.repository)
        return self._journal
