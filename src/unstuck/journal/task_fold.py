"""Compute the next state of a task from each event of the journal."""

from dataclasses import replace

from unstuck.journal.task_state import AttemptState, TaskState
from unstuck.model.action import (
    Accept,
    Amend,
    Append,
    Escalate,
    Fix,
    Halt,
    Retry,
    Rollback,
    Switch,
    Wait,
)
from unstuck.model.event import (
    Acted,
    AttemptStarted,
    Classified,
    Decided,
    LineEvent,
    Operated,
    Rebased,
    Request,
    SessionEnded,
    SessionStarted,
    Verified,
)
from unstuck.model.failure import Kind
from unstuck.model.outcome import Outcome
from unstuck.model.plan import Task

REPAIRED = """Task {fix} was to repair what failed here, and has landed: its work is in your tree. See what is left to do.
If nothing is, change nothing and say that you are done."""

ASKED_FOR = "The tasks that you asked for ({tasks}) are done: their work is in your tree. See what is left to do."

APPROVED = "approved by a person"


def initial_state(task: Task) -> TaskState:
    """Return the state of a task before its first event."""
    return TaskState(task=task, status="complete" if task.done else "skipped" if task.skipped else "pending")


def apply_event(state: TaskState, event: LineEvent, at: float, metered: float = 0.0) -> TaskState:
    """Return the state after an event. `metered` is the cost of the session before this bill."""
    state = replace(state, last=event, last_at=at)
    if isinstance(event, AttemptStarted):
        return _start_attempt(state, event, at)
    if not state.attempts:
        return state
    match event:
        case SessionStarted():
            return replace(_current(state, sessions=event.session), status="running", wait_until=None, accepted="")
        case SessionEnded():
            return _end_session(state, event, at, metered)
        case Rebased():
            alone = state.current.alone or state.current.verdict
            return replace(_current(state, base=event.base, tree=event.tree, alone=alone), status="verifying")
        case Verified():
            return _current(state, verdict=event.verdict)
        case Classified():
            charged = event.failure is not None and event.failure.charged
            return replace(_current(state, failure=event.failure), charged=state.charged + charged)
        case Decided():
            return replace(_current(state, decision=event.decision), climbed=(*state.climbed, event.decision.rung))
        case Acted():
            return _apply_action(_current(state, snapshot=event.snapshot or state.current.snapshot), event)


def _start_attempt(state: TaskState, event: AttemptStarted, at: float) -> TaskState:
    attempt = AttemptState(
        number=event.attempt, agent=event.agent, base=event.base, slot=event.slot, started=at, tree=event.tree
    )
    attempts = (*state.attempts, attempt)
    return replace(state, status="running", attempts=attempts, wait_until=None, question="", accepted="")


def _end_session(state: TaskState, event: SessionEnded, at: float, metered: float) -> TaskState:
    """Return the state with the session's cost, time and tokens added to its attempt."""
    attempt = state.current
    bill = session_cost(event.outcome, metered)
    cost = attempt.cost_usd if bill is None else (attempt.cost_usd or 0.0) + bill
    worked = attempt.worked + event.outcome.ended.seconds
    before, more = attempt.usage, event.outcome.usage
    usage = before + more if before and more else before or more
    state = _current(state, outcome=event.outcome, ended=at, cost_usd=cost, worked=worked, usage=usage)
    return replace(state, status="verifying", session="")


def session_cost(outcome: Outcome, metered: float) -> float | None:
    """Return the cost beyond `metered`, or None if the agent reports no cost."""
    return None if outcome.cost_usd is None else max(outcome.cost_usd - metered, 0.0)


def _apply_action(state: TaskState, event: Acted) -> TaskState:
    match event.action:
        case Accept():
            return replace(state, status="complete", commit=event.commit, changes=event.changes, question="", hint="")
        case Escalate(question=question, asks=asks) | Halt(question=question, asks=asks):
            return replace(state, status="stuck", question=question, asks=asks)
        case Wait(until=until, what=what):
            return replace(state, status="waiting", wait_until=until, waits_on=what)
        case Retry(hint=hint):
            verdict = state.current.verdict
            seed = verdict.tree if verdict else state.current.tree
            return replace(state, status="running", hint=hint, seed=seed, base=state.current.base)
        case Fix():
            return _wait_for_fix(state, event.action)
        case Amend():
            return _wait_for_amendment(state, event.action)
        case Append():
            return replace(state, modifications=(*state.modifications, event.action))
        case Rollback(hint=hint):
            return replace(state, status="running", hint=hint, seed=None, base=None)
        case Switch(hint=hint, agent=agent):
            return replace(state, status="running", hint=hint, seed=None, base=None, agent=agent)
        case _:
            return replace(state, status="running", hint=event.action.hint)


def _wait_for_fix(state: TaskState, fix: Fix) -> TaskState:
    return replace(
        state,
        status="pending",
        hint=REPAIRED.format(fix=fix.id),
        seed=None,
        base=None,
        fixes=state.fixes if fix.id in state.fixes else (*state.fixes, fix.id),
        last_error=fix.error,
        waits_for=state.waits_for if fix.id in state.waits_for else (*state.waits_for, fix.id),
    )


def _wait_for_amendment(state: TaskState, amend: Amend) -> TaskState:
    """Return the state of a task that waits for tasks its agent requested. A prerequisite keeps the work so far."""
    verdict = state.current.verdict
    work = verdict.tree if verdict and amend.request == "ADD_PREREQUISITE" else None
    return replace(
        state,
        status="pending",
        hint=ASKED_FOR.format(tasks=", ".join(amend.ids)),
        seed=work,
        base=state.current.base if work else None,
        waits_for=(*state.waits_for, *amend.ids),
        modifications=(*state.modifications, amend),
    )


def apply_request(state: TaskState, event: Operated) -> TaskState:
    """Return the state after a person's request."""
    if state.task.id in event.reopened:
        return _reopen_as_requested(state, event.request)
    match event.request.verb:
        case "skip":
            return replace(state, status="skipped", question="", notes=(*state.notes, f"Skipped: {event.request.text}"))
        case "accept" | "approve":
            ready = Classified(task=state.task.id, failure=None)
            state = _current(state, failure=None) if state.attempts else state
            because = event.request.text or APPROVED
            return replace(state, status="running", last=ready, accepted=because, question="")
        case _:
            return state


def _reopen_as_requested(state: TaskState, request: Request) -> TaskState:
    hint = _hint(request)
    match request.verb:
        case "answer":
            return _continue_asking_session(state, reopen_with_work(state, hint=hint))
        case "retry":
            return reopen_with_work(state, hint=hint)
        case _:
            return reopen(state, hint=hint)


def _continue_asking_session(before: TaskState, state: TaskState) -> TaskState:
    """Return the state in which an agent that stopped to ask continues its session and its work."""
    last = before.attempts[-1] if before.attempts else None
    if last is None or last.failure is None or not (last.denied or last.failure.kind is Kind.QUESTION):
        return state
    tree = last.verdict.tree if last.verdict else None
    session = last.outcome.session if last.outcome else ""
    return replace(state, agent=last.agent, session=session, seed=tree, base=last.base if tree else None)


def _hint(request: Request) -> str:
    """Return the line of the next brief that quotes the person."""
    match request.verb:
        case "retry":
            return request.text
        case "answer":
            return f"A person answers your question: {request.text}"
        case _:
            return ""


def reopen(state: TaskState, *, hint: str) -> TaskState:
    """Return the task with a fresh budget, starting from the tip. Its history stays."""
    return TaskState(
        task=state.task,
        attempts=state.attempts,
        inherited=state.inherited,
        epoch_from=len(state.attempts),
        hint=hint,
        notes=state.notes,
        fixes=state.fixes,
        fixes_before=len(state.fixes),
        last_error=state.last_error,
        inserted=state.inserted,
        modifications=state.modifications,
        amends=state.amends,
    )


def reopen_with_work(state: TaskState, *, hint: str) -> TaskState:
    """Return the task with a fresh budget, and with its work if only the environment made its check fail."""
    fresh = reopen(state, hint=hint)
    last = state.attempts[-1] if state.attempts else None
    if last is None or last.verdict is None or not last.only_environment_failed:
        return fresh
    return replace(fresh, agent=last.agent, seed=last.verdict.tree, base=last.verdict.base)


def inserted_task(task: Task, original: TaskState, event: Acted) -> TaskState:
    """Return the state of a task that was written into the plan because of another one."""
    if isinstance(event.action, Fix):
        return _with_failed_work(task, original)
    is_split = isinstance(event.action, Amend) and event.action.request == "SPLIT_TASK"
    is_first_part = is_split and task.id == event.added[0].id
    state = _with_failed_work(task, original) if is_first_part else TaskState(task=task, inserted=True)
    return replace(state, amends=original.task.id)


def _with_failed_work(task: Task, original: TaskState) -> TaskState:
    """Return the state of a new task that begins with the original's failed work, unless that tampered with checks."""
    attempt = original.attempts[-1] if original.attempts else None
    tree = attempt.verdict.tree if attempt and attempt.verdict else None
    if attempt is None or tree is None or (attempt.failure and attempt.failure.kind is Kind.TAMPERED):
        return TaskState(task=task, inserted=True)
    return TaskState(task=task, inserted=True, seed=tree, base=attempt.base)


def _current(state: TaskState, **changes: object) -> TaskState:
    return replace(state, attempts=(*state.attempts[:-1], replace(state.attempts[-1], **changes)))  # type: ignore[arg-type]  # names checked by the callers' tests
