"""Read the test runners of the JVM and .NET: surefire, gradle and dotnet."""

import re
from collections.abc import Sequence

from unstuck.diagnosis.readings.values import FailedTest, Reading, folded, numbers, summed, until

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
