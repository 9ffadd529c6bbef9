"""Protocols of the tools that carry out recovery steps."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from unstuck.model.failure import Failure
from unstuck.remedies.chain import Step
from unstuck.remedies.recovery_plan import Strategy


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
