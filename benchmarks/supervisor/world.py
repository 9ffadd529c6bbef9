"""Edge: what an agent of the bench knows of its trial, and the log of what really happened there."""

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One trial, as its agents see it."""

    folder: str
    repository: str
    """The user's checkout."""
    project: str
    pathology: str
    seed: int
    patience: float
    """Seconds of silence or work that stand for a provider's or a supervisor's long limits."""
    flood: int
    """Megabytes that a flooder prints."""
    commits: bool
    """Its supervisor leaves committing to the agent."""

    @property
    def path(self) -> Path:
        return Path(self.folder)

    def save(self) -> None:
        (self.path / "world.json").write_text(json.dumps(asdict(self)), encoding="utf-8")

    def note(self, event: str, **facts: Any) -> None:
        """Write down what happened."""
        with (self.path / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps({"event": event, **facts}) + "\n")

    def log(self) -> Iterator[Mapping[str, Any]]:
        """Return what happened, in order."""
        path = self.path / "log.jsonl"
        if path.exists():
            yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other agents of this trial out."""
        with (self.path / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def load(folder: Path) -> World:
    """Read the world of a trial."""
    return World(**json.loads((folder / "world.json").read_text(encoding="utf-8")))
