"""Describe the differences between two trees."""

from dataclasses import dataclass
from typing import Literal

NEVER_LANDS = "never lands"
"""Part of every note about work that the user's repository cannot take. The summary repeats such notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One path before and after. None means that it does not exist. A binary file has an empty text."""

    path: str
    old: str | None = None
    new: str | None = None
    old_mode: int | None = None
    new_mode: int | None = None
    """Modes of git: 0o100644, 0o100755, 0o120000."""
    binary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The files in which two trees differ."""

    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    plus: int = 0
    minus: int = 0
    """Added and removed lines of text files."""

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.created, *self.modified, *self.deleted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """A change to a file on one side of a conflict, in lines of the common ancestor."""

    task: str
    """Empty for a commit of the user."""
    file: str
    how: Literal["created", "modified", "deleted"]
    first: int = 0
    last: int = 0
