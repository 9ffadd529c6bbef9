"""Read mocha, jasmine, ava and Node's own runner: numbered or marked cases, and a summary of a few lines."""

import re
from collections.abc import Iterator, Sequence

from unstuck.diagnosis.readings.values import FailedTest, Reading, folded, numbers, place, summed, uncaught, until

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
_STACK = re.compile(r"^\s+at ")

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
            said = folded(part for part in until(block, 0, _STACK) if part.strip())
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
