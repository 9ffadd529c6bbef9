"""The shim that runs one command, as a child process of the supervisor.

Rules: The shim is started before its job is known, and waits for it. It inherits no variable of the package but
those that name the run and the task.
"""

import fcntl
import json
import os
import selectors
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from unstuck.git.git_command import GIT_VARIABLES
from unstuck.process.caller import COMMAND_VARIABLE, SHIM_START, SHIM_VARIABLE
from unstuck.process.command import Command, Dialogue
from unstuck.process.leftovers import RUNNING_SHIMS, adopt_orphans

SHIM_PROGRAM = f"import sys; sys.path.append({str(Path(__file__).parent)!r}); {SHIM_START}"
PIPE_BYTES = 256 * 1024
STDIN = "stdin"
INBOX_POLL_SECONDS = 0.25


class Shim:
    """A shim that waits for its job, and the pipes to it."""

    def __init__(self, env: Mapping[str, str]) -> None:
        adopt_orphans()
        variables = {name: value for name, value in env.items() if name.startswith("UNSTUCK_")}
        with ExitStack() as shim_ends, ExitStack() as own_ends:
            control, self.control = _pipe(shim_ends, own_ends)
            self.report, report = _pipe(own_ends, shim_ends)
            self.selector = own_ends.enter_context(selectors.DefaultSelector())
            stdin, stdin_writer = os.pipe()
            shim_ends.callback(os.close, stdin)
            self.input = ProcessInput(stdin_writer, self.selector)
            own_ends.callback(self.input.close)
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", SHIM_PROGRAM, str(control), str(report)],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd="/",
                env={**os.environ, **variables, SHIM_VARIABLE: "1"},
                pass_fds=(control, report),
                start_new_session=True,
            )
            RUNNING_SHIMS.add(self.process.pid)
            self._register(own_ends)
            self.pipes = own_ends.pop_all()

    def dismiss(self) -> None:
        """Kill a shim that got no job, so it has no descendants."""
        self.pipes.close()
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
                    fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            self.selector.register(stream.fileno(), selectors.EVENT_READ, name)
        self.selector.register(self.report, selectors.EVENT_READ, "report")


class ShimStarter(threading.Thread):
    """Starts a shim in the background, before its command is known."""

    def __init__(self, env: Mapping[str, str]) -> None:
        super().__init__(daemon=True)
        self._env = env
        self._shim: Shim | None = None
        self.start()

    def run(self) -> None:
        with suppress(OSError):  # the caller of `shim` starts another one, and reports why that fails
            self._shim = Shim(self._env)

    def shim(self) -> Shim | None:
        """Wait for the shim and return it, or None if it could not be started."""
        self.join()
        return self._shim


class ProcessInput:
    """The open stdin of one process. Writing to it never blocks."""

    def __init__(self, pipe: int, selector: selectors.BaseSelector) -> None:
        self._pipe, self._selector = pipe, selector
        self._dialogue: Dialogue | None = None
        self._unwritten = self._last_output = b""
        os.set_blocking(pipe, False)

    def begin(self, dialogue: Dialogue | None, first: bytes) -> None:
        """Write the first message. Without a dialogue it is also the last one."""
        self._dialogue, self._unwritten = dialogue, first
        self.write_pending()

    def observe_output(self, chunk: bytes) -> None:
        """Close the input once the process has printed the end mark of the dialogue."""
        if self._dialogue is None:
            return
        output = self._last_output + chunk.replace(b" ", b"")  # JSON may contain spaces
        if self._dialogue.end_mark in output:
            self.close()
        self._last_output = output[-len(self._dialogue.end_mark) :]

    def write_pending(self) -> None:
        """Write as much of the pending messages as the pipe takes now."""
        if self._pipe < 0:
            return
        if self._dialogue is not None:
            self._unwritten += b"".join(self._dialogue.encode(text) for text in self._dialogue.inbox())
        is_registered = self._pipe in self._selector.get_map()
        try:
            self._unwritten = self._unwritten[os.write(self._pipe, self._unwritten) :] if self._unwritten else b""
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self.close()
            return
        if not self._unwritten and self._dialogue is None:
            self.close()
        elif self._unwritten and not is_registered:
            self._selector.register(self._pipe, selectors.EVENT_WRITE, STDIN)
        elif is_registered and not self._unwritten:
            self._selector.unregister(self._pipe)

    def poll_timeout(self, seconds: float) -> float:
        """Return how long to wait for output before the inbox must be read again."""
        return min(seconds, INBOX_POLL_SECONDS) if self._pipe >= 0 else seconds

    def close(self) -> None:
        if self._pipe >= 0:
            if self._pipe in self._selector.get_map():
                self._selector.unregister(self._pipe)
            with suppress(OSError):
                os.close(self._pipe)
            self._pipe = -1


def encode_job(command: Command, grace: float, identity: str) -> bytes:
    """Return the job as the shim reads it: its length, then fields that end with a zero byte."""
    environment = {name: value for name, value in os.environ.items() if name not in GIT_VARIABLES}
    environment |= {**command.env, COMMAND_VARIABLE: identity}
    environment.pop(SHIM_VARIABLE, None)
    has_input = bool(command.stdin or command.dialogue)
    fields = [
        " ".join([str(grace), *(["lasting"] if command.lasting else []), *(["fed"] if has_input else [])]),
        str(command.cwd),
        str(len(command.argv)),
        *command.argv,
        *(f"{name}={value}" for name, value in environment.items()),
    ]
    if not command.argv or any("\0" in field for field in fields):
        raise ValueError("it is empty" if not command.argv else "an argument or variable holds a zero byte")
    payload = b"\0".join(os.fsencode(field) for field in fields)
    return len(payload).to_bytes(8, "big") + payload


def write_all(target: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(target, view) :]


def parse_report(text: bytes) -> dict[str, Any] | None:
    """Return the shim's report of how the command ended, or None if it is missing or incomplete."""
    try:
        report = json.loads(text)
    except ValueError:
        return None
    return report if isinstance(report, dict) else None


def _pipe(readers: ExitStack, writers: ExitStack) -> tuple[int, int]:
    reader, writer = os.pipe()
    readers.callback(os.close, reader)
    writers.callback(os.close, writer)
    return reader, writer
