"""Edge: run trials: set up, start the supervisor, wait for it or the deadline, end what it left, score."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.supervisor.arena import MARK, Trial, belongings, set_up
from benchmarks.supervisor.project import Project
from benchmarks.supervisor.score import Ended, Result, before, score
from benchmarks.supervisor.supervisors import Supervisor
from benchmarks.supervisor.world import World

PROC = Path("/proc")
GRACE = 1.0
"""Seconds in which what was told to end may do so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What holds for all trials."""

    patience: float
    flood: int
    deadline: float
    jobs: int
    keep: Path | None = None
    """A folder where trials are left to be looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What is run once."""

    supervisor: Supervisor
    project: Project
    pathology: str
    seed: int


def contest(cells: Iterable[Cell], rules: Rules, seen: Callable[[Result], None]) -> list[Result]:
    """Run all cells, several at a time; the results come in the order of the cells."""

    def one(cell: Cell) -> Result:
        result = run(cell, rules)
        seen(result)
        return result

    with ThreadPoolExecutor(rules.jobs) as pool:
        return list(pool.map(one, cells))


def run(cell: Cell, rules: Rules) -> Result:
    """Run one trial."""
    name = f"{cell.supervisor.name.replace(':', '-')}-{cell.pathology}-{cell.project.name}-{cell.seed}-"
    if rules.keep is not None:
        rules.keep.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=name, dir=rules.keep)).resolve()
    world = World(
        folder=str(folder),
        repository=str(folder / "repo"),
        project=cell.project.name,
        pathology=cell.pathology,
        seed=cell.seed,
        patience=rules.patience,
        flood=rules.flood,
        commits=cell.supervisor.commits,
    )
    trial = Trial(supervisor=cell.supervisor.name, project=cell.project, world=world, folder=folder)
    try:
        set_up(trial)
        cell.supervisor.prepare(trial)
        trial.commit("Set the supervisor up")
        belongings(trial)
        had = before(trial)
        ended = supervise(cell.supervisor.command(trial), trial, rules.deadline)
        output = (folder / "supervisor.log").read_text(encoding="utf-8", errors="replace")
        return score(trial, had, cell.supervisor.told(trial, output), ended)
    finally:
        if rules.keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def supervise(argv: list[str], trial: Trial, deadline: float) -> Ended:
    """Start the supervisor and wait for it; at the deadline it is ended."""
    began = time.monotonic()
    with (trial.folder / "supervisor.log").open("wb") as log:
        process = subprocess.Popen(
            argv,
            cwd=trial.repository,
            env=trial.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    code, cpu = _wait(process, began + deadline)
    wall = time.monotonic() - began
    return Ended(code=code, cpu=cpu, wall=wall, orphans=_end_what_is_left(trial, counted=code is not None))


def _wait(process: subprocess.Popen[bytes], until: float) -> tuple[int | None, float]:
    """Wait for a process; return its exit code, None if it had to be killed, and the processor time of its family."""
    killed = False
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return None if killed else process.returncode, used.ru_utime + used.ru_stime
        if time.monotonic() > until and not killed:
            killed = True
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.05)


def _end_what_is_left(trial: Trial, *, counted: bool) -> int:
    """End all processes of a trial; return how many were left by a supervisor that ended by itself."""
    until = time.monotonic() + GRACE
    while (left := _marked(trial)) and time.monotonic() < until:
        time.sleep(0.05)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return len(left) if counted else 0


def _marked(trial: Trial) -> list[int]:
    """Return the living processes that carry the mark of a trial."""
    mark = f"{MARK}={trial.folder}".encode()
    found = []
    for path in PROC.glob("[0-9]*/environ"):
        try:
            carries = mark in path.read_bytes().split(b"\0")
            alive = b") Z" not in (path.parent / "stat").read_bytes()
        except OSError:
            continue
        if carries and alive:
            found.append(int(path.parent.name))
    return found
