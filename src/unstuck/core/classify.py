"""Say what went wrong, from evidence alone. Pure: same evidence, same failure.

What counts is what the checks say about the tree, never how the session ended or what the agent claims:
a green tree from a crashed session can land, a red one from a proud session cannot.
"""

from collections.abc import Mapping

from unstuck.core.attempt import CheckResult, Ending, Outcome, Verdict
from unstuck.core.failure import KINDS, Failure, Kind
from unstuck.core.plan import CheckKind
from unstuck.core.text import one_line

DETAIL_CHARS = 4000
COMMAND_CHARS = 80

BY_ENDING: Mapping[Ending, Kind] = {
    "not_started": Kind.AGENT_MISSING,
    "supervisor_died": Kind.INTERRUPTED,
    "stopped": Kind.INTERRUPTED,
    "first_output": Kind.HANG,
    "silence": Kind.HANG,
    "wall_clock": Kind.TIMEOUT,
    "signalled": Kind.KILLED,
}

BY_CHECK: Mapping[CheckKind, Kind] = {
    "verify": Kind.CHECK_FAILED,
    "test": Kind.TEST_FAILED,
    "lint": Kind.LINT_FAILED,
    "types": Kind.TYPES_FAILED,
    "format": Kind.FORMAT_FAILED,
    "build": Kind.BUILD_BROKEN,
}


def classify(outcome: Outcome, verdict: Verdict) -> Failure | None:
    """Return what stands in the way of landing this tree, or None."""
    ended = outcome.ended
    by_itself = ended.ok and outcome.claim == "done"
    if verdict.status == "pass":
        if by_itself or verdict.turned_green:
            return None
        kind = BY_ENDING.get(ended.ending, Kind.NO_CLAIM)
        return _failure(kind if kind is Kind.INTERRUPTED else Kind.NO_CLAIM, ended.tail)
    if ended.ending in BY_ENDING:
        return _failure(BY_ENDING[ended.ending], ended.tail)
    if verdict.status == "inconclusive":
        return _failure(Kind.UNVERIFIED, "", because=verdict.reason)
    if not ended.ok:
        return _failure(Kind.AGENT_CRASHED, ended.tail, because=f"it ended with exit code {ended.exit_code}")
    if outcome.claim == "failed":
        return _failure(Kind.AGENT_FAILED, ended.tail)
    return red(next(result for result in verdict.results if result.status == "fail"))


def conflict(files: tuple[str, ...]) -> Failure:
    """Say that the work cannot be merged with what landed meanwhile."""
    return _failure(Kind.MERGE_CONFLICT, "\n".join(files), because=", ".join(files[:3]))


def red(result: CheckResult) -> Failure:
    """Say which check fails, and how."""
    limit = result.ended.ending in ("first_output", "silence", "wall_clock")
    kind = Kind.CHECK_TIMEOUT if limit else BY_CHECK[result.kind]
    how = "" if limit else f" (exit code {result.ended.exit_code})"
    return _failure(kind, result.ended.tail, because=f"`{one_line(result.command, COMMAND_CHARS)}`{how}")


def _failure(kind: Kind, detail: str, *, because: str = "") -> Failure:
    means = KINDS[kind].means
    summary = f"{means}: {because}" if because else means
    return Failure(kind=kind, summary=summary[0].upper() + summary[1:], detail=detail[-DETAIL_CHARS:])
