"""Choose the next action. Pure: same failure and history, same decision."""

from collections import Counter
from dataclasses import dataclass

from unstuck.core.action import Accept, Action, Continue, Decision, Escalate, Halt, Retry, Rollback, Switch
from unstuck.core.failure import Failure, Kind
from unstuck.core.policy import Policy, Rung

LAND_ANYWAY = 'not verified: the configuration says `unverified = "land"`'


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What a decision may know about the task's past in this epoch."""

    attempts: int = 0
    """Finished attempts that were charged to the agent, the one that just failed included."""
    climbed: tuple[str, ...] = ()
    """Rungs taken so far, oldest first, e.g. ``("check_failed[0]",)``."""
    agent: str = ""
    agents: tuple[str, ...] = ()
    """The agents that this run may use, in the user's order."""
    tried: frozenset[str] = frozenset()
    """Agents that have had this task."""
    accepted: str = ""
    """A person's reason to take the work as it is."""


def decide(failure: Failure | None, history: History, policy: Policy) -> Decision:
    """Accept what passed; else climb the failure's ladder to the first open rung; else ask a person."""
    if failure is None:
        because = history.accepted
        return Decision(action=Accept(because=because), reason=because or "All checks pass.", rung="pass")
    if failure.kind is Kind.UNVERIFIED and policy.land_unverified:
        return Decision(action=Accept(because=LAND_ANYWAY), reason=LAND_ANYWAY, rung="unverified")
    if failure.charged and history.attempts >= policy.max_attempts:
        return _ask(f"{_count(history.attempts)} made, none passed. Last: {failure.summary}", "limit", policy)
    taken = Counter(history.climbed)
    for place, rung in enumerate(policy.ladders[failure.kind]):
        name = f"{failure.kind}[{place}]"
        action = _action(rung, history) if taken[name] < rung.times else None
        if action is not None:
            return Decision(action=action, reason=failure.summary, rung=name)
    return _ask(failure.summary, f"{failure.kind}[end]", policy)


def _action(rung: Rung, history: History) -> Action | None:
    """Turn a rung into an action, or None where it does not apply."""
    match rung.move:
        case "retry":
            return Retry(hint=rung.hint)
        case "continue":
            return Continue(hint=rung.hint)
        case "rollback":
            return Rollback(hint=rung.hint)
        case "switch":
            other = next((name for name in history.agents if name not in history.tried), None)
            return Switch(agent=other, hint=rung.hint) if other else None


def _ask(question: str, rung: str, policy: Policy) -> Decision:
    action = Halt(question=question) if policy.on_stuck == "halt" else Escalate(question=question)
    return Decision(action=action, reason=question, rung=rung)


def _count(attempts: int) -> str:
    return "One attempt was" if attempts == 1 else f"{attempts} attempts were"
