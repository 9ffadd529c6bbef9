"""How fast output is scanned: the naive loop over the same rules, the standard library's scanner, and google-re2."""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from benchmarks.report import Report, Target
from unstuck.diagnosis.evidence import plain
from unstuck.diagnosis.rule import Rule
from unstuck.diagnosis.rule_files import catalog_rules
from unstuck.diagnosis.rulebook import fast_scanner
from unstuck.diagnosis.scanning import ReScanner
from unstuck.model.text import clean

MEGABYTE = 1_000_000
NAIVE_LINES = 2000
"""The naive loop is too slow for the whole log; it is timed on so many lines and reckoned up."""
TIMES_NAIVE, TIMES_PYTHON = 60, 10
REPEATS = 7
ERROR = "Traceback (most recent call last):\n" + '  File "app.py", line 1, in <module>\n' * 40 + "KeyError: 'price'\n"


def measure(*, megabytes: int = 10, say: Callable[[str], None]) -> Report:
    """Scan a log in all three ways, and diagnose a short error in fresh processes."""
    say(f"Scanning {megabytes} MB in three ways.")
    rules = [rule for rule in catalog_rules() if rule.proves != "noise"]
    text = "\n".join(log(megabytes))
    size = len(text) / MEGABYTE
    lines = [plain(line) for line in clean(text)]
    fast, simple = fast_scanner(rules), ReScanner(rules)
    fast.scan(lines[:1000])
    quick, slow = _seconds(lambda: fast.scan(lines)), _seconds(lambda: simple.scan(lines))
    naive = _seconds(lambda: naive_scan(rules, lines[:NAIVE_LINES])) / NAIVE_LINES * len(lines)
    same = fast.scan(lines) == simple.scan(lines)
    bare, ours = (
        fresh([sys.executable, "-c", "pass"]),
        fresh([sys.executable, "-m", "unstuck", "diagnose", "--exit-code", "1"]),
    )
    return Report(
        figures={
            "megabytes": round(size, 1),
            "rules": len(rules),
            "re2_mb_s": round(size / quick, 1),
            "stdlib_mb_s": round(size / slow, 1),
            "naive_mb_s": round(size / naive, 3),
            "same": same,
            "times_naive": round(naive / quick, 1),
            "bare_python_ms": round(bare * 1000, 1),
            "diagnose_ms": round(ours * 1000, 1),
            "times_python": round(ours / bare, 1),
        },
        lines=(
            f"{size:.1f} MB, {len(rules)} rules",
            f"{type(fast).__name__}: {size / quick:.1f} MB/s, {naive / quick:.0f} times the naive loop",
            f"standard library: {size / slow:.1f} MB/s, {naive / slow:.0f} times the naive loop",
            f"naive loop: {size / naive:.3f} MB/s (reckoned from {NAIVE_LINES} lines)",
            f"same findings: {'yes' if same else 'NO'}",
            f"diagnose in a fresh process: {ours * 1000:.0f} ms, {ours / bare:.1f} times bare Python ({bare * 1000:.0f} ms)",
        ),
        targets=(
            Target(name="naive loop / fast scan, upside down", value=quick / naive, at_most=1 / TIMES_NAIVE),
            Target(name="fresh diagnose / bare Python", value=ours / bare, at_most=TIMES_PYTHON),
            Target(name="differing findings", value=float(not same), at_most=0.0),
        ),
    )


def log(megabytes: int) -> Iterator[str]:
    """Yield the lines of a long build log with a failure in its middle."""
    size, number, goal = 0, 0, megabytes * MEGABYTE
    told = False
    while size < goal:
        number += 1
        line = SHAPES[number % len(SHAPES)].format(number)
        if not told and size > goal // 2:
            line, told = "src/cart.c:12:5: error: expected ';' before 'return'", True
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


def naive_scan(rules: Sequence[Rule], lines: Sequence[str]) -> int:
    """Try every pattern on every line."""
    patterns = [re.compile(rule.pattern, re.ASCII) for rule in rules]
    return sum(1 for line in lines for pattern in patterns if pattern.search(line))


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
