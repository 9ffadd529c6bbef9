"""Figures of attempts that ended, also written to `.unstuck/metrics.jsonl`."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import AttemptState, TaskState
from unstuck.model.action import Append, Continue, Wait
from unstuck.model.errors import UnstuckError
from unstuck.model.event import Acted, Decided, Entry, RunResumed, RunStarted
from unstuck.model.text import iso
from unstuck.process.atomic_files import DiskFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of an attempt that ended."""

    run: str
    task: str
    attempt: int
    agent: str
    kind: str | None
    """The kind of its failure, or None."""
    decision: str
    verdict: str | None
    end: str | None
    sessions: int
    seconds: float
    """The duration of its sessions."""
    checked: float
    """The duration of its checks in seconds."""
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    began: float
    ended: float

    def as_json(self) -> Mapping[str, Any]:
        return asdict(self) | {
            "began": iso(self.began),
            "ended": iso(self.ended),
            "seconds": round(self.seconds, 3),
            "checked": round(self.checked, 3),
        }


def finished(entry: Entry, state: RunState) -> Figures | None:
    """Return the figures of the attempt that an event ends, or None if it ends none."""
    event = entry.event
    if not isinstance(event, Acted) or isinstance(event.action, Continue | Wait | Append):
        return None
    task = state.tasks.get(event.task)
    return _figures(state, task, task.attempts[-1], entry.at) if task is not None and task.attempts else None


def all_finished(state: RunState) -> Iterator[Figures]:
    """Yield the figures of every attempt of a run that has ended."""
    for task in state.tasks.values():
        for attempt in task.attempts:
            acted = attempt is not task.attempts[-1] or not isinstance(
                task.last, Decided
            )  # else the action is repeated
            if acted and attempt.decision is not None and not attempt.continues:
                yield _figures(state, task, attempt, attempt.ended or task.last_at)


def _figures(state: RunState, task: TaskState, attempt: AttemptState, at: float) -> Figures:
    results = attempt.verdict.results if attempt.verdict else ()
    usage = attempt.usage
    return Figures(
        run=state.started.run if state.started else "",
        task=task.task.id,
        attempt=attempt.number,
        agent=attempt.agent,
        kind=attempt.failure.kind.value if attempt.failure else None,
        decision=attempt.decision.action.type if attempt.decision else "",
        verdict=attempt.verdict.status if attempt.verdict else None,
        end=(attempt.outcome.end or attempt.outcome.ended.ending) if attempt.outcome else None,
        sessions=attempt.sessions,
        seconds=attempt.worked,
        checked=sum(result.ended.seconds for result in results if not result.cached),
        input_tokens=usage.input_tokens if usage else None,
        output_tokens=usage.output_tokens if usage else None,
        cost_usd=attempt.cost_usd,
        began=attempt.started,
        ended=at,
    )


@dataclass(slots=True, kw_only=True)
class MetricsFile:
    """Appends a line of figures to `.unstuck/metrics.jsonl` for each attempt that ended."""

    path: Path
    report: Callable[[str], None]
    """Called once with a message if the file cannot be written."""
    _has_reported: bool = field(default=False)

    def __call__(self, entry: Entry, state: RunState) -> None:
        if isinstance(entry.event, RunStarted | RunResumed):
            written = self._written()
            missing = [figures for figures in all_finished(state) if _key(figures) not in written]
            self._append(*missing)
        elif (figures := finished(entry, state)) is not None:
            self._append(figures)

    def _written(self) -> set[tuple[str, str, int]]:
        """Return the attempts that the file has. A damaged line is ignored."""
        attempts = set()
        for line in (DiskFiles().read(self.path) or "").splitlines():
            try:
                row = json.loads(line)
                attempts.add((row["run"], row["task"], row["attempt"]))
            except (ValueError, TypeError, KeyError, RecursionError):
                continue
        return attempts

    def _append(self, *lines: Figures) -> None:
        if not lines:
            return
        text = "".join(f"{json.dumps({'schema': 1, **figures.as_json()}, ensure_ascii=False)}\n" for figures in lines)
        try:
            DiskFiles().append(self.path, text)
        except UnstuckError as error:
            if not self._has_reported:
                self._has_reported = True
                self.report(f"The figures of attempts are not written any more: {error.message}")


def _key(figures: Figures) -> tuple[str, str, int]:
    return figures.run, figures.task, figures.attempt
