"""What is worth keeping of a failure, by seed 004's type: counts, files, names, rules and lines, read from its output."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from unstuck.agents import Result, Unreadable
from unstuck.diagnosis.classifying import result_of
from unstuck.diagnosis.kinds import KINDS, Failure
from unstuck.journal import Ended, Outcome, Verdict
from unstuck.tell import one_line

MOST = 20
SAID_CHARS = 160

_PLACE = re.compile(r"(?<![\w/.@-])((?:[\w@.-]+/)*[\w@-][\w@.-]*\.[A-Za-z]\w{0,7})[:(](\d{1,7})")
_RULE = re.compile(
    r"\b(?:TS\d{4}|[A-Z]{1,4}\d{2,4})\b|\[([a-z]+(?:-[a-z]+)+)\]\s*$|(?<=\s\s)((?:@?[\w-]+/)?[a-z]+(?:-[a-z]+)+)\s*$",
    re.MULTILINE,
)
_COUNT = re.compile(
    r"(?<![\w:.])(\d{1,6})[ \t]+(?:errors?|problems?|failed|failures?|failing|tests? failed)\b", re.IGNORECASE
)
_SAYS = re.compile(r"\b\w*(?:Error|Exception)\b[^\n]*|^E[ \t]{2,}[^\n]+|\berror\b[^\n]*", re.IGNORECASE | re.MULTILINE)
_FAILING = re.compile(r"^[ \t]*(?:FAIL(?:ED)?[:]?|✗|✕|×|not ok \d+ -?|--- FAIL:)[ \t]+(\S[^\n]*)", re.MULTILINE)  # noqa: RUF001  # as test runners print it

_UNFORMATTED = re.compile(
    r"^[ \t]*(?:(?:would reformat|needs formatting|unformatted|\[warn\]|Diff in)[ \t:]+)?"
    r"((?:[\w@.-]+/)*[\w@-][\w@.-]*\.[A-Za-z]\w{0,7})(?::\d{1,7}:?|[ \t]+at line \d{1,7}:?)?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
"""A file that a formatter would change: on a line of its own, or after the formatter's words for it."""

NOUNS: Mapping[str, str] = {"test_failure": "test", "lint_error": "lint error", "typecheck_error": "type error"}


def phase_type(failure: Failure) -> str:
    """Return seed 004's word for a failure."""
    return KINDS[failure.kind].phase_type or "unknown"


def capture(failure: Failure, verdict: Verdict | None = None, outcome: Outcome | None = None) -> dict[str, Any]:
    """Return what a retry and a person want to know about a failure of this type, for seed 004's types as it lists it."""
    kind, detail = phase_type(failure), failure.detail
    places = [(found[1], int(found[2])) for found in _PLACE.finditer(detail)]
    named = [test.partition("::")[0] for test in failure.tests if "::" in test]
    files = _first([*named, *(file for file, _ in places)])
    lines = _first([f"{file}:{line}" for file, line in places])
    messages = _first([one_line(found[0].removeprefix("E "), SAID_CHARS) for found in _SAYS.finditer(detail)])
    match kind:
        case "test_failure":
            names = _tests(failure)
            return {"count": len(names) or _counted(detail), "files": files, "tests": names, "messages": messages}
        case "lint_error":
            rules = _first([found[1] or found[2] or found[0] for found in _RULE.finditer(detail)])
            return {"count": _counted(detail) or len(lines), "files": files, "rules": rules, "lines": lines}
        case "typecheck_error":
            return {"count": _counted(detail) or len(lines), "files": files, "messages": messages, "lines": lines}
        case "timeout":
            return _timeout(failure, verdict, outcome)
        case "verification_mismatch":
            red = [result.command for result in verdict.results if result.status == "fail"] if verdict else []
            claimed = outcome.claim if outcome else "none"
            return {"claimed": claimed, "found": verdict.status if verdict else "none", "discrepancy": red}
        case "format_error":
            unformatted = _first([*files, *(found[1] for found in _UNFORMATTED.finditer(detail))])
            return {"count": len(unformatted), "files": unformatted}
        case "task_incomplete":
            return _incomplete(outcome)
        case "parse_error":
            unread = result_of(outcome) if outcome else None
            reason = one_line(unread.reason, SAID_CHARS) if isinstance(unread, Unreadable) else failure.summary
            return {"reason": reason, "last_activity": _last_line(outcome.ended) if outcome else ""}
        case _:
            return {}


def headline(failure: Failure, before: Failure | None = None) -> str:
    """Say a failure in a few words: `3 tests failing`, or `3 tests still failing` after the same before."""
    kind = phase_type(failure)
    count = capture(failure).get("count") if kind in NOUNS else None
    if not count:
        return failure.summary
    noun = f"{count} {NOUNS[kind]}{'s'[: count != 1]}"
    if kind != "test_failure":
        return noun
    return f"{noun} still failing" if before is not None and phase_type(before) == kind else f"{noun} failing"


def said(failure: Failure) -> str:
    """Return the first thing that the output says about the failure, if it says anything."""
    messages: Sequence[str] = capture(failure).get("messages", ())
    return messages[0] if messages else ""


def _tests(failure: Failure) -> list[str]:
    named = list(failure.tests) or [found[1] for found in _FAILING.finditer(failure.detail)]
    return _first([one_line(name, SAID_CHARS) for name in named])


def _first(found: Sequence[str]) -> list[str]:
    """Return each once, in order, the first few."""
    return list(dict.fromkeys(found))[:MOST]


def _counted(detail: str) -> int:
    """Return the last count that the output gives: tools sum up at the end."""
    return next((int(found[1]) for found in reversed(list(_COUNT.finditer(detail)))), 0)


def _timeout(failure: Failure, verdict: Verdict | None, outcome: Outcome | None) -> dict[str, Any]:
    """Say how long it took and what was last seen: of the check that did not end, or of the agent."""
    slow = [result.ended for result in verdict.results if result.ended.ending == "wall_clock"] if verdict else []
    ended = slow[0] if slow and failure.kind == "check_timeout" else outcome.ended if outcome else None
    if ended is None:
        return {"after_seconds": None, "last_activity": ""}
    return {"after_seconds": round(ended.seconds, 1), "last_activity": _last_line(ended)}


def _incomplete(outcome: Outcome | None) -> dict[str, Any]:
    """Say how far the agent came by its own account, and what it last did."""
    if outcome is None:
        return {}
    found: dict[str, Any] = {"claimed": outcome.claim, "last_activity": _last_line(outcome.ended)}
    said = result_of(outcome)
    if isinstance(said, Result):
        found |= {"tasks_completed": said.tasks_completed, "tasks_total": said.tasks_total}
        found |= {"messages": [one_line(said.error_message, SAID_CHARS)]} if said.error_message else {}
    return found


def _last_line(ended: Ended) -> str:
    last = [line for line in ended.tail.splitlines() if line.strip()]
    return one_line(last[-1], SAID_CHARS) if last else ""
