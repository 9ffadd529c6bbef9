"""Edge: Bring an agent's own commits from its slot into the user's repository: checked, and without trusting the slot's git.

Law: nothing of the slot's git folder but objects is read by git, and those only where their store is as we made it.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from unstuck.git.command import Git

COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
REF = re.compile(r"ref: (refs/[\w./+@-]+)")
LARGEST = 10_000_000
"""Bytes of a git folder's file that are looked at."""


def head_of(folder: Path, top: Path) -> str | None:
    """Return the commit that the repository in a folder stands on, read as text; None where that is not plain to see."""
    git_dir = _git_dir(folder, top)
    head = _text(git_dir / "HEAD") if git_dir else ""
    ref = REF.fullmatch(head)
    if ref is not None and git_dir is not None and ".." not in ref[1]:
        packed = (
            line.split(" ") for line in _text(git_dir / "packed-refs").splitlines() if line.endswith(f" {ref[1]}")
        )
        head = _text(git_dir / ref[1]) or next((fields[0] for fields in packed), "")
    return head if COMMIT.fullmatch(head) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The objects that a slot has for itself."""

    git: Git
    """Git on the user's repository."""
    objects: Path
    alternates: str
    """What we wrote there: who changed it would let us read from anywhere."""

    @property
    def sound(self) -> bool:
        plain = self.objects.is_dir() and not self.objects.is_symlink() and not self.objects.parent.is_symlink()
        lenders = self.objects / "info" / "alternates"
        return plain and not (self.objects / "info").is_symlink() and _text(lenders) == self.alternates.strip()

    @property
    def inside(self) -> Git:
        """Git that reads and writes the slot's objects, by the user's configuration."""
        lenders = (f'"{line}"' for line in self.alternates.splitlines())
        return self.git.using(
            GIT_OBJECT_DIRECTORY=str(self.objects),
            GIT_ALTERNATE_OBJECT_DIRECTORIES=":".join(lenders),
            GIT_NO_REPLACE_OBJECTS="1",
        )

    def bring(self, commit: str, base: str) -> bool:
        """Copy a commit and what it needs beyond `base`; refuse all of it if anything is broken or missing."""
        packed = self.inside.attempt("pack-objects", "--revs", "--stdout", "--quiet", stdin=f"{commit}\n^{base}\n")
        if packed.returncode != 0:
            return False
        return self.git.attempt("index-pack", "--stdin", "--strict", "--fix-thin", stdin=packed.stdout).returncode == 0


def _git_dir(folder: Path, top: Path) -> Path | None:
    """Return a repository's git folder if it lies inside the slot, be it through a `.git` file."""
    place = folder / ".git"
    if place.is_symlink():
        return None
    if place.is_file():
        place = folder / _text(place).removeprefix("gitdir: ")
    return place if place.is_dir() and place.resolve().is_relative_to(top.resolve()) else None


def _text(path: Path) -> str:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST:
            return ""
        return path.read_text("utf-8", "surrogateescape").strip()
    except OSError:
        return ""
