"""Edge: Our own files: put atomically, append, read back. A full or read-only disk is told as such."""

import contextlib
import os
import threading
from pathlib import Path

from unstuck.errors import CannotWrite
from unstuck.tell import visible


class DiskDesk:
    """The `Desk` port on the disk."""

    def put(self, path: Path, text: str) -> None:
        put(path, text)

    def append(self, path: Path, text: str) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(visible(text))
        except OSError as error:
            raise _cannot_write(path, error) from error

    def read(self, path: Path) -> str | None:
        try:
            return path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None


def put(path: Path, text: str) -> None:
    """Replace a file atomically: a reader sees the old text or the new one, never half of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(visible(text), encoding="utf-8", errors="backslashreplace")
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise _cannot_write(path, error) from error


def sweep(*homes: Path) -> None:
    """Remove what supervisors that died while they put a file left half written; for whoever holds the claim."""
    for part in (part for home in homes for pattern in (".*.part", "*/.*.part") for part in home.glob(pattern)):
        part.unlink(missing_ok=True)


def _cannot_write(path: Path, error: OSError) -> CannotWrite:
    return CannotWrite(
        f"{path} cannot be written: {error.strerror}.",
        hint="Free some space or make the folder writable, then `unstuck resume`: everything recorded so far stands.",
    )
