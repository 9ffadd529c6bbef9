"""Append every event to `logs/execution.log`, one line each, for people with `tail -f`."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from unstuck.journal.event import Entry
from unstuck.journal.run_state import RunState
from unstuck.process import DiskDesk
from unstuck.tell import sentence, told


@dataclass(frozen=True, slots=True)
class ExecutionLog:
    path: Path

    def __call__(self, entry: Entry, state: RunState) -> None:
        when = datetime.fromtimestamp(entry.at, UTC).isoformat(timespec="seconds")
        lines = [f"[{when}] {entry.seq} {entry.event.type} {sentence(entry.event)}", told(entry, state)]
        DiskDesk().append(self.path, "".join(f"{line}\n" for line in lines if line))
