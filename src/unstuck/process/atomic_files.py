"""Edge: Files, put atomically: a person's without ever losing an edit of theirs, and our own. A full or read-only disk is told as such."""

import contextlib
import os
import stat
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from unstuck.git.repository import DRAFT_PREFIX
from unstuck.model.errors import BadUsage, CannotWrite, unwritable
from unstuck.model.text import visible

MAX_PLAN_BYTES = 50_000_000

_TRIES = 50
_READ_WRITE = 0o666


def read_plan_bytes(path: Path) -> bytes:
    """Read a file, at most one byte more than we accept."""
    try:
        with path.open("rb") as file:
            return file.read(min(os.fstat(file.fileno()).st_size, MAX_PLAN_BYTES) + 1)
    except OSError as error:
        raise BadUsage(
            f"Cannot read the plan {path}: {error.strerror or error}.", hint="Put it back or make it readable."
        ) from error


def change_file(path: Path, change: Callable[[bytes], bytes], *, create: bool = False) -> bool:
    """Replace a file's content by what `change` makes of it, atomically; return whether anything changed.

    A file that is not there is an error, unless it may be made: then it counts as empty.

    `change` is applied again to the new content when somebody else writes the file meanwhile: their edit is kept and
    ours is made on top of it. A symbolic link stays, its target is replaced; mode and owner are kept.
    """
    target = Path(os.path.realpath(path))
    try:
        for _ in range(_TRIES):
            before = _content(target) if create else target.read_bytes()
            after = change(before or b"")
            if after == before:
                return False
            if _swap(target, before, after):
                return True
    except OSError as error:
        raise _cannot_write(path, error) from error
    raise CannotWrite(f"Cannot write {path}: it keeps changing.", hint="See what else writes to it, then try again.")


def require_writable(path: Path) -> None:
    """Raise CannotWrite where `rewrite` would; better before an agent has worked than after. It need not be there yet."""
    target = Path(os.path.realpath(path))
    try:
        _refuse_read_only(target.parent)
        with contextlib.suppress(FileNotFoundError):
            _refuse_read_only(target)
    except OSError as error:
        raise _cannot_write(path, error) from error


def _refuse_read_only(path: Path) -> os.stat_result:
    now = path.stat()
    if not now.st_mode & 0o222 or not os.access(path, os.W_OK):
        what = "its folder is" if stat.S_ISDIR(now.st_mode) else "it is"
        raise PermissionError(0, f"{what} read-only")
    return now


def _cannot_write(path: Path, error: OSError) -> CannotWrite:
    writable = "Make the file and its folder writable and see that the disk has room"
    hint = f"{'Put it back' if isinstance(error, FileNotFoundError) else writable}, then try again."
    return CannotWrite(f"Cannot write {path}: {error.strerror or error}.", hint=hint)


def _content(target: Path) -> bytes | None:
    try:
        return target.read_bytes()
    except FileNotFoundError:
        return None


def _swap(target: Path, before: bytes | None, after: bytes) -> bool:
    """Put `after` in the place of `before`, None for no file; False if there is something else by now."""
    now = _refuse_read_only(target) if before is not None else None
    _remove_old_drafts(target.parent)
    handle, name = tempfile.mkstemp(prefix=f"{DRAFT_PREFIX}{os.getpid()}-", dir=target.parent)
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(after)
            if now is not None:
                with contextlib.suppress(PermissionError):
                    os.fchown(handle, now.st_uid, now.st_gid)
            # A new file is as open as the folder that it is put into.
            os.fchmod(handle, stat.S_IMODE(now.st_mode) if now else target.parent.stat().st_mode & _READ_WRITE)
            file.flush()
            os.fsync(handle)
        if _content(target) != before:
            return False
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    _sync_folder(target.parent)
    return True


def _remove_old_drafts(folder: Path) -> None:
    """Remove what a supervisor that was killed while writing left behind."""
    from unstuck.process.caller import process_start  # noqa: PLC0415  # who only reads a plan needs none of it

    for draft in folder.glob(f"{DRAFT_PREFIX}*-*"):
        owner = draft.name.removeprefix(DRAFT_PREFIX).partition("-")[0]
        if owner.isdigit() and process_start(int(owner)) is None:
            draft.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class DiskFiles:
    """The `OwnFiles` port on the disk."""

    def put(self, path: Path, text: str) -> None:
        write_atomically(path, text)

    def append(self, path: Path, text: str) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(visible(text))
        except OSError as error:
            raise unwritable(path, error) from error

    def read(self, path: Path) -> str | None:
        try:
            return path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None


def write_atomically(path: Path, text: str) -> None:
    """Replace a file atomically: a reader sees the old text or the new one, never half of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(visible(text), encoding="utf-8", errors="backslashreplace")
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise unwritable(path, error) from error


def remove_unfinished_writes(*homes: Path) -> None:
    """Remove what supervisors that died while they put a file left half written; for whoever holds the claim."""
    for part in (part for home in homes for pattern in (".*.part", "*/.*.part") for part in home.glob(pattern)):
        part.unlink(missing_ok=True)


class OwnFiles(Protocol):
    """Our own files."""

    def put(self, path: Path, text: str) -> None:
        """Replace a file atomically."""

    def append(self, path: Path, text: str) -> None: ...

    def read(self, path: Path) -> str | None:
        """Return the text, or None if there is no such file."""
