"""Measure what a long plan costs: reading it, against `wc -l`; and ticking or extending it, against reading it."""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from unstuck.adapters.plans.plan_file import open_plan
from unstuck.benches.report import Report, Target
from unstuck.core.plan import Insertion

TASKS, REPEATS = 5000, 7
SECTION = 50
READING, EDITING = 20.0, 0.1
READ = "from pathlib import Path\nfrom unstuck.adapters.plans.plan_file import open_plan\n"


def measure(*, tasks: int = TASKS, repeats: int = REPEATS, say: Callable[[str], None] = print) -> Report:
    """Write a plan, read it in fresh processes, then edit it in this one; return the medians."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tasks.md"
        path.write_text(plan(tasks), encoding="utf-8")
        say(f"Reading a plan of {tasks} tasks {repeats} times in fresh processes ...")
        counting = _median(lambda: _run(["wc", "-l", str(path)]), repeats)
        starting = _median(lambda: _run([sys.executable, "-c", READ]), repeats)
        reading = _median(lambda: _run([sys.executable, "-c", f"{READ}open_plan(Path({str(path)!r})).read()"]), repeats)
        editing = _edit(path, tasks, repeats)
    figures = {"tasks": tasks, "wc_ms": counting, "start_ms": starting, "read_ms": reading, **editing}
    lines = [
        f"  {counting:8.1f} ms  wc -l",
        f"  {starting:8.1f} ms  start-up, without reading",
        f"  {reading:8.1f} ms  reading, start-up included",
        *(f"  {editing[f'{name}_ms']:8.1f} ms  {name}, in one process" for name in ("reread", "tick", "insert")),
    ]
    targets = (
        Target(name="reading, beyond start-up, in wc -l", value=(reading - starting) / counting, at_most=READING),
        Target(name="a tick, in readings", value=editing["tick_ms"] / editing["reread_ms"], at_most=EDITING),
        Target(name="an insertion, in readings", value=editing["insert_ms"] / editing["reread_ms"], at_most=EDITING),
    )
    return Report(figures=figures, lines=tuple(lines), targets=targets)


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
    seconds: dict[str, list[float]] = {"reread": [], "tick": [], "insert": []}
    for number in range(1, repeats + 1):
        fix = f"{middle}.{number}"
        block = f"- [ ] {fix} [FIX {middle}] Fix: it\n  - **Verify**: `test -f x`\n"
        seconds["reread"].append(_milliseconds(opened.read))
        ticks = {middle: "complete" if number % 2 else "pending"}
        new = Insertion(blocks={fix: block}, beside=middle)
        seconds["tick"].append(_milliseconds(partial(opened.mark, ticks)))
        seconds["insert"].append(_milliseconds(partial(opened.insert, new)))
    return {f"{name}_ms": statistics.median(taken) for name, taken in seconds.items()}


def _median(act: Callable[[], object], repeats: int) -> float:
    return statistics.median(_milliseconds(act) for _ in range(repeats))


def _milliseconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return 1000 * (time.perf_counter() - began)


def _run(argv: Sequence[str]) -> None:
    subprocess.run(argv, check=True, capture_output=True)
