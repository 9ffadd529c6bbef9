"""Which facts are worth waking a person for, each cause once: stuck, asking, waiting for long, ended."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from unstuck.decide import Escalate, Halt, Wait
from unstuck.diagnosis import Kind
from unstuck.journal import Acted, Entry, RunEnded, RunState, TaskState, awaits_approval
from unstuck.tell import cause_of, one_line, question, visible, waits

Occasion = Literal["stuck", "asks", "waiting", "ended"]
LONG_WAIT = 60.0
"""Seconds from which on a wait is worth a message."""
TEXT_CHARS = 2_000
TITLE_CHARS = 120
STUCK = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What a person is told, with the facts behind it."""

    occasion: Occasion
    cause: str
    """Two messages with the same cause say the same."""
    title: str
    text: str
    run: str
    plan: str
    tasks: tuple[str, ...] = ()
    exit_code: int | None = None
    until: float | None = None
    command: str = ""
    """What to type."""

    def as_json(self) -> dict[str, Any]:
        return {"schema": 1, **asdict(self)}


def messages(entry: Entry, state: RunState) -> Iterator[Message]:
    """Return what a fact is worth telling a person."""
    event = entry.event
    started = state.started
    run, plan = (started.run, started.plan) if started else ("", "")
    if isinstance(event, Acted) and isinstance(event.action, Escalate | Halt):
        yield about(state.tasks[event.task], state)
    elif isinstance(event, Acted) and isinstance(event.action, Wait):
        if event.action.until - entry.at >= LONG_WAIT:
            what = event.action.what or state.tasks[event.task].current.agent
            text = f"Task {event.task} {waits(what, event.action.until)}."
            yield Message(
                occasion="waiting", cause=f"wait {what}", title=_title(f"unstuck waits for {what}"), text=text,
                run=run, plan=plan, tasks=(event.task,), until=event.action.until, command="unstuck status",
            )  # fmt: skip
    elif isinstance(event, RunEnded):
        yield _ended(event, entry, state)


def about(task: TaskState, state: RunState) -> Message:
    """Say what a stuck task needs."""
    run, plan = (state.started.run, state.started.plan) if state.started else ("", "")
    failure = task.attempts[-1].failure if task.attempts else None
    asks = awaits_approval(task) or (failure is not None and failure.kind is Kind.QUESTION)
    name = one_line(task.task.title, TITLE_CHARS)
    title = f"Task {task.task.id} asks: {name}" if asks else f"Task {task.task.id} is stuck: {name}"
    return Message(
        occasion="asks" if asks else "stuck",
        cause=cause_of(task),
        title=_title(title),
        text=visible(question(task))[:TEXT_CHARS],
        run=run,
        plan=plan,
        tasks=(task.task.id,),
        command=f"unstuck approve {task.task.id}" if awaits_approval(task) else f"unstuck report {task.task.id}",
    )


def _ended(event: RunEnded, entry: Entry, state: RunState) -> Message:
    """Say how the run ended; one that nobody has approved yet asks."""
    run, plan = (state.started.run, state.started.plan) if state.started else ("", "")
    statuses = [task.status for task in state.tasks.values()]
    asks = event.exit_code == STUCK and "stuck" not in statuses
    landed, stuck = statuses.count("complete"), statuses.count("stuck")
    figures = f"{landed} of {len(statuses)} landed" + (f", {stuck} stuck" if stuck else "")
    return Message(
        occasion="asks" if asks else "ended",
        cause=f"end {entry.seq}",
        title=_title(f"unstuck: {figures} ({plan})"),
        text=visible(event.reason)[:TEXT_CHARS],
        run=run,
        plan=plan,
        exit_code=event.exit_code,
        command="unstuck report" if event.exit_code else "git log",
    )


def _title(text: str) -> str:
    return one_line(text, TITLE_CHARS)
