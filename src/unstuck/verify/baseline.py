"""Tell what was red before from what the work made red. Pure, and careful: in doubt it is the work."""

import re
from collections import Counter

from unstuck.diagnosis import TESTS, Kind
from unstuck.journal import CheckResult

MISSING_TOOL = frozenset({Kind.COMMAND_NOT_FOUND, Kind.DEPENDENCY_MISSING, Kind.PACKAGE_NOT_FOUND})
"""What a check says when it could not even begin."""
OUT_OF_TIME = ("first_output", "silence", "wall_clock")


def excuse(now: CheckResult, before: CheckResult) -> str:
    """Say why a red gate is not the work's doing, given how it went on the base; empty if it is, or may be."""
    if before.status == "pass" and not before.although:
        return ""
    if now.ended.ending in OUT_OF_TIME:
        return "it does not end in time on the base either" if before.ended.ending in OUT_OF_TIME else ""
    if (now.ended.ending, now.ended.exit_code) != (before.ended.ending, before.ended.exit_code):
        return ""
    if now.counts and before.counts and now.counts.total < before.counts.total:
        return ""
    if now.tests and before.tests and max(len(now.tests), len(before.tests)) < TESTS:
        known = set(now.tests) <= set(before.tests)
        return f"the same fail on the base: {', '.join(now.tests[:3])}" if known else ""
    return "it fails in the same way on the base" if _says_nothing_new(now, before) else ""


def _says_nothing_new(now: CheckResult, before: CheckResult) -> bool:
    """Whether every complaint was there before; output that is not known whole must be as long as before."""
    whole = all(result.ended.output_bytes <= len(result.ended.tail.encode()) for result in (now, before))
    complaints, known = Counter(_lines(now)), Counter(_lines(before))
    return complaints <= known if whole else complaints == known and now.ended.output_bytes == before.ended.output_bytes


def _lines(result: CheckResult) -> list[str]:
    text = re.sub(r"[\d.:]+", "N", result.ended.tail)
    return [line for raw in text.splitlines() if (line := raw.strip(" =-_*"))]
