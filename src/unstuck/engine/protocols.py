"""unstuck.engine.protocols."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from unstuck.journal.run_state import RunState
from unstuck.model.event import Entry, Verb
from unstuck.model.failure import Failure
from unstuck.model.orders import SessionDone, SessionOrder, Subject
from unstuck.model.verdict import Verdict
from unstuck.process.command import Stop


class Projections(Protocol):
    """The files that people read: made from the state, never read back except for a person's edits."""

    def write(self, state: RunState, changed: Sequence[str]) -> None:
        """Bring the files of the changed tasks, and what follows from all of them, up to date."""

    def redone(self, state: RunState, contents: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Write into another version of the plan's files, given by their names, all that we wrote into those on disk."""

    def edits(self, run: str, entries: Sequence[Entry]) -> Iterator[tuple[Verb, str, str]]:
        """Yield (what to do, task, what was done) for every task about which a person edited our files."""


class Dispatcher(Protocol):
    """Who does the work of a run: the threads of this machine, or other machines. Every verb may be asked again."""

    def expect(self, name: str, slot: int) -> None:
        """Get ready for a session, while its slot is made."""

    def ready(self, name: str, slot: int) -> Failure | None:
        """Set a slot up before a session in it counts; whoever sits elsewhere does that with the session."""

    def run(self, order: "SessionOrder", stop: Stop) -> "SessionDone":
        """Run one session to its end. Its slot holds what it begins with, and then its work."""

    def verify(self, subject: "Subject", slot: int, stop: Stop) -> Verdict:
        """Say what the checks make of one tree; raise NotSetUp where they cannot be run."""
