"""Read jest and vitest: a file's verdict, its failing cases by their path, and a summary by words."""

import re
from collections.abc import Iterator, Sequence

from unstuck.diagnosis.readings.values import FailedTest, Reading, folded, numbers, place, summed, until

_SUMMARY = re.compile(r"^ *Tests:? +((?:\d+ (?:failed|passed|skipped|todo|pending)(?:, | \| )?)+)")
_COUNT = re.compile(r"(?P<count>\d+) (?P<word>\w+)")
_FILE = re.compile(r"^ ?(?:FAIL|PASS) +(?:\S+ +)??(\S+\.\w+)(?: \([\d.]+ m?s\))?(?: \([\d.]+ [MG]B heap size\))?$")
_CASE = re.compile(r"^ {2}● (\S.*)$")
_NEXT = re.compile(r"^ {2}● |^ ?(?:FAIL|PASS) |^Test Suites: |^Summary of all failing tests")
_FRAME = re.compile(r"^\s*>?\s*\d* \||^\s+at ")
_NOT_LOADED = "Test suite failed to run"
_NO_CASE = ("Console", "Cannot log after tests", "Validation", "Deprecation")
_AGAIN = "Summary of all failing tests"
_NO_TESTS = re.compile(r"^No tests? (?:files? )?found, exiting with code")

_VITEST = re.compile(r"^ *Test Files +\d|^⎯{3}|^No test files found|^ RUN +v\d")
_VITEST_CASE = re.compile(r"^ FAIL +(?:\|[^|]+\| +)?(\S+\.\w+)(?: > (.+)| \[ .* \])?$")
_VITEST_NEXT = re.compile(r"^⎯{3}|^ FAIL ")
_VITEST_ERRORS = re.compile(r"^ *Errors +(\d+) errors?")
_VITEST_DIFF = re.compile(r"^[-+] (?:Expected|Received)|^ ❯ |^\s*$")  # noqa: RUF001  # as the tool prints it


def jest(lines: Sequence[str]) -> Reading | None:
    """Read jest."""
    if any(_VITEST.search(line) for line in lines):
        return None
    failures = list(_cases(lines))
    summaries = [found[1] for line in lines if (found := _SUMMARY.match(line))]
    if not failures and not summaries:
        return summed("jest", ran=0) if any(_NO_TESTS.match(line) for line in lines) else None
    return _counted("jest", summaries, failures)


def vitest(lines: Sequence[str]) -> Reading | None:
    """Read vitest."""
    if not any(_VITEST.search(line) for line in lines):
        return None
    failures: dict[tuple[str, str], FailedTest] = {}
    for number, line in enumerate(lines):
        if found := _VITEST_CASE.match(line):
            block = list(until(lines, number + 1, _VITEST_NEXT))
            said = folded(until(block, 0, _VITEST_DIFF))
            _, at = place(part for part in block if f"{found[1]}:" in part)
            failures[found[1], found[2] or ""] = FailedTest(name=found[2] or "", file=found[1], line=at, message=said)
    summaries = [found[1] for line in lines if (found := _SUMMARY.match(line))]
    if not failures and not summaries:
        return summed("vitest", ran=0) if any(_NO_TESTS.match(line) for line in lines) else None
    unhandled = sum(int(found[1]) for line in lines if (found := _VITEST_ERRORS.match(line)))
    return _counted("vitest", summaries, list(failures.values()), unhandled)


def _counted(tool: str, summaries: Sequence[str], failures: Sequence[FailedTest], unhandled: int = 0) -> Reading:
    counts = numbers(_COUNT, summaries)
    passed, skipped = counts.get("passed", 0), sum(counts.get(word, 0) for word in ("skipped", "todo", "pending"))
    unloaded = sum(not one.name for one in failures)
    failed = counts.get("failed", 0) if summaries else len(failures) - unloaded
    return summed(
        tool,
        failures,
        ran=passed + failed if summaries else None,
        passed=passed,
        failed=failed,
        errors=unloaded + unhandled,
        skipped=skipped,
    )


def _cases(lines: Sequence[str]) -> Iterator[FailedTest]:
    """Yield failing cases; what jest repeats at the end of a long run is one and the same case."""
    again = next((number for number, line in enumerate(lines) if line.startswith(_AGAIN)), len(lines))
    shown = lines[:again] if any(_CASE.match(line) for line in lines[:again]) else lines[again:]
    file = ""
    for number, line in enumerate(shown):
        if found := _FILE.match(line):
            file = found[1]
        elif (found := _CASE.match(line)) and not found[1].startswith(_NO_CASE):
            block = list(until(shown, number + 1, _NEXT))
            said = folded(part for part in until(block, 0, _FRAME) if part.strip())
            where, at = place(part for part in block if part.lstrip().startswith("at "))
            name = "" if found[1] == _NOT_LOADED else found[1]
            yield FailedTest(name=name, file=file or where, line=at if where.endswith(file) else None, message=said)
