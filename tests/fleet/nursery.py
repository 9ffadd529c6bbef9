"""A process that has everything loaded, and forks the members of a fleet: each is a process of its own, a second earlier.

`python -m tests.fleet.nursery` reads one JSON object a line and answers with the pid of the member. How a member ended is
written into a file by its nurse, who waits for it. Everything ends with whoever reads the answers.
"""

import contextlib
import ctypes
import json
import os
import pkgutil
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

PARENT_DIES = 1  # prctl(PR_SET_PDEATHSIG)
NETWORK = 0x40000000  # setns(CLONE_NEWNET)
POLL_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Member:
    """A process of the fleet, as a test sees it."""

    pid: int
    argv: tuple[str, ...]
    end: Path
    """Where its exit code will be; minus the number of the signal that ended it."""

    def poll(self) -> int | None:
        return int(self.end.read_text()) if self.end.exists() else None

    def wait(self, patience: float) -> int:
        until = time.monotonic() + patience
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise TimeoutError
            time.sleep(POLL_SECONDS)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Nursery:
    """The other side of the pipe."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def start(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path, network: str = "") -> Member:
        """Start a module with its arguments; it knows itself as DOOMED."""
        end = log.with_suffix(".end")
        order = {"argv": argv, "env": dict(env), "cwd": str(cwd), "log": str(log), "end": str(end), "network": network}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(order)}\n")
        self._process.stdin.flush()
        return Member(int(self._process.stdout.readline()), tuple(argv), end)


@contextlib.contextmanager
def nursery() -> Iterator[Nursery]:
    command = [sys.executable, "-P", "-m", "tests.fleet.nursery"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True) as process:
        yield Nursery(process)


def main() -> None:
    load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nurses tell by files
    for line in sys.stdin:
        answer, tell = os.pipe()
        if not os.fork():
            nurse(json.loads(line), tell)
        os.close(tell)
        with os.fdopen(answer) as told:
            sys.stdout.write(told.read())
            sys.stdout.flush()


def load() -> None:
    import unstuck  # noqa: PLC0415  # this process is for loading it

    for module in pkgutil.walk_packages(unstuck.__path__, "unstuck."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # an extra that is not here
                import_module(module.name)


def nurse(order: dict[str, Any], tell: int) -> NoReturn:
    """Fork the member, tell its pid, and write down how it ended."""
    ctypes.CDLL(None).prctl(PARENT_DIES, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if not pid:
        os.close(tell)
        become(order)
    os.write(tell, f"{pid}\n".encode())
    os.close(tell)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    end = Path(order["end"])
    end.with_suffix(".new").write_text(str(code))
    end.with_suffix(".new").rename(end)
    os._exit(0)


def become(order: dict[str, Any]) -> NoReturn:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PARENT_DIES, signal.SIGKILL)
    if order["network"]:
        with Path("/run/netns", order["network"]).open() as place:
            assert libc.setns(place.fileno(), NETWORK) == 0, os.strerror(ctypes.get_errno())
    for path, number, flags in (
        (os.devnull, 0, os.O_RDONLY),
        (order["log"], 1, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ):
        os.dup2(os.open(path, flags), number)
    os.dup2(1, 2)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"], DOOMED=str(os.getpid()))
    module, *sys.argv[1:] = order["argv"]
    code: Any = 1
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # noqa: BLE001  # as the interpreter would tell it
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    main()
