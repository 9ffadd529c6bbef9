"""A process that forks others which run the command line, so that not each of them has to load Python's modules.

    python -m tests.nursery       then, line by line on stdin, as JSON: {"argv", "cwd", "env", "stdin", "out", "err"}

Each line's command gets a process of its own, with its own folder, environment, streams and signals: an `unstuck` like
any other, but for the half second in which Python loads everything. Its exit status is printed.
"""

import gc
import io
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from unstuck import diagnose
from unstuck.agents.manifests import catalog
from unstuck.app.config_file import read_config
from unstuck.cli import run_cli
from unstuck.diagnosis.rule_files import catalog_guidance
from unstuck.model.changes import Change
from unstuck.model.event import Noted, encode
from unstuck.plans.tasks_md import read
from unstuck.policy.profiles import profile
from unstuck.redaction.redactor import redactor
from unstuck.testing import World
from unstuck.toolchain.command_roles import effect
from unstuck.verify.audit.auditing import audit

PATIENCE = 90.0
LOADED = (
    *(
        "unstuck.app.open_run",
        "unstuck.app.inspect",
        "unstuck.engine.local_dispatcher",
        "unstuck.engine.supervise",
    ),
    *(
        "unstuck.listeners.attempt_figures",
        "unstuck.process.sandbox",
        "unstuck.cli.run_commands",
        "unstuck.cli.inspect_commands",
    ),
)
PLAN = "- [ ] 1.1 One\n  - **Verify**: `python3 -m pytest -q`\n- [ ] 1.2 Two\n  - **Verify**: `test -f two`\n"


class Place(Protocol):
    """Where a command is run: a repository, and the environment of its user."""

    @property
    def root(self) -> Path: ...
    @property
    def env(self) -> Mapping[str, str]: ...


class Nursery:
    """The process, as tests use it: one command at a time."""

    def __init__(self, module: str = "tests.nursery") -> None:
        self._module = module
        self._said = tempfile.TemporaryDirectory(prefix="nursery-")
        self._process = self._open()

    def run(
        self,
        argv: Sequence[str],
        place: Place,
        env: Mapping[str, str] | None = None,
        *,
        cwd: Path | None = None,
        text: str = "",
    ) -> "subprocess.CompletedProcess[str]":
        """Run the command line at a place to its end; it reads the text."""
        assert self._process.stdin is not None
        streams = {name: Path(self._said.name, name) for name in ("stdin", "out", "err")}
        streams["stdin"].write_bytes(os.fsencode(text))
        job = {"argv": [*argv], "cwd": str(cwd or place.root), "env": {**place.env, **(env or {})}}
        try:
            self._process.stdin.write(json.dumps({**job, **{name: str(path) for name, path in streams.items()}}) + "\n")
            self._process.stdin.flush()
            code = self._exit_code(argv)
        except BaseException:  # a test that takes too long: the next one gets a nursery of its own
            self._end()
            self._process = self._open()
            raise
        out, err = (os.fsdecode(streams[name].read_bytes()) for name in ("out", "err"))
        for path in streams.values():  # what still writes there writes to nobody
            path.unlink()
        sys.stderr.write(err)  # whole, where a test fails
        return subprocess.CompletedProcess([*argv], code, out, err)

    def close(self) -> None:
        """End it, and whatever command is still at work."""
        self._end()
        self._said.cleanup()

    def _exit_code(self, argv: Sequence[str]) -> int:
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        if not readable:
            raise subprocess.TimeoutExpired([*argv], PATIENCE)
        return int(self._process.stdout.readline())

    def _open(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-P", "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )

    def _end(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


def serve(run: Callable[[Sequence[str]], int] = run_cli) -> None:
    """Fork a process for every line, and say how it ended."""
    _read_tables()
    gc.freeze()  # whoever is forked need not look through all of this again
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(job, run)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


def _read_tables() -> None:
    """Load what a run loads, and have its tables read and its patterns compiled, by pure functions alone.

    Nothing that depends on a folder, an environment or a process is remembered for those that are forked.
    """
    for name in LOADED:
        import_module(name)
    encode(Noted(text=""))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "unstuck.toml").write_text("[limits]\ndrain = 5\n")
        read_config(Path(folder))
    redactor({"NAME": "a value of no meaning", "A_TOKEN": "0123456789abcdef", "URL": "https://example.invalid/a"})
    catalog()
    catalog_guidance()
    profile("standard")
    World({}).run(read(PLAN, "tasks.md", runnable=lambda _: True).tasks)
    audit([Change(path="setup.cfg", old="[a]\nb = 1\n", new="[a]\nb = 2\n"), Change(path="a.py", new="one = 1\n")])
    effect("curl -X POST localhost")
    diagnose("bash: jq: command not found", exit_code=127, command="jq . a.json")


def _become(job: Mapping[str, Any], run: Callable[[Sequence[str]], int]) -> None:
    code = 1
    try:
        os.dup2(os.open(job["stdin"], os.O_RDONLY), 0)
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
        for number, name in enumerate(("out", "err"), 1):
            os.dup2(os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND), number)
        os.environ.clear()
        os.environ.update(job["env"])
        os.chdir(job["cwd"])
        code = run(job["argv"])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve()
