"""Edge: what a hook remembers of one session: a small file of its own, locked while it is changed, bounded for ever."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from unstuck.hook.session_loops import Memory

LARGEST = 1 << 18
DAYS_KEPT = 7
LONGEST_NAME = 120
LOG_BYTES = 1 << 18


@contextmanager
def remembered(agent: str, session: str) -> Iterator[Memory]:
    """Open a session's memory, and keep what was changed in it; other sessions have files of their own."""
    folder = state_folder()
    path = f"{folder}/{agent}-{_file_name(session)}.json"
    if not os.path.exists(path):  # noqa: PTH110  # pathlib costs a tenth of the whole
        _forget_old(folder)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        memory = Memory(_content(file.read(LARGEST)))
        yield memory
        file.seek(0)
        file.truncate()
        file.write(json.dumps(memory.as_json()))


def _file_name(session: str) -> str:
    """Return a name for the file of a session: its id, where that is one; it comes from outside and may be anything."""
    plain = session.replace("/", ".").rstrip(".")
    if plain.replace("-", "").replace(".", "").isalnum() and plain.isascii() and len(plain) <= LONGEST_NAME:
        return plain
    import hashlib  # noqa: PLC0415  # every known agent's ids are plain

    return f"{hashlib.blake2b(session.encode(errors='replace'), digest_size=16).hexdigest()}-"


def state_folder() -> str:
    """Return our folder for state, made where it is not there, for this user alone."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111  # as above
    folder = f"{state}/unstuck/hook"
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103  # as above
    return folder


def log(line: str) -> None:
    """Keep a line about a fault of ours; the log is begun anew before it grows large."""
    path = f"{state_folder()}/hook.log"
    small = not os.path.exists(path) or os.path.getsize(path) < LOG_BYTES  # noqa: PTH110, PTH202  # as above
    flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if small else os.O_TRUNC)
    with os.fdopen(os.open(path, flags, 0o600), "a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {line[:2000]}\n")


def _content(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if text else {}
        Memory(found)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}  # half-written by a process that was killed: the session is remembered from here on
    return found if isinstance(found, dict) else {}


def _forget_old(folder: str) -> None:
    now = time.time()
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                if entry.name.endswith(".json") and now - entry.stat().st_mtime > DAYS_KEPT * 86400:
                    os.unlink(entry.path)  # noqa: PTH108  # as above
            except OSError:
                continue
