"""Which tasks may start now. Order in the plan is a preference; dependencies and groups are law."""

from collections.abc import Collection, Iterable, Mapping

from unstuck.journal.breakers import AGENT_PREFIX, PROVIDER_LIMITS, Breaker
from unstuck.journal.run_state import RunState
from unstuck.journal.stages import Stage
from unstuck.journal.task_state import SETTLED, TaskState
from unstuck.model.plan import beside, cleans_up
from unstuck.policy.experience import sorted_by_rate


def startable(state: RunState, running: Collection[str], room: int, now: float = 0.0) -> list[str]:
    """List tasks to start, in the plan's order, at most `room` of them.

    A task without a group runs alone; tasks of one group run side by side. One that was interrupted counts as
    running until it rests; one that waits holds back only what depends on it. In a halted run only what cleans up
    may start, and what waits for nothing but a check is brought to its end.
    """
    chosen: list[str] = []
    busy = [state.tasks[name] for name in running]
    if any(task.task.group is None and not task.task.parallel_with for task in busy):
        return chosen
    seen: dict[str, list[str]] = {}
    for name in list(state.open):  # a copy: another thread may settle a task meanwhile
        if len(chosen) >= room:
            break
        task = state.tasks[name]
        if state.halted and not cleans_up(task.task) and not _second_try(state, task) and not _checks_again(task):
            continue  # nothing new starts, but the retries of a batch are finished
        if waits_for_siblings(state, name):
            continue
        if (
            name in running
            or state.blocked_by(task, seen)
            or held(state, name, next_agent(state, task, now), now)
            or waits(task, now)
        ):
            continue
        if all(beside(task.task, other.task) for other in busy):
            chosen.append(name)
            busy.append(task)
    return chosen


def next_agent(state: RunState, task: TaskState, now: float = 0.0) -> str:
    """Return who will have the task next: as a switch chose, as before, as the plan says, or the first in order."""
    agents = agents_in_order(state)
    if task.attempts and task.stage is not Stage.OPEN:
        return task.current.agent
    before = task.attempts[-1].agent if len(task.attempts) > task.epoch_from else None
    wanted = [name for name in (task.agent, before, task.task.agent) if name]
    awake = [
        name
        for name in agents
        if (found := state.breakers.get(f"{AGENT_PREFIX}{name}")) is None or (found.task == "" and found.until <= now)
    ]
    resting = {
        name
        for name in wanted
        if (found := state.breakers.get(f"{AGENT_PREFIX}{name}")) and found.task == "" and now < found.until
    }
    return next(iter([*(name for name in wanted if name not in resting), *awake, *wanted, *agents]), "")


def agents_in_order(state: RunState) -> tuple[str, ...]:
    """Return the run's agents in the order in which a task tries them: as given, or by landed rate."""
    if state.started is None:
        return ()
    options = state.started.options
    if options.order != "experience":
        return options.agents
    return sorted_by_rate(options.agents, options.records)


def waits(task: TaskState, now: float) -> bool:
    """Whether the task waits for a time that has not come."""
    return task.stage is Stage.WAIT and now < (task.wait_until or 0.0)


def due(state: RunState, now: float) -> float | None:
    """Return how many seconds are left until the first waiting task goes on; None if none does in this run."""
    waiting = [task for name in list(state.open) if waits(task := state.tasks[name], now)]
    coming = [task for task in waiting if not parked(state, task, now) and (not state.halted or _checks_again(task))]
    return min(((task.wait_until or now) - now for task in coming), default=None)


def _checks_again(task: TaskState) -> bool:
    return task.stage is Stage.WAIT and task.current.met_by_check


def parked(state: RunState, task: TaskState, now: float) -> bool:
    """Whether the task waits for a provider in a run that does not wait: it is left for the next one."""
    exits = state.started is not None and state.started.options.quota == "exit"
    return exits and task.stage is Stage.WAIT and limited(task) and now < (task.wait_until or 0.0)


def limited(task: TaskState) -> bool:
    """Whether a provider's limit stopped the task last."""
    return bool(task.attempts) and task.current.failure is not None and task.current.failure.kind in PROVIDER_LIMITS


def held(state: RunState, name: str, agent: str, now: float = 0.0) -> Breaker | None:
    """Return the fault that another task has met and that concerns this one, too: one of them tries, the others wait."""
    breaker = state.breakers.get(f"{AGENT_PREFIX}{agent}")
    return breaker if breaker is not None and breaker.blocks(name, now) else None


def blocked(state: RunState) -> dict[str, tuple[str, ...]]:
    """List the tasks that cannot start until a person has settled another one, and by what they are blocked."""
    found: dict[str, tuple[str, ...]] = {}
    dependents: dict[str, list[str]] = {name: list(task.task.joins) for name, task in state.tasks.items()}
    waiting = list(state.open)  # a copy: another thread may settle a task meanwhile
    for name in waiting:
        for other in state.tasks[name].needs:
            dependents.setdefault(other, []).append(name)
    causes: dict[str, dict[str, None]] = {}
    reached = [name for name, task in state.tasks.items() if task.status == "stuck"]
    for cause in reached:  # grows while it is walked
        for name in dependents.get(cause, ()):
            if name not in causes:
                reached.append(name)
            causes.setdefault(name, {})[cause] = None
    seen: dict[str, list[str]] = {}
    told: dict[tuple[str, ...], tuple[str, ...]] = {}  # thousands may have the same causes
    for name in waiting:
        if name in causes and state.blocked_by(state.tasks[name], seen):
            by = tuple(causes[name])
            if by not in told:
                told[by] = tuple(dict.fromkeys(one for cause in by for one in _members(state, cause, causes)))
            found[name] = told[by]
    return found


def _members(state: RunState, cause: str, causes: Mapping[str, Mapping[str, None]]) -> Iterable[str]:
    """Return the tasks that a cause stands for: itself, or those members of a join that hold it up."""
    return causes[cause] if cause in state.joins else (cause,)


def settled(state: RunState) -> bool:
    """Whether every task landed or was settled by a person."""
    return all(task.status in SETTLED for task in state.tasks.values())


def siblings(state: RunState, name: str) -> tuple[TaskState, ...]:
    """Return the tasks that may run at the side of this one, in the plan's order."""
    task = state.tasks[name].task
    return tuple(other for other in state.tasks.values() if other.task is not task and beside(task, other.task))


def waits_for_siblings(state: RunState, name: str) -> bool:
    """Whether a failed task must wait for the first tries of those at its side, as some profiles want it."""
    task = state.tasks[name]
    if not _second_try(state, task):
        return False
    return any(_in_first_try(state, other) for other in siblings(state, name))


def _second_try(state: RunState, task: TaskState) -> bool:
    first = state.started is not None and state.started.options.siblings_first
    return first and task.stage is Stage.OPEN and bool(task.tries)


def _in_first_try(state: RunState, task: TaskState) -> bool:
    if task.stage is Stage.REST:
        return False
    if not task.tries:
        return not state.halted and not state.blocked_by(task)
    return len(task.tries) == 1 and task.stage is not Stage.OPEN
