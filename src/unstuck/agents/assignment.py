"""What an agent needs to start one session, as a value and a protocol."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from unstuck.model.outcome import Ended, Outcome
from unstuck.process.command import Command


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """All that an agent needs to start one session."""

    run: str
    task: str
    attempt: int
    session: int
    slot: int
    worktree: Path
    brief: str
    brief_file: Path
    log: Path
    transcript: Path
    """Where an agent whose output is read keeps it."""
    resume: str = ""
    """The agent's own name of the session that this one continues."""


class Agent(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def reports_cost(self) -> bool:
        """Whether its outcomes say what a session cost."""

    @property
    def login(self) -> str:
        """How a person logs it in; empty where we do not know."""

    def command(self, assignment: Assignment) -> Command:
        """Return the process that does the work."""

    def outcome(self, ended: Ended, assignment: Assignment) -> Outcome:
        """Read what the agent says of its work and of its end. May be asked again after a crash."""
