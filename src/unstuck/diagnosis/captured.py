"""What is worth keeping of a failure and telling of it: counts, files and messages by autobuild's type, advice, words to leave alone."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from unstuck.agents.printed_json import PhaseResult, UnreadableResult
from unstuck.diagnosis.classifying import result_of
from unstuck.diagnosis.output.tool_output import Finding, error_of, read
from unstuck.model.failure import KINDS, Failure
from unstuck.model.outcome import Ended, Outcome
from unstuck.model.plan import Task
from unstuck.model.text import one_line
from unstuck.model.verdict import Check, CheckKind, Verdict

MOST = 20
SAID_CHARS = 160

NOUNS: Mapping[str, str] = {"test_failure": "test", "lint_error": "lint error", "typecheck_error": "type error"}


def phase_type(failure: Failure) -> str:
    """Return autobuild's word for a failure."""
    return KINDS[failure.kind].phase_type or "unknown"


def capture(failure: Failure, verdict: Verdict | None = None, outcome: Outcome | None = None) -> dict[str, Any]:
    """Return what a retry and a person want to know about a failure of this type, for autobuild's types as it lists it."""
    kind = phase_type(failure)
    match kind:
        case "test_failure":
            return _tested(failure)
        case "lint_error" | "typecheck_error" | "format_error":
            return _found(kind, failure)
        case "timeout":
            return _timeout(failure, verdict, outcome)
        case "verification_mismatch":
            red = [result.command for result in verdict.results if result.status == "fail"] if verdict else []
            claimed = outcome.claim if outcome else "none"
            return {"claimed": claimed, "found": verdict.status if verdict else "none", "discrepancy": red}
        case "task_incomplete":
            return _incomplete(outcome)
        case "parse_error":
            unread = result_of(outcome) if outcome else None
            reason = one_line(unread.reason, SAID_CHARS) if isinstance(unread, UnreadableResult) else failure.summary
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


def _tested(failure: Failure) -> dict[str, Any]:
    """Say how many tests fail, which, where and how; a file that does not load is a file, not a test."""
    reading = read(failure.detail)
    named = [one for one in reading.failures if one.name]
    names = _first([one_line(name, SAID_CHARS) for name in ([one.label for one in named] or failure.tests)])
    files = [one.file for one in reading.failures if one.file] or [
        name.partition("::")[0] for name in names if "::" in name
    ]
    messages = [one.message for one in reading.failures if one.message] or [error_of(reading, failure.detail)]
    return {
        "count": max(reading.red, len(named)) or len(names),
        "files": _first(files),
        "tests": names,
        "messages": _first([one_line(message, SAID_CHARS) for message in messages if message]),
    }


def _found(kind: str, failure: Failure) -> dict[str, Any]:
    """Say what a linter, type checker or formatter complains of, and where."""
    reading = read(failure.detail, formatter=kind == "format_error")
    errors = [one for one in reading.findings if one.severity == "error"] or list(reading.findings)
    files = _first([one.file for one in errors])
    if kind == "format_error":
        return {"count": len(files), "files": files}
    sums = [
        reading.measures[name]
        for name in ("errors", "problems", "violations", "offenses", "issues")
        if name in reading.measures
    ]
    count = (
        len(errors)
        if reading.findings and "errors" not in reading.measures
        else max(len(errors), int(next(iter(sums), 0)))
    )
    found: dict[str, Any] = {"count": count, "files": files}
    if kind == "lint_error":
        found["rules"] = _first([one.rule for one in errors if one.rule])
    else:
        found["messages"] = _first([one_line(_complaint(one), SAID_CHARS) for one in errors])
    return {**found, "lines": _first([f"{one.file}:{one.line}" for one in errors if one.line])}


def _complaint(found: Finding) -> str:
    """Return a complaint as type checkers print it: a numbered rule before the message, a named one behind it."""
    if found.rule[-1:].isdigit():
        return f"{found.severity} {found.rule}: {found.message}"
    return f"{found.severity}: {found.message}{f' [{found.rule}]' if found.rule else ''}"


def _first(found: Sequence[str]) -> list[str]:
    """Return each once, in order, the first few."""
    return list(dict.fromkeys(found))[:MOST]


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
    if isinstance(said, PhaseResult):
        found |= {"tasks_completed": said.tasks_completed, "tasks_total": said.tasks_total}
        found |= {"messages": [one_line(said.error_message, SAID_CHARS)]} if said.error_message else {}
    return found


def _last_line(ended: Ended) -> str:
    last = [line for line in ended.tail.splitlines() if line.strip()]
    return one_line(last[-1], SAID_CHARS) if last else ""


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
"""Linter → the same one repairing what it can."""


def advice(failure: Failure, task: Task, checks: Sequence[Check], texts: Mapping[str, str]) -> str:
    """Return the kind's advice. A sentence with a blank that cannot be filled is left out: half a sentence helps nobody."""
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
    sentences = re.split(r"(?<=[.!?]) ", line)
    whole = [one for one in sentences if all(blanks.get(blank) for blank in BLANK.findall(one))]
    return BLANK.sub(lambda found: blanks[found[1]], " ".join(whole))
