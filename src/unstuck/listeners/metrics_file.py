"""Edge: Keep `.unstuck/metrics.jsonl`: one line of figures per attempt, those that an earlier supervisor did not come to included."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from unstuck.errors import UnstuckError
from unstuck.journal import Entry, RunResumed, RunStarted, RunState
from unstuck.listeners.attempt_figures import Figures, all_finished, finished
from unstuck.process import DiskDesk


@dataclass(slots=True, kw_only=True)
class MetricsFile:
    """Writes what each attempt came to."""

    path: Path
    told: Callable[[str], None]
    """Hears, once, that the file cannot be written."""
    _silent: bool = field(default=False)

    def __call__(self, entry: Entry, state: RunState) -> None:
        if isinstance(entry.event, RunStarted | RunResumed):
            there = self._there()
            missing = [one for one in all_finished(state) if _key(one) not in there]
            self._append(*missing)
        elif (figures := finished(entry, state)) is not None:
            self._append(figures)

    def _there(self) -> set[tuple[str, str, int]]:
        """Return the attempts that the file has; a line that somebody broke counts for none."""
        found = set()
        for line in (DiskDesk().read(self.path) or "").splitlines():
            try:
                one = json.loads(line)
                found.add((one["run"], one["task"], one["attempt"]))
            except (ValueError, TypeError, KeyError, RecursionError):
                continue
        return found

    def _append(self, *lines: Figures) -> None:
        if not lines:
            return
        text = "".join(f"{json.dumps({'schema': 1, **one.as_json()}, ensure_ascii=False)}\n" for one in lines)
        try:
            DiskDesk().append(self.path, text)
        except UnstuckError as error:
            if not self._silent:
                self._silent = True
                self.told(f"The figures of attempts are not written any more: {error.message}")


def _key(figures: Figures) -> tuple[str, str, int]:
    return figures.run, figures.task, figures.attempt
