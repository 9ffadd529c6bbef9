"""Replace files atomically.

Rules: an edit that the user makes meanwhile is never lost. Errors name a full or read-only disk as the reason.
"""

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

_MAX_ATTEMPTS = 50
_READ_WRITE = 0o666


def read_plan_bytes(path: Path) -> bytes:
    """Read a plan, but not much more than its largest allowed size."""
    try:
        with path.open("rb") as file:
            return file.read(min(os.fstat(file.fileno()).st_size, MAX_PLAN_BYTES) + 1)
    except OSError as error:
        raise BadUsage(
            f"Cannot read the plan {path}: {error.strerror or error}.", hint="Put it back or make it readable."
        ) from error


def change_file(path: Path, change: Callable[[bytes], bytes], *, create: bool = False) -> bool:
    """Apply `change` to the content of a file atomically. Return whether the content differs.

    A missing file is an error, but with `create` it counts as empty. If another program writes the file meanwhile,
    `change` is applied again to the new content. A symbolic link stays and its target is replaced. Mode and owner stay.
    """
    target = Path(os.path.realpath(path))
    try:
        for _ in range(_MAX_ATTEMPTS):
            before = _content(target) if create else target.read_bytes()
            after = change(before or b"")
            if after == before:
                return False
            if _replace_content(target, before, after):
                return True
    except OSError as error:
        raise _cannot_write(path, error) from error
    raise CannotWrite(f"Cannot write {path}: it keeps changing.", hint="See what else writes to it, then try again.")


def require_writable(path: Path) -> None:
    """Raise CannotWrite where `change_file` would, before an agent does any work. The file may be missing."""
    target = Path(os.path.realpath(path))
    try:
        _refuse_read_only(target.parent)
        with contextlib.suppress(FileNotFoundError):
            _refuse_read_only(target)
    except OSError as error:
        raise _cannot_write(path, error) from error


def _refuse_read_only(path: Path) -> os.stat_result:
    facts = path.stat()
    if not facts.st_mode & 0o222 or not os.access(path, os.W_OK):
        subject = "its folder is" if stat.S_ISDIR(facts.st_mode) else "it is"
        raise PermissionError(0, f"{subject} read-only")
    return facts


def _cannot_write(path: Path, error: OSError) -> CannotWrite:
    make_writable = "Make the file and its folder writable and see that the disk has room"
    advice = "Put it back" if isinstance(error, FileNotFoundError) else make_writable
    return CannotWrite(f"Cannot write {path}: {error.strerror or error}.", hint=f"{advice}, then try again.")


def _content(target: Path) -> bytes | None:
    try:
        return target.read_bytes()
    except FileNotFoundError:
        return None


def _replace_content(target: Path, before: bytes | None, after: bytes) -> bool:
    """Replace the content `before` (None: no file) by `after`. Return False if the file has another content by now."""
    facts = _refuse_read_only(target) if before is not None else None
    _remove_old_drafts(target.parent)
    handle, name = tempfile.mkstemp(prefix=f"{DRAFT_PREFIX}{os.getpid()}-", dir=target.parent)
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(after)
            if facts is not None:
                with contextlib.suppress(PermissionError):
                    os.fchown(handle, facts.st_uid, facts.st_gid)
            # A new file gets the permissions of its folder.
            os.fchmod(handle, stat.S_IMODE(facts.st_mode) if facts else target.parent.stat().st_mode & _READ_WRITE)
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
    """Remove the drafts of supervisors that were killed while writing."""
    from unstuck.process.caller import process_start  # noqa: PLC0415  # reading a plan does not need it

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
    """The program's own files on the disk."""

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
    """Replace the text of a file atomically: a reader sees the old text or the new one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(visible(text), encoding="utf-8", errors="backslashreplace")
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise unwritable(path, error) from error


def remove_unfinished_writes(*folders: Path) -> None:
    """Remove the drafts of supervisors that died while writing. The caller must own the run."""
    for folder in folders:
        for draft in (*folder.glob(".*.part"), *folder.glob("*/.*.part")):
            draft.unlink(missing_ok=True)


class OwnFiles(Protocol):
    """The program's own files."""

    def put(self, path: Path, text: str) -> None:
        """Replace a file atomically."""

    def append(self, path: Path, text: str) -> None: ...

    def read(self, path: Path) -> str | None:
        """Return the text, or None if the file is missing."""
