"""Edge: Which process is whose: a person's command or one that a session started, by the processes above it; who owns a run; what time passes for it."""

import os
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SHIM_START = "import shim; shim.start()"
"""How the command line of every shim ends; nobody below a shim can change it."""
COMMAND_VARIABLE = "UNSTUCK_PROCESS"
"""Set to a value of its own for each command, so that what outlives a killed shim can still be found."""
SHIM_VARIABLE = "UNSTUCK_SHIM"
RUN_VARIABLE, TASK_VARIABLE = "UNSTUCK_RUN", "UNSTUCK_TASK"
TOKEN = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallingSession:
    """The session, or the check, that a process belongs to."""

    run: str = ""
    task: str = ""

    def __str__(self) -> str:
        task = f"task {self.task} of " if self.task else ""
        return f"{task}run {self.run}" if self.run else "a command of ours"


def calling_session() -> CallingSession | None:
    """Return what this process was started by; None if none of our shims is above it. The nearest one counts.

    A sandbox has process numbers of its own and hides the shim; there the first process carries our mark.
    """
    above = tuple(ancestors())
    shim = next((pid for pid in above if _is_shim(pid)), None)
    if shim is None:
        shim = next((pid for pid in above if COMMAND_VARIABLE in _environment(pid)), None)
    marks = _environment(shim) if shim is not None else os.environ
    return (
        CallingSession(run=marks.get(RUN_VARIABLE, ""), task=marks.get(TASK_VARIABLE, ""))
        if shim is not None or marks.get(RUN_VARIABLE)
        else None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestProof:
    """That somebody stands by a word: what the one who is asked knows it by, and whether that one has looked."""

    token: str = ""
    looked: Callable[[], bool] | None = None
    """None where nobody can tell."""


@contextmanager
def hold_request_proof(folder: Path) -> Iterator[RequestProof]:
    """Stand by a word: hold a file open that is named like nothing else; whoever is asked takes it away when it has looked."""
    folder.mkdir(parents=True, exist_ok=True)
    token = uuid.uuid4().hex
    path = folder / token
    try:
        with path.open("x"):
            yield RequestProof(token=token, looked=lambda: not path.exists())
    finally:
        path.unlink(missing_ok=True)


def proof_problem(folder: Path, pid: int, token: str) -> str:
    """Say why nobody outside of our sessions stands by a word; empty if somebody does, or where that cannot be seen.

    A row can be forged; that another process holds a file open, and what it was started by, cannot.
    """
    if not Path("/proc/self/stat").exists():
        return ""
    path = folder / (token if TOKEN.fullmatch(token) else "none")
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208  # names are wanted, not paths
        holds = any(os.readlink(f"/proc/{pid}/fd/{number}") == str(path.resolve()) for number in numbers)  # noqa: PTH115  # as above
    except OSError:
        holds = False
    path.unlink(missing_ok=True)
    if not holds:
        return "nobody stands by it"
    ours = set(ancestors())
    return "a session stands by it" if any(_is_shim(above) and above not in ours for above in ancestors(pid)) else ""


def ancestors(pid: int | None = None) -> Iterator[int]:
    """Yield a process, this one unless told otherwise, and all above it."""
    pid = os.getpid() if pid is None else pid
    while pid > 0:
        yield pid
        pid = int(process_stat(pid)[1] or 0)


def process_stat(pid: int) -> tuple[str, str, str]:
    """Return the process's state, parent and start time; empty texts if there is none."""
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
    """Return our marks in what a process was started with; nothing if it is another user's."""
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    pairs = (os.fsdecode(entry).partition("=") for entry in entries)
    return {name: value for name, _, value in pairs if name in (COMMAND_VARIABLE, RUN_VARIABLE, TASK_VARIABLE)}


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
        if self.host != machine_and_boot():
            return now - self.heartbeat < STALE_SECONDS
        return process_start(self.pid) == self.started


def machine_and_boot() -> str:
    """Name this machine and its boot, so that pids from before a reboot mean nothing."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{os.uname().nodename}/{boot}"


def user_name() -> str:
    """Name the user of this process."""
    import getpass  # noqa: PLC0415  # most commands never ask

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.geteuid())


def process_start(pid: int) -> str | None:
    """Say when a process started; None if there is none, or only its zombie."""
    state, _, started = process_stat(pid)
    if not state:
        return _birth_without_proc(pid)
    return None if state in "ZX" else started


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
