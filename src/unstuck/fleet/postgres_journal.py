"""Edge: The journal on Postgres: append-only events with one writer per run, requests from anybody, and claims."""

import os
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

from unstuck.fleet.postgres import Connection, Link
from unstuck.model.errors import Owned, OwnershipLost
from unstuck.model.event import Entry, Event, Request, decode, encode
from unstuck.process.caller import Owner, RequestProof, machine_and_boot, process_start

ASKED = ("verb", "task", "text", "shown", "who", "place", "inside")
FIELD_OF_COLUMN = {"shown": "shown_tree", "who": "requester"}
"""Columns with another name than their field."""
RUNS = """
WITH RECURSIVE known AS (
    (SELECT run, seq FROM unstuck.events WHERE project = %(project)s ORDER BY run, seq LIMIT 1)
    UNION ALL SELECT next.run, next.seq FROM known, LATERAL (SELECT run, seq FROM unstuck.events
        WHERE project = %(project)s AND run > known.run ORDER BY run, seq LIMIT 1) AS next)
SELECT run FROM known ORDER BY seq
"""
"""One look into the index for each run: boards ask for this again and again, and events are many."""
APPEND = """
WITH known AS (SELECT seq FROM unstuck.events WHERE key = %(key)s),
    mine AS (SELECT FROM unstuck.claims WHERE project = %(project)s AND run = %(run)s AND token = %(token)s FOR SHARE),
    new AS (INSERT INTO unstuck.events (key, project, run, at, body) SELECT %(key)s, %(project)s, %(run)s, %(at)s, %(body)s
        FROM mine WHERE NOT EXISTS (SELECT FROM known) RETURNING seq)
SELECT seq FROM known UNION ALL SELECT seq FROM new
"""
"""The claim's row is locked while the event is written: nobody takes the run over in between. What arrived before the
connection broke is known by its key."""
AGE = "extract(epoch FROM clock_timestamp() - {})::float8"


class PostgresJournal:
    """One project's journal in a store of many. Reading needs no claim; appending does."""

    def __init__(self, store: str, project: str, checkout: str) -> None:
        self._link = Link(store, name="journal")
        self._project = project
        self._checkout = checkout
        self._token = ""
        self._run = ""

    @property
    def token(self) -> str:
        """By what the claim is known that this journal appends under."""
        return self._token

    # --- reading ------------------------------------------------------------------------------------

    def read(self, run: str, after: int = 0) -> Iterator[Entry]:
        """Yield the run's events in order."""
        rows = self._link.rows(
            "SELECT seq, at, body FROM unstuck.events WHERE project = %s AND run = %s AND seq > %s ORDER BY seq",
            (self._project, run, after),
        )
        for seq, at, body in rows:
            yield Entry(seq, at, decode(body, seq=seq))

    def runs(self) -> tuple[str, ...]:
        """List all runs of the project, oldest first."""
        return tuple(run for (run,) in self._link.rows(RUNS, {"project": self._project}))

    def requests(self, after: int) -> Sequence[Request]:
        names = ("id", "at", *ASKED)
        rows = self._link.rows(
            f"SELECT {', '.join(names)} FROM unstuck.requests WHERE project = %s AND run = %s AND id > %s ORDER BY id",  # noqa: S608  # our own words
            (self._project, self._run, after),
        )
        fields = [FIELD_OF_COLUMN.get(name, name) for name in names]
        return [Request(**dict(zip(fields, row, strict=True))) for row in rows]

    def owner(self, run: str | None = None) -> Owner | None:
        """Return whoever holds the claim on a run, alive or dead; without a name, on any run of this checkout."""
        return self._link.ask(lambda connection: self._owner(connection, run or "", "" if run else self._checkout))

    # --- writing ------------------------------------------------------------------------------------

    def claim(self, run: str) -> Owner | None:
        """Become the run's one writer; return the dead owner that was replaced, if any."""
        token = uuid.uuid4().hex

        def work(connection: Connection) -> Owner | None:
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (self._project,))
            before = None
            for found in (self._owner(connection, run, ""), self._owner(connection, "", self._checkout)):
                if found is not None and found.token != token and found.is_alive(time.time()):
                    raise _owned(found)
                before = before or found
            connection.execute(
                "DELETE FROM unstuck.claims WHERE project = %s AND (run = %s OR checkout = %s)",
                (self._project, run, self._checkout),
            )
            connection.execute(
                "INSERT INTO unstuck.claims VALUES (%s, %s, %s, %s, %s, %s, %s, clock_timestamp(), clock_timestamp())",
                (
                    self._project,
                    run,
                    os.getpid(),
                    process_start(os.getpid()) or "",
                    machine_and_boot(),
                    self._checkout,
                    token,
                ),
            )
            return before if before is not None and before.token != token else None

        before = self._link.ask(work)
        self._token, self._run = token, run
        return before

    def release(self) -> None:
        """Give the claim up, if it is still ours."""
        self._link.run("DELETE FROM unstuck.claims WHERE project = %s AND token = %s", (self._project, self._token))

    def append(self, event: Event) -> Entry:
        """Record a fact durably, once, though the connection may break in between. Refused when the claim is not ours."""
        at = time.time()
        values = {"project": self._project, "run": self._run, "token": self._token, "key": uuid.uuid4(), "at": at}
        rows = self._link.rows(APPEND, {**values, "body": encode(event)})
        if not rows:
            raise self._lost()
        return Entry(int(rows[0][0]), at, event)

    def beat(self) -> None:
        statement = (
            "UPDATE unstuck.claims SET heartbeat = clock_timestamp() WHERE project = %s AND run = %s AND token = %s"
        )
        if self._link.run(statement, (self._project, self._run, self._token)) != 1:
            raise self._lost()

    def attended(self) -> AbstractContextManager[RequestProof]:
        """Stand by nothing: a request may come from any machine, so whoever may write into the store is believed."""
        return nullcontext(RequestProof())

    def leave(self, run: str, request: Request) -> int:
        """Leave a request for whoever owns the run, now or later; return its number."""
        statement = (
            "INSERT INTO unstuck.requests (project, run, at, verb, task, text, shown, who, place, inside)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id"
        )
        values = (
            self._project,
            run,
            request.at,
            *(getattr(request, FIELD_OF_COLUMN.get(name, name)) for name in ASKED),
        )

        def work(connection: Connection) -> int:
            # One at a time: who reads on behind the last number must never find a smaller one later.
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"{self._project} {run}",))
            row = connection.execute(statement, values).fetchone()
            assert row is not None
            return int(row[0])

        return self._link.ask(work)

    def close(self) -> None:
        self._link.close()

    # --- below --------------------------------------------------------------------------------------

    def _owner(self, connection: Connection, run: str, checkout: str) -> Owner | None:
        """Read a claim, its times as this machine's clock has them."""
        statement = (
            f"SELECT run, pid, started, host, token, {AGE.format('since')}, {AGE.format('heartbeat')} FROM unstuck.claims"  # noqa: S608  # our own words
            " WHERE project = %s AND (run = %s OR checkout = %s) ORDER BY since DESC LIMIT 1"
        )
        row = connection.execute(statement.encode(), (self._project, run, checkout)).fetchone()
        if row is None:
            return None
        name, pid, started, machine, token, since, beat = row
        now = time.time()
        return Owner(
            run=name, pid=pid, started=started, host=machine, token=token, since=now - since, heartbeat=now - beat
        )

    def _lost(self) -> OwnershipLost:
        return OwnershipLost(
            f"Another supervisor took run {self._run} over; this one stops.", hint="See `unstuck status`."
        )


def _owned(owner: Owner) -> Owned:
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(owner.since))
    return Owned(
        f"Run {owner.run} is at work: pid {owner.pid} on {owner.host.partition('/')[0]}, since {since}.",
        hint="Watch it with `unstuck status`, or end it with `unstuck stop`.",
    )
