"""Edge: One connection to Postgres that is made again when it breaks, and the tables that a fleet shares."""

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from unstuck.errors import BadUsage, CannotWrite, Unavailable

T = TypeVar("T")
Connection = psycopg.Connection[TupleRow]

PASSWORD = "UNSTUCK_STORE_PASSWORD"  # noqa: S105  # the name of a variable
LASTING: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""A connection into a network that is gone breaks after seconds, not after hours."""
BOUNDS = "SELECT " + ", ".join(
    f"set_config('{name}', '{value}', false)"
    for name, value in {
        "tcp_keepalives_idle": "5",
        "tcp_keepalives_interval": "2",
        "tcp_keepalives_count": "3",
        "lock_timeout": "10s",
        "idle_in_transaction_session_timeout": "10s",
    }.items()
)
"""The same for the server's side, and more: who is frozen in the middle of something holds nobody else up."""
PATIENCE_SECONDS, PAUSE_SECONDS = 60.0, 0.2
FIRST_SECONDS = 2.0
"""Who was never connected has a wrong address more often than a server that restarts."""
_SCHEMA_LOCK = 7_353_001


VERSION = 1
SCHEMA = """
CREATE SCHEMA IF NOT EXISTS unstuck;
CREATE TABLE IF NOT EXISTS unstuck.format (version integer NOT NULL);

CREATE TABLE IF NOT EXISTS unstuck.events (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key uuid NOT NULL UNIQUE,
    project text NOT NULL, run text NOT NULL, at double precision NOT NULL, body text NOT NULL);
CREATE INDEX IF NOT EXISTS events_of_run ON unstuck.events (project, run, seq);
CREATE OR REPLACE FUNCTION unstuck.stays() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION '% are never edited or deleted', TG_TABLE_NAME; END $$;
CREATE OR REPLACE TRIGGER events_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON unstuck.events
    FOR EACH STATEMENT EXECUTE FUNCTION unstuck.stays();

CREATE TABLE IF NOT EXISTS unstuck.requests (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, project text NOT NULL, run text NOT NULL, at double precision NOT NULL,
    verb text NOT NULL CHECK (verb IN ('stop', 'retry', 'answer', 'skip', 'reset', 'accept', 'approve', 'rollback', 'undo', 'run')),
    task text, text text NOT NULL, shown text NOT NULL, who text NOT NULL CHECK (who <> ''),
    place text NOT NULL CHECK (place <> ''), inside text NOT NULL);
CREATE OR REPLACE TRIGGER requests_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON unstuck.requests
    FOR EACH STATEMENT EXECUTE FUNCTION unstuck.stays();

CREATE TABLE IF NOT EXISTS unstuck.claims (
    project text NOT NULL, run text NOT NULL, pid integer NOT NULL, started text NOT NULL, host text NOT NULL,
    checkout text NOT NULL, token text NOT NULL, since timestamptz NOT NULL, heartbeat timestamptz NOT NULL,
    PRIMARY KEY (project, run));

CREATE TABLE IF NOT EXISTS unstuck.runs (
    project text NOT NULL, run text NOT NULL, sheet text NOT NULL, PRIMARY KEY (project, run));

CREATE TABLE IF NOT EXISTS unstuck.workers (
    id text PRIMARY KEY, lock bigint NOT NULL, project text NOT NULL, host text NOT NULL, pid integer NOT NULL,
    agents text[] NOT NULL, labels text[] NOT NULL, slots integer NOT NULL, lease double precision NOT NULL,
    state text NOT NULL, said text NOT NULL DEFAULT '', since timestamptz NOT NULL, beat timestamptz NOT NULL);

CREATE TABLE IF NOT EXISTS unstuck.jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL UNIQUE, project text NOT NULL, run text NOT NULL,
    task text NOT NULL, kind text NOT NULL, agent text, labels text[] NOT NULL, priority integer NOT NULL,
    prefers text, must text, body text NOT NULL, state text NOT NULL DEFAULT 'queued', worker text,
    stop boolean NOT NULL DEFAULT false, listens boolean NOT NULL DEFAULT false, hints text[] NOT NULL DEFAULT '{}',
    said text NOT NULL DEFAULT '', result text,
    made timestamptz NOT NULL DEFAULT clock_timestamp(), begun timestamptz, ended timestamptz);
CREATE INDEX IF NOT EXISTS jobs_open ON unstuck.jobs (state, project) WHERE state IN ('queued', 'running');
CREATE INDEX IF NOT EXISTS jobs_of_run ON unstuck.jobs (project, run);

CREATE TABLE IF NOT EXISTS unstuck.holds (agent text PRIMARY KEY, until timestamptz NOT NULL, why text NOT NULL);
CREATE TABLE IF NOT EXISTS unstuck.limits (name text PRIMARY KEY, most integer NOT NULL, members text[] NOT NULL);
"""
"""The journal, the workers, their jobs, and what holds them back."""


def address(text: str) -> str:
    """Return the store's address as libpq reads it; one with a password in it is refused, because addresses are shown."""
    try:
        parts = conninfo_to_dict(text)
    except psycopg.ProgrammingError as error:
        # Neither the text nor libpq's words are shown: a password may be in both.
        raise BadUsage("The store's address is none of a Postgres.", hint="Write postgresql://HOST/NAME.") from error
    if parts.pop("password", None):
        raise BadUsage(
            "The store's address has a password in it, where lists of processes and files show it.",
            hint=f"Give it in the variable {PASSWORD}, in ~/.pgpass, or in a service file: postgresql:///?service=fleet",
        )
    return make_conninfo("", **parts)


def take_password() -> str | None:
    """Take the password out of the environment: what agents and checks inherit must not hold it."""
    return os.environ.pop(PASSWORD, None)


_password: str | None = None


class Link:
    """A connection for all threads of a process. What it is asked for is asked again after a break, so it must be repeatable."""

    def __init__(self, store: str, *, name: str, patience: float = PATIENCE_SECONDS) -> None:
        global _password  # noqa: PLW0603  # the environment is emptied once, for all links of the process
        _password = take_password() or _password
        self.store = address(store)
        self.patience = patience
        self._name = name
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._met = False
        self._channel = ""
        self._session = ""
        self._heard: deque[str] = deque()
        self._awake, self._waker = os.pipe()
        os.set_blocking(self._awake, False)

    def listen(self, channel: str) -> None:
        """Hear what is said in a channel, now and after every break."""
        self._channel = channel
        self.ask(lambda connection: connection.execute(f'LISTEN "{channel}"'))

    def hold(self, statement: str) -> None:
        """Run a statement now and after every break: for locks that last as long as a connection."""
        self._session = statement
        self.ask(lambda connection: connection.execute(statement.encode()))

    def ask(self, work: Callable[[Connection], T], *, patience: float | None = None) -> T:
        """Do something in one transaction; after a break, and for as long as patience lasts, do it again."""
        began, most = time.monotonic(), self.patience if patience is None else patience
        while True:
            try:
                with self._lock:
                    connection = self._connected()
                    with connection.transaction():
                        return work(connection)
            except psycopg.OperationalError as error:
                self._forget()
                if time.monotonic() - began >= (most if self._met else min(most, FIRST_SECONDS)):
                    raise CannotWrite(
                        f"The store cannot be reached: {_reason(error)}",
                        hint="Everything recorded so far stands; when it is back: unstuck resume",
                    ) from error
                time.sleep(PAUSE_SECONDS)
            except psycopg.Error as error:
                raise CannotWrite(
                    f"The store refused what was asked of it: {_reason(error)}",
                    hint="See the server's log; everything recorded so far stands.",
                ) from error

    def wait(self, seconds: float) -> tuple[str, ...]:
        """Wait until something is said in the channel, or the time is over; return what was said."""
        connection = self._connection
        if connection is None or connection.closed:
            time.sleep(min(seconds, PAUSE_SECONDS))
        elif not self._heard:
            try:
                if self._awake in select.select([connection.fileno(), self._awake], [], [], seconds)[0]:
                    os.read(self._awake, 4096)
                    return ()
                with self._lock:  # psycopg hands on what comes with an answer; what comes alone is taken from libpq
                    connection.pgconn.consume_input()
                    while (notice := connection.pgconn.notifies()) is not None:
                        self._heard.append(notice.extra.decode(errors="replace"))
            except (psycopg.OperationalError, ValueError, OSError):
                self._forget()
        return tuple(self._heard.popleft() for _ in range(len(self._heard)))

    def wake(self) -> None:
        """End a wait from another thread."""
        os.write(self._waker, b".")

    def close(self) -> None:
        with self._lock:
            self._forget()
            for end in (self._awake, self._waker):
                os.close(end)
            self._awake = self._waker = -1

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            connection = psycopg.connect(
                self.store, autocommit=True, application_name=f"unstuck {self._name}", password=_password, **LASTING
            )
            connection.add_notify_handler(lambda notice: self._heard.append(notice.payload))
            connection.execute(BOUNDS.encode())
            bring_up(connection)
            if self._session:
                connection.execute(self._session.encode())
            if self._channel:
                connection.execute(f'LISTEN "{self._channel}"')
            self._connection, self._met = connection, True
        return self._connection

    def _forget(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None


def _reason(error: psycopg.Error) -> str:
    return next(iter(str(error).strip().splitlines()), "the connection broke")


def bring_up(connection: Connection) -> None:
    """Make the tables where there are none; a store of a newer unstuck is refused."""
    found = connection.execute("SELECT to_regclass('unstuck.format')").fetchone()
    if found is None or found[0] is None:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SCHEMA_LOCK,))
            connection.execute(SCHEMA)
            connection.execute(
                "INSERT INTO unstuck.format SELECT %s WHERE NOT EXISTS (SELECT 1 FROM unstuck.format)", (VERSION,)
            )
    version = connection.execute("SELECT version FROM unstuck.format").fetchone()
    if version is None or version[0] != VERSION:
        raise Unavailable(
            f"The store has format {version[0] if version else 'none'}; this unstuck knows {VERSION}.",
            hint="Use the same version of unstuck on all machines of a fleet.",
        )
