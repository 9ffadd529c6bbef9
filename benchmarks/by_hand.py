"""Write down every process that a run starts, and start the same ones again by hand, task after task."""

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import BenchBroken

RECORDER = Path(__file__).with_name("recorder.py")
OBJECT_ID = re.compile(r"\b[0-9a-f]{40}\b")
STARTER = "import os, sys; sys.exit(os.spawnvp(os.P_WAIT, sys.argv[1], sys.argv[1:]))"
"""Stands for the shim: the same two process starts, an interpreter and the command under it, and nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command as the supervisor called it."""

    at: float
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    stdin: str
    stdout: str
    exit_code: int
    shimmed: bool
    """Whether it ran under the shim: then an interpreter was started as well."""

    def __str__(self) -> str:
        """Return the command as people read it: object ids cut, and without the settings that all our git commands carry."""
        words = list(self.argv)
        while len(words) > 2 and words[1] == "-c" and words[0] == "git":  # noqa: PLR2004  # name, -c, setting
            del words[1:3]
        line = OBJECT_ID.sub(lambda found: found[0][:7], shlex.join(words))
        return f"python -I -S shim.py, and under it: {line}" if self.shimmed else line


def put_recorders(folder: Path, record: Path, programs: Iterable[str]) -> None:
    """Fill a folder for the front of PATH with scripts that record the calls of these programs."""
    folder.mkdir()
    for program in programs:
        real = shutil.which(program)
        assert real is not None, program
        script = folder / program
        line = shlex.join([sys.executable, "-I", "-S", str(RECORDER), str(record), real])
        script.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
        script.chmod(0o755)


def read_record(record: Path, supervisor: int) -> tuple[Step, ...]:
    """Read what the recorders wrote, in the order of the calls."""
    steps = []
    for line in record.read_text(encoding="ascii").splitlines():
        said = ast.literal_eval(line)
        parent = said.pop("parent")
        steps.append(Step(**said, shimmed=parent != supervisor))
    return tuple(sorted(steps, key=lambda step: step.at))


class ByHand:
    """One task's commands, to be run again for further tasks in the repository that they were recorded in.

    Object ids differ from task to task. What a command printed when it was recorded and what it prints now tells which
    id stands for which; the later commands are changed accordingly. A task begins where the one before it ended.
    """

    def __init__(self, steps: Sequence[Step], task: str, tip: str) -> None:
        self.steps = steps
        self._base, self._landed = _commits(steps)
        self._before = _looked_from(steps, self._base)
        self._tip = self._last = tip
        self.spent = [0.0] * len(steps)
        """Seconds per command, over all tasks. What we do between the commands is not counted."""
        self.tasks = 0
        self._task = task
        self._names = re.compile(rf"\b{re.escape(task)}\b|{OBJECT_ID.pattern}")

    def run(self, tasks: int) -> float:
        """Run the commands for so many tasks; return the seconds that they took."""
        before = sum(self.spent)
        for _ in range(tasks):
            self._run_task()
        return sum(self.spent) - before

    def _run_task(self) -> None:
        self.tasks += 1
        now = {self._task: f"{self._task}x{self.tasks}", self._before: self._last, self._base: self._tip}
        for place, step in enumerate(self.steps):
            argv = [self._renamed(word, now) for word in step.argv]
            out, seconds = _run(step, argv, self._renamed(step.stdin, now))
            self.spent[place] += seconds
            now = dict(zip(OBJECT_ID.findall(step.stdout), OBJECT_ID.findall(out), strict=False)) | now
        self._last, self._tip = self._tip, now.get(self._landed, self._tip)

    def _renamed(self, text: str, now: Mapping[str, str]) -> str:
        return self._names.sub(lambda old: now.get(old[0], old[0]), text)


def _commits(steps: Iterable[Step]) -> tuple[str, str]:
    """Return the commit that the recorded task began with, and the one that it landed."""
    landing = (step for step in steps if "commit-tree" in step.argv)
    return next(((step.argv[step.argv.index("-p") + 1], step.stdout.strip()) for step in landing), ("", ""))


def _looked_from(steps: Iterable[Step], base: str) -> str:
    """Return the commit since which the recorded task looked at what landed before it: the tip of the task before."""
    ranges = (re.search(rf"({OBJECT_ID.pattern})\.\.{base}", word) for step in steps for word in step.argv)
    return next((found[1] for found in ranges if found is not None), base)


def _run(step: Step, argv: Sequence[str], given: str) -> tuple[str, float]:
    """Run one command; return what it printed, and its seconds. One that ends in another way than recorded is a fault."""
    whole = [sys.executable, "-I", "-S", "-c", STARTER, *argv] if step.shimmed else argv
    environment, stdin = os.environ | step.env, given.encode("utf-8", "surrogateescape")
    began = time.perf_counter()
    done = subprocess.run(whole, cwd=step.cwd, env=environment, input=stdin, capture_output=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode != step.exit_code:
        raise BenchBroken(
            f"By hand, `{shlex.join(argv)}` ended with exit code {done.returncode} instead of {step.exit_code}: "
            f"{done.stderr.decode(errors='replace').strip()}",
            hint="This is a fault of the benchmark; its figures would mean nothing.",
        )
    return done.stdout.decode("utf-8", "surrogateescape"), seconds
