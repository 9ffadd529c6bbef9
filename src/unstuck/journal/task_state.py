"""One task's history, folded: frozen values, and how each fact makes the next one."""

from collections.abc import Callable, Iterable, KeysView
from dataclasses import dataclass, replace
from typing import Literal

from unstuck.journal.stages import Stage, next_stage
from unstuck.model.action import (
    APPROVAL,
    Accept,
    Amend,
    Append,
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
from unstuck.model.changes import Changes
from unstuck.model.event import (
    Acted,
    AttemptStarted,
    Classified,
    Decided,
    LineEvent,
    Operated,
    PastAttempt,
    Rebased,
    Request,
    SessionEnded,
    SessionStarted,
    Verified,
)
from unstuck.model.failure import AGENT_DOWN, KINDS, Failure, Kind
from unstuck.model.outcome import Outcome, Usage
from unstuck.model.plan import Task
from unstuck.model.verdict import Verdict

Status = Literal["pending", "running", "verifying", "waiting", "complete", "stuck", "skipped", "blocked", "interrupted"]
"""`blocked` and `interrupted` are never stored: they depend on other tasks and on whether a supervisor lives."""

REPAIRED = """Task {fix} was to repair what failed here, and has landed: its work is in your tree. See what is left to do.
If nothing is, change nothing and say that you are done."""

ASKED_FOR = "The tasks that you asked for ({tasks}) are done: their work is in your tree. See what is left to do."

APPROVED = "approved by a person"

SETTLED: tuple[Status, ...] = ("complete", "skipped")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptState:
    """One try with one approach, as far as it is known."""

    number: int
    agent: str
    base: str
    slot: int
    started: float
    tree: str | None = None
    sessions: int = 0
    ended: float | None = None
    outcome: Outcome | None = None
    verdict: Verdict | None = None
    failure: Failure | None = None
    decision: Decision | None = None
    snapshot: str | None = None
    alone: Verdict | None = None
    """The verdict before the work was merged with what had landed meanwhile."""
    cost_usd: float | None = None
    """What its sessions cost together; None if no session said."""
    worked: float = 0.0
    """Seconds of its sessions, waiting and checks aside."""
    usage: Usage | None = None
    """The tokens of its sessions together; None if no session said."""

    @property
    def goes_on(self) -> bool:
        """Whether it is to go on in a new session: it has not failed, it is in progress."""
        return self.decision is not None and isinstance(self.decision.action, Continue | Wait)

    @property
    def work(self) -> str | None:
        """What it left, as git names it: the snapshot that keeps it, else the tree that was verified."""
        return self.snapshot or (self.verdict.tree if self.verdict else None)

    @property
    def shown_by(self) -> str:
        """The command that shows its work: a snapshot may be a merge, of which `git show` shows nothing."""
        return f"git diff {self.base[:12]} {self.snapshot}" if self.snapshot else ""

    @property
    def denied(self) -> bool:
        """Whether the agent stopped because it was not allowed what it wanted to do."""
        was = self.outcome is not None and self.outcome.end == "permission_denied"
        return was and self.failure is not None and self.failure.kind is Kind.PERMISSION_DENIED

    @property
    def idle(self) -> bool:
        """Whether the agent left everything as it was, and a check is red."""
        return self.verdict is not None and self.verdict.status == "fail" and not self.verdict.files

    @property
    def met_by_check(self) -> bool:
        """Whether it was a check that failed, and not the session: the agent's own end says nothing against it."""
        red = self.verdict is not None and self.verdict.status == "fail"
        if self.failure is None or self.failure.kind in AGENT_DOWN:
            return False
        if any(self.failure.check):  # a gate could not begin on the base
            return True
        if not red or self.outcome is None or self.outcome.ended.ending == "not_started":
            return False
        return self.outcome.end in ("", "done_claimed", "failed_claimed")

    @property
    def spared(self) -> bool:
        """Whether only the surroundings kept a check from holding: the work is there, and a person may have mended them."""
        met = (
            self.met_by_check and self.verdict is not None and self.failure is not None and not any(self.failure.check)
        )
        return met and self.failure is not None and KINDS[self.failure.kind].blame == "environment"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """One task's history, folded."""

    task: Task
    status: Status = "pending"
    last: LineEvent | None = None
    last_at: float = 0.0
    last_seq: int = 0
    attempts: tuple[AttemptState, ...] = ()
    inherited: tuple[PastAttempt, ...] = ()
    """What a predecessor tried."""
    epoch_from: int = 0
    """How many attempts were made before a person last gave the task a fresh budget."""
    charged: int = 0
    climbed: tuple[str, ...] = ()
    hint: str = ""
    agent: str | None = None
    """The agent that a switch chose for the next attempt."""
    seed: str | None = None
    """The tree that the next attempt begins with; None is the tip's own."""
    base: str | None = None
    """The commit that the next attempt keeps as its base; None is the tip."""
    accepted: str = ""
    """Why a person vouches for the work as it is; it holds for that work, and not for what a session makes of it."""
    question: str = ""
    session: str = ""
    """The agent's session that the next attempt continues: it asked, and a person has answered."""
    asks: str = ""
    """What the remedies would ask a person about it."""
    commit: str | None = None
    changes: Changes | None = None
    """The files that the landed commit changes."""
    fixes: tuple[str, ...] = ()
    """The tasks that repair this one, oldest first."""
    fixes_before: int = 0
    """How many of them there were before a person last gave the task a fresh budget."""
    last_error: str = ""
    """What the last of them is to repair."""
    waits_for: tuple[str, ...] = ()
    """Tasks that were written into the plan to be done before this one is tried again."""
    modifications: tuple[Amend | Append, ...] = ()
    """The changes of the plan that its agent asked for and got."""
    amends: str | None = None
    """The task whose agent asked for this one."""
    inserted: bool = False
    """We wrote it into the plan."""
    wait_until: float | None = None
    waits_on: str = ""
    """What it waits for until then."""
    notes: tuple[str, ...] = ()

    @property
    def stage(self) -> Stage:
        return Stage.REST if self.status in ("complete", "skipped", "stuck") else next_stage(self.last)

    @property
    def verdict(self) -> Verdict | None:
        """What the checks say of the last attempt's work; None where nobody has worked yet."""
        return self.attempts[-1].verdict if self.attempts else None

    @property
    def acceptable(self) -> bool:
        """Whether there is work that a person could take as it is: where a check is red, something must be there to land."""
        return self.verdict is not None and not self.current.idle

    @property
    def tries(self) -> tuple[AttemptState, ...]:
        """The attempts since a person last gave the task a fresh budget."""
        return self.attempts[self.epoch_from :]

    @property
    def mute(self) -> bool:
        """Whether no attempt changed anything and the last did not even say anything: an agent that does not work."""
        last = self.attempts[-1].outcome if self.attempts else None
        charged = all(one.idle and one.failure is not None and one.failure.charged for one in self.tries)
        return charged and last is not None and not last.words.strip()

    @property
    def needs(self) -> tuple[str, ...]:
        """The tasks that must settle before this one may start."""
        return (*self.task.depends_on, *self.waits_for) if self.waits_for else self.task.depends_on

    @property
    def current(self) -> AttemptState:
        return self.attempts[-1]

    @property
    def cost_usd(self) -> float | None:
        """What all attempts cost together, as far as the agents said; None if none did."""
        known = [attempt.cost_usd for attempt in self.attempts if attempt.cost_usd is not None]
        return sum(known) if known else None

    @property
    def worked(self) -> float:
        """How long the agents worked on it in all epochs."""
        return sum(attempt.worked for attempt in self.attempts)

    @property
    def seconds(self) -> float:
        """How long the agents worked on it in this epoch."""
        return sum(attempt.worked for attempt in self.tries)


def initial(task: Task) -> TaskState:
    """Return the state of a task of which nothing is known but the plan."""
    return TaskState(task=task, status="complete" if task.done else "skipped" if task.skipped else "pending")


def advanced(state: TaskState, event: LineEvent, at: float, metered: float = 0.0) -> TaskState:
    """Take in a fact of the line. `metered` is what the agent's session was billed with before."""
    state = replace(state, last=event, last_at=at)
    if isinstance(event, AttemptStarted):
        attempt = AttemptState(
            number=event.attempt, agent=event.agent, base=event.base, slot=event.slot, started=at, tree=event.tree
        )
        return replace(
            state, status="running", attempts=(*state.attempts, attempt), wait_until=None, question="", accepted=""
        )
    if not state.attempts:
        return state
    match event:
        case SessionStarted():
            return replace(_current(state, sessions=event.session), status="running", wait_until=None, accepted="")
        case SessionEnded():
            bill = billed(event.outcome, metered)
            cost = state.current.cost_usd if bill is None else (state.current.cost_usd or 0.0) + bill
            worked = state.current.worked + event.outcome.ended.seconds
            before, more = state.current.usage, event.outcome.usage
            usage = before + more if before and more else before or more
            changed = _current(state, outcome=event.outcome, ended=at, cost_usd=cost, worked=worked, usage=usage)
            return replace(changed, status="verifying", session="")
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
            return _acted(_current(state, snapshot=event.snapshot or state.current.snapshot), event)


def billed(outcome: Outcome, metered: float) -> float | None:
    """Return what the session cost beyond what was known of it, or None where the agent does not say."""
    return None if outcome.cost_usd is None else max(outcome.cost_usd - metered, 0.0)


def _acted(state: TaskState, event: Acted) -> TaskState:
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
            new = event.action.id
            known = new in state.fixes
            return replace(
                state,
                status="pending",
                hint=REPAIRED.format(fix=new),
                seed=None,
                base=None,
                fixes=state.fixes if known else (*state.fixes, new),
                last_error=event.action.error,
                waits_for=(*state.waits_for, new) if new not in state.waits_for else state.waits_for,
            )
        case Amend(request=request, ids=ids):
            kept = state.current.verdict.tree if request == "ADD_PREREQUISITE" and state.current.verdict else None
            return replace(
                state,
                status="pending",
                hint=ASKED_FOR.format(tasks=", ".join(ids)),
                seed=kept,
                base=state.current.base if kept else None,
                waits_for=(*state.waits_for, *ids),
                modifications=(*state.modifications, event.action),
            )
        case Append():
            return replace(state, modifications=(*state.modifications, event.action))
        case Rollback(hint=hint):
            return replace(state, status="running", hint=hint, seed=None, base=None)
        case Switch(hint=hint, agent=agent):
            return replace(state, status="running", hint=hint, seed=None, base=None, agent=agent)
        case _:
            return replace(state, status="running", hint=event.action.hint)


def operated(state: TaskState, event: Operated) -> TaskState:
    if state.task.id in event.reopened:
        verb, hint = event.request.verb, _hint(event.request)
        again = taken_up(state, hint=hint) if verb in ("answer", "retry") else reopened(state, hint=hint)
        return _continued(state, again) if verb == "answer" else again
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


def _continued(state: TaskState, again: TaskState) -> TaskState:
    """Let an agent that stopped to ask go on with its work, and in the session that asked."""
    last = state.attempts[-1] if state.attempts else None
    if last is None or last.failure is None or not (last.denied or last.failure.kind is Kind.QUESTION):
        return again
    tree, session = last.verdict.tree if last.verdict else None, last.outcome.session if last.outcome else ""
    return replace(again, agent=last.agent, session=session, seed=tree, base=last.base if tree else None)


def _hint(request: Request) -> str:
    """Turn what a person wrote into a line of the next brief."""
    match request.verb:
        case "retry":
            return request.text
        case "answer":
            return f"A person answers your question: {request.text}"
        case _:
            return ""


def reopened(state: TaskState, *, hint: str) -> TaskState:
    """Give the task a fresh budget; it starts from the tip, and its history stays."""
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


def taken_up(state: TaskState, *, hint: str) -> TaskState:
    """Give the task a fresh budget; work of which only the surroundings kept a check from holding is there to go on with."""
    again, last = reopened(state, hint=hint), state.attempts[-1] if state.attempts else None
    if last is None or last.verdict is None or not last.spared:
        return again
    return replace(again, agent=last.agent, seed=last.verdict.tree, base=last.verdict.base)


def reached(name: str, near: Callable[[str], Iterable[str]]) -> KeysView[str]:
    """Return all tasks to which one comes from this one, itself included."""
    walk = dict.fromkeys([name])
    for one in (left := [name]):  # grows while it is walked
        new = dict.fromkeys(step for step in near(one) if step not in walk)
        walk |= new
        left += new
    return walk.keys()


def added(task: Task, original: TaskState, event: Acted) -> TaskState:
    """Return a new task's state. A fix, and the first part of a split task, go on from the work that there is."""
    if isinstance(event.action, Fix):
        return _repairing(task, original)
    first = isinstance(event.action, Amend) and event.action.request == "SPLIT_TASK" and task.id == event.added[0].id
    state = _repairing(task, original) if first else TaskState(task=task, inserted=True)
    return replace(state, amends=original.task.id)


def _repairing(task: Task, original: TaskState) -> TaskState:
    """Return a new task's state: it begins with the failed work, unless that cheated."""
    attempt = original.attempts[-1] if original.attempts else None
    tree = attempt.verdict.tree if attempt and attempt.verdict else None
    if attempt is None or tree is None or (attempt.failure and attempt.failure.kind is Kind.TAMPERED):
        return TaskState(task=task, inserted=True)
    return TaskState(task=task, inserted=True, seed=tree, base=attempt.base)


def failed_command(state: TaskState) -> str:
    """Return the check that the last verdict is red for; empty if it is not."""
    verdicts = (attempt.verdict for attempt in reversed(state.attempts) if attempt.verdict is not None)
    results = next(verdicts, None)
    return next((one.command for one in results.results if one.status == "fail"), "") if results else ""


def unverified(state: TaskState) -> bool:
    """Whether only a person can say that the work is right: running the agent again would not help."""
    failure = state.attempts[-1].failure if state.attempts else None
    return failure is not None and failure.kind is Kind.UNVERIFIED


def awaits_approval(state: TaskState) -> bool:
    """Whether the work is right, and only a person's word is missing."""
    return state.status == "stuck" and bool(state.climbed) and state.climbed[-1] == APPROVAL


def _current(state: TaskState, **changes: object) -> TaskState:
    return replace(state, attempts=(*state.attempts[:-1], replace(state.attempts[-1], **changes)))  # type: ignore[arg-type]  # names checked by the callers' tests
