"""Measure what running side by side costs: independent phases of a known length, against the ideal wall clock."""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.report import BenchBroken, Report, Target

PHASES, SECONDS, PARALLEL = 8, 5.0, 4
RATIO = 1.25
CHECK = "test -s $UNSTUCK_TASK.txt"


def measure(
    *, phases: int = PHASES, seconds: float = SECONDS, parallel: int = PARALLEL, say: Callable[[str], None] = print
) -> Report:
    """Run a superplan of independent phases whose agent sleeps; compare with as many sleeps side by side."""
    with tempfile.TemporaryDirectory(prefix="unstuck-bench-") as scratch:
        root = Path(scratch) / "project"
        make_repository(root, phases)
        say(f"Running {phases} phases of {seconds:g} s, {parallel} at a time ...")
        taken, told = _run(root, seconds, parallel)
    landed = [task for task in told["tasks"].values() if task["status"] == "complete"]
    if len(landed) != phases:
        raise BenchBroken(f"{len(landed)} of {phases} phases landed.", hint="See whether `unstuck demo` works here.")
    ideal = math.ceil(phases / parallel) * seconds
    lines = (
        f"  {phases} phases of {seconds:g} s, {parallel} at a time",
        f"  {ideal:7.2f} s  ideal",
        f"  {taken:7.2f} s  from the command to its end, {1000 * (taken - ideal) / phases:.0f} ms per phase more",
    )
    return Report(
        figures={"phases": phases, "seconds": seconds, "parallel": parallel, "ideal_s": ideal, "taken_s": taken},
        lines=lines,
        targets=(Target(name="wall clock / ideal", value=taken / ideal, at_most=RATIO),),
    )


def make_repository(root: Path, phases: int) -> None:
    """Make a repository with a superplan whose phases all may run side by side."""
    names = [f"1{_letters(number)}" for number in range(phases)]
    rows = [
        f"| {name} | Part {name} | - | {', '.join(one for one in names if one != name) or '-'} | 1 | ⬜ |"
        for name in names
    ]
    sections = [f"### Phase {name}: Part {name}\n\n#### Definition of Done\n- [ ] `{CHECK}` passes\n" for name in names]
    head = "| Phase | Name | Depends On | Parallel With | Estimate | Status |\n|---|---|---|---|---|---|\n"
    root.mkdir()
    (root / "plan.md").write_text("# Bench\n\n" + head + "\n".join([*rows, "", *sections]), encoding="utf-8")
    for arguments in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "plan.md"),
        ("-c", "user.name=Bench", "-c", "user.email=bench@localhost", "commit", "--quiet", "-m", "Start"),
    ):
        subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)


def _run(root: Path, seconds: float, parallel: int) -> tuple[float, dict[str, Any]]:
    """Run the plan in a process of its own; return the wall clock and what it said."""
    argv = [sys.executable, "-P", "-m", "unstuck", "run", "plan.md", "--agent", agent_of(seconds)]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("UNSTUCK_")}
    began = time.perf_counter()
    done = subprocess.run(
        [*argv, "--parallel", str(parallel), "--json", "--quiet"],
        cwd=root,
        env=inherited,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    taken = time.perf_counter() - began
    if done.returncode != 0:
        raise BenchBroken(
            f"The run ended with exit code {done.returncode}: {done.stderr.strip()[-500:]}",
            hint="See whether `unstuck demo` works here.",
        )
    return taken, json.loads(done.stdout)


def agent_of(seconds: float) -> str:
    """Return the command of an agent that does the work of any of these phases, and takes its time."""
    return f"bash -c 'sleep {seconds:g} && echo done > $UNSTUCK_TASK.txt'"


def _letters(number: int) -> str:
    """Return a phase's letters: A to Z, then AA and on."""
    above, letter = divmod(number, 26)
    return (_letters(above - 1) if above else "") + chr(ord("A") + letter)
