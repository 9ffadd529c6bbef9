"""Edge: One connection to Postgres that is made again when it breaks, and the tables that a fleet shares."""

import os
import select
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from unstuck.model.errors import BadUsage, CannotWrite, Unavailable
from unstuck.shipped import shipped

T = TypeVar("T")
Connection = psycopg.Connection[TupleRow]
Values = Sequence[Any] | Mapping[str, Any]

PASSWORD = "UNSTUCK_STORE_PASSWORD"  # noqa: S105  # the name of a variable
SERVICE = "postgresql:///?service=fleet"
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
BACK = "Everything recorded so far stands; when it is back: unstuck resume"
NEVER_MET = "See whether the address is right, the server runs, and this machine may reach it."
WAYS_IN = (
    ("password", f"Give it in the variable {PASSWORD}, in ~/.pgpass, or in a service file: {SERVICE}"),
    ("database", "Make it on the server (createdb NAME), or name another in --store or [store] of unstuck.toml."),
    ("role", "Name a user that the server knows: postgresql://USER@HOST/NAME"),
)
"""What to do about a server that lets nobody in, by a word of what it says."""
_SCHEMA_LOCK = 7_353_001
VERSION = 1


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
            hint=WAYS_IN[0][1],
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
        self._heard: set[str] = set()
        self._awake, self._waker = os.pipe()
        os.set_blocking(self._awake, False)

    def listen(self, channel: str) -> None:
        """Hear what is said in a channel, now and after every break."""
        self._channel = channel
        self.run(f'LISTEN "{channel}"')

    def hold(self, statement: str) -> None:
        """Run a statement now and after every break: for locks that last as long as a connection."""
        self._session = statement
        self.run(statement)

    def ask(self, work: Callable[[Connection], T], *, patience: float | None = None) -> T:
        """Do something in one transaction; after a break, and for as long as patience lasts, do it again."""

        def whole(connection: Connection) -> T:
            with connection.transaction():
                return work(connection)

        return self._again(whole, patience)

    def rows(self, statement: str, values: Values = (), *, patience: float | None = None) -> list[tuple[Any, ...]]:
        """Ask one question; return what is answered. A statement alone is a transaction, and one way there and back."""
        return self._again(lambda connection: connection.execute(statement.encode(), values).fetchall(), patience)

    def run(self, statement: str, values: Values = (), *, patience: float | None = None) -> int:
        """Say one thing; return how many rows it changed."""
        return self._again(lambda connection: connection.execute(statement.encode(), values).rowcount, patience)

    def _again(self, work: Callable[[Connection], T], patience: float | None) -> T:
        began, most = time.monotonic(), self.patience if patience is None else patience
        while True:
            try:
                with self._lock:
                    return work(self._connected())
            except psycopg.OperationalError as error:
                self._forget()
                if time.monotonic() - began >= (most if self._met else min(most, FIRST_SECONDS)):
                    reason = _reason(error)
                    told = (hint for sign, hint in WAYS_IN if sign in reason)
                    hint = BACK if self._met else next(told, NEVER_MET)
                    raise CannotWrite(f"The store cannot be reached: {reason}", hint=hint) from error
                time.sleep(PAUSE_SECONDS)
            except psycopg.Error as error:
                raise CannotWrite(
                    f"The store refused what was asked of it: {_reason(error)}",
                    hint="See the server's log; everything recorded so far stands.",
                ) from error

    def wait(self, seconds: float) -> frozenset[str]:
        """Wait until something is said in the channel, somebody wakes us, or the time is over; return what was said.

        What other threads ask meanwhile is answered on the same connection, and ends no wait.
        """
        until = time.monotonic() + seconds
        while not self._heard and (left := until - time.monotonic()) > 0:
            connection = self._connection
            if connection is None or connection.closed:
                time.sleep(min(left, PAUSE_SECONDS))
                break
            try:
                if self._awake in select.select([connection.fileno(), self._awake], [], [], left)[0]:
                    os.read(self._awake, 4096)
                    break
                with self._lock:  # psycopg hands on what comes with an answer; what comes alone is taken from libpq
                    connection.pgconn.consume_input()
                    while (notice := connection.pgconn.notifies()) is not None:
                        self._heard.add(notice.extra.decode())
            except (psycopg.OperationalError, ValueError, OSError):
                self._forget()
        with self._lock:  # who hears has it
            heard = frozenset(self._heard)
            self._heard.clear()
        return heard

    def wake(self) -> None:
        """End a wait, from another thread or a signal."""
        with suppress(OSError):  # closed: nobody waits
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
            connection.add_notify_handler(self._hear)
            connection.execute(BOUNDS.encode())
            bring_up(connection)
            if self._session:
                connection.execute(self._session.encode())
            if self._channel:
                connection.execute(f'LISTEN "{self._channel}"')
            self._connection, self._met = connection, True
        return self._connection

    def _hear(self, notice: psycopg.Notify) -> None:
        self._heard.add(notice.payload)

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
            connection.execute(shipped("store.sql").encode())
            connection.execute(
                "INSERT INTO unstuck.format SELECT %s WHERE NOT EXISTS (SELECT 1 FROM unstuck.format)", (VERSION,)
            )
    version = connection.execute("SELECT version FROM unstuck.format").fetchone()
    if version is None or version[0] != VERSION:
        raise Unavailable(
            f"The store has format {version[0] if version else 'none'}; this unstuck knows {VERSION}.",
            hint="Use the same version of unstuck on all machines of a fleet.",
        )
