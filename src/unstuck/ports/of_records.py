"""What lasts: the plan, the journal, our own files, and the files that people read."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from unstuck.journal import Entry, Event, Request, RunState, Verb
from unstuck.plans import Insertion, Plan, Task


class PlanFile(Protocol):
    """The user's plan on disk: read it, change ticks and write new tasks in place."""

    @property
    def extensible(self) -> bool:
        """Whether the format can take new tasks."""
        ...

    @property
    def path(self) -> Path: ...

    @property
    def companions(self) -> tuple[str, ...]:
        """Names of files in the plan's folder that are kept up with it."""
        ...

    @property
    def spec_folder(self) -> bool:
        """Whether everything in the plan's folder belongs to it."""
        ...

    def read(self) -> Plan: ...

    def mark(self, statuses: Mapping[str, str]) -> bool:
        """Write where tasks stand in place, atomically; return whether anything changed."""
        ...

    def insert(self, insertion: Insertion) -> tuple[Task, ...]:
        """Write tasks into the plan, atomically, and return them as they read there. Those it has are left alone."""
        ...


class Journal(Protocol):
    """The append-only list of events, and the requests that any process may leave beside it."""

    def append(self, event: Event) -> Entry: ...

    def read(self, run: str, after: int = 0) -> Iterator[Entry]: ...

    def requests(self, after: int) -> Sequence[Request]: ...

    def beat(self) -> None:
        """Renew the claim's heartbeat; raise OwnershipLost if it is no longer ours."""
        ...


class Desk(Protocol):
    """Our own files."""

    def put(self, path: Path, text: str) -> None:
        """Replace a file atomically."""
        ...

    def append(self, path: Path, text: str) -> None: ...

    def read(self, path: Path) -> str | None:
        """Return the text, or None if there is no such file."""
        ...


class Projections(Protocol):
    """The files that people read: made from the state, never read back except for a person's edits."""

    def write(self, state: RunState, changed: Sequence[str]) -> None:
        """Bring the files of the changed tasks, and what follows from all of them, up to date."""
        ...

    def edits(self, run: str, entries: Sequence[Entry]) -> Iterator[tuple[Verb, str, str]]:
        """Yield (what to do, task, what was done) for every task about which a person edited our files."""
        ...
