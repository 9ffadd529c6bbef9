"""Values of landing work and merging the run's branch back."""

from dataclasses import dataclass

RUN_BRANCH_PREFIX = "unstuck/"
RUN_BRANCH_REFS = f"refs/heads/{RUN_BRANCH_PREFIX}"


def run_branch(run: str) -> str:
    """Return the name of the branch that a run commits to."""
    return f"{RUN_BRANCH_PREFIX}{run}"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyMerged:
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


MergePlan = AlreadyMerged | FastForward | Merge | NotPossible
