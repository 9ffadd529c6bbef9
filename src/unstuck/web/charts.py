"""When who worked, was checked and waited, and what was paid when: folded from the journal, entry by entry."""

from dataclasses import dataclass, field
from typing import Any

from unstuck.model.action import Wait
from unstuck.model.event import (
    Acted,
    AttemptStarted,
    Entry,
    Rebased,
    RunEnded,
    RunResumed,
    SessionEnded,
    SessionStarted,
    Verified,
)

GOOD = {"pass": True, "fail": False, "inconclusive": None}


@dataclass(slots=True)
class Charts:
    """Stretches of time and bills of one run. `take` updates them in place, as `RunState` does."""

    spans: list[dict[str, Any]] = field(default_factory=list)
    bills: list[dict[str, Any]] = field(default_factory=list)
    _open: dict[str, dict[str, Any]] = field(default_factory=dict)
    _who: dict[str, AttemptStarted] = field(default_factory=dict)
    _last: float = 0.0

    def take(self, entry: Entry, paid: float) -> None:
        """Take one fact in; `paid` is what it added to the run's bill."""
        match entry.event:
            case AttemptStarted() as event:
                self._who[event.task] = event
                self._end(event.task, entry)
            case SessionStarted(task=task):
                self._begin(task, "work", entry)
            case SessionEnded(task=task, outcome=outcome):
                self._end(task, entry, good=outcome.claimed)
                self._bill(task, entry, paid)
                self._begin(task, "check", entry)
            case Rebased(task=task):
                self._begin(task, "check", entry)
            case Verified(task=task, verdict=verdict):
                self._end(task, entry, good=GOOD[verdict.status])
            case Acted(task=task, action=action):
                self._end(task, entry)
                if isinstance(action, Wait):
                    self._begin(task, "wait", entry)
            case RunEnded() | RunResumed():
                self._end_all(entry)
            case _:
                pass
        self._last = entry.at

    def _begin(self, task: str, what: str, entry: Entry) -> None:
        who = self._who.get(task)
        if who is None:
            return
        self._end(task, entry)
        span = {"task": task, "attempt": who.attempt, "agent": who.agent, "slot": who.slot, "what": what,
                "begin": round(entry.at, 2), "end": None, "good": None, "seq": entry.seq}  # fmt: skip
        self._open[task] = span
        self.spans.append(span)

    def _end(self, task: str, entry: Entry, *, good: bool | None = None) -> None:
        span = self._open.pop(task, None)
        if span is not None:
            span |= {"end": round(entry.at, 2), "good": good, "seq": entry.seq}

    def _end_all(self, entry: Entry) -> None:
        """End what is under way; a supervisor that died worked until its last word."""
        for span in self._open.values():
            span |= {"end": round(self._last, 2), "seq": entry.seq}
        self._open.clear()

    def _bill(self, task: str, entry: Entry, paid: float) -> None:
        event, who = entry.event, self._who.get(task)
        usage = event.outcome.usage if isinstance(event, SessionEnded) else None
        if who is not None and (paid or usage is not None):
            self.bills.append({
                "at": round(entry.at, 2), "task": task, "agent": who.agent, "usd": round(paid, 6), "seq": entry.seq,
                "input": usage.input_tokens if usage else 0, "output": usage.output_tokens if usage else 0,
            })  # fmt: skip
