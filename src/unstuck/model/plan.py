"""The plan as values: tasks, their checks, their order, and what makes a plan invalid."""

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
"""Steps that start something, look at it and stop it again; and their fix tasks."""


ONLY_CHECKS = re.compile(
    r"\W*(?:(?:final|last)\s+)?checkpoint\b|ensure (?:that )?all (?:the )?(?:unit )?tests (?:still )?pass\b",
    re.IGNORECASE,
)
"""Titles of tasks that ask for nothing but a look, as Kiro writes them."""


CHECKPOINT = re.compile(r"V(?:E?\d+|F)", re.ASCII)
"""Ids of tasks that only check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The unit that is attempted, verified and landed."""

    id: str
    title: str
    line: int = 1
    body: str = ""
    """The task's own text in the plan, as the agent will read it."""
    depends_on: tuple[str, ...] = ()
    """Ids, and the names of joins."""
    joins: tuple[str, ...] = ()
    """The joins that it belongs to: sets of tasks that others wait for as a whole, under a name that no task can have."""
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
    skipped: bool = False
    """Settled by a person, who marked it so in the plan before the run began."""
    label: str = ""
    """How the plan writes the id, where that differs: phase `2a` is written 2A."""
    items: tuple[str, ...] = ()
    """The lines of its checklist."""
    parallel_with: tuple[str, ...] = ()
    """Tasks that may run at its side, because both plans say so and nothing speaks against it."""
    estimate: str = ""
    digest: str = ""
    """A hash of all that a person could change in it, where its text also holds ticks of ours."""

    @property
    def shown(self) -> str:
        """The id as people write it."""
        return self.label or self.id

    @property
    def subject(self) -> str:
        """The first line of its commit."""
        return self.commit or self.title

    def problem(self, message: str, hint: str) -> "Problem":
        """Tell of something wrong with it, where it stands."""
        return Problem(message=message, line=self.line, hint=hint)

    @property
    def only_checks(self) -> bool:
        """Whether it checks what was done before it: [VERIFY], an id such as V4, VE1, VF, or a checkpoint by its title."""
        if "VERIFY" in self.markers:
            return True
        named = CHECKPOINT.fullmatch(self.id) is not None or ONLY_CHECKS.match(self.title) is not None
        return self.fixes is None and named


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
    cycle: tuple[str, ...] = ()
    """The tasks that depend on each other in a circle, the first one again at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The document: tasks in the order of the text."""

    path: str
    format: str
    tasks: Sequence[Task]
    title: str = ""
    concerns: tuple[Problem, ...] = ()
    """Worth telling a person; never stops a run."""
    problems: tuple[Problem, ...] = ()
    """What the reader could not make sense of; any of these stops a run before it starts."""
    gates: tuple[Check, ...] = ()
    """Checks that the plan wants to hold after every task."""

    @property
    def noun(self) -> str:
        """What its tasks are called."""
        return "phase" if self.format == "superplan" else "task"

    @property
    def phased(self) -> bool:
        """Whether its tasks say themselves what they depend on and what may run beside them."""
        return self.format in ("superplan", "implementation_plan.json", "task-master", "prd.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Tasks that are ready together: side by side, or one after the other."""

    tasks: tuple[str, ...]
    parallel: bool


MAX_NAMED_DEPENDENCIES = 20
"""So many tasks are named one by one by those that wait for them: what thousands wait for is named once."""


def dependencies_on_all(names: Sequence[str], joins: dict[str, list[str]]) -> tuple[str, ...]:
    """Return what a task depends on that waits for all of these; a long row becomes a join, noted with each member."""
    if len(names) <= MAX_NAMED_DEPENDENCIES:
        return tuple(names)
    join = f"all from {names[0]} to {names[-1]}"
    for name in names if join not in joins.get(names[0], ()) else ():
        joins.setdefault(name, []).append(join)
    return (join,)


def members_of_joins(tasks: Iterable[Task]) -> dict[str, list[str]]:
    """Return the joins of tasks, each with its members."""
    found: dict[str, list[str]] = {}
    for task in tasks:
        for join in task.joins:
            found.setdefault(join, []).append(task.id)
    return found


def dependency_graph(tasks: Sequence[Task]) -> dict[str, Sequence[str]]:
    """Return what each task depends on, and each join."""
    return {**{task.id: task.depends_on for task in tasks}, **members_of_joins(tasks)}


def always_gets_fix_tasks(task: Task) -> bool:
    """Whether a task is repaired by fix tasks even outside recovery mode: marked so, or an end-to-end step (VE1)."""
    return "RECOVERY" in task.markers or END_TO_END_ID.fullmatch(task.id) is not None


def cleans_up(task: Task) -> bool:
    """Whether a task stops what end-to-end steps have started, and so must run whatever became of them.

    It is told by its title, or by the number that smart-ralph gives it.
    """
    words = re.search(r"(?i)\b(?:clean ?-?up|tear ?-?down)\b", task.title)
    return END_TO_END_ID.fullmatch(task.id) is not None and (words is not None or task.id.partition(".")[0] == "VE3")


def plan_problems(plan: Plan) -> tuple[Problem, ...]:
    """List everything that makes the plan impossible to run, in the order of the text."""
    found = [*plan.problems, *_ids(plan.tasks), *_dependencies(plan)]
    if not plan.tasks and not found:
        found.append(
            Problem(message="The plan has no tasks.", hint="A task is a line such as `- [ ] 1.1 Add a parser`.")
        )
    found.extend(_cycles(plan.tasks))
    return tuple(sorted(found, key=lambda problem: problem.line or 0))


def waves_of(tasks: Sequence[Task]) -> tuple[tuple[str, ...], ...]:
    """Split the tasks into waves: each depends only on earlier ones. The order of the text is kept."""
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
    """Return the tasks that are ready; a join is passed as soon as all of its members are done."""
    found: list[str] = []
    while ready := sorter.get_ready():
        found += (name for name in ready if name in tasks)
        sorter.done(*(name for name in ready if name not in tasks))
    return found


def find_task_id(tasks: Iterable[Task], text: str) -> str | None:
    """Return the id of the task that a person means: phase `2a` is also 2A and Phase 2A."""
    listed = list(tasks)
    if any(task.id == text for task in listed):
        return text
    wanted = text.strip().casefold()
    wanted = wanted.removeprefix("phase").strip() or wanted
    return next((task.id for task in listed if wanted in (task.id.casefold(), task.shown.casefold())), None)


def may_run_together(one: Task, other: Task) -> bool:
    """Whether the two may run at the same time."""
    if one.group is not None and one.group == other.group:
        return True
    return other.id in one.parallel_with and one.id in other.parallel_with


def execution_batches(plan: Plan) -> tuple[Batch, ...]:
    """Return the batches in which a plan is run: where phases say what may run beside them, waves cut into sets of those."""
    if not plan.phased:
        return tuple(_as_scheduled(plan.tasks))
    known = {task.id: task for task in plan.tasks}
    found: list[Batch] = []
    for wave in waves_of(plan.tasks):
        sets: list[list[Task]] = []
        groups: dict[str | None, list[Task]] = {}
        for task in (known[name] for name in wave):
            fits = (one for one in sets if task.parallel_with and all(may_run_together(task, other) for other in one))
            fitting = groups.get(task.group) or next(fits, None)
            if fitting is None:
                fitting = []
                sets.append(fitting)
            fitting.append(task)
            if task.group is not None and not task.parallel_with:
                groups[task.group] = fitting
        for one in sets:
            parallel = any(may_run_together(task, other) for task, other in pairwise(one))
            found.append(Batch(tasks=tuple(task.id for task in one), parallel=parallel))
    return tuple(found)


def _as_scheduled(tasks: Sequence[Task]) -> Iterator[Batch]:
    """Yield what runs side by side, and what runs one after the other in between: always the first that may start."""
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
            break  # nothing but joins was left
        first = heappop(order)
        if first not in ready:
            continue  # it went with its group
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


def _ids(tasks: Iterable[Task]) -> Iterable[Problem]:
    seen: dict[str, Task] = {}
    for task in tasks:
        if TASK_ID.fullmatch(task.id) is None:
            hint = "Use up to 64 letters, digits, '.', '-' or '_', beginning with a letter or digit."
            yield task.problem(f"The task id {task.id!r} cannot be used.", hint)
        first = seen.setdefault(task.id.casefold(), task)
        if first is not task:
            message = f"The task id {task.id} is used twice; line {first.line} has it first."
            yield task.problem(message, "Give each task an id of its own.")


def _dependencies(plan: Plan) -> Iterable[Problem]:
    known = {task.id for task in plan.tasks} | members_of_joins(plan.tasks).keys()
    noun = plan.noun
    for task in plan.tasks:
        for name in task.depends_on:
            if name == task.id:
                yield task.problem(f"{noun.capitalize()} {task.shown} depends on itself.", "Remove that dependency.")
            elif name not in known:
                message = f"{noun.capitalize()} {task.shown} depends on an unknown {noun} {name!r}."
                yield task.problem(message, f"Correct the id, or add the {noun}.")


def _cycles(tasks: Sequence[Task]) -> Iterable[Problem]:
    """Find circles until none is left that shares no task with one already found."""
    known = {task.id: task for task in tasks}
    left: dict[str, Sequence[str]] = {**dependency_graph(tasks), **dict.fromkeys((task.id for task in tasks), ())}
    for task in tasks:
        left[task.id] = (*left[task.id], *task.depends_on)  # an id may be there twice, by a mistake told already
    while True:
        edges = {name: [other for other in needs if other in left and other != name] for name, needs in left.items()}
        try:
            TopologicalSorter(edges).prepare()
        except CycleError as error:
            walked = list(reversed(error.args[1]))[:-1]
            circle = [name for name in walked if name in known]
            first = min(range(len(circle)), key=lambda place: known[circle[place]].line)
            cycle = (*circle[first:], *circle[: first + 1])
            shown = [known[name].shown for name in cycle]
            yield Problem(
                message=f"The tasks depend on each other in a circle: {' → '.join(shown)}.",
                line=min(known[name].line for name in cycle),
                hint="Remove one of these dependencies.",
                cycle=cycle,
            )
            left = {name: needs for name, needs in left.items() if name not in walked}
        else:
            return


# --- commit subjects in the conventional form, from what a plan says

CONVENTIONAL = re.compile(r"(?P<type>[a-z]+)(?:\((?P<scope>[^()]{1,60})\))?!?: \S.*", re.DOTALL)
SUBJECT_CHARS, SCOPE_CHARS = 72, 24
_WORDS = re.compile(r"[a-z0-9]+")
_REMARK = re.compile(r"\s*\([^()]*\)")


def conventional_subject(title: str, text: str = "", *, scope: str = "", kind: str = "") -> str:
    """Write `type(scope): text` for a task; a title that is in this form already stays as it is."""
    if CONVENTIONAL.fullmatch(title):
        return title
    words = _WORDS.findall(_REMARK.sub("", title.lower()))
    types = shipped_toml("review")["types"]
    kind = kind or next((types[word] for word in words if word in types), "feat")
    scope = scope or "-".join(words)
    while len(scope) > SCOPE_CHARS and "-" in scope:
        scope = scope.rpartition("-")[0]
    said = one_line(text or title, SUBJECT_CHARS).rstrip(".")
    plain = len(said) > 1 and said[0].isupper() and said[1].islower()
    head = f"{kind}({scope[:SCOPE_CHARS]})" if scope else kind
    return one_line(f"{head}: {said[0].lower() + said[1:] if plain else said}", SUBJECT_CHARS)


def subject_parts(subject: str) -> tuple[str | None, str | None]:
    """Return the type and the scope of a subject in the conventional form."""
    found = CONVENTIONAL.fullmatch(subject)
    return (found["type"], found["scope"]) if found else (None, None)
