"""Run one command and end all its descendants, even if the supervisor is killed.

`shim_process.py` starts the shim as a child process with two file descriptors. From the first, the control pipe, the
shim reads the job. Any later byte or the end of file there means "stop". To the second it writes how the command ended.
The shim imports no other module of the package.

The shim is a child subreaper: the orphans of its descendants become its children, even those that fork twice or open
their own session. So "no child is left" means that no descendant is left. Where the kernel has no subreapers (macOS),
the shim ends the command's process group instead.
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
else:  # the shim starts with every command, and `signal` takes as long to load as everything else together
    import _signal as signal

PR_SET_CHILD_SUBREAPER = 36
KILL_TIMEOUT_SECONDS = 10.0
"""Processes of another user, or stuck in a driver, survive SIGKILL. After this time they are left running."""
POLL_SECONDS = 0.01
STARTED_MARK = " "
"""Written before the command starts. JSON ignores it. A shim that did not write it did nothing."""
LASTING = b"lasting"
"""Option of a job: processes that the command leaves running stay until the supervisor ends the shim."""
FED = b"fed"
"""Option of a job: the command reads the shim's stdin."""
HANDLED_SIGNALS = (
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
    wake = _handle_signals()
    subreaper = _adopt_orphans()
    job = _read_job(control)
    if job is None:
        return
    _write_report(report, STARTED_MARK)
    try:
        command = _start(job)
    except _NotStartedError as error:
        _write_report(report, f'{{"step": "{error.step}", "errno": {error.errno}}}')
        return
    family = _Family(command, wake=wake, control=control, subreaper=subreaper)
    family.wait()
    is_stopped = family.status is None
    grace, *options = job[0].split()
    if LASTING in options and not is_stopped:
        _write_report(report, f'{{"asked": false, {_status_field(family.status)}, "left": false}}')
        os.close(report)
        family.guard()
        family.end(float(grace))
        return
    family.end(float(grace))
    has_survivors = str(not family.gone).lower()
    _write_report(
        report, f'{{"asked": {str(is_stopped).lower()}, {_status_field(family.status)}, "left": {has_survivors}}}'
    )


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
        """Return when the command has ended, or when the supervisor stops the shim."""
        is_stopped = False
        while self.status is None and not is_stopped:
            is_stopped = self._wait_for_stop(None)
            self._reap()

    def guard(self) -> None:
        """Return when no descendant is left, or when the supervisor stops the shim."""
        self._reap()
        while not self.gone and not self._wait_for_stop(None):
            self._reap()

    def end(self, grace: float) -> None:
        """End every descendant: send SIGTERM, wait for `grace` seconds, then stop and kill until none is left."""
        self._reap()
        if self.gone and self._subreaper:
            return
        self._terminate()
        deadline = time.monotonic() + grace
        while not self.gone and time.monotonic() < deadline and not self._wait_for_stop(POLL_SECONDS):
            self._reap()
        deadline = time.monotonic() + KILL_TIMEOUT_SECONDS
        while not (self.gone and self._subreaper) and time.monotonic() < deadline:
            self._freeze(deadline)
            self._signal_groups(signal.SIGKILL)
            self._wait_for_stop(POLL_SECONDS)
            self._reap()
            if not self._subreaper:
                return  # one signal killed the whole group

    def _freeze(self, deadline: float) -> None:
        """Stop all descendants with SIGSTOP. A stopped process cannot fork, so even a fork bomb ends."""
        frozen: set[int] = set()
        groups = self._signal_groups(signal.SIGSTOP)
        while not frozen >= groups and time.monotonic() < deadline:
            frozen |= groups
            groups = self._signal_groups(signal.SIGSTOP)

    def _wait_for_stop(self, seconds: float | None) -> bool:
        """Wait until a child ends or the supervisor writes. Return whether the supervisor stops the shim."""
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

    def _terminate(self) -> None:
        if not self._subreaper:
            _send(os.killpg, self._command, signal.SIGTERM)
        for pid, _ in list(self._members()):
            _send(os.kill, pid, signal.SIGTERM)
            _send(os.kill, pid, signal.SIGCONT)

    def _signal_groups(self, number: int) -> set[int]:
        """Signal the process groups of all descendants and return them. No fork escapes a signal to its group."""
        groups: set[int] = set()
        if not self._subreaper:
            _send(os.killpg, self._command, number)
        for _, group in self._members():
            if group not in groups:
                groups.add(group)
                _send(os.killpg, group, number)
        return groups

    def _members(self) -> "Iterator[tuple[int, int]]":
        """Yield each living descendant and its group when it is read: the caller signals it at once."""
        if not self._subreaper:
            return
        family = {os.getpid()}
        for name in os.listdir("/proc"):  # noqa: PTH208 - loading pathlib takes longer than all the rest
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/stat", "rb", buffering=0) as file:  # noqa: PTH123 - as above
                    state, parent, group = file.read(4096).rpartition(b")")[2].split()[:3]
            except (OSError, ValueError):
                continue  # it ended meanwhile
            if int(parent) in family:
                family.add(int(name))
                if state not in b"ZX":
                    yield int(name), int(group)


class _NotStartedError(Exception):
    def __init__(self, step: str, number: int) -> None:
        super().__init__(step, number)
        self.step = step
        self.errno = number


def _handle_signals() -> int:
    """Make signals only wake the shim, and return the pipe that they write to.

    The command does not inherit a handler, but it would inherit "ignore".
    """
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    for number in HANDLED_SIGNALS:
        signal.signal(number, lambda *_: None)
    return wake


def _adopt_orphans() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        from _ctypes import call_function, dlopen, dlsym  # noqa: PLC0415  # `ctypes` itself takes milliseconds to load
    except ImportError:
        return False
    program = dlopen(None, os.RTLD_NOW)  # type: ignore[arg-type]  # None means this process, see dlopen(3)
    prctl = dlsym(program, "prctl")
    return bool(call_function(prctl, (PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0)


def _read_job(control: int) -> list[bytes] | None:
    """Return the fields of the job, or None if the supervisor is gone.

    The fields are: grace and options, directory, number of arguments, the arguments, the environment.
    """
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
    """Start the command in its own session and return its process id once it runs."""
    problems, problem_writer = os.pipe()
    try:
        child = os.fork()
    except OSError as error:
        raise _NotStartedError("fork", error.errno or 0) from error
    if child == 0:
        _become(job, problem_writer)
    os.close(problem_writer)
    problem = os.read(problems, 64)
    os.close(problems)
    if problem:
        os.waitpid(child, 0)
        step, _, number = problem.decode().partition(" ")
        raise _NotStartedError(step, int(number))
    return child


def _become(job: list[bytes], problem_writer: int) -> None:
    """Replace this forked child by the command. Write to the pipe why that failed."""
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
        os.write(problem_writer, f"{step} {error.errno}".encode())
    except BaseException:  # noqa: BLE001 - a forked child must never run on in its parent's code
        os.write(problem_writer, f"{step} {errno.EINVAL}".encode())
    finally:
        os._exit(127)


def _send(kill: "Callable[[int, int], None]", target: int, number: int) -> None:
    try:
        kill(target, number)
    except OSError:
        pass  # it is gone already, or belongs to another user


def _status_field(status: int | None) -> str:
    if status is None:
        return '"signal": 9'
    code = os.waitstatus_to_exitcode(status)
    return f'"exit": {code}' if code >= 0 else f'"signal": {-code}'


def _write_report(report: int, line: str) -> None:
    try:
        os.write(report, line.encode() + b"\n")
    except OSError:
        pass  # the supervisor is gone


def start() -> None:
    """Run the shim and exit. Python compiles a module once, but a script each time."""
    main()
    os._exit(0)  # Python's own exit takes milliseconds
