"""Record events: redact them, append them to the journal, update the state, call the listeners."""

import dataclasses
import re
import threading
from collections.abc import Callable
from typing import TypeVar, cast

from unstuck.journal.run_state import RunState
from unstuck.journal.store import Journal
from unstuck.journal.task_state import TaskState
from unstuck.model.event import (
    BroughtHome,
    Entry,
    Event,
    Inherited,
    Noted,
    Operated,
    PlanChanged,
    RunEnded,
    RunResumed,
    RunStarted,
)
from unstuck.model.text import visible
from unstuck.redaction.redactor import Redactor

T = TypeVar("T")
OBJECT_NAME = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
GIT_FIELDS = frozenset({"base", "start", "tip", "tree", "commit", "hash"})
"""Fields that hold names of git objects. They are looked up again, so they are never redacted."""
Listener = Callable[[Entry, RunState], None]


class Recorder:
    """The journal and the state that follows from it, kept in step for all threads of one run."""

    def __init__(
        self, journal: Journal, state: RunState, redactor: Redactor, listeners: tuple[Listener, ...] = ()
    ) -> None:
        self.state = state
        self._journal = journal
        self._redactor = redactor
        self._listeners = listeners
        self._lock = threading.RLock()
        self.changed: set[str] = set()
        """Tasks whose files are out of date."""

    def record(self, event: Event) -> Entry:
        """Append an event to the journal, then apply it to the state."""
        with self._lock:
            entry = self._journal.append(redacted(event, self._redactor))
            self.state.apply(entry)
            self.changed |= self._changed_tasks(entry.event)
            for listener in self._listeners:
                listener(entry, self.state)
            return entry

    def _changed_tasks(self, event: Event) -> set[str]:
        match event:
            case RunStarted() | RunResumed() | PlanChanged() | Operated() | Inherited():
                return set(self.state.tasks)
            case BroughtHome() | RunEnded() | Noted():
                return set()
            case _:
                return {event.task}

    def still_ours(self) -> None:
        """Raise OwnershipLost if another supervisor took the run over."""
        self._journal.beat()

    def note(self, text: str, task: str | None = None, *, meanwhile: bool = False) -> None:
        self.record(Noted(text=text, task=task, meanwhile=meanwhile))

    def task(self, name: str) -> TaskState:
        with self._lock:
            return self.state.tasks[name]

    def take_changed(self) -> tuple[RunState, tuple[str, ...]]:
        """Return a copy of the state and the tasks that changed since the last call, in the plan's order.

        Files that are made from the copy agree with each other, whatever is recorded meanwhile.
        """
        with self._lock:
            names = sorted(self.changed & self.state.places.keys(), key=self.state.places.__getitem__)
            self.changed = set()
            return self.state.copied(), tuple(names)


def redacted(value: T, redactor: Redactor) -> T:
    """Return the value with every string in it redacted and safe to print."""
    if isinstance(value, str):
        if type(value) is not str:  # a member of an enumeration holds no foreign text
            return value
        text = value.encode(errors="backslashreplace").decode()  # file names may be no UTF-8
        return cast("T", visible(redactor.text(text)))
    if isinstance(value, tuple):
        return cast("T", tuple(redacted(part, redactor) for part in value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        clean = {
            name: part if _names_git_object(name, part) else redacted(part, redactor) for name, part in parts.items()
        }
        changed = {name: part for name, part in clean.items() if part is not parts[name]}
        return dataclasses.replace(value, **changed) if changed else value
    return value


def _names_git_object(field: str, value: object) -> bool:
    return field in GIT_FIELDS and isinstance(value, str) and OBJECT_NAME.fullmatch(value) is not None
