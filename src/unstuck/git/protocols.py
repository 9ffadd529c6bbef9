"""Protocols of the git side of a run."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from unstuck.model.changes import Change, Changes, Touch
from unstuck.model.landing import AlreadyMerged, Conflict, Landing, MergePlan, NotPossible, Snapshot, Tree


class Workspace(Protocol):
    """The git side of one run. Every method may be repeated after a crash."""

    def open_branch(self, base: str) -> bool:
        """Create the run's branch at `base` unless it exists; return whether it did not."""

    def tip(self) -> str:
        """Return the commit at the end of the run's branch."""

    def prepare(self, slot: int, base: str, tree: str | None = None) -> Path:
        """Make the slot's folder hold `base`, with `tree`'s files on top when given; return its path.

        Repairs a slot that a crash left half made. What it held before is not asked for:
        whoever calls this has taken a snapshot.
        """

    def path(self, slot: int) -> Path: ...

    def has_slot(self, slot: int) -> bool:
        """Whether the slot's folder is still there: a person may have removed it."""

    def write_tree(self, slot: int, base: str) -> Tree:
        """Write the slot's files as a git tree: what would land on `base`."""

    def snapshot(self, slot: int, name: str) -> Snapshot | None:
        """Put the slot's work away under `refs/unstuck/snapshots/<run>/<name>`; None if there is nothing to save."""

    def summarize_changes(self, base: str, tree: str) -> Changes:
        """Say in which files the two differ; of very many, the first few hundred."""

    def touches(self, base: str, tree: str, files: Sequence[str]) -> tuple[Touch, ...]:
        """Say what was done to each of these files between the two, in the lines of `base`."""

    def changed_paths(self, base: str, tree: str) -> tuple[str, ...]:
        """List the paths in which the two differ."""

    def merge(self, landing: Landing, tip: str) -> str | Conflict:
        """Merge the landing's tree onto `tip`; return the merged tree."""

    def land(self, landing: Landing) -> str | None:
        """Put a commit on the run's branch by compare-and-swap and return it; None if the branch has moved.

        Landing the same thing twice returns the same commit and adds nothing.
        """

    def history(self, commit: str, base: str) -> tuple[str, ...]:
        """List the commits from `base` up to this one, newest first; `base` itself is the last."""

    def move_branch(self, commit: str, *, expected: str) -> None:
        """Set the run's branch by compare-and-swap."""

    def merge_user_commit(self, commit: str, *, message: str, at: float) -> str | Conflict:
        """Merge a commit of the user's into the run's branch; return the new tip."""

    def keep_commit(self, name: str, commit: str) -> Snapshot:
        """Keep a commit alive under a snapshot ref."""

    def note_repository_state(self) -> None:
        """Look at the user's repository before the first session, to tell later what changed there."""

    def finish_session(self, slot: int, base: str) -> tuple[str, ...]:
        """Begin to write down what a session made; say what changed in the user's repository since the last look, as sentences."""


class Checkouts(Workspace, Protocol):
    """A workspace that also makes clean checkouts, and reads what trees hold."""

    def prepare(self, slot: int, base: str, tree: str | None = None, *, clean: bool = False) -> Path:
        """Prepare as ever. A clean worktree loses ignored files, too, but for what was placed or set up.

        Git, asked in a clean worktree, takes all files of the tree for tracked.
        """

    def remember_setup(self, slot: int, before: Sequence[str], altered: Sequence[str]) -> None:
        """Remember what the set-up made in the slot's worktree, besides what lay about `before`, and what it `altered`.

        A clean `prepare` keeps what it made; none of it is anybody's work.
        """

    def untracked_files(self, slot: int) -> tuple[str, ...]:
        """List what lies about in the slot's worktree, untracked and not ignored."""

    def altered_files(self, slot: int) -> tuple[str, ...]:
        """List the files of the slot's tree that are in another form now, or gone; new ones are not listed."""

    def tree_with_paths(self, base: str, tree: str, paths: Sequence[str]) -> str:
        """Write the tree of `base` with these paths as they are in `tree`."""

    def changes(self, base: str, tree: str) -> tuple[Change, ...]:
        """Return the paths in which the two differ, with their texts; no renames."""

    def line_authors(self, path: str, commit: str, since: str) -> Sequence[tuple[str, str]]:
        """Return the lines of a file that came in after `since`, each with the commit that added it."""

    def tree_of(self, commit: str) -> str:
        """Return the tree of a commit."""

    def tree_files(self, tree: str) -> tuple[str, ...]:
        """List all paths of a tree."""


class Home(Protocol):
    """The user's branch, which the run's branch comes home to at the end."""

    def plan_merge(self, *, message: str, at: float) -> MergePlan:
        """Say what would be done; change nothing of the user's."""

    def apply_merge(self, commit: str) -> AlreadyMerged | NotPossible:
        """Move the user's branch and files on to a descendant; refuse rather than overwrite."""

    def commit_plan(
        self,
        paths: Sequence[str],
        change: Callable[[Mapping[str, bytes]], Mapping[str, bytes]],
        *,
        message: str,
        at: float,
    ) -> str | NotPossible | None:
        """Commit a change of ours, made in the files as they were committed, and nothing else; None if it changes nothing."""

    def write_script(self) -> Path:
        """Write the script that makes the landed commits when the user runs it."""
