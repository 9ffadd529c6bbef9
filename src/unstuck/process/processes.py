"""Edge: Run commands so that nothing of them is left when they end, whichever way that is: under a shim, with what talks to them, and with what ends them when even the shim was killed."""

import errno
import fcntl
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unstuck.git.git_command import GIT_VARIABLES
from unstuck.model.config import TimeLimits
from unstuck.model.outcome import Ended, Ending
from unstuck.process.caller import (
    COMMAND_VARIABLE,
    RUN_VARIABLE,
    SHIM_START,
    SHIM_VARIABLE,
    TASK_VARIABLE,
    process_stat,
)
from unstuck.process.command import Command, Dialogue, Stop
from unstuck.process.leftovers import (
    RUNNING_SHIMS,
    adopt_orphans,
    child_processes,
    end_descendants,
    end_leftovers,
    end_orphans,
    unrelated_processes,
)
from unstuck.process.output_log import OutputLog
from unstuck.redaction.redactor import Redactor, redactor

SHIM = f"import sys; sys.path.append({str(Path(__file__).parent)!r}); {SHIM_START}"
"""Starts our shim in a Python that knows nothing else of ours."""

POLL = 0.2
"""Seconds between two looks at the stop deadline."""
SEEN_PAUSE = 0.25
CHUNK = 256 * 1024
DRAIN = 1.0
"""Seconds to read on after the end, should something that escaped us still hold the pipes."""
SHIM_PATIENCE = 15.0
"""Seconds that the shim may take to end everything before we end it."""
MOST_STOPS = 5
"""How often a shim that somebody stopped is woken; then its session is ended from outside."""
TICK = 0.01
STDIN = "stdin"
PAUSE = 0.25
"""Seconds between two looks for something to say to a process that listens."""

MOST_WAITING = 16
"""Shims that may wait for a command; one that does not come leaves one."""

NOT_FOUND, NOT_EXECUTABLE = 127, 126


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalProcesses:
    """Processes on this machine. Any number of threads may run commands at the same time."""

    grace: float = 1.0
    """Seconds between asking a process to end and killing it."""
    _lasting: "list[_Session]" = field(default_factory=list)
    _waiting: "dict[tuple[str, str], _Ahead]" = field(default_factory=dict)
    """Shims that start while git works, by run and task: for a session whose slot is made, or its check while its work is written down."""

    def run(self, command: Command, *, stop: Stop, seen: Callable[[str], None] | None = None) -> Ended:
        """Run to the end. Our limits, a stop and an exception on our side all end the command's whole family."""
        began = time.monotonic()
        redact = redactor({**os.environ, **command.env})
        ahead = self._waiting.pop(_place(command.env), None)
        waiting = ahead.shim() if ahead is not None else None
        try:
            session = _Session(command, self.grace, waiting or _Shim(command.env))
        except (OSError, ValueError) as error:
            return _not_started(command, redact, error)
        with OutputLog(command.log, redact, transcript=command.transcript) as spool:
            watch = _Watch(limits=command.limits, stop=stop, began=began)
            stays = False
            try:
                limit = session.follow(spool, watch, seen)
                stays = command.lasting and limit is None
            finally:
                report = (session.stay(spool) if stays else None) or session.end(spool)
        if stays and session.stays:
            self._lasting.append(session)
        if waiting is not None and not session.begun:
            return self.run(command, stop=stop, seen=seen)  # somebody killed the shim before it had its job
        if "errno" in report:
            where = str(command.cwd) if report["step"] == "cwd" else None
            return _not_started(command, redact, OSError(report["errno"], os.strerror(report["errno"]), where))
        by_us = limit if report["asked"] else None
        lost = f"[unstuck: the log {command.log} is not complete: {spool.error.strerror}]\n" if spool.error else ""
        return Ended(
            ending=by_us or ("exited" if "exit" in report else "signalled"),
            exit_code=None if by_us else report.get("exit"),
            signal=None if by_us else report.get("signal"),
            seconds=time.monotonic() - began,
            tail=spool.tail + lost,
            output_bytes=spool.size,
        )

    def end_lasting(self) -> None:
        """End what lasting commands left running, and shims that nobody needed."""
        while self._lasting:
            self._lasting.pop().release()
        self._dismiss(0)

    def expect(self, env: Mapping[str, str]) -> None:
        """Start the shim of a task's next command. Never while one of the task runs: what waits for a job could be given another."""
        if _place(env) not in self._waiting:
            self._dismiss(MOST_WAITING - 1)
            self._waiting[_place(env)] = _Ahead(env)

    def _dismiss(self, left: int) -> None:
        places = list(self._waiting)  # other threads take theirs meanwhile
        for place in places[: max(0, len(places) - left)]:
            ahead = self._waiting.pop(place, None)
            if ahead is not None and (shim := ahead.shim()) is not None:
                shim.dismiss()

    end_leftovers = staticmethod(end_leftovers)
    unrelated_processes = staticmethod(unrelated_processes)


class _Shim:
    """A shim that waits for its job, and the pipes to it."""

    def __init__(self, env: Mapping[str, str]) -> None:
        adopt_orphans()
        marks = {name: value for name, value in env.items() if name.startswith("UNSTUCK_")}
        with ExitStack() as theirs, ExitStack() as ours:
            control, self.control = _pipe(theirs, ours)
            self.report, report = _pipe(ours, theirs)
            self.open = ours.enter_context(selectors.DefaultSelector())
            stdin, mouth = os.pipe()
            theirs.callback(os.close, stdin)
            self.talk = _Talk(mouth, self.open)
            ours.callback(self.talk.close)
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", SHIM, str(control), str(report)],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd="/",
                env={**os.environ, **marks, SHIM_VARIABLE: "1"},
                pass_fds=(control, report),
                start_new_session=True,
            )
            RUNNING_SHIMS.add(self.process.pid)
            self._register(ours)
            self.ours = ours.pop_all()

    def dismiss(self) -> None:
        """End a shim that got no job: it has nothing to tidy up."""
        self.ours.close()
        self.process.kill()
        self.process.wait()
        RUNNING_SHIMS.discard(self.process.pid)

    def _register(self, stack: ExitStack) -> None:
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        for name, stream in (("stdout", self.process.stdout), ("stderr", self.process.stderr)):
            stack.callback(stream.close)
            os.set_blocking(stream.fileno(), False)
            if hasattr(fcntl, "F_SETPIPE_SZ"):
                with suppress(OSError):  # a bigger pipe is only faster
                    fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, CHUNK)
            self.open.register(stream.fileno(), selectors.EVENT_READ, name)
        self.open.register(self.report, selectors.EVENT_READ, "report")


class _Ahead(threading.Thread):
    """Starts a shim while whoever will need it does something else."""

    def __init__(self, env: Mapping[str, str]) -> None:
        super().__init__(daemon=True)
        self._env = env
        self._shim: _Shim | None = None
        self.start()

    def run(self) -> None:
        with suppress(OSError):  # whoever needs it tries again, and tells why
            self._shim = _Shim(self._env)

    def shim(self) -> _Shim | None:
        self.join()
        return self._shim


class _Session:
    """One life of a command under its shim."""

    def __init__(self, command: Command, grace: float, shim: _Shim) -> None:
        self.stays = False
        self._stops, self._next_look = 0, 0.0
        self._before = child_processes()
        self._shim, self._ours, self._open, self._talk = shim.process, shim.ours, shim.open, shim.talk
        self._talk.begin(command.dialogue, command.stdin)
        self._control, self._report = shim.control, shim.report
        identity = uuid.uuid4().hex
        self._marker = f"{COMMAND_VARIABLE}={identity}"
        self._said = b""
        try:
            job = _job(command, grace, identity)
        except ValueError:
            shim.dismiss()
            raise
        with suppress(BrokenPipeError):  # the shim was killed: its missing report tells
            _write_all(self._control, job)

    def follow(self, spool: OutputLog, watch: "_Watch", seen: Callable[[str], None] | None) -> Ending | None:
        """Read until the shim has reported the end, or a limit has passed; return that limit."""
        next_look, shown = 0.0, 0
        while self._report in self._open.get_map() and self._answers():
            self._talk.speak()
            if self._read(spool, self._talk.patience(watch.timeout(time.monotonic()))):
                watch.last_output = time.monotonic()
            now = time.monotonic()
            if (limit := watch.passed(now)) is not None:
                return limit
            if seen and now >= next_look and spool.size != shown:
                next_look, shown = now + SEEN_PAUSE, spool.size
                if line := spool.last_line:
                    seen(line)
        return None

    def end(self, spool: OutputLog) -> dict[str, Any]:
        """Wait until everything is gone and read what is left; return the shim's report."""
        with self._ours:
            self._ask_to_stop()
            self._talk.close()  # not before: who reads to the end would take it for a good one
            deadline = time.monotonic() + SHIM_PATIENCE
            while self._report in self._open.get_map() and self._answers() and time.monotonic() < deadline:
                self._read(spool, POLL)
            code = self._buried(kill=self._report in self._open.get_map())
            report = _parse(self._said) or {
                "asked": True,
                "signal": -code if code < 0 else signal.SIGKILL,
                "left": True,
            }
            if report.get("left"):
                end_orphans(self._before)
                end_leftovers(self._marker)
            deadline = time.monotonic() + DRAIN
            while self._open.get_map() and time.monotonic() < deadline:
                self._read(spool, POLL)
        return report

    def stay(self, spool: OutputLog) -> dict[str, Any] | None:
        """Leave what the command started to its shim, which ends it when told, or when we die; return the report.

        None if the shim is dead. What they go on to print is read, so that nobody waits for us, and forgotten.
        """
        report = _parse(self._said)
        self.stays = report is not None and "errno" not in report
        if not self.stays:
            return None
        self._talk.close()
        while self._read(spool, 0.0):
            pass
        self._reader = threading.Thread(target=self._forget, daemon=True)
        self._reader.start()
        return report

    def release(self) -> None:
        """End what stayed."""
        with self._ours:
            self._ask_to_stop()
            deadline = time.monotonic() + SHIM_PATIENCE
            while self._shim.poll() is None and self._answers() and time.monotonic() < deadline:
                time.sleep(TICK)
            self._buried(kill=self._shim.poll() is None)
            end_leftovers(self._marker)
            self._reader.join(DRAIN)

    @property
    def begun(self) -> bool:
        """Whether the shim got its job."""
        return bool(self._said)

    def _answers(self) -> bool:
        """Wake a shim that somebody stopped; False for one that is stopped again and again."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + POLL
            if process_stat(self._shim.pid)[0] in ("T", "t"):
                self._stops += 1
                self._shim.send_signal(signal.SIGCONT)
        return self._stops <= MOST_STOPS

    def _buried(self, *, kill: bool) -> int:
        """Wait for the shim's end; where it does not come, end all that is below it, and then the shim, from outside."""
        if kill:
            end_descendants(self._shim.pid)
            self._shim.kill()
        code = self._shim.wait()
        RUNNING_SHIMS.discard(self._shim.pid)
        return code

    def _forget(self) -> None:
        while self._open.get_map():
            for key, _ in self._open.select(POLL):
                if not os.read(key.fd, CHUNK):
                    self._open.unregister(key.fd)

    def _read(self, spool: OutputLog, seconds: float) -> bool:
        """Take what there is within `seconds`; return whether the command printed anything."""
        printed = False
        for key, events in self._open.select(seconds):
            chunk = os.read(key.fd, CHUNK) if events & selectors.EVENT_READ else b""
            if key.data == STDIN:
                self._talk.speak()
            elif not chunk:
                self._open.unregister(key.fd)
            elif key.data == "report":
                self._said += chunk
            else:
                spool.feed(chunk, key.data)
                self._talk.hear(chunk)
                printed = True
        return printed

    def _ask_to_stop(self) -> None:
        with suppress(BrokenPipeError):
            os.write(self._control, b".")
        with suppress(ProcessLookupError):
            self._shim.send_signal(signal.SIGCONT)


@dataclass(slots=True, kw_only=True)
class _Watch:
    """Knows which limit comes next."""

    limits: TimeLimits
    stop: Stop
    began: float
    last_output: float | None = None

    def passed(self, now: float) -> Ending | None:
        due = min(self._due(), default=None)
        return due[1] if due is not None and due[0] <= now else None

    def timeout(self, now: float) -> float:
        return max(0.0, min([POLL, *(at - now for at, _ in self._due())]))

    def _due(self) -> Iterator[tuple[float, Ending]]:
        limits, last = self.limits, self.last_output
        if limits.wall_clock is not None:
            yield self.began + limits.wall_clock, "wall_clock"
        if last is None and limits.first_output is not None:
            yield self.began + limits.first_output, "first_output"
        elif limits.silence is not None:
            yield (self.began if last is None else last) + limits.silence, "silence"
        deadline = self.stop.deadline()
        if deadline is not None:
            yield deadline, "stopped"


def _place(env: Mapping[str, str]) -> tuple[str, str]:
    return env.get(RUN_VARIABLE, ""), env.get(TASK_VARIABLE, "")


def _job(command: Command, grace: float, identity: str) -> bytes:
    """Write the job as the shim reads it: its length, then fields that end with a zero byte."""
    environment = {name: value for name, value in os.environ.items() if name not in GIT_VARIABLES}
    environment |= {**command.env, COMMAND_VARIABLE: identity}
    environment.pop(SHIM_VARIABLE, None)
    fed = bool(command.stdin or command.dialogue)
    fields = [
        " ".join([str(grace), *(["lasting"] if command.lasting else []), *(["fed"] if fed else [])]),
        str(command.cwd),
        str(len(command.argv)),
        *command.argv,
        *(f"{name}={value}" for name, value in environment.items()),
    ]
    if not command.argv or any("\0" in field for field in fields):
        raise ValueError("it is empty" if not command.argv else "an argument or variable holds a zero byte")
    payload = b"\0".join(os.fsencode(field) for field in fields)
    return len(payload).to_bytes(8, "big") + payload


def _pipe(readers: ExitStack, writers: ExitStack) -> tuple[int, int]:
    reader, writer = os.pipe()
    readers.callback(os.close, reader)
    writers.callback(os.close, writer)
    return reader, writer


def _write_all(target: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(target, view) :]


def _parse(said: bytes) -> dict[str, Any] | None:
    try:
        report = json.loads(said)
    except ValueError:
        return None
    return report if isinstance(report, dict) else None


def _not_started(command: Command, redact: Redactor, error: OSError | ValueError) -> Ended:
    name = command.argv[0] if command.argv else ""
    reason, code = str(error), NOT_EXECUTABLE
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        if error.filename is not None:
            reason = f"{reason}: {error.filename}"
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            code = NOT_FOUND
    return Ended(ending="not_started", exit_code=code, tail=redact.text(f"Could not start {name!r}: {reason}."))


class _Talk:
    """The open stdin of one process. What it does not read blocks nobody."""

    def __init__(self, mouth: int, heard_with: selectors.BaseSelector) -> None:
        self._mouth, self._open = mouth, heard_with
        self._dialogue: Dialogue | None = None
        self._unsaid = self._heard = b""
        os.set_blocking(mouth, False)

    def begin(self, dialogue: Dialogue | None, first: bytes) -> None:
        """Say the first word; without a dialogue it is the last one, too."""
        self._dialogue, self._unsaid = dialogue, first
        self.speak()

    def hear(self, chunk: bytes) -> None:
        """Take in what the process printed; after its last word nothing more is said to it."""
        if self._dialogue is None:
            return
        heard = self._heard + chunk.replace(b" ", b"")  # JSON may be spaced
        if self._dialogue.last_word in heard:
            self.close()
        self._heard = heard[-len(self._dialogue.last_word) :]

    def speak(self) -> None:
        """Say what there is to say, as far as the pipe takes it; the rest when it takes more."""
        if self._mouth < 0:
            return
        if self._dialogue is not None:
            self._unsaid += b"".join(self._dialogue.phrase(text) for text in self._dialogue.inbox())
        waits = self._mouth in self._open.get_map()
        try:
            self._unsaid = self._unsaid[os.write(self._mouth, self._unsaid) :] if self._unsaid else b""
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self.close()
            return
        if not self._unsaid and self._dialogue is None:
            self.close()
        elif self._unsaid and not waits:
            self._open.register(self._mouth, selectors.EVENT_WRITE, STDIN)
        elif waits and not self._unsaid:
            self._open.unregister(self._mouth)

    def patience(self, seconds: float) -> float:
        """Return how long to wait for the process's words before looking for something to say to it."""
        return min(seconds, PAUSE) if self._mouth >= 0 else seconds

    def close(self) -> None:
        if self._mouth >= 0:
            if self._mouth in self._open.get_map():
                self._open.unregister(self._mouth)
            with suppress(OSError):
                os.close(self._mouth)
            self._mouth = -1
