"""Read the test runners of JavaScript, and the Test Anything Protocol, which several of them speak."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from unstuck.diagnosis.reading import FailedTest, Reading, folded, numbers, place, summed, uncaught, until

_JEST_SUMMARY = re.compile(r"^ *Tests:? +((?:\d+ (?:failed|passed|skipped|todo|pending)(?:, | \| )?)+)")
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
    summaries = [found[1] for line in lines if (found := _JEST_SUMMARY.match(line))]
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
    summaries = [found[1] for line in lines if (found := _JEST_SUMMARY.match(line))]
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


_MOCHA_COUNT = re.compile(r"^ {2}(?P<count>\d+) (?P<word>passing|failing|pending)\b")
_NUMBERED = re.compile(r"^ {0,2}(\d+)\) (\S.*)$")
_MOCHA_DIFF = re.compile(r"^ +\+ expected - actual|^ +at |^ {0,2}\d+\) ")
_NOT_RUN = re.compile(r"^ ?Exception during run: (.*)")

_JASMINE_COUNT = re.compile(r"^(\d+) specs?, (\d+) failures?(?:, (\d+) pending specs?)?")
_JASMINE_END = re.compile(r"^\d+\) |^Pending:|^\d+ specs?, ")
_JASMINE_STACK = re.compile(r"^ {2}Stack:")

_NODE_COUNT = re.compile(r"^ℹ (?P<word>pass|fail|cancelled|skipped|todo) (?P<count>\d+)$")  # noqa: RUF001  # as the tool prints it
_NODE_LIST = re.compile(r"^✖ failing tests:|^Failed tests:")
_NODE_CASE = re.compile(r"^✖ (\S.*?)(?: \([\d.]+ms\))?$")
_NODE_PLACE = re.compile(r"^test at (\S.*?):(\d+):\d+$")
_NODE_STOP = re.compile(r"^test at |^✖ ")
_NODE_PARENT = re.compile(r"^\s*'\d+ subtests? failed'$")
_MOCHA_STACK = re.compile(r"^\s+at ")

_AVA_COUNT = re.compile(r"^ {2}(?P<count>\d+) (?:tests? )?(?P<word>passed|failed|skipped|todo|uncaught|unhandled)\b")
_AVA_CASE = re.compile(r"^ {2}✘ \[fail\]: (\S.*)$")
_AVA_CRASH = re.compile(r"^ {2}✘ (\S+\.\w+) exited with|^ {2}Uncaught exception in (\S+)")
_AVA_PLACE = re.compile(r"^ {2}(\S+\.\w+):(\d+)$")
_AVA_CODE = re.compile(r"^ +\d+: ")
_AVA_END = re.compile(r"^ {2}› |^ {2}─|^ {2}at ")  # noqa: RUF001  # as the tool prints it


def mocha(lines: Sequence[str]) -> Reading | None:
    """Read mocha: the list of failures follows the counts."""
    crashed = next((found[1] for line in lines if (found := _NOT_RUN.match(line))), None)
    if crashed is not None:
        file, at = place(line for line in lines if "node_modules" not in line)
        return summed("mocha", [FailedTest(name="", file=file, line=at, message=folded([crashed]))])
    counts = numbers(_MOCHA_COUNT, lines)
    if not counts:
        return None
    start = max((number for number, line in enumerate(lines) if _MOCHA_COUNT.match(line)), default=0)
    failures = list(_mocha_cases(lines[start:])) if counts.get("failing") else []
    passed, failed = counts.get("passing", 0), counts.get("failing", 0)
    return summed(
        "mocha", failures, ran=passed + failed, passed=passed, failed=failed, errors=0, skipped=counts.get("pending", 0)
    )


def _mocha_cases(lines: Sequence[str]) -> Iterator[FailedTest]:
    number = 0
    while number < len(lines):
        found = _NUMBERED.match(lines[number])
        number += 1
        if not found:
            continue
        path = [found[2]]
        while not path[-1].endswith(":") and number < len(lines) and lines[number].strip():
            path.append(lines[number].strip())
            number += 1
        block = list(until(lines, number, _NUMBERED))
        said = folded(part for part in until(block, 0, _MOCHA_DIFF) if part.strip())
        file, at = place(part for part in block if part.lstrip().startswith("at "))
        yield FailedTest(name=" ".join(path).removesuffix(":"), file=file, line=at, message=said)


def jasmine(lines: Sequence[str]) -> Reading | None:
    """Read jasmine."""
    summary = next((found for line in reversed(lines) if (found := _JASMINE_COUNT.match(line))), None)
    if summary is None:
        return None
    total, failed, pending = int(summary[1]), int(summary[2]), int(summary[3] or 0)
    start = next((number for number, line in enumerate(lines) if line == "Failures:"), len(lines))
    failures = []
    for number, line in enumerate(until(lines, start, re.compile(r"^Pending:"))):
        if found := _NUMBERED.match(line):
            block = list(until(lines, start + number + 1, _JASMINE_END))
            said = folded(part for part in until(block, 1, _JASMINE_STACK) if part.strip())
            file, at = place(part for part in block if part.lstrip().startswith("at "))
            failures.append(FailedTest(name=found[2], file=file, line=at, message=said))
    ran = total - pending
    return summed("jasmine", failures, ran=ran, passed=ran - failed, failed=failed, errors=0, skipped=pending)


def node_spec(lines: Sequence[str]) -> Reading | None:
    """Read what `node --test` prints for people; the list of failures follows the counts."""
    counts = numbers(_NODE_COUNT, lines)
    start = next((number for number, line in enumerate(lines) if _NODE_LIST.match(line)), None)
    if not counts and start is None:
        return None
    failures = list(_node_cases(lines[start + 1 :], lines[:start])) if start is not None else []
    unloaded = sum(not one.name for one in failures)
    passed, failed = counts.get("pass", 0), counts.get("fail", 0) + counts.get("cancelled", 0) - unloaded
    return summed(
        "node:test",
        failures,
        ran=passed + failed if counts else None,
        passed=passed,
        failed=failed if counts else None,
        skipped=counts.get("skipped", 0) + counts.get("todo", 0),
    )


def _node_cases(lines: Sequence[str], before: Sequence[str]) -> Iterator[FailedTest]:
    file, at = "", None
    for number, line in enumerate(lines):
        if found := _NODE_PLACE.match(line):
            file, at = found[1], int(found[2])
        elif found := _NODE_CASE.match(line):
            block = list(until(lines, number + 1, _NODE_STOP))
            if any(_NODE_PARENT.match(part) for part in block[:2]):
                continue
            said = folded(part for part in until(block, 0, _MOCHA_STACK) if part.strip())
            where, there = place(part for part in block if part.lstrip().startswith("at "))
            unloaded = bool(file) and found[1].endswith(file)
            yield FailedTest(
                name="" if unloaded else found[1],
                file=file or where,
                line=there if there is not None and (not file or where.endswith(file)) else at,
                message=uncaught(before) if unloaded else said,
            )


def ava(lines: Sequence[str]) -> Reading | None:
    """Read ava."""
    counts = numbers(_AVA_COUNT, lines)
    names = [found[1] for line in lines if (found := _AVA_CASE.match(line))]
    crashed = dict.fromkeys(found[1] or found[2] for line in lines if (found := _AVA_CRASH.match(line)))
    if not names and not crashed and not counts.keys() & {"passed", "failed", "uncaught"}:
        return None
    failures = [_ava_case(lines, name) for name in names]
    failures += [FailedTest(name="", file=file, message=uncaught(lines)) for file in crashed]
    passed = max(counts.get("passed", 0), sum(line.startswith("  ✔ ") for line in lines))
    failed = counts.get("failed", len(names))
    skipped = counts.get("skipped", 0) + counts.get("todo", 0)
    return summed("ava", failures, ran=passed + failed, passed=passed, failed=failed, skipped=skipped)


def _ava_case(lines: Sequence[str], name: str) -> FailedTest:
    title = f"  {name}"
    start = next((number for number, line in enumerate(lines) if line == title), None)
    if start is None:
        return FailedTest(name=name)
    block = list(until(lines, start + 1, _AVA_END))
    at = next((found for line in block if (found := _AVA_PLACE.match(line))), None)
    said = (line for line in block if line.strip() and not _AVA_CODE.match(line) and not _AVA_PLACE.match(line))
    return FailedTest(name=name, file=at[1] if at else "", line=int(at[2]) if at else None, message=folded(said))


_POINT = re.compile(r"^( *)(not )?ok \d+(?: -)?(?: (.*?))?(?: # (?i:(skip|todo)|time=).*)?$")
_VERSION = re.compile(r"^TAP version \d|^\d+\.\.\d+")
_TAP_SUMMARY = re.compile(r"^# (?P<word>pass|fail|cancelled) +(?P<count>\d+)$")
_SUITE = re.compile(r"^\s+(?:type: 'suite'|failureType: 'subtestsFailed')$")
_SAID = re.compile(r"^\s+(?:error|message): *(.*)$")
_WHERE = re.compile(r"^\s+(?:location|at): ")
_KEY = re.compile(r"^\s+(?:\w+|'[^']*'): ?")
_WANTED = re.compile(r"^\s+(?:operator|expected|actual): +\S")
_TAP_STACK = re.compile(r"^\s+at |^\s+\w+Error \[|^\s+message: ''|^\s+at: ")
_ABOUT = re.compile(r"^\s+(?:name|assertion|details|duration_ms|code|stack):")
_FILE_FIRST = re.compile(r"^(\S+\.\w+) > (.+)$")

_TOTAL = re.compile(r"^Files=\d+, Tests=(\d+),")
_FAILED_FILE = re.compile(r"^(\S+) +\(Wstat: .*Tests: (\d+) Failed: (\d+)\)")
_FAILED_TEST = re.compile(r"^# +Failed test (?:'(.*)'|\d+)?")
_AT = re.compile(r"^# +at (\S+) line (\d+)\.")
_NOTE_END = re.compile(r"^# +Failed test|^# Looks like|^[^#]")


def tap(lines: Sequence[str]) -> Reading | None:
    """Read test points; a point that stands for a suite of others is not a test."""
    if any(_TOTAL.match(line) for line in lines):
        return None
    points = [(number, found) for number, line in enumerate(lines) if (found := _POINT.match(line))]
    if not points or not any(_VERSION.match(line.strip()) for line in lines):
        return None
    failures: list[FailedTest] = []
    passed = skipped = undone = 0
    for (number, found), following in zip(points, [*(at for at, _ in points[1:]), len(lines)], strict=True):
        block = lines[number + 1 : following]
        if any(_SUITE.match(line) for line in _yaml(block)):
            continue
        if found[4]:
            skipped += 1
            undone += bool(found[2])
        elif found[2]:
            failed = _failed(found[3] or "", block)
            failures.append(failed if failed.name else replace(failed, message=uncaught(lines)))
        else:
            passed += 1
    counts = numbers(_TAP_SUMMARY, lines)
    unloaded = sum(not one.name for one in failures)
    red = max(len(failures), counts.get("fail", 0) + counts.get("cancelled", 0) - undone) - unloaded
    passed = max(passed, counts.get("pass", 0))
    return summed("tap", failures, ran=passed + red, passed=passed, failed=red, errors=unloaded, skipped=skipped)


def _yaml(block: Sequence[str]) -> Iterator[str]:
    """Yield the lines that belong to the point before them."""
    for line in block:
        if line.strip() and not line.startswith(" "):
            return
        yield line
        if line.strip() == "...":
            return


def _failed(name: str, block: Sequence[str]) -> FailedTest:
    lines = list(_yaml(block))
    file, at = place(line for line in lines if _WHERE.match(line))
    if not file:
        file, at = place(line for line in lines if line.lstrip().startswith("at ") or "(" in line)
    said = ""
    for number, line in enumerate(lines):
        found = _SAID.match(line)
        if found and found[1].strip("'\" ") and not said:
            text = found[1]
            said = folded(until(lines, number + 1, _KEY)) if text[0] in "|>" else folded([text.strip("'\"")])
    if not said:
        said = folded(line for line in lines if _WANTED.match(line))
    if not said:
        said = folded(line for line in until(lines, 0, _TAP_STACK) if line.strip(" -.") and not _ABOUT.match(line))
    if first := _FILE_FIRST.match(name):
        return FailedTest(name=first[2], file=first[1], line=at if file.endswith(first[1]) else None, message=said)
    return FailedTest(name="" if file and name == file else name, file=file, line=at, message=said)


def prove(lines: Sequence[str]) -> Reading | None:
    """Read what `prove` says of several files."""
    total = next((int(found[1]) for line in reversed(lines) if (found := _TOTAL.match(line))), None)
    if total is None:
        return None
    failures: list[FailedTest] = []
    for number, line in enumerate(lines):
        if found := _FAILED_TEST.match(line):
            block = list(until(lines, number + 1, _NOTE_END))
            at = next((each for part in block if (each := _AT.match(part))), None)
            said = folded(part.lstrip("# ") for part in block if not _AT.match(part))
            file, place_line = (at[1], int(at[2])) if at else ("", None)
            failures.append(FailedTest(name=found[1] or "", file=file, line=place_line, message=said))
    files = [found for line in lines if (found := _FAILED_FILE.match(line))]
    failed = sum(int(found[3]) for found in files)
    broken = [found[1] for found in files if found[3] == "0"]
    failures += [FailedTest(name="", file=file, message=_died(lines, file)) for file in broken]
    return summed("prove", failures, ran=total, passed=total - failed, failed=failed, errors=len(broken))


def _died(lines: Sequence[str], file: str) -> str:
    return next((folded([line]) for line in lines if f"at {file} line" in line), "")
