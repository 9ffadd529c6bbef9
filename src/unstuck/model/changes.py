"""What differs between two trees: one file before and after, all files by name, and what one side did to a file."""

from dataclasses import dataclass
from typing import Literal

NEVER_LANDS = "never lands"
"""Stands in notes about work that the user's repository cannot take: the summary tells them, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One path before and after. None is "does not exist"; a binary file that exists has an empty text."""

    path: str
    old: str | None = None
    new: str | None = None
    old_mode: int | None = None
    new_mode: int | None = None
    """As git writes them: 0o100644, 0o100755, 0o120000."""
    binary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The files in which two trees differ."""

    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    plus: int = 0
    minus: int = 0
    """Lines that came and that went, of files that have lines."""

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.created, *self.modified, *self.deleted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """What one side of a conflict did to a file, in the lines of the commit that both began with."""

    task: str
    """Empty for a commit of the user's."""
    file: str
    how: Literal["created", "modified", "deleted"]
    first: int = 0
    last: int = 0
