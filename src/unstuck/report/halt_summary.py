"""What a halt leaves behind: done with commits, failed with attempts, blocked and by what, and the way on."""

import re
import shlex
from collections.abc import Iterable, Mapping
from itertools import chain

from unstuck.diagnosis.captured import capture, headline, phase_type, said
from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import TaskState
from unstuck.model.event import GOAL
from unstuck.model.failure import KINDS, Failure, Kind
from unstuck.model.text import counted, fill, one_line
from unstuck.policy.schedule import blocked_tasks
from unstuck.shipped import shipped_toml

DETAIL_CHARS, MISSING_CHARS = 300, 200
NAMED = 3
IN_FILES = frozenset({"test_failure", "lint_error", "typecheck_error", "format_error", "file_conflict"})


def resume_command(state: RunState) -> str:
    """Return the command that goes on with this run."""
    started = state.started
    if started is not None and started.format == GOAL:
        return f"unstuck resume {started.run}"
    plan = started.plan if started else ""
    return f"unstuck run {shlex.quote(plan)} --commit {started.options.commit if started else 'auto'} --resume"


def halted(state: RunState) -> tuple[str, ...]:
    """Tell what a halted run came to, line by line; nothing for one that is not halted, or whose plan has no phases."""
    started, stuck = state.started, [task for task in state.tasks.values() if task.status == "stuck"]
    if started is None or not stuck or state.ended is None or state.ended.exit_code != 3:  # noqa: PLR2004  # stuck
        return ()
    if not state.halted and started.format != "superplan":
        return ()
    noun, waiting = "phase" if started.format == "superplan" else "task", blocked_tasks(state)
    kept = [name for name, task in state.tasks.items() if task.attempts or task.status != "pending" or name in waiting]
    again = [
        f"{noun.capitalize()} {task.task.shown} failed{' after retry' if len(task.tries) > 1 else ''}" for task in stuck
    ]

    def about(name: str, status: str, facts: Mapping[str, str]) -> list[str]:
        task = state.tasks[name].task
        head = f"{noun.capitalize()} {task.shown}: {one_line(task.title, DETAIL_CHARS)} ... {status}"
        return [head, *(f"  {fact}: {text}" for fact, text in facts.items())]

    def shown(names: Iterable[str]) -> str:
        return ", ".join(state.tasks[name].task.shown for name in names)

    done = {name: task for name, task in state.tasks.items() if task.status == "complete"}
    commits = {
        name: {"Commit": one_line(task.task.subject, DETAIL_CHARS)} for name, task in done.items() if task.commit
    }
    completed = [about(name, "complete", commits.get(name, {})) for name in done]
    held_up = [about(name, "blocked", {"Blocked by": shown(causes)}) for name, causes in waiting.items()]
    steps = [*dict.fromkeys(map(_step, stuck)), f"Run: {resume_command(state)}"]
    title, *lines = fill(
        shipped_toml("blocks")["halted"],
        reason="; ".join(again[:NAMED]),
        NOUN=noun.upper(),
        S="S"[: len(stuck) > 1],
        completed=[*chain(*completed)] or ["none"],
        failed=[*chain(*(about(task.task.id, "FAILED", _failed(state, task)) for task in stuck))],
        blocked=[*chain(*held_up)] or ["none"],
        files=counted(len(kept), noun),
        steps=[f"{number}. {step}" for number, step in enumerate(steps, 1)],
    )
    told = [part for line in lines for part in ((line, "-" * len(line)) if line.isupper() else (line,))]
    return (title, "=" * len(title), *told)


def _failed(state: RunState, task: TaskState) -> dict[str, str]:
    most = state.started.options.max_attempts if state.started else None
    failure = task.attempts[-1].failure if task.attempts else None
    details = one_line(task.question, DETAIL_CHARS)
    if failure is not None:
        details = " - ".join(part for part in (headline(failure), said(failure)) if part)
        if failure.together and "together" not in details:
            details = f"{details} (together with {failure.together})"
    return {
        "Attempts": f"{len(task.tries)}/{most or '?'}",
        "Error": _word(state, failure.kind) if failure else "unknown",
        "Details": one_line(details, DETAIL_CHARS),
    }


def _word(state: RunState, kind: Kind) -> str:
    """Name a failure as the log does, and in a superplan as autobuild would: it has fewer words."""
    theirs = state.started is not None and state.started.format == "superplan"
    return (KINDS[kind].phase_type if theirs else None) or kind


def _step(task: TaskState) -> str:
    """Say what a person does first about a failed task."""
    failure = task.attempts[-1].failure if task.attempts else None
    if failure is not None and failure.kind is Kind.UNVERIFIED:
        return f"Look at the work, then take it: unstuck accept {task.task.id} --because TEXT"
    kind, steps = phase_type(failure) if failure else "unknown", shipped_toml("telling")["first_steps"]
    kind = failure.kind if failure and failure.kind in steps else kind
    advice = steps.get(kind, f"See what happened: unstuck show {task.task.id}")
    files: list[str] = []
    if failure is not None and kind in IN_FILES:
        files = list(dict.fromkeys(touch.file for touch in failure.touches)) or capture(failure).get("files", [])
    missing = find_missing(failure) if failure is not None and kind == "dependency_missing" else ("", "")
    if any(missing):
        package, install = missing
        where = f": {install or package}"
    elif files:
        where = f" in {', '.join(files[:NAMED])}"
    else:
        where = f" ({task.task.shown}): unstuck show {task.task.id}" if kind in steps else ""
    return one_line(f"{advice}{where}", DETAIL_CHARS)


def find_missing(failure: Failure) -> tuple[str, str]:
    """Name the package that a failure says is missing, and how to install it; empty where it says neither."""
    table, name = shipped_toml("telling")["install"], next(iter(failure.names), "")
    shape, command = table.get(failure.rule) or table.get(failure.rule.partition(".")[0], ("", ""))
    package = re.match(shape, name)
    install = one_line(command.format(package[0]), MISSING_CHARS) if command and package else ""
    return install.rpartition(" ")[2] or one_line(name, MISSING_CHARS), install
