"""What verification asks of git, as a port: clean checkouts, trees of its own making, and what trees hold."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from unstuck.ports import Workspace

if TYPE_CHECKING:
    from unstuck.verify import Change


class Checkouts(Workspace, Protocol):
    """A workspace that also makes clean checkouts, and reads what trees hold."""

    def prepare(self, slot: int, base: str, tree: str | None = None, *, clean: bool = False) -> Path:
        """Prepare as ever. A clean worktree loses ignored files, too, but for what was placed or set up.

        Git, asked in a clean worktree, takes all files of the tree for tracked.
        """

    def settle(self, slot: int, before: Sequence[str], altered: Sequence[str]) -> None:
        """Remember what the set-up made in the slot's worktree, besides what lay about `before`, and what it `altered`.

        A clean `prepare` keeps what it made; none of it is anybody's work.
        """

    def loose(self, slot: int) -> tuple[str, ...]:
        """List what lies about in the slot's worktree, untracked and not ignored."""

    def altered(self, slot: int) -> tuple[str, ...]:
        """List the files of the slot's tree that are in another form now, or gone; new ones are not listed."""

    def mixed(self, base: str, tree: str, paths: Sequence[str]) -> str:
        """Write the tree of `base` with these paths as they are in `tree`."""

    def changes(self, base: str, tree: str) -> "tuple[Change, ...]":
        """Return the paths in which the two differ, with their texts; no renames."""

    def authors(self, path: str, commit: str, since: str) -> Sequence[tuple[str, str]]:
        """Return the lines of a file that came in after `since`, each with the commit that added it."""

    def tree_of(self, commit: str) -> str:
        """Return the tree of a commit."""

    def files(self, tree: str) -> tuple[str, ...]:
        """List all paths of a tree."""
