"""Protocols of the git side of a run, which tests replace."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from unstuck.model.changes import Change, Changes, Touch
from unstuck.model.landing import Conflict, Landing, Snapshot, Tree


class Workspace(Protocol):
    """The git side of one run. Every method may be repeated after a crash."""

    def open_branch(self, base: str) -> bool:
        """Create the run's branch at `base` unless it exists. Return whether it was created."""

    def tip(self) -> str:
        """Return the commit at the end of the run's branch."""

    def prepare(self, slot: int, base: str, tree: str | None = None) -> Path:
        """Make the slot's folder hold `base`, with the files of `tree` on top if given. Return its path.

        It repairs a slot that a crash left incomplete. It removes all work in it, so the caller takes a snapshot first.
        """

    def path(self, slot: int) -> Path: ...

    def has_slot(self, slot: int) -> bool:
        """Return whether the slot's folder exists. The user may have removed it."""

    def write_tree(self, slot: int, base: str) -> Tree:
        """Write the slot's files as the git tree that would land on `base`."""

    def snapshot(self, slot: int, name: str) -> Snapshot | None:
        """Save the slot's work under `refs/unstuck/snapshots/<run>/<name>`. Return None if it has none."""

    def summarize_changes(self, base: str, tree: str) -> Changes:
        """Return the created, modified and deleted files, at most a few hundred of each."""

    def touches(self, base: str, tree: str, files: Sequence[str]) -> tuple[Touch, ...]:
        """Return how each of these files changed, in the lines of `base`."""

    def changed_paths(self, base: str, tree: str) -> tuple[str, ...]:
        """Return the paths that differ."""

    def merge(self, landing: Landing, tip: str) -> str | Conflict:
        """Merge the landing's tree onto `tip`. Return the merged tree."""

    def land(self, landing: Landing) -> str | None:
        """Put a commit on the run's branch by compare-and-swap and return it, or None if the branch has moved.

        Landing the same thing twice returns the same commit and adds nothing.
        """

    def history(self, commit: str, base: str) -> tuple[str, ...]:
        """Return the commits from this one back to `base`, newest first. `base` is the last."""

    def move_branch(self, commit: str, *, expected: str) -> None:
        """Set the run's branch by compare-and-swap."""

    def merge_user_commit(self, commit: str, *, message: str, at: float) -> str | Conflict:
        """Merge a commit of the user into the run's branch and return the new tip."""

    def keep_commit(self, name: str, commit: str) -> Snapshot:
        """Protect a commit by a snapshot ref."""

    def note_repository_state(self) -> None:
        """Record the state of the user's repository before the first session."""

    def finish_session(self, slot: int, base: str) -> tuple[str, ...]:
        """Start to write what a session made. Return sentences about changes in the user's repository since the last call."""


class Checkouts(Workspace, Protocol):
    """A workspace that also makes clean checkouts and reads trees."""

    def prepare(self, slot: int, base: str, tree: str | None = None, *, clean: bool = False) -> Path:
        """Prepare a slot. A clean one loses ignored files, too, except for placed files and those of the set-up.

        In a clean worktree, git treats all files of the tree as tracked.
        """

    def remember_setup(self, slot: int, before: Sequence[str], altered: Sequence[str]) -> None:
        """Record the files that the set-up made (those not in `before`) and those that it `altered`.

        A clean `prepare` keeps them, and they never land.
        """

    def untracked_files(self, slot: int) -> tuple[str, ...]:
        """Return the untracked files of the slot that are not ignored."""

    def altered_files(self, slot: int) -> tuple[str, ...]:
        """Return the files of the slot's tree that are changed or missing now, without new ones."""

    def tree_with_paths(self, base: str, tree: str, paths: Sequence[str]) -> str:
        """Write the tree of `base` with these paths as in `tree`."""

    def changes(self, base: str, tree: str) -> tuple[Change, ...]:
        """Return the paths that differ, with their texts. A rename is a deletion and a new file."""

    def line_authors(self, path: str, commit: str, since: str) -> Sequence[tuple[str, str]]:
        """Return the lines of a file that were added after `since`, each with its commit."""

    def tree_of(self, commit: str) -> str:
        """Return the tree of a commit."""

    def tree_files(self, tree: str) -> tuple[str, ...]:
        """Return all paths of a tree."""
