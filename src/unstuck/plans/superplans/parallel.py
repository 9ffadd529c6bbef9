"""Which phases may run side by side: those that both say so, where nothing speaks against it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from unstuck.plans.plan import Problem, Task
from unstuck.plans.review import paths_between


def agree_on_parallel(tasks: Sequence[Task]) -> tuple[tuple[Task, ...], list[Problem]]:
    """Keep of what the phases say about running side by side what both say and nothing speaks against."""
    known = {task.id: task for task in tasks}
    reach = paths_between(tasks)
    kept: dict[str, list[str]] = {task.id: [] for task in tasks}
    odd: list[Problem] = []
    for task in tasks:
        for name in task.parallel_with:
            other = known.get(name)
            if other is None:
                odd.append(
                    Problem(
                        message=f"Phase {task.shown} may run with {name!r}, which is not a phase.",
                        line=task.line,
                        hint="Correct the id.",
                    )
                )
            elif task.id not in other.parallel_with:
                odd.append(
                    Problem(
                        message=f"Phase {task.shown} may run with {other.shown}, but {other.shown} does not say so; they run one after the other.",
                        line=task.line,
                        hint=f"Write {task.shown} into Parallel With of {other.shown}, too.",
                    )
                )
            elif name != task.id:
                odd += _against(task, other, reach) if task.id < name else []
                if not any(_against(task, other, reach)):
                    kept[task.id].append(name)
    return tuple(replace(task, parallel_with=tuple(kept[task.id])) for task in tasks), odd


def _against(task: Task, other: Task, reach: Mapping[str, frozenset[str]]) -> list[Problem]:
    """Say what speaks against running the two side by side."""
    if other.id in reach[task.id] or task.id in reach[other.id]:
        return [
            Problem(
                message=f"Phases {task.shown} and {other.shown} are to run side by side, and one depends on the other.",
                line=task.line,
                hint="Remove one of the two.",
            )
        ]
    shared = [path for path in task.files if path in other.files]
    if shared:
        return [
            Problem(
                message=f"Phases {task.shown} and {other.shown} are to run side by side and both declare {', '.join(shared[:3])}; they run one after the other.",
                line=task.line,
                hint="Split the file, or make the phases sequential.",
            )
        ]
    return []
