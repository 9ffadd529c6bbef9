"""Edge: Read what two trees hold and where they differ, in a few git commands, however many files there are."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from unstuck.git.command import Git

if TYPE_CHECKING:
    from unstuck.verify import Change

LARGEST = 1_000_000
"""Bytes of a file that is still read; a larger one counts as binary."""
LARGEST_ALL = 32_000_000
"""Bytes of all files that are read at once; what comes after counts as binary."""
GITLINK = 0o160000


def changes(git: Git, base: str, tree: str) -> "tuple[Change, ...]":
    """Return every path in which two trees differ, with its texts; a rename is one path gone and another one new."""
    from unstuck.verify import Change  # noqa: PLC0415  # heavy, and needed only where something changed

    rows = list(_rows(git, base, tree))
    blobs = _read(git, [blob for _, sides in rows for mode, blob in sides if mode not in (0, GITLINK)])
    found = []
    for path, ((old_mode, old_blob), (new_mode, new_blob)) in rows:
        old, new = _text(old_mode, old_blob, blobs), _text(new_mode, new_blob, blobs)
        binary = any(mode and blobs.get(blob) is None for mode, blob in ((old_mode, old_blob), (new_mode, new_blob)))
        found.append(
            Change(path=path, old=old, new=new, old_mode=old_mode or None, new_mode=new_mode or None, binary=binary)
        )
    return tuple(found)


def files(git: Git, tree: str) -> tuple[str, ...]:
    """List the paths of all files in a tree."""
    return git.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)


def _rows(git: Git, base: str, tree: str) -> Iterator[tuple[str, tuple[tuple[int, str], tuple[int, str]]]]:
    raw = git("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=none", base, tree)
    fields = raw.split("\0")
    for facts, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old, new, _ = facts.removeprefix(":").split(" ")
        yield path, ((int(old_mode, 8), old), (int(new_mode, 8), new))


def _text(mode: int, blob: str, blobs: Mapping[str, str | None]) -> str | None:
    return (blobs.get(blob) or "") if mode else None


def _read(git: Git, names: Sequence[str]) -> dict[str, str | None]:
    """Return the text of each object that is small enough and is text; None for the others."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    asked = "".join(f"{name}\n" for name in wanted)
    sizes = git("cat-file", "--batch-check=%(objecttype) %(objectsize)", stdin=asked).split("\n")
    read: dict[str, str | None] = dict.fromkeys(wanted)
    small, room = [], LARGEST_ALL
    for name, facts in zip(wanted, sizes, strict=True):
        kind, _, size = facts.partition(" ")
        if kind == "blob" and int(size) <= min(LARGEST, room):
            room -= int(size)
            small.append(name)
    if not small:
        return read
    done = git.attempt("cat-file", "--batch=%(objectsize)", stdin="".join(f"{name}\n" for name in small))
    rest = done.stdout.encode("utf-8", "surrogateescape")
    at = 0
    for name in small:
        end = rest.index(b"\n", at)
        last = end + 1 + int(rest[at:end])
        content = rest[end + 1 : last]
        at = last + 1
        read[name] = None if b"\0" in content else content.decode("utf-8", "replace")
    return read
