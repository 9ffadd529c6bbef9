"""What seed 003's files say of a run: the object of `.ralph-state.json`, the lines of `.progress.md`. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from unstuck.decide import FINAL, PASSED, Amendment, Limits, commit_of, harmless, history_line, read_request, said
from unstuck.diagnosis import Kind
from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import SETTLED, TaskState

RECOVERY = "fix-tasks"
"""The profile that `recoveryMode` stands for."""
HASH_CHARS = 7
TITLE_CHARS, LEARNING_CHARS = 120, 240
LIMIT_FIELDS = {
    "maxTaskIterations": ("attempts", 1),
    "maxFixTasksPerOriginal": ("fixes", 0),
    "maxFixTaskDepth": ("fix_depth", 0),
    "maxGlobalIterations": ("executions", 1),
    "maxModificationsPerTask": ("modifications", 0),
    "maxModificationDepth": ("modification_depth", 0),
}
"""The limits that a state file may set: their names here, and the least that makes sense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a state file asks of a run."""

    recovery: bool = False
    limits: Mapping[str, int]


def settings(content: Mapping[str, Any]) -> Settings:
    """Read what a state file asks for; a value that makes no sense asks for nothing."""
    found = {
        ours: content[theirs]
        for theirs, (ours, least) in LIMIT_FIELDS.items()
        if type(content.get(theirs)) is int and content[theirs] >= least
    }
    return Settings(recovery=content.get("recoveryMode") is True, limits=found)


# --- .ralph-state.json -------------------------------------------------------------------------------


def first_content(name: str, limits: Limits, tasks: int) -> dict[str, Any]:
    """Return the object for a spec folder that has none yet."""
    return {
        "source": "spec",
        "name": name,
        "phase": "execution",
        "taskIndex": 0,
        "totalTasks": tasks,
        "taskIteration": 1,
        "maxTaskIterations": limits.attempts,
        "globalIteration": 1,
        "maxGlobalIterations": limits.run_executions(tasks),
        "recoveryMode": False,
        "maxFixTasksPerOriginal": limits.fixes,
        "maxFixTaskDepth": limits.fix_depth,
        "fixTaskMap": {},
    }


def merged(before: Mapping[str, Any], state: RunState) -> dict[str, Any]:
    """Return the object brought up to date. What we do not know stays as it is, and in its place."""
    content = dict(before)
    tasks = list(state.tasks.values())
    index = next((at for at, task in enumerate(tasks) if task.status not in SETTLED), len(tasks))
    current = tasks[index] if index < len(tasks) else None
    content |= {"phase": "execution", "taskIndex": index, "totalTasks": len(tasks)}
    if "taskIteration" in before:
        content["taskIteration"] = max(1, len(current.attempts) - current.epoch_from if current else 1)
    if "globalIteration" in before:
        content["globalIteration"] = max(1, state.executions)
    if state.started is not None and state.started.options.profile == RECOVERY:
        content["recoveryMode"] = True
    fixes = _fix_map(before.get("fixTaskMap"), state)
    if fixes or "fixTaskMap" in before:
        content["fixTaskMap"] = fixes
    changes = _modification_map(before.get("modificationMap"), state)
    if changes or "modificationMap" in before:
        content["modificationMap"] = changes
    return content


def _modification_map(before: object, state: RunState) -> dict[str, Any]:
    known = dict(before) if isinstance(before, dict) else {}
    for name, task in state.tasks.items():
        if task.modifications:
            made = [
                {"id": new, "type": one.request, "reason": said_reason(task, one.attempt)}
                for one in task.modifications
                for new in one.ids
            ]
            known[name] = {"count": len(task.modifications), "modifications": made}
    return known


def said_reason(task: TaskState, attempt: int) -> str:
    """Return why the agent asked for a change in one of its attempts."""
    outcome = next((one.outcome for one in task.attempts if one.number == attempt), None)
    found = read_request(outcome.words, task.task.id) if outcome else None
    return found.reason if isinstance(found, Amendment) else ""


def _fix_map(before: object, state: RunState) -> dict[str, Any]:
    """Bring the map up to date; tasks and fields that it has and we do not know stay."""
    known = dict(before) if isinstance(before, dict) else {}
    for name, task in state.tasks.items():
        if not task.fixes:
            continue
        entry = known.get(name)
        old = dict(entry) if isinstance(entry, dict) else {}
        listed = old.get("fixTaskIds")
        ids = [*(listed if isinstance(listed, list) else []), *task.fixes]
        unique = list(dict.fromkeys(one for one in ids if isinstance(one, str)))
        last = task.last_error or old.get("lastError", "")
        known[name] = {**old, "attempts": len(unique), "fixTaskIds": unique, "lastError": last}
    return known


# --- .progress.md ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What the progress file is to say, by task where a line has one."""

    completed: Mapping[str, str]
    open: frozenset[str]
    """Tasks that are not done, or no longer: a line that calls one completed is taken out."""
    fixes: Mapping[str, str]
    learnings: tuple[str, ...]


def progress(state: RunState) -> Progress:
    """Gather the lines, first things first: a file that is written seldom says the same as one that is written often."""
    latest = sorted(state.tasks.items(), key=lambda item: item[1].last_seq)
    worked = {name: task for name, task in latest if task.attempts}
    learnings = sorted((at, line) for task in worked.values() for at, line in _learnings(task))
    return Progress(
        completed={name: _completed(task, state) for name, task in worked.items() if task.status == "complete"},
        open=frozenset(name for name, task in worked.items() if task.status != "complete"),
        fixes={
            name: history_line(name, task.fixes, final)
            for name, task in worked.items()
            if task.fixes and (final := final_of(state, name))
        },
        learnings=tuple(line for _, line in learnings),
    )


def final_of(state: RunState, name: str) -> str:
    """Say how the repairing of a task ended, if it has: PASS, or the limit that it, or one of its fixes, ran into."""
    task = state.tasks[name]
    if task.status == "complete":
        return PASSED
    if task.status == "stuck":
        return FINAL.get(task.climbed[-1], "") if task.climbed else ""
    ended = [final_of(state, fix) for fix in task.waits_for if fix in state.tasks]
    return next((final for final in ended if final not in ("", PASSED)), "")


def _completed(task: TaskState, state: RunState) -> str:
    commit = commit_of(state, task.task.id)
    tail = f" - {commit[:HASH_CHARS]}" if commit else ""
    return f"- [x] {task.task.id} {harmless(task.task.title, TITLE_CHARS)}{tail}"


def _learnings(task: TaskState) -> Iterator[tuple[float, str]]:
    """Yield how each attempt failed, and when it began."""
    for attempt in task.attempts:
        if attempt.failure is not None and attempt.failure.kind is not Kind.INTERRUPTED:
            told = harmless(said(attempt, task.task.id)[0], LEARNING_CHARS)
            yield (
                attempt.started,
                f"- Task {task.task.id}, attempt {attempt.number} failed ({attempt.failure.kind}): {told}",
            )
