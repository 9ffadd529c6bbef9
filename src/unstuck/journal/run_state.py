"""Compute the state of a run from the events of its journal.

The state depends on the journal and on nothing else, so a crash loses nothing that was recorded.
`RunState` is an index of frozen task states that `apply` updates in place: copying it for every event would make
a long run quadratic.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any

from unstuck.journal.breakers import (
    AGENT_PREFIX,
    PROVIDER_LIMITS,
    Breaker,
    breaker_scope,
    broken_agent_breaker,
    resting_agent_breaker,
)
from unstuck.journal.stages import Stage
from unstuck.journal.task_fold import (
    apply_event,
    apply_request,
    initial_state,
    inserted_task,
    reopen,
    reopen_with_work,
    session_cost,
)
from unstuck.journal.task_graph import Lineage, blocking_tasks, can_wait_for_fix, lineage_of, repairs
from unstuck.journal.task_state import SETTLED, TaskState, awaits_approval, is_unverified
from unstuck.model.action import Amend, Escalate, Halt, Switch, Wait
from unstuck.model.event import (
    CHANGED,
    Acted,
    AttemptStarted,
    BroughtHome,
    Classified,
    Entry,
    Event,
    Inherited,
    LineEvent,
    Noted,
    Operated,
    PlanChanged,
    RunEnded,
    RunResumed,
    RunStarted,
    SessionEnded,
    SessionStarted,
)
from unstuck.model.failure import AGENT_DOWN, Failure
from unstuck.model.outcome import ENDED_BY_US
from unstuck.model.plan import Task, members_of_joins


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """The states and the branch that an event replaced, or the snapshot that it took."""

    task: str | None = None
    states: tuple[TaskState, ...] = ()
    before: str | None = None
    after: str | None = None
    snapshot: str | None = None


@dataclass(slots=True, kw_only=True)
class RunState:
    """The state of one run, updated event by event."""

    started: RunStarted | None = None
    tasks: dict[str, TaskState] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    joins: dict[str, list[str]] = field(default_factory=dict)
    """Names that tasks wait for as a whole, each with its members."""
    open: dict[str, None] = field(default_factory=dict)
    """Tasks that are not at rest, in the plan's order."""
    tip: str = ""
    """The commit at which the run's branch should stand."""
    epoch: int = 1
    created: float = 0.0  # the time at which the run began, in its first epoch
    began: float = 0.0  # the time at which the epoch began
    since: float | None = None
    """The time at which the working supervisor started, or None if none works on the run."""
    worked: float = 0.0
    """The seconds that earlier supervisors worked on the run."""
    last_at: float = 0.0
    halted: str = ""
    approved: bool = False  # a person has approved the plan
    may_continue: bool = False
    """A person has allowed the run to continue, and it has not been resumed yet."""
    ended: RunEnded | None = None
    home: BroughtHome | None = None
    brought: frozenset[str] = frozenset()
    """The commits of tasks that reached the user's branch, whatever was requested since."""
    inherited: Inherited | None = None
    seen_request: int = 0
    seq: int = 0
    last_operation: tuple[int, Operated | None] = (0, None)
    notes: list[str] = field(default_factory=list)
    meanwhile: list[str] = field(default_factory=list)
    """Notes about changes in the user's repository while a session ran."""
    green: set[str] = field(default_factory=set)
    """Commits at which the checks passed."""
    breakers: dict[str, Breaker] = field(default_factory=dict)
    """The open breakers, each under `agent:NAME`."""
    trips: dict[str, int] = field(default_factory=dict)
    """The number of rests of each agent since it last worked."""
    signatures: dict[str, dict[str, float]] = field(default_factory=dict)
    """The tasks that failed with the same signature, each with the time."""
    executions: int = 0
    """Sessions started in this epoch."""
    meters: dict[str, float] = field(default_factory=dict)
    """The cost of each agent's session so far: a resumed session is billed with its earlier cost."""
    cost_usd: float = 0.0
    """The reported cost of the run in all its epochs."""
    undoable: dict[int, Undo] = field(default_factory=dict)
    """The events that can be undone, by their number."""

    def apply(self, entry: Entry) -> None:
        """Update the state by one event. Events about unknown tasks are ignored: a journal is never refused."""
        event = entry.event
        self._count_work_time(event, entry.at)
        self.seq, self.last_at = entry.seq, entry.at
        match event:
            case RunStarted():
                self.started, self.tip, self.created, self.began = event, event.base, entry.at, entry.at
                self.tasks = {}
                self._replan(event.tasks)
            case RunResumed():
                self._resume(event, entry.at)
            case PlanChanged():
                self._replan(event.tasks, event.reopened)
            case Operated():
                self._operate(event, entry)
            case Inherited():
                self.inherited = event
                for past in event.tasks:
                    if past.id in self.tasks:
                        self._put(replace(self.tasks[past.id], inherited=past.attempts))
            case Noted():
                self._note(event)
            case BroughtHome():
                self.home = event
                if event.commit is not None:
                    self.brought = frozenset(task.commit for task in self.tasks.values() if task.commit is not None)
            case RunEnded():
                self.ended = event
            case _:
                self._apply_task_event(event, entry)

    def copied(self) -> "RunState":
        """Return a copy that later events do not change: it shares no container with this state."""
        values: dict[str, Any] = {}
        for part in fields(self):
            value = getattr(self, part.name)
            values[part.name] = copy(value) if isinstance(value, dict | list | set) else value
        return RunState(**values)

    def seconds(self, now: float) -> float:
        """Return how many seconds supervisors have worked on the run until now."""
        return self.worked + (now - self.since if self.since is not None else 0.0)

    def _count_work_time(self, event: Event, at: float) -> None:
        """Add up the time in which a supervisor worked. One that died worked until its last event."""
        if isinstance(event, RunStarted | RunResumed):
            self.worked, self.since = self.seconds(self.last_at), at
        elif isinstance(event, RunEnded):
            self.worked, self.since = self.seconds(at), None

    def blocked_by(self, task: TaskState, cache: dict[str, list[str]] | None = None) -> tuple[str, ...]:
        """Return the tasks that must settle first. Pass one `cache` when asking for many tasks."""
        return blocking_tasks(task, self.tasks, self.joins, cache)

    def lineage(self, name: str) -> Lineage:
        """Return the place of a task among the tasks that repair each other."""
        return lineage_of(name, self.tasks)

    def _apply_task_event(self, event: LineEvent, entry: Entry) -> None:
        before = self.tasks.get(event.task)
        if before is None:
            return
        metered = self._meter(event, before) if isinstance(event, SessionEnded) else 0.0
        self._put(replace(apply_event(before, event, entry.at, metered), last_seq=entry.seq))
        self._update_run(event, entry)

    def _replan(self, tasks: Sequence[Task], reopened: Sequence[str] = ()) -> None:
        """Replace the plan. Tasks keep their history, and those named by `reopened` get a fresh budget."""
        before = self.tasks
        self.tasks, self.open, self.places = {}, {}, {}
        for place, task in enumerate(tasks):
            self.places[task.id] = place
            state = replace(before[task.id], task=task) if task.id in before else initial_state(task)
            self._put(reopen(state, hint="") if task.id in reopened else state)
        self.joins = members_of_joins(tasks)
        self._link(tasks)

    def _link(self, tasks: Sequence[Task]) -> None:
        """Make each task wait for the fix tasks that the plan has for it."""
        for task in tasks:
            original = self.tasks.get(task.fixes or "")
            if original is None or task.id in original.fixes:
                continue
            if repairs(original.task.id, task.id, self.tasks):
                continue  # tasks that repair each other in a circle are treated as ordinary tasks
            waits = can_wait_for_fix(original, task.id, self.tasks, self.joins)
            waits_for = (*original.waits_for, task.id) if waits else original.waits_for
            self._put(replace(original, fixes=(*original.fixes, task.id), waits_for=waits_for))

    def _insert(self, event: Acted) -> None:
        """Insert new tasks behind the last one of the original's family."""
        original = self.tasks[event.task]
        family = f"{event.task}."
        names = list(self.tasks)
        members = [place for place, name in enumerate(names) if name == event.task or name.startswith(family)]
        behind = members[-1] + 1
        if isinstance(event.action, Amend) and event.action.request == "ADD_PREREQUISITE":
            behind = names.index(event.task)
        new = {task.id: inserted_task(task, original, event) for task in event.added if task.id not in self.tasks}
        names[behind:behind] = new
        tasks = {**self.tasks, **new}
        self.tasks = {name: tasks[name] for name in names}
        self.places = {name: place for place, name in enumerate(names)}
        for task in new.values():
            self._put(task)

    def _settle_fixes(self, name: str) -> None:
        """Skip the open fix tasks of a task that has settled without them."""
        for fix in self.tasks[name].fixes:
            task = self.tasks.get(fix)
            if task is not None and task.status in ("pending", "stuck"):
                note = f"Task {name} is settled without it."
                self._put(replace(task, status="skipped", question="", notes=(*task.notes, note)))
                self._settle_fixes(fix)

    def _resume(self, event: RunResumed, at: float) -> None:
        self.ended, self.home, self.tip, self.may_continue = None, None, event.tip, False
        if event.epoch:
            self.epoch += 1
            self.began, self.halted, self.executions = at, "", 0
            self.breakers, self.signatures, self.trips = {}, {}, {}
            for task in [task for task in self.tasks.values() if task.status not in SETTLED]:
                fresh = _reopen_if_stuck(task)
                self._put(replace(task, fixes_before=len(task.fixes)) if fresh is task else fresh)

    def _update_run(self, event: LineEvent, entry: Entry) -> None:
        """Update what a task's event changes for the whole run."""
        match event:
            case SessionStarted():
                self.executions += 1
            case SessionEnded() if event.outcome.ended.ending in ENDED_BY_US:
                self.executions -= 1  # a stop or death of the supervisor uses up no budget
            case Classified():
                self._remember_failure(event, entry.at)
            case Acted():
                self._apply_action(event, entry)
            case AttemptStarted():
                scope = f"{AGENT_PREFIX}{event.agent}"
                breaker = self.breakers.get(scope)
                if breaker is not None and not breaker.task:
                    self.breakers[scope] = replace(breaker, task=event.task)
            case _:
                pass  # the other events concern only their task

    def _apply_action(self, event: Acted, entry: Entry) -> None:
        task = self.tasks[event.task]
        if isinstance(event.action, Halt):
            self.halted = event.action.question
        if event.added:
            self._insert(event)
        if task.status in SETTLED:
            self._settle_fixes(event.task)
        if event.commit is not None:
            self.tip = event.commit
            self.green.add(event.commit)
        if event.snapshot is not None:
            self.undoable[entry.seq] = Undo(task=event.task, snapshot=event.snapshot)
        if isinstance(event.action, Wait | Switch) and task.attempts and task.current.failure is not None:
            self._open_breaker(event.action, task.current.failure, task, entry.at)
        elif task.stage is Stage.REST:
            self._close_breakers(event.task)
            if isinstance(event.action, Escalate | Halt):
                self._open_broken_agent_breaker(task)

    def _open_breaker(self, action: Wait | Switch, failure: Failure, task: TaskState, at: float) -> None:
        """Open the breaker of a failed agent: one task waits for its end, or the agent rests."""
        agent = task.current.agent
        scope = breaker_scope(failure.kind, agent, met_by_check=task.current.met_by_check)
        if scope is None:
            return
        if isinstance(action, Wait):
            self.breakers[scope] = Breaker(kind=failure.kind, task=task.task.id, until=action.until)
            return
        self.trips[agent] = self.trips.get(agent, 0) + 1
        self.breakers[scope] = resting_agent_breaker(failure, self.trips[agent], at)

    def _open_broken_agent_breaker(self, task: TaskState) -> None:
        """Keep the other tasks from an agent that a person was asked to repair."""
        failure = task.current.failure if task.attempts else None
        if failure is not None and failure.kind in AGENT_DOWN - PROVIDER_LIMITS:
            scope = f"{AGENT_PREFIX}{task.current.agent}"
            self.breakers[scope] = broken_agent_breaker(failure.kind, task.task.id)

    def _meter(self, event: SessionEnded, task: TaskState) -> float:
        """Store the total cost of the agent's session, and return its total before."""
        outcome = event.outcome
        if outcome.cost_usd is None or not task.attempts:
            return 0.0
        name = f"{task.current.agent}:{outcome.session}" if outcome.session else ""
        before = self.meters.get(name, 0.0)
        if name:
            self.meters[name] = outcome.cost_usd
        self.cost_usd += session_cost(outcome, before) or 0.0
        return before

    def _remember_failure(self, event: Classified, at: float) -> None:
        """Close the breakers of the task unless it met the same fault again, and remember its signature."""
        failure = event.failure
        task = self.tasks[event.task]
        kinds = {breaker.kind for breaker in self.breakers.values() if breaker.task == event.task}
        if failure is None or failure.kind not in kinds:
            self._close_breakers(event.task)
        if failure is None or failure.kind not in AGENT_DOWN:
            self.trips.pop(task.current.agent if task.attempts else "", None)
        if failure is not None and failure.signature:
            tasks = self.signatures.get(failure.signature, {})  # replaced, as another thread may be walking it
            self.signatures[failure.signature] = {**tasks, event.task: at}

    def _close_breakers(self, task: str) -> None:
        self.breakers = {scope: breaker for scope, breaker in self.breakers.items() if breaker.task != task}

    def _operate(self, event: Operated, entry: Entry) -> None:
        self.seen_request = max(self.seen_request, event.request.id)
        self.last_operation = (entry.seq, event)
        if event.refused:
            return
        self.ended = replace(self.ended, reason=CHANGED) if self.ended else None
        if event.after is not None:
            self.tip = event.after
        if event.undoes is not None:
            self._undo(self.undoable.pop(event.undoes, Undo()))
            return
        targets = [event.request.task] if event.request.task else []
        if event.request.verb == "approve" and not targets:
            self.approved = self.may_continue = True
            targets = [name for name, task in self.tasks.items() if awaits_approval(task)]
        names = dict.fromkeys([*event.reopened, *targets])
        before = tuple(self.tasks[name] for name in names if name in self.tasks)
        if event.request.verb != "stop":
            self.undoable[entry.seq] = Undo(
                task=event.request.task, states=before, before=event.before, after=event.after
            )
        for state in before:
            self._close_breakers(state.task.id)
            self._put(replace(apply_request(state, event), last_seq=entry.seq))
            if self.tasks[state.task.id].status in SETTLED:
                self._settle_fixes(state.task.id)

    def _undo(self, undo: Undo) -> None:
        for state in undo.states:  # undoing a skip asks for the work
            self._put(_reopen_if_stuck(state) if self.tasks[state.task.id].status == "skipped" else state)
        if undo.snapshot is not None and undo.task in self.tasks:
            state = self.tasks[undo.task]
            self._put(replace(reopen(state, hint=state.hint), seed=undo.snapshot, base=state.current.base))

    def _note(self, event: Noted) -> None:
        (self.meanwhile if event.meanwhile else self.notes).append(event.text)
        if event.task in self.tasks:
            before = self.tasks[event.task]
            self.tasks[event.task] = replace(before, notes=(*before.notes, event.text))

    def _put(self, state: TaskState) -> None:
        """Store a task's state, and keep `open` in the plan's order."""
        name = state.task.id
        self.tasks[name] = state
        if state.stage is Stage.REST:
            self.open.pop(name, None)
            return
        if name in self.open:
            return
        is_last = not self.open or self.places[next(reversed(self.open))] < self.places[name]
        self.open[name] = None
        if not is_last:
            self.open = dict.fromkeys(sorted(self.open, key=self.places.__getitem__))


def _reopen_if_stuck(task: TaskState) -> TaskState:
    """Return a stuck task with a fresh budget, unless it only waits for a person's word about its work."""
    is_failed = task.status == "stuck" and not is_unverified(task) and not awaits_approval(task)
    return reopen_with_work(task, hint=task.hint) if is_failed else task


def fold(entries: Iterable[Entry]) -> RunState:
    """Return the state after all these events."""
    state = RunState()
    for entry in entries:
        state.apply(entry)
    return state
