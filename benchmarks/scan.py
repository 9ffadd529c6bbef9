"""Measure how fast output is scanned, against a naive loop over the same rules."""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from benchmarks.report import Report, Target
from unstuck.diagnosis.evidence import plain
from unstuck.diagnosis.rule import Rule
from unstuck.diagnosis.rule_files import catalog_rules
from unstuck.diagnosis.rulebook import RuleScanner
from unstuck.model.text import clean

MEGABYTE = 1_000_000
NAIVE_LINES = 2000
"""The naive loop is too slow for the whole log; it is timed on so many lines and reckoned up."""
TIMES_NAIVE, TIMES_PYTHON = 40, 10
FEW_LINES = 50
"""Few enough that the scanner, which keeps so many hits of one rule, leaves none out."""
REPEATS = 7
FAILURE = "src/cart.c:12:5: error: expected ';' before 'return'"
ERROR = "Traceback (most recent call last):\n" + '  File "app.py", line 1, in <module>\n' * 40 + "KeyError: 'price'\n"


def measure(*, megabytes: int = 10, say: Callable[[str], None]) -> Report:
    """Scan a log in both ways, and diagnose a short error in fresh processes."""
    say(f"Scanning {megabytes} MB in two ways.")
    rules = [rule for rule in catalog_rules() if rule.proves != "noise"]
    text = "\n".join(log(megabytes))
    size = len(text) / MEGABYTE
    lines = [plain(line) for line in clean(text)]
    scanner = RuleScanner(rules)
    middle = next(place for place, line in enumerate(lines) if line == FAILURE)
    around = lines[max(0, middle - FEW_LINES) : middle + FEW_LINES]
    same = {(hit.rule, hit.line) for hit in scanner.scan(around)} == naive_scan(rules, around)
    part = lines[:NAIVE_LINES]
    scan_seconds = _seconds(lambda: scanner.scan(lines))
    naive_seconds = _seconds(lambda: naive_scan(rules, part)) / len(part) * len(lines)
    bare = fresh([sys.executable, "-c", "pass"])
    ours = fresh([sys.executable, "-m", "unstuck", "diagnose", "--exit-code", "1"])
    return Report(
        figures={
            "megabytes": round(size, 1),
            "rules": len(rules),
            "stdlib_mb_s": round(size / scan_seconds, 1),
            "naive_mb_s": round(size / naive_seconds, 3),
            "same": same,
            "times_naive": round(naive_seconds / scan_seconds, 1),
            "bare_python_ms": round(bare * 1000, 1),
            "diagnose_ms": round(ours * 1000, 1),
            "times_python": round(ours / bare, 1),
        },
        lines=(
            f"{size:.1f} MB, {len(rules)} rules",
            f"scanner: {size / scan_seconds:.1f} MB/s, {naive_seconds / scan_seconds:.0f} times the naive loop",
            f"naive loop: {size / naive_seconds:.3f} MB/s (reckoned from {len(part)} lines)",
            f"same findings: {'yes' if same else 'NO'}",
            f"diagnose in a fresh process: {ours * 1000:.0f} ms, {ours / bare:.1f} times bare Python ({bare * 1000:.0f} ms)",
        ),
        targets=(
            Target(
                name="naive loop / scanner, upside down", value=scan_seconds / naive_seconds, at_most=1 / TIMES_NAIVE
            ),
            Target(name="fresh diagnose / bare Python", value=ours / bare, at_most=TIMES_PYTHON),
            Target(name="differing findings", value=float(not same), at_most=0.0),
        ),
    )


def log(megabytes: int) -> Iterator[str]:
    """Yield the lines of a long build log with a failure in its middle."""
    size, number, goal = 0, 0, megabytes * MEGABYTE
    has_failed = False
    while size < goal:
        number += 1
        line = SHAPES[number % len(SHAPES)].format(number)
        if not has_failed and size > goal // 2:
            line, has_failed = FAILURE, True
        size += len(line) + 1
        yield line


SHAPES = (
    "[{0}/9000] Building CXX object src/CMakeFiles/app.dir/module_{0}.cpp.o",
    "2026-11-15T18:42:{0} INFO request served path=/api/v1/items/{0} status=200 duration=12ms",
    "test_module_{0}::test_case_{0} PASSED",
    "npm http fetch GET 200 https://registry.example/package-{0} 12ms (cache hit)",
    "   Compiling crate-{0} v0.{0}.1",
    "Downloading https://repo.example/maven2/org/acme/lib-{0}/1.0/lib-{0}-1.0.jar (43 kB at 1.2 MB/s)",
)


def naive_scan(rules: Sequence[Rule], lines: Sequence[str]) -> set[tuple[str, int]]:
    """Try every pattern on every line; return the rule and the line of each match."""
    patterns = [(rule.id, re.compile(rule.pattern, re.ASCII)) for rule in rules]
    return {(name, place) for place, line in enumerate(lines) for name, pattern in patterns if pattern.search(line)}


def fresh(argv: Sequence[str]) -> float:
    """Return the best time of a fresh process that is given a short error."""
    text = ERROR[:2048]
    return min(
        _seconds(lambda: subprocess.run(argv, input=text, capture_output=True, text=True, check=True))
        for _ in range(REPEATS)
    )


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
