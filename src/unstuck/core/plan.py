"""The plan as values: tasks, their checks, their order, and what makes a plan invalid."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Literal

CheckKind = Literal["verify", "test", "lint", "types", "format", "build"]

TASK_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9])){0,63}", re.ASCII)
"""Ids become file names and ref names, so they hold nothing that a file system or git could misread."""

END_TO_END = re.compile(r"VE\d+(?:\.\d+)*", re.ASCII)
"""Steps that start something, look at it and stop it again; and their fix tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One command that must hold. It is the user's code: it runs as written, with `bash -c`."""

    command: str
    kind: CheckKind = "verify"
    timeout: float = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The unit that is attempted, verified and landed."""

    id: str
    title: str
    line: int = 1
    body: str = ""
    """The task's own text in the plan, as the agent will read it."""
    depends_on: tuple[str, ...] = ()
    group: str | None = None
    """Tasks of one group may run side by side; a task without a group runs alone."""
    checks: tuple[Check, ...] = ()
    files: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    fixes: str | None = None
    """The task that this one repairs."""
    commit: str | None = None
    """The commit subject that the plan asks for; None leaves it to us."""
    agent: str = ""
    """Who should have it first, where the plan says so."""
    done: bool = False
    """Ticked in the plan before the run began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insertion:
    """Tasks to write into a plan: markdown by id, beside a task that it has."""

    blocks: Mapping[str, str]
    beside: str
    before: bool = False
    """In front of that task; otherwise behind it and all tasks whose ids go on from its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something wrong with a plan, where it stands and what to do about it."""

    message: str
    line: int | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The document: tasks in the order of the text."""

    path: str
    format: str
    tasks: tuple[Task, ...]
    title: str = ""
    concerns: tuple[Problem, ...] = ()
    """Worth telling a person; never stops a run."""
    problems: tuple[Problem, ...] = ()
    """What the reader could not make sense of; any of these stops a run before it starts."""


def recovers(task: Task) -> bool:
    """Whether a task is repaired by fix tasks even outside recovery mode: marked so, or an end-to-end step (VE1)."""
    return "RECOVERY" in task.markers or END_TO_END.fullmatch(task.id) is not None


def check(plan: Plan) -> tuple[Problem, ...]:
    """List everything that makes the plan impossible to run, in the order of the text."""
    found = [*plan.problems, *_ids(plan.tasks), *_dependencies(plan.tasks)]
    if not plan.tasks and not found:
        found.append(
            Problem(message="The plan has no tasks.", hint="A task is a line such as `- [ ] 1.1 Add a parser`.")
        )
    if not any("unknown" in problem.message or "twice" in problem.message for problem in found):
        found.extend(_cycles(plan.tasks))
    return tuple(sorted(found, key=lambda problem: problem.line or 0))


def batches(tasks: Sequence[Task]) -> tuple[tuple[str, ...], ...]:
    """Split the tasks into waves: each depends only on earlier ones. The order of the text is kept."""
    order = {task.id: place for place, task in enumerate(tasks)}
    sorter = TopologicalSorter({task.id: task.depends_on for task in tasks})
    sorter.prepare()
    waves: list[tuple[str, ...]] = []
    while sorter.is_active():
        wave = tuple(sorted(sorter.get_ready(), key=order.__getitem__))
        sorter.done(*wave)
        waves.append(wave)
    return tuple(waves)


def _ids(tasks: Iterable[Task]) -> Iterable[Problem]:
    seen: dict[str, Task] = {}
    for task in tasks:
        if TASK_ID.fullmatch(task.id) is None:
            yield Problem(
                message=f"The task id {task.id!r} cannot be used.",
                line=task.line,
                hint="Use up to 64 letters, digits, '.', '-' or '_', beginning with a letter or digit.",
            )
        first = seen.setdefault(task.id.casefold(), task)
        if first is not task:
            yield Problem(
                message=f"The task id {task.id} is used twice; line {first.line} has it first.",
                line=task.line,
                hint="Give each task an id of its own.",
            )


def _dependencies(tasks: Sequence[Task]) -> Iterable[Problem]:
    known = {task.id for task in tasks}
    for task in tasks:
        for name in task.depends_on:
            if name == task.id:
                yield Problem(
                    message=f"Task {task.id} depends on itself.", line=task.line, hint="Remove that dependency."
                )
            elif name not in known:
                yield Problem(
                    message=f"Task {task.id} depends on an unknown task {name!r}.",
                    line=task.line,
                    hint="Correct the id, or add the task.",
                )


def _cycles(tasks: Sequence[Task]) -> Iterable[Problem]:
    lines = {task.id: task.line for task in tasks}
    graph = {task.id: [name for name in task.depends_on if name != task.id] for task in tasks}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = list(reversed(error.args[1]))
        yield Problem(
            message=f"The tasks depend on each other in a circle: {' → '.join(cycle)}.",
            line=min(lines[name] for name in cycle),
            hint="Remove one of these dependencies.",
        )
