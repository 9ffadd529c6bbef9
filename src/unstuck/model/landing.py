"""Describe the steps of landing work and of merging the run's branch into the user's branch."""

from dataclasses import dataclass

RUN_BRANCH_PREFIX = "unstuck/"
RUN_BRANCH_REFS = f"refs/heads/{RUN_BRANCH_PREFIX}"


def run_branch(run: str) -> str:
    """Return the name of the branch that a run commits to."""
    return f"{RUN_BRANCH_PREFIX}{run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Work that was saved before a destructive step: tracked files, untracked files and the index."""

    ref: str
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The tree that would land, by its id, with notes about files that were left out."""

    id: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Two lines of work that git cannot merge."""

    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """The commit to land: a verified tree, its base, and the message and time."""

    tree: str
    base: str
    message: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyMerged:
    """The user's branch has everything."""

    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FastForward:
    """The user's branch can move forward to `commit`."""

    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A merge with the user's branch, which moved. Its tree must be verified before it is applied."""

    commit: str
    tree: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotPossible:
    """The reason why the user's branch does not move, and the command to merge by hand."""

    reason: str
    command: str
    files: tuple[str, ...] = ()


MergePlan = AlreadyMerged | FastForward | Merge | NotPossible
