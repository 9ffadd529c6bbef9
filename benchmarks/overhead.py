"""Measure what the supervisor costs per task: a run with no-op agent and checks, against its own commands by hand.

By hand are the agent's command and the check, each under an interpreter as under the shim, and every git command that a
task causes, with its arguments, settings and input, one after the other: what a careful person would type to give a task a
clean clone, to write down what was made of it, to check that in another one, and to land it. So a git command that we save
is saved on both sides: only what the supervisor does itself, and what it lets wait, makes the ratio. Both repositories are
alike: their files are older than their index, as those of any checkout that was not made this second.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from benchmarks.by_hand import ByHand, put_recorders, read_record
from benchmarks.report import BenchBroken, Report, Target
from benchmarks.supervised import ENDED

SUPERVISED = Path(__file__).with_name("supervised.py")
SIZES = (10, 100, 1000)
FILES = 2000
RUNS = {10: 5}
"""Runs by size, one where none is given: a short run says little by itself."""
BLOCK, BLOCKS = 10, 10
"""Tasks that are compared with as many by hand, and how often that is done in one run."""

SOME_TIME_AGO = 1_000_000_000

RATIO, GROWTH, MEMORY_MB = 1.2, 1.5, 150.0
GIT_PROCESSES = 14

AGENT, PROGRAMS = "tee work.txt", ("git", "bash", "tee")
"""The agent writes its brief into a file: every task changes one file, and nothing else is done."""
CHECK = "test -s work.txt"
RECORDED = 3
"""Tasks of the recorded run; the second shows what a task in the middle of a run does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """One task of a supervised run."""

    task: str
    at: float
    """By the journal."""
    seconds: float
    """Since we let the supervisor go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Some tasks in a row, and as many by hand between them; in seconds per task."""

    ours: float
    by_hand: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """All runs with one number of tasks. Times are milliseconds per task; the ratio is the median over all blocks."""

    tasks: int
    runs: int
    ours_ms: float
    by_hand_ms: float
    ratio: float
    peak_mb: float


def measure(
    *, sizes: Sequence[int] = SIZES, files: int = FILES, runs: int | None = None, say: Callable[[str], None] = print
) -> Report:
    """Record one task's commands, then run plans with the same commands by hand in between."""
    with tempfile.TemporaryDirectory(prefix="unstuck-bench-") as scratch:
        place = Path(scratch)
        say(f"Recording the commands of one task in a repository of {files} files ...")
        by_hand = record_task(place, files)
        measured: list[Size] = []
        for size in sorted(sizes):
            count = runs or RUNS.get(size, 1)
            about = f", about {measured[-1].ours_ms * size * count / 60_000:.1f} minutes" if measured else ""
            say(f"Running {count} x {size} tasks{about} ...")
            done = [run_plan(place / f"{size}-{n}", size, files, by_hand) for n in range(count)]
            measured.append(_medians(size, done))
    return summed_up(measured, by_hand, files=files)


def record_task(place: Path, files: int) -> ByHand:
    """Run a short plan with recorders on PATH; return the commands of a task in its middle."""
    root, record = place / "by-hand", place / "record.jsonl"
    make_repository(root, files=files, tasks=RECORDED)
    put_recorders(place / "bin", record, PROGRAMS)
    with Supervised(root, {"PATH": f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"}) as run:
        before, middle, _ = run.landings()
    steps = [step for step in read_record(record, run.pid) if before.at < step.at < middle.at]
    return ByHand(
        steps, middle.task, _git(root, "for-each-ref", "--format=%(objectname)", "refs/heads/unstuck").strip()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One supervised run."""

    ours: float
    """Seconds per task over all tasks but the first, which makes the worktree."""
    blocks: tuple[Block, ...]
    peak_mb: float


def run_plan(root: Path, tasks: int, files: int, by_hand: ByHand) -> Measured:
    """Run a plan on a new repository; after each task of a block, do as much by hand while the supervisor waits."""
    make_repository(root, files=files, tasks=tasks)
    os.sync()
    every = max(1, tasks // (BLOCK * BLOCKS))
    ours, pairs = [], []
    with Supervised(root) as run:
        for place, landing in enumerate(run.landings()):
            if place == 0:
                continue
            ours.append(landing.seconds)
            if (place // BLOCK) % every == 0:
                pairs.append((landing.seconds, by_hand.run(1)))
    return Measured(ours=statistics.mean(ours), blocks=tuple(_blocks(pairs)), peak_mb=run.peak_mb)


class Supervised:
    """A run of ours in a process of its own, which waits after every landing until we take the next one."""

    def __init__(self, root: Path, env: Mapping[str, str] | None = None) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("UNSTUCK_")}
        self._process = subprocess.Popen(
            [sys.executable, str(SUPERVISED), "tasks.md", AGENT],
            cwd=root,
            env={**inherited, **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        self.peak_mb = 0.0
        """Known at the end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate()

    def landings(self) -> Iterator[Landing]:
        """Yield each task as it lands. While the caller looks at it, the supervisor stands still."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        began = time.perf_counter()
        for line in self._process.stdout:
            word, *said = line.split()
            seconds = time.perf_counter() - began
            if word == ENDED:
                self.peak_mb = int(said[0]) / 1024
                break
            yield Landing(task=said[0], at=float(said[1]), seconds=seconds)
            began = time.perf_counter()
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        if self._process.wait() != 0:
            raise BenchBroken(
                f"The supervised run ended with exit code {self._process.returncode}.",
                hint="See whether `unstuck demo` works here.",
            )


def make_repository(root: Path, *, files: int, tasks: int) -> None:
    """Make a repository with so many files of 50 lines in 50 folders, and a plan of so many small tasks."""
    root.mkdir()
    plan = [f"- [ ] bench{n} Write a line\n  - **Verify**: `{CHECK}`\n" for n in range(1, tasks + 1)]
    contents = {f"d{n % 50}/f{n}.txt": f"This is a line of file {n}.\n" * 50 for n in range(files)}
    lines = ["commit refs/heads/main", "committer Bench <bench@localhost> 0 +0000", "data 0"]
    for name, text in (contents | {"tasks.md": "# Bench\n\n" + "".join(plan)}).items():
        lines += [f"M 644 inline {name}", f"data {len(text)}", text]
    _git(root, "init", "--quiet", "--initial-branch=main")
    _git(root, "fast-import", "--quiet", stdin="\n".join([*lines, ""]))
    _git(root, "reset", "--quiet", "--hard")
    for file in contents:  # git reads every file that is as young as its index: in one of the repositories, or in both
        os.utime(root / file, (SOME_TIME_AGO, SOME_TIME_AGO))
    _git(root, "update-index", "-q", "--refresh")


def _git(root: Path, *arguments: str, stdin: str = "") -> str:
    return subprocess.run(["git", *arguments], cwd=root, input=stdin, text=True, check=True, capture_output=True).stdout


def _blocks(pairs: Sequence[tuple[float, float]]) -> Iterator[Block]:
    """Sum pairs up in blocks: what happens once a second, such as writing the state files, is in the mean of each."""
    for start in range(0, len(pairs), BLOCK):
        ours, theirs = zip(*pairs[start : start + BLOCK], strict=True)
        yield Block(ours=statistics.mean(ours), by_hand=statistics.mean(theirs))


def _medians(tasks: int, runs: Sequence[Measured]) -> Size:
    blocks = [block for run in runs for block in run.blocks]
    return Size(
        tasks=tasks,
        runs=len(runs),
        ours_ms=1000 * statistics.median(run.ours for run in runs),
        by_hand_ms=1000 * statistics.median(block.by_hand for block in blocks),
        ratio=statistics.median(block.ours / block.by_hand for block in blocks),
        peak_mb=max(run.peak_mb for run in runs),
    )


def summed_up(sizes: Sequence[Size], by_hand: ByHand, *, files: int) -> Report:
    """Say what all sizes came to, and whether that is good enough."""
    first, last = sizes[0], sizes[-1]
    growth = last.ratio / first.ratio
    steps = [
        {"command": str(step), "ms": 1000 * spent / by_hand.tasks}
        for step, spent in zip(by_hand.steps, by_hand.spent, strict=True)
    ]
    calls = sum(step.argv[0] == "git" for step in by_hand.steps)
    targets = (
        Target(name="ours / by hand", value=max(size.ratio for size in sizes), at_most=RATIO),
        Target(name="git processes per landed task", value=calls, at_most=GIT_PROCESSES),
        Target(name=f"growth of it, {first.tasks} to {last.tasks} tasks", value=growth, at_most=GROWTH),
        Target(name="peak memory of the supervisor, MB", value=max(size.peak_mb for size in sizes), at_most=MEMORY_MB),
    )
    figures = {"files": files, "commands": steps, "sizes": [asdict(size) for size in sizes], "growth": growth}
    return Report(figures=figures, lines=tuple(_lines(sizes, steps, files)), targets=targets)


def _lines(sizes: Sequence[Size], steps: Sequence[dict[str, Any]], files: int) -> Iterator[str]:
    yield f"One task causes these commands (milliseconds by hand; {files} files):"
    yield from (f"  {step['ms']:7.1f}  {step['command']}" for step in steps)
    yield ""
    yield "  tasks   runs  ours/task  by hand/task  ratio  peak memory"
    for size in sizes:
        yield (
            f"  {size.tasks:5}  {size.runs:5}  {size.ours_ms:6.1f} ms  {size.by_hand_ms:9.1f} ms"
            f"  {size.ratio:5.2f}  {size.peak_mb:8.1f} MB"
        )
