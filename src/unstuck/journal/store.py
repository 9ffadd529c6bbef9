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
        """Renew the claim's heartbeat, durably with all facts before it; raise OwnershipLost if it is no longer ours."""


class Store(Journal, Protocol):
    """A journal with the claims on it: SQLite in the repository, or a Postgres that machines share."""

    def runs(self) -> Sequence[str]: ...

    def owner(self, run: str | None = None) -> Owner | None:
        """Return whoever holds the claim on a run, or on this repository, alive or dead."""

    def claim(self, run: str) -> Owner | None:
        """Become the one writer; return the dead owner that was replaced, if any."""

    def release(self) -> None: ...

    def attended(self) -> AbstractContextManager[RequestProof]:
        """Stand by a request that is left meanwhile, so that its supervisor can see whose it is."""

    def leave(self, run: str, request: Request) -> int:
        """Leave a request for whoever owns the run; return its number."""

    def close(self) -> None: ...
