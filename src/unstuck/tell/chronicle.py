"""Which of autobuild's blocks an event calls for. Pure: the same event in the same state, the same text."""

import shlex
from collections.abc import Sequence

from unstuck.decide import Escalate, Halt, Retry
from unstuck.diagnosis import Failure, capture, headline, phase_type
from unstuck.journal import Acted, AttemptStarted, CommitMode, Entry, RunEnded, RunResumed, RunState, TaskState
from unstuck.line import Stage, siblings
from unstuck.tell import notices
from unstuck.tell.halt import resume_command
from unstuck.tell.notices import titled
from unstuck.tell.text import one_line

SHOWN_TESTS = 5
SEVERAL = 2
SAID_CHARS = 200

HALT_SEQUENCE = titled(
    "UNSTUCK HALT SEQUENCE",
    "1. Stop launching new phases",
    "2. Wait for running phases to complete (or timeout)",
    "3. Write final state files",
    "4. Update execution log",
    "5. Output halt summary",
    "6. Preserve state for resume",
)


def fresh_start(plan: str, commit: CommitMode) -> str:
    """Say what beginning anew means."""
    return titled(
        "FRESH START",
        f"User command: unstuck run {shlex.quote(plan)} --commit {commit} --fresh",
        "",
        "Behavior:",
        "1. Move the old state to .unstuck/old/",
        "2. Create fresh state files",
        "3. Start from the first phase whose work is not on your branch",
        "4. All previous commits remain (if --commit auto was used)",
        "",
        "Warning: Does not undo previous commits. Use git reset if needed.",
    )


def told(entry: Entry, state: RunState) -> str:
    """Return the block that people should read at this event, or nothing. The state is that after the event."""
    about = getattr(entry.event, "task", None)
    if not _speaks(state) or (about is not None and about not in state.tasks):
        return ""
    match entry.event:
        case Acted(task=name, action=Retry()):
            return _partial_failure(state, name)
        case Acted(task=name, action=Escalate() | Halt()):
            return "\n\n".join(block for block in (_stuck(state, name), _retry_results(state, name)) if block)
        case Acted(task=name) if state.tasks[name].status == "complete":
            return _retry_results(state, name)
        case AttemptStarted(task=name) if len(state.tasks[name].tries) > 1:
            return "\n\n".join(block for block in (_after_siblings(state, name), _retry(state, name)) if block)
        case RunResumed(epoch=True):
            return _resumed(state)
        case RunEnded() if state.halted:
            return HALT_SEQUENCE
        case _:
            return ""


def _speaks(state: RunState) -> bool:
    started = state.started
    return started is not None and (started.format == "superplan" or started.options.siblings_first)


def _retry(state: RunState, name: str) -> str:
    task, noun = state.tasks[name], _noun(state)
    failure = task.tries[-2].failure
    if failure is None:
        return ""
    most = state.started.options.max_attempts if state.started else None
    captured = capture(failure)
    files = captured.get("files", [])
    where = f" in {files[0]}" if len(files) == 1 else ""
    lines = [
        f"{noun}: {task.task.shown} ({one_line(task.task.title, SAID_CHARS)})",
        f"Attempt: {len(task.tries) - 1} of {most}",
        "",
        "Failure details:",
        f"  Type: {phase_type(failure)}",
        f"  Message: {one_line(headline(failure) + where, SAID_CHARS)}",
    ]
    if tests := captured.get("tests"):
        lines.append(f"  Tests: {', '.join(tests[:SHOWN_TESTS])}")
    return titled(
        f"{noun.upper()} FAILURE - Initiating Retry", *lines, "", "Launching retry sub-agent with error context..."
    )


def _partial_failure(state: RunState, name: str) -> str:
    """Tell that a failed task waits for those at its side."""
    batch = _batch(state, name)
    running = [
        task for task in batch if task.task.id != name and task.stage is not Stage.REST and not _failed_once(task)
    ]
    if not running or not _siblings_first(state):
        return ""
    failed, others = state.tasks[name].task.shown, ", ".join(task.task.shown for task in running)
    return titled(
        "PARALLEL BATCH - PARTIAL FAILURE",
        f"Batch: {_names(batch)}",
        "",
        "Status:",
        *(f"  {_noun(state)} {task.task.shown}: {_standing(task)}" for task in batch),
        "",
        "Decision: Allow running siblings to complete before retry.",
        "",
        "Rationale:",
        "1. Siblings may succeed, preserving their work",
        f"2. Retry of {failed} won't conflict with running {others}",
        "3. More efficient than cancelling all",
        "",
        f"Waiting for {others} to complete...",
    )


def _after_siblings(state: RunState, name: str) -> str:
    """Tell, at the first retry of a batch, how its siblings ended."""
    batch = _batch(state, name)
    failed = [task for task in batch if _failed_once(task) or task.task.id == name]
    if (
        len(batch) < SEVERAL
        or not _siblings_first(state)
        or any(len(task.tries) > 1 and task.task.id != name for task in batch)
    ):
        return ""
    noun = _noun(state)
    if len(failed) > 1:
        names = [task.task.shown for task in failed]
        retries = [
            f"Retry {number}: {noun} {one} (parallel with {', '.join(other for other in names if other != one)} retry)"
            for number, one in enumerate(names, 1)
        ]
        results = [f"  {noun} {task.task.shown}: {'failed' if task in failed else _word(task)}" for task in batch]
        return titled(
            "PARALLEL BATCH - MULTIPLE FAILURES",
            f"Batch: {_names(batch)}",
            "",
            "Results:",
            *results,
            "",
            f"Multiple {noun.lower()}s failed. Retrying each:",
            "",
            *retries,
            "",
            "[Retries run in parallel since they're independent]",
        )
    kept = [task.task.shown for task in batch if task.status == "complete"]
    standing = [
        f"  {noun} {task.task.shown}: {'failed (attempt 1)' if task in failed else _word(task)}" for task in batch
    ]
    note = [
        "",
        f"Note: {' and '.join(kept)} results preserved. Their commits (if --commit auto)",
        f"already created. {state.tasks[name].task.shown} retry runs in isolation.",
    ]
    return titled(
        "PARALLEL BATCH - RETRY AFTER SIBLINGS",
        "All siblings complete:",
        *standing,
        "",
        f"Initiating retry for {noun} {state.tasks[name].task.shown}...",
        *(note if kept else []),
    )


def _retry_results(state: RunState, name: str) -> str:
    """Tell, when the last of several retries has ended, how they did."""
    batch = _batch(state, name)
    retried = [task for task in batch if len(task.tries) > 1]
    if (
        len(retried) < SEVERAL
        or not _siblings_first(state)
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
    return _not_retryable(state, task, last.failure) or notices.final_failure(
        task.task, last, len(task.tries), _noun(state).lower()
    )


def _not_retryable(state: RunState, task: TaskState, failure: Failure) -> str:
    match phase_type(failure):
        case "dependency_missing":
            return notices.dependency_missing(failure, task.attempts[-1].verdict, resume_command(state))
        case "file_conflict":
            names = {name: one.task.shown for name, one in state.tasks.items()}
            return notices.file_conflict(failure, names, _noun(state).lower())
        case _:
            return ""


def _resumed(state: RunState) -> str:
    """Tell what a new epoch begins with: what had failed is tried again with a fresh budget."""
    again = [task for task in state.tasks.values() if task.status == "pending" and task.attempts and not task.tries]
    if not again:
        return ""
    noun = _noun(state)
    failed = [(task.task.shown, task.attempts[-1].failure) for task in again]
    names = ", ".join(name for name, _ in failed)
    return titled(
        "RESUME AFTER EXTERNAL FIX",
        "Previous state:",
        *(f"  {noun} {name}: failed ({phase_type(failure) if failure else 'unknown'})" for name, failure in failed),
        "",
        f"Resume command: {resume_command(state)}",
        "",
        "Resume behavior:",
        "1. Read state files",
        f"2. Find {noun} {names} in failed status",
        "3. Reset attempt count to 0",
        f"4. Re-execute {noun} {names}",
        f"5. Continue with remaining {noun.lower()}s if successful",
    )


def _batch(state: RunState, name: str) -> list[TaskState]:
    """Return a task and those at its side, in the plan's order."""
    members = [*siblings(state, name), state.tasks[name]]
    return sorted(members, key=lambda task: state.places[task.task.id])


def _failed_once(task: TaskState) -> bool:
    return task.stage is Stage.OPEN and len(task.tries) == 1


def _standing(task: TaskState) -> str:
    if _failed_once(task):
        return "FAILED (attempt 1)"
    return "running..." if task.stage is not Stage.REST and task.tries else _word(task)


def _word(task: TaskState) -> str:
    return "failed" if task.status == "stuck" else task.status


def _names(batch: Sequence[TaskState]) -> str:
    return f"[{', '.join(task.task.shown for task in batch)}]"


def _siblings_first(state: RunState) -> bool:
    return state.started is not None and state.started.options.siblings_first


def _noun(state: RunState) -> str:
    return "Phase" if state.started is not None and state.started.format == "superplan" else "Task"
