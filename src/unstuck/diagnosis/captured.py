"""Collect the details of a failure for retries and people, by autobuild's failure types."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from unstuck.agents.printed_json import PhaseResult, UnreadableResult
from unstuck.diagnosis.classifying import reported_result
from unstuck.diagnosis.output.reading import Finding, Reading
from unstuck.diagnosis.output.tool_output import error_of, read_output
from unstuck.model.failure import KINDS, Failure
from unstuck.model.outcome import Ended, Outcome
from unstuck.model.plan import Task
from unstuck.model.text import one_line
from unstuck.model.verdict import Check, CheckKind, Verdict

MOST_ITEMS = 20
MESSAGE_CHARS = 160

NOUNS: Mapping[str, str] = {"test_failure": "test", "lint_error": "lint error", "typecheck_error": "type error"}


def phase_type(failure: Failure) -> str:
    """Return autobuild's word for a failure."""
    return KINDS[failure.kind].phase_type or "unknown"


def failure_details(failure: Failure, verdict: Verdict | None = None, outcome: Outcome | None = None) -> dict[str, Any]:
    """Return the details of a failure that autobuild lists for its type."""
    kind = phase_type(failure)
    match kind:
        case "test_failure":
            return _test_details(failure)
        case "lint_error" | "typecheck_error" | "format_error":
            return _finding_details(kind, failure)
        case "timeout":
            return _timeout_details(failure, verdict, outcome)
        case "verification_mismatch":
            red = [result.command for result in verdict.results if result.status == "fail"] if verdict else []
            claimed = outcome.claim if outcome else "none"
            return {"claimed": claimed, "found": verdict.status if verdict else "none", "discrepancy": red}
        case "task_incomplete":
            return _progress_details(outcome)
        case "parse_error":
            unread = reported_result(outcome) if outcome else None
            reason = one_line(unread.reason, MESSAGE_CHARS) if isinstance(unread, UnreadableResult) else failure.summary
            return {"reason": reason, "last_activity": _last_line(outcome.ended) if outcome else ""}
        case _:
            return {}


def headline(failure: Failure, before: Failure | None = None) -> str:
    """Return a failure in a few words: `3 tests failing`, or `3 tests still failing` after the same type."""
    kind = phase_type(failure)
    count = failure_details(failure).get("count") if kind in NOUNS else None
    if not count:
        return failure.summary
    noun = f"{count} {NOUNS[kind]}{'s'[: count != 1]}"
    if kind != "test_failure":
        return noun
    return f"{noun} still failing" if before is not None and phase_type(before) == kind else f"{noun} failing"


def first_message(failure: Failure) -> str:
    """Return the first message about the failure, or an empty string."""
    messages: Sequence[str] = failure_details(failure).get("messages", ())
    return messages[0] if messages else ""


def _test_details(failure: Failure) -> dict[str, Any]:
    """Return the failing tests with their files and messages. A file that does not load is not a test."""
    reading = read_output(failure.detail)
    labels = [test.label for test in reading.failures if test.name]
    names = _first([one_line(name, MESSAGE_CHARS) for name in (labels or failure.tests)])
    files = [test.file for test in reading.failures if test.file]
    files = files or [name.partition("::")[0] for name in names if "::" in name]
    messages = [test.message for test in reading.failures if test.message]
    messages = messages or [error_of(reading, failure.detail)]
    return {
        "count": max(reading.red, len(labels)) or len(names),
        "files": _first(files),
        "tests": names,
        "messages": _first([one_line(message, MESSAGE_CHARS) for message in messages if message]),
    }


def _finding_details(kind: str, failure: Failure) -> dict[str, Any]:
    """Return the findings of a linter, type checker or formatter."""
    reading = read_output(failure.detail, formatter=kind == "format_error")
    errors = [finding for finding in reading.findings if finding.severity == "error"] or list(reading.findings)
    files = _first([error.file for error in errors])
    if kind == "format_error":
        return {"count": len(files), "files": files}
    details: dict[str, Any] = {"count": _error_count(reading, errors), "files": files}
    if kind == "lint_error":
        details["rules"] = _first([error.rule for error in errors if error.rule])
    else:
        details["messages"] = _first([one_line(_complaint(error), MESSAGE_CHARS) for error in errors])
    return {**details, "lines": _first([f"{error.file}:{error.line}" for error in errors if error.line])}


def _error_count(reading: Reading, errors: Sequence[Finding]) -> int:
    """Return the number of errors: as the tool sums it up, or as many as it lists."""
    if reading.findings and "errors" not in reading.measures:
        return len(errors)
    names = ("errors", "problems", "violations", "offenses", "issues")
    count = next((reading.measures[name] for name in names if name in reading.measures), 0)
    return max(len(errors), int(count))


def _complaint(finding: Finding) -> str:
    """Return a finding as type checkers print it: a numbered rule before the message, a named one after it."""
    if finding.rule[-1:].isdigit():
        return f"{finding.severity} {finding.rule}: {finding.message}"
    return f"{finding.severity}: {finding.message}{f' [{finding.rule}]' if finding.rule else ''}"


def _first(texts: Sequence[str]) -> list[str]:
    """Return the first different texts in order."""
    return list(dict.fromkeys(texts))[:MOST_ITEMS]


def _timeout_details(failure: Failure, verdict: Verdict | None, outcome: Outcome | None) -> dict[str, Any]:
    """Return the time that passed and the last line of the check or the agent that did not end."""
    slow = [result.ended for result in verdict.results if result.ended.ending == "wall_clock"] if verdict else []
    ended = slow[0] if slow and failure.kind == "check_timeout" else outcome.ended if outcome else None
    if ended is None:
        return {"after_seconds": None, "last_activity": ""}
    return {"after_seconds": round(ended.seconds, 1), "last_activity": _last_line(ended)}


def _progress_details(outcome: Outcome | None) -> dict[str, Any]:
    """Return the progress that the agent reported, and its last line."""
    if outcome is None:
        return {}
    details: dict[str, Any] = {"claimed": outcome.claim, "last_activity": _last_line(outcome.ended)}
    result = reported_result(outcome)
    if isinstance(result, PhaseResult):
        details |= {"tasks_completed": result.tasks_completed, "tasks_total": result.tasks_total}
        if result.error_message:
            details["messages"] = [one_line(result.error_message, MESSAGE_CHARS)]
    return details


def _last_line(ended: Ended) -> str:
    last = [line for line in ended.tail.splitlines() if line.strip()]
    return one_line(last[-1], MESSAGE_CHARS) if last else ""


BLANK = re.compile(r"\{([A-Z_]+)\}")

FIXING: Mapping[str, str] = {
    "ruff check": "ruff check --fix",
    "eslint": "eslint --fix",
    "npm run lint": "npm run lint -- --fix",
    "pnpm lint": "pnpm lint --fix",
    "yarn lint": "yarn lint --fix",
    "rubocop": "rubocop -a",
    "golangci-lint run": "golangci-lint run --fix",
    "cargo clippy": "cargo clippy --fix",
}
"""Commands of linters with the form that repairs files."""


def advice(failure: Failure, task: Task, checks: Sequence[Check], texts: Mapping[str, str]) -> str:
    """Return the advice for the kind, without sentences whose blanks cannot be filled."""
    lines = texts.get(failure.kind, "").splitlines()
    filled = [_filled(line, _blanks(failure, task, checks)) for line in lines]
    return "\n".join(line for line in filled if line)


def _blanks(failure: Failure, task: Task, checks: Sequence[Check]) -> dict[str, str]:
    files = dict.fromkeys(test.partition("::")[0] for test in failure.tests) or dict.fromkeys(task.files)
    lint = _command(checks, "lint")
    fixing = next((repaired for plain, repaired in FIXING.items() if plain in lint), "")
    return {
        "FILES": ", ".join(list(files)[:5]),
        "LINT_COMMAND": lint,
        "LINT_FIX_COMMAND": fixing,
        "TYPECHECK_COMMAND": _command(checks, "types"),
    }


def _command(checks: Sequence[Check], kind: CheckKind) -> str:
    return next((check.command for check in checks if check.kind == kind), "")


def _filled(line: str, blanks: Mapping[str, str]) -> str:
    """Return a line without the sentences whose blanks have no value."""
    sentences = re.split(r"(?<=[.!?]) ", line)
    complete = [sentence for sentence in sentences if all(blanks.get(name) for name in BLANK.findall(sentence))]
    return BLANK.sub(lambda match: blanks[match[1]], " ".join(complete))
