"""Notices in the blocks of autobuild for a plan that cannot run or an event of a run."""

import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise

from unstuck.compat.autobuild_blocks import (
    CAPTURED_LABELS,
    CAPTURED_TEST_LABELS,
    CIRCULAR_DEPENDENCY_BLOCK,
    DEPENDENCY_MISSING_BLOCK,
    FILE_CONFLICT_BLOCK,
    FRESH_START_BLOCK,
    HALT_SEQUENCE_BLOCK,
    MULTIPLE_FAILURES_BLOCK,
    PARTIAL_FAILURE_BLOCK,
    PLAN_INVALID_BLOCK,
    REQUIRED_BY,
    RESUMED_BLOCK,
    RETRY_AFTER_SIBLINGS_BLOCK,
    RETRY_BLOCK,
    USER_ACTIONS,
)
from unstuck.diagnosis.captured import failure_details, headline, phase_type
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
from unstuck.reports.halt_summary import missing_package, resume_command

QUOTE_CHARS = 200
MAX_TESTS = 5


def _block(form: str, **blanks: object) -> str:
    return _titled(*fill(form, **blanks))


def _titled(title: str, *lines: str) -> str:
    return "\n".join([title, "=" * len(title), "", *lines])


def plan_problems_text(plan: Plan, problems: Sequence[Problem]) -> str:
    """Return all problems that keep a plan from running. A plan with phases gets autobuild's blocks."""
    head = f"{plan.path} cannot be run, {counted(len(problems), 'problem')}:"
    if not plan.phased:
        lines = [f"  {_line_number('line', problem)}{problem.message} {problem.hint}" for problem in problems]
        return "\n".join([head, *lines])
    tasks = {task.id: task for task in plan.tasks}
    invalid = [problem for problem in problems if not problem.cycle]
    blocks = [_plan_invalid(invalid, plan.path)] if invalid else []
    blocks += [_circular_dependency(problem.cycle, tasks, plan.noun) for problem in problems if problem.cycle]
    return "\n\n".join([head, *blocks])


def _line_number(word: str, problem: Problem) -> str:
    return f"{word} {problem.line}: " if problem.line else ""


def _circular_dependency(cycle: Sequence[str], tasks: Mapping[str, Task], noun: str) -> str:
    names = [f"{noun.capitalize()} {tasks[name].shown}" for name in cycle]
    return _block(
        CIRCULAR_DEPENDENCY_BLOCK, noun=noun, circle=[f"{name} depends on {needed}" for name, needed in pairwise(names)]
    )


def _plan_invalid(problems: Sequence[Problem], path: str) -> str:
    lines = [f"{_line_number('Line', problem)}{problem.message} {problem.hint}".rstrip() for problem in problems]
    return _block(PLAN_INVALID_BLOCK, problems=lines, path=shlex.quote(path))


def _dependency_missing(failure: Failure, verdict: Verdict | None, resume: str) -> str:
    package, install = missing_package(failure)
    red = next((result for result in verdict.results if result.status == "fail"), None) if verdict else None
    kind, command = (red.kind, red.command) if red else failure.check
    required_by = REQUIRED_BY.get(kind, "The session")
    if command:
        required_by += f" (`{one_line(command, QUOTE_CHARS)}`)"
    return _block(
        DEPENDENCY_MISSING_BLOCK,
        package=package or one_line(failure.summary, QUOTE_CHARS),
        by=required_by,
        install=f"Install missing dependency: {install}" if install else "Install it, or put it on PATH.",
        resume=resume,
    )


def _file_conflict(failure: Failure, names: Mapping[str, str], noun: str) -> str:
    lines: list[str] = []
    for file in dict.fromkeys(touch.file for touch in failure.touches):
        lines.append(f"File: {one_line(file, QUOTE_CHARS)}")
        for touch in failure.touches:
            if touch.file == file:
                author = (
                    f"{noun.capitalize()} {names.get(touch.task, touch.task)}" if touch.task else "A commit of yours"
                )
                place = f" lines {touch.first}-{touch.last}" if touch.how == "modified" else ""
                lines.append(f"{author} {touch.how}{place}")
    return _block(FILE_CONFLICT_BLOCK, noun=noun, touches=lines or [one_line(failure.summary, QUOTE_CHARS)])


def _final_failure(task: Task, failed: AttemptState, attempts: int, noun: str) -> str:
    """Return what was captured of a failure after the last retry, with the actions of the user."""
    failure = failed.failure
    assert failure is not None
    kind = phase_type(failure)
    labels = {**CAPTURED_LABELS, **(CAPTURED_TEST_LABELS if kind == "test_failure" else {})}
    facts = []
    for name, value in failure_details(failure, failed.verdict, failed.outcome).items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if value or value == 0:
            facts.append(f"- {labels[name]}: {one_line(text, QUOTE_CHARS)}")
    actions = [f"- {action}" for action in USER_ACTIONS.get(kind, ())]
    lines = [
        f"{noun.capitalize()} {task.shown} failed after {attempts} attempt{'s'[: attempts != 1]}: {headline(failure)}"
    ]
    lines += ["", "Information captured:", *facts] if facts else []
    lines += ["", "User action:", *actions] if actions else []
    return _titled(f"ERROR: {kind}{'' if KINDS[failure.kind].retryable else ' (NON-RETRYABLE)'}", *lines)


def fresh_start(plan: str, commit: CommitMode) -> str:
    """Return the block that explains the option `--fresh`."""
    return _block(FRESH_START_BLOCK, plan=shlex.quote(plan), commit=commit)


def event_notice(entry: Entry, state: RunState) -> str:
    """Return the blocks for an event, or an empty string. The state is the one after the event."""
    task_id, started = getattr(entry.event, "task", None), state.started
    if started is None or not (started.format == "superplan" or started.options.siblings_first):
        return ""
    if task_id is not None and task_id not in state.tasks:
        return ""
    match entry.event:
        case Acted(task=name, action=Retry()):
            blocks = [_partial_failure(state, name)]
        case Acted(task=name, action=Escalate() | Halt()):
            blocks = [_stuck_task(state, name), _retry_results(state, name)]
        case Acted(task=name) if state.tasks[name].status == "complete":
            blocks = [_retry_results(state, name)]
        case AttemptStarted(task=name) if len(state.tasks[name].tries) > 1:
            blocks = [_after_siblings(state, name), _retry(state, name)]
        case RunResumed(epoch=True):
            blocks = [_resumed(state)]
        case RunEnded() if state.halted:
            blocks = [_block(HALT_SEQUENCE_BLOCK)]
        case _:
            blocks = []
    return "\n\n".join(filter(None, blocks))


def _retry(state: RunState, name: str) -> str:
    task, noun = state.tasks[name], _noun(state)
    failure = task.tries[-2].failure
    if failure is None:
        return ""
    captured = failure_details(failure)
    files = captured.get("files", [])
    where = f" in {files[0]}" if len(files) == 1 else ""
    tests = captured.get("tests")
    return _block(
        RETRY_BLOCK,
        NOUN=noun.upper(),
        noun=noun,
        phase=f"{task.task.shown} ({one_line(task.task.title, QUOTE_CHARS)})",
        attempt=len(task.tries) - 1,
        most=state.started.options.max_attempts if state.started else None,
        type=phase_type(failure),
        message=one_line(headline(failure) + where, QUOTE_CHARS),
        tests=[", ".join(tests[:MAX_TESTS])] if tests else [],
    )


def _partial_failure(state: RunState, name: str) -> str:
    """Return the block for a failed task that waits for its siblings."""
    batch = _batch(state, name)
    running = [
        task for task in batch if task.task.id != name and task.stage is not Stage.REST and not _failed_once(task)
    ]
    if not running:
        return ""
    return _block(
        PARTIAL_FAILURE_BLOCK,
        batch=_names(batch),
        noun=_noun(state),
        progress=[f"{task.task.shown}: {_progress(task)}" for task in batch],
        failed=state.tasks[name].task.shown,
        others=", ".join(task.task.shown for task in running),
    )


def _after_siblings(state: RunState, name: str) -> str:
    """Return the block for the first retry of a batch, with the results of its siblings."""
    batch, noun = _batch(state, name), _noun(state)
    shown_name = state.tasks[name].task.shown
    failed = [task for task in batch if _failed_once(task) or task.task.id == name]
    is_retried = any(len(task.tries) > 1 and task.task.id != name for task in batch)
    if len(batch) <= 1 or is_retried:
        return ""
    if len(failed) > 1:
        names = [task.task.shown for task in failed]
        return _block(
            MULTIPLE_FAILURES_BLOCK,
            batch=_names(batch),
            noun=noun,
            nouns=f"{noun.lower()}s",
            progress=[f"{task.task.shown}: {'failed' if task in failed else _status_word(task)}" for task in batch],
            retries=[_parallel_retry(number, noun, name, names) for number, name in enumerate(names, 1)],
        )
    kept = [task.task.shown for task in batch if task.status == "complete"]
    note = [
        "",
        f"Note: {' and '.join(kept)} results preserved. Their commits (if --commit auto)",
        f"already created. {shown_name} retry runs in isolation.",
    ]
    progress = [
        f"{task.task.shown}: {'failed (attempt 1)' if task in failed else _status_word(task)}" for task in batch
    ]
    return _block(
        RETRY_AFTER_SIBLINGS_BLOCK, noun=noun, progress=progress, failed=shown_name, note=note if kept else []
    )


def _parallel_retry(number: int, noun: str, name: str, names: Sequence[str]) -> str:
    siblings_of_it = ", ".join(sibling for sibling in names if sibling != name)
    return f"Retry {number}: {noun} {name} (parallel with {siblings_of_it} retry)"


def _retry_results(state: RunState, name: str) -> str:
    """Return the results of several retries once the last of them has ended."""
    batch = _batch(state, name)
    retried = [task for task in batch if len(task.tries) > 1]
    if len(retried) <= 1 or state.tasks[name] not in retried or any(task.stage is not Stage.REST for task in batch):
        return ""
    noun = _noun(state)
    lines = ["Retry results:"]
    for task in retried:
        result = "complete (retry succeeded)" if task.status == "complete" else "failed (retry failed)"
        lines.append(f"  {noun} {task.task.shown}: {result}")
    stuck = [task.task.shown for task in retried if task.status == "stuck"]
    if stuck:
        lines += ["", f"{noun} {', '.join(stuck)} failed after retry.", *(["UNSTUCK HALTED"] if state.halted else [])]
    return "\n".join(lines)


def _stuck_task(state: RunState, name: str) -> str:
    task = state.tasks[name]
    last = task.attempts[-1] if task.attempts else None
    if last is None or last.failure is None:
        return ""
    failure, noun = last.failure, _noun(state).lower()
    match phase_type(failure):
        case "dependency_missing":
            return _dependency_missing(failure, last.verdict, resume_command(state))
        case "file_conflict":
            return _file_conflict(failure, {name: task.task.shown for name, task in state.tasks.items()}, noun)
        case _:
            return _final_failure(task.task, last, len(task.tries), noun)


def _resumed(state: RunState) -> str:
    """Return the block for a resumed run that tries failed tasks again."""
    again = [task for task in state.tasks.values() if task.status == "pending" and task.attempts and not task.tries]
    if not again:
        return ""
    noun, failed = _noun(state), [(task.task.shown, task.attempts[-1].failure) for task in again]
    return _block(
        RESUMED_BLOCK,
        noun=noun,
        nouns=f"{noun.lower()}s",
        failed=[f"{name}: failed ({phase_type(failure) if failure else 'unknown'})" for name, failure in failed],
        command=resume_command(state),
        names=", ".join(name for name, _ in failed),
    )


def _batch(state: RunState, name: str) -> list[TaskState]:
    """Return a task and its siblings in plan order, or nothing if siblings do not wait for each other."""
    if state.started is None or not state.started.options.siblings_first:
        return []
    members = [*siblings(state, name), state.tasks[name]]
    return sorted(members, key=lambda task: state.places[task.task.id])


def _failed_once(task: TaskState) -> bool:
    return task.stage is Stage.OPEN and len(task.tries) == 1


def _progress(task: TaskState) -> str:
    if _failed_once(task):
        return "FAILED (attempt 1)"
    return "running..." if task.stage is not Stage.REST and task.tries else _status_word(task)


def _status_word(task: TaskState) -> str:
    return "failed" if task.status == "stuck" else task.status


def _names(batch: Sequence[TaskState]) -> str:
    return f"[{', '.join(task.task.shown for task in batch)}]"


def _noun(state: RunState) -> str:
    return "Phase" if state.started is not None and state.started.format == "superplan" else "Task"
