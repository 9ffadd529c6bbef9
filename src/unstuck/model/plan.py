"""The plan as values: tasks, their order, the problems that make a plan invalid, and commit subjects."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import pairwise

from unstuck.model.text import one_line
from unstuck.model.verdict import Check
from unstuck.shipped import shipped_toml

TASK_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9])){0,63}", re.ASCII)
"""Ids become file names and ref names, so they hold nothing that a file system or git could misread."""

END_TO_END_ID = re.compile(r"VE\d+(?:\.\d+)*", re.ASCII)
"""Ids of end-to-end steps, which start a program, test it and stop it again. Their fix tasks match as well.

smart-ralph prescribes these ids.
"""

CLEANUP_TITLE = re.compile(r"(?i)\b(?:clean ?-?up|tear ?-?down)\b")
CLEANUP_ID = "VE3"
"""The id that smart-ralph gives to the step that cleans up."""

ONLY_CHECKS = re.compile(
    r"\W*(?:(?:final|last)\s+)?checkpoint\b|ensure (?:that )?all (?:the )?(?:unit )?tests (?:still )?pass\b",
    re.IGNORECASE,
)
"""Titles of tasks that only check earlier work, as Kiro writes them."""

CHECKPOINT = re.compile(r"V(?:E?\d+|F)", re.ASCII)
"""Ids of tasks that only check earlier work. smart-ralph prescribes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The unit that is attempted, verified and landed."""

    id: str
    title: str
    line: int = 1
    body: str = ""
    """The task's own text in the plan, which the agent reads."""
    depends_on: tuple[str, ...] = ()
    """Ids of tasks and names of joins."""
    joins: tuple[str, ...] = ()
    """The joins that the task belongs to. A join is a named set of tasks on which other tasks depend as a whole."""
    group: str | None = None
    """Tasks of one group may run side by side; a task without a group runs alone."""
    checks: tuple[Check, ...] = ()
    files: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    fixes: str | None = None
    """The id of the task that this one repairs."""
    commit: str | None = None
    """The commit subject that the plan asks for. None lets `unstuck` choose it, "" asks for no commit."""
    agent: str = ""
    """The agent that the plan names for the first attempt."""
    done: bool = False
    """Ticked in the plan before the run began."""
    skipped: bool = False
    """The user marked it as not to be done in the plan before the run began."""
    label: str = ""
    """The spelling of the id in the plan, if it differs: phase `2a` is written 2A."""
    items: tuple[str, ...] = ()
    """The lines of its checklist."""
    parallel_with: tuple[str, ...] = ()
    """Ids of tasks that may run at the same time, because both tasks say so."""
    estimate: str = ""
    digest: str = ""
    """A hash of the text without the statuses that `unstuck` writes into it. Empty if the text holds no statuses."""

    @property
    def shown(self) -> str:
        """The id as the plan writes it."""
        return self.label or self.id

    @property
    def subject(self) -> str:
        """The first line of its commit."""
        return self.commit or self.title

    def problem(self, message: str, hint: str) -> "Problem":
        """Return a problem at this task's line."""
        return Problem(message=message, line=self.line, hint=hint)

    @property
    def only_checks(self) -> bool:
        """True for tasks that only check earlier work, by the marker [VERIFY], their id or their title."""
        if "VERIFY" in self.markers:
            return True
        if self.fixes is not None:
            return False
        return CHECKPOINT.fullmatch(self.id) is not None or ONLY_CHECKS.match(self.title) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Insertion:
    """Tasks to write into a plan, next to one of its tasks."""

    blocks: Mapping[str, str]
    """The Markdown text of each new task by its id."""
    beside: str
    """The id of the task next to which they go."""
    before: bool = False
    """Insert before that task. Otherwise after it and after its subtasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A mistake in a plan, with its line and a hint for the user."""

    message: str
    line: int | None = None
    hint: str = ""
    cycle: tuple[str, ...] = ()
    """Ids of tasks that depend on each other in a circle. The first id is repeated at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A plan with its tasks in the order of the text."""

    path: str
    format: str
    tasks: Sequence[Task]
    title: str = ""
    concerns: tuple[Problem, ...] = ()
    """Remarks for the user, which never stop a run."""
    problems: tuple[Problem, ...] = ()
    """Mistakes that the reader noticed. Any of them stops a run before it starts."""
    gates: tuple[Check, ...] = ()
    """Checks that must pass after every task."""

    @property
    def noun(self) -> str:
        """The word for a task of this plan in messages."""
        return "phase" if self.format == "superplan" else "task"

    @property
    def phased(self) -> bool:
        """True if the tasks themselves name their dependencies and their parallel tasks."""
        return self.format in ("superplan", "implementation_plan.json", "task-master", "prd.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Tasks that are ready at the same time. They run in parallel or one after the other."""

    tasks: tuple[str, ...]
    parallel: bool


MAX_NAMED_DEPENDENCIES = 20
"""More dependencies than this become one join, so that the size of large plans grows linearly."""


def dependencies_on_all(names: Sequence[str], joins: dict[str, list[str]]) -> tuple[str, ...]:
    """Return the dependencies of a task that waits for all these tasks: their ids, or one join.

    A new join is added to `joins`, which holds the joins of each task.
    """
    if len(names) <= MAX_NAMED_DEPENDENCIES:
        return tuple(names)
    join = f"all from {names[0]} to {names[-1]}"
    if join not in joins.get(names[0], ()):
        for name in names:
            joins.setdefault(name, []).append(join)
    return (join,)


def members_of_joins(tasks: Iterable[Task]) -> dict[str, list[str]]:
    members: dict[str, list[str]] = {}
    for task in tasks:
        for join in task.joins:
            members.setdefault(join, []).append(task.id)
    return members


def dependency_graph(tasks: Sequence[Task]) -> dict[str, Sequence[str]]:
    return {**{task.id: task.depends_on for task in tasks}, **members_of_joins(tasks)}


def always_gets_fix_tasks(task: Task) -> bool:
    """Return whether a task gets fix tasks even outside recovery mode: by its marker, or as an end-to-end step."""
    return "RECOVERY" in task.markers or END_TO_END_ID.fullmatch(task.id) is not None


def cleans_up(task: Task) -> bool:
    """Return whether a task stops the programs of end-to-end steps, and so must run even if they failed."""
    if END_TO_END_ID.fullmatch(task.id) is None:
        return False
    return CLEANUP_TITLE.search(task.title) is not None or task.id.partition(".")[0] == CLEANUP_ID


def plan_problems(plan: Plan) -> tuple[Problem, ...]:
    """Return all problems that make it impossible to run the plan, in the order of the text."""
    problems = [*plan.problems, *_problems_of_ids(plan.tasks), *_problems_of_dependencies(plan)]
    if not plan.tasks and not problems:
        problems.append(
            Problem(message="The plan has no tasks.", hint="A task is a line such as `- [ ] 1.1 Add a parser`.")
        )
    problems.extend(_cycles(plan.tasks))
    return tuple(sorted(problems, key=lambda problem: problem.line or 0))


def waves_of(tasks: Sequence[Task]) -> tuple[tuple[str, ...], ...]:
    """Split the tasks into waves, each of which depends only on earlier waves. The order of the text is kept."""
    order = {task.id: place for place, task in enumerate(tasks)}
    sorter = _sorter(tasks)
    waves: list[tuple[str, ...]] = []
    while sorter.is_active():
        wave = tuple(sorted(_ready(sorter, order), key=order.__getitem__))
        sorter.done(*wave)
        waves.append(wave)
    return tuple(wave for wave in waves if wave)


def _sorter(tasks: Sequence[Task]) -> "TopologicalSorter[str]":
    sorter = TopologicalSorter(dependency_graph(tasks))
    sorter.prepare()
    return sorter


def _ready(sorter: "TopologicalSorter[str]", tasks: Container[str]) -> list[str]:
    """Return the tasks that are ready. A join is done as soon as all of its members are."""
    ready: list[str] = []
    while names := sorter.get_ready():
        ready += (name for name in names if name in tasks)
        sorter.done(*(name for name in names if name not in tasks))
    return ready


def find_task_id(tasks: Iterable[Task], text: str) -> str | None:
    """Return the id of the task that the user names: phase `2a` is also 2A and Phase 2A."""
    candidates = list(tasks)
    if any(task.id == text for task in candidates):
        return text
    wanted = text.strip().casefold()
    wanted = wanted.removeprefix("phase").strip() or wanted
    return next((task.id for task in candidates if wanted in (task.id.casefold(), task.shown.casefold())), None)


def may_run_together(task: Task, other: Task) -> bool:
    if task.group is not None and task.group == other.group:
        return True
    return other.id in task.parallel_with and task.id in other.parallel_with


def execution_batches(plan: Plan) -> tuple[Batch, ...]:
    """Return the batches in which a plan runs."""
    if not plan.phased:
        return tuple(_batches_by_groups(plan.tasks))
    by_id = {task.id: task for task in plan.tasks}
    batches: list[Batch] = []
    for wave in waves_of(plan.tasks):
        for tasks in _parallel_sets([by_id[name] for name in wave]):
            parallel = any(may_run_together(task, other) for task, other in pairwise(tasks))
            batches.append(Batch(tasks=tuple(task.id for task in tasks), parallel=parallel))
    return tuple(batches)


def _parallel_sets(wave: Sequence[Task]) -> list[list[Task]]:
    """Split the tasks of a wave into sets whose members may run at the same time."""
    sets: list[list[Task]] = []
    groups: dict[str | None, list[Task]] = {}
    for task in wave:
        members = groups.get(task.group) or _set_for(task, sets)
        if members is None:
            members = []
            sets.append(members)
        members.append(task)
        if task.group is not None and not task.parallel_with:
            groups[task.group] = members
    return sets


def _set_for(task: Task, sets: Sequence[list[Task]]) -> list[Task] | None:
    """Return the first set with all of which the task may run."""
    if not task.parallel_with:
        return None
    return next((members for members in sets if all(may_run_together(task, other) for other in members)), None)


def _batches_by_groups(tasks: Sequence[Task]) -> Iterator[Batch]:
    """Yield each group as a parallel batch, and the tasks between two groups as a sequential one."""
    place = {task.id: at for at, task in enumerate(tasks)}
    groups: dict[str, list[int]] = {}
    for at, task in enumerate(tasks):
        groups.setdefault(task.group or task.id, []).append(at)
    sorter = _sorter(tasks)
    order: list[int] = []
    ready: set[int] = set()
    alone: list[str] = []
    while sorter.is_active():
        for name in _ready(sorter, place):
            heappush(order, place[name])
            ready.add(place[name])
        if not order:
            break  # only joins were left
        first = heappop(order)
        if first not in ready:
            continue  # its group has taken it
        step = [at for at in groups[tasks[first].group or tasks[first].id] if at in ready]
        ready.difference_update(step)
        names = tuple(tasks[at].id for at in step)
        sorter.done(*names)
        if len(step) == 1:
            alone.extend(names)
            continue
        if alone:
            yield Batch(tasks=tuple(alone), parallel=False)
        alone = []
        yield Batch(tasks=names, parallel=True)
    if alone:
        yield Batch(tasks=tuple(alone), parallel=False)


def _problems_of_ids(tasks: Iterable[Task]) -> Iterable[Problem]:
    seen: dict[str, Task] = {}
    for task in tasks:
        if TASK_ID.fullmatch(task.id) is None:
            hint = "Use up to 64 letters, digits, '.', '-' or '_', beginning with a letter or digit."
            yield task.problem(f"The task id {task.id!r} cannot be used.", hint)
        first = seen.setdefault(task.id.casefold(), task)
        if first is not task:
            message = f"The task id {task.id} is used twice; line {first.line} has it first."
            yield task.problem(message, "Give each task an id of its own.")


def _problems_of_dependencies(plan: Plan) -> Iterable[Problem]:
    names = {task.id for task in plan.tasks} | members_of_joins(plan.tasks).keys()
    noun = plan.noun
    for task in plan.tasks:
        for name in task.depends_on:
            if name == task.id:
                yield task.problem(f"{noun.capitalize()} {task.shown} depends on itself.", "Remove that dependency.")
            elif name not in names:
                message = f"{noun.capitalize()} {task.shown} depends on an unknown {noun} {name!r}."
                yield task.problem(message, f"Correct the id, or add the {noun}.")


def _cycles(tasks: Sequence[Task]) -> Iterable[Problem]:
    """Yield a problem for each circle of dependencies. No two of these circles share a task."""
    by_id = {task.id: task for task in tasks}
    left: dict[str, Sequence[str]] = {**dependency_graph(tasks), **dict.fromkeys((task.id for task in tasks), ())}
    for task in tasks:
        left[task.id] = (*left[task.id], *task.depends_on)  # two tasks may have one id, which is another problem
    while True:
        edges = {name: [other for other in needs if other in left and other != name] for name, needs in left.items()}
        try:
            TopologicalSorter(edges).prepare()
        except CycleError as error:
            walked = list(reversed(error.args[1]))[:-1]
            circle = [name for name in walked if name in by_id]
            first = min(range(len(circle)), key=lambda place: by_id[circle[place]].line)
            cycle = (*circle[first:], *circle[: first + 1])
            labels = [by_id[name].shown for name in cycle]
            yield Problem(
                message=f"The tasks depend on each other in a circle: {' → '.join(labels)}.",
                line=min(by_id[name].line for name in cycle),
                hint="Remove one of these dependencies.",
                cycle=cycle,
            )
            left = {name: needs for name, needs in left.items() if name not in walked}
        else:
            return


# --- commit subjects in the form of Conventional Commits

CONVENTIONAL = re.compile(r"(?P<type>[a-z]+)(?:\((?P<scope>[^()]{1,60})\))?!?: \S.*", re.DOTALL)
SUBJECT_CHARS, SCOPE_CHARS = 72, 24
_WORDS = re.compile(r"[a-z0-9]+")
_REMARK = re.compile(r"\s*\([^()]*\)")


def conventional_subject(title: str, text: str = "", *, scope: str = "", kind: str = "") -> str:
    """Return `type(scope): text` for a task. A title that has this form already is returned unchanged."""
    if CONVENTIONAL.fullmatch(title):
        return title
    words = _WORDS.findall(_REMARK.sub("", title.lower()))
    types = shipped_toml("review")["types"]
    kind = kind or next((types[word] for word in words if word in types), "feat")
    scope = scope or "-".join(words)
    while len(scope) > SCOPE_CHARS and "-" in scope:
        scope = scope.rpartition("-")[0]
    summary = one_line(text or title, SUBJECT_CHARS).rstrip(".")
    if len(summary) > 1 and summary[0].isupper() and summary[1].islower():  # not an abbreviation such as API
        summary = summary[0].lower() + summary[1:]
    head = f"{kind}({scope[:SCOPE_CHARS]})" if scope else kind
    return one_line(f"{head}: {summary}", SUBJECT_CHARS)


def subject_parts(subject: str) -> tuple[str | None, str | None]:
    """Return the type and the scope of a conventional subject."""
    match = CONVENTIONAL.fullmatch(subject)
    return (match["type"], match["scope"]) if match else (None, None)
