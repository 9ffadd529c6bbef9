"""The ways in which a run's work can come home to the user's branch."""

from dataclasses import dataclass


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
