"""The way home: the user's branch, which the run's branch comes to at the end."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyHome:
    """The user's branch has everything."""

    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FastForward:
    """The user's branch can simply move on to `commit`."""

    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """The user's branch moved; `commit` joins both. Its tree must be verified before it is applied."""

    commit: str
    tree: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotPossible:
    """Why the branch stays where it is, as a sentence, and the command that brings it home by hand."""

    reason: str
    command: str
    files: tuple[str, ...] = ()


WayHome = AlreadyHome | FastForward | Merge | NotPossible


class Home(Protocol):
    """The user's branch, which the run's branch comes home to at the end."""

    def plan_merge(self, *, message: str, at: float) -> WayHome:
        """Say what would be done; change nothing of the user's."""
        ...

    def apply_merge(self, commit: str) -> AlreadyHome | NotPossible:
        """Move the user's branch and files on to a descendant; refuse rather than overwrite."""
        ...

    def commit_plan(self, paths: Sequence[str], message: str) -> str | NotPossible | None:
        """Commit the plan's own changes and nothing else; None if there are none."""
        ...

    def write_script(self) -> Path:
        """Write the script that makes the landed commits when the user runs it."""
        ...
