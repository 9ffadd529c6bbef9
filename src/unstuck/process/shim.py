"""Edge: Run one command and leave nothing of it behind, even if the supervisor is killed.

`process.py` starts it in a process of its own, with two file descriptors: from the first it reads the job, and a word or
the end of file there means "stop"; to the second it writes how the command ended. It imports nothing of ours.

The shim is a child subreaper: whatever its descendants do (fork twice, open a session of their own), their orphans
become its children. So "no child is left" means that no descendant is left. Where the kernel has no subreapers
(macOS), the command's process group is ended instead.
"""

import errno
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterator
else:  # the shim starts with every command: what `signal` adds to this takes as long to load as all the rest
    import _signal as signal

PR_SET_CHILD_SUBREAPER = 36
GIVE_UP = 10.0
"""Seconds after which processes that even SIGKILL does not end (another user's, or stuck in a driver) are left."""
TICK = 0.01
BEGUN = " "
"""Told before the command is started, and nothing to whoever reads the report: a shim that never said it did nothing."""
LASTING, FED = b"lasting", b"fed"
"""Words of a job: what the command leaves running stays until we are told; its stdin is ours, and not empty."""
SURVIVED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCHLD,
)


def main() -> None:
    control, report = int(sys.argv[1]), int(sys.argv[2])
    for number in (control, report):
        os.set_inheritable(number, False)  # noqa: FBT003 - it takes no keywords
    wake = _survive_signals()
    subreaper = _adopt_orphans()
    job = _read_job(control)
    if job is None:
        return
    _tell(report, BEGUN)
    try:
        command = _start(job)
    except _NotStartedError as error:
        _tell(report, f'{{"step": "{error.step}", "errno": {error.errno}}}')
        return
    family = _Family(command, wake=wake, control=control, subreaper=subreaper)
    family.wait()
    asked = family.status is None
    grace, *words = job[0].split()
    if LASTING in words and not asked:
        _tell(report, f'{{"asked": false, {_how(family.status)}, "left": false}}')
        os.close(report)
        family.guard()
        family.end(float(grace))
        return
    family.end(float(grace))
    _tell(report, f'{{"asked": {str(asked).lower()}, {_how(family.status)}, "left": {str(not family.gone).lower()}}}')


class _Family:
    """The command and all its descendants."""

    def __init__(self, command: int, *, wake: int, control: int, subreaper: bool) -> None:
        self.status: int | None = None
        """The command's wait status, once it has ended."""
        self.gone = False
        self._command = command
        self._wake = wake
        self._control = control
        self._subreaper = subreaper
        self._poll = select.poll()
        self._poll.register(wake, select.POLLIN)
        self._poll.register(control, select.POLLIN)

    def wait(self) -> None:
        """Return when the command has ended, or when we are told to stop."""
        told = False
        while self.status is None and not told:
            told = self._told_to_stop(None)
            self._reap()

    def guard(self) -> None:
        """Return when nothing is left that the command started, or when we are told to stop."""
        self._reap()
        while not self.gone and not self._told_to_stop(None):
            self._reap()

    def end(self, grace: float) -> None:
        """End every descendant: ask, wait a little, then freeze and kill until none is left."""
        self._reap()
        if self.gone and self._subreaper:
            return
        self._ask()
        deadline = time.monotonic() + grace
        while not self.gone and time.monotonic() < deadline and not self._told_to_stop(TICK):
            self._reap()
        deadline = time.monotonic() + GIVE_UP
        while not (self.gone and self._subreaper) and time.monotonic() < deadline:
            self._freeze(deadline)
            self._signal_groups(signal.SIGKILL)
            self._told_to_stop(TICK)
            self._reap()
            if not self._subreaper:
                return  # one group, killed at once: there is nothing to look for

    def _freeze(self, deadline: float) -> None:
        """Stop all of them first: a stopped process starts no new one, so even a fork bomb comes to an end."""
        frozen: set[int] = set()
        while not frozen >= (seen := self._signal_groups(signal.SIGSTOP)) and time.monotonic() < deadline:
            frozen |= seen

    def _told_to_stop(self, seconds: float | None) -> bool:
        """Wait for a child to end or for the supervisor's word; return whether the word came."""
        ready = [number for number, _ in self._poll.poll(None if seconds is None else seconds * 1000)]
        if self._wake in ready:
            os.read(self._wake, 4096)
        if self._control in ready:
            self._poll.unregister(self._control)
        return self._control in ready

    def _reap(self) -> None:
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._command:
                    self.status = ended[1]
        except ChildProcessError:
            self.gone = True

    def _ask(self) -> None:
        if not self._subreaper:
            _send(os.killpg, self._command, signal.SIGTERM)
        for pid, _ in list(self._members()):
            _send(os.kill, pid, signal.SIGTERM)
            _send(os.kill, pid, signal.SIGCONT)

    def _signal_groups(self, number: int) -> set[int]:
        """Signal whole groups, since a group cannot fork its way out of a signal; return the groups."""
        groups: set[int] = set()
        if not self._subreaper:
            _send(os.killpg, self._command, number)
        for _, group in self._members():
            if group not in groups:
                groups.add(group)
                _send(os.killpg, group, number)
        return groups

    def _members(self) -> "Iterator[tuple[int, int]]":
        """List the living descendants and their groups as they are found, so that a signal follows at once."""
        if not self._subreaper:
            return
        known = {os.getpid()}
        for name in os.listdir("/proc"):  # noqa: PTH208 - loading pathlib takes longer than all the rest
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/stat", "rb", buffering=0) as file:  # noqa: PTH123 - as above
                    state, parent, group = file.read(4096).rpartition(b")")[2].split()[:3]
            except (OSError, ValueError):
                continue  # it ended while we looked
            if int(parent) in known:
                known.add(int(name))
                if state not in b"ZX":
                    yield int(name), int(group)


class _NotStartedError(Exception):
    def __init__(self, step: str, number: int) -> None:
        super().__init__(step, number)
        self.step = step
        self.errno = number


def _survive_signals() -> int:
    """Let signals only wake us. A function, unlike "ignore", is not handed on to the command."""
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    for number in SURVIVED:
        signal.signal(number, lambda *_: None)
    return wake


def _adopt_orphans() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        from _ctypes import call_function, dlopen, dlsym  # noqa: PLC0415  # `ctypes` itself takes milliseconds to load
    except ImportError:
        return False
    program = dlopen(None, os.RTLD_NOW)  # type: ignore[arg-type]  # None is what is running, as dlopen(3) has it
    prctl = dlsym(program, "prctl")
    return bool(call_function(prctl, (PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0)


def _read_job(control: int) -> list[bytes] | None:
    """Read grace, directory, number of arguments, the arguments, the environment; None if the supervisor is gone."""
    with open(control, "rb", closefd=False, buffering=0) as pipe:
        size = int.from_bytes(_exactly(pipe.read, 8), "big")
        job = _exactly(pipe.read, size)
    return job.split(b"\0") if job else None


def _exactly(read: "Callable[[int], bytes | None]", size: int) -> bytes:
    pieces: list[bytes] = []
    while size and (piece := read(size)):
        pieces.append(piece)
        size -= len(piece)
    return b"" if size else b"".join(pieces)


def _start(job: list[bytes]) -> int:
    """Start the command in a session of its own and return its process id once it really runs."""
    trouble, told = os.pipe()
    try:
        child = os.fork()
    except OSError as error:
        raise _NotStartedError("fork", error.errno or 0) from error
    if child == 0:
        _become(job, told)
    os.close(told)
    problem = os.read(trouble, 64)
    os.close(trouble)
    if problem:
        os.waitpid(child, 0)
        step, _, number = problem.decode().partition(" ")
        raise _NotStartedError(step, int(number))
    return child


def _become(job: list[bytes], told: int) -> None:
    directory, count = job[1], int(job[2])
    argv, entries = job[3 : 3 + count], job[3 + count :]
    step = "cwd"
    try:
        os.setsid()
        os.chdir(directory)
        if FED not in job[0].split():
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        step = "exec"
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvpe(argv[0], argv, dict(entry.split(b"=", 1) for entry in entries))  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(told, f"{step} {error.errno}".encode())
    except BaseException:  # noqa: BLE001 - a forked child must never run on in its parent's code
        os.write(told, f"{step} {errno.EINVAL}".encode())
    finally:
        os._exit(127)


def _send(kill: "Callable[[int, int], None]", target: int, number: int) -> None:
    try:
        kill(target, number)
    except OSError:
        pass  # gone already, or not ours to end; the loop in `end` sees which


def _how(status: int | None) -> str:
    if status is None:
        return '"signal": 9'
    code = os.waitstatus_to_exitcode(status)
    return f'"exit": {code}' if code >= 0 else f'"signal": {-code}'


def _tell(report: int, line: str) -> None:
    try:
        os.write(report, line.encode() + b"\n")
    except OSError:
        pass  # the supervisor is gone; there is nobody to tell


def start() -> None:
    """Begin here. As a module it is compiled once; as a script it would be with every command."""
    main()
    os._exit(0)  # there is nothing to tidy up, and Python takes milliseconds for it
