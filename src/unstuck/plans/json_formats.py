"""Plans in JSON that other tools keep.

- The formats are Auto-Claude's `implementation_plan.json`, Ralph's `prd.json` and Task Master's `tasks.json`.
- They are read as forgivingly as their makers read them.
- A run keeps the statuses current. It changes one value and nothing else.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from unstuck.model.plan import Plan, Problem, Task, conventional_subject, dependencies_on_all
from unstuck.model.text import one_line
from unstuck.model.verdict import Check
from unstuck.plans.blocks import Edit, apply_edits
from unstuck.plans.json_items import PlanContext, PlanItem, checks_in, command_checks, keys_of, read_item, statuses_of
from unstuck.plans.json_values import Node, places, set_value, strings, text_lines, word, words
from unstuck.toolchain.command_roles import effect
from unstuck.toolchain.shell import Runnable

# --- Auto-Claude's implementation plan: phases of subtasks

FORMAT = "implementation_plan.json"
COMMIT_TYPES: Mapping[str, str] = {"refactor": "refactor", "migration": "refactor", "investigation": "chore"}


def _plan(root: Node, context: PlanContext) -> Plan:
    phases, problems, concerns = _phases(root), list[Problem](), list[Problem]()
    facts, tasks = root.plain, list[Task]()
    kind = COMMIT_TYPES.get(word(facts.get("workflow_type")), "")
    joins: dict[str, list[str]] = {}
    phases_by_id: dict[str, list[PlanItem]] = {}
    for phase in phases:
        for name in {phase.id, word(phase.raw.get("id"), phase.raw.get("phase_id"))}:
            phases_by_id.setdefault(name, []).append(phase)
    waits = [_phase_dependencies(phase, phases_by_id, problems, joins) for phase in phases]
    for place, (phase, before) in enumerate(zip(phases, waits, strict=True), 1):
        earlier = list[str]()
        side_by_side = phase.raw.get("parallel_safe") is True
        for subtask in phase.parts:
            group = f"P{place}" if side_by_side and len(phase.parts) > 1 else None
            depends_on = before if side_by_side else (*before, *earlier[-1:])
            own = tuple(joins.get(subtask.id, ()))
            tasks.append(_subtask(context, subtask, kind, depends_on=depends_on, joins=own, group=group))
            concerns += (replace(concern, line=tasks[-1].line) for concern in _subtask_concerns(subtask))
            earlier.append(subtask.id)
    title = str(facts.get("feature") or facts.get("title") or "")
    plan = Plan(path="", format=FORMAT, title=title, tasks=tuple(tasks))
    return replace(plan, problems=tuple(problems), concerns=tuple(concerns))


def _phases(root: Node) -> tuple[PlanItem, ...]:
    """Return the phases, each with its subtasks as parts. Raise ValueError for a plan without phases."""
    listed = root.get("phases")
    if listed is None or not isinstance(listed.value, list):
        raise ValueError('it has no list "phases"')
    return tuple(_phase(node, place) for place, node in enumerate(listed.value, 1) if node.is_object)


def overall(statuses: Sequence[str]) -> tuple[str, str]:
    """Return the plan's own `status` and `planStatus` for the statuses of its subtasks."""
    if statuses and all(status == "completed" for status in statuses):
        return "human_review", "review"
    begun = any(status in ("completed", "in_progress", "failed") for status in statuses)
    return ("in_progress", "in_progress") if begun else ("backlog", "pending")


def _mark_plan(root: Node, statuses: Mapping[str, str], _tag: str) -> Iterator[Edit]:
    """Write the statuses of subtasks, and the plan's own status that follows from them."""
    written = statuses_of(FORMAT).word_of
    subtasks = [subtask for phase in _phases(root) for subtask in phase.parts]
    before = [written[subtask.status or "pending"] for subtask in subtasks]
    after = [written.get(statuses.get(subtask.id, ""), was) for subtask, was in zip(subtasks, before, strict=True)]
    for subtask, was, wanted in zip(subtasks, before, after, strict=True):
        yield from set_value(subtask.node, "status", wanted, was)
    for name, old, new in zip(("status", "planStatus"), overall(before), overall(after), strict=True):
        if root.get(name) is not None and old != new:
            yield from set_value(root, name, new, "")


def _phase(node: Node, place: int) -> PlanItem:
    raw = node.plain
    number = word(raw.get("phase")) or str(place)
    depends, listed = raw.get("depends_on"), node.get("subtasks", "chunks")
    subtasks = listed.objects if listed else ()
    return PlanItem(
        id=number,
        node=node,
        raw=raw,
        title=word(raw.get("name"), raw.get("title")) or f"Phase {number}",
        depends_on=tuple(words(depends if isinstance(depends, list) else [depends])),
        parts=tuple(read_item(FORMAT, subtask, f"{number}.{at}") for at, subtask in enumerate(subtasks, 1)),
    )


def _subtask(context: PlanContext, subtask: PlanItem, kind: str, **order: Any) -> Task:
    raw, title = subtask.raw, subtask.title
    files = [*strings(raw.get("files_to_create")), *strings(raw.get("files_to_modify"))]
    return context.task(
        FORMAT,
        subtask,
        checks=command_checks(raw.get("verification")),
        files=tuple(dict.fromkeys(files)),
        commit=conventional_subject(title, scope=word(raw.get("service")), kind=kind) if title else None,
        done=subtask.status == "complete",
        **order,
    )


def _subtask_concerns(subtask: PlanItem) -> Iterator[Problem]:
    name, verification = subtask.id, subtask.raw.get("verification")
    kind = word(verification.get("type")) if isinstance(verification, dict) else ""
    by_hand = subtask.status != "complete" and kind not in ("", "command") and not command_checks(verification)
    rows: tuple[tuple[object, str, str], ...] = (
        (not subtask.status,
         f"Subtask {name} has the unknown status {word(subtask.raw.get('status'))!r}; it is read as pending.",
         f"Use one of {', '.join(keys_of(FORMAT)['shown'])}."),
        (verification and not isinstance(verification, dict),
         f"The verification of subtask {name} is not read: it is not an object.",
         'Write it as {"type": "command", "run": "a command that fails while it is not done"}.'),
        (by_hand,
         f"Subtask {name} is verified by {kind}, which is not a command.", "Give it a command that fails while it is not done."),
        (not subtask.title, f"Subtask {name} has no description.", "Say what is to be done."),
    )  # fmt: skip
    return (Problem(message=message, hint=hint) for applies, message, hint in rows if applies)


def _phase_dependencies(
    phase: PlanItem, phases: Mapping[str, Sequence[PlanItem]], problems: list[Problem], joins: dict[str, list[str]]
) -> tuple[str, ...]:
    """Return the subtasks that a phase depends on. An empty phase stands for the phases that it depends on."""
    dependencies: dict[str, None] = {}
    seen, waiting = {id(phase)}, list(phase.depends_on)
    for name in waiting:  # grows while it is walked
        needed = phases.get(name, ())
        if not needed and name in phase.depends_on:
            message = f"{phase.title} depends on an unknown phase {name!r}."
            problems.append(Problem(message=message, hint="Correct the id, or add the phase."))
        for other in needed:
            if other is phase:
                problems.append(Problem(message=f"{phase.title} depends on itself.", hint="Remove that dependency."))
            elif id(other) not in seen:
                seen.add(id(other))
                dependencies.update(dict.fromkeys(dependencies_on_all([part.id for part in other.parts], joins)))
                waiting += () if other.parts else other.depends_on
    return tuple(dependencies)


# --- Ralph's stories, with `passes` as their status

PRD = "prd.json"
LAST = 1e9
TITLE_CHARS = 120


def is_prd(value: Any) -> bool:
    """Return whether a JSON value has a list of stories with `passes`."""
    lists = [value] if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    return any(map(_are_stories, lists))


def _are_stories(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(story, dict) for story in value) and bool(_flag(value))


def _flag(stories: Sequence[Any]) -> str:
    """Return the first member with true or false that any story has, or an empty string."""
    flags = keys_of(PRD)["flags"]
    return next((flag for flag in flags if any(isinstance(story.get(flag), bool) for story in stories)), "")


def _prd(root: Node, context: PlanContext) -> Plan:
    """Read the stories, the most urgent first."""
    ranked = sorted(_stories(root), key=lambda story: _rank(story.raw.get("priority")))
    facts = root.plain if root.is_object else {}
    title = word(next((facts[name] for name in keys_of(PRD)["title"] if facts.get(name)), None))
    tasks = tuple(_story(context, story) for story in ranked)
    return Plan(path="", format=PRD, title=title, tasks=tasks, gates=tuple(_gates(facts)))


def _mark_prd(root: Node, statuses: Mapping[str, str], _tag: str) -> Iterator[Edit]:
    """Write for each story whether it passes. A skipped story keeps its value."""
    stories = _stories(root)
    flag = _flag([story.raw for story in stories])
    for story in stories:
        if (status := statuses.get(story.id, "skipped")) != "skipped":
            yield from set_value(story.node, flag, status == "complete", story.raw.get(flag) is True)


def _stories(root: Node) -> Sequence[PlanItem]:
    """Return the stories. A story without an id is named after its place."""
    lists = [root] if isinstance(root.value, list) else list(root.value.values()) if root.is_object else []
    stories = next((node for node in lists if _are_stories(node.plain)), None)
    if stories is None:
        raise ValueError('it has no list of objects with "passes", "complete" or "done"')
    return [read_item(PRD, node, f"s{place}") for place, node in enumerate(stories.objects, 1)]


def _rank(priority: Any) -> float:
    if isinstance(priority, int | float) and not isinstance(priority, bool):
        return float(priority)
    text, ranks = word(priority).casefold(), keys_of(PRD)["priorities"]
    return float(text) if text.isdecimal() else ranks.get(text, ranks["medium"] if text else LAST)


def _story(context: PlanContext, story: PlanItem) -> Task:
    raw, keys = story.raw, keys_of(PRD)
    sentences = [line for key in keys["sentences"] for line in text_lines(raw.get(key))]
    return context.task(
        PRD,
        replace(story, title=one_line(story.title, TITLE_CHARS)),
        depends_on=tuple(dict.fromkeys(name for key in keys["depends"] for name in words(raw.get(key)))),
        checks=checks_in(raw, sentences, context.runnable),
        items=tuple(text_lines(raw.get("acceptanceCriteria"))),
        done=any(raw.get(flag) is True for flag in keys["flags"]),
    )


def _gates(facts: Mapping[str, Any]) -> Iterator[Check]:
    """Yield the commands that must pass after every story."""
    for key in keys_of(PRD)["gates"]:
        named = facts.get(key)
        for name, line in named.items() if isinstance(named, dict) else ():
            if isinstance(line, str) and line.strip() and not effect(line):
                yield Check(command=line, kind=keys_of(PRD)["kinds"].get(name.casefold(), "verify"))


# --- Task Master. A task with subtasks is done when they are. The subtasks are attempted, under ids such as 5.2.

TASK_MASTER = "task-master"
DEFAULT_TAG = "master"


def is_task_master(value: Any) -> bool:
    """Return whether a JSON value is a list of Task Master's tasks, by members that other formats lack."""
    if not isinstance(value, dict):
        return False
    tags = [value] if isinstance(value.get("tasks"), list) else [tag for tag in value.values() if isinstance(tag, dict)]
    listed = [tag["tasks"] for tag in tags if isinstance(tag.get("tasks"), list)]
    return bool(listed) and all(
        isinstance(task, dict) and "id" in task and "title" in task and ("status" in task or "dependencies" in task)
        for tasks in listed
        for task in tasks
    )


def _task_master(root: Node, context: PlanContext) -> Plan:
    """Read the tasks of the current tag."""
    items, chosen, unread = _items(root, context.tag)
    leaf_ids = {item.id: tuple(leaf.id for leaf in item.leaves) for item in items}
    joins: dict[str, list[str]] = {}
    waits = [(leaf, item, _dependencies(leaf, item, leaf_ids, joins)) for item in items for leaf in item.leaves]
    tasks = tuple(
        _task(context, leaf, item, depends_on=names, joins=tuple(joins.get(leaf.id, ()))) for leaf, item, names in waits
    )
    message = f"The tags {', '.join(unread)} are not read; {chosen} is."
    concerns = [Problem(message=message, line=1, hint="Choose with `task-master use-tag NAME`.")] if unread else []
    concerns += _task_concerns(context, items)
    return Plan(path="", format=TASK_MASTER, title=chosen, tasks=tasks, concerns=tuple(concerns))


def _mark_task_master(root: Node, statuses: Mapping[str, str], tag: str) -> Iterator[Edit]:
    """Write the statuses of tasks and subtasks. The status of a task with subtasks follows from theirs."""
    items, status_words = _items(root, tag)[0], statuses_of(TASK_MASTER)
    for item in items:
        after = []
        for leaf in item.leaves:
            wanted = status_words.word_of.get(statuses.get(leaf.id, ""), leaf.status_word)
            is_same = wanted == leaf.status_word or leaf.status == status_words.status_of[wanted] != "pending"
            if not is_same:
                yield from set_value(leaf.node, "status", wanted, leaf.status_word)
            after.append(leaf.status if is_same else status_words.status_of[wanted])
        if item.parts and any(leaf.id in statuses for leaf in item.leaves):
            yield from set_value(item.node, "status", _parent_status(item, after), item.status_word)


def _parent_status(item: PlanItem, parts: Sequence[str]) -> str:
    """Return the word for the status of a task by those of its subtasks."""
    settled = [status in ("complete", "skipped") for status in parts]
    if all(settled):
        return item.status_word if item.status == "complete" else "done"
    if any(settled) or "running" in parts:
        return "in-progress"
    return "pending" if item.status == "complete" else item.status_word


def _items(root: Node, tag: str) -> tuple[tuple[PlanItem, ...], str, tuple[str, ...]]:
    """Return the tasks of the current tag, its name, and the names of the other tags."""
    if not root.is_object:
        raise ValueError("it holds no object")
    listed = root.get("tasks")
    if listed is not None:
        return tuple(map(_item, listed.objects)), "", ()
    tags = {name: tasks for name, node in root.value.items() if (tasks := node.get("tasks")) is not None}
    if not tags:
        raise ValueError('it has no list "tasks"')
    chosen = next((name for name in (tag, DEFAULT_TAG) if name in tags), next(iter(tags)))
    return tuple(map(_item, tags[chosen].objects)), chosen, tuple(name for name in tags if name != chosen)


def _item(node: Node, parent_id: str = "", siblings: Sequence[str] = ()) -> PlanItem:
    """Read a task or a subtask. A bare number that a subtask depends on is first looked for beside it."""
    raw, nested = node.plain, node.get("subtasks") if not parent_id else None
    own, subtasks = word(raw.get("id")), nested.objects if nested else ()
    subtask_ids = [word(subtask.plain.get("id")) for subtask in subtasks]
    dependencies = words(raw.get("dependencies"))
    return read_item(
        TASK_MASTER,
        node,
        "",
        id=own if not parent_id or own.startswith(f"{parent_id}.") else f"{parent_id}.{own}",
        depends_on=tuple(f"{parent_id}.{name}" if name in siblings else name for name in dependencies),
        parts=tuple(_item(subtask, own, subtask_ids) for subtask in subtasks),
    )


def _dependencies(
    leaf: PlanItem, item: PlanItem, leaf_ids: Mapping[str, tuple[str, ...]], joins: dict[str, list[str]]
) -> tuple[str, ...]:
    """Return the ids that a task depends on. A task with subtasks stands for all of them except the task itself."""
    dependencies: dict[str, None] = {}
    for name in (*leaf.depends_on, *(item.depends_on if leaf is not item else ())):
        needed = leaf_ids.get(name, (name,))
        dependencies.update(dict.fromkeys(needed if leaf.id in needed else dependencies_on_all(needed, joins)))
    return tuple(name for name in dependencies if name != leaf.id or name in leaf.depends_on)


def _task(context: PlanContext, leaf: PlanItem, item: PlanItem, **order: Any) -> Task:
    is_set_aside = item.status == "skipped"  # Task Master leaves the subtasks of a cancelled task pending
    return context.task(
        TASK_MASTER,
        leaf,
        None if leaf is item else item,
        checks=checks_in(leaf.raw, [word(leaf.raw.get("testStrategy"))], context.runnable),
        done=leaf.status == "complete",
        skipped=leaf.status == "skipped" or (is_set_aside and leaf.status != "complete"),
        **order,
    )


def _task_concerns(context: PlanContext, items: Sequence[PlanItem]) -> Iterator[Problem]:
    pairs = [(item, leaf) for item in items for leaf in item.leaves]
    for item, leaf in pairs:
        line = context.line(leaf)
        put_aside = next((task for task in (leaf, item) if task.status == "skipped"), None)
        if not leaf.status:
            message = f"Task {leaf.id} has the unknown status {leaf.status_word!r}; it is read as pending."
            hint = f"Use one of {', '.join(keys_of(TASK_MASTER)['shown'])}."
            yield Problem(message=message, line=line, hint=hint)
        elif put_aside is not None and leaf.status != "complete":
            message = f"Task {put_aside.id} is {put_aside.status_word}; {leaf.id} is left alone."
            yield Problem(message=message, line=line, hint="Set it to pending to have it done.")


# --- The table of all formats

Reader = Callable[[Node, PlanContext], Plan]
Marker = Callable[[Node, Mapping[str, str], str], Iterable[Edit]]
FORMATS: Mapping[str, tuple[str, Reader, Marker]] = {
    FORMAT: ("a plan", _plan, _mark_plan),
    PRD: ("a list of stories", _prd, _mark_prd),
    TASK_MASTER: ("a list of tasks", _task_master, _mark_task_master),
}
"""The noun of each format for messages, its reader, and its function that writes statuses."""


def read(name: str, text: str, path: str, *, tag: str = "", runnable: Runnable = bool) -> Plan:
    """Read a plan. Its problems and concerns name everything that is wrong with it, even invalid JSON."""
    context = PlanContext([place for place, char in enumerate(text) if char == "\n"], tag, runnable)
    noun, reader, _ = FORMATS[name]
    try:
        return replace(reader(places(text), context), path=path)
    except (ValueError, RecursionError) as error:
        problem = Problem(message=f"The file is not {noun} in JSON: {error}.", hint="Correct the JSON.")
        return Plan(path=path, format=name, tasks=(), problems=(problem,))


def mark(name: str, text: str, statuses: Mapping[str, str], tag: str = "") -> str:
    """Return the text with the statuses of tasks written into it. Raise ValueError for an unreadable text."""
    return apply_edits(text, list(FORMATS[name][2](places(text), statuses, tag)))


UNKNOWN = (
    'a JSON file without "phases" (implementation_plan.json), "tasks" with id, title and status (task-master), '
    'or stories with "passes" (prd.json)'
)


def format_of(value: Any) -> str:
    """Return the format of a JSON value, or a sentence for an unknown one."""
    if isinstance(value, dict) and "phases" in value:
        return FORMAT
    return TASK_MASTER if is_task_master(value) else PRD if is_prd(value) else UNKNOWN
