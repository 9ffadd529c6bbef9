"""Paths of the files that unstuck writes."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths of a repository's files: what people read in the checkout, what must not be lost in git's own folder."""

    root: Path
    store: Path

    @property
    def home(self) -> Path:
        return self.root / ".unstuck"

    @property
    def pause(self) -> Path:
        """A file that the user creates to stop the run at the next opportunity. Its text is shown."""
        return self.home / "PAUSE"

    def log(self, task: str) -> Path:
        return self.store / "logs" / f"task-{task}.log"

    def transcript(self, task: str, attempt: int, session: int) -> Path:
        return self.store / "transcripts" / f"{task}-{attempt}-{session}.out"

    def brief(self, task: str, attempt: int, session: int) -> Path:
        return self.store / "briefs" / f"{task}-{attempt}-{session}.md"
