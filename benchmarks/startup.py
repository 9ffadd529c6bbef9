"""Measure how long the command line takes to start, against a bare interpreter."""

import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.report import Report, Target

REPEATS = 30
RATIO = 8.0
COSTLIEST = 8
BARE = "python -c pass"
IMPORT = re.compile(r"import time:\s*(\d+) \|\s*(\d+) \| ( *)(\S+)")


def measure(*, repeats: int = REPEATS, say: Callable[[str], None] = print) -> Report:
    """Start each command in turn, many times; return the medians and which imports cost most."""
    script = Path(sys.executable).with_name("unstuck")
    program = [sys.executable, *([str(script)] if script.exists() else ["-m", "unstuck"])]
    commands = {
        BARE: [sys.executable, "-c", "pass"],
        "unstuck --version": [*program, "--version"],
        "unstuck --help": [*program, "--help"],
    }
    say(f"Starting {len(commands)} commands {repeats} times in turn ...")
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, argv in commands.items():
            seconds[name].append(_seconds(argv))
    medians = {name: statistics.median(taken) for name, taken in seconds.items()}
    ratios = {
        name: statistics.median(one / bare for one, bare in zip(seconds[name], seconds[BARE], strict=True))
        for name in commands
    }
    imports = _costliest_imports([sys.executable, "-X", "importtime", *program[1:], "--help"])
    lines = [f"  {1000 * medians[name]:6.1f} ms  {ratios[name]:4.1f} x  {name}" for name in commands]
    lines += ["", "Costliest imports of --help, each with what it loads in turn:"]
    lines += [f"  {milliseconds:6.1f} ms  {name}" for name, milliseconds in imports]
    return Report(
        figures={
            "commands": {name: {"ms": 1000 * medians[name], "ratio": ratios[name]} for name in commands},
            "imports": [{"module": name, "ms": milliseconds} for name, milliseconds in imports],
        },
        lines=tuple(lines),
        targets=tuple(Target(name=name, value=ratios[name], at_most=RATIO) for name in commands if name != BARE),
    )


def _seconds(argv: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run(argv, check=True, capture_output=True)
    return time.perf_counter() - began


def _costliest_imports(argv: Sequence[str]) -> list[tuple[str, float]]:
    said = subprocess.run(argv, check=True, capture_output=True, text=True).stderr
    found = [(line[4], int(line[2]) / 1000) for line in IMPORT.finditer(said)]
    return sorted(found, key=lambda one: -one[1])[:COSTLIEST]
