"""Edge: Read what two trees hold and where they differ, in two git commands, however many files there are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unstuck.git.command import Git

if TYPE_CHECKING:
    from unstuck.verify import Change

LARGEST = 1_000_000
"""Bytes of a file that is still read; a larger one counts as binary."""
LARGEST_ALL = 32_000_000
"""Bytes of all files that are read at once; what comes after counts as binary."""
FACTS = 3
"""What git says of an object: its name, kind and size."""
GITLINK = "160000"
GONE = "000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One path in which two trees, or the index and a tree, differ: modes as git writes them, and object ids."""

    path: str
    old_mode: str
    new_mode: str
    old: str
    new: str

    @property
    def sides(self) -> tuple[tuple[str, str], tuple[str, str]]:
        return (self.old_mode, self.old), (self.new_mode, self.new)


def rows(git: Git, base: str, tree: str) -> tuple[Row, ...]:
    """Say where two trees differ."""
    return tuple(
        parsed(
            git("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=none", base, tree)
        )
    )


def parsed(raw: str) -> Iterator[Row]:
    """Read what git prints with `--raw -z`; numbers that follow are passed over."""
    fields = raw.split("\0")
    for facts, path in zip(fields[::2], fields[1::2], strict=False):
        if not facts.startswith(":"):
            return
        old_mode, new_mode, old, new, _ = facts.removeprefix(":").split(" ")
        yield Row(path=path, old_mode=old_mode, new_mode=new_mode, old=old, new=new)


def changes(git: Git, found: Sequence[Row]) -> "tuple[Change, ...]":
    """Return every path in which two trees differ, with its texts; a rename is one path gone and another one new."""
    from unstuck.verify import Change  # noqa: PLC0415  # heavy, and needed only where something changed

    blobs = _read(git, [blob for row in found for mode, blob in row.sides if mode not in (GONE, GITLINK)])
    return tuple(
        Change(
            path=row.path,
            old=_text(row.old_mode, row.old, blobs),
            new=_text(row.new_mode, row.new, blobs),
            old_mode=int(row.old_mode, 8) or None,
            new_mode=int(row.new_mode, 8) or None,
            binary=any(mode != GONE and blobs.get(blob) is None for mode, blob in row.sides),
        )
        for row in found
    )


def files(git: Git, tree: str) -> tuple[str, ...]:
    """List the paths of all files in a tree."""
    return git.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)


def _text(mode: str, blob: str, blobs: Mapping[str, str | None]) -> str | None:
    return (blobs.get(blob) or "") if mode != GONE else None


def _read(git: Git, names: Sequence[str]) -> dict[str, str | None]:
    """Return the text of each object that is small enough and is text; None for the others."""
    read: dict[str, str | None] = dict.fromkeys(names)
    if not read:
        return read
    room = LARGEST_ALL
    with git.streaming("cat-file", "--batch", stdin="".join(f"{name}\n" for name in read)) as out:
        for name in read:
            facts = out.readline().decode().split()
            if len(facts) != FACTS:  # it is missing
                continue
            kind, left = facts[1], int(facts[2])
            if kind == "blob" and left <= min(LARGEST, room):
                room -= left
                content = out.read(left)
                read[name] = None if b"\0" in content else content.decode("utf-8", "replace")
                left = 0
            while left and (passed_over := out.read(min(left, LARGEST))):
                left -= len(passed_over)
            out.read(1)
    return read
