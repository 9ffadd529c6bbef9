"""Edge: Record facts: redact, append, fold, tell. The one place where anything is written down."""

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
OBJECT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
NAMED_BY_GIT = frozenset({"base", "start", "tip", "tree", "commit", "hash"})
"""Fields that git fills: what stands there is looked up again, so it stays whole, also where a variable holds the same."""
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
        """Tasks whose projections are out of date."""

    def record(self, event: Event) -> Entry:
        """Make the fact durable, then true."""
        with self._lock:
            entry = self._journal.append(redacted(event, self._redactor))
            self.state.apply(entry)
            self.changed |= self._concerned(entry.event)
            for listener in self._listeners:
                listener(entry, self.state)
            return entry

    def _concerned(self, event: Event) -> set[str]:
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
        """Return the state of this moment, and the tasks that changed since the last call, in the plan's order.

        The state is a copy: files that are made from it agree with each other, whatever is recorded meanwhile.
        """
        with self._lock:
            names = sorted(self.changed & self.state.places.keys(), key=self.state.places.__getitem__)
            self.changed = set()
            return self.state.copied(), tuple(names)


def redacted(value: T, redactor: Redactor) -> T:
    """Return the value with every string in it redacted, fit for UTF-8 and for a terminal: git hands on any file name."""
    if isinstance(value, str):
        plain = type(value) is str  # an enumeration's member is one of ours
        return cast("T", visible(redactor.text(value.encode(errors="backslashreplace").decode()))) if plain else value
    if isinstance(value, tuple):
        return cast("T", tuple(redacted(part, redactor) for part in value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        clean = {name: part if _is_object(name, part) else redacted(part, redactor) for name, part in parts.items()}
        changed = {name: part for name, part in clean.items() if part is not parts[name]}
        return dataclasses.replace(value, **changed) if changed else value
    return value


def _is_object(field: str, value: object) -> bool:
    return field in NAMED_BY_GIT and isinstance(value, str) and OBJECT.fullmatch(value) is not None
