"""The edges of the system, as protocols. The line knows these; `compose/` fills them with what this machine has."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from unstuck.journal.run_state import RunState
from unstuck.model.event import Entry, Verb
from unstuck.model.failure import Failure
from unstuck.model.verdict import Verdict
from unstuck.process.command import Stop
from unstuck.remedies.chain import Step
from unstuck.remedies.recovery_plan import Strategy

if TYPE_CHECKING:
    from unstuck.model.orders import SessionDone, SessionOrder, Subject


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How one step of a remedy went."""

    ok: bool
    exit_code: int | None = None
    output: str = ""
    """The last of it, redacted."""
    because: str = ""
    """Why it is not ok."""
    timed_out: bool = False
    listens: int = 0
    """The port on which it listened, until it was ended for that."""


class Toolbox(Protocol):
    """Does the steps of remedies, and takes back what a way that failed has written."""

    def obstacle(self, strategy: Strategy) -> str:
        """Say why a way cannot work on this machine right now; empty if it can."""

    def use(self, step: Step) -> Done:
        """Do one step, and see whether what it promises holds."""

    def settle(self, *, keep: bool) -> tuple[str, ...]:
        """Keep what the steps since the last call wrote and started, and name the files, or take it back."""


class Remedies(Protocol):
    """Tool-level recovery between two attempts."""

    def relieve(self, failure: Failure, command: str, cwd: Path) -> tuple[str, ...]:
        """Do what is safe about the failure, and say as sentences what was done."""

    def advise(self, failure: Failure, command: str, cwd: Path) -> tuple[str, ...]:
        """Say what the agent itself may do about it."""

    def question(self, failure: Failure, command: str, cwd: Path) -> str:
        """Return what to ask a person about it."""

    def passed(self, cwd: Path) -> None:
        """Hear that what was attempted in this place did what it should."""
