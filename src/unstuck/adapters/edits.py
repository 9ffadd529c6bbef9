"""Notice what a person changed by hand in the files that we make: a task set back is done again."""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from unstuck.core.event import Entry
from unstuck.core.phase_file import phase
from unstuck.core.state import RunState, fold

REOPENS = ("pending", "failed")
AT_REST = ("complete", "stuck", "skipped")

Told = Callable[[str], None]


def edits(home: Path, run: str, entries: Sequence[Entry], told: Told) -> Iterator[tuple[str, str]]:
    """Yield (task, what was done), each task once.

    A file says from which event it was made, so it is compared with the state at that event: a file that is merely
    older than the journal is not an edit.
    """
    covered = _made_at(read_json(home / "config.json", told), run)
    if covered is None:
        return
    written, now = fold(entry for entry in entries if entry.seq <= covered), fold(entries)
    found: dict[str, str] = {}
    for name, how in (*_phases(home, run, entries, written, now, told), *_history(home, written, now, told)):
        found.setdefault(name, how)
    yield from found.items()


def phase_file(home: Path, name: str) -> Path:
    return home / "phases" / f"phase-{name}.json"


def _phases(
    home: Path, run: str, entries: Sequence[Entry], written: RunState, now: RunState, told: Told
) -> Iterator[tuple[str, str]]:
    """Look for phase files that were deleted, or whose status was set back."""
    reopened: dict[str, tuple[str, int]] = {}
    for name, task in written.tasks.items():
        if task.status not in AT_REST or name not in now.tasks:
            continue
        file = phase_file(home, name)
        if not file.exists():
            if task.attempts and now.tasks[name].status == task.status:
                yield name, f"its file {file.name} was deleted"
            continue
        content = read_json(file, told)
        at = _made_at(content, run)
        if content is not None and at is not None and content.get("status") in REOPENS:
            reopened[name] = content["status"], at
    written_as = _statuses(entries, {name: at for name, (_, at) in reopened.items()})
    for name, (status, _) in reopened.items():
        if written_as[name] != status:
            yield name, f"its status was set to {status} by hand"


def _history(home: Path, written: RunState, now: RunState, told: Told) -> Iterator[tuple[str, str]]:
    """Look for tasks that were set back, or taken off the stuck list, in `attempt_history.json`.

    It is written before `config.json`, so it is at least as new as the event that the config covers. Where a task has
    not moved since then, the file can differ only by a person's hand.
    """
    content = read_json(home / "attempt_history.json", told)
    if content is None or not isinstance(content.get("subtasks"), dict):
        return
    listed = content.get("stuck_subtasks")
    stuck = {one.get("subtask_id") for one in listed if isinstance(one, dict)} if isinstance(listed, list) else None
    for name, task in written.tasks.items():
        if not task.attempts or name not in now.tasks or now.tasks[name].last_seq != task.last_seq:
            continue
        entry = content["subtasks"].get(name)
        if task.status == "stuck" and stuck is not None and name not in stuck:
            yield name, "it was taken off the stuck list by hand"
        elif task.status in AT_REST and isinstance(entry, dict) and entry.get("status") in REOPENS:
            yield name, f"its status in attempt_history.json was set to {entry['status']} by hand"


def _statuses(entries: Sequence[Entry], events: Mapping[str, int]) -> dict[str, str | None]:
    """Return what each task's file said when it was made at the event given, in one replay for all of them."""
    state, found = RunState(), dict[str, str | None]()
    waiting = sorted(events, key=events.__getitem__, reverse=True)
    for entry in entries:
        while waiting and events[waiting[-1]] < entry.seq:
            name = waiting.pop()
            found[name] = phase(state, name)["status"] if name in state.tasks else None
        state.apply(entry)
    return found | {name: phase(state, name)["status"] for name in waiting}


def read_json(path: Path, told: Callable[[str], None]) -> dict[str, Any] | None:
    """Read an object; one that does not parse is kept under another name, and nothing is lost."""
    try:
        content = json.loads(path.read_bytes())
    except OSError:
        return None
    except ValueError:
        aside = path.with_name(f"{path.name}.unreadable-{time.strftime('%Y%m%d-%H%M%S')}")
        shutil.copyfile(path, aside)  # not moved: after a crash here, a missing file would mean `do it again`
        told(f"{path.name} is not JSON; a copy is kept as {aside.name}, and the journal's own facts are used.")
        return None
    return content if isinstance(content, dict) else None


def _made_at(content: dict[str, Any] | None, run: str) -> int | None:
    """Say from which event a file was made; None for another run's file, or one that does not say."""
    made = (content or {}).get("unstuck")
    if not isinstance(made, dict) or made.get("run") != run or not isinstance(made.get("event"), int):
        return None
    event: int = made["event"]
    return event
