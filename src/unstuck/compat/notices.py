"""The blocks of text that autobuild prints, and which of them an event calls for. Pure: the same event and state, the same text."""

import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise

from unstuck.diagnosis.captured import capture, headline, phase_type
from unstuck.journal.run_state import RunState
from unstuck.journal.stages import Stage
from unstuck.journal.task_state import AttemptState, TaskState
from unstuck.model.action import Escalate, Halt, Retry
from unstuck.model.event import Acted, AttemptStarted, CommitMode, Entry, RunEnded, RunResumed
from unstuck.model.failure import KINDS, Failure
from unstuck.model.plan import Plan, Problem, Task
from unstuck.model.text import counted, fill, one_line
from unstuck.model.verdict import Verdict
from unstuck.policy.schedule import siblings
from unstuck.report.halt_summary import find_missing, resume_command
from unstuck.shipped import shipped_toml

SAID_CHARS = 200
SHOWN_TESTS = 5
SEVERAL = 2


def block(name: str, **blanks: object) -> str:
    """Fill in a block of the catalogue."""
    return _titled(*fill(shipped_toml("blocks")[name], **blanks))


def _titled(title: str, *lines: str) -> str:
    return "\n".join([title, "=" * len(title), "", *lines])


def not_runnable(plan: Plan, found: Sequence[Problem]) -> str:
    """Return everything that makes a plan impossible to run, as one message; autobuild's plans get its blocks."""
    head = f"{plan.path} cannot be run, {counted(len(found), 'problem')}:"
    if not plan.phased:
        lines = [f"  {f'line {one.line}: ' if one.line else ''}{one.message} {one.hint}" for one in found]
        return "\n".join([head, *lines])
    tasks = {task.id: task for task in plan.tasks}
    wrong = [one for one in found if not one.cycle]
    blocks = [plan_invalid(wrong, plan.path)] if wrong else []
    blocks += [circular_dependency(one.cycle, tasks, plan.noun) for one in found if one.cycle]
    return "\n\n".join([head, *blocks])


def circular_dependency(cycle: Sequence[str], tasks: Mapping[str, Task], noun: str) -> str:
    """Show the circle, one dependency a line."""
    names = [f"{noun.capitalize()} {tasks[name].shown}" for name in cycle]
    return block(
        "circular_dependency", noun=noun, circle=[f"{one} depends on {other}" for one, other in pairwise(names)]
    )


def plan_invalid(problems: Sequence[Problem], path: str) -> str:
    """List everything that is wrong with the plan's form, each with its way on."""
    told = [f"{f'Line {one.line}: ' if one.line else ''}{one.message} {one.hint}".rstrip() for one in problems]
    return block("plan_invalid", problems=told, path=shlex.quote(path))


def dependency_missing(failure: Failure, verdict: Verdict | None, resume: str) -> str:
    """Say what is not installed, what needs it, and how to go on."""
    package, install = find_missing(failure)
    red = next((result for result in verdict.results if result.status == "fail"), None) if verdict else None
    kind, command = (red.kind, red.command) if red else failure.check
    return block(
        "dependency_missing",
        package=package or one_line(failure.summary, SAID_CHARS),
        by=shipped_toml("telling")["required_by"].get(kind, "The session")
        + (f" (`{one_line(command, SAID_CHARS)}`)" if command else ""),
        install=f"Install missing dependency: {install}" if install else "Install it, or put it on PATH.",
        resume=resume,
    )


def file_conflict(failure: Failure, names: Mapping[str, str], noun: str) -> str:
    """Show which phases changed which lines of the same files, and the three ways out."""
    lines: list[str] = []
    for file in dict.fromkeys(one.file for one in failure.touches):
        lines.append(f"File: {one_line(file, SAID_CHARS)}")
        for touch in (one for one in failure.touches if one.file == file):
            who = f"{noun.capitalize()} {names.get(touch.task, touch.task)}" if touch.task else "A commit of yours"
            lines.append(f"{who} {touch.how}{f' lines {touch.first}-{touch.last}' if touch.how == 'modified' else ''}")
    return block("file_conflict", noun=noun, touches=lines or [one_line(failure.summary, SAID_CHARS)])


def final_failure(task: Task, failed: AttemptState, attempts: int, noun: str) -> str:
    """Say what is known about a failure that a retry did not mend, and what a person can do."""
    failure = failed.failure
    assert failure is not None
    kind, words = phase_type(failure), shipped_toml("telling")
    names = {**words["captured"], **(words["captured_of_tests"] if kind == "test_failure" else {})}
    captured = capture(failure, failed.verdict, failed.outcome)
    told = {name: ", ".join(map(str, one)) if isinstance(one, list) else str(one) for name, one in captured.items()}
    known = [
        f"- {names[name]}: {one_line(told[name], SAID_CHARS)}" for name, one in captured.items() if one or one == 0
    ]
    actions = [f"- {action}" for action in words["user_actions"].get(kind, ())]
    lines = [
        f"{noun.capitalize()} {task.shown} failed after {attempts} attempt{'s'[: attempts != 1]}: {headline(failure)}"
    ]
    lines += ["", "Information captured:", *known] if known else []
    lines += ["", "User action:", *actions] if actions else []
    return _titled(f"ERROR: {kind}{'' if KINDS[failure.kind].retryable else ' (NON-RETRYABLE)'}", *lines)


# --- which block an event calls for


def fresh_start(plan: str, commit: CommitMode) -> str:
    """Say what beginning anew means."""
    return block("fresh_start", plan=shlex.quote(plan), commit=commit)


def told(entry: Entry, state: RunState) -> str:
    """Return the block that people should read at this event, or nothing. The state is that after the event."""
    about, started = getattr(entry.event, "task", None), state.started
    if started is None or not (started.format == "superplan" or started.options.siblings_first):
        return ""
    if about is not None and about not in state.tasks:
        return ""
    match entry.event:
        case Acted(task=name, action=Retry()):
            blocks = [_partial_failure(state, name)]
        case Acted(task=name, action=Escalate() | Halt()):
            blocks = [_stuck(state, name), _retry_results(state, name)]
        case Acted(task=name) if state.tasks[name].status == "complete":
            blocks = [_retry_results(state, name)]
        case AttemptStarted(task=name) if len(state.tasks[name].tries) > 1:
            blocks = [_after_siblings(state, name), _retry(state, name)]
        case RunResumed(epoch=True):
            blocks = [_resumed(state)]
        case RunEnded() if state.halted:
            blocks = [block("halt_sequence")]
        case _:
            blocks = []
    return "\n\n".join(filter(None, blocks))


def _retry(state: RunState, name: str) -> str:
    task, noun = state.tasks[name], _noun(state)
    failure = task.tries[-2].failure
    if failure is None:
        return ""
    captured = capture(failure)
    files = captured.get("files", [])
    where = f" in {files[0]}" if len(files) == 1 else ""
    tests = captured.get("tests")
    return block(
        "retry",
        NOUN=noun.upper(),
        noun=noun,
        phase=f"{task.task.shown} ({one_line(task.task.title, SAID_CHARS)})",
        attempt=len(task.tries) - 1,
        most=state.started.options.max_attempts if state.started else None,
        type=phase_type(failure),
        message=one_line(headline(failure) + where, SAID_CHARS),
        tests=[", ".join(tests[:SHOWN_TESTS])] if tests else [],
    )


def _partial_failure(state: RunState, name: str) -> str:
    """Tell that a failed task waits for those at its side."""
    batch = _batch(state, name)
    running = [
        task for task in batch if task.task.id != name and task.stage is not Stage.REST and not _failed_once(task)
    ]
    if not running:
        return ""
    return block(
        "partial_failure",
        batch=_names(batch),
        noun=_noun(state),
        progress=[f"{task.task.shown}: {_progress(task)}" for task in batch],
        failed=state.tasks[name].task.shown,
        others=", ".join(task.task.shown for task in running),
    )


def _after_siblings(state: RunState, name: str) -> str:
    """Tell, at the first retry of a batch, how its siblings ended."""
    batch, noun, shown = _batch(state, name), _noun(state), state.tasks[name].task.shown
    failed = [task for task in batch if _failed_once(task) or task.task.id == name]
    again = any(len(task.tries) > 1 and task.task.id != name for task in batch)
    if len(batch) < SEVERAL or again:
        return ""
    if len(failed) > 1:
        names = [task.task.shown for task in failed]
        return block(
            "multiple_failures",
            batch=_names(batch),
            noun=noun,
            nouns=f"{noun.lower()}s",
            progress=[f"{task.task.shown}: {'failed' if task in failed else _word(task)}" for task in batch],
            retries=[
                f"Retry {number}: {noun} {one} (parallel with {', '.join(other for other in names if other != one)} retry)"
                for number, one in enumerate(names, 1)
            ],
        )
    kept = [task.task.shown for task in batch if task.status == "complete"]
    note = [
        "",
        f"Note: {' and '.join(kept)} results preserved. Their commits (if --commit auto)",
        f"already created. {shown} retry runs in isolation.",
    ]
    progress = [f"{task.task.shown}: {'failed (attempt 1)' if task in failed else _word(task)}" for task in batch]
    return block("retry_after_siblings", noun=noun, progress=progress, failed=shown, note=note if kept else [])


def _retry_results(state: RunState, name: str) -> str:
    """Tell, when the last of several retries has ended, how they did."""
    batch = _batch(state, name)
    retried = [task for task in batch if len(task.tries) > 1]
    if (
        len(retried) < SEVERAL
        or state.tasks[name] not in retried
        or any(task.stage is not Stage.REST for task in batch)
    ):
        return ""
    noun = _noun(state)
    lines = ["Retry results:"]
    for task in retried:
        well = task.status == "complete"
        lines.append(f"  {noun} {task.task.shown}: {'complete (retry succeeded)' if well else 'failed (retry failed)'}")
    lost = [task.task.shown for task in retried if task.status == "stuck"]
    if lost:
        lines += ["", f"{noun} {', '.join(lost)} failed after retry.", *(["UNSTUCK HALTED"] if state.halted else [])]
    return "\n".join(lines)


def _stuck(state: RunState, name: str) -> str:
    task = state.tasks[name]
    last = task.attempts[-1] if task.attempts else None
    if last is None or last.failure is None:
        return ""
    failure, noun = last.failure, _noun(state).lower()
    match phase_type(failure):
        case "dependency_missing":
            return dependency_missing(failure, last.verdict, resume_command(state))
        case "file_conflict":
            return file_conflict(failure, {name: one.task.shown for name, one in state.tasks.items()}, noun)
        case _:
            return final_failure(task.task, last, len(task.tries), noun)


def _resumed(state: RunState) -> str:
    """Tell what a new epoch begins with: what had failed is tried again with a fresh budget."""
    again = [task for task in state.tasks.values() if task.status == "pending" and task.attempts and not task.tries]
    if not again:
        return ""
    noun, failed = _noun(state), [(task.task.shown, task.attempts[-1].failure) for task in again]
    return block(
        "resumed",
        noun=noun,
        nouns=f"{noun.lower()}s",
        failed=[f"{name}: failed ({phase_type(failure) if failure else 'unknown'})" for name, failure in failed],
        command=resume_command(state),
        names=", ".join(name for name, _ in failed),
    )


def _batch(state: RunState, name: str) -> list[TaskState]:
    """Return a task and those at its side, in the plan's order; nobody where they do not wait for each other."""
    if state.started is None or not state.started.options.siblings_first:
        return []
    members = [*siblings(state, name), state.tasks[name]]
    return sorted(members, key=lambda task: state.places[task.task.id])


def _failed_once(task: TaskState) -> bool:
    return task.stage is Stage.OPEN and len(task.tries) == 1


def _progress(task: TaskState) -> str:
    if _failed_once(task):
        return "FAILED (attempt 1)"
    return "running..." if task.stage is not Stage.REST and task.tries else _word(task)


def _word(task: TaskState) -> str:
    return "failed" if task.status == "stuck" else task.status


def _names(batch: Sequence[TaskState]) -> str:
    return f"[{', '.join(task.task.shown for task in batch)}]"


def _noun(state: RunState) -> str:
    return "Phase" if state.started is not None and state.started.format == "superplan" else "Task"
