"""End the processes of a command whose shim was stopped or killed.

A process belongs to a command in three cases: it is a descendant of the shim. Or the shim's death made it a child of
the supervisor, which adopts orphans as shims do. Or its environment holds the command's mark. A process that a foreign
daemon started on request is none of these: it is only reported.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from unstuck.process.caller import SHIM_VARIABLE, ancestors, process_stat
from unstuck.process.clock import now
from unstuck.process.shim import KILL_TIMEOUT_SECONDS, POLL_SECONDS, PR_SET_CHILD_SUBREAPER

SHIM_HEAD_START_SECONDS = 3.0
"""Time for a shim to end its family alone. It also finds descendants that cleared their environment."""
RUNNING_SHIMS: set[int] = set()
"""The shims that this process has started and not yet waited for."""


def end_leftovers(marker: str, but: str = "") -> int:
    """Kill each process of this user with `marker` and without `but` in its environment. Return their number.

    Return only when all of them are gone, or the kill timeout has passed.
    """
    began = time.monotonic()
    spared = set(ancestors())
    ended: set[tuple[int, str]] = set()
    while True:
        has_leftovers = False
        for pid, environment in _environments(os.fsencode(marker)):
            if pid in spared or (but and os.fsencode(but) in environment):
                continue
            has_leftovers = True
            is_shim = f"{SHIM_VARIABLE}=1".encode() in environment
            if is_shim and time.monotonic() < began + SHIM_HEAD_START_SECONDS:
                continue
            if is_shim:
                end_descendants(pid)
            else:
                ended.add((pid, process_stat(pid)[2]))
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not has_leftovers and not any(_still_runs(pid, start) for pid, start in ended):
            return len(ended)
        if time.monotonic() > began + KILL_TIMEOUT_SECONDS:
            return len(ended)  # stuck in the kernel: they end as soon as it returns
        time.sleep(POLL_SECONDS)


def end_descendants(top: int) -> None:
    """Kill every descendant of a process. All are stopped first, so that none can start another."""
    _end(lambda: _descendants({top}))


def end_orphans(spared: Collection[int]) -> None:
    """Kill the processes that became children of this one when a shim was killed, and their descendants."""
    _end(lambda: _orphans(spared))
    for pid, _ in _foreign_children(spared):
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def child_processes() -> frozenset[int]:
    """Return the processes that are directly below this one."""
    lists: list[bytes] = []
    with suppress(OSError):
        for thread in os.listdir("/proc/self/task"):  # noqa: PTH208  # runs with every command
            with suppress(FileNotFoundError), open(f"/proc/self/task/{thread}/children", "rb") as file:  # noqa: PTH123  # as above
                lists.append(file.read())
    if lists:
        return frozenset(int(pid) for pids in lists for pid in pids.split())
    own = str(os.getpid())
    return frozenset(pid for pid in _process_ids() if process_stat(pid)[1] == own)


@cache
def adopt_orphans() -> None:
    """Make the orphans of a killed shim children of this process instead of the system's first one."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def unrelated_processes(folder: Path, since: float) -> tuple[str, ...]:
    """Return a sentence about each process that works in a folder, began since then and is not a descendant.

    A daemon outside of the supervisor was asked to start it.
    """
    try:
        uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    except OSError:
        return ()
    longest = now() - since
    inside = [pid for pid in _process_ids() if _works_in(pid, str(folder))]
    family = {os.getpid(), *_descendants({os.getpid()})} if inside else set[int]()
    sentences = []
    for pid in inside:
        state, _, started = process_stat(pid)
        is_recent = state not in ("", "Z", "X") and uptime - int(started) / os.sysconf("SC_CLK_TCK") <= longest
        if is_recent and pid not in family:
            sentences.append(
                f"Process {pid} ({_command_line(pid)}) works in the slot and is not below this supervisor: a daemon was "
                f"asked to start it. It was left running; end it with: kill {pid}"
            )
    return tuple(sentences)


def _still_runs(pid: int, start: str) -> bool:
    state, _, started = process_stat(pid)
    return started == start and state not in "ZX"


def _end(living: Callable[[], set[int]]) -> None:
    """Stop and kill the processes that `living` returns, until it returns none."""
    deadline = time.monotonic() + KILL_TIMEOUT_SECONDS
    while (pids := living()) and time.monotonic() < deadline:
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        time.sleep(POLL_SECONDS)


def _orphans(spared: Collection[int]) -> set[int]:
    tops = {pid for pid, state in _foreign_children(spared) if state not in "ZX"}
    return tops | _descendants(tops)


def _foreign_children(spared: Collection[int]) -> Iterator[tuple[int, str]]:
    """Yield the children in another session than this process, with their state."""
    for pid in child_processes():
        with suppress(ProcessLookupError):
            if pid not in spared and pid not in RUNNING_SHIMS and os.getsid(pid) != os.getsid(0):
                yield pid, process_stat(pid)[0]


def _descendants(tops: Collection[int]) -> set[int]:
    """Return the living descendants of these processes."""
    below: dict[int, list[int]] = {}
    living = set()
    for pid in _process_ids():
        state, parent, _ = process_stat(pid)
        if state:
            below.setdefault(int(parent), []).append(pid)
        if state not in ("", "Z", "X"):
            living.add(pid)
    descendants: set[int] = set()
    waiting = [pid for top in tops for pid in below.get(top, ())]
    while waiting:
        pid = waiting.pop()
        if pid not in descendants:
            descendants.add(pid)
            waiting += below.get(pid, ())
    return descendants & living


def _process_ids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208  # thousands of bare names
    except OSError:
        return []


def _works_in(pid: int, folder: str) -> bool:
    try:
        return f"{os.readlink(f'/proc/{pid}/cwd')}/".startswith(f"{folder}/")  # noqa: PTH115  # text is faster than a path
    except OSError:
        return False


def _command_line(pid: int) -> str:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "?"
    return "".join(char if char.isprintable() else "?" for char in line.strip())[:80]


def _environments(entry: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Yield each process of this user with `entry` in its environment, and that environment."""
    if not Path("/proc/self/environ").exists():
        return
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes() if folder.stat().st_uid == os.geteuid() else b""
        except OSError:
            continue
        if entry in environment and entry in (entries := environment.split(b"\0")):
            yield int(folder.name), entries
