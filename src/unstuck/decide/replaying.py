"""Tell a run's decisions again under another policy: what would have been decided on the same facts? No agent is needed."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from unstuck.decide.action import Action, Escalate, Halt, Skip
from unstuck.decide.decision import decide
from unstuck.decide.past import history
from unstuck.decide.policy import Policy
from unstuck.decide.pricing import Weighed
from unstuck.diagnosis import Failure
from unstuck.journal import Decided, Entry, RunState

FINAL = (Escalate, Halt, Skip)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retold:
    """One decision as it was, and as it would have been."""

    seq: int
    task: str
    attempt: int
    failure: Failure | None
    action: Action
    rung: str
    reason: str
    other_action: Action
    other_rung: str
    weighed: tuple[Weighed, ...] = ()
    """What the run weighed, and found how much worth."""

    @property
    def same(self) -> bool:
        return type(self.action) is type(self.other_action)


def retell(entries: Iterable[Entry], policy: Policy) -> list[Retold]:
    """Decide again at every point where the run decided, knowing exactly what it knew then.

    Each line stands for itself: after the first difference the story would have gone another way.
    """
    state = RunState()
    told: list[Retold] = []
    climbed: dict[tuple[str, int], tuple[str, ...]] = {}
    """The rungs that the other policy would have taken so far, by task and epoch."""
    for entry in entries:
        event = entry.event
        if isinstance(event, Decided) and event.task in state.tasks and state.tasks[event.task].attempts:
            task = state.tasks[event.task]
            agents = state.started.options.agents if state.started else ()
            past = history(state, event.task, agents, entry.at)
            mine = event.task, task.epoch_from
            other = decide(task.current.failure, replace(past, climbed=climbed.get(mine, ())), policy)
            climbed[mine] = (*climbed.get(mine, ()), other.rung)
            told.append(
                Retold(
                    seq=entry.seq,
                    task=event.task,
                    attempt=task.current.number,
                    failure=task.current.failure,
                    action=event.decision.action,
                    rung=event.decision.rung,
                    reason=event.decision.reason,
                    other_action=other.action,
                    other_rung=other.rung,
                    weighed=event.decision.weighed,
                )
            )
        state.apply(entry)
    return told


def stopping_point(told: Iterable[Retold]) -> dict[str, Retold]:
    """Return for each task the first decision that the other policy would have taken to a person."""
    first: dict[str, Retold] = {}
    for one in told:
        if isinstance(one.other_action, FINAL) and not isinstance(one.action, FINAL):
            first.setdefault(one.task, one)
    return first
