"""Run commands on this machine and leave no process of theirs behind.

Each command runs under a shim (`shim.py`). Where the shim was killed or stopped, `leftovers.py` ends the processes.
"""

import errno
import os
import selectors
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from unstuck.model.config import TimeLimits
from unstuck.model.outcome import Ended, Ending
from unstuck.process.caller import COMMAND_VARIABLE, RUN_VARIABLE, TASK_VARIABLE, process_stat
from unstuck.process.command import Command, Stop
from unstuck.process.leftovers import (
    RUNNING_SHIMS,
    child_processes,
    end_descendants,
    end_leftovers,
    end_orphans,
    unrelated_processes,
)
from unstuck.process.output_log import OutputLog
from unstuck.process.shim import KILL_TIMEOUT_SECONDS, POLL_SECONDS
from unstuck.process.shim_process import (
    PIPE_BYTES,
    STDIN,
    Shim,
    ShimStarter,
    encode_job,
    parse_report,
    write_all,
)
from unstuck.redaction.redactor import Redactor, redactor

TERMINATE_GRACE_SECONDS = 1.0
"""Time between SIGTERM and SIGKILL."""
SHIM_TIMEOUT_SECONDS = TERMINATE_GRACE_SECONDS + KILL_TIMEOUT_SECONDS + 4.0
"""The shim needs the grace and the kill timeout to end its processes. After this time it counts as hung."""
OUTPUT_DRAIN_SECONDS = 1.0
"""Time to read on after the end, for an escaped process that still holds the pipes."""

STOP_POLL_SECONDS = 0.2
LINE_INTERVAL_SECONDS = 0.25
"""Shortest time between two reports of the last printed line."""
MAX_WAKE_UPS = 5
"""A shim that is stopped more often is ended from outside."""
MAX_WAITING_SHIMS = 16
"""A command that never comes leaves a waiting shim behind."""

NOT_FOUND, NOT_EXECUTABLE = 127, 126


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalProcesses:
    """Processes on this machine. Any number of threads may run commands at the same time."""

    grace: float = TERMINATE_GRACE_SECONDS
    _lasting: "list[_Session]" = field(default_factory=list)
    _waiting: "dict[tuple[str, str], ShimStarter]" = field(default_factory=dict)
    """Shims that start while git prepares a slot or writes a tree, by run and task."""

    def run(self, command: Command, *, stop: Stop, seen: Callable[[str], None] | None = None) -> Ended:
        """Run a command to its end. A limit, a stop and an exception end all its descendants."""
        began = time.monotonic()
        redact = redactor({**os.environ, **command.env})
        starter = self._waiting.pop(_run_and_task(command.env), None)
        waiting = starter.shim() if starter is not None else None
        try:
            session = _Session(command, self.grace, waiting or Shim(command.env))
        except (OSError, ValueError) as error:
            return _not_started(command, redact, error)
        with OutputLog(command.log, redact, transcript=command.transcript) as log:
            watch = _LimitWatch(limits=command.limits, stop=stop, began=began)
            keeps_running = False
            try:
                limit = session.follow(log, watch, seen)
                keeps_running = command.lasting and limit is None
            finally:
                report = (session.leave_running(log) if keeps_running else None) or session.end(log)
        if keeps_running and session.is_left_running:
            self._lasting.append(session)
        if waiting is not None and not session.has_started:
            return self.run(command, stop=stop, seen=seen)  # the waiting shim was killed before it got the job
        if "errno" in report:
            folder = str(command.cwd) if report["step"] == "cwd" else None
            return _not_started(command, redact, OSError(report["errno"], os.strerror(report["errno"]), folder))
        stopped_by = limit if report["asked"] else None
        log_error = f"[unstuck: the log {command.log} is not complete: {log.error.strerror}]\n" if log.error else ""
        return Ended(
            ending=stopped_by or ("exited" if "exit" in report else "signalled"),
            exit_code=None if stopped_by else report.get("exit"),
            signal=None if stopped_by else report.get("signal"),
            seconds=time.monotonic() - began,
            tail=log.tail + log_error,
            output_bytes=log.size,
        )

    def end_lasting(self) -> None:
        """End the processes that lasting commands left running, and the shims that got no job."""
        while self._lasting:
            self._lasting.pop().release()
        self._dismiss_waiting(0)

    def prepare_command(self, env: Mapping[str, str]) -> None:
        """Start the shim of a task's next command.

        Never call it while a command of the task runs: that command could write to the waiting shim.
        """
        key = _run_and_task(env)
        if key not in self._waiting:
            self._dismiss_waiting(MAX_WAITING_SHIMS - 1)
            self._waiting[key] = ShimStarter(env)

    def _dismiss_waiting(self, keep: int) -> None:
        keys = list(self._waiting)  # a copy: other threads take theirs meanwhile
        for key in keys[: max(0, len(keys) - keep)]:
            starter = self._waiting.pop(key, None)
            if starter is not None and (shim := starter.shim()) is not None:
                shim.dismiss()

    end_leftovers = staticmethod(end_leftovers)
    unrelated_processes = staticmethod(unrelated_processes)


class _Session:
    """One life of a command under its shim."""

    def __init__(self, command: Command, grace: float, shim: Shim) -> None:
        self.is_left_running = False
        self._wake_ups, self._next_look = 0, 0.0
        self._children_before = child_processes()
        self._shim, self._pipes, self._selector, self._input = shim.process, shim.pipes, shim.selector, shim.input
        self._input.begin(command.dialogue, command.stdin)
        self._control, self._report = shim.control, shim.report
        identity = uuid.uuid4().hex
        self._marker = f"{COMMAND_VARIABLE}={identity}"
        self._report_text = b""
        try:
            job = encode_job(command, grace, identity)
        except ValueError:
            shim.dismiss()
            raise
        with suppress(BrokenPipeError):  # the shim was killed, so its report will be missing
            write_all(self._control, job)

    @property
    def has_started(self) -> bool:
        """The shim got its job."""
        return bool(self._report_text)

    def follow(self, log: OutputLog, watch: "_LimitWatch", seen: Callable[[str], None] | None) -> Ending | None:
        """Read until the shim reports the end or a limit passes. Return that limit."""
        next_report, reported_size = 0.0, 0
        while self._awaits_report() and self._is_responsive():
            self._input.write_pending()
            if self._read(log, self._input.poll_timeout(watch.timeout(time.monotonic()))):
                watch.last_output = time.monotonic()
            now = time.monotonic()
            if (limit := watch.passed(now)) is not None:
                return limit
            if seen and now >= next_report and log.size != reported_size:
                next_report, reported_size = now + LINE_INTERVAL_SECONDS, log.size
                if line := log.last_line:
                    seen(line)
        return None

    def end(self, log: OutputLog) -> dict[str, Any]:
        """End all processes, read the rest of the output and return the shim's report."""
        with self._pipes:
            self._stop_shim()
            self._input.close()  # only now: a process that reads to the end would treat it as a normal end
            deadline = time.monotonic() + SHIM_TIMEOUT_SECONDS
            while self._awaits_report() and self._is_responsive() and time.monotonic() < deadline:
                self._read(log, STOP_POLL_SECONDS)
            code = self._wait_for_shim(kill=self._awaits_report())
            report = parse_report(self._report_text) or {
                "asked": True,
                "signal": -code if code < 0 else signal.SIGKILL,
                "left": True,
            }
            if report.get("left"):
                end_orphans(self._children_before)
                end_leftovers(self._marker)
            deadline = time.monotonic() + OUTPUT_DRAIN_SECONDS
            while self._selector.get_map() and time.monotonic() < deadline:
                self._read(log, STOP_POLL_SECONDS)
        return report

    def leave_running(self, log: OutputLog) -> dict[str, Any] | None:
        """Leave the processes to their shim and return its report, or None if the shim is dead.

        Their later output is read, so that no process blocks, and thrown away.
        """
        report = parse_report(self._report_text)
        self.is_left_running = report is not None and "errno" not in report
        if not self.is_left_running:
            return None
        self._input.close()
        while self._read(log, 0.0):
            pass
        self._reader = threading.Thread(target=self._discard_output, daemon=True)
        self._reader.start()
        return report

    def release(self) -> None:
        """End the processes that were left running."""
        with self._pipes:
            self._stop_shim()
            deadline = time.monotonic() + SHIM_TIMEOUT_SECONDS
            while self._shim.poll() is None and self._is_responsive() and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
            self._wait_for_shim(kill=self._shim.poll() is None)
            end_leftovers(self._marker)
            self._reader.join(OUTPUT_DRAIN_SECONDS)

    def _awaits_report(self) -> bool:
        return self._report in self._selector.get_map()

    def _is_responsive(self) -> bool:
        """Wake a stopped shim. Return False for one that is stopped again and again."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + STOP_POLL_SECONDS
            if process_stat(self._shim.pid)[0] in ("T", "t"):
                self._wake_ups += 1
                self._shim.send_signal(signal.SIGCONT)
        return self._wake_ups <= MAX_WAKE_UPS

    def _wait_for_shim(self, *, kill: bool) -> int:
        """Wait for the shim's end and return its exit code. If `kill`, end it and its descendants first."""
        if kill:
            end_descendants(self._shim.pid)
            self._shim.kill()
        code = self._shim.wait()
        RUNNING_SHIMS.discard(self._shim.pid)
        return code

    def _discard_output(self) -> None:
        while self._selector.get_map():
            for key, _ in self._selector.select(STOP_POLL_SECONDS):
                if not os.read(key.fd, PIPE_BYTES):
                    self._selector.unregister(key.fd)

    def _read(self, log: OutputLog, seconds: float) -> bool:
        """Read what arrives within `seconds`. Return whether the command printed anything."""
        has_printed = False
        for key, events in self._selector.select(seconds):
            chunk = os.read(key.fd, PIPE_BYTES) if events & selectors.EVENT_READ else b""
            if key.data == STDIN:
                self._input.write_pending()
            elif not chunk:
                self._selector.unregister(key.fd)
            elif key.data == "report":
                self._report_text += chunk
            else:
                log.feed(chunk, key.data)
                self._input.observe_output(chunk)
                has_printed = True
        return has_printed

    def _stop_shim(self) -> None:
        with suppress(BrokenPipeError):
            os.write(self._control, b".")
        with suppress(ProcessLookupError):
            self._shim.send_signal(signal.SIGCONT)


@dataclass(slots=True, kw_only=True)
class _LimitWatch:
    """The limits of one running command, and when each of them passes."""

    limits: TimeLimits
    stop: Stop
    began: float
    last_output: float | None = None

    def passed(self, now: float) -> Ending | None:
        """Return the first limit that has passed, or None."""
        first = min(self._deadlines(), default=None)
        return first[1] if first is not None and first[0] <= now else None

    def timeout(self, now: float) -> float:
        """Return how long to wait for output before the limits must be checked again."""
        return max(0.0, min([STOP_POLL_SECONDS, *(deadline - now for deadline, _ in self._deadlines())]))

    def _deadlines(self) -> Iterator[tuple[float, Ending]]:
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


def _run_and_task(env: Mapping[str, str]) -> tuple[str, str]:
    return env.get(RUN_VARIABLE, ""), env.get(TASK_VARIABLE, "")


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
