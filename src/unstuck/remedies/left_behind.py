"""Edge: What a call leaves in the workspace: which files it made or changed, how they are put back, and whether they are what they should be."""

import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from unstuck.remedies.chain import listed
from unstuck.remedies.machine import files_below
from unstuck.shipped import shipped_table

MOST_LOOKED_AT = 5_000_000
MOST_COPIED = 64_000_000
MOST_NAMED = 50
WEB_PAGE = (b"<!doctype html", b"<html")
OURS = ".unstuck/"
JUST_NOW = 100_000_000
"""Nanoseconds by which a file system's clock may be behind."""
Stamp = tuple[int, int, int]


def stamps(root: Path) -> Mapping[str, Stamp]:
    """Return when the content of each file was last changed, its size, and when it was last touched at all."""
    found: dict[str, Stamp] = {}
    for path in files_below(root):
        with suppress(OSError):
            stat = path.lstat()
            found[str(path.relative_to(root))] = (stat.st_mtime_ns, stat.st_size, stat.st_ctime_ns)
    return found


def copies(root: Path, names: Iterable[str]) -> Mapping[str, bytes]:
    """Return what the files hold, as far as that can be kept in memory."""
    found: dict[str, bytes] = {}
    room = MOST_COPIED
    for name in names:
        with suppress(OSError):
            path = root / name
            length = path.lstat().st_size
            if length <= room and not path.is_symlink() and not name.startswith(OURS):
                found[name] = path.read_bytes()
                room -= length
    return found


def taken_back(root: Path, before: Mapping[str, Stamp], kept: Mapping[str, bytes], since: int) -> tuple[str, ...]:
    """Put files back as they were; what they hold now is kept elsewhere, and the folder is returned."""
    after = stamps(root)
    new = [
        name
        for name in changed(before, after, since)
        if not name.startswith(OURS) and (name in kept or name not in before)
    ]
    aside = Path(tempfile.mkdtemp(prefix="unstuck-taken-back-")) if new else None
    for name in new:
        with suppress(OSError):
            assert aside is not None
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copy2 if name in kept else shutil.move)(root / name, aside / name)
    for name, content in kept.items():
        if after.get(name, ())[:2] != before[name][:2]:
            with suppress(OSError):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes(content)
    return (str(aside),) if aside else ()


def changed(before: Mapping[str, Stamp], after: Mapping[str, Stamp], since: int) -> tuple[str, ...]:
    """Return the files that are new or hold something else than before, by name; what was only out of sight is not new."""

    def is_other(name: str, stamp: Stamp) -> bool:
        return before[name][:2] != stamp[:2] if name in before else stamp[2] >= since - JUST_NOW

    return tuple(sorted(name for name, stamp in after.items() if is_other(name, stamp)))


def unsound(name: str, content: bytes) -> str:
    """Say what is wrong with a file of this name; empty if nothing is known to be."""
    base = name.rpartition("/")[2].lower()
    ending = base.rpartition(".")[2] if "." in base else ""
    if begins := shipped_table("chains")["magic"].get(ending):
        return "" if content.startswith(begins.encode("latin-1")) else f"is no {ending} file"
    if ending not in (*listed("pages"), "") and content[:200].lstrip().lower().startswith(WEB_PAGE):
        return "is a web page"
    if ending == "json" and len(content) < MOST_LOOKED_AT:
        try:
            json.loads(content)
        except (ValueError, RecursionError):
            return "is no JSON"
    return ""


def content_of(path: Path) -> bytes:
    """Return how a file begins."""
    with path.open("rb") as file:
        return file.read(MOST_LOOKED_AT)
