"""One run as one plain object: what the page shows live, and what the kept page holds. Pure: same journal, same object."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import TaskState, awaits_approval
from unstuck.model.action import Wait
from unstuck.model.event import (
    Acted,
    AttemptStarted,
    Entry,
    Operated,
    Rebased,
    RunEnded,
    RunResumed,
    SessionEnded,
    SessionStarted,
    Verified,
)
from unstuck.model.landing import run_branch
from unstuck.model.text import visible
from unstuck.policy.schedule import blocked_tasks
from unstuck.reports.event_lines import event_line
from unstuck.reports.summaries import Row, Summary, recovered_kinds, summary

SCHEMA = 1
LAST_EVENTS = 400
TEXT_CHARS = 20_000
SHOWN_NOTES = 100
ENDS = ("words", "output", "detail")
"""What programs and agents print is told by its end."""

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


def overview(state: RunState, charts: Charts, entries: Sequence[Entry], *, live: bool, now: float) -> dict[str, Any]:
    """Return everything about a run but the stories of its tasks; `clean` it before it leaves the house."""
    told = summary(state, now if live else state.last_at, live=live)
    waiting = blocked_tasks(state)
    reach = _reach(waiting)
    rows = [_task(row, state.tasks[row.id], reach.get(row.id, 0), state.joins) for row in told.rows]
    return {
        "schema": SCHEMA,
        "seq": state.seq,
        "run": _run(state, told, live=live),
        "tasks": rows,
        "questions": [_question(one.tasks, one.question, state, outside=one.outside) for one in told.questions],
        "spans": charts.spans,
        "bills": charts.bills,
        "events": [event_object(entry, state) for entry in entries[-LAST_EVENTS:]],
    }


def event_object(entry: Entry, state: RunState) -> dict[str, Any]:
    """Return an event as a line of the log; `undo` where it can be taken back."""
    asked = entry.event.request if isinstance(entry.event, Operated) else None
    return {
        "seq": entry.seq,
        "at": round(entry.at, 2),
        "type": entry.event.type,
        "task": asked.task if asked else getattr(entry.event, "task", None),
        "text": event_line(entry.event),
        "undo": entry.seq in state.undoable,
        **({"verb": asked.verb, "who": asked.requester} if asked else {}),
    }


def clean(value: Any, limit: int = TEXT_CHARS, *, keep_end: bool = False) -> Any:
    """Return a plain value whose texts steer nothing, turn no order around, and are no longer than `limit`."""
    match value:
        case str():
            if len(value) <= limit:
                return visible(value)
            left_out = f"[{len(value) - limit} characters left out]"
            return f"{left_out}\n{visible(value[-limit:])}" if keep_end else f"{visible(value[:limit])}\n{left_out}"
        case Mapping():
            return {clean(key): clean(one, limit, keep_end=key in ENDS) for key, one in value.items()}
        case list() | tuple():
            return [clean(one, limit) for one in value]
        case _:
            return value


def _run(state: RunState, told: Summary, *, live: bool) -> dict[str, Any]:
    started = state.started
    options = started.options if started else None
    return {
        "id": told.run,
        "plan": started.plan if started else "",
        "title": started.title if started else "",
        "noun": "phase" if started and started.format == "superplan" else "task",
        "live": live,
        "began": state.created,
        "last": state.last_at,
        "seconds": round(told.seconds, 1),
        "cost": told.cost_usd,
        "exit": told.exit_code,
        "reason": told.reason,
        "halted": state.halted,
        "branch": run_branch(told.run),
        "home": told.home,
        "landed": told.landed,
        "commands": [list(pair) for pair in told.commands],
        "cautions": list(told.cautions),
        "notes": list(told.notes[-SHOWN_NOTES:]),
        "meanwhile": list(told.meanwhile[-SHOWN_NOTES:]),
        "profile": options.profile if options else "",
        "agents": list(options.agents) if options else [],
        "parallel": options.parallel if options else 1,
        "budget": options.budget_usd if options else None,
        "unapproved": bool(options and "plan" in options.approve and not state.approved and not live),
    }


def _task(row: Row, task: TaskState, reach: int, joins: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return one task as a row; what is empty is left out, because there may be ten thousand of them.

    Of a join the picture shows the last member.
    """
    last = task.attempts[-1] if task.attempts else None
    changes = task.changes
    found = {
        "why": row.why if row.status not in ("waiting", "stuck") else "",
        "attempts": row.attempts,
        "commit": row.commit,
        "cost": row.cost_usd,
        "seconds": row.seconds,
        "agent": row.agent,
        "files": len(changes.files) if changes else 0,
        "plus": changes.plus if changes else 0,
        "minus": changes.minus if changes else 0,
        "waits_on": row.waits_on,
        "wait_until": task.wait_until if row.status == "waiting" else None,
        "label": task.task.label,
        "needs": [joins[name][-1] if name in joins else name for name in task.needs],
        "group": task.task.group,
        "fixes": task.task.fixes,
        "fix_tasks": list(row.fix_tasks),
        "inserted": task.inserted,
        "blocks": reach,
        "began": last.started if last else None,
        "at": task.last_at or None,
        "slot": last.slot if last and row.status in ("running", "verifying", "waiting") else None,
        "recovered": list(recovered_kinds(task)) if row.status == "complete" else [],
    }
    return {"id": row.id, "title": row.title, "status": row.status} | {
        name: value for name, value in found.items() if value not in (None, "", 0, [], False)
    }


def _question(tasks: Sequence[str], asked: str, state: RunState, *, outside: bool) -> dict[str, Any]:
    """Return what waits for a person, with the very tree that would be accepted."""
    first = state.tasks[tasks[0]]
    verdict = first.verdict
    return {
        "tasks": list(tasks),
        "question": asked,
        "detail": first.question,
        "outside": outside,
        "approval": awaits_approval(first),
        "tree": verdict.tree if verdict and first.can_be_accepted else "",
        "files": list(verdict.files[:8]) if verdict else [],
    }


def _reach(waiting: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Count how many tasks wait for each."""
    found: dict[str, int] = {}
    for causes in waiting.values():
        for cause in causes:
            found[cause] = found.get(cause, 0) + 1
    return found
