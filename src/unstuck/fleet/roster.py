"""Edge: Look at a fleet: its workers, what they do, what waits, what is held back; and set how many sessions an agent may have."""

from collections.abc import Sequence
from dataclasses import dataclass

from unstuck.fleet.postgres import Connection, Link

WORKERS = """
SELECT w.id, w.host, w.pid, w.agents, w.labels, w.slots, w.state, w.said, w.lease,
    extract(epoch FROM clock_timestamp() - w.beat)::float8, extract(epoch FROM clock_timestamp() - w.since)::float8
FROM unstuck.workers w ORDER BY w.host, w.id
"""
AT_WORK = """
SELECT worker, run, task, kind, coalesce(agent, ''), said, extract(epoch FROM clock_timestamp() - begun)::float8
FROM unstuck.jobs WHERE state = 'running' ORDER BY begun
"""
QUEUED = "SELECT run, coalesce(agent, ''), priority, count(*) FROM unstuck.jobs WHERE state = 'queued' GROUP BY 1, 2, 3 ORDER BY 3 DESC, 1, 2"
HELD = "SELECT agent, extract(epoch FROM until - clock_timestamp())::float8, why FROM unstuck.holds WHERE until > clock_timestamp()"


@dataclass(frozen=True, slots=True)
class AtWork:
    run: str
    task: str
    kind: str
    agent: str
    said: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Member:
    """A worker."""

    id: str
    host: str
    pid: int
    agents: Sequence[str]
    labels: Sequence[str]
    slots: int
    state: str
    said: str
    lease: float
    beat: float
    """Seconds since it was last heard of."""
    since: float
    jobs: tuple[AtWork, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    run: str
    agent: str
    priority: int
    jobs: int


@dataclass(frozen=True, slots=True)
class Held:
    agent: str
    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class Limit:
    name: str
    most: int
    members: Sequence[str]


@dataclass(frozen=True, slots=True)
class Roster:
    """A fleet at one moment."""

    workers: tuple[Member, ...]
    queued: tuple[Waiting, ...]
    held: tuple[Held, ...]
    limits: tuple[Limit, ...]


class Fleet:
    """The store, for whoever looks at the whole fleet."""

    def __init__(self, store: str) -> None:
        self._link = Link(store, name="fleet", patience=0.0)

    def look(self) -> Roster:
        rows = self._link.rows
        jobs: dict[str, list[AtWork]] = {}
        for worker, *job in rows(AT_WORK):
            jobs.setdefault(worker, []).append(AtWork(*job))
        return Roster(
            workers=tuple(Member(*(*row, tuple(jobs.get(row[0], ())))) for row in rows(WORKERS)),
            queued=tuple(Waiting(*row) for row in rows(QUEUED)),
            held=tuple(Held(*row) for row in rows(HELD)),
            limits=tuple(Limit(*row) for row in rows("SELECT name, most, members FROM unstuck.limits ORDER BY name")),
        )

    def limit(self, name: str, most: int, members: tuple[str, ...]) -> None:
        """Let these agents together have so many sessions at most; none lifts the limit."""

        def work(connection: Connection) -> None:
            connection.execute("DELETE FROM unstuck.limits WHERE name = %s", (name,))
            if most:
                connection.execute("INSERT INTO unstuck.limits VALUES (%s, %s, %s)", (name, most, list(members)))

        self._link.ask(work)

    def close(self) -> None:
        self._link.close()
