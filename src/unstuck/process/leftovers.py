"""End what commands left behind when even their shim was killed: found by a mark in its environment."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

SHIM_MARK = "UNSTUCK_SHIM"
SHIM_HEAD_START = 3.0
"""Seconds for a shim to end its family itself: it also knows those that wiped their environment."""
GIVE_UP = 10.0
TICK = 0.01


def end_leftovers(marker: str) -> int:
    """Kill every process of this user whose environment holds `marker`, until all of them are really gone."""
    began = time.monotonic()
    spared = set(_ancestors())
    ended: set[tuple[int, str]] = set()
    while True:
        found = False
        for pid, environment in _environments(os.fsencode(marker)):
            if pid in spared:
                continue
            found = True
            shim = f"{SHIM_MARK}=1".encode() in environment
            if shim and time.monotonic() < began + SHIM_HEAD_START:
                continue
            if not shim:
                ended.add((pid, _stat(pid)[2]))
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found and not any(_alive(pid, start) for pid, start in ended):
            return len(ended)
        if time.monotonic() > began + GIVE_UP:
            return len(ended)  # stuck in the kernel: they end as soon as it lets them
        time.sleep(TICK)


def _ancestors() -> Iterator[int]:
    pid = os.getpid()
    while pid > 0:
        yield pid
        pid = int(_stat(pid)[1] or 0)


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


def _alive(pid: int, start: str) -> bool:
    state, _, began = _stat(pid)
    return began == start and state not in "ZX"


def _stat(pid: int) -> tuple[str, str, str]:
    """Return the process's state, parent and start time; empty texts if there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return "", "", ""
    return fields[0], fields[1], fields[19]
