"""Repeat the decisions of a recorded run under another policy, without an agent."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import TaskState
from unstuck.model.action import APPROVAL, Action, Decision, Escalate, Halt
from unstuck.model.event import Decided, Entry
from unstuck.model.failure import Failure
from unstuck.policy.decision import decide
from unstuck.policy.history import history
from unstuck.policy.profiles import Policy

ASKING_ACTIONS = (Escalate, Halt)
POLICY_FREE_RUNGS = frozenset({APPROVAL, "asked"})
"""Rungs that no policy changes: a person wants to approve, or an agent requests a change of the plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedDecision:
    """One decision of a run, and the decision of another policy at the same point."""

    seq: int
    task: str
    attempt: int
    failure: Failure | None
    action: Action
    rung: str
    reason: str
    other_action: Action
    other_rung: str

    @property
    def is_same(self) -> bool:
        return type(self.action) is type(self.other_action)


def replay_decisions(entries: Iterable[Entry], policy: Policy) -> list[ReplayedDecision]:
    """Decide again at every point where the run decided, with the knowledge of that moment.

    Each decision stands for itself: after the first difference the run would have gone another way.
    """
    state = RunState()
    replayed: list[ReplayedDecision] = []
    climbed: dict[tuple[str, int], tuple[str, ...]] = {}  # the other policy's rungs so far, by task and epoch
    for entry in entries:
        event = entry.event
        if isinstance(event, Decided) and event.task in state.tasks and state.tasks[event.task].attempts:
            task = state.tasks[event.task]
            key = (event.task, task.epoch_from)
            other = _other_decision(state, event, entry.at, policy, climbed.get(key, ()))
            climbed[key] = (*climbed.get(key, ()), other.rung)
            replayed.append(
                ReplayedDecision(
                    seq=entry.seq,
                    task=event.task,
                    attempt=task.current.number,
                    failure=task.current.failure,
                    action=event.decision.action,
                    rung=event.decision.rung,
                    reason=event.decision.reason,
                    other_action=other.action,
                    other_rung=other.rung,
                )
            )
        state.apply(entry)
    return replayed


def _other_decision(state: RunState, event: Decided, at: float, policy: Policy, climbed: tuple[str, ...]) -> Decision:
    if event.decision.rung in POLICY_FREE_RUNGS:
        return event.decision
    task = state.tasks[event.task]
    agents = state.started.options.agents if state.started else ()
    past = history(state, event.task, agents, at, healthy_base=_base_seems_healthy(task))
    return decide(task.current.failure, replace(past, climbed=climbed), policy)


def _base_seems_healthy(task: TaskState) -> bool:
    """Return whether no recorded check was excused because it failed on the base."""
    verdicts = [attempt.verdict for attempt in task.attempts if attempt.verdict]
    return not any(result.excused_because for verdict in verdicts for result in verdict.results)


def first_questions(replayed: Iterable[ReplayedDecision]) -> dict[str, ReplayedDecision]:
    """Return for each task the first decision that only the other policy would have taken to a person."""
    first: dict[str, ReplayedDecision] = {}
    for decision in replayed:
        asks_instead = isinstance(decision.other_action, ASKING_ACTIONS)
        if asks_instead and not isinstance(decision.action, ASKING_ACTIONS):
            first.setdefault(decision.task, decision)
    return first
