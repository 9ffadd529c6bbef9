"""Notice what a person changed by hand in the files that we make: a task set back is done again, one set to done is settled."""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from unstuck.journal.event import Entry, Verb
from unstuck.journal.phase_file import PHASE_STATUS, phase
from unstuck.journal.run_state import RunState, fold
from unstuck.journal.task_state import SETTLED
from unstuck.tell import one_line

REOPENS = ("pending", "failed")
SETTLES = ("complete", "completed", "skipped")
"""A person says that nothing is left to do; what the task's own attempts left is not landed for that."""
KNOWN = (*REOPENS, *SETTLES, "running", "blocked", "interrupted", "retry")
AT_REST = ("complete", "stuck", "skipped")
SAID_CHARS = 40

Told = Callable[[str], None]
Edit = tuple[Verb, str, str]
"""What to do about which task, and what a person did to ask for that."""


def edits(home: Path, run: str, entries: Sequence[Entry], told: Told) -> Iterator[Edit]:
    """Yield what a person asked for by editing files, each task once.

    A file says from which event it was made, so it is compared with the state at that event: a file that is merely
    older than the journal is not an edit. Without the config nobody can tell which files were there at all.
    """
    now = fold(entries)
    found = list(_phases(home, run, entries, now, told))
    history = read_json(home / "attempt_history.json", told)
    covered = _made_at(read_json(home / "config.json", told), run)
    if covered is not None:
        written = fold(entry for entry in entries if entry.seq <= covered)
        found += [*_deleted(home, written, now), *_history(history, written, now)]
    named: set[str] = set()
    for edit in found:
        if edit[1] not in named:
            named.add(edit[1])
            yield edit


def phase_file(home: Path, name: str) -> Path:
    return home / "phases" / f"phase-{name}.json"


def _phases(home: Path, run: str, entries: Sequence[Entry], now: RunState, told: Told) -> Iterator[Edit]:
    """Look for phase files whose status was changed."""
    said: dict[str, tuple[str, int]] = {}
    for name, task in now.tasks.items():
        content = read_json(phase_file(home, name), told)
        at = _made_at(content, run)
        status = str((content or {}).get("status"))
        if at is not None and (status not in KNOWN or _asked(status, task.status)):
            said[name] = status, at
    written_as = _statuses(entries, {name: at for name, (_, at) in said.items()})
    for name, (status, _) in said.items():
        how = f"its status was set to {one_line(status, SAID_CHARS)} by hand"
        verb = _asked(status, now.tasks[name].status)
        if verb is not None and status != written_as[name]:
            yield verb, name, how
        elif status not in KNOWN:
            told(f"Task {name}: {how}, which means nothing here; the journal's own facts are used.")


def _asked(status: str, now: str) -> Verb | None:
    """Say what a status in a file would ask for, given where the task stands."""
    if status in REOPENS and now in AT_REST and PHASE_STATUS.get(now, now) != status:
        return "reset"
    return "skip" if status in SETTLES and now not in SETTLED else None


def _deleted(home: Path, written: RunState, now: RunState) -> Iterator[Edit]:
    """Look for phase files that are gone though they were written."""
    for name, task in written.tasks.items():
        if task.status in AT_REST and task.attempts and name in now.tasks and now.tasks[name].status == task.status:
            file = phase_file(home, name)
            if not file.exists():
                yield "reset", name, f"its file {file.name} was deleted"


def _history(content: dict[str, Any] | None, written: RunState, now: RunState) -> Iterator[Edit]:
    """Look for tasks that were set back, or taken off the stuck list, in `attempt_history.json`.

    It is written before `config.json`, so it is at least as new as the event that the config covers. Where a task has
    not moved since then, the file can differ only by a person's hand.
    """
    if content is None or not isinstance(content.get("subtasks"), dict):
        return
    listed = content.get("stuck_subtasks")
    stuck = {one.get("subtask_id") for one in listed if isinstance(one, dict)} if isinstance(listed, list) else None
    for name, task in written.tasks.items():
        if not task.attempts or name not in now.tasks or now.tasks[name].last_seq != task.last_seq:
            continue
        entry = content["subtasks"].get(name)
        if task.status == "stuck" and stuck is not None and name not in stuck:
            yield "reset", name, "it was taken off the stuck list by hand"
        elif task.status in AT_REST and isinstance(entry, dict) and entry.get("status") in REOPENS:
            yield "reset", name, f"its status in attempt_history.json was set to {entry['status']} by hand"


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
