"""Read what a predecessor recorded for this plan, so that nobody tries the same things again and no record is lost."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from unstuck.journal.event import Inherited, PastAttempt, PastCommit, PastTask

FOLDERS = ("memory", ".")
"""Where a predecessor keeps its files, seen from its plan."""
HISTORY, COMMITS = "attempt_history.json", "build_commits.json"
MOST_BYTES = 8 * 1024 * 1024
MOST_ATTEMPTS = 50
"""The last ones of a task; a brief tells three."""
TEXT_CHARS = 2000


def inherited(plan: Path, *more: Path) -> Inherited | None:
    """Return what the first folder with records tells. A file that cannot be read tells nothing and stops nothing."""
    for folder in (*(plan.parent / name for name in FOLDERS), *more):
        tasks = tuple(_tasks(_read(folder / HISTORY).get("subtasks")))
        commits = tuple(_commits(_read(folder / COMMITS).get("commits")))
        if tasks or commits:
            return Inherited(source=str(folder), tasks=tasks, commits=commits)
    return None


def _read(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > MOST_BYTES:
            return {}
        content = json.loads(file.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _tasks(subtasks: object) -> Iterator[PastTask]:
    for name, entry in subtasks.items() if isinstance(subtasks, dict) else ():
        attempts = tuple(_attempts(entry.get("attempts") if isinstance(entry, dict) else None))
        if attempts:
            yield PastTask(id=name, attempts=attempts[-MOST_ATTEMPTS:])


def _attempts(attempts: object) -> Iterator[PastAttempt]:
    for attempt in _objects(attempts):
        yield PastAttempt(
            session=attempt["session"] if isinstance(attempt.get("session"), int) else 0,
            timestamp=_text(attempt.get("timestamp")),
            approach=_text(attempt.get("approach")),
            success=attempt.get("success") is True,
            error=_text(attempt.get("error")),
        )


def _commits(commits: object) -> Iterator[PastCommit]:
    for commit in _objects(commits):
        yield PastCommit(
            hash=_text(commit.get("hash")),
            subtask_id=_text(commit.get("subtask_id")),
            timestamp=_text(commit.get("timestamp")),
        )


def _objects(items: object) -> Iterable[dict[str, Any]]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _text(value: object) -> str:
    return value[:TEXT_CHARS] if isinstance(value, str) else ""
