"""The recorded events of a `Recovery`, in memory or in a file that several processes share."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from unstuck.journal.run_state import RunState
from unstuck.model.errors import CannotWrite
from unstuck.model.event import Entry, Event, decode, encode


class Ledger:
    """Recorded events with the state that follows from them. Without a path they are kept in memory."""

    def __init__(self, path: Path | None) -> None:
        self.state = RunState()
        self._path = path
        self._read_to = 0
        self._file: BinaryIO | None = None

    @contextmanager
    def held(self) -> Iterator[RunState]:
        """Lock the file, read new events of other processes, and yield the state."""
        if self._path is None:
            yield self.state
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(_open_private(self._path), "ab+") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                self._read_new(file)
                self._file = file
                yield self.state
        except OSError as error:
            raise CannotWrite(
                f"{self._path} cannot be written: {error.strerror}.", hint="Name another file, or make room."
            ) from error
        finally:
            self._file = None

    def add(self, event: Event, at: float) -> None:
        """Record an event. The caller must be inside of `held`."""
        entry = Entry(self.state.seq + 1, at, event)
        if self._file is not None:
            line = f'{{"seq": {entry.seq}, "at": {at!r}, "event": {encode(event)}}}\n'.encode()
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._read_to += len(line)
        self.state.apply(entry)

    def _read_new(self, file: BinaryIO) -> None:
        file.seek(self._read_to)
        for line in file:
            if not line.endswith(b"\n"):  # its writer died in the middle of it
                file.truncate(self._read_to)
                break
            row = json.loads(line)
            self.state.apply(Entry(row["seq"], row["at"], decode(json.dumps(row["event"]), seq=row["seq"])))
            self._read_to += len(line)


def _open_private(path: Path) -> int:
    """Open a file that only the user can read, because it holds outputs of commands."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
