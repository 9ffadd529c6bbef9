"""Edge: Remove the lock files that a killed git left behind, and only those: the proof comes first."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from unstuck.errors import GitFailed
from unstuck.git.command import QUIET_CONFIG

PROC = Path("/proc")
PATIENCE = 30.0
"""Seconds that a git command left over from a crash may take to end by itself."""

STALE_AFTER = 2.0
"""Git holds a ref's lock for milliseconds; one that nobody has open and that is older than this has no owner."""

STALE_AFTER_UNSEEN = 60.0
"""The same where no process can be looked at."""


def await_quiet(folder: Path, patience: float = PATIENCE, *, ours: bool = False) -> None:
    """Return when no git command works inside the folder any more; nobody may start one there but the caller.

    With `ours`, only commands that a supervisor started count, and other people may work there.
    """
    deadline = time.monotonic() + patience
    while pids := [pid for pid in git_processes(folder) if not ours or _has_our_settings(pid)]:
        if time.monotonic() > deadline:
            raise GitFailed(
                f"git still runs in {folder} (process {', '.join(map(str, pids))}).",
                hint=f"Wait for it or end it with `kill {pids[0]}`, then go on with `unstuck resume`.",
            )
        time.sleep(0.01)


def release_abandoned(lock: Path) -> bool:
    """Remove a ref's lock if it is old and nobody has it open; return whether the way is free now."""
    _await_age(lock, STALE_AFTER if PROC.is_dir() else STALE_AFTER_UNSEEN)
    if lock.exists() and not is_open(lock):
        lock.unlink(missing_ok=True)
    return not lock.exists()


def git_processes(folder: Path) -> tuple[int, ...]:
    """List the running git commands whose working folder is this one or inside it."""
    top = os.fsencode(folder.resolve())
    return tuple(pid for pid in _processes() if _runs_git(pid) and _works_inside(pid, top))


def works_inside(folder: Path) -> tuple[int, ...]:
    """List the running processes of any kind whose working folder is this one or inside it."""
    top = os.fsencode(folder.resolve())
    return tuple(pid for pid in _processes() if _works_inside(pid, top))


def _processes() -> Iterator[int]:
    with contextlib.suppress(OSError):
        for name in os.listdir(PROC):  # noqa: PTH208  a scan of every process: bare names are three times faster
            if name.isdigit():
                yield int(name)


def _runs_git(pid: int) -> bool:
    try:
        return (PROC / str(pid) / "comm").read_bytes().startswith(b"git")
    except OSError:
        return False


def _has_our_settings(pid: int) -> bool:
    try:
        arguments = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return all(setting.encode() in arguments for setting in QUIET_CONFIG)


def _works_inside(pid: int, top: bytes) -> bool:
    try:
        cwd = os.readlink(b"/proc/%d/cwd" % pid)  # noqa: PTH115  as above, and a name may be any bytes
    except OSError:
        return False
    return cwd == top or cwd.startswith(top + b"/")


def is_open(path: Path) -> bool:
    wanted = str(path.resolve())
    for pid in _processes():
        with contextlib.suppress(OSError):
            if any(os.path.realpath(entry) == wanted for entry in (PROC / str(pid) / "fd").iterdir()):
                return True
    return False


def _await_age(lock: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds  # one that was made before the clock was set back is never old
    with contextlib.suppress(FileNotFoundError):
        while time.time() - lock.stat().st_mtime < seconds and time.monotonic() < deadline:
            time.sleep(0.05)
