"""Read Python's unittest: one block for each failure, and two lines that sum up."""

import re
from collections.abc import Sequence

from unstuck.diagnosis.readings.values import FailedTest, Reading, folded, summed, until

_RAN = re.compile(r"^Ran (\d+) tests? in ")
_BAD = re.compile(r"^(?:FAILED|OK) \((.*)\)$")
_COUNT = re.compile(r"(failures|errors|skipped|expected failures|unexpected successes)=(\d+)")
_CASE = re.compile(r"^(FAIL|ERROR): (\S.*)$")
_END = re.compile(r"^={70}$|^Ran \d+ tests? in |^-{70}$")
_FRAME = re.compile(r"^ +File \"([^\"]+)\", line (\d+)")
_LIBRARY = re.compile(r"/lib/python\d|^<frozen")
_BROKEN = "unittest.loader._FailedTest"


def unittest(lines: Sequence[str]) -> Reading | None:
    """Read unittest; the subtests of one test are several failures, and one test."""
    totals = [int(found[1]) for line in lines if (found := _RAN.match(line))]
    if not totals:
        return None
    failures: list[FailedTest] = []
    tests: set[str] = set()
    for number, line in enumerate(lines):
        if (found := _CASE.match(line)) and number and lines[number - 1].startswith("=" * 70):
            failures.append(_failed(found[2], lines, number))
            tests.add(found[2].partition(")")[0])
    counts: dict[str, int] = {}
    for line in lines:
        for word, number_of in _COUNT.findall(found[1]) if (found := _BAD.match(line)) else ():
            counts[word] = counts.get(word, 0) + int(number_of)
    skipped = counts.get("skipped", 0) + counts.get("expected failures", 0)
    failed, errors = counts.get("failures", 0) + counts.get("unexpected successes", 0), counts.get("errors", 0)
    ran = sum(totals) - skipped
    passed = max(0, ran - (len(tests) or failed + errors))
    return summed("unittest", failures, ran=ran, passed=passed, failed=failed, errors=errors, skipped=skipped)


def _failed(name: str, lines: Sequence[str], start: int) -> FailedTest:
    rule = next((at for at in range(start + 1, min(start + 4, len(lines))) if lines[at].startswith("-" * 70)), start)
    block = list(until(lines, rule + 1, _END))
    frames = [(at, found) for at, line in enumerate(block) if (found := _FRAME.match(line))]
    own = [found for _, found in frames if not _LIBRARY.search(found[1])]
    said = block[frames[-1][0] + 1 :] if frames else block
    message = folded(line for line in said if line.strip() and not line.startswith((" ", "\t")))
    file, at = (own[-1][1], int(own[-1][2])) if own else ("", None)
    return FailedTest(name="" if _BROKEN in name and file else name, file=file, line=at, message=message)
