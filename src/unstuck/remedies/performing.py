"""Edge: Walk a recovery plan on this machine: argument lists, exact paths, and everything can be taken back.

A way has worked when the failing call, or its repaired form, was run and was green; nothing else counts.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from unstuck.diagnosis.diagnosis_result import Judge
from unstuck.diagnosis.evidence import Evidence
from unstuck.model.config import TimeLimits
from unstuck.model.failure import Kind
from unstuck.process.command import Command
from unstuck.process.processes import LocalProcesses
from unstuck.process.sandbox import Sandbox, sandboxed
from unstuck.remedies.chain import (
    ASK,
    RISKS,
    Ask,
    Expects,
    ListFolder,
    MakeFolder,
    Operation,
    ReadFile,
    Remove,
    Rendered,
    Risk,
    Script,
    Shell,
    Step,
    Use,
    WriteFile,
    script,
)
from unstuck.remedies.left_behind import MOST_NAMED, Stamp, changed, content_of, copies, stamps, taken_back, unsound
from unstuck.remedies.machine import git_folder, listening
from unstuck.remedies.recovery_plan import Plan, Strategy
from unstuck.remedies.situation import LOG, MAYBE_DONE
from unstuck.remedies.toolbox import Done, Toolbox

PER_STRATEGY, PER_FAILURE = 2, 4
"""Executions of one way, and of all ways together, before a person is asked."""
PASSING = frozenset({Kind.NETWORK_ERROR, Kind.RATE_LIMITED, Kind.PROVIDER_OVERLOADED, Kind.RESOURCE_BUSY})
"""What may be gone a little later, so that a way which met it is worth a second execution."""
LATE = frozenset({Kind.TIMEOUT, Kind.HANG})
ADVICE = "it is advice: no step of it is the call, so nothing would show that it works"
MOST_OUTPUT = 8_000

Result = Literal["worked", "failed", "not_run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One way, and what came of it."""

    strategy: str
    result: Result
    because: str = ""
    steps: int = 0
    seconds: float = 0.0
    output: str = ""  # what the call printed, bounded
    exit_code: int | None = None
    calls: tuple[Rendered, ...] = ()
    """The calls whose success is the recovery, as the caller's tools are told to make them."""
    listens: int = 0  # the port on which the call listened, until it was ended for that
    files: tuple[str, ...] = ()  # files of the workspace that it made or changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    tried: tuple[Tried, ...]

    @property
    def recovery(self) -> Tried | None:
        return next((one for one in self.tried if one.result == "worked"), None)

    @property
    def recovered_by(self) -> str | None:
        return self.recovery.strategy if self.recovery else None


def walk(
    plan: Plan, toolbox: Toolbox, judge: Judge, allow: Risk, record: Callable[[Tried], None] = lambda _: None
) -> Walked:
    """Try one way after the other; the record is told of every execution as soon as it is over."""
    tried: list[Tried] = []
    executions, repeated, ended = 0, False, False
    worth_another: list[Strategy] = []
    queue = [(strategy, 1) for strategy in plan.strategies if strategy.strategy != ASK]
    while queue:
        strategy, times = queue.pop(0)
        if executions >= PER_FAILURE:
            because = f"{PER_FAILURE} executions were made for this failure"
        elif not strategy.proves:
            because = ADVICE
        elif ended:
            because = "given the time, the call ended by itself and failed: time is not what it lacks"
        elif repeated and plan.kind in MAYBE_DONE and strategy.risk != "safe":
            because = "the call may have had its effect already, and was made again once"
        elif RISKS.index(strategy.risk) > RISKS.index(allow):
            because = f"it is {strategy.risk}, and only {allow} steps may run"
        else:
            because = toolbox.obstacle(strategy)
        if because:
            tried.append(Tried(strategy=strategy.strategy, result="not_run", because=because))
            continue
        one, stopped_by = _execute(strategy, toolbox, judge)
        executions += 1
        tried.append(one)
        record(one)
        if one.result == "worked":
            break
        if stopped_by in PASSING and times < PER_STRATEGY:
            worth_another.append(strategy)
        repeated = repeated or strategy.risk != "safe"
        ended = plan.kind in LATE and stopped_by is not None and stopped_by not in MAYBE_DONE
        if not queue:
            queue = [(each, PER_STRATEGY) for each in worth_another if executions < PER_FAILURE]
            worth_another = []
    return Walked(tried=tuple(tried))


def _execute(strategy: Strategy, toolbox: Toolbox, judge: Judge) -> tuple[Tried, Kind | None]:
    """Do the steps of one way; return what came of it, and the kind of failure that stopped it."""
    began, printed, calls, code, listens = time.monotonic(), list[str](), list[Rendered](), None, 0
    for count, told in enumerate(strategy.steps, 1):
        done = toolbox.use(told.step)
        if told.step.again:
            calls.append(told.call)
            code, listens = done.exit_code, done.listens
        if calls or not done.ok:
            printed.append(done.output.strip("\n"))
        judged = (told.step.again and not done.listens) or not done.ok  # what a server logs is no verdict on it
        found = judge.diagnose(_evidence(done, script(told.step.operation))) if judged else None
        if done.ok and (found is None or not told.step.again):
            continue
        because = done.because or (f"{found.kind}: {found.message}" if found else "it did not do what was expected")
        if kept := toolbox.settle(keep=False):
            because = f"{because}; what it had changed is taken back, and kept in {kept[0]}"
        failed = Tried(
            strategy=strategy.strategy, result="failed", because=because, steps=count, seconds=time.monotonic() - began,
            output=done.output[-MOST_OUTPUT:], exit_code=done.exit_code,
        )  # fmt: skip
        return failed, found.kind if found else None
    seconds = time.monotonic() - began
    return Tried(
        strategy=strategy.strategy, result="worked", steps=len(strategy.steps), seconds=seconds, exit_code=code, listens=listens, calls=tuple(calls),
        output="\n".join(filter(None, printed))[-MOST_OUTPUT:], files=toolbox.settle(keep=True),
    ), None  # fmt: skip


def _evidence(done: Done, command: str) -> Evidence:
    return Evidence(stdout=done.output, exit_code=done.exit_code, command=command, timed_out=done.timed_out)


# --- the toolbox --------------------------------------------------------------------------------------------------

CONNECT_SECONDS = 3.0
LAUNCH_SECONDS = 10.0
SERVED_SECONDS = 1.0
"""For which a server must go on after it began to listen."""
SHOWN_CHARS = 4_000
MOST_KEPT = 10_000_000
Tool = Callable[[Mapping[str, Any]], Done]


@dataclass(slots=True)
class _Served:
    """Stops a server a moment after it listens; nothing else is stopped."""

    port: int
    until: float | None = None

    def deadline(self) -> float | None:
        if self.until is None and self.port and self._listens():
            self.until = time.monotonic() + SERVED_SECONDS
        return self.until

    def _listens(self) -> bool:
        if Path("/proc/net/tcp").exists():  # where nobody has to be disturbed for it
            return bool(listening(str(self.port)))
        return _reachable(f"127.0.0.1:{self.port}")


@dataclass(slots=True, kw_only=True)
class LocalToolbox:
    """The basic tools, and whatever tools of their own a caller lends us."""

    cwd: Path
    root: Path  # the workspace: nothing outside is deleted
    timeout: float = 120.0
    allowed_folders: tuple[str, ...] = ()
    lent: Mapping[str, Tool] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    sandbox: Sandbox | None = None  # what its commands run in, as those that set a slot up
    _undo: list[Callable[[], object]] = field(default_factory=list)
    _since: int = 0
    _before: Mapping[str, Stamp] | None = None  # what the workspace held before the first step of the way
    _copies: Mapping[str, bytes] | None = None  # and its files, before the first step that may change them

    def obstacle(self, strategy: Strategy) -> str:
        """Say why a way cannot work right now."""
        path = {**os.environ, **self.env}.get("PATH")
        for name in strategy.requires:
            if shutil.which(name if "/" not in name else str(self.cwd / name), path=path) is None:
                return f"{name} is not installed"
        for told in strategy.steps:
            if why := self.hindrance(told.step.operation):
                return why
        return next((f"{host} cannot be reached" for host in strategy.hosts if not _reachable(host)), "")

    def use(self, step: Step) -> Done:
        """Do one step and verify what it promises."""
        if self._before is None:
            self._before, self._since = stamps(self.root), time.time_ns()
        if self._copies is None and step.risk != "safe":
            self._copies = copies(self.root, self._before)
        try:
            for path in step.expects.exists:
                self._remember(self.cwd / path)
            done = self._do(step.operation, step.expects.listens)
        except (OSError, ValueError) as error:
            return Done(ok=False, because=str(error))
        if not done.ok:
            return done
        if step.back is not None:
            self._undo.append(partial(self._do, step.back))
        broken = self._broken(step.expects, done)
        return Done(ok=False, output=done.output, exit_code=done.exit_code, because=broken) if broken else done

    def _broken(self, expects: Expects, done: Done) -> str:
        """Say which promise a step did not keep; empty if it kept them all."""
        for path in expects.exists:
            if not os.path.lexists(self.cwd / path):
                return f"{path} does not exist afterwards"
        for path in expects.gone:
            if os.path.lexists(self.cwd / path):
                return f"{path} is still there"
        for path in expects.sound:
            if why := unsound(path, content_of(self.cwd / path)):
                return f"{path} {why}"
        if expects.unasked and expects.unasked in done.output:
            return f"it asks again, and nobody answers: {expects.unasked}"
        return "it printed nothing" if expects.prints and not done.output.strip() else ""

    def settle(self, *, keep: bool) -> tuple[str, ...]:
        """Keep what was written and name it; or put everything back as it was, and say where what was taken back lies."""
        undo, self._undo = self._undo, []
        before, self._before = self._before, None
        kept, self._copies = self._copies, None
        if keep:
            return changed(before, stamps(self.root), self._since)[:MOST_NAMED] if before is not None else ()
        for back in reversed(undo):
            with suppress(OSError, ValueError):
                back()
        for name in (LOG, f"{LOG}.exit"):
            if name not in (before or ()):
                (self.root / name).unlink(missing_ok=True)
        return taken_back(self.root, before, kept, self._since) if before is not None and kept is not None else ()

    # --- below ----------------------------------------------------------------------------------------------------

    def hindrance(self, operation: Operation) -> str:
        """Say why one step cannot be done right now; empty if it can."""
        match operation:
            case Use(tool=tool) if tool not in self.lent:
                return f"only the agent has the tool {tool or 'that was called'}"
            case Ask():
                return "only a person can answer"
            case WriteFile(path=path) | MakeFolder(path=path):
                folder = next(folder for folder in (self.cwd / path).parents if folder.is_dir())
                if not os.access(folder, os.W_OK):
                    return f"{folder} may not be written to"
                free, content = os.statvfs(folder), getattr(operation, "content", "").encode(errors="replace")
                return f"there is no space for {path}" if len(content) > free.f_bavail * free.f_frsize else ""
            case Remove(paths=paths):
                return next((f"{path} is outside of the workspace" for path in paths if not self._ours(path)), "")
            case _:
                return ""

    def _do(self, operation: Operation, listens: int = 0) -> Done:
        match operation:
            case Shell():
                return (
                    self._launch(operation)
                    if operation.detached
                    else self._run(operation.argv, operation.timeout, operation.env, listens)
                )
            case Script(text=text, shell=shell):
                return self._run((shell, "-c", text), operation.timeout, {}, listens)
            case ListFolder(path=path):
                return Done(ok=True, exit_code=0, output="\n".join(sorted(os.listdir(self.cwd / path))[:1000]))  # noqa: PTH208  # names
            case ReadFile(path=path):
                content = (self.cwd / path).read_bytes()[:100_000]
                return Done(ok=True, exit_code=0, output=content.decode(errors="replace"))
            case WriteFile(path=path, content=content):
                return self._write(self.cwd / path, content)
            case MakeFolder(path=path):
                return self._make(self.cwd / path)
            case Remove(paths=paths):
                return self._remove(paths)
            case Use(tool=tool, args=args):
                return self.lent[tool](args)
            case Ask():
                return Done(ok=False, because="only a person can answer")

    def _run(self, argv: tuple[str, ...], timeout: float | None, env: Mapping[str, str], listens: int) -> Done:
        seconds = timeout or self.timeout
        with tempfile.TemporaryDirectory(prefix="unstuck-remedy-") as scratch:
            command = Command(
                argv=argv, cwd=self.cwd, log=Path(scratch) / "log", env={**self.env, **env}, limits=TimeLimits(wall_clock=seconds),
                writes=(str(self.root), *self.allowed_folders),
            )  # fmt: skip
            ended = LocalProcesses().run(sandboxed(command, "setup", self.sandbox), stop=_Served(listens))
        if ended.ending == "stopped":
            return Done(ok=True, output=ended.tail[-SHOWN_CHARS:], listens=listens)
        timed_out = ended.ending == "wall_clock"
        because = "" if ended.ok else str(ended.ending)
        if timed_out:
            because = f"it did not end within {seconds:g} seconds"
        elif because == "exited":
            last = next((line.strip() for line in reversed(ended.tail.splitlines()) if line.strip()), "")
            because = f"exit code {ended.exit_code}" + (f": {last[:200]}" if last else "")
        output = ended.tail[-SHOWN_CHARS:]
        return Done(ok=ended.ok, exit_code=ended.exit_code, output=output, because=because, timed_out=timed_out)

    def _launch(self, operation: Shell) -> Done:
        """Start something that goes on by itself; if its way fails, it is ended."""
        process = subprocess.Popen(
            operation.argv, cwd=self.cwd, env={**os.environ, **self.env, **operation.env}, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._undo.append(lambda: os.killpg(process.pid, signal.SIGKILL))
        code = process.wait(LAUNCH_SECONDS)
        return Done(ok=code == 0, exit_code=code)

    def _write(self, path: Path, content: str) -> Done:
        """Replace a file, keeping what it held until the way is known to work."""
        before, mode = (path.read_bytes(), path.stat().st_mode) if path.is_file() else (None, None)
        self._make(path.parent)
        new = path.with_name(f".{path.name}.unstuck")
        try:
            new.write_bytes(content.encode(errors="surrogateescape"))
            if mode is not None:
                new.chmod(mode)
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
        self._undo.append(
            partial(path.unlink, missing_ok=True) if before is None else partial(path.write_bytes, before)
        )
        return Done(ok=True, exit_code=0)

    def _remember(self, path: Path) -> None:
        """Keep what a file that the step will write holds; what is too large to keep stays as the step leaves it."""
        if path.is_symlink() or path.is_dir() or not self._ours(str(path)):
            return
        if not path.exists():
            self._undo.append(lambda: path.unlink(missing_ok=True) if path.is_file() else None)
        elif path.stat().st_size <= MOST_KEPT:
            self._undo.append(partial(path.write_bytes, path.read_bytes()))

    def _make(self, path: Path) -> Done:
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for folder in reversed(missing):
            self._undo.append(folder.rmdir)
        return Done(ok=True, exit_code=0)

    def _remove(self, paths: tuple[str, ...]) -> Done:
        for name in paths:
            path = self.cwd / name
            if not self._ours(name):
                return Done(ok=False, because=f"{name} is outside of the workspace")
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        return Done(ok=True, exit_code=0)

    def _ours(self, name: str) -> bool:
        """Whether a path lies inside the workspace, its folder's links followed, or is a lock of its own git's."""
        path, root = self.cwd / name, self.root.resolve()
        real = path.parent.resolve() / path.name
        git = git_folder(self.root)
        lock = git is not None and path.suffix == ".lock" and real.is_relative_to(git.resolve())
        inside = real != root and real.is_relative_to(root) and real != root / ".git"
        return path.name not in {"", ".", ".."} and (inside or lock)


def _reachable(host: str) -> bool:
    """Whether somebody listens there; with a proxy only the proxy knows."""
    if any(os.environ.get(name) for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")):
        return True
    name, _, port = host.rpartition(":") if host.rpartition(":")[2].isdigit() else (host, "", "")
    for number in (int(port),) if port else (443, 80):
        try:
            socket.create_connection((name.strip("[]"), number), CONNECT_SECONDS).close()
        except OSError:
            continue
        return True
    return False
