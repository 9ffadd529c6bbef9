"""Edge: End from outside what a shim cannot end any more, because it was stopped or killed.

Three things tell what belongs to it: it is below the shim; the shim's death made it ours, because a supervisor adopts
orphans as shims do; or it carries the command's mark. What a foreign daemon was asked to do is none of these: it is told.
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

from unstuck.process.caller import SHIM_VARIABLE, ancestors, now, process_stat

SHIM_HEAD_START = 3.0
"""Seconds for a shim to end its family itself: it also knows those that wiped their environment."""
GIVE_UP = 10.0
TICK = 0.01
PR_SET_CHILD_SUBREAPER = 36
RUNNING_SHIMS: set[int] = set()
"""The shims that this process has started and not yet seen the end of."""


def end_leftovers(marker: str, but: str = "") -> int:
    """Kill every process of this user whose environment holds `marker` and not `but`, until all of them are really gone."""
    began = time.monotonic()
    spared = set(ancestors())
    ended: set[tuple[int, str]] = set()
    while True:
        found = False
        for pid, environment in _environments(os.fsencode(marker)):
            if pid in spared or (but and os.fsencode(but) in environment):
                continue
            found = True
            shim = f"{SHIM_VARIABLE}=1".encode() in environment
            if shim and time.monotonic() < began + SHIM_HEAD_START:
                continue
            if shim:
                end_descendants(pid)
            else:
                ended.add((pid, process_stat(pid)[2]))
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found and not any(
            process_stat(pid)[2] == start and process_stat(pid)[0] not in "ZX" for pid, start in ended
        ):
            return len(ended)
        if time.monotonic() > began + GIVE_UP:
            return len(ended)  # stuck in the kernel: they end as soon as it lets them
        time.sleep(TICK)


def end_descendants(top: int) -> None:
    """Kill every descendant of a process; all are stopped first, so that none can start another."""
    _end(lambda: _descendants({top}))


def end_orphans(spared: Collection[int]) -> None:
    """Kill what came to us when a shim was killed: children in a session that is not ours, and all below them."""
    _end(lambda: _orphans(spared))
    for pid, _ in _children(spared):
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def child_processes() -> frozenset[int]:
    """Return the processes that are directly below this one."""
    listed: list[bytes] = []
    with suppress(OSError):
        for thread in os.listdir("/proc/self/task"):  # noqa: PTH208  # asked for with every command
            with suppress(FileNotFoundError), open(f"/proc/self/task/{thread}/children", "rb") as file:  # noqa: PTH123  # as above
                listed.append(file.read())
    if listed:
        return frozenset(int(pid) for one in listed for pid in one.split())
    own = str(os.getpid())
    return frozenset(pid for pid in _numbers() if process_stat(pid)[1] == own)


@cache
def adopt_orphans() -> None:
    """Let what a killed shim leaves become our children, and not those of the system's first process."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def unrelated_processes(folder: Path, since: float) -> tuple[str, ...]:
    """Say which processes work in a folder, began since then, and are not below us: a daemon was asked to start them."""
    try:
        uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    except OSError:
        return ()
    longest = now() - since
    inside = [pid for pid in _numbers() if _works_in(pid, str(folder))]
    ours = {os.getpid(), *_descendants({os.getpid()})} if inside else set[int]()
    told = []
    for pid in inside:
        state, _, started = process_stat(pid)
        recent = state not in ("", "Z", "X") and uptime - int(started) / os.sysconf("SC_CLK_TCK") <= longest
        if recent and pid not in ours:
            told.append(
                f"Process {pid} ({_name(pid)}) works in the slot and is not below this supervisor: a daemon was asked to "
                f"start it. It was left running; end it with: kill {pid}"
            )
    return tuple(told)


def _end(living: Callable[[], set[int]]) -> None:
    deadline = time.monotonic() + GIVE_UP
    while (found := living()) and time.monotonic() < deadline:
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        time.sleep(TICK)


def _orphans(spared: Collection[int]) -> set[int]:
    tops = {pid for pid, state in _children(spared) if state not in "ZX"}
    return tops | _descendants(tops)


def _children(spared: Collection[int]) -> Iterator[tuple[int, str]]:
    for pid in child_processes():
        with suppress(ProcessLookupError):
            if pid not in spared and pid not in RUNNING_SHIMS and os.getsid(pid) != os.getsid(0):
                yield pid, process_stat(pid)[0]


def _descendants(tops: Collection[int]) -> set[int]:
    """Return the living processes below these."""
    below: dict[int, list[int]] = {}
    living = set()
    for pid in _numbers():
        state, parent, _ = process_stat(pid)
        if state:
            below.setdefault(int(parent), []).append(pid)
        if state not in ("", "Z", "X"):
            living.add(pid)
    found: set[int] = set()
    waiting = [pid for top in tops for pid in below.get(top, ())]
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += below.get(pid, ())
    return found & living


def _numbers() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208  # thousands of bare names
    except OSError:
        return []


def _works_in(pid: int, folder: str) -> bool:
    try:
        return f"{os.readlink(f'/proc/{pid}/cwd')}/".startswith(f"{folder}/")  # noqa: PTH115  # as text: one for every process
    except OSError:
        return False


def _name(pid: int) -> str:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "?"
    return "".join(char if char.isprintable() else "?" for char in line.strip())[:80]


def _environments(entry: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """List the processes of this user that have `entry` in their environment, as they are found."""
    if not Path("/proc/self/environ").exists():
        return
    for place in Path("/proc").glob("[0-9]*"):
        try:
            environment = (place / "environ").read_bytes() if place.stat().st_uid == os.geteuid() else b""
        except OSError:
            continue
        if entry in environment and entry in (entries := environment.split(b"\0")):
            yield int(place.name), entries
