"""The two files of Auto-Claude: the history of attempts and the list of verified commits."""

from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from unstuck.compat.autobuild import TEXT_CHARS, read_json_object
from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import AttemptState, TaskState
from unstuck.model.action import Rollback, Switch
from unstuck.model.event import Inherited, PastAttempt, PastCommit, PastTask
from unstuck.model.text import iso

HISTORY_STATUS = {"complete": "completed", "pending": "pending", "stuck": "stuck", "skipped": "stuck"}
"""Our statuses as Auto-Claude names them. A task under way is `in_progress` there, or `failed` between two attempts."""


UNDER_WAY = ("running", "verifying", "waiting")


def attempt_history(state: RunState) -> dict[str, Any]:
    """Return the attempts of all tasks as `attempt_history.json` of Auto-Claude holds them."""
    past = state.inherited.tasks if state.inherited else ()
    unknown = [task for task in past if task.id not in state.tasks]
    subtasks = {
        task.id: {"attempts": [_inherited(attempt) for attempt in task.attempts], "status": "pending"}
        for task in unknown
    }
    subtasks |= {name: _task_history(task) for name, task in state.tasks.items() if task.attempts or task.inherited}
    stuck = [
        {
            "subtask_id": name,
            "reason": task.question,
            "escalated_at": iso(task.last_at),
            "attempt_count": len(task.attempts),
        }
        for name, task in state.tasks.items()
        if task.status == "stuck"
    ]
    return {"subtasks": subtasks, "stuck_subtasks": stuck, "metadata": _metadata(state)}


def build_commits(state: RunState) -> dict[str, Any]:
    """Return the commits with green checks as `build_commits.json` of Auto-Claude holds them."""
    landed = [task for task in state.tasks.values() if task.commit is not None]
    past = state.inherited.commits if state.inherited else ()
    commits = [asdict(commit) for commit in past] + [
        {"hash": task.commit, "subtask_id": task.task.id, "timestamp": iso(task.last_at)}
        for task in sorted(landed, key=lambda task: task.last_seq)
    ]
    return {
        "commits": commits,
        "last_good_commit": commits[-1]["hash"] if commits else None,
        "metadata": _metadata(state),
    }


def _task_history(task: TaskState) -> dict[str, Any]:
    last = task.attempts[-1] if task.attempts else None
    failed = last is not None and last.failure is not None and not last.continues
    ended = [attempt for attempt in task.attempts if attempt.ended is not None]
    if task.status in UNDER_WAY and ended and ended[-1] is last and not failed:
        ended.pop()  # it goes on or is being checked, so its result is open
    return {
        "attempts": [
            *(_inherited(past) for past in task.inherited),
            *(_old_attempt(attempt, task) for attempt in ended),
        ],
        "status": HISTORY_STATUS.get(task.status, "failed" if failed else "in_progress"),
    }


def _inherited(past: PastAttempt) -> dict[str, Any]:
    return asdict(past) | {"error": past.error or None}


def _old_attempt(attempt: AttemptState, task: TaskState) -> dict[str, Any]:
    landed = task.status == "complete" and attempt is task.attempts[-1]
    place = task.attempts.index(attempt)
    epoch = task.attempts[task.epoch_from if place >= task.epoch_from else 0 : place + 1]
    rolled = attempt.decision is not None and isinstance(attempt.decision.action, Rollback | Switch)
    return {
        "session": sum(earlier.sessions for earlier in epoch),
        "timestamp": iso(attempt.ended or attempt.started),
        "approach": attempt.outcome.approach if attempt.outcome else "",
        "success": landed,
        "error": attempt.failure.says if attempt.failure else None,
        **({"rolled_back_to": attempt.base} if rolled else {}),
    }


def _metadata(state: RunState) -> dict[str, Any]:
    times = [task.last_at for task in state.tasks.values()]
    return {"created_at": iso(state.created), "last_updated": iso(max(times, default=0.0) or state.created)}


FOLDERS = ("memory", ".")
"""The folders of the two files, relative to the plan."""


HISTORY = "attempt_history.json"


COMMITS = "build_commits.json"


Past = TypeVar("Past", PastAttempt, PastCommit)


MAX_ATTEMPTS = 50
"""The last attempts of a task that are kept. A brief shows three."""


def inherited(plan: Path, *more: Path) -> Inherited | None:
    """Return the records in the first folder that has any. A file that cannot be read counts as empty."""
    for folder in (*(plan.parent / name for name in FOLDERS), *more):
        tasks = tuple(_past_tasks(read_json_object(folder / HISTORY).get("subtasks")))
        commits = tuple(_records(PastCommit, read_json_object(folder / COMMITS).get("commits")))
        if tasks or commits:
            return Inherited(source=str(folder), tasks=tasks, commits=commits)
    return None


def _past_tasks(subtasks: object) -> Iterator[PastTask]:
    for name, entry in subtasks.items() if isinstance(subtasks, dict) else ():
        attempts = tuple(_records(PastAttempt, entry.get("attempts") if isinstance(entry, dict) else None))
        if attempts:
            yield PastTask(id=name, attempts=attempts[-MAX_ATTEMPTS:])


def _records(record_type: type[Past], items: object) -> Iterator[Past]:
    """Yield a record for each object of a list. A field that is missing or of another type is empty."""
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict):
            values: dict[str, Any] = {}
            for field in fields(record_type):
                value = item.get(field.name)
                if type(value) is field.type:
                    values[field.name] = value[:TEXT_CHARS] if isinstance(value, str) else value
                elif callable(field.type):
                    values[field.name] = field.type()
            yield record_type(**values)
