"""One task's past, as far as a decision may know it, and what another policy would have decided on it."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from unstuck.agents.claims import NO_FIX, NO_MARKER, failure_report
from unstuck.diagnosis.output.tool_output import read
from unstuck.journal.breakers import PROVIDER_LIMITS
from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import AttemptState, TaskState, failed_command
from unstuck.model.action import APPROVAL, Action, Amend, Escalate, Halt, Rollback
from unstuck.model.event import Decided, Entry
from unstuck.model.failure import AGENT_DOWN, KINDS, Failure, Kind, RecentFailure
from unstuck.model.text import one_line
from unstuck.policy.decision import History, decide
from unstuck.policy.loops import Footprint, Issue, looping, recurring
from unstuck.policy.profiles import Policy
from unstuck.policy.schedule import held, next_agent

GOLDEN = 0.6180339887
"""Multiples of it fall evenly between 0 and 1: a jitter that is the same for the same journal."""


MANY = 3
MOST_ISSUES = 20
REVIEWED = frozenset({Kind.LINT_FAILED, Kind.TYPES_FAILED, Kind.FORMAT_FAILED, Kind.CHECK_FAILED})
"""Kinds of checks that look the work over; the same failing test is a signal of its own."""
THIRD_TRY = 3
WINDOW_SECONDS = 3600.0


def history(
    state: RunState,
    name: str,
    agents: tuple[str, ...],
    now: float,
    *,
    extensible: bool = True,
    healthy_base: bool = False,
    own_doing: bool = False,
    wants_approval: bool = False,
    gates: Collection[str] = (),
) -> History:
    """Gather what is known about the task in this epoch. `extensible`: its plan can take new tasks."""
    task = state.tasks[name]
    attempts = task.attempts[task.epoch_from :]
    current = attempts[-1] if attempts else None
    error, attempted_fix = said(current, name) if current else ("", NO_FIX)
    return History(
        attempts=task.charged,
        executions=len(attempts),
        sessions=current.sessions if current else 0,
        climbed=task.climbed,
        rollbacks=sum(one.decision is not None and isinstance(one.decision.action, Rollback) for one in attempts),
        seconds=task.seconds,
        cost_usd=task.cost_usd,
        agent=current.agent if current else "",
        agents=agents,
        tries=Counter(one.agent for one in attempts),
        resting=frozenset(agent for agent in agents if held(state, name, agent, now)),
        green_base=current is not None and (healthy_base or current.base in state.green),
        looping=circling(task),
        systemic=_systemic(state, name, now) or _mute(state, name, agents),
        lineage=state.lineage(name) if extensible else None,
        error=error,
        attempted_fix=attempted_fix,
        index=state.places[name],
        accepted=task.accepted,
        met_by_check=current is not None and current.met_by_check,
        denied=current is not None and current.denied,
        own_doing=own_doing,
        task=name,
        wants_approval=wants_approval,
        part_of=_part_of(state, task),
        everywhere=current is not None and _everywhere(state, name, current, gates, now),
        now=now,
        jitter=task.last_seq * GOLDEN % 1.0,
    )


def said(attempt: AttemptState, task: str) -> tuple[str, str]:
    """Return what went wrong, in the agent's words where it has any, and what it tried against that."""
    if attempt.failure is None:
        return "", NO_FIX
    report = failure_report(attempt.outcome.words if attempt.outcome else "", task)
    silent = report.error == NO_MARKER
    return attempt.failure.says if silent else report.error, report.attempted_fix


def circling(task: TaskState) -> str:
    """Say how the attempts go in circles, or nothing; never before the third try. Only the agent's own failures count."""
    own = [one for one in task.attempts[task.epoch_from :] if one.failure is not None and one.failure.charged]
    if len(own) < THIRD_TRY or own[-1] is not task.attempts[-1]:
        return ""
    signal = looping(footprint(own[-1]), [footprint(one) for one in own[:-1]])
    return signal.sentence if signal else _raised_again(own)


def _raised_again(own: Sequence[AttemptState]) -> str:
    """Say which finding of a reviewing check comes up round after round although each attempt was to mend it."""
    *earlier, now = [_issues(one) for one in own]
    found = recurring(now, earlier)
    if not found:
        return ""
    issue, rounds = found[0]
    where = f" ({issue.file}:{issue.line})" if issue.line else f" ({issue.file})"
    return f"{one_line(issue.title, 120)}{where} comes up in {rounds} rounds, though every attempt was to mend it"


def _issues(attempt: AttemptState) -> tuple[Issue, ...]:
    """Return what the checks of an attempt complain of, as a reviewer's issues."""
    if attempt.failure is None or attempt.failure.kind not in REVIEWED:
        return ()
    found = read(attempt.failure.detail).findings[:MOST_ISSUES]
    return tuple(Issue(title=one.message, file=one.file, line=one.line) for one in found)


def footprint(attempt: AttemptState) -> Footprint:
    """Return what an attempt left behind, for comparing it with others."""
    failure = attempt.failure
    return Footprint(
        attempt=attempt.number,
        approach=attempt.outcome.approach if attempt.outcome else "",
        start=attempt.tree or "",
        tree=attempt.verdict.tree if attempt.verdict else "",
        changes=frozenset(attempt.verdict.patch if attempt.verdict else ()),
        signature=failure.signature if failure else "",
        failing=len(failure.tests) if failure and failure.tests else None,
        failed=failure is not None,
    )


def _systemic(state: RunState, name: str, now: float) -> tuple[str, ...]:
    """List the tasks that failed with this task's signature within the window, if they are many.

    Only what is neither the agent's own doing, as three tasks whose checks all say `AssertionError` are three problems,
    nor ours: a supervisor that was killed three times says nothing about the tasks. A task that got through since shows
    that the problem can be overcome, so it does not count.
    """
    failure = state.tasks[name].current.failure if state.tasks[name].attempts else None
    if failure is None or failure.charged or not failure.signature or failure.kind in PROVIDER_LIMITS:
        return ()
    seen = state.signatures.get(failure.signature, {}) if KINDS[failure.kind].blame != "supervisor" else {}
    recent = (task for task, at in seen.items() if now - at <= WINDOW_SECONDS)
    alike = tuple(task for task in recent if state.tasks[task].status != "complete")
    return alike if len(alike) >= MANY else ()


def _mute(state: RunState, name: str, agents: tuple[str, ...]) -> tuple[str, ...]:
    """List the tasks to which the only agent has neither said nor done anything, if they are many and it did none."""
    touched = [task for task in state.tasks.values() if task.attempts] if state.tasks[name].is_silent else []
    if len(agents) > 1 or any(task.status == "complete" for task in touched):
        return ()
    alike = tuple(task.task.id for task in touched if task.is_silent)
    return alike if len(alike) >= MANY else ()


def _part_of(state: RunState, task: TaskState) -> str:
    """Return the task for which this one was split off or put before, if its checks will judge what this one claims."""
    original = state.tasks.get(task.amends or "")
    claimed = bool(task.attempts) and task.current.outcome is not None and task.current.outcome.claimed
    if original is None or not claimed or not original.task.checks or task.task.id not in original.waits_for:
        return ""
    return original.task.id


def _everywhere(state: RunState, name: str, attempt: AttemptState, gates: Collection[str], now: float) -> bool:
    """Whether every other open task would meet the same: it has the same agent, the same gate, or the same set-up."""
    kind = attempt.failure.kind if attempt.failure else None
    if kind in AGENT_DOWN:
        others = (state.tasks[one] for one in list(state.open) if one != name)
        agents = {next_agent(state, other, now) for other in others} - {attempt.agent}
        return not any(held(state, name, agent, now) is None for agent in agents)
    if attempt.sessions == 0:  # the set-up or a gate cannot begin, whoever the agent is
        return True
    return attempt.met_by_check and failed_command(state.tasks[name]) in gates


def commit_of(state: RunState, name: str) -> str | None:
    """Return the commit that did a task's work: its own, or that of the last task that did it in its place."""
    commits = (commit_of(state, one) for one in reversed(stand_ins(state, name)))
    return state.tasks[name].commit or next((commit for commit in commits if commit), None)


def done_by_others(state: RunState, name: str) -> bool:
    """Whether tasks that stand in for this one did work: then nothing may be left for it to do.

    One that was ticked before the run has done its part; one that ended with nothing to commit has not.
    """
    others = [state.tasks[one] for one in stand_ins(state, name)]
    ticked = any(one.status == "complete" and not one.attempts for one in others)
    return ticked or any(commit_of(state, one.task.id) for one in others)


def stand_ins(state: RunState, name: str) -> tuple[str, ...]:
    """List the tasks that do a task's work in its place: those that repair it, and the parts that it was split into."""
    if name not in state.tasks:
        return ()
    task = state.tasks[name]
    splits = [one for one in task.modifications if isinstance(one, Amend) and one.request == "SPLIT_TASK"]
    return tuple(one for one in (*task.fixes, *(part for split in splits for part in split.ids)) if one in state.tasks)


def seen_failures(state: RunState) -> tuple[RecentFailure, ...]:
    """Return all failures of the run, in the order of their attempts' ends."""
    found = [
        RecentFailure(kind=attempt.failure.kind, name=attempt.failure.summary, at=attempt.ended or attempt.started)
        for task in state.tasks.values()
        for attempt in task.attempts
        if attempt.failure is not None
    ]
    return tuple(sorted(found, key=lambda one: one.at))


# --- the run's decisions told again under another policy; no agent is needed --------------------------------------

TO_A_PERSON = (Escalate, Halt)
OF_NO_POLICY = frozenset({APPROVAL, "asked"})
"""Rungs of decisions that are the same under every policy: a person wants to approve, an agent asks to change the plan."""


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
            past = history(state, event.task, agents, entry.at, healthy_base=_seems_healthy(task))
            mine, other = (event.task, task.epoch_from), event.decision
            if other.rung not in OF_NO_POLICY:
                other = decide(task.current.failure, replace(past, climbed=climbed.get(mine, ())), policy)
            climbed[mine] = (*climbed.get(mine, ()), other.rung)
            told.append(Retold(
                seq=entry.seq, task=event.task, attempt=task.current.number, failure=task.current.failure, action=event.decision.action,
                rung=event.decision.rung, reason=event.decision.reason, other_action=other.action, other_rung=other.rung,
            ))  # fmt: skip
        state.apply(entry)
    return told


def _seems_healthy(task: TaskState) -> bool:
    """Whether the journal knows of no gate that was red on the task's base."""
    return not any(
        one.excused_because for attempt in task.attempts if attempt.verdict for one in attempt.verdict.results
    )


def stopping_point(told: Iterable[Retold]) -> dict[str, Retold]:
    """Return for each task the first decision that the other policy would have taken to a person."""
    first: dict[str, Retold] = {}
    for one in told:
        if isinstance(one.other_action, TO_A_PERSON) and not isinstance(one.action, TO_A_PERSON):
            first.setdefault(one.task, one)
    return first
