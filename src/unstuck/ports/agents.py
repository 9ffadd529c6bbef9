"""Agents: what they are given, and what they say."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from unstuck.core.attempt import Ended, Outcome
from unstuck.ports.processes import Command


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


class Agent(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def reports_cost(self) -> bool:
        """Whether its outcomes say what a session cost."""
        ...

    def command(self, assignment: Assignment) -> Command:
        """Return the process that does the work."""
        ...

    def outcome(self, ended: Ended) -> Outcome:
        """Read what the agent says of its work."""
        ...
