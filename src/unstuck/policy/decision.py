"""Choose the next action for a task.

The same failure, history, policy and experience always give the same decision.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from unstuck.journal.breakers import PROVIDER_LIMITS
from unstuck.journal.task_graph import Lineage
from unstuck.model.action import (
    APPROVAL,
    Accept,
    Action,
    Continue,
    Decision,
    Escalate,
    Fix,
    Halt,
    Retry,
    Rollback,
    Switch,
    Wait,
)
from unstuck.model.failure import AGENT_DOWN, KINDS, Failure, Kind
from unstuck.model.text import THE_END_OF
from unstuck.policy.plan_changes import exceeded_fix_limit
from unstuck.policy.profiles import RETRY_CANNOT_HELP, TRANSIENT_FAULTS, Ladder, Policy, Rung
from unstuck.policy.schedule import Experience

LAND_UNVERIFIED = 'not verified: the configuration says `unverified = "land"`'
NO_EXPERIENCE = Experience()
CHECK_AGAIN = "check_again"
"""The ladder on which a check is run again without an agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The past of a task in this epoch and its present situation, as the input of a decision."""

    attempts: int = 0  # finished attempts that were charged to the agent, with the one that just failed
    executions: int = 0  # all finished attempts, whatever their cause
    sessions: int = 1  # sessions of the current attempt
    climbed: tuple[str, ...] = ()
    """Rungs taken so far, oldest first, e.g. ``("test_failed[0]",)``."""
    rollbacks: int = 0
    seconds: float = 0.0  # time that agents have worked on the task
    cost_usd: float | None = None  # the reported cost of the task
    agent: str = ""
    agents: tuple[str, ...] = ()  # the agents that this run may use, in the user's order
    tries: Mapping[str, int] = field(default_factory=dict)  # the number of attempts of each agent at this task
    resting: frozenset[str] = frozenset()  # agents that cannot be used for now
    green_base: bool = True  # the checks passed at the commit that a rollback would go to
    loop: str = ""  # a sentence, if the attempts repeat each other
    systemic: tuple[str, ...] = ()
    """The tasks that failed in the same way recently, with this one, if they are many."""
    lineage: Lineage | None = None  # its fix tasks and those it repairs; None if the plan cannot take new tasks
    error: str = ""
    attempted_fix: str = ""  # the agent's report, or the summary of the failure
    index: int = 0  # the task's place in the plan, counted from 0
    accepted: str = ""  # a person's reason for accepting the work
    met_by_check: bool = False  # a check failed, and not the agent's session
    denied: bool = False  # the agent stopped because it lacked a permission
    caused_by_work: bool = False  # the work itself requires the missing thing: the agent can do without it
    task: str = ""
    wants_approval: bool = False  # a person wants to approve what lands
    part_of: str = ""
    """The task that requested this one and whose checks will cover its work, if nothing else does."""
    affects_all: bool = False  # every other open task would fail in the same way
    now: float = 0.0
    jitter: float = 0.0  # between 0 and 1, so that many waiting tasks do not all wake at once


def decide(
    failure: Failure | None, history: History, policy: Policy, experience: Experience = NO_EXPERIENCE
) -> Decision:
    """Return the decision: accept work that passed, else the first open rung, else ask a person."""
    if failure is None:
        because = history.accepted
        return _land(because, because or "All checks pass.", "accepted" if because else "pass", history)
    if failure.kind is Kind.UNVERIFIED and history.part_of:
        because = f"part of {history.part_of}, whose Verify is run when all parts have landed"
        return _land(because, f"It is {because}.", "part", history)
    if failure.kind is Kind.UNVERIFIED and policy.land_unverified:
        return _land(LAND_UNVERIFIED, LAND_UNVERIFIED, "unverified", history)
    reason = history.loop or failure.summary
    name, ladder = _ladder(failure, history, policy)
    if history.systemic and policy.charges == "blame":
        question = f"{len(history.systemic)} tasks fail in the same way, so it is one problem: {failure.summary}"
        return Decision(
            action=Halt(question=question), reason=f"The same in {', '.join(history.systemic)}.", rung="systemic"
        )
    limit_text = _reached_limit(failure, history, policy)
    if limit_text:
        return _ask(limit_text, "limit", policy)
    rung, action, limit = _first_open_rung(name, ladder, failure, history, policy, experience)
    if action is not None:
        return Decision(action=action, reason=reason, rung=rung)
    if limit:
        return _ask(f"{limit}\nLast: {failure.summary}", rung, policy)
    nothing_starts = failure.kind in TRANSIENT_FAULTS and history.met_by_check and not history.sessions
    if (failure.kind in RETRY_CANNOT_HELP or nothing_starts) and history.affects_all and not history.caused_by_work:
        return Decision(action=Halt(question=reason), reason=reason, rung=f"{name}[end]")
    return _ask(reason, f"{name}[end]", policy)


def _first_open_rung(
    name: str, ladder: Ladder, failure: Failure, history: History, policy: Policy, experience: Experience
) -> tuple[str, Action | None, str]:
    """Return the first rung that applies with its action, or the limit of fix tasks that ends the ladder."""
    taken = Counter(history.climbed)
    waits = sum(taken[f"{name}[{place}]"] for place, rung in enumerate(ladder) if rung.move == "wait")
    for place, rung in enumerate(ladder):
        step = f"{name}[{place}]"
        limit = exceeded_fix_limit(history.lineage, policy.limits) if rung.move == "fix" and history.lineage else None
        if limit is not None:
            return limit[0], None, limit[1]
        if taken[step] >= rung.times:
            continue
        count = waits if rung.move == "wait" else taken[step]
        action = _rung_action(rung, failure, history, policy, experience, count)
        if action is not None:
            return step, action, ""
    return "", None, ""


def _land(because: str, reason: str, rung: str, history: History) -> Decision:
    """Return the decision to land the work, or to ask for a person's approval first."""
    if history.wants_approval and not history.accepted:
        question = f"{reason} It lands when you approve it: unstuck approve {history.task}"
        return Decision(action=Escalate(question=question), reason=question, rung=APPROVAL)
    return Decision(action=Accept(because=because), reason=reason, rung=rung)


def _ladder(failure: Failure, history: History, policy: Policy) -> tuple[str, Ladder]:
    """Return the ladder of a failure. Transient faults and those that no attempt repairs have fixed ladders."""
    if history.loop:
        return policy.ladder_of(Kind.CIRCULAR_FIX)
    if history.met_by_check and failure.kind in TRANSIENT_FAULTS:
        return CHECK_AGAIN, (Rung("wait", policy.limits.check_waits),)
    name, ladder = policy.ladder_of(failure.kind)
    if history.denied:
        return name, (Rung("switch", len(history.agents)),)  # the same agent would be denied again
    if failure.kind in RETRY_CANNOT_HELP and not history.caused_by_work:
        return name, (Rung("switch", len(history.agents)),) if failure.kind in AGENT_DOWN else ()
    return name, ladder


def _reached_limit(failure: Failure, history: History, policy: Policy) -> str:
    """Return the text about the task's limit that is reached, or an empty string."""
    attempts, limits = _attempts(history, policy), policy.limits
    if failure.kind in PROVIDER_LIMITS or (history.met_by_check and failure.kind in TRANSIENT_FAULTS):
        return ""
    charged = failure.charged or (policy.charges == "all" and failure.kind is not Kind.INTERRUPTED)
    if charged and attempts >= limits.attempts:
        if policy.spent:
            return policy.spent.format(index=history.index, attempts=attempts, error=failure.says).strip()
        made = "One attempt was" if attempts == 1 else f"{attempts} attempts were"
        return f"{made} made, none passed. Last: {failure.summary}"
    if limits.task_seconds is not None and history.seconds >= limits.task_seconds:
        return f"The limit of {limits.task_seconds:g} seconds for one task is reached. Last: {failure.summary}"
    if limits.task_cost_usd is not None and (history.cost_usd or 0.0) >= limits.task_cost_usd:
        return f"The limit of ${limits.task_cost_usd:.2f} for one task is reached. Last: {failure.summary}"
    return ""


def _attempts(history: History, policy: Policy) -> int:
    return history.attempts if policy.charges == "blame" else history.executions


def _rung_action(
    rung: Rung, failure: Failure, history: History, policy: Policy, experience: Experience, taken: int
) -> Action | None:
    """Return the action of a rung, or None if it does not apply."""
    if rung.below is not None and _attempts(history, policy) >= rung.below:
        return None
    match rung.move:
        case "retry":
            return Retry(hint=rung.hint)
        case "continue":
            is_free = KINDS[failure.kind].blame == "supervisor"  # faults of the supervisor use up no budget
            return Continue(hint=rung.hint) if is_free or history.sessions < policy.limits.sessions else None
        case "rollback":
            allowed = history.rollbacks < policy.limits.rollbacks and (history.green_base or not policy.green_base)
            return Rollback(hint=rung.hint) if allowed else None
        case "switch":
            return _switch(rung.hint, failure, history, experience)
        case "fix":
            if history.lineage is None:  # the plan takes no new tasks, so the same one is tried as often
                return Retry(hint=rung.hint) if taken < policy.limits.fixes else None
            error = history.error or failure.says
            new = history.lineage.next_id
            return Fix(id=new, error=error, attempted_fix=history.attempted_fix, kind=failure.kind)
        case "wait":
            elsewhere = policy.quota == "switch" and failure.kind in PROVIDER_LIMITS
            other = _switch(rung.hint, failure, history, experience) if elsewhere else None
            what = history.agent if KINDS[failure.kind].blame == "provider" else f"{THE_END_OF}{failure.summary}"
            return other or Wait(until=_until(failure, history, policy, taken), what=what)


def _switch(hint: str, failure: Failure, history: History, experience: Experience) -> Switch | None:
    """Return a switch to the best available agent, or None if that is the current one."""
    down = {*history.resting, *([history.agent] if failure.kind in AGENT_DOWN else [])}
    available = [name for name in history.agents if name not in down]
    other = experience.best(available, history.tries)
    return Switch(agent=other, hint=hint) if other is not None and other != history.agent else None


def _until(failure: Failure, history: History, policy: Policy, taken: int) -> float:
    """Return the end of the wait: the stated reset, or a time that doubles with every wait."""
    if failure.resets_at is not None and failure.resets_at > history.now:
        return failure.resets_at + policy.limits.reset_margin * (1.0 + history.jitter)
    limits = policy.limits
    checks = history.met_by_check and failure.kind in TRANSIENT_FAULTS
    first, longest = (
        (limits.first_check_wait, limits.longest_check_wait) if checks else (limits.first_wait, limits.longest_wait)
    )
    delay = min(first * 2.0 ** min(taken, 10), longest)
    return history.now + delay * (1.0 + history.jitter / 4)


def _ask(question: str, rung: str, policy: Policy) -> Decision:
    action = Halt(question=question) if policy.on_stuck == "halt" else Escalate(question=question)
    return Decision(action=action, reason=question, rung=rung)


# --- whether the work itself requires the missing thing: then the agent can do without it --------------------------


def requires_missing(failure: Failure, texts: Iterable[tuple[str | None, str | None]]) -> bool:
    """Return whether the change itself requires the missing thing.

    That is a file of the project, or a name that a changed text has now and did not have before.
    """
    if any("/" in name and not name.startswith(("@", "/")) for name in failure.names):
        return True
    roots = {re.split(r"[./]", name.lstrip("@"))[0] for name in failure.names} - {""}
    added = [(old or "", new) for old, new in texts if new is not None]
    return any(root in new and root not in old for old, new in added for root in roots)
