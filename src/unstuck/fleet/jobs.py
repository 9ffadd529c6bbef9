"""Edge: The queue of a fleet: what is to be done, who does it, and what became of it, as supervisors and workers see it.

Law: a job changes hands by one statement that names the state it must be in. Who was taken for dead cannot report.
"""

import os
import secrets
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from unstuck.fleet.postgres import Connection, Link
from unstuck.model.errors import OwnershipLost

FITS = """
    j.project = w.project AND (j.agent IS NULL OR j.agent = ANY (w.agents)) AND j.labels <@ w.labels
    AND (j.must IS NULL OR j.must = w.id OR NOT EXISTS (SELECT FROM unstuck.workers p WHERE p.id = j.must))
    AND (j.prefers IS NULL OR j.prefers = w.id OR j.made < clock_timestamp() - interval '3 seconds'
         OR NOT EXISTS (SELECT FROM unstuck.workers p WHERE p.id = j.prefers AND p.state = 'ready'))
    AND NOT EXISTS (SELECT FROM unstuck.holds h WHERE h.agent = j.agent AND h.until > clock_timestamp())
    AND NOT EXISTS (SELECT FROM unstuck.limits l WHERE j.agent = ANY (l.members) AND j.kind = 'session' AND l.most <=
        (SELECT count(*) FROM unstuck.jobs r WHERE r.state = 'running' AND r.kind = 'session' AND r.agent = ANY (l.members)))
"""
"""Whether a worker may have a job now. For three seconds the worker that knows its agent's session goes first; what one
worker alone must do is for anybody once that one is gone."""

CLAIM = f"""
WITH busy AS (SELECT run, count(*) AS jobs FROM unstuck.jobs WHERE state = 'running' GROUP BY run),
    limited AS (SELECT EXISTS (SELECT FROM unstuck.limits) AS is_so),
    taken AS (
        UPDATE unstuck.jobs SET state = 'running', worker = %(worker)s, begun = clock_timestamp() WHERE id = (
            SELECT j.id FROM unstuck.jobs j JOIN unstuck.workers w ON w.id = %(worker)s LEFT JOIN busy ON busy.run = j.run
            WHERE j.state = 'queued' AND w.state = 'ready' AND (%(locked)s OR NOT (SELECT is_so FROM limited)) AND {FITS}
            ORDER BY j.kind = 'verify' DESC, j.priority DESC, coalesce(busy.jobs, 0), j.id LIMIT 1 FOR UPDATE OF j SKIP LOCKED)
        RETURNING id, run, task, kind, agent, body, prefers)
SELECT limited.is_so, taken.*, (SELECT sheet FROM unstuck.runs r WHERE r.project = %(project)s AND r.run = taken.run)
FROM limited LEFT JOIN taken ON true
"""  # noqa: S608  # our own words
"""Finished work is verified first; then by priority; then whoever has the fewest jobs at work; then who came first.
Where there are limits, only who holds the lock may take: else two would count at the same moment."""

MANY = 16
"""Postgres wakes every connection that listens, whatever it listens for. With more workers than this nobody is told: each
looks once a second, and one of so many looks soon."""
OVER = ("done", "lost")
WORK = "work"
"""What a worker is told that may take a job; anything else is about the jobs that it has."""

WAKE = f"""
SELECT pg_notify('unstuck ' || id, '{WORK}') FROM (
    SELECT w.id FROM unstuck.workers w WHERE w.state = 'ready' AND w.id <> %(but)s
    AND (SELECT count(*) FROM unstuck.workers) <= {MANY}
    AND w.beat > clock_timestamp() - make_interval(secs => w.lease)
    AND w.slots > (SELECT count(*) FROM unstuck.jobs r WHERE r.worker = w.id AND r.state = 'running')
    AND EXISTS (SELECT FROM unstuck.jobs j WHERE j.state = 'queued' AND {FITS})
    ORDER BY random() LIMIT 1) AS idle
"""  # noqa: S608  # as above
"""One idle worker is told of one job: a word to all of them would cost as many statements as there are workers."""

BURY = """
WITH late AS MATERIALIZED (
        SELECT id, lock, age > lease AS cold FROM (
            SELECT *, extract(epoch FROM clock_timestamp() - greatest(beat, pg_postmaster_start_time())) AS age
            FROM unstuck.workers) AS seen WHERE age > lease / 3),
    dead AS (DELETE FROM unstuck.workers WHERE id IN (SELECT id FROM late WHERE cold OR pg_try_advisory_xact_lock(lock)) RETURNING id)
UPDATE unstuck.jobs SET state = 'lost', ended = clock_timestamp() FROM dead WHERE worker = dead.id AND state = 'running'
RETURNING jobs.id
"""
"""A worker is dead when its lease is over, or a third of it and nobody holds its lock: its connection is gone as well.
While Postgres itself was away nobody could beat, so that time counts for nobody."""

PUT = """
WITH mine AS (SELECT FROM unstuck.claims WHERE project = %(project)s AND run = %(run)s AND token = %(token)s FOR SHARE),
    put AS (INSERT INTO unstuck.jobs (key, project, run, task, kind, agent, labels, priority, must, body, prefers)
        SELECT %(key)s, %(project)s, %(run)s, %(task)s, %(kind)s, %(agent)s, %(labels)s, %(priority)s, %(only)s, %(body)s,
            (SELECT worker FROM unstuck.jobs WHERE project = %(project)s AND run = %(run)s AND task = %(task)s
                AND kind = 'session' AND agent = %(agent)s ORDER BY id DESC LIMIT 1)
        FROM mine ON CONFLICT (key) DO NOTHING RETURNING id)
SELECT id FROM put UNION ALL SELECT id FROM unstuck.jobs WHERE key = %(key)s
"""
REPORT = f"""
WITH done AS (UPDATE unstuck.jobs SET state = 'done', result = %(result)s, ended = clock_timestamp()
        WHERE id = %(id)s AND worker = %(worker)s AND (state = 'running' OR (state = 'done' AND result = %(result)s)) RETURNING id),
    held AS (INSERT INTO unstuck.holds SELECT %(agent)s, clock_timestamp() + make_interval(secs => %(seconds)s), %(why)s
        FROM done WHERE %(why)s <> '' ON CONFLICT (agent)
        DO UPDATE SET until = greatest(holds.until, EXCLUDED.until), why = EXCLUDED.why)
SELECT id, (SELECT pg_notify(%(channel)s, '') WHERE (SELECT count(*) FROM unstuck.workers) <= {MANY}) FROM done
"""  # noqa: S608  # our own words
LOSE = "UPDATE unstuck.jobs SET state = 'lost', ended = clock_timestamp() WHERE "
STOP, HINT = (
    f"WITH told AS (UPDATE unstuck.jobs SET {what} WHERE id = %s AND state = 'running' RETURNING worker)"  # noqa: S608  # as above
    " SELECT pg_notify('unstuck ' || worker, '') FROM told"
    for what in ("stop = true", "hints = hints || %s")
)
WHY_QUEUED = """
SELECT j.agent, j.labels, (SELECT count(*) FROM unstuck.workers w WHERE w.project = j.project
    AND w.state = 'ready' AND (j.agent IS NULL OR j.agent = ANY (w.agents)) AND j.labels <@ w.labels),
    (SELECT why FROM unstuck.holds h WHERE h.agent = j.agent AND h.until > clock_timestamp())
FROM unstuck.jobs j WHERE j.id = %s AND j.state = 'queued'
"""
CLAIM_LOCK = 7_353_002
"""Held by who takes a job while limits are counted, where there are limits."""
LINE_BYTES = 2000
"""Of what an agent prints, so much is passed on at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One thing to do for a run: a session, or a verification."""

    key: str = ""
    project: str
    run: str
    task: str = ""
    kind: str = "session"
    body: str = ""
    agent: str | None = None
    labels: Sequence[str] = ()
    priority: int = 0
    only: str | None = None
    token: str = ""
    """The claim of whoever gives it out."""
    id: int = 0
    prefers: str | None = None
    sheet: str = ""
    """What every job of its run goes by; told with the job."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Where a job stands: `done` with a result, `lost` without; who had it, and what its agent last did."""

    task: str
    state: str
    worker: str
    said: str
    result: str
    listens: bool
    """Whether what people say reaches its session."""


class Jobs:
    """The queue, as supervisors see it."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def describe(self, project: str, run: str, sheet: str) -> None:
        """Put down what every job of a run needs to know; what a dead supervisor wanted verified nobody waits for."""
        self._link.run(
            "INSERT INTO unstuck.runs VALUES (%s, %s, %s) ON CONFLICT (project, run) DO UPDATE SET sheet = EXCLUDED.sheet",
            (project, run, sheet),
        )
        self._link.run(
            f"{LOSE} project = %s AND run = %s AND kind = 'verify' AND state IN ('queued', 'running')", (project, run)
        )

    def put(self, job: Job) -> int:
        """Queue a job and wake somebody; one that is there already is left alone. A session prefers its attempt's last place.

        Refused to a supervisor that was taken over: nobody pays for a session that nobody waits for.
        """
        rows = self._link.rows(PUT, asdict(job) | {"labels": list(job.labels)})
        if not rows:
            raise OwnershipLost(
                f"Another supervisor took run {job.run} over; this one stops.", hint="See `unstuck status`."
            )
        self._link.run(WAKE, {"but": ""})
        return int(rows[0][0])

    def find(self, key: str) -> int | None:
        return next(
            (number for (number,) in self._link.rows("SELECT id FROM unstuck.jobs WHERE key = %s", (key,))), None
        )

    def look(self, jobs: Sequence[int]) -> dict[int, Ending]:
        """Say where these jobs stand."""
        rows = self._link.rows(
            "SELECT id, task, state, coalesce(worker, ''), said, CASE WHEN state = 'done' THEN result ELSE '' END, listens"
            " FROM unstuck.jobs WHERE id = ANY (%s)",
            (list(jobs),),
        )
        return {number: Ending(*rest) for number, *rest in rows}

    def take_back(self, job: int) -> None:
        """Call a job that nobody has lost."""
        self._link.run(f"{LOSE} id = %s AND state = 'queued'", (job,))

    def ask_to_stop(self, job: int) -> None:
        """Ask whoever has a job to end it; one that nobody has is taken back."""
        self.take_back(job)
        self._link.run(STOP, (job,))

    def tell(self, job: int, hints: Sequence[str]) -> None:
        """Say something to the session of a job that runs."""
        self._link.run(HINT, ([hint.replace("\0", "") for hint in hints], job))

    def give_up(self, job: int) -> None:
        """Call a job lost: whatever its worker says of it from now on is refused."""
        self._link.run(f"{LOSE} id = %s AND state <> 'done'", (job,))

    def bury(self) -> None:
        """Take the jobs of dead workers from them."""
        self._link.run(BURY)

    def why_queued(self, job: int) -> tuple[str, str]:
        """Say why nobody has a job yet, and what only a new worker would change; empty if somebody has it."""
        for agent, labels, fitting, held in self._link.rows(WHY_QUEUED, (job,)):
            if held or fitting:
                return (f"waits for {agent}: {held}" if held else "waits for a free worker"), ""
            wanted = " and ".join([*([agent] if agent else []), *labels])
            missing = f"a worker with {wanted}" if wanted else "a worker"
            return f"waits for {missing}", f"The work waits for {missing}: there is none. Start one: unstuck worker"
        return "", ""

    def clear(self, project: str, run: str) -> None:
        """Forget the jobs of a run that came to its end, and what they needed to know."""
        for table in ("jobs", "runs"):
            self._link.run(f"DELETE FROM unstuck.{table} WHERE project = %s AND run = %s", (project, run))  # noqa: S608  # our own words


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
    """The queue, as one worker sees it. After it was taken for dead it enlists again, under another name."""

    def __init__(self, link: Link, offer: Offer) -> None:
        self._link = link
        self.offer = offer
        self.id = ""

    def enlist(self) -> None:
        """Take a new name and a lock that lasts as long as the connection."""
        offer, host, lock = self.offer, socket.gethostname(), secrets.randbits(62)
        self.id = f"{host}-{secrets.token_hex(4)}"
        # Never waited for: after a break the server may take the old connection for alive, and it holds the lock for us.
        self._link.hold(f"SELECT pg_try_advisory_lock({lock})")
        self._link.listen(f"unstuck {self.id}")
        self._link.run(BURY)  # a fleet without a supervisor buries its dead, too
        self._link.run(
            "INSERT INTO unstuck.workers (id, lock, project, host, pid, agents, labels, slots, lease, state, since, beat)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, 'ready', clock_timestamp(), clock_timestamp())"
            " ON CONFLICT (id) DO UPDATE SET beat = clock_timestamp()",
            (
                *(self.id, lock, offer.project, host, os.getpid(), list(offer.agents), list(offer.labels)),
                *(offer.slots, offer.lease),
            ),
        )

    def beat(self, state: str, said: str) -> Pulse | None:
        """Renew the lease; None if it is over and somebody else has our jobs."""
        statement = (
            "WITH alive AS (UPDATE unstuck.workers SET beat = clock_timestamp(), state = %s, said = %s WHERE id = %s RETURNING id)"
            " SELECT j.id, j.stop, j.hints FROM alive LEFT JOIN unstuck.jobs j ON j.worker = alive.id AND j.state = 'running'"
        )
        rows = self._link.rows(statement, (state, said, self.id), patience=self.offer.lease / 4)
        if not rows:
            return None
        return Pulse(
            mine={job: tuple(hints) for job, _, hints in rows if job is not None},
            stop=frozenset(job for job, stop, _ in rows if stop),
        )

    def take(self) -> Job | None:
        """Take the next job that fits, if there is one; whoever took it wakes another worker for the one after it."""
        asked = {"worker": self.id, "project": self.offer.project}

        def locked(connection: Connection) -> list[tuple[Any, ...]]:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (CLAIM_LOCK,))
            return connection.execute(CLAIM.encode(), asked | {"locked": True}).fetchall()

        patience = self.offer.lease / 4
        [(limited, *row)] = self._link.rows(CLAIM, asked | {"locked": False}, patience=patience)
        if limited:
            [(_, *row)] = self._link.ask(locked, patience=patience)
        names = ("id", "run", "task", "kind", "agent", "body", "prefers", "sheet")
        found = dict(zip(names, row, strict=True))
        return Job(project=self.offer.project, **found | {"sheet": found["sheet"] or ""}) if found["id"] else None

    def wake_another(self) -> None:
        """Tell one idle worker of the next job that waits, if there is one of each."""
        self._link.run(WAKE, {"but": self.id}, patience=0.0)

    def report(self, job: Job, result: str, *, hold: tuple[str, float, str] | None = None) -> bool:
        """Say what became of a job, and which agent's provider lets nobody in until when. False: it is not ours any more."""
        agent, seconds, why = hold or ("", 0.0, "")
        told = {"result": result, "id": job.id, "worker": self.id, "channel": f"unstuck {job.run}"}
        return bool(self._link.rows(REPORT, told | {"agent": agent, "seconds": seconds, "why": why}))

    def say(self, job: Job, line: str) -> None:
        """Pass on what a job's agent does."""
        text = line.encode(errors="replace")[:LINE_BYTES].decode(errors="ignore").replace("\0", "")
        self._set(job, "said = %s", text)

    def listen(self, job: Job, *, listens: bool) -> None:
        """Say whether what people say reaches a job's session now."""
        self._set(job, "listens = %s", listens)

    def _set(self, job: Job, what: str, value: object) -> None:
        statement = f"UPDATE unstuck.jobs SET {what} WHERE id = %s AND worker = %s AND state = 'running'"  # noqa: S608  # our own words
        self._link.run(statement, (value, job.id, self.id), patience=0.0)

    def lose(self, jobs: Collection[int]) -> None:
        """Say of jobs that are ours by name that nobody here does them: an answer of the store's was lost on the way."""
        self._link.run(f"{LOSE} id = ANY (%s) AND worker = %s AND state = 'running'", (list(jobs), self.id))

    def leave(self) -> None:
        """Go; what is still at work is lost."""
        self._link.run(f"{LOSE} worker = %s AND state = 'running'", (self.id,), patience=2.0)
        self._link.run("DELETE FROM unstuck.workers WHERE id = %s", (self.id,), patience=2.0)
