"""Edge: Who owns a run: a process, told apart from a later one that was given the same pid."""

import getpass
import os
import socket
from dataclasses import dataclass
from pathlib import Path

STALE_SECONDS = 120.0
"""How long an owner on another machine, which we cannot look at, may be silent before its run is taken over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A claim on the repository, as it stands in the journal."""

    run: str
    pid: int
    started: str
    """When the process started, as the system counts it: a reused pid has another value."""
    host: str
    token: str
    since: float
    heartbeat: float

    def alive(self, now: float) -> bool:
        """Whether this owner still works."""
        if self.host != host():
            return now - self.heartbeat < STALE_SECONDS
        return birth(self.pid) == self.started


def host() -> str:
    """Name this machine and its boot, so that pids from before a reboot mean nothing."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()}/{boot}"


def whoami() -> str:
    """Name the user of this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.geteuid())


def birth(pid: int) -> str | None:
    """Say when a process started; None if there is none, or only its zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except FileNotFoundError:
        return _birth_without_proc(pid)
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def _birth_without_proc(pid: int) -> str | None:
    """Say at least whether the pid is in use, where there is no /proc."""
    if Path("/proc/self").exists():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "unknown"
