"""Append every event to `logs/execution.log`, one line each, for people with `tail -f`."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from unstuck.core.event import Entry
from unstuck.core.narrate import sentence
from unstuck.core.state import RunState
from unstuck.errors import CannotWrite


@dataclass(frozen=True, slots=True)
class ExecutionLog:
    path: Path

    def __call__(self, entry: Entry, _state: RunState) -> None:
        when = datetime.fromtimestamp(entry.at, UTC).isoformat(timespec="seconds")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"[{when}] {entry.seq} {entry.event.type} {sentence(entry.event)}\n")
        except OSError as error:
            raise CannotWrite(
                f"{self.path} cannot be written: {error.strerror}.", hint="Make room, then `unstuck resume`."
            ) from error
