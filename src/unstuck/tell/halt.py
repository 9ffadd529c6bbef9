"""What a halt leaves behind, as values: done with commits, failed with attempts, blocked and by what, and the way on."""

import re
import shlex
from dataclasses import dataclass
from typing import NamedTuple

from unstuck.diagnosis import KINDS, Kind, capture, headline, phase_type, said
from unstuck.journal import GOAL, RunState, TaskState, subject
from unstuck.line import blocked
from unstuck.shipped import shipped_toml
from unstuck.tell.text import one_line

DETAIL_CHARS, MISSING_CHARS = 300, 200
NAMED = 3
IN_FILES = frozenset({"test_failure", "lint_error", "typecheck_error", "format_error", "file_conflict"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One task of a halted run."""

    name: str
    title: str
    facts: tuple[tuple[str, str], ...] = ()
    """What is told below it, each with its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Halted:
    """A run that stopped for a person."""

    noun: str
    reason: str
    completed: tuple[Line, ...]
    failed: tuple[Line, ...]
    blocked: tuple[Line, ...]
    preserved: tuple[tuple[str, str], ...]
    steps: tuple[str, ...]
    command: str
    """What goes on with the run, to be typed at the repository's root."""


def resume_command(state: RunState) -> str:
    """Return the command that goes on with this run."""
    started = state.started
    if started is not None and started.format == GOAL:
        return f"unstuck resume {started.run}"
    plan = started.plan if started else ""
    return f"unstuck run {shlex.quote(plan)} --commit {started.options.commit if started else 'auto'} --resume"


def halted(state: RunState) -> Halted | None:
    """Return what a halted run came to; None for one that is not halted, or whose plan has no phases."""
    started, stuck = state.started, [task for task in state.tasks.values() if task.status == "stuck"]
    if started is None or not stuck or state.ended is None or state.ended.exit_code != 3:  # noqa: PLR2004  # stuck
        return None
    if not state.halted and started.format != "superplan":
        return None
    noun = "phase" if started.format == "superplan" else "task"
    waiting = blocked(state)
    files = sum(
        bool(task.attempts) or task.status != "pending" or name in waiting for name, task in state.tasks.items()
    )
    return Halted(
        noun=noun,
        reason="; ".join(
            f"{noun.capitalize()} {task.task.shown} failed{' after retry' if len(task.tries) > 1 else ''}"
            for task in stuck[:NAMED]
        ),
        completed=tuple(_completed(task) for task in state.tasks.values() if task.status == "complete"),
        failed=tuple(_failed(state, task) for task in stuck),
        blocked=tuple(_blocked(state, name, causes) for name, causes in waiting.items()),
        preserved=(
            ("Directory", ".unstuck/"),
            ("State files", f"{files} {noun}{'s'[: files != 1]}"),
            ("Logs", ".unstuck/logs/"),
        ),
        steps=tuple(dict.fromkeys(_step(task) for task in stuck)),
        command=resume_command(state),
    )


def _completed(task: TaskState) -> Line:
    facts = (("Commit", one_line(subject(task.task), DETAIL_CHARS)),) if task.commit else ()
    return Line(name=task.task.shown, title=one_line(task.task.title, DETAIL_CHARS), facts=facts)


def _failed(state: RunState, task: TaskState) -> Line:
    most = state.started.options.max_attempts if state.started else None
    failure = task.attempts[-1].failure if task.attempts else None
    details = one_line(task.question, DETAIL_CHARS)
    if failure is not None:
        details = " - ".join(part for part in (headline(failure), said(failure)) if part)
        details = (
            f"{details} (together with {failure.together})"
            if failure.together and "together" not in details
            else details
        )
    facts = (
        ("Attempts", f"{len(task.tries)}/{most or '?'}"),
        ("Error", (KINDS[failure.kind].phase_type or failure.kind) if failure else "unknown"),
        ("Details", one_line(details, DETAIL_CHARS)),
    )
    return Line(name=task.task.shown, title=one_line(task.task.title, DETAIL_CHARS), facts=facts)


def _blocked(state: RunState, name: str, causes: tuple[str, ...]) -> Line:
    task = state.tasks[name].task
    by = ", ".join(state.tasks[cause].task.shown for cause in causes)
    return Line(name=task.shown, title=one_line(task.title, DETAIL_CHARS), facts=(("Blocked by", by),))


def _step(task: TaskState) -> str:
    """Say what a person does first about a failed task."""
    failure = task.attempts[-1].failure if task.attempts else None
    if failure is not None and failure.kind is Kind.UNVERIFIED:
        return f"Look at the work, then take it: unstuck accept {task.task.id} --because TEXT"
    kind, steps = phase_type(failure) if failure else "unknown", shipped_toml("telling")["first_steps"]
    deed = steps.get(kind, f"See what happened: unstuck show {task.task.id}")
    files: list[str] = []
    if failure is not None and kind in IN_FILES:
        files = list(dict.fromkeys(touch.file for touch in failure.touches)) or capture(failure).get("files", [])
    missing = find_missing(failure.detail) if failure is not None and kind == "dependency_missing" else None
    if missing is not None and missing.package:
        where = f": {missing.install or missing.package}"
    elif files:
        where = f" in {', '.join(files[:NAMED])}"
    else:
        where = f" ({task.task.shown}): unstuck show {task.task.id}" if kind in steps else ""
    return one_line(f"{deed}{where}", DETAIL_CHARS)


class Missing(NamedTuple):
    """A dependency that is not there, and how to install it."""

    package: str
    install: str


def find_missing(text: str) -> Missing:
    """Name the package that an output says is missing; both fields are empty if it names none."""
    for row in shipped_toml("telling")["missing"]:
        if found := re.search(row["pattern"], text):
            command = row.get("install", "")
            package = f"@types/{found[1]}" if "@types/{}" in command else found[1]
            return Missing(one_line(package, MISSING_CHARS), one_line(command.format(found[1]), MISSING_CHARS))
    return Missing("", "")
