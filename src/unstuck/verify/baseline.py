"""Tell what was red before from what the work made red. Pure: the same or less is excused, and only by what can be compared."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from unstuck.diagnosis.output.reading import FailedTest, Finding, Reading
from unstuck.diagnosis.output.tool_output import read_output
from unstuck.model.text import one_line
from unstuck.model.verdict import CheckResult

OUT_OF_TIME = ("first_output", "silence", "wall_clock")
BROKEN = 126
"""From this exit code on a shell tells that the command itself could not run, or died."""
NAMED, NAME_CHARS = 3, 160
LESS_IS_WORSE = frozenset({"coverage", "rating", "packages"})
SUMS = ("problems", "violations", "offenses", "issues", "errors")
"""What tools call the sum of their findings."""

_LINE_NUMBER = re.compile(r"\b(lines?|at|:) ?\d+\b")
_TIME = re.compile(
    r"\b\d+(?:[.:]\d+)* ?(?:ms|µs|ns|s|secs?|seconds?|m|min|minutes?)\b|\b\d{4}-\d\d-\d\dT?[\d:.]*Z?|\b\d{1,2}:\d\d:\d\d\b|0x[0-9a-f]+|\bseed[ =:]*\d+",
    re.IGNORECASE,
)


class Comparison(NamedTuple):
    """How a red check goes, against how it went on the base, and why that is said."""

    verdict: Literal["same", "worse", "unknown"]
    because: str


def compare(now: CheckResult, before: CheckResult) -> Comparison:
    """Hold a red check against the same check on the base."""
    if before.status == "pass" and not before.excused_because:
        return Comparison("worse", "it passes on the base")
    if now.ended.ending in OUT_OF_TIME and before.ended.ending in OUT_OF_TIME:
        return Comparison("same", "it does not end in time on the base either")
    if not now.ended.tail.strip() or not before.ended.tail.strip():
        return Comparison("unknown", "it says nothing of what is wrong, so nobody can see what is new")
    if now.ended.ending != before.ended.ending:
        return Comparison("worse", "it ends in another way than on the base")
    here, there = (read_output(one.ended.tail, formatter=one.kind == "format") for one in (now, before))
    if (worse := next(_worse(now, here, there), "")) != "":
        return Comparison("worse", worse)
    alike = now.ended.exit_code == before.ended.exit_code
    fewer = here.red < there.red or len(here.findings) < len(there.findings)
    if not alike and not (fewer and max(now.ended.exit_code or 0, before.ended.exit_code or 0) < BROKEN):
        return Comparison(
            "worse", f"it ends with exit code {now.ended.exit_code}, on the base with {before.ended.exit_code}"
        )
    return _evidence(now, before, here, there)


def _worse(now: CheckResult, here: Reading, there: Reading) -> Iterator[str]:
    """Yield what is new or missing, each in a clause; the first is told."""
    steady = [one for one in here.failures if now.runs == 1 or not now.tests or one.label in now.tests]
    if new := Counter(map(_test, steady)) - Counter(map(_test, there.failures)):
        labels = [one.label for one in steady if _test(one) in new]
        yield f"it fails in more than on the base: {_named(labels)}"
    if more := Counter(map(_complaint, here.findings)) - Counter(map(_complaint, there.findings)):
        yield f"it complains of more than on the base: {_named(map(_told, _newest(here.findings, there.findings, more)))}"
    if not (_listed(here) and _listed(there)) and here.red > there.red:
        yield f"{here.red} tests fail, on the base {there.red}"
    if there.ran is not None and (here.ran or 0) < there.ran:
        yield f"it runs fewer tests: {here.ran or 0} now, {there.ran} on the base"
    for name, value in here.measures.items():
        before = there.measures.get(name, value if name in LESS_IS_WORSE else 0)
        if value < before if name in LESS_IS_WORSE else value > before:
            yield f"{name}: {value:g} now, {before:g} on the base"


def _evidence(now: CheckResult, before: CheckResult, here: Reading, there: Reading) -> Comparison:
    """Say what shows that nothing is new: names of all that is red, a measure, or the very same words."""
    whole = all(result.ended.output_bytes <= len(result.ended.tail.encode()) for result in (now, before))
    if here.failures and _listed(here) and _listed(there) and (whole or here.ran is not None):
        return Comparison("same", f"the same fail on the base: {_named(one.label for one in here.failures)}")
    if here.findings and not here.red and _counted(here, whole=whole) and _counted(there, whole=whole):
        return Comparison("same", "it complains of the same on the base")
    if "coverage" in here.measures and "coverage" in there.measures and not here.red + there.red + len(here.findings):
        return Comparison("same", f"coverage is no lower than on the base: {here.measures['coverage']:g} %")
    if _words(now) == _words(before) and (whole or now.ended.output_bytes == before.ended.output_bytes):
        return Comparison("same", "it fails in the same way on the base")
    return Comparison("unknown", "what it says cannot be compared with what it said on the base")


def _listed(reading: Reading) -> bool:
    """Whether everything that is red is named."""
    return len(reading.failures) >= reading.red


def _counted(reading: Reading, *, whole: bool) -> bool:
    """Whether all findings are there: by the tool's own sum, or else because its whole output is."""
    sums = [reading.measures[name] for name in SUMS if name in reading.measures]
    return len(reading.findings) >= max(sums, default=0) and (whole or bool(sums))


def _test(failed: FailedTest) -> tuple[str, str]:
    return (failed.file, failed.name)


def _complaint(found: Finding) -> tuple[str, str, str]:
    """Return what makes a finding the same though lines above it moved."""
    return (found.file, found.rule, _LINE_NUMBER.sub(r"\1 N", found.message))


def _newest(now: Sequence[Finding], before: Sequence[Finding], new: Collection[tuple[str, str, str]]) -> list[Finding]:
    """Return the findings to name: of several that are alike, those on lines where there were none."""
    known = {(_complaint(one), one.line) for one in before}
    fresh = [one for one in now if _complaint(one) in new and (_complaint(one), one.line) not in known]
    return fresh or [one for one in now if _complaint(one) in new]


def _told(found: Finding) -> str:
    where = f"{found.file}:{found.line}" if found.line else found.file
    return " ".join(part for part in (where, found.rule, found.message) if part)


def _named(labels: Iterable[str]) -> str:
    names = list(labels)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return "; ".join(one_line(name, NAME_CHARS) for name in names[:NAMED]) + more


def _words(result: CheckResult) -> Counter[str]:
    """Return what was said, in any order, without the times that differ from run to run."""
    return Counter(line for raw in result.ended.tail.splitlines() if (line := _TIME.sub("T", raw).strip(" =-_*")))
