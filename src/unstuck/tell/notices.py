"""The blocks of text that autobuild prints when a phase fails: what happened, what is done about it, what a person can do."""

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from unstuck.diagnosis import KINDS, Failure, capture, headline, phase_type
from unstuck.journal import AttemptState, Verdict
from unstuck.plans import Problem, Task
from unstuck.tell.text import one_line

CANNOT = "UNSTUCK CANNOT PROCEED"
SAID_CHARS = 200

USER_ACTIONS: Mapping[str, tuple[str, ...]] = {
    "test_failure": ("Review test failures manually", "Check if tests are flaky", "Verify test assumptions match implementation"),
    "lint_error": ("Review lint rules", "Consider disabling problematic rules", "Check for conflicting lint configurations"),
    "typecheck_error": ("Review type definitions", "Check for missing @types packages", "Verify tsconfig/mypy configuration"),
    "timeout": ("Increase timeout (if justified)", "Break phase into smaller phases", "Check for infinite loops or hanging operations"),
    "verification_mismatch": ("Review sub-agent logs", "Check for race conditions", "Verify no external state changes"),
    "format_error": ("Run the formatter by hand", "Check for conflicting formatter configurations"),
    "task_incomplete": ("Review sub-agent logs", "Break phase into smaller phases"),
    "parse_error": ("Review sub-agent logs", "Check what form of result the agent is asked for"),
}  # fmt: skip
"""What a person can do when the retry has failed, too; autobuild's words where it has some."""

CAPTURED: Mapping[str, str] = {
    "count": "Number of errors", "files": "File paths with errors", "rules": "Rule names violated", "lines": "Line numbers",
    "tests": "Test names", "messages": "Error messages", "after_seconds": "Seconds before timeout",
    "last_activity": "Last known activity", "claimed": "What sub-agent claimed", "found": "What fresh verification found",
    "discrepancy": "Discrepancy details", "tasks_completed": "Tasks completed", "tasks_total": "Tasks in all",
    "reason": "Why the result cannot be read",
}  # fmt: skip
"""Autobuild's names for what is captured; of tests it has its own."""
OF_TESTS: Mapping[str, str] = {"count": "Number of tests failed", "files": "Test file paths"}

REQUIRED_BY: Mapping[str, str] = {
    "types": "Type checking",
    "test": "Tests",
    "lint": "Linting",
    "format": "Formatting",
    "build": "Building",
    "verify": "Verification",
}


class Missing(NamedTuple):
    """A dependency that is not there, and how to install it."""

    package: str
    install: str


_MISSING: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"Cannot find type definition file for '([^']{1,200})'"), "npm install -D @types/{}"),
    (re.compile(r"(?:Cannot find (?:module|package)|Can't resolve) '((?:@[\w.-]+/)?[\w-][\w.-]*)"), "npm install {}"),
    (re.compile(r"No module named '?([\w-]+)"), "pip install {}"),
    (re.compile(r"no required module provides package ([^\s;:]{1,200})"), "go get {}"),
    (re.compile(r"(?:can't find crate for|unresolved import) `([\w-]+)"), "cargo add {}"),
    (re.compile(r"(?:^|[\s:])([\w.+-]{1,80}): (?:command )?not found", re.MULTILINE), ""),
)


def titled(title: str, *lines: str) -> str:
    """Underline a title and put the lines below it."""
    return "\n".join([title, "=" * len(title), "", *lines])


def circular_dependency(cycle: Sequence[str], tasks: Mapping[str, Task], noun: str) -> str:
    """Show the circle, one dependency a line."""
    names = [f"{noun.capitalize()} {tasks[name].shown}" for name in cycle]
    return titled(
        "ERROR: circular_dependency (NON-RETRYABLE)",
        f"Plan contains circular {noun} dependencies:",
        *(f"  {one} depends on {other}" for one, other in pairwise(names)),
        "",
        CANNOT,
        "",
        "Resolution:",
        '  Fix the plan\'s "Depends On" column to remove the cycle.',
        "  Ensure dependencies form a directed acyclic graph (DAG).",
        "",
        "[HALTED - Invalid plan]",
    )


def plan_invalid(problems: Sequence[Problem], path: str) -> str:
    """List everything that is wrong with the plan's form, each with its way on."""
    return titled(
        "ERROR: plan_invalid (NON-RETRYABLE)",
        "Plan format is incorrect:",
        *(f"  {f'Line {one.line}: ' if one.line else ''}{one.message} {one.hint}".rstrip() for one in problems),
        "",
        CANNOT,
        "",
        "Resolution:",
        "  Correct these lines.",
        f"  Then look at it again: unstuck plan {shlex.quote(path)}",
        "",
        "[HALTED - Invalid plan]",
    )


def dependency_missing(failure: Failure, verdict: Verdict | None, resume: str) -> str:
    """Say what is not installed, what needs it, and how to go on."""
    missing = find_missing(failure.detail)
    red = next((result for result in verdict.results if result.status == "fail"), None) if verdict else None
    kind, command = (red.kind, red.command) if red else failure.check
    by = REQUIRED_BY.get(kind, "The session")
    return titled(
        "ERROR: dependency_missing (NON-RETRYABLE)",
        "Required dependency not installed:",
        f"  Package: {missing.package or one_line(failure.summary, SAID_CHARS)}",
        f"  Required by: {by}{f' (`{one_line(command, SAID_CHARS)}`)' if command else ''}",
        "",
        CANNOT,
        "",
        "Resolution:",
        f"  Install missing dependency: {missing.install}" if missing.install else "  Install it, or put it on PATH.",
        f"  Then resume: {resume}",
        "",
        "[HALTED - Manual intervention required]",
    )


def find_missing(text: str) -> Missing:
    """Name the package that an output says is missing; both fields are empty if it names none."""
    for pattern, command in _MISSING:
        if found := pattern.search(text):
            package = f"@types/{found[1]}" if "@types/{}" in command else found[1]
            return Missing(one_line(package, SAID_CHARS), one_line(command.format(found[1]), SAID_CHARS))
    return Missing("", "")


def file_conflict(failure: Failure, names: Mapping[str, str], noun: str) -> str:
    """Show which phases changed which lines of the same files, and the three ways out."""
    lines: list[str] = []
    for file in dict.fromkeys(one.file for one in failure.touches):
        lines.append(f"  File: {one_line(file, SAID_CHARS)}")
        for touch in (one for one in failure.touches if one.file == file):
            who = f"{noun.capitalize()} {names.get(touch.task, touch.task)}" if touch.task else "A commit of yours"
            lines.append(
                f"  {who} {touch.how}{f' lines {touch.first}-{touch.last}' if touch.how == 'modified' else ''}"
            )
    return titled(
        "ERROR: file_conflict (NON-RETRYABLE)",
        f"Parallel {noun}s modified the same file:",
        *(lines or [f"  {one_line(failure.summary, SAID_CHARS)}"]),
        "",
        CANNOT,
        "",
        "Resolution options:",
        "1. Manually merge the changes",
        f"2. Modify plan to make these {noun}s sequential",
        "3. Split the shared file to avoid conflicts",
        "",
        "[HALTED - Parallel conflict]",
    )


def final_failure(task: Task, failed: AttemptState, attempts: int, noun: str) -> str:
    """Say what is known about a failure that a retry did not mend, and what a person can do."""
    failure = failed.failure
    assert failure is not None
    kind = phase_type(failure)
    names = {**CAPTURED, **(OF_TESTS if kind == "test_failure" else {})}
    captured = capture(failure, failed.verdict, failed.outcome)
    known = [f"- {names[name]}: {_told(value)}" for name, value in captured.items() if value or value == 0]
    actions = [f"- {action}" for action in USER_ACTIONS.get(kind, ())]
    lines = [
        f"{noun.capitalize()} {task.shown} failed after {attempts} attempt{'s'[: attempts != 1]}: {headline(failure)}"
    ]
    lines += ["", "Information captured:", *known] if known else []
    lines += ["", "User action:", *actions] if actions else []
    return titled(f"ERROR: {kind}{'' if KINDS[failure.kind].retryable else ' (NON-RETRYABLE)'}", *lines)


def _told(value: object) -> str:
    return one_line(", ".join(map(str, value)) if isinstance(value, list) else str(value), SAID_CHARS)
