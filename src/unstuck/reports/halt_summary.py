"""The summary of a halted run with the commands that continue it."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, NamedTuple

from unstuck.diagnosis.captured import failure_details, headline, phase_type
from unstuck.diagnosis.captured import first_message as failure_message
from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import TaskState
from unstuck.model.event import GOAL
from unstuck.model.failure import KINDS, Failure, Kind
from unstuck.model.text import counted, fill, one_line
from unstuck.policy.schedule import blocked_tasks

DETAIL_CHARS = 300
PACKAGE_CHARS = 200
MAX_NAMES = 3
EXIT_STUCK = 3
TYPES_WITH_FILES = frozenset({"test_failure", "lint_error", "typecheck_error", "format_error", "file_conflict"})


class Installer(NamedTuple):
    """A command that installs a package."""

    package_pattern: str
    """Matches the package at the start of the name that a rule captured."""
    command: str


FIRST_STEPS: Final[Mapping[str, str]] = {
    Kind.AGENT_MISSING: "Put the agent in order, or add --agent NAME to the next step",
    Kind.SETUP_FAILED: "Mend the set-up commands",
    "test_failure": "Fix the failing tests",
    "lint_error": "Fix the linting errors",
    "typecheck_error": "Fix the type errors",
    "format_error": "Fix the formatting",
    "dependency_missing": "Install what is missing",
    "file_conflict": "Merge the changes by hand",
    "timeout": "Break the phase into smaller ones, or raise its time limit",
    "verification_mismatch": "Read what the agent claimed and what the checks say",
    "task_incomplete": "Read how far the agent came",
    "parse_error": "Read what the agent printed",
}
"""The first step of a user, by the failure's kind or its type in autobuild."""

HALT_BLOCK: Final = """\
UNSTUCK HALTED

Reason: {reason}

COMPLETED {NOUN}S
{completed}

FAILED {NOUN}{S}
{failed}

BLOCKED {NOUN}S
{blocked}

STATE PRESERVED
Directory: .unstuck/
State files: {files}
Logs: .unstuck/logs/

RESUME INSTRUCTIONS
{steps}

To start fresh: Add --fresh flag"""
"""The halt summary of autobuild, whose words stay literally as they are. A terminal draws it as a box."""
INSTALLERS: Final[Mapping[str, Installer]] = {
    "tsc.no_types": Installer(r".+", "npm install -D @types/{}"),
    "node": Installer(r"(?:@[\w.-]+/)?[\w.-]+", "npm install {}"),
    "tsc": Installer(r"(?:@[\w.-]+/)?[\w.-]+", "npm install {}"),
    "py": Installer(r"[\w-]+", "pip install {}"),
    "go": Installer(r"\S+", "go get {}"),
    "rust": Installer(r"[\w-]+", "cargo add {}"),
}
"""The installer of a missing package, by the diagnosis rule or the family of rules."""


def resume_command(state: RunState) -> str:
    """Return the command that goes on with this run."""
    started = state.started
    if started is not None and started.format == GOAL:
        return f"unstuck resume {started.run}"
    plan = started.plan if started else ""
    return f"unstuck run {shlex.quote(plan)} --commit {started.options.commit if started else 'auto'} --resume"


def halt_lines(state: RunState) -> tuple[str, ...]:
    """Return the summary of a halted run, line by line.

    It is empty for a run that did not stop for stuck tasks. It is also empty if nothing halted it, unless it is a superplan's.
    """
    started = state.started
    stuck = [task for task in state.tasks.values() if task.status == "stuck"]
    if started is None or not stuck or state.ended is None or state.ended.exit_code != EXIT_STUCK:
        return ()
    if not state.halted and started.format != "superplan":
        return ()
    noun = _noun(state)
    waiting = blocked_tasks(state)
    kept = [name for name, task in state.tasks.items() if task.attempts or task.status != "pending" or name in waiting]
    completed = [_task_lines(state, task, "complete", _commit(task)) for task in state.tasks.values() if _is_done(task)]
    failed = [_task_lines(state, task, "FAILED", _failure_facts(state, task)) for task in stuck]
    held_up = [
        _task_lines(state, state.tasks[name], "blocked", {"Blocked by": _shown_names(state, causes)})
        for name, causes in waiting.items()
    ]
    steps = [*dict.fromkeys(map(_first_step, stuck)), f"Run: {resume_command(state)}"]
    title, *lines = fill(
        HALT_BLOCK,
        reason="; ".join([_reason(noun, task) for task in stuck[:MAX_NAMES]]),
        NOUN=noun.upper(),
        S="S" if len(stuck) > 1 else "",
        completed=[*chain(*completed)] or ["none"],
        failed=[*chain(*failed)],
        blocked=[*chain(*held_up)] or ["none"],
        files=counted(len(kept), noun),
        steps=[f"{number}. {step}" for number, step in enumerate(steps, 1)],
    )
    return (title, "=" * len(title), *_underlined(lines))


def _noun(state: RunState) -> str:
    return "phase" if state.started is not None and state.started.format == "superplan" else "task"


def _is_done(task: TaskState) -> bool:
    return task.status == "complete"


def _reason(noun: str, task: TaskState) -> str:
    return f"{noun.capitalize()} {task.task.shown} failed{' after retry' if len(task.tries) > 1 else ''}"


def _task_lines(state: RunState, task: TaskState, status: str, facts: Mapping[str, str]) -> list[str]:
    title = one_line(task.task.title, DETAIL_CHARS)
    head = f"{_noun(state).capitalize()} {task.task.shown}: {title} ... {status}"
    return [head, *(f"  {label}: {text}" for label, text in facts.items())]


def _commit(task: TaskState) -> dict[str, str]:
    return {"Commit": one_line(task.task.subject, DETAIL_CHARS)} if task.commit else {}


def _shown_names(state: RunState, names: Iterable[str]) -> str:
    return ", ".join(state.tasks[name].task.shown for name in names)


def _underlined(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines with a rule below each title, which is in upper case."""
    for line in lines:
        yield line
        if line.isupper():
            yield "-" * len(line)


def _failure_facts(state: RunState, task: TaskState) -> dict[str, str]:
    most = state.started.options.max_attempts if state.started else None
    failure = task.attempts[-1].failure if task.attempts else None
    details = one_line(task.question, DETAIL_CHARS)
    if failure is not None:
        details = " - ".join(part for part in (headline(failure), failure_message(failure)) if part)
        if failure.together and "together" not in details:
            details = f"{details} (together with {failure.together})"
    return {
        "Attempts": f"{len(task.tries)}/{most or '?'}",
        "Error": _error_name(state, failure.kind) if failure else "unknown",
        "Details": one_line(details, DETAIL_CHARS),
    }


def _error_name(state: RunState, kind: Kind) -> str:
    """Return the kind of a failure, or in a superplan the type that autobuild has for it."""
    is_superplan = state.started is not None and state.started.format == "superplan"
    return (KINDS[kind].phase_type if is_superplan else None) or kind


def _first_step(task: TaskState) -> str:
    """Return the first step of the user for a failed task."""
    failure = task.attempts[-1].failure if task.attempts else None
    if failure is not None and failure.kind is Kind.UNVERIFIED:
        return f"Look at the work, then take it: unstuck accept {task.task.id} --because TEXT"
    kind = phase_type(failure) if failure else "unknown"
    if failure is not None and failure.kind in FIRST_STEPS:
        kind = failure.kind
    advice = FIRST_STEPS.get(kind, f"See what happened: unstuck show {task.task.id}")
    files: list[str] = []
    if failure is not None and kind in TYPES_WITH_FILES:
        files = list(dict.fromkeys(touch.file for touch in failure.touches)) or failure_details(failure).get(
            "files", []
        )
    missing = missing_package(failure) if failure is not None and kind == "dependency_missing" else ("", "")
    if any(missing):
        package, install = missing
        where = f": {install or package}"
    elif files:
        where = f" in {', '.join(files[:MAX_NAMES])}"
    else:
        where = f" ({task.task.shown}): unstuck show {task.task.id}" if kind in FIRST_STEPS else ""
    return one_line(f"{advice}{where}", DETAIL_CHARS)


def missing_package(failure: Failure) -> tuple[str, str]:
    """Return the package that a failure reports as missing and the command that installs it.

    Either is empty if the failure does not name it.
    """
    name = next(iter(failure.names), "")
    family = failure.rule.partition(".")[0]
    installer = INSTALLERS.get(failure.rule) or INSTALLERS.get(family)
    package = re.match(installer.package_pattern, name) if installer else None
    if installer is None or package is None:
        return one_line(name, PACKAGE_CHARS), ""
    install = one_line(installer.command.format(package[0]), PACKAGE_CHARS)
    return install.rpartition(" ")[2] or one_line(name, PACKAGE_CHARS), install
