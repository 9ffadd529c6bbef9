"""Edge: The queue of a fleet: what is to be done, who does it, and what became of it.

Law: a job changes hands by one statement that names the state it must be in. Who was taken for dead cannot report.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from unstuck.errors import OwnershipLost
from unstuck.fleet.postgres import Connection, Link

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
WITH busy AS (SELECT run, count(*) AS jobs FROM unstuck.jobs WHERE state = 'running' GROUP BY run)
UPDATE unstuck.jobs SET state = 'running', worker = %(worker)s, begun = clock_timestamp() WHERE id = (
    SELECT j.id FROM unstuck.jobs j JOIN unstuck.workers w ON w.id = %(worker)s LEFT JOIN busy ON busy.run = j.run
    WHERE j.state = 'queued' AND w.state = 'ready' AND {FITS}
    ORDER BY j.kind = 'verify' DESC, j.priority DESC, coalesce(busy.jobs, 0), j.id LIMIT 1 FOR UPDATE OF j SKIP LOCKED)
RETURNING id, run, task, kind, agent, body, prefers
"""  # noqa: S608  # our own words
"""Finished work is verified first; then by priority; then whoever has the fewest jobs at work; then who came first."""

MANY = 16
"""Postgres wakes every connection that listens, whatever it listens for. With more workers than this nobody is told: each
looks once a second, and one of so many looks soon."""
OVER = ("done", "lost")

WAKE = f"""
SELECT pg_notify('unstuck ' || id, '') FROM (
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
WITH mine AS (SELECT FROM unstuck.claims WHERE project = %(project)s AND run = %(run)s AND token = %(token)s FOR SHARE)
INSERT INTO unstuck.jobs (key, project, run, task, kind, agent, labels, priority, must, body, prefers)
SELECT %(key)s, %(project)s, %(run)s, %(task)s, %(kind)s, %(agent)s, %(labels)s, %(priority)s, %(only)s, %(body)s,
    (SELECT worker FROM unstuck.jobs WHERE project = %(project)s AND run = %(run)s AND task = %(task)s
        AND kind = 'session' AND agent = %(agent)s ORDER BY id DESC LIMIT 1)
FROM mine ON CONFLICT (key) DO NOTHING RETURNING id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One thing to do for a run: a session, or a verification."""

    key: str
    project: str
    run: str
    task: str
    kind: str
    body: str
    agent: str | None = None
    labels: tuple[str, ...] = ()
    priority: int = 0
    only: str | None = None
    token: str = ""
    """The claim of whoever gives it out."""
    id: int = 0
    prefers: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
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

        def work(connection: Connection) -> None:
            connection.execute(
                "INSERT INTO unstuck.runs VALUES (%s, %s, %s) ON CONFLICT (project, run) DO UPDATE SET sheet = EXCLUDED.sheet",
                (project, run, sheet),
            )
            connection.execute(
                "UPDATE unstuck.jobs SET state = 'lost', ended = clock_timestamp()"
                " WHERE project = %s AND run = %s AND kind = 'verify' AND state IN ('queued', 'running')",
                (project, run),
            )

        self._link.ask(work)

    def put(self, job: Job) -> int:
        """Queue a job and wake somebody; one that is there already is left alone. A session prefers its attempt's last place.

        Refused to a supervisor that was taken over: nobody pays for a session that nobody waits for.
        """

        def work(connection: Connection) -> int:
            values = {field.name: getattr(job, field.name) for field in fields(job)} | {"labels": list(job.labels)}
            row = connection.execute(PUT.encode(), values).fetchone()
            row = row or connection.execute("SELECT id FROM unstuck.jobs WHERE key = %s", (job.key,)).fetchone()
            if row is None:
                raise OwnershipLost(
                    f"Another supervisor took run {job.run} over; this one stops.", hint="See `unstuck status`."
                )
            connection.execute(WAKE.encode(), {"but": ""})
            return int(row[0])

        return self._link.ask(work)

    def find(self, key: str) -> int | None:
        row = self._one("SELECT id FROM unstuck.jobs WHERE key = %s", (key,))
        return int(row[0]) if row else None

    def look(self, ids: Sequence[int]) -> dict[int, Ending]:
        """Say where these jobs stand."""
        statement = "SELECT id, task, state, worker, said, CASE WHEN state = 'done' THEN result END, listens FROM unstuck.jobs WHERE id = ANY (%s)"
        rows = self._link.ask(lambda connection: connection.execute(statement, (list(ids),)).fetchall())
        return {
            number: Ending(task=task, state=state, worker=worker or "", said=said, result=result or "", listens=listens)
            for number, task, state, worker, said, result, listens in rows
        }

    def ask_to_stop(self, job: int) -> None:
        """Ask whoever has a job to end it; one that nobody has is taken back."""

        def work(connection: Connection) -> None:
            connection.execute(
                "UPDATE unstuck.jobs SET state = 'lost', ended = clock_timestamp() WHERE id = %s AND state = 'queued'",
                (job,),
            )
            connection.execute(
                "WITH asked AS (UPDATE unstuck.jobs SET stop = true WHERE id = %s AND state = 'running' RETURNING worker)"
                " SELECT pg_notify('unstuck ' || worker, '') FROM asked",
                (job,),
            )

        self._link.ask(work)

    def tell(self, job: int, hints: Sequence[str]) -> None:
        """Say something to the session of a job that runs."""
        statement = (
            "WITH told AS (UPDATE unstuck.jobs SET hints = hints || %s WHERE id = %s AND state = 'running' RETURNING worker)"
            " SELECT pg_notify('unstuck ' || worker, '') FROM told"
        )
        plain = [hint.replace("\0", "") for hint in hints]
        self._link.ask(lambda connection: connection.execute(statement, (plain, job)))

    def give_up(self, job: int) -> None:
        """Call a job lost: whatever its worker says of it from now on is refused."""
        statement = (
            "UPDATE unstuck.jobs SET state = 'lost', ended = clock_timestamp() WHERE id = %s AND state <> 'done'"
        )
        self._link.ask(lambda connection: connection.execute(statement, (job,)))

    def bury(self) -> None:
        """Take the jobs of dead workers from them."""
        self._link.ask(lambda connection: connection.execute(BURY))

    def why_queued(self, job: int) -> str:
        """Say why nobody has a job yet; empty if somebody has it."""
        row = self._one(
            "SELECT j.agent, j.labels, (SELECT count(*) FROM unstuck.workers w WHERE w.project = j.project"
            "   AND w.state = 'ready' AND (j.agent IS NULL OR j.agent = ANY (w.agents)) AND j.labels <@ w.labels),"
            " (SELECT why FROM unstuck.holds h WHERE h.agent = j.agent AND h.until > clock_timestamp())"
            " FROM unstuck.jobs j WHERE j.id = %s AND j.state = 'queued'",
            (job,),
        )
        if row is None:
            return ""
        agent, labels, fitting, held = row
        wanted = " and ".join([*([agent] if agent else []), *labels])
        if held:
            return f"waits for {agent}: {held}"
        return "waits for a free worker" if fitting else f"waits for a worker{f' with {wanted}' if wanted else ''}"

    def clear(self, project: str, run: str) -> None:
        """Forget the jobs of a run that came to its end, and what they needed to know."""

        def work(connection: Connection) -> None:
            for table in ("jobs", "runs"):
                connection.execute(f"DELETE FROM unstuck.{table} WHERE project = %s AND run = %s", (project, run))  # noqa: S608  # our own words

        self._link.ask(work)

    def _one(self, statement: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        return self._link.ask(lambda connection: connection.execute(statement.encode(), values).fetchone())
