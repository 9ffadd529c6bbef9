"""A process with the modules of `unstuck` loaded. It forks the commands of the tests.

Loading the modules takes half a second. A forked command has its own folder, environment, streams and signals.

    python -m tests.fork_server [PACKAGE ...]

loads the packages too. It reads one JSON order per line and answers each with one number: the exit code of a command
that it waited for, or the process id of a command that runs in the background.
"""

import contextlib
import ctypes
import gc
import io
import json
import os
import pkgutil
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

TIMEOUT_SECONDS = 90.0
POLL_SECONDS = 0.01
PR_SET_PDEATHSIG = 1
CLONE_NEWNET = 0x40000000

MODULES = (
    "unstuck.app.inspect",
    "unstuck.app.open_run",
    "unstuck.cli.inspect_commands",
    "unstuck.cli.run_commands",
    "unstuck.engine.local_dispatcher",
    "unstuck.engine.supervise",
    "unstuck.listeners.attempt_figures",
    "unstuck.process.sandbox",
)
PLAN = "- [ ] 1.1 One\n  - **Verify**: `python3 -m pytest -q`\n- [ ] 1.2 Two\n  - **Verify**: `test -f two`\n"

# --- in the tests ------------------------------------------------------------------------------------


class ForkServer:
    """The server process as the tests use it."""

    def __init__(self, *packages: str) -> None:
        self._packages = packages
        self._folder = tempfile.TemporaryDirectory(prefix="fork-server-")
        self._process = self._open()

    def run(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        module: str = "unstuck",
        stdin: str = "",
    ) -> "subprocess.CompletedProcess[str]":
        """Run a module with these arguments to its end."""
        streams = [Path(self._folder.name, name) for name in ("stdin", "stdout", "stderr")]
        streams[0].write_bytes(os.fsencode(stdin))
        try:
            exit_code = self._send(Order.of(module, arguments, cwd, env, streams))
        except BaseException:  # the test took too long: the next one gets a new server
            self._kill()
            self._process = self._open()
            raise
        stdout, stderr = (os.fsdecode(path.read_bytes()) for path in streams[1:])
        for path in streams:  # a process that outlives the command must not write into the next one's output
            path.unlink()
        sys.stderr.write(stderr)  # pytest shows it where a test fails
        return subprocess.CompletedProcess([*arguments], exit_code, stdout, stderr)

    def start(
        self, module: str, arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path, network: str = ""
    ) -> "BackgroundProcess":
        """Start a module in the background; it finds its process id in the variable MEMBER_PID."""
        exit_code_file = log.with_suffix(".exit")
        order = Order.of(module, arguments, cwd, env, [Path(os.devnull), log, log])
        pid = self._send(Order(**{**vars(order), "exit_code_file": str(exit_code_file), "network": network}))
        return BackgroundProcess(pid, tuple(arguments), exit_code_file)

    def close(self) -> None:
        """End the server and the commands that still run."""
        self._kill()
        self._folder.cleanup()

    def _open(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.fork_server", *self._packages],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )

    def _send(self, order: "Order") -> int:
        """Return the answer to an order."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(vars(order))}\n")
        self._process.stdin.flush()
        readable, _, _ = select.select([self._process.stdout], [], [], TIMEOUT_SECONDS)
        if not readable:
            raise subprocess.TimeoutExpired(order.arguments, TIMEOUT_SECONDS)
        return int(self._process.stdout.readline())

    def _kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


@dataclass(frozen=True)
class Order:
    """One command for the server."""

    module: str
    arguments: list[str]
    cwd: str
    env: dict[str, str]
    streams: list[str]
    """Files for stdin, stdout and stderr."""
    exit_code_file: str = ""
    """Where the exit code of a background command is written."""
    network: str = ""
    """The name of a network namespace."""

    @classmethod
    def of(
        cls, module: str, arguments: Sequence[str], cwd: Path, env: Mapping[str, str], streams: Sequence[Path]
    ) -> "Order":
        return cls(module, [*arguments], str(cwd), dict(env), [str(path) for path in streams])


@dataclass(frozen=True, slots=True)
class BackgroundProcess:
    """A command that runs in the background."""

    pid: int
    arguments: tuple[str, ...]
    exit_code_file: Path

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs. A signal counts as its negative number."""
        return int(self.exit_code_file.read_text()) if self.exit_code_file.exists() else None

    def wait(self, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        while (exit_code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(POLL_SECONDS)
        return exit_code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


# --- in the server -----------------------------------------------------------------------------------


def serve(packages: Sequence[str]) -> None:
    """Answer orders until stdin ends."""
    load_modules(packages)
    load_tables()
    gc.freeze()  # the garbage collector of a forked command has less to look through
    for line in sys.stdin:
        order = Order(**json.loads(line))
        sys.stdout.write(f"{start_in_background(order) if order.exit_code_file else run_to_end(order)}\n")
        sys.stdout.flush()


def load_modules(packages: Sequence[str]) -> None:
    for name in (*MODULES, *packages):
        module = import_module(name)
        if name in packages:
            for part in pkgutil.walk_packages(module.__path__, f"{name}."):
                import_module(part.name)


def load_tables() -> None:
    """Call functions that read tables and compile patterns. None of them depends on a folder, a variable or a process."""
    from unstuck import diagnose  # noqa: PLC0415  # only the server loads them
    from unstuck.agents.manifests import agent_catalog  # noqa: PLC0415
    from unstuck.app.config_file import read_config  # noqa: PLC0415
    from unstuck.diagnosis.rule_files import catalog_guidance  # noqa: PLC0415
    from unstuck.model.changes import Change  # noqa: PLC0415
    from unstuck.model.event import Noted, encode  # noqa: PLC0415
    from unstuck.plans.tasks_md import read_tasks_md  # noqa: PLC0415
    from unstuck.policy.profiles import profile  # noqa: PLC0415
    from unstuck.redaction.redactor import redactor  # noqa: PLC0415
    from unstuck.testing import World  # noqa: PLC0415
    from unstuck.toolchain.command_roles import effect  # noqa: PLC0415
    from unstuck.verify.audit.auditing import audit  # noqa: PLC0415

    encode(Noted(text=""))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "unstuck.toml").write_text("[limits]\ndrain = 5\n")
        read_config(Path(folder))
    redactor({"NAME": "a value of no meaning", "A_TOKEN": "0123456789abcdef", "URL": "https://example.invalid/a"})
    agent_catalog()
    catalog_guidance()
    profile("standard")
    World({}).run(read_tasks_md(PLAN, "tasks.md", runnable=lambda _: True).tasks)
    audit([Change(path="setup.cfg", old="[a]\nb = 1\n", new="[a]\nb = 2\n"), Change(path="a.py", new="one = 1\n")])
    effect("curl -X POST localhost")
    diagnose("bash: jq: command not found", exit_code=127, command="jq . a.json")


def run_to_end(order: Order) -> int:
    child = os.fork()
    if child == 0:
        become(order)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def start_in_background(order: Order) -> int:
    """Fork the command below a process that waits for it; return the process id of the command."""
    collect_ended_children()
    answer, result = os.pipe()
    if os.fork() == 0:
        os.close(answer)
        wait_for_child(order, result)
    os.close(result)
    with os.fdopen(answer) as pid:
        return int(pid.read())


def collect_ended_children() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def wait_for_child(order: Order, pid_pipe: int) -> NoReturn:
    """Fork the command, write its process id into the pipe and later its exit code into a file."""
    die_with_parent()
    pid = os.fork()
    if pid == 0:
        os.close(pid_pipe)
        die_with_parent()
        enter_network(order.network)
        os.environ.clear()
        become(Order(**{**vars(order), "env": {**order.env, "MEMBER_PID": str(os.getpid())}}))
    os.write(pid_pipe, f"{pid}\n".encode())
    os.close(pid_pipe)
    exit_code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    part = Path(f"{order.exit_code_file}.part")
    part.write_text(str(exit_code))
    part.rename(order.exit_code_file)
    os._exit(0)


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def enter_network(name: str) -> None:
    if not name:
        return
    with Path("/run/netns", name).open() as namespace:
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.setns(namespace.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())


def become(order: Order) -> NoReturn:
    """Run the module of an order in this process and exit."""
    exit_code: Any = 1
    try:
        redirect_streams(order.streams)
        os.environ.clear()
        os.environ.update(order.env)
        os.chdir(order.cwd)
        sys.argv[1:] = order.arguments
        runpy.run_module(order.module, run_name="__main__", alter_sys=True)
        exit_code = 0
    except SystemExit as end:
        exit_code = end.code or 0
    except BaseException:  # noqa: BLE001  # the interpreter would print it
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(OSError):  # a full disk or a closed pipe
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(exit_code if isinstance(exit_code, int) else 1)


def redirect_streams(paths: Sequence[str]) -> None:
    os.dup2(os.open(paths[0], os.O_RDONLY), 0)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
    for number, path in enumerate(paths[1:], 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)


if __name__ == "__main__":
    serve(sys.argv[1:])
