"""Read the Test Anything Protocol, as Node, tape, ava, vitest and mocha print it, and `prove`, which sums it up."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from unstuck.diagnosis.readings.values import FailedTest, Reading, folded, numbers, place, summed, uncaught, until

_POINT = re.compile(r"^( *)(not )?ok \d+(?: -)?(?: (.*?))?(?: # (?i:(skip|todo)|time=).*)?$")
_VERSION = re.compile(r"^TAP version \d|^\d+\.\.\d+")
_SUMMARY = re.compile(r"^# (?P<word>pass|fail|cancelled) +(?P<count>\d+)$")
_SUITE = re.compile(r"^\s+(?:type: 'suite'|failureType: 'subtestsFailed')$")
_SAID = re.compile(r"^\s+(?:error|message): *(.*)$")
_WHERE = re.compile(r"^\s+(?:location|at): ")
_KEY = re.compile(r"^\s+(?:\w+|'[^']*'): ?")
_WANTED = re.compile(r"^\s+(?:operator|expected|actual): +\S")
_STACK = re.compile(r"^\s+at |^\s+\w+Error \[|^\s+message: ''|^\s+at: ")
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
    counts = numbers(_SUMMARY, lines)
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
        said = folded(line for line in until(lines, 0, _STACK) if line.strip(" -.") and not _ABOUT.match(line))
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
