"""Read the test runners of compiled languages: go, cargo, nextest, ctest, XCTest, GoogleTest, surefire, gradle and dotnet."""

import json
import re
from collections.abc import Sequence

from unstuck.diagnosis.reading import FailedTest, Reading, folded, numbers, place, summed, until

_GO_CASE = re.compile(r"^ *--- (FAIL|PASS|SKIP): (\S+)")
_GO_NOW = re.compile(r"^=== (?:RUN|CONT|NAME) +(\S+)")
_GO_SAYS = re.compile(r"^ +(\S+\.go):(\d+): ?(.*)$")
_GO_PACKAGE = re.compile(r"^(?:ok  |FAIL|---) ?\t(\S+)(?:\t| \[|$)")
_GO_BROKEN = re.compile(r"^FAIL\t(\S+) \[(?:build|setup) failed\]")
_GO_NONE = re.compile(r"^\?   \t\S+\t\[no test files\]")
_GO_PANIC = re.compile(r"^panic: (.*)")
_GO_STACK = re.compile(r"^\t(\S+_test\.go):(\d+) ")
_TESTIFY = re.compile(r"^\s+Error: +\t?(\S.*)$")

_CARGO_COUNT = re.compile(r"(?P<count>\d+) (?P<word>passed|failed|ignored)")
_CARGO_CASE = re.compile(r"^---- (\S.*?) stdout ----$")
_CARGO_RED = re.compile(r"^(?:test )?(\S.*?)(?: - should panic)? (?:\.\.\.|---) FAILED$")
_CARGO_END = re.compile(r"^---- .* stdout ----$|^failures:$|^test result: |^stack backtrace:|^note: ")
_PANICKED = re.compile(r"panicked at (?:'(.*)', )?(\S+?):(\d+):\d+:?$")

_NEXTEST_SUM = re.compile(r"^ +Summary \[.*?\] +(\d+)(?:/\d+)? tests? run: (.*)$")
_NEXTEST_COUNT = re.compile(r"(?P<count>\d+) (?P<word>passed|failed|skipped|timed out)")
_NEXTEST_RED = re.compile(r"^ +(?:TRY \d+ )?(?:FAIL|TIMEOUT|SIG\w+) \[.*?\] +(?:\(.*?\) +)?(\S+) (\S+)$")

_NEXTEST_SAID = re.compile(r"^(?:--- STDERR: +(\S+ \S+) ---)$")
_NEXTEST_END = re.compile(r"^note: |^ +(?:PASS|FAIL|Summary) \[|^--- ")

_CTEST_SUM = re.compile(r"^\d+% tests passed, (\d+) tests? failed out of (\d+)")
_CTEST_RED = re.compile(r"^\t +\d+ - (\S.*?) \((\w[\w ]*)\)(?: +\S.*)?$")
_CTEST_RAN = re.compile(r"^ *\d+/\d+ Test +#\d+: (\S+) \.*\*\*\*")
_CTEST_NEXT = re.compile(r"^ +Start +\d+: |^\d+% tests passed|^ *\d+/\d+ Test ")

_SWIFT_SUM = re.compile(r"^\t* *Executed (\d+) tests?, with (?:(\d+) tests? skipped and )?(\d+) failures?")
_SWIFT_RED = re.compile(r"^(\S+\.swift):(\d+): error: -?\[?([\w.]+[ .]\w+)\]? : (.*)$")

_TESTING_SUM = re.compile(r"^\S+ Test run with (\d+) tests?\b.*? (?:passed|failed) after ")
_TESTING_RED = re.compile(
    r"^✘ Test (\S.*?)(?: with \d+ arguments? .*?)? recorded an issue .*?at (\S+?):(\d+):\d+: (.*)$"
)

_GTEST_RAN = re.compile(r"^\[==========\] (\d+) tests? from \d+ test (?:suites?|cases?) ran\.")
_GTEST_COUNT = re.compile(r"^\[ +(?P<word>PASSED|FAILED|SKIPPED) +\] (?P<count>\d+) tests?[.,]")
_GTEST_RED = re.compile(r"^\[ +FAILED +\] (\w[\w./]*)(?:, where .*)?(?: \(\d+ ms\))$")
_GTEST_AT = re.compile(r"^(\S+):(\d+): Failure$")


def go(lines: Sequence[str]) -> Reading | None:
    """Read go test; a test that fails by its subtests is not a failure of its own."""
    lines = _unpacked(lines) or lines
    cases = [(found[1], found[2]) for line in lines if (found := _GO_CASE.match(line))]
    packages = [found[1] for line in lines if (found := _GO_PACKAGE.match(line))]
    broken = [found[1] for line in lines if (found := _GO_BROKEN.match(line))]
    if not cases and not packages:
        return summed("go", ran=0) if any(_GO_NONE.match(line) for line in lines) else None
    parents = {name.rpartition("/")[0] for _, name in cases}
    leaves = [(verdict, name) for verdict, name in cases if name not in parents]
    said = _go_messages(lines)
    failures = [
        FailedTest(name=name, file=file, line=at, message=message)
        for name in (name for verdict, name in leaves if verdict == "FAIL")
        for file, at, message in [said.get(name, ("", None, ""))]
    ]
    failures += [FailedTest(name="", file=package, message="build failed") for package in broken]
    passed, skipped = (sum(verdict == word for verdict, _ in leaves) for word in ("PASS", "SKIP"))
    told = any(verdict != "FAIL" for verdict, _ in cases)
    failed = len(failures) - len(broken)
    reading = summed("go", failures, ran=passed + failed if told else None, passed=passed, skipped=skipped)
    return _with(reading, packages=len(set(packages) - set(broken)))


def _with(reading: Reading, **measures: float) -> Reading:
    from dataclasses import replace  # noqa: PLC0415  # only here

    return replace(reading, measures={**reading.measures, **measures})


def _unpacked(lines: Sequence[str]) -> list[str]:
    """Return what `go test -json` wraps, package by package."""
    said: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith("{") and '"Action":"output"' in line:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            said.setdefault(str(event.get("Package")), []).append(str(event.get("Output", "")))
    return [line for texts in said.values() for line in "".join(texts).split("\n")]


def _go_messages(lines: Sequence[str]) -> dict[str, tuple[str, int | None, str]]:
    """Return what was first said of each test: below its verdict, or while it ran."""
    found: dict[str, tuple[str, int | None, str]] = {}
    current = ""
    for number, line in enumerate(lines):
        if now := _GO_NOW.match(line):
            current = now[1]
        elif case := _GO_CASE.match(line):
            current = case[2]
        elif (says := _GO_SAYS.match(line)) and current not in found:
            text = says[3] or next(
                (each[1] for part in lines[number + 1 : number + 6] if (each := _TESTIFY.match(part))), ""
            )
            found[current] = (says[1], int(says[2]), folded([text]))
        elif (panic := _GO_PANIC.match(line)) and current not in found:
            at = next((each for part in lines[number:] if (each := _GO_STACK.match(part))), None)
            found[current] = (
                at[1] if at else "",
                int(at[2]) if at else None,
                folded([line if not panic[1] else panic[0]]),
            )
    return found


def cargo(lines: Sequence[str]) -> Reading | None:
    """Read cargo test: one summary for each binary."""
    sums = [line for line in lines if line.startswith("test result: ")]
    if not sums and not any(_CARGO_CASE.match(line) for line in lines):
        return None
    if any(_NEXTEST_SUM.match(line) for line in lines):
        return None
    counts = numbers(_CARGO_COUNT, sums)
    blocks: dict[str, FailedTest] = {}
    for number, line in enumerate(lines):
        if found := _CARGO_CASE.match(line):
            blocks[found[1]] = _panicked(found[1], list(until(lines, number + 1, _CARGO_END)))
    named = [found[1] for line in lines if (found := _CARGO_RED.match(line))]
    failures = [blocks.pop(name, FailedTest(name=name)) for name in named] + list(blocks.values())
    passed, failed = counts.get("passed", 0), counts.get("failed", len(failures))
    return summed(
        "cargo", failures, ran=passed + failed, passed=passed, failed=failed, skipped=counts.get("ignored", 0)
    )


def _panicked(name: str, block: Sequence[str]) -> FailedTest:
    for number, line in enumerate(block):
        if found := _PANICKED.search(line):
            said = folded([found[1]] if found[1] else (part for part in block[number + 1 :] if part.strip()))
            return FailedTest(name=name, file=found[2], line=int(found[3]), message=said)
    return FailedTest(name=name, message=folded(line for line in block if line.strip()))


def nextest(lines: Sequence[str]) -> Reading | None:
    """Read cargo nextest."""
    total = next((found for line in reversed(lines) if (found := _NEXTEST_SUM.match(line))), None)
    if total is None:
        return None
    counts = numbers(_NEXTEST_COUNT, [total[2]])
    names = dict.fromkeys(f"{found[1]} {found[2]}" for line in lines if (found := _NEXTEST_RED.match(line)))
    blocks = {
        found[1]: _panicked(found[1], list(until(lines, number + 1, _NEXTEST_END)))
        for number, line in enumerate(lines)
        if (found := _NEXTEST_SAID.match(line))
    }
    failures = [blocks.get(name) or FailedTest(name=name) for name in names]
    failed = counts.get("failed", 0) + counts.get("timed out", 0)
    return summed(
        "nextest",
        failures,
        ran=int(total[1]),
        passed=counts.get("passed", 0),
        failed=failed,
        skipped=counts.get("skipped", 0),
    )


def ctest(lines: Sequence[str]) -> Reading | None:
    """Read ctest: its list of failures, and the first words of those whose output it shows."""
    total = next((found for line in reversed(lines) if (found := _CTEST_SUM.match(line))), None)
    if total is None:
        return summed("ctest", ran=0) if "No tests were found!!!" in lines else None
    said = {
        found[1]: folded(part for part in list(until(lines, number + 1, _CTEST_NEXT))[:3] if part.strip())
        for number, line in enumerate(lines)
        if (found := _CTEST_RAN.match(line))
    }
    listed = "The following tests FAILED:"
    start = lines.index(listed) if listed in lines else len(lines)
    red = [found for line in lines[start:] if (found := _CTEST_RED.match(line))]
    skipped = sum(bool(_CTEST_RED.match(line)) for line in lines[:start])
    failures = [FailedTest(name=found[1], message=said.get(found[1]) or found[2]) for found in red]
    failed, ran = int(total[1]), int(total[2])
    return summed("ctest", failures, ran=ran, passed=ran - failed, failed=failed, skipped=skipped)


def swift(lines: Sequence[str]) -> Reading | None:
    """Read XCTest; each suite sums up, and the last sum is that of all."""
    sums = [found for line in lines if (found := _SWIFT_SUM.match(line))]
    new = [int(found[1]) for line in lines if (found := _TESTING_SUM.match(line))]
    if not sums and not new:
        return None
    failures: dict[str, FailedTest] = {}
    for line in lines:
        if found := _SWIFT_RED.match(line):
            one = FailedTest(name=found[3], file=found[1], line=int(found[2]), message=folded([found[4]]))
            failures.setdefault(one.name, one)
        elif found := _TESTING_RED.match(line):
            one = FailedTest(name=found[1].strip('"'), file=found[2], line=int(found[3]), message=folded([found[4]]))
            failures.setdefault(one.name, one)
    tests, skipped = (int(sums[-1][1]), int(sums[-1][2] or 0)) if sums else (0, 0)
    ran = tests - skipped + sum(new)
    failed = len(failures) or (int(sums[-1][3]) if sums else 0)
    return summed("swift", failures.values(), ran=ran, passed=ran - failed, failed=failed, skipped=skipped)


def gtest(lines: Sequence[str]) -> Reading | None:
    """Read GoogleTest."""
    ran = sum(int(found[1]) for line in lines if (found := _GTEST_RAN.match(line)))
    counts = numbers(_GTEST_COUNT, lines)
    if not ran and not counts:
        return None
    failures = list[FailedTest]()
    at: tuple[str, int | None] = ("", None)
    said = ""
    for number, line in enumerate(lines):
        if found := _GTEST_AT.match(line):
            at, said = place([f"{line} "]), folded(until(lines, number + 1, re.compile(r"^\[|^$")))
        elif found := _GTEST_RED.match(line):
            failures.append(FailedTest(name=found[1], file=at[0], line=at[1], message=said))
            at, said = ("", None), ""
    skipped = counts.get("SKIPPED", 0)
    return summed(
        "gtest", failures, ran=ran - skipped, passed=counts.get("PASSED", 0), failed=counts.get("FAILED", 0), skipped=skipped
    )  # fmt: skip


_SUM = re.compile(r"Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)(, Time elapsed)?")
_CASE = re.compile(
    r"^(?:\[ERROR\] +)?(?:(\S+)\(([\w.$]+)\)|([\w.$]+\.\S+)(?: --)?) +(?:-- )?Time elapsed: .*<<< (?:FAILURE|ERROR)!$"
)
_BRIEF = re.compile(r"^\[ERROR\] {3}([\w$]+(?:\.\S+?)?\.[^\s:.]+):(\d+)(?:->\S+)* (.*)$")
_AT = re.compile(r"^\s+at .*?\((\w+\.(?:java|kt|scala|groovy)):(\d+)\)")
_TEST_LIKE = re.compile(r"org\.junit|org\.testng|org\.opentest4j|org\.assertj|org\.hamcrest|java\.base/|jdk\.internal")
_END = re.compile(r"^\[(?:ERROR|INFO|WARNING)\]|^$|^\s+at ")

_GRADLE_SUM = re.compile(r"^(\d+) tests? completed(?:, (\d+) failed)?(?:, (\d+) skipped)?")
_GRADLE_CASE = re.compile(r"^(\S.*? > \S.*?) FAILED$")
_GRADLE_AT = re.compile(r"^ {4}(\S.*?) at (\w+\.\w+):(\d+)$")
_GRADLE_END = re.compile(r"^$|^\S| FAILED$")

_NET_SUM = re.compile(r"^(?:Failed|Passed)! +- Failed: +(\d+), Passed: +(\d+), Skipped: +(\d+), Total: +(\d+)")
_NET_LIST = re.compile(r"^ *(?P<word>Total tests|Passed|Failed|Skipped): +(?P<count>\d+)$")
_NET_NEW = re.compile(r"^Test summary: total: (\d+), failed: (\d+), succeeded: (\d+), skipped: (\d+)")
_NET_CASE = re.compile(r"^ {2}Failed (\S.*?) \[[^\]]+\]$")
_NET_AT = re.compile(r" in (\S.*?):line (\d+)$")
_NET_END = re.compile(r"^ {2}(?:Failed|Passed|Skipped) \S|^ {2}Stack Trace:|^(?:Failed|Passed)! ")


def surefire(lines: Sequence[str]) -> Reading | None:
    """Read Maven's surefire: classes sum up with their time, modules without it."""
    sums = [found for line in lines if (found := _SUM.search(line))]
    if not sums:
        return None
    modules = [found for found in sums if not found[5]] or sums
    tests, failed, errors, skipped = (sum(int(found[group]) for found in modules) for group in (1, 2, 3, 4))
    failures: dict[str, FailedTest] = {}
    for number, line in enumerate(lines):
        if found := _CASE.match(line):
            name = f"{found[2]}.{found[1]}" if found[2] else found[3]
            stack = [
                each
                for part in until(lines, number + 1, re.compile(r"^\[|^$"))
                if not _TEST_LIKE.search(part) and (each := _AT.match(part))
            ]
            said = folded(until(lines, number + 1, _END))
            file, at = (stack[0][1], int(stack[0][2])) if stack else ("", None)
            failures[name] = FailedTest(name=name, file=file, line=at, message=said)
    for line in lines:
        if (found := _BRIEF.match(line)) and not any(name.endswith(found[1]) for name in failures):
            failures[found[1]] = FailedTest(name=found[1], line=int(found[2]), message=folded([found[3]]))
    ran = tests - skipped
    return summed(
        "surefire",
        failures.values(),
        ran=ran,
        passed=ran - failed - errors,
        failed=failed,
        errors=errors,
        skipped=skipped,
    )


def gradle(lines: Sequence[str]) -> Reading | None:
    """Read gradle, which counts only where something failed."""
    failures = []
    for number, line in enumerate(lines):
        if found := _GRADLE_CASE.match(line):
            block = list(until(lines, number + 1, _GRADLE_END))
            short = next((each for part in block if (each := _GRADLE_AT.match(part))), None)
            stack = next((each for part in block if not _TEST_LIKE.search(part) and (each := _AT.match(part))), None)
            at = (short[2], int(short[3])) if short else (stack[1], int(stack[2])) if stack else ("", None)
            said = (
                short[1] if short else folded(part for part in until(block, 0, re.compile(r"^\s+at ")) if part.strip())
            )
            failures.append(FailedTest(name=found[1], file=at[0], line=at[1], message=said))
    sums = [found for line in lines if (found := _GRADLE_SUM.match(line))]
    if not sums:
        return summed("gradle", failures) if failures else None
    total, failed, skipped = (sum(int(found[group] or 0) for found in sums) for group in (1, 2, 3))
    ran = total - skipped
    return summed("gradle", failures, ran=ran, passed=ran - failed, failed=failed, skipped=skipped)


def dotnet(lines: Sequence[str]) -> Reading | None:
    """Read dotnet test: one summary for each project."""
    failures = []
    for number, line in enumerate(lines):
        if found := _NET_CASE.match(line):
            block = list(
                until(lines, number + 1, re.compile(r"^ {2}(?:Failed|Passed|Skipped) \S|^(?:Failed|Passed)! "))
            )
            at = next((each for part in block if (each := _NET_AT.search(part))), None)
            said = folded(part for part in until(block, 0, _NET_END) if part.strip() != "Error Message:")
            file, where = (at[1], int(at[2])) if at else ("", None)
            failures.append(FailedTest(name=found[1], file=file, line=where, message=said))
    sums = [tuple(map(int, found.groups())) for line in lines if (found := _NET_SUM.match(line))]
    sums = sums or [
        (int(new[2]), int(new[3]), int(new[4]), int(new[1])) for line in lines if (new := _NET_NEW.match(line))
    ]
    if not sums:
        counts = numbers(_NET_LIST, lines)
        if "Total tests" not in counts:
            return None
        sums = [(counts.get("Failed", 0), counts.get("Passed", 0), counts.get("Skipped", 0), counts["Total tests"])]
    failed, passed, skipped = (sum(one[column] for one in sums) for column in range(3))
    return summed("dotnet", failures, ran=passed + failed, passed=passed, failed=failed, skipped=skipped)
