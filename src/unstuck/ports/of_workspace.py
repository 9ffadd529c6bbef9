"""The git side of one run: slots, snapshots, landing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from unstuck.diagnosis import Touch
from unstuck.journal import Changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Work that was put away before something destructive: tracked, untracked and index."""

    ref: str
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Exactly what would land: git's id of it, and what was left out of it, as sentences."""

    id: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Two lines of work that cannot be merged by machine."""

    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """What to land: a verified tree, the commit it was verified on, and the commit's text and time."""

    tree: str
    base: str
    message: str
    at: float


class Workspace(Protocol):
    """The git side of one run. Every method may be repeated after a crash."""

    def open_branch(self, base: str) -> None:
        """Create the run's branch at `base` unless it exists."""
        ...

    def tip(self) -> str:
        """Return the commit at the end of the run's branch."""
        ...

    def prepare(self, slot: int, base: str, tree: str | None = None) -> Path:
        """Make the slot's folder hold `base`, with `tree`'s files on top when given; return its path.

        Repairs a slot that a crash left half made. What it held before is not asked for:
        whoever calls this has taken a snapshot.
        """
        ...

    def path(self, slot: int) -> Path: ...

    def present(self, slot: int) -> bool:
        """Whether the slot's folder is still there: a person may have removed it."""
        ...

    def tree(self, slot: int, base: str) -> Tree:
        """Write the slot's files as a git tree: what would land on `base`."""
        ...

    def snapshot(self, slot: int, name: str) -> Snapshot | None:
        """Put the slot's work away under `refs/unstuck/snapshots/<run>/<name>`; None if there is nothing to save."""
        ...

    def listed(self, base: str, tree: str) -> Changes:
        """Say in which files the two differ; of very many, the first few hundred."""
        ...

    def touches(self, base: str, tree: str, files: Sequence[str]) -> tuple[Touch, ...]:
        """Say what was done to each of these files between the two, in the lines of `base`."""
        ...

    def changed(self, base: str, tree: str) -> tuple[str, ...]:
        """List the paths in which the two differ."""
        ...

    def merge(self, landing: Landing, tip: str) -> str | Conflict:
        """Merge the landing's tree onto `tip`; return the merged tree."""
        ...

    def land(self, landing: Landing) -> str | None:
        """Put a commit on the run's branch by compare-and-swap and return it; None if the branch has moved.

        Landing the same thing twice returns the same commit and adds nothing.
        """
        ...

    def history(self, commit: str, base: str) -> tuple[str, ...]:
        """List the commits from `base` up to this one, newest first; `base` itself is the last."""
        ...

    def move_branch(self, commit: str, *, expected: str) -> None:
        """Set the run's branch by compare-and-swap."""
        ...

    def bring_in(self, commit: str, *, message: str, at: float) -> str | Conflict:
        """Merge a commit of the user's into the run's branch; return the new tip."""
        ...

    def keep(self, name: str, commit: str) -> Snapshot:
        """Keep a commit alive under a snapshot ref."""
        ...

    def look(self) -> None:
        """Look at the user's repository before the first session, to tell later what changed there."""
        ...

    def changed_meanwhile(self) -> tuple[str, ...]:
        """Say what changed in the user's repository and checkout since the last look, as sentences."""
        ...
