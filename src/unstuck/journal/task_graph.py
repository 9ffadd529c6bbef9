"""Answer which tasks wait for each other and which of them repair each other."""

from collections.abc import Callable, Container, Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass

from unstuck.journal.task_state import SETTLED, TaskState
from unstuck.model.plan import END_TO_END_ID, cleans_up

Joins = Mapping[str, Sequence[str]]
"""Names that tasks can wait for as a whole, each with the ids of its members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """The place of a task among the tasks that repair each other: 1.3 → 1.3.1 → 1.3.1.1."""

    chain: tuple[str, ...]  # the original first, the task itself last
    fixes: tuple[str, ...]  # the fix tasks that it had in this epoch
    spent: int  # the number of fix tasks of the whole lineage in this epoch
    next_id: str

    @property
    def depth(self) -> int:
        """Return how many tasks stand above it in the chain of repairs."""
        return len(self.chain) - 1


def lineage_of(name: str, tasks: Mapping[str, TaskState]) -> Lineage:
    """Return the place of a task among the tasks that repair each other."""
    chain = [name]
    while (original := tasks[chain[-1]].task.fixes or "") in tasks and original not in chain:
        chain.append(original)
    family = [chain[-1]]
    spent = 0
    for member in family:  # grows while it is walked
        state = tasks[member]
        spent += len(state.fixes) - state.fixes_before
        family += [fix for fix in state.fixes if fix in tasks and fix not in family]
    state = tasks[name]
    return Lineage(
        chain=tuple(reversed(chain)),
        fixes=state.fixes[state.fixes_before :],
        spent=spent,
        next_id=next_free_id(name, len(state.fixes), tasks),
    )


def next_free_id(task: str, fixes: int, taken: Container[str]) -> str:
    """Return the first free id below the task's: 1.3 → 1.3.1. Ids of earlier fixes are not used again."""
    number = fixes + 1
    while f"{task}.{number}" in taken:
        number += 1
    return f"{task}.{number}"


def blocking_tasks(
    state: TaskState, tasks: Mapping[str, TaskState], joins: Joins, cache: dict[str, list[str]] | None = None
) -> tuple[str, ...]:
    """Return the tasks that must settle first. Pass one `cache` when asking for many tasks."""
    open_members = {} if cache is None else cache
    waiting: list[str] = []
    for name in state.needs:
        if name not in joins:
            waiting += [] if _has_passed(name, tasks) else [name]
            continue
        if name not in open_members:
            open_members[name] = [member for member in joins[name] if not _has_passed(member, tasks)]
        waiting += open_members[name]
    if waiting and cleans_up(state.task) and _end_to_end_has_begun(tasks):
        waiting = [name for name in waiting if not _waits_for_person(name, tasks, joins)]
    return tuple(waiting)


def _has_passed(name: str, tasks: Mapping[str, TaskState]) -> bool:
    """Return whether dependents may start: the task is settled, or changed nothing and its checks pass."""
    state = tasks.get(name)
    if state is None or state.status in SETTLED:
        return True
    verdict = state.verdict
    return state.status == "stuck" and verdict is not None and verdict.unchanged


def _end_to_end_has_begun(tasks: Mapping[str, TaskState]) -> bool:
    steps = (state for state in tasks.values() if END_TO_END_ID.fullmatch(state.task.id))
    return any(state.attempts and not cleans_up(state.task) for state in steps)


def _waits_for_person(name: str, tasks: Mapping[str, TaskState], joins: Joins) -> bool:
    """Return whether a task is stuck, or waits for one that is."""

    def open_needs(task: str) -> Iterator[str]:
        return (need for need in needed_tasks(task, tasks, joins) if tasks[need].status not in SETTLED)

    return any(tasks[task].status == "stuck" for task in reachable(name, open_needs))


def needed_tasks(name: str, tasks: Mapping[str, TaskState], joins: Joins) -> Iterator[str]:
    """Yield the tasks that a task waits for, and for a join its members."""
    for need in tasks[name].needs:
        if need in joins:
            yield from joins[need]
        elif need in tasks:
            yield need


def repairs(fix: str, original: str, tasks: Mapping[str, TaskState]) -> bool:
    """Return whether a task is a fix of another one, or a fix of its fixes. Every task counts as its own."""
    return fix in reachable(original, lambda name: [fix for fix in tasks[name].fixes if fix in tasks])


def can_wait_for_fix(original: TaskState, fix: str, tasks: Mapping[str, TaskState], joins: Joins) -> bool:
    """Return whether both tasks are open and the fix does not wait for the original."""
    if original.status in SETTLED or tasks[fix].status in SETTLED:
        return False
    return original.task.id not in reachable(fix, lambda name: needed_tasks(name, tasks, joins))


def reachable(start: str, neighbours: Callable[[str], Iterable[str]]) -> KeysView[str]:
    """Return all names that can be reached from a name, itself included."""
    seen = dict.fromkeys([start])
    queue = [start]
    for name in queue:  # grows while it is walked
        new = dict.fromkeys(neighbour for neighbour in neighbours(name) if neighbour not in seen)
        seen |= new
        queue += new
    return seen.keys()
