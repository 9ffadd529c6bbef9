"""Processes around this one: the session that called it and the owner of a run."""

import os
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SHIM_START = "import shim; shim.start()"
"""The command line of every shim ends so. No descendant of a shim can change it."""
COMMAND_VARIABLE = "UNSTUCK_PROCESS"
"""Has another value for each command, so that processes that outlive a killed shim can be found."""
SHIM_VARIABLE = "UNSTUCK_SHIM"
RUN_VARIABLE, TASK_VARIABLE = "UNSTUCK_RUN", "UNSTUCK_TASK"
TOKEN = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallingSession:
    """The session or check that started this process."""

    run: str = ""
    task: str = ""

    def __str__(self) -> str:
        task = f"task {self.task} of " if self.task else ""
        return f"{task}run {self.run}" if self.run else "a command of ours"


def calling_session() -> CallingSession | None:
    """Return the session of the nearest shim above this process, or None if there is no shim.

    A sandbox has its own process numbers and hides the shim. There the first process carries the variables.
    """
    above = tuple(ancestors())
    shim = next((pid for pid in above if _is_shim(pid)), None)
    if shim is None:
        shim = next((pid for pid in above if COMMAND_VARIABLE in _environment(pid)), None)
    variables = _environment(shim) if shim is not None else os.environ
    if shim is None and not variables.get(RUN_VARIABLE):
        return None
    return CallingSession(run=variables.get(RUN_VARIABLE, ""), task=variables.get(TASK_VARIABLE, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestProof:
    """A proof for the supervisor that a living process outside of its sessions left a request."""

    token: str = ""
    was_checked: Callable[[], bool] | None = None
    """Returns whether the supervisor has checked the proof. None where that cannot be seen."""


@contextmanager
def hold_request_proof(folder: Path) -> Iterator[RequestProof]:
    """Keep a file with a unique name open while a request waits. The supervisor removes it when it checks."""
    folder.mkdir(parents=True, exist_ok=True)
    token = uuid.uuid4().hex
    path = folder / token
    try:
        with path.open("x"):
            yield RequestProof(token=token, was_checked=lambda: not path.exists())
    finally:
        path.unlink(missing_ok=True)


def proof_problem(folder: Path, pid: int, token: str) -> str:
    """Return why a request has no valid proof. Return an empty text if it has one, or without /proc.

    A session can forge a row of the journal. It cannot forge that another process holds a file open, or the
    ancestors of that process.
    """
    if not Path("/proc/self/stat").exists():
        return ""
    path = folder / (token if TOKEN.fullmatch(token) else "none")
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208  # names are wanted, not paths
        is_held = any(os.readlink(f"/proc/{pid}/fd/{number}") == str(path.resolve()) for number in numbers)  # noqa: PTH115  # as above
    except OSError:
        is_held = False
    path.unlink(missing_ok=True)
    if not is_held:
        return "nobody stands by it"
    own_ancestors = set(ancestors())
    if any(_is_shim(above) and above not in own_ancestors for above in ancestors(pid)):
        return "a session stands by it"
    return ""


def ancestors(pid: int | None = None) -> Iterator[int]:
    """Yield a process (by default this one) and all its ancestors."""
    pid = os.getpid() if pid is None else pid
    while pid > 0:
        yield pid
        pid = int(process_stat(pid)[1] or 0)


def process_stat(pid: int) -> tuple[str, str, str]:
    """Return the process's state, parent and start time, or empty texts if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return "", "", ""
    return fields[0], fields[1], fields[19]


def _is_shim(pid: int) -> bool:
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(argument.endswith(SHIM_START.encode()) for argument in arguments)


def _environment(pid: int) -> dict[str, str]:
    """Return the variables of a session in a process's environment. Those of another user cannot be read."""
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    pairs = (os.fsdecode(entry).partition("=") for entry in entries)
    return {name: value for name, _, value in pairs if name in (COMMAND_VARIABLE, RUN_VARIABLE, TASK_VARIABLE)}


STALE_SECONDS = 120.0
"""An owner on another machine without a heartbeat for so long loses its run. Its process cannot be checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The process that owns a run, as the journal has it."""

    run: str
    pid: int
    started: str
    """Start time of the process in the system's own count. A reused pid has another one."""
    host: str
    token: str
    since: float
    heartbeat: float

    def is_alive(self, now: float) -> bool:
        """Return whether this process still runs."""
        if self.host != machine_and_boot():
            return now - self.heartbeat < STALE_SECONDS
        return process_start(self.pid) == self.started


def machine_and_boot() -> str:
    """Return the name of this machine and boot. Process ids from before a reboot mean nothing."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{os.uname().nodename}/{boot}"


def user_name() -> str:
    """Return the name of the user who runs this process."""
    import getpass  # noqa: PLC0415  # most commands do not need it

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.geteuid())


def process_start(pid: int) -> str | None:
    """Return the start time of a process, or None if it is gone or a zombie."""
    state, _, started = process_stat(pid)
    if not state:
        return _start_without_proc(pid)
    return None if state in "ZX" else started


def _start_without_proc(pid: int) -> str | None:
    """Return "unknown" if the pid is in use, or None, where there is no /proc."""
    if Path("/proc/self").exists():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "unknown"
