"""Edge: End what is left of a command whose shim cannot do it any more: every process that carries its mark."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from unstuck.process.ancestry import SHIM_MARK, ancestors, stat

SHIM_HEAD_START = 3.0
"""Seconds for a shim to end its family itself: it also knows those that wiped their environment."""
GIVE_UP = 10.0
TICK = 0.01


def end_leftovers(marker: str) -> int:
    """Kill every process of this user whose environment holds `marker`, until all of them are really gone."""
    began = time.monotonic()
    spared = set(ancestors())
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
                ended.add((pid, stat(pid)[2]))
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found and not any(_alive(pid, start) for pid, start in ended):
            return len(ended)
        if time.monotonic() > began + GIVE_UP:
            return len(ended)  # stuck in the kernel: they end as soon as it lets them
        time.sleep(TICK)


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
    state, _, began = stat(pid)
    return began == start and state not in "ZX"
