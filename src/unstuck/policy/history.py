"""Collect the past of a task as the input of decisions and of their replay."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from unstuck.agents.claims import NO_FIX, NO_MARKER, failure_report
from unstuck.diagnosis.output.tool_output import read_output
from unstuck.journal.breakers import PROVIDER_LIMITS
from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import AttemptState, TaskState, failed_command
from unstuck.model.action import APPROVAL, Action, Amend, Decision, Escalate, Halt, Rollback
from unstuck.model.event import Decided, Entry
from unstuck.model.failure import AGENT_DOWN, KINDS, Failure, Kind, RecentFailure
from unstuck.model.text import one_line
from unstuck.policy.decision import History, decide
from unstuck.policy.loops import Footprint, Issue, recurring_issues, strongest_signal
from unstuck.policy.profiles import Policy
from unstuck.policy.schedule import blocking_breaker, next_agent

GOLDEN_RATIO = 0.6180339887
"""Its multiples are spread evenly between 0 and 1, which gives the same jitter for the same journal."""

SYSTEMIC_TASKS = 3
SYSTEMIC_SECONDS = 3600.0
MAX_ISSUES = 20
REVIEW_KINDS = frozenset({Kind.LINT_FAILED, Kind.TYPES_FAILED, Kind.FORMAT_FAILED, Kind.CHECK_FAILED})
"""Kinds of checks that review the work. The same failing test is a signal of its own."""
FIRST_LOOP_ATTEMPT = 3


def history(
    state: RunState,
    name: str,
    agents: tuple[str, ...],
    now: float,
    *,
    extensible: bool = True,
    healthy_base: bool = False,
    caused_by_work: bool = False,
    wants_approval: bool = False,
    gates: Collection[str] = (),
) -> History:
    """Return the past of a task in this epoch. `extensible` says that its plan can take new tasks."""
    task = state.tasks[name]
    attempts = task.tries
    current = attempts[-1] if attempts else None
    error, attempted_fix = reported_error(current, name) if current else ("", NO_FIX)
    rollbacks = [attempt for attempt in attempts if attempt.decision and isinstance(attempt.decision.action, Rollback)]
    return History(
        attempts=task.charged,
        executions=len(attempts),
        sessions=current.sessions if current else 0,
        climbed=task.climbed,
        rollbacks=len(rollbacks),
        seconds=task.seconds,
        cost_usd=task.cost_usd,
        agent=current.agent if current else "",
        agents=agents,
        tries=Counter(attempt.agent for attempt in attempts),
        resting=frozenset(agent for agent in agents if blocking_breaker(state, name, agent, now)),
        green_base=current is not None and (healthy_base or current.base in state.green),
        loop=loop_signal(task),
        systemic=_same_failure_tasks(state, name, now) or _silent_agent_tasks(state, name, agents),
        lineage=state.lineage(name) if extensible else None,
        error=error,
        attempted_fix=attempted_fix,
        index=state.places[name],
        accepted=task.accepted,
        met_by_check=current is not None and current.met_by_check,
        denied=current is not None and current.denied,
        caused_by_work=caused_by_work,
        task=name,
        wants_approval=wants_approval,
        part_of=_part_of(state, task),
        affects_all=current is not None and _affects_all(state, name, current, gates, now),
        now=now,
        jitter=task.last_seq * GOLDEN_RATIO % 1.0,
    )


def continued_session(state: TaskState) -> str:
    """Return the agent's session that the next attempt continues, or an empty string for a new one.

    A session that ran out of context is not continued.
    """
    attempt = state.attempts[-1] if state.attempts else None
    if state.session and attempt is not None and attempt.outcome is None:
        return state.session
    if attempt is None or attempt.outcome is None or attempt.failure is None:
        return ""
    return "" if attempt.failure.kind is Kind.CONTEXT_EXHAUSTED else attempt.outcome.session


def reported_error(attempt: AttemptState, task: str) -> tuple[str, str]:
    """Return the error and the attempted fix, in the agent's words if it reported them."""
    if attempt.failure is None:
        return "", NO_FIX
    report = failure_report(attempt.outcome.words if attempt.outcome else "", task)
    error = attempt.failure.says if report.error == NO_MARKER else report.error
    return error, report.attempted_fix


def loop_signal(task: TaskState) -> str:
    """Return a description of the loop the attempts are in, or an empty string.

    Only failures of the agent count, and there is no loop before the third of them.
    """
    own = [attempt for attempt in task.tries if attempt.failure is not None and attempt.failure.charged]
    if len(own) < FIRST_LOOP_ATTEMPT or own[-1] is not task.attempts[-1]:
        return ""
    signal = strongest_signal(footprint(own[-1]), [footprint(attempt) for attempt in own[:-1]])
    return signal.sentence if signal else _recurring_issue(own)


def _recurring_issue(own: Sequence[AttemptState]) -> str:
    """Return a description of a finding that every attempt should have fixed, or an empty string."""
    *earlier, current = [_issues(attempt) for attempt in own]
    recurring = recurring_issues(current, earlier)
    if not recurring:
        return ""
    issue, rounds = recurring[0]
    where = f" ({issue.file}:{issue.line})" if issue.line else f" ({issue.file})"
    return f"{one_line(issue.title, 120)}{where} comes up in {rounds} rounds, though every attempt was to mend it"


def _issues(attempt: AttemptState) -> tuple[Issue, ...]:
    """Return the findings of an attempt's checks."""
    if attempt.failure is None or attempt.failure.kind not in REVIEW_KINDS:
        return ()
    findings = read_output(attempt.failure.detail).findings[:MAX_ISSUES]
    return tuple(Issue(title=finding.message, file=finding.file, line=finding.line) for finding in findings)


def footprint(attempt: AttemptState) -> Footprint:
    """Return the results of an attempt, for comparing it with other attempts."""
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


def _same_failure_tasks(state: RunState, name: str, now: float) -> tuple[str, ...]:
    """Return the tasks that failed with this task's signature recently, if they are many.

    - Failures of the agent do not count: three checks that say `AssertionError` are three problems.
    - Failures of the supervisor do not count: they say nothing about the tasks.
    - A task that has landed since does not count: it shows that the problem can be overcome.
    """
    failure = state.tasks[name].current.failure if state.tasks[name].attempts else None
    if failure is None or failure.charged or not failure.signature or failure.kind in PROVIDER_LIMITS:
        return ()
    if KINDS[failure.kind].blame == "supervisor":
        return ()
    times = state.signatures.get(failure.signature, {})
    recent = [task for task, at in times.items() if now - at <= SYSTEMIC_SECONDS]
    tasks = tuple(task for task in recent if state.tasks[task].status != "complete")
    return tasks if len(tasks) >= SYSTEMIC_TASKS else ()


def _silent_agent_tasks(state: RunState, name: str, agents: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tasks at which the only agent printed and changed nothing, if they are many.

    There are none after a task that landed.
    """
    if not state.tasks[name].is_silent or len(agents) > 1:
        return ()
    attempted = [task for task in state.tasks.values() if task.attempts]
    if any(task.status == "complete" for task in attempted):
        return ()
    tasks = tuple(task.task.id for task in attempted if task.is_silent)
    return tasks if len(tasks) >= SYSTEMIC_TASKS else ()


def _part_of(state: RunState, task: TaskState) -> str:
    """Return the task that requested this one and whose checks will judge its work, or an empty string."""
    original = state.tasks.get(task.amends or "")
    is_claimed = bool(task.attempts) and task.current.outcome is not None and task.current.outcome.claimed
    if original is None or not is_claimed or not original.task.checks or task.task.id not in original.waits_for:
        return ""
    return original.task.id


def _affects_all(state: RunState, name: str, attempt: AttemptState, gates: Collection[str], now: float) -> bool:
    """Return whether every other open task has the same agent, gate or set-up, and so the same fault."""
    kind = attempt.failure.kind if attempt.failure else None
    if kind in AGENT_DOWN:
        open_tasks = [state.tasks[task] for task in list(state.open) if task != name]
        other_agents = {next_agent(state, task, now) for task in open_tasks} - {attempt.agent}
        return all(blocking_breaker(state, name, agent, now) is not None for agent in other_agents)
    if attempt.sessions == 0:  # the set-up or a gate cannot begin, with any agent
        return True
    return attempt.met_by_check and failed_command(state.tasks[name]) in gates


def landed_commit(state: RunState, name: str) -> str | None:
    """Return the commit of a task, or that of the last task that replaced it."""
    own = state.tasks[name].commit
    if own:
        return own
    for replacement in reversed(replacements(state, name)):
        commit = landed_commit(state, replacement)
        if commit:
            return commit
    return None


def replacements_did_work(state: RunState, name: str) -> bool:
    """Return whether tasks that replace this one did work, so that nothing may be left for it.

    A task that was ticked before the run has done its part. A task that ended without a commit has not.
    """
    tasks = [state.tasks[replacement] for replacement in replacements(state, name)]
    if any(task.status == "complete" and not task.attempts for task in tasks):
        return True
    return any(landed_commit(state, task.task.id) for task in tasks)


def replacements(state: RunState, name: str) -> tuple[str, ...]:
    """Return the tasks that do a task's work: its fix tasks and the parts that it was split into."""
    if name not in state.tasks:
        return ()
    task = state.tasks[name]
    names = list(task.fixes)
    for change in task.modifications:
        if isinstance(change, Amend) and change.request == "SPLIT_TASK":
            names += change.ids
    return tuple(replacement for replacement in names if replacement in state.tasks)


def recent_failures(state: RunState) -> tuple[RecentFailure, ...]:
    """Return all failures of the run, in the order of their attempts' ends."""
    failures = [
        RecentFailure(kind=attempt.failure.kind, name=attempt.failure.summary, at=attempt.ended or attempt.started)
        for task in state.tasks.values()
        for attempt in task.attempts
        if attempt.failure is not None
    ]
    return tuple(sorted(failures, key=lambda failure: failure.at))


# --- recorded decisions, repeated under another policy without an agent --------------------------------------------

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
