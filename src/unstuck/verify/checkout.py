"""What verification asks of git and of its own memory, beyond what every stage asks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from unstuck.journal import CheckResult
from unstuck.plans import Check
from unstuck.ports import Workspace

if TYPE_CHECKING:
    from unstuck.verify.audit import Change


class Checkouts(Workspace, Protocol):
    """A workspace that also makes clean checkouts, and reads what trees hold."""

    def prepare(self, slot: int, base: str, tree: str | None = None, *, clean: bool = False) -> Path:
        """Prepare as ever. A clean worktree loses ignored files, too, but for what was placed or set up.

        Git, asked in a clean worktree, takes all files of the tree for tracked.
        """
        ...

    def settle(self, slot: int, before: Sequence[str], altered: Sequence[str]) -> None:
        """Remember what the set-up made in the slot's worktree, besides what lay about `before`, and what it `altered`.

        A clean `prepare` keeps what it made; none of it is anybody's work.
        """
        ...

    def loose(self, slot: int) -> tuple[str, ...]:
        """List what lies about in the slot's worktree, untracked and not ignored."""
        ...

    def put(self, slot: int, tree: str, paths: Sequence[str]) -> None:
        """Give these paths of the slot's worktree the form that they have in `tree`; what it has not is removed."""
        ...

    def altered(self, slot: int) -> tuple[str, ...]:
        """List the files of the slot's tree that are in another form now, or gone; new ones are not listed."""
        ...

    def mixed(self, base: str, tree: str, paths: Sequence[str]) -> str:
        """Write the tree of `base` with these paths as they are in `tree`."""
        ...

    def changes(self, base: str, tree: str) -> "tuple[Change, ...]":
        """Return the paths in which the two differ, with their texts; no renames."""
        ...

    def authors(self, path: str, commit: str, since: str) -> Sequence[tuple[str, str]]:
        """Return the lines of a file that came in after `since`, each with the commit that added it."""
        ...

    def tree_of(self, commit: str) -> str:
        """Return the tree of a commit."""
        ...

    def files(self, tree: str) -> tuple[str, ...]:
        """List all paths of a tree."""
        ...


class Memory(Protocol):
    """How checks went on trees: a tree has the same result as long as the tools are the same."""

    def recall(self, tree: str, check: Check) -> CheckResult | None: ...

    def remember(self, tree: str, check: Check, result: CheckResult) -> None: ...


@dataclass(frozen=True, slots=True)
class ShortMemory:
    """A memory that lasts as long as its run."""

    known: dict[tuple[str, str], CheckResult] = field(default_factory=dict)

    def recall(self, tree: str, check: Check) -> CheckResult | None:
        return self.known.get((tree, check.command))

    def remember(self, tree: str, check: Check, result: CheckResult) -> None:
        self.known[tree, check.command] = result


class NoMemory:
    """Remembers nothing: every check is run."""

    def recall(self, tree: str, check: Check) -> CheckResult | None:  # noqa: ARG002  # the port's signature
        return None

    def remember(self, tree: str, check: Check, result: CheckResult) -> None:
        """Forget it."""
