"""Fold the journal into what is true now.

Law: the state is a function of the journal and of nothing else, so a crash loses nothing that was recorded.
`RunState` is an index of frozen task states that `apply` updates in place: copying it for every event would make
a long run quadratic.
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any

from unstuck.journal.breakers import AGENT, LIMITED, Breaker, at_rest, out_of_order, reach
from unstuck.journal.lineage import Lineage, next_id
from unstuck.journal.stages import Stage
from unstuck.journal.task_state import (
    SETTLED,
    TaskState,
    added,
    advanced,
    awaits_approval,
    billed,
    initial,
    operated,
    reached,
    reopened,
    taken_up,
    unverified,
)
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
from unstuck.model.plan import END_TO_END, Task, cleans_up, joined


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
    joins: dict[str, list[str]] = field(default_factory=dict)
    """What tasks wait for as a whole, each with its members."""
    open: dict[str, None] = field(default_factory=dict)
    """Tasks that are not at rest, in the plan's order."""
    tip: str = ""
    """Where the run's branch should stand."""
    epoch: int = 1
    created: float = 0.0
    """When the run was begun, in its first epoch."""
    began: float = 0.0
    """When the epoch was begun."""
    since: float | None = None
    """When the supervisor that works on it started; None where none does."""
    worked: float = 0.0
    """Seconds that supervisors before this one worked on it."""
    last_at: float = 0.0
    halted: str = ""
    approved: bool = False
    """A person has approved the plan."""
    let_go: bool = False
    """A person has let the run go on, and it has not yet."""
    ended: RunEnded | None = None
    home: BroughtHome | None = None
    brought: frozenset[str] = frozenset()
    """The commits of tasks that reached the user's branch, whatever was asked for since."""
    inherited: Inherited | None = None
    """What a predecessor recorded."""
    seen_request: int = 0
    seq: int = 0
    last_operation: tuple[int, Operated | None] = (0, None)
    notes: list[str] = field(default_factory=list)
    meanwhile: list[str] = field(default_factory=list)
    green: set[str] = field(default_factory=set)
    """Commits at which our checks were green."""
    breakers: dict[str, Breaker] = field(default_factory=dict)
    """What is out of order for now: `run`, or `agent:NAME`."""
    trips: dict[str, int] = field(default_factory=dict)
    """How often each agent was set to rest since it last worked."""
    signatures: dict[str, dict[str, float]] = field(default_factory=dict)
    """Which tasks failed in the same way, and when."""
    executions: int = 0
    """Sessions started in this epoch."""
    meters: dict[str, float] = field(default_factory=dict)
    """What each agent's session has cost so far: a resumed one is billed with all that went before."""
    cost_usd: float = 0.0
    """What the run has cost in all its epochs, as far as the agents say."""
    undoable: dict[int, Undo] = field(default_factory=dict)
    """What can be taken back, by the number of its event."""

    def apply(self, entry: Entry) -> None:
        """Take one fact in. Facts about unknown tasks are ignored: a journal is never refused."""
        event = entry.event
        self._time(event, entry.at)
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
                if (before := self.tasks.get(event.task)) is not None:
                    metered = self._meter(event, before) if isinstance(event, SessionEnded) else 0.0
                    self._put(replace(advanced(before, event, entry.at, metered), last_seq=entry.seq))
                    self._after(event, entry)

    def copied(self) -> "RunState":
        """Return what is true at this moment; nothing that is recorded later changes it, for no container is shared."""
        parts: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        return RunState(
            **parts | {name: copy(one) for name, one in parts.items() if isinstance(one, dict | list | set)}
        )

    def seconds(self, now: float) -> float:
        """Return how long supervisors have worked on the run, up to now."""
        return self.worked + (now - self.since if self.since is not None else 0.0)

    def _time(self, event: Event, at: float) -> None:
        """Count the stretches in which a supervisor worked; one that died worked until its last word."""
        if isinstance(event, RunStarted | RunResumed):
            self.worked, self.since = self.seconds(self.last_at), at
        elif isinstance(event, RunEnded):
            self.worked, self.since = self.seconds(at), None

    def blocked_by(self, task: TaskState, seen: dict[str, list[str]] | None = None) -> tuple[str, ...]:
        """List the tasks that must settle first. `seen` holds what is found of joins, for those who ask for many tasks."""
        seen = {} if seen is None else seen
        waiting: list[str] = []
        for name in task.needs:
            if name in self.joins and name not in seen:
                seen[name] = [one for one in self.joins[name] if not self._passed(one)]
            waiting += seen.get(name, ()) if name in self.joins else () if self._passed(name) else (name,)
        if waiting and cleans_up(task.task) and self._began_end_to_end():
            waiting = [name for name in waiting if not self._hopeless(name)]
        return tuple(waiting)

    def needed(self, name: str) -> Iterator[str]:
        """Yield the tasks that one waits for, those of joins one by one."""
        for other in self.tasks[name].needs:
            yield from self.joins.get(other, (other,) if other in self.tasks else ())

    def _passed(self, name: str) -> bool:
        """Whether those behind a task may go on: it is settled, or all that is left is to ask whether it was done before."""
        task = self.tasks.get(name)
        if task is None or task.status in SETTLED:
            return True
        verdict = task.verdict
        return task.status == "stuck" and verdict is not None and verdict.unchanged

    def _began_end_to_end(self) -> bool:
        steps = (one for one in self.tasks.values() if END_TO_END.fullmatch(one.task.id))
        return any(one.attempts and not cleans_up(one.task) for one in steps)

    def _hopeless(self, name: str) -> bool:
        """Whether nothing will happen to a task before a person comes: it is stuck, or waits for one that is."""
        walk = reached(name, lambda one: [step for step in self.needed(one) if self.tasks[step].status not in SETTLED])
        return any(self.tasks[one].status == "stuck" for one in walk)

    def lineage(self, name: str) -> Lineage:
        """Return where a task stands among those that repair each other."""
        chain = [name]
        while (above := self.tasks[chain[-1]].task.fixes) in self.tasks and above not in chain:
            chain.append(above)
        family, spent = [chain[-1]], 0
        for one in family:  # grows while it is walked
            task = self.tasks[one]
            spent += len(task.fixes) - task.fixes_before
            family += [fix for fix in task.fixes if fix in self.tasks and fix not in family]
        task = self.tasks[name]
        return Lineage(
            chain=tuple(reversed(chain)),
            fixes=task.fixes[task.fixes_before :],
            spent=spent,
            next_id=next_id(name, len(task.fixes), self.tasks),
        )

    def _replan(self, tasks: Sequence[Task], again: Sequence[str] = ()) -> None:
        """Take a plan in; what is known of its tasks stays, and some are open again."""
        before = self.tasks
        self.tasks, self.open, self.places = {}, {}, {}
        for place, task in enumerate(tasks):
            self.places[task.id] = place
            state = replace(before[task.id], task=task) if task.id in before else initial(task)
            self._put(reopened(state, hint="") if task.id in again else state)
        self.joins = joined(tasks)
        self._link(tasks)

    def _link(self, tasks: Sequence[Task]) -> None:
        """Let a task that the plan has a fix for wait until that is done."""
        for task in tasks:
            original = self.tasks.get(task.fixes or "")
            if original is None or task.id in original.fixes or original.task.id in reached(task.id, self._fixes):
                continue  # tasks that repair each other in a circle are tasks like any other
            waiting = original.status not in SETTLED and self.tasks[task.id].status not in SETTLED
            waiting = waiting and original.task.id not in reached(task.id, self.needed)
            waits_for = (*original.waits_for, task.id) if waiting else original.waits_for
            self._put(replace(original, fixes=(*original.fixes, task.id), waits_for=waits_for))

    def _fixes(self, name: str) -> Iterator[str]:
        return (fix for fix in self.tasks[name].fixes if fix in self.tasks)

    def _insert(self, event: Acted) -> None:
        """Take new tasks in, behind the last one of the original's family; they begin with the work that it left."""
        original = self.tasks[event.task]
        family = f"{event.task}."
        names = list(self.tasks)
        behind = max(at for at, name in enumerate(names) if name == event.task or name.startswith(family)) + 1
        if isinstance(event.action, Amend) and event.action.request == "ADD_PREREQUISITE":
            behind = names.index(event.task)
        new = {task.id: added(task, original, event) for task in event.added if task.id not in self.tasks}
        names[behind:behind] = new
        tasks = {**self.tasks, **new}
        self.tasks = {name: tasks[name] for name in names}
        self.places = {name: place for place, name in enumerate(names)}
        for task in new.values():
            self._put(task)

    def _settle_fixes(self, name: str) -> None:
        """Give up the fix tasks of a task that needs them no longer."""
        for fix in self.tasks[name].fixes:
            task = self.tasks.get(fix)
            if task is not None and task.status in ("pending", "stuck"):
                note = f"Task {name} is settled without it."
                self._put(replace(task, status="skipped", question="", notes=(*task.notes, note)))
                self._settle_fixes(fix)

    def _resume(self, event: RunResumed, at: float) -> None:
        self.ended, self.home, self.tip, self.let_go = None, None, event.tip, False
        if event.epoch:
            self.epoch += 1
            self.began, self.halted, self.executions = at, "", 0
            self.breakers, self.signatures, self.trips = {}, {}, {}
            for task in [task for task in self.tasks.values() if task.status not in SETTLED]:
                again = _tried_again(task)
                self._put(replace(task, fixes_before=len(task.fixes)) if again is task else again)

    def _after(self, event: LineEvent, entry: Entry) -> None:
        """Take in what a task's fact means for the run."""
        task = self.tasks[event.task]
        if isinstance(event, SessionStarted):
            self.executions += 1
        elif isinstance(event, SessionEnded) and event.outcome.ended.ending in ENDED_BY_US:
            self.executions -= 1  # our own stop or death uses up no budget
        elif isinstance(event, Classified):
            self._judged(event, entry.at)
        elif isinstance(event, Acted):
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
                self._break(event.action, task.current.failure, task, entry.at)
            elif task.stage is Stage.REST:
                self._close(event.task)
                if isinstance(event.action, Escalate | Halt):
                    self._give_up(task)
        elif isinstance(event, AttemptStarted):
            breaker = self.breakers.get(f"{AGENT}{event.agent}")
            if breaker is not None and not breaker.task:
                self.breakers[f"{AGENT}{event.agent}"] = replace(breaker, task=event.task)

    def _break(self, action: Wait | Switch, failure: Failure, task: TaskState, at: float) -> None:
        """Take in how far a fault reaches: one task waits for its end, or the agent rests."""
        scope = reach(failure.kind, task.current.agent, met_by_check=task.current.met_by_check)
        if scope is not None and isinstance(action, Wait):
            self.breakers[scope] = Breaker(kind=failure.kind, task=task.task.id, until=action.until)
        elif scope is not None and scope.startswith(AGENT):
            name = task.current.agent
            self.trips[name] = self.trips.get(name, 0) + 1
            self.breakers[scope] = at_rest(failure, self.trips[name], at)

    def _give_up(self, task: TaskState) -> None:
        """Hold the other tasks back from an agent that a person was asked about."""
        failure = task.current.failure if task.attempts else None
        if failure is not None and failure.kind in AGENT_DOWN - LIMITED:
            self.breakers[f"{AGENT}{task.current.agent}"] = out_of_order(failure.kind, task.task.id)

    def _meter(self, event: SessionEnded, task: TaskState) -> float:
        """Read the meter of the agent's session; return where it stood before."""
        outcome = event.outcome
        if outcome.cost_usd is None or not task.attempts:
            return 0.0
        name = f"{task.current.agent}:{outcome.session}" if outcome.session else ""
        before = self.meters.get(name, 0.0)
        if name:
            self.meters[name] = outcome.cost_usd
        self.cost_usd += billed(outcome, before) or 0.0
        return before

    def _judged(self, event: Classified, at: float) -> None:
        """Close the breakers that the task opened, unless it met the same fault again; remember how it failed."""
        failure = event.failure
        still = {breaker.kind for breaker in self.breakers.values() if breaker.task == event.task}
        if failure is None or failure.kind not in still:
            self._close(event.task)
        if failure is None or failure.kind not in AGENT_DOWN:
            self.trips.pop(self.tasks[event.task].current.agent if self.tasks[event.task].attempts else "", None)
        if failure is not None and failure.signature:
            alike = self.signatures.get(failure.signature, {})  # replaced, as another thread may be walking it
            self.signatures[failure.signature] = {**alike, event.task: at}

    def _close(self, task: str) -> None:
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
        asked = [event.request.task] if event.request.task else []
        if event.request.verb == "approve" and not asked:
            self.approved = self.let_go = True
            asked = [name for name, task in self.tasks.items() if awaits_approval(task)]
        names = dict.fromkeys([*event.reopened, *asked])
        before = tuple(self.tasks[name] for name in names if name in self.tasks)
        if event.request.verb != "stop":
            self.undoable[entry.seq] = Undo(
                task=event.request.task, states=before, before=event.before, after=event.after
            )
        for state in before:
            self._close(state.task.id)
            self._put(replace(operated(state, event), last_seq=entry.seq))
            if self.tasks[state.task.id].status in SETTLED:
                self._settle_fixes(state.task.id)

    def _undo(self, undo: Undo) -> None:
        for state in undo.states:  # whoever takes a skip back wants it done
            self._put(_tried_again(state) if self.tasks[state.task.id].status == "skipped" else state)
        if undo.snapshot is not None and undo.task in self.tasks:
            state = self.tasks[undo.task]
            self._put(replace(reopened(state, hint=state.hint), seed=undo.snapshot, base=state.current.base))

    def _note(self, event: Noted) -> None:
        (self.meanwhile if event.meanwhile else self.notes).append(event.text)
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


def _tried_again(task: TaskState) -> TaskState:
    """Give a stuck task a fresh budget, unless only a person's word about its work is missing."""
    again = task.status == "stuck" and not unverified(task) and not awaits_approval(task)
    return taken_up(task, hint=task.hint) if again else task


def fold(entries: Iterable[Entry]) -> RunState:
    """Replay the journal."""
    state = RunState()
    for entry in entries:
        state.apply(entry)
    return state
