"""Protocols of the event store: reading, appending, and owning a run."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from unstuck.model.event import Entry, Event, Request
from unstuck.process.caller import Owner, RequestProof


class Journal(Protocol):
    """The append-only list of events, and the requests that any process may leave beside it."""

    def append(self, event: Event) -> Entry: ...

    def read(self, run: str, after: int = 0) -> Iterator[Entry]: ...

    def requests(self, after: int) -> Sequence[Request]: ...

    def beat(self) -> None:
        """Renew the claim's heartbeat durably. Raise OwnershipLost if another process owns the claim."""


class Store(Journal, Protocol):
    """A journal with the claims on it: SQLite in the repository, or a Postgres that machines share."""

    def runs(self) -> Sequence[str]: ...

    def owner(self, run: str | None = None) -> Owner | None:
        """Return the owner of the claim on a run or on this repository, alive or dead."""

    def claim(self, run: str) -> Owner | None:
        """Become the only writer. Return the dead owner that was replaced, if any."""

    def release(self) -> None: ...

    def attended(self) -> AbstractContextManager[RequestProof]:
        """Prove that this process leaves a request, so that the supervisor can check it."""

    def leave(self, run: str, request: Request) -> int:
        """Store a request for the owner of the run, and return its number."""

    def close(self) -> None: ...
