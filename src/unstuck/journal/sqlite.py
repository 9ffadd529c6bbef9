"""Store the journal in SQLite.

Events are append-only and have one writer, who owns the claim. Any process may leave a request.
"""

import os
import re
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from unstuck.model.errors import CannotWrite, JournalDamaged, Owned, OwnershipLost, UnstuckError
from unstuck.model.event import Entry, Event, Request, Verb, decode, encode
from unstuck.process.caller import (
    Owner,
    RequestProof,
    hold_request_proof,
    machine_and_boot,
    process_start,
    proof_problem,
)
from unstuck.process.clock import now
from unstuck.shipped import shipped

VERSION = 3
"""The format that this program writes."""
BUSY_SECONDS = 10.0
VERBS = frozenset(get_args(Verb)) - {"unreadable"}

COVERED = frozenset({"attempt_started", "verified", "classified", "acted", "noted"})
"""Events that are not forced to the disk by themselves.

The next event follows before any effect that cannot be repeated, and forcing it covers them. A killed process loses
none of them. A power cut in between leaves a task one stage earlier: the step is repeated and finds itself done. Files
for people wait until their events are forced.
"""


def open_to_write(path: Path) -> "SqliteJournal":
    """Open the journal for a run. Raise JournalDamaged after setting a damaged one aside."""
    try:
        return SqliteJournal(path)
    except JournalDamaged as error:
        raise JournalDamaged(
            f"{error.message} It was set aside as {_set_aside(path)}.",
            hint="Landed work is safe on the branches unstuck/*. Begin a new run with `unstuck run PLAN`.",
        ) from error


class SqliteJournal:
    """One repository's journal. Reading needs no claim; appending does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._token = ""
        self._run = ""
        self._doubts: dict[int, str] = {}
        """The doubt about each request when it was first seen: its process may have ended later."""
        self._connection = self._open()

    # --- reading ------------------------------------------------------------------------------------

    def read(self, run: str, after: int = 0) -> Iterator[Entry]:
        """Yield the run's events in order."""
        with self._guarded():
            rows = self._connection.execute(
                "SELECT seq, at, body FROM events WHERE run = ? AND seq > ? ORDER BY seq", (run, after)
            ).fetchall()
        for seq, at, body in rows:
            if not isinstance(at, float) or not isinstance(body, str):
                raise JournalDamaged(
                    f"Event {seq} of the journal cannot be read: somebody wrote it by other means.",
                    hint="The journal was not changed. Landed work is safe on the branches unstuck/*.",
                )
            yield Entry(seq, at, decode(body, seq=seq))

    def runs(self) -> tuple[str, ...]:
        """Return all runs, oldest first."""
        with self._guarded():
            rows = self._connection.execute("SELECT run FROM events GROUP BY run ORDER BY min(seq)").fetchall()
        return tuple(run for (run,) in rows)

    def requests(self, after: int) -> Sequence[Request]:
        with self._guarded():
            rows = self._connection.execute(
                f"SELECT id, at, {', '.join(REQUEST_COLUMNS)} FROM requests WHERE run = ? AND id > ? ORDER BY id",  # noqa: S608  # our own names
                (self._run, after),
            ).fetchall()
        return [self._seen(_request(*row)) for row in rows]

    def owner(self, run: str | None = None) -> Owner | None:  # one claim for all runs of a repository
        """Return the owner of the claim, alive or dead."""
        with self._guarded():
            row = self._connection.execute(
                "SELECT run, pid, started, host, token, since, heartbeat FROM claim"
            ).fetchone()
        if row is None:
            return None
        run, pid, started, machine, token, since, heartbeat = row
        if not isinstance(pid, int) or not isinstance(since, float) or not isinstance(heartbeat, float):
            return None  # the row is invalid, and the next claim replaces it
        return Owner(run=run, pid=pid, started=started, host=machine, token=token, since=since, heartbeat=heartbeat)

    # --- writing ------------------------------------------------------------------------------------

    def claim(self, run: str) -> Owner | None:
        """Become the run's only writer. Return the dead owner that was replaced, if any."""
        at = time.time()
        with self._guarded(), self._writing():
            before = self.owner()
            if before is not None and before.is_alive(at):
                raise Owned(
                    f"Run {before.run} owns this repository: pid {before.pid} on {before.host.partition('/')[0]}, "
                    f"since {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(before.since))}.",
                    hint="Watch it with `unstuck status`, or end it with `unstuck stop`.",
                )
            self._token, self._run = uuid.uuid4().hex, run
            self._connection.execute(
                "INSERT OR REPLACE INTO claim VALUES (1, ?, ?, ?, ?, ?, ?, ?)",
                (run, os.getpid(), process_start(os.getpid()) or "", machine_and_boot(), self._token, at, at),
            )
        return before

    def release(self) -> None:
        """Release the claim if this process still owns it."""
        with self._guarded(), self._writing():
            self._connection.execute("DELETE FROM claim WHERE token = ?", (self._token,))

    def append(self, event: Event) -> Entry:
        """Write an event durably. Raise OwnershipLost, with nothing written, if another process owns the claim."""
        at, body = now(), encode(event)
        with self._guarded(), self._writing(sync=event.type not in COVERED):
            done = self._connection.execute(
                "INSERT INTO events (run, at, body) SELECT ?, ?, ? WHERE EXISTS (SELECT 1 FROM claim WHERE token = ?)",
                (self._run, at, body, self._token),
            )
            if done.rowcount != 1:
                raise self._lost()
            assert done.lastrowid is not None
            return Entry(done.lastrowid, at, event)

    def beat(self) -> None:
        with self._guarded(), self._writing():
            done = self._connection.execute(
                "UPDATE claim SET heartbeat = ? WHERE token = ?", (time.time(), self._token)
            )
            if done.rowcount != 1:
                raise self._lost()

    def attended(self) -> AbstractContextManager[RequestProof]:
        """Prove that this process leaves a request, in a way that a forged row cannot."""
        return hold_request_proof(proofs_folder(self.path))

    def leave(self, run: str, request: Request) -> int:
        """Store a request for the owner of the run, now or later, and return its number."""
        with self._guarded(), self._writing():
            done = self._connection.execute(
                "INSERT INTO requests (run, at, verb, task, text, shown, who, place, inside, pid, token)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (run, request.at, *(getattr(request, name) for name in REQUEST_COLUMNS.values())),
            )
            assert done.lastrowid is not None
            return done.lastrowid

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    # --- below --------------------------------------------------------------------------------------

    def _seen(self, request: Request) -> Request:
        if request.id not in self._doubts:
            self._doubts[request.id] = proof_problem(proofs_folder(self.path), request.pid, request.token)
        return replace(request, doubt=self._doubts[request.id])

    def _open(self) -> sqlite3.Connection:
        emptied = self.path.exists() and self.path.stat().st_size == 0  # SQLite would treat it as a new journal
        if emptied and self.path.with_name("transcripts").exists():
            raise self._translated(sqlite3.DatabaseError("it is empty, though sessions were recorded in it"))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.OperationalError) as error:
            raise _cannot_write(self.path, error) from error
        try:
            version = _version(connection, self.path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            if version < VERSION:
                _migrate(connection, self.path)
            if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise sqlite3.DatabaseError("quick_check failed")  # noqa: TRY301  # reported as any damage
        except sqlite3.DatabaseError as error:
            connection.close()
            raise self._translated(error) from error
        except UnstuckError:
            connection.close()
            raise
        return connection

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Serialise threads and translate SQLite's errors."""
        with self._lock:
            try:
                yield
            except sqlite3.DatabaseError as error:
                raise self._translated(error) from error

    @contextmanager
    def _writing(self, *, sync: bool = True) -> Iterator[None]:
        if not self.path.exists():  # SQLite would go on writing into the removed file
            raise CannotWrite(
                f"The journal {self.path} is gone: the repository was moved or removed.",
                hint="If it was moved, go on in its new place with `unstuck resume`; if it was removed, its work went with it.",
            )
        self._connection.execute(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.DatabaseError):
                self._connection.execute("ROLLBACK")
            raise

    def _translated(self, error: sqlite3.DatabaseError) -> UnstuckError:
        if isinstance(error, sqlite3.OperationalError):
            return _cannot_write(self.path, error)
        return JournalDamaged(
            f"The journal {self.path} is damaged: {error}.",
            hint="The next `unstuck run` sets it aside under another name. Landed work is safe on the branches unstuck/*.",
        )

    def _lost(self) -> OwnershipLost:
        return OwnershipLost(
            f"Another supervisor took run {self._run} over; this one stops.", hint="See `unstuck status`."
        )


REQUEST_COLUMNS = {
    "verb": "verb",
    "task": "task",
    "text": "text",
    "shown": "shown_tree",
    "who": "requester",
    "place": "place",
    "inside": "inside",
    "pid": "pid",
    "token": "token",
}
"""The columns of a request, each with its field."""


def proofs_folder(path: Path) -> Path:
    """Return the folder in which waiting processes prove that they left a request."""
    return path.with_name("asking")


def _request(number: int, at: object, *row: object) -> Request:
    """Return the request of a row. An invalid row is a request that is refused, not an error."""
    values: dict[str, Any] = dict(zip(REQUEST_COLUMNS.values(), row, strict=True))
    texts = [value for name, value in values.items() if name not in ("task", "pid")]
    is_readable = all(isinstance(text, str) for text in texts) and isinstance(values["task"], str | None)
    if values["verb"] not in VERBS or not is_readable:
        return Request(id=number, verb="unreadable")
    pid = values.pop("pid")
    return Request(id=number, at=at if isinstance(at, float) else 0.0, pid=pid if isinstance(pid, int) else 0, **values)


def _version(connection: sqlite3.Connection, path: Path) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise UnstuckError(
            f"{path} was written by a newer unstuck (format {version}; this one knows {VERSION}).",
            hint="Upgrade unstuck, or move the file away to begin anew.",
        )
    return version


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Create the tables, or migrate older ones. Another process may do the same at this moment."""
    _, *formats = re.split(r"^-- Format .*\n", shipped("journal.sql"), flags=re.MULTILINE)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for script in formats[_version(connection, path) :]:
            for statement in script.split(";\n"):
                connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.DatabaseError):  # a full disk has already ended the transaction
            connection.execute("ROLLBACK")
        raise


def _set_aside(path: Path) -> Path:
    """Rename a damaged journal with its companion files, and return the new path."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    target = next(
        name
        for n in range(1000)
        if not (name := path.with_name(f"{path.name}.damaged-{stamp}{f'-{n}' if n else ''}")).exists()
    )
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(target.with_name(target.name + suffix))
    return target


def _cannot_write(path: Path, error: Exception) -> CannotWrite:
    return CannotWrite(
        f"The journal {path} cannot be used: {error}.",
        hint="Make room or make its folder writable, then `unstuck resume`: everything recorded so far stands.",
    )
