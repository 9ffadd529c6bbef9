"""Measure what a long plan costs: reading it, beyond starting a process, and ticking or extending it, against reading it.

Edits are compared by processor time, since how long one waits for the disk is not for the plan to say; what the clock
says of them is shown beside it. An edit finds every task anew, and reads no fields.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.report import BenchBroken, Report, Target
from unstuck.model.plan import Insertion
from unstuck.plans.plan_file import open_plan

TASKS, REPEATS = 5000, 25
SECTION = 50
READING, EDITING = 1.0, 1.0
EDITS = ("reread", "tick", "insert")
READ = (
    "import gc\nfrom pathlib import Path\nfrom unstuck.__main__ import FEW_CIRCLES\n"
    "gc.set_threshold(FEW_CIRCLES)\nfrom unstuck.plans.plan_file import open_plan\n"
)


def measure(*, tasks: int = TASKS, repeats: int = REPEATS, say: Callable[[str], None] = print) -> Report:
    """Write a plan, read it in fresh processes, then edit it in this one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tasks.md"
        path.write_text(plan(tasks), encoding="utf-8")
        say(f"Reading a plan of {tasks} tasks {repeats} times in fresh processes ...")
        read = f"{READ}plan = open_plan(Path({str(path)!r})).read()"
        rounds = [[_clock([sys.executable, "-c", code]) for code in (READ, read)] for _ in range(repeats)]
        starting, reading = (statistics.median(taken) for taken in zip(*rounds, strict=True))
        editing = _edit(path, tasks, repeats)
    fresh = {"start_ms": starting, "read_ms": reading}
    lines = [
        f"  {starting:8.1f} ms  start-up, without reading",
        f"  {reading:8.1f} ms  reading, start-up included",
        *(
            f"  {editing[f'{name}_ms']:8.1f} ms  {name}, in one process, processor time ({clock:.1f} ms by the clock)"
            for name in EDITS
            for clock in [editing[f"{name}_clock_ms"]]
        ),
    ]
    targets = (
        Target(name="reading, beyond start-up, in seconds", value=(reading - starting) / 1000, at_most=READING),
        Target(name="a tick, in readings", value=editing["tick_ms"] / editing["reread_ms"], at_most=EDITING),
        Target(name="an insertion, in readings", value=editing["insert_ms"] / editing["reread_ms"], at_most=EDITING),
    )
    return Report(figures={"tasks": tasks, **fresh, **editing}, lines=tuple(lines), targets=targets)


def plan(tasks: int) -> str:
    """Write a plan as people have them: sections, fields, commands."""
    parts = ["# Tasks: a long plan\n\n"]
    for number in range(tasks):
        section, place = number // SECTION + 1, number % SECTION + 1
        parts.append(f"## Phase {section}\n\n" if place == 1 else "")
        parts.append(
            f"- [ ] {section}.{place} Do thing {number}\n  - **Do**: Create `src/m{number}.py`\n"
            f"  - **Files**: `src/m{number}.py`\n  - **Verify**: `test -f src/m{number}.py`\n"
            f"  - **Commit**: `feat(m): add thing {number}`\n\n"
        )
    return "".join(parts)


def _edit(path: Path, tasks: int, repeats: int) -> dict[str, float]:
    opened = open_plan(path)
    middle = f"{tasks // 2 // SECTION + 1}.1"
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in EDITS}
    for number in range(1, repeats + 1):
        fix = f"{middle}.{number}"
        block = f"- [ ] {fix} [FIX {middle}] Fix: it\n  - **Verify**: `test -f x`\n"
        taken["reread"].append(_milliseconds(lambda: tuple(opened.read().tasks)))
        ticks = {middle: "complete" if number % 2 else "pending"}
        new = Insertion(blocks={fix: block}, beside=middle)
        taken["tick"].append(_milliseconds(partial(opened.mark, ticks)))
        taken["insert"].append(_milliseconds(partial(opened.insert, new)))
    computed = {f"{name}_ms": statistics.median(spent for spent, _ in each) for name, each in taken.items()}
    return computed | {f"{name}_clock_ms": statistics.median(past for _, past in each) for name, each in taken.items()}


def _milliseconds(act: Callable[[], object]) -> tuple[float, float]:
    """Return how long something computes, and how long it takes by the clock."""
    computed, began = time.process_time(), time.perf_counter()
    act()
    return 1000 * (time.process_time() - computed), 1000 * (time.perf_counter() - began)


def _clock(argv: Sequence[str]) -> float:
    """Run a command, and return the milliseconds that it took."""
    began = time.perf_counter()
    ended = subprocess.run(argv, stdout=subprocess.DEVNULL, check=False)
    if ended.returncode:
        raise BenchBroken(f"{argv[0]} ended with {ended.returncode}.", hint="Its message is above.")
    return 1000 * (time.perf_counter() - began)
