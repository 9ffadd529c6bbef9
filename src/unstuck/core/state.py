"""Fold the journal into what is true now.

Law: the state is a function of the journal and of nothing else, so a crash loses nothing that was recorded.
`RunState` is an index of frozen task states that `apply` updates in place: copying it for every event would make
a long run quadratic.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from unstuck.core.action import Accept, Decision, Escalate, Halt, Retry, Rollback, Skip, Switch, Wait
from unstuck.core.attempt import Outcome, Verdict
from unstuck.core.decide import History
from unstuck.core.event import (
    Acted,
    AttemptStarted,
    BroughtHome,
    Classified,
    Decided,
    Entry,
    LineEvent,
    Noted,
    Operated,
    PlanChanged,
    Rebased,
    RunEnded,
    RunResumed,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Verified,
)
from unstuck.core.failure import Failure, Kind
from unstuck.core.plan import Task
from unstuck.core.stages import Stage, next_stage

Status = Literal["pending", "running", "verifying", "waiting", "complete", "stuck", "skipped", "blocked", "interrupted"]
"""`blocked` and `interrupted` are never stored: they depend on other tasks and on whether a supervisor lives."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """One task's history, folded."""

    task: Task
    status: Status = "pending"
    last: LineEvent | None = None
    last_at: float = 0.0
    last_seq: int = 0
    attempts: tuple[AttemptState, ...] = ()
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
    question: str = ""
    commit: str | None = None
    wait_until: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def stage(self) -> Stage:
        return Stage.REST if self.status in ("complete", "skipped", "stuck") else next_stage(self.last)

    @property
    def current(self) -> AttemptState:
        return self.attempts[-1]

    def history(self, agents: tuple[str, ...]) -> History:
        """Return what a decision may know."""
        return History(
            attempts=self.charged,
            climbed=self.climbed,
            agent=self.attempts[-1].agent if self.attempts else "",
            agents=agents,
            tried=frozenset(attempt.agent for attempt in self.attempts[self.epoch_from :]),
            accepted=self.accepted,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """How to take an event back: the states and the branch that it replaced, or the snapshot that it took."""

    task: str | None = None
    states: tuple[TaskState, ...] = ()
    before: str | None = None
    after: str | None = None
    snapshot: str | None = None


@dataclass(slots=True, kw_only=True)
class RunState:
    """What is true of one run."""

    started: RunStarted | None = None
    tasks: dict[str, TaskState] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    open: dict[str, None] = field(default_factory=dict)
    """Tasks that are not at rest, in the plan's order."""
    tip: str = ""
    """Where the run's branch should stand."""
    epoch: int = 1
    began: float = 0.0
    halted: str = ""
    ended: RunEnded | None = None
    home: BroughtHome | None = None
    seen_request: int = 0
    seq: int = 0
    last_operation: tuple[int, Operated | None] = (0, None)
    notes: list[str] = field(default_factory=list)
    undoable: dict[int, Undo] = field(default_factory=dict)
    """What can be taken back, by the number of its event."""

    def apply(self, entry: Entry) -> None:
        """Take one fact in. Facts about unknown tasks are ignored: a journal is never refused."""
        self.seq = entry.seq
        event = entry.event
        match event:
            case RunStarted():
                self._begin(event, entry.at)
            case RunResumed():
                self._resume(event, entry.at)
            case PlanChanged():
                self._replan(event)
            case Operated():
                self._operate(event, entry)
            case Noted():
                self._note(event)
            case BroughtHome():
                self.home = event
            case RunEnded():
                self.ended = event
            case _:
                if (before := self.tasks.get(event.task)) is not None:
                    self._put(replace(_advance(before, event, entry.at), last_seq=entry.seq))
                    self._after(event, entry.seq)

    def blocked_by(self, task: TaskState) -> tuple[str, ...]:
        """List the tasks that must settle first."""
        return tuple(name for name in task.task.depends_on if self.tasks[name].status not in SETTLED)

    def _begin(self, event: RunStarted, at: float) -> None:
        self.started, self.tip, self.began = event, event.base, at
        for place, task in enumerate(event.tasks):
            self.places[task.id] = place
            self._put(TaskState(task=task, status="complete" if task.done else "pending"))

    def _replan(self, event: PlanChanged) -> None:
        before = self.tasks
        self.tasks, self.open, self.places = {}, {}, {}
        for place, task in enumerate(event.tasks):
            self.places[task.id] = place
            state = replace(before[task.id], task=task) if task.id in before else TaskState(task=task)
            self._put(_reopened(state, hint="") if task.id in event.reopened else state)

    def _resume(self, event: RunResumed, at: float) -> None:
        self.ended, self.home, self.tip = None, None, event.tip
        if event.epoch:
            self.epoch += 1
            self.began, self.halted = at, ""
            for task in [task for task in self.tasks.values() if task.status == "stuck" and not _unverified(task)]:
                self._put(_reopened(task, hint=task.hint))

    def _after(self, event: LineEvent, seq: int) -> None:
        if isinstance(event, Acted):
            if isinstance(event.action, Halt):
                self.halted = event.action.question
            if event.commit is not None:
                self.tip = event.commit
            if event.snapshot is not None:
                self.undoable[seq] = Undo(task=event.task, snapshot=event.snapshot)

    def _operate(self, event: Operated, entry: Entry) -> None:
        self.seen_request = max(self.seen_request, event.request.id)
        self.last_operation = (entry.seq, event)
        if event.refused:
            return
        if event.after is not None:
            self.tip = event.after
        if event.undoes is not None:
            self._undo(self.undoable.pop(event.undoes, Undo()))
            return
        names = dict.fromkeys([*event.reopened, *([event.request.task] if event.request.task else [])])
        before = tuple(self.tasks[name] for name in names if name in self.tasks)
        if event.request.verb != "stop":
            self.undoable[entry.seq] = Undo(
                task=event.request.task, states=before, before=event.before, after=event.after
            )
        for state in before:
            self._put(_operated(state, event))

    def _undo(self, undo: Undo) -> None:
        for state in undo.states:
            self._put(state)
        if undo.snapshot is not None and undo.task in self.tasks:
            state = self.tasks[undo.task]
            self._put(replace(_reopened(state, hint=state.hint), seed=undo.snapshot, base=state.current.base))

    def _note(self, event: Noted) -> None:
        self.notes.append(event.text)
        if event.task in self.tasks:
            before = self.tasks[event.task]
            self.tasks[event.task] = replace(before, notes=(*before.notes, event.text))

    def _put(self, state: TaskState) -> None:
        name = state.task.id
        self.tasks[name] = state
        if state.stage is Stage.REST:
            self.open.pop(name, None)
        elif name not in self.open:
            in_order = not self.open or self.places[next(reversed(self.open))] < self.places[name]
            self.open[name] = None
            if not in_order:
                self.open = dict.fromkeys(sorted(self.open, key=self.places.__getitem__))


def fold(entries: Iterable[Entry]) -> RunState:
    """Replay the journal."""
    state = RunState()
    for entry in entries:
        state.apply(entry)
    return state


def _advance(state: TaskState, event: LineEvent, at: float) -> TaskState:
    """Take in a fact of the line."""
    state = replace(state, last=event, last_at=at)
    if isinstance(event, AttemptStarted):
        attempt = AttemptState(
            number=event.attempt, agent=event.agent, base=event.base, slot=event.slot, started=at, tree=event.tree
        )
        return replace(state, status="running", attempts=(*state.attempts, attempt), wait_until=None, question="")
    if not state.attempts:
        return state
    match event:
        case SessionStarted():
            return replace(_current(state, sessions=event.session), status="running", wait_until=None)
        case SessionEnded():
            return replace(_current(state, outcome=event.outcome, ended=at), status="verifying")
        case Rebased():
            return replace(_current(state, base=event.base, tree=event.tree), status="verifying")
        case Verified():
            return _current(state, verdict=event.verdict)
        case Classified():
            charged = event.failure is not None and event.failure.charged
            return replace(_current(state, failure=event.failure), charged=state.charged + charged)
        case Decided():
            return replace(_current(state, decision=event.decision), climbed=(*state.climbed, event.decision.rung))
        case Acted():
            return _acted(_current(state, snapshot=event.snapshot or state.current.snapshot), event)


def _acted(state: TaskState, event: Acted) -> TaskState:
    match event.action:
        case Accept():
            return replace(state, status="complete", commit=event.commit, question="", hint="")
        case Skip():
            return replace(state, status="skipped")
        case Escalate(question=question) | Halt(question=question):
            return replace(state, status="stuck", question=question)
        case Wait(until=until):
            return replace(state, status="waiting", wait_until=until)
        case Retry(hint=hint):
            verdict = state.current.verdict
            seed = verdict.tree if verdict else state.current.tree
            return replace(state, status="running", hint=hint, seed=seed, base=state.current.base)
        case Rollback(hint=hint):
            return replace(state, status="running", hint=hint, seed=None, base=None)
        case Switch(hint=hint, agent=agent):
            return replace(state, status="running", hint=hint, seed=None, base=None, agent=agent)
        case _:
            return replace(state, status="running", hint=event.action.hint)


def _operated(state: TaskState, event: Operated) -> TaskState:
    if state.task.id in event.reopened:
        return _reopened(state, hint=event.request.text if event.request.verb == "retry" else "")
    match event.request.verb:
        case "skip":
            return replace(state, status="skipped", question="", notes=(*state.notes, f"Skipped: {event.request.text}"))
        case "accept":
            ready = Classified(task=state.task.id, failure=None)
            state = _current(state, failure=None) if state.attempts else state
            return replace(state, status="running", last=ready, accepted=event.request.text, question="")
        case _:
            return state


def _reopened(state: TaskState, *, hint: str) -> TaskState:
    """Give the task a fresh budget; it starts from the tip, and its history stays."""
    return TaskState(
        task=state.task, attempts=state.attempts, epoch_from=len(state.attempts), hint=hint, notes=state.notes
    )


def _unverified(state: TaskState) -> bool:
    """Whether only a person can say that the work is right: running the agent again would not help."""
    failure = state.attempts[-1].failure if state.attempts else None
    return failure is not None and failure.kind is Kind.UNVERIFIED


def _current(state: TaskState, **changes: object) -> TaskState:
    return replace(state, attempts=(*state.attempts[:-1], replace(state.attempts[-1], **changes)))  # type: ignore[arg-type]  # names checked by the callers' tests
