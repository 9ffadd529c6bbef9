"""Edge: A worker's side of the queue: it enlists with a lease, beats, takes jobs that fit it, and reports."""

import os
import secrets
import socket
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from unstuck.fleet.jobs import BURY, CLAIM, MANY, WAKE, Job
from unstuck.fleet.postgres import Connection, Link

LINE_BYTES = 2000
"""Of what an agent prints, so much is passed on at once."""
TELL = f"SELECT pg_notify(%s, '') WHERE (SELECT count(*) FROM unstuck.workers) <= {MANY}"  # noqa: S608  # our own words
CLAIM_LOCK = 7_353_002
"""Held by who takes a job while limits are counted, where there are limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a worker can do."""

    project: str
    agents: tuple[str, ...]
    labels: tuple[str, ...]
    slots: int
    lease: float
    """Seconds without a beat after which it counts as dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """What a beat brings back: the jobs that are still this worker's, what people say to them, and which are to be ended."""

    mine: Mapping[int, tuple[str, ...]]
    stop: frozenset[int]


class Enlisted:
    """One worker in the store. After it was taken for dead it enlists again, under another name."""

    def __init__(self, link: Link, offer: Offer) -> None:
        self._link = link
        self.offer = offer
        self.id = ""

    def enlist(self) -> None:
        """Take a new name and a lock that lasts as long as the connection."""
        self.id = f"{socket.gethostname()}-{secrets.token_hex(4)}"
        lock = secrets.randbits(62)
        # Never waited for: after a break the server may take the old connection for alive, and it holds the lock for us.
        self._link.hold(f"SELECT pg_try_advisory_lock({lock})")
        self._link.listen(f"unstuck {self.id}")
        offer = self.offer
        values = (
            *(self.id, lock, offer.project, socket.gethostname(), os.getpid(), list(offer.agents), list(offer.labels)),
            *(offer.slots, offer.lease),
        )
        statement = (
            "INSERT INTO unstuck.workers (id, lock, project, host, pid, agents, labels, slots, lease, state, since, beat)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, 'ready', clock_timestamp(), clock_timestamp())"
            " ON CONFLICT (id) DO UPDATE SET beat = clock_timestamp()"
        )

        def work(connection: Connection) -> None:
            connection.execute(BURY)  # a fleet without a supervisor buries its dead, too
            connection.execute(statement, values)

        self._link.ask(work)

    def beat(self, state: str, said: str) -> Pulse | None:
        """Renew the lease; None if it is over and somebody else has our jobs."""

        def work(connection: Connection) -> Pulse | None:
            rows = connection.execute(
                "WITH alive AS (UPDATE unstuck.workers SET beat = clock_timestamp(), state = %s, said = %s WHERE id = %s RETURNING id)"
                " SELECT j.id, j.stop, j.hints FROM alive LEFT JOIN unstuck.jobs j ON j.worker = alive.id AND j.state = 'running'",
                (state, said, self.id),
            ).fetchall()
            if not rows:
                return None
            return Pulse(
                mine={job: tuple(hints) for job, _, hints in rows if job is not None},
                stop=frozenset(job for job, stop, _ in rows if stop),
            )

        return self._link.ask(work, patience=self.offer.lease / 4)

    def take(self) -> Job | None:
        """Take the next job that fits, if there is one, and wake somebody for the one after it."""

        def work(connection: Connection) -> Job | None:
            connection.execute("SELECT pg_advisory_xact_lock(%s) FROM unstuck.limits LIMIT 1", (CLAIM_LOCK,))
            row = connection.execute(CLAIM.encode(), {"worker": self.id}).fetchone()
            if row is None:
                return None
            connection.execute(WAKE.encode(), {"but": self.id})
            number, run, task, kind, agent, body, prefers = row
            return Job(
                id=number,
                key="",
                project=self.offer.project,
                run=run,
                task=task,
                kind=kind,
                agent=agent,
                body=body,
                prefers=prefers,
            )

        return self._link.ask(work, patience=self.offer.lease / 4)

    def report(self, job: Job, result: str, *, hold: tuple[str, float, str] | None = None) -> bool:
        """Say what became of a job, and which agent's provider lets nobody in until when. False: it is not ours any more."""

        def work(connection: Connection) -> bool:
            done = connection.execute(
                "UPDATE unstuck.jobs SET state = 'done', result = %s, ended = clock_timestamp()"
                " WHERE id = %s AND worker = %s AND (state = 'running' OR (state = 'done' AND result = %s))",
                (result, job.id, self.id, result),
            ).rowcount
            if done and hold is not None:
                connection.execute(
                    "INSERT INTO unstuck.holds VALUES (%s, clock_timestamp() + make_interval(secs => %s), %s) ON CONFLICT (agent)"
                    " DO UPDATE SET until = greatest(holds.until, EXCLUDED.until), why = EXCLUDED.why",
                    hold,
                )
            connection.execute(TELL.encode(), (f"unstuck {job.run}",))
            return done == 1

        return self._link.ask(work)

    def say(self, job: Job, line: str) -> None:
        """Pass on what a job's agent does."""
        text = line.encode(errors="replace")[:LINE_BYTES].decode(errors="ignore").replace("\0", "")
        statement = "UPDATE unstuck.jobs SET said = %s WHERE id = %s AND worker = %s AND state = 'running'"
        self._link.ask(lambda connection: connection.execute(statement, (text, job.id, self.id)), patience=0.0)

    def listen(self, job: Job, *, listens: bool) -> None:
        """Say whether what people say reaches a job's session now."""
        statement = "UPDATE unstuck.jobs SET listens = %s WHERE id = %s AND worker = %s AND state = 'running'"
        self._link.ask(lambda connection: connection.execute(statement, (listens, job.id, self.id)), patience=0.0)

    def lose(self, jobs: Collection[int]) -> None:
        """Say of jobs that are ours by name that nobody here does them: an answer of the store's was lost on the way."""
        statement = "UPDATE unstuck.jobs SET state = 'lost', ended = clock_timestamp() WHERE id = ANY (%s) AND worker = %s AND state = 'running'"
        self._link.ask(lambda connection: connection.execute(statement, (list(jobs), self.id)))

    def leave(self) -> None:
        """Go; what is still at work is lost."""

        def work(connection: Connection) -> None:
            connection.execute(
                "UPDATE unstuck.jobs SET state = 'lost', ended = clock_timestamp() WHERE worker = %s AND state = 'running'",
                (self.id,),
            )
            connection.execute("DELETE FROM unstuck.workers WHERE id = %s", (self.id,))

        self._link.ask(work, patience=2.0)

    def sheet(self, run: str) -> str:
        """Return what every job of a run needs to know."""
        statement = "SELECT sheet FROM unstuck.runs WHERE project = %s AND run = %s"
        row = self._link.ask(lambda connection: connection.execute(statement, (self.offer.project, run)).fetchone())
        return str(row[0]) if row else ""
