"""Lists of tasks in JSON that other tools keep: the stories of Ralph's `prd.json`, and Task Master's `tasks.json`, with tags or without.

Statuses are kept current: one value changes, and nothing else. A task with subtasks is done when they are: the subtasks are
what is attempted, under ids such as 5.2.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unstuck.plans.editor import Edit, apply
from unstuck.plans.json_plans import Node, make_task, places, read_json, set_value, strings, told_checks, word, words
from unstuck.plans.plan import Check, CheckKind, Plan, Problem, Task
from unstuck.tell import one_line
from unstuck.tools import Runnable, effect

# --- Ralph's stories, which say with `passes` whether they hold

PRD = "prd.json"
PRIORITIES = {"critical": 0.0, "high": 1.0, "medium": 2.0, "normal": 2.0, "low": 3.0}
LAST = 1e9
DEPENDS = ("dependencies", "dependsOn", "depends_on", "blockedBy")
SENTENCES = ("acceptanceCriteria", "acceptance_criteria", "criteria", "steps", "notes")
FLAGS = ("passes", "complete", "completed", "done")
"""How a story says that it holds; the first that any of them has is the list's."""
_PRD_OURS = (*FLAGS, "completedAt", "completed_at")
GATES = ("verificationCommands", "verification_commands")
KINDS: Mapping[str, CheckKind] = {
    "typecheck": "types", "types": "types", "lint": "lint", "format": "format", "test": "test", "tests": "test", "build": "build",
}  # fmt: skip
TITLE_CHARS = 120


def is_prd(value: Any) -> bool:
    """Tell whether a JSON value holds stories that say whether they pass."""
    return any(map(_are_stories, _lists(value)))


def _lists(value: Any) -> list[Any]:
    return [value] if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []


def _are_stories(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value) and bool(_flag(value))


def _flag(stories: Sequence[Any]) -> str:
    return next((flag for flag in FLAGS if any(isinstance(one.get(flag), bool) for one in stories)), "")


def read_prd(text: str, path: str, _tag: str, runnable: Runnable) -> Plan:
    """Read a whole plan, the most urgent story first; everything wrong with it is in its problems."""

    def stories(root: Node) -> Plan:
        ranked = sorted(_stories(root), key=lambda story: _rank(story[1].plain.get("priority")))
        facts = root.plain if root.is_object else {}
        title = word(facts.get("project") or facts.get("projectName") or facts.get("feature") or facts.get("title"))
        tasks = tuple(_story(text, name, node, runnable) for name, node in ranked)
        return Plan(path=path, format=PRD, title=title, tasks=tasks, gates=tuple(_gates(facts)))

    return read_json(text, path, PRD, "a list of stories", stories)


def mark_prd(text: str, statuses: Mapping[str, str], _tag: str = "") -> tuple[str, frozenset[str]]:
    """Say of each story whether it passes; what a person skipped keeps what it has."""
    stories = _stories(places(text))
    flag = _flag([node.plain for _, node in stories])
    edits = [
        edit
        for name, node in stories
        if statuses.get(name, "skipped") != "skipped"
        for edit in set_value(node, flag, statuses[name] == "complete", node.plain.get(flag) is True)
    ]
    return apply(text, edits), frozenset(name for name, _ in stories)


def _stories(root: Node) -> Sequence[tuple[str, Node]]:
    """Return each story with its id; one without is called after its place."""
    lists = [root] if isinstance(root.value, list) else list(root.value.values()) if root.is_object else []
    found = next((one for one in lists if _are_stories(one.plain)), None)
    if found is None:
        raise ValueError('it has no list of objects with "passes", "complete" or "done"')
    return [(word(node.plain.get("id")) or f"s{place}", node) for place, node in enumerate(found.objects, 1)]


def _rank(priority: Any) -> float:
    if isinstance(priority, int | float) and not isinstance(priority, bool):
        return float(priority)
    said = word(priority).casefold()
    return float(said) if said.isdecimal() else PRIORITIES.get(said, LAST if not said else PRIORITIES["medium"])


def _story(text: str, name: str, node: Node, runnable: Runnable) -> Task:
    raw = node.plain
    return make_task(
        text,
        node,
        {key: value for key, value in raw.items() if key not in _PRD_OURS},
        id=name,
        title=one_line(word(raw.get("title"), raw.get("name"), raw.get("description")), TITLE_CHARS) or f"Story {name}",
        depends_on=tuple(dict.fromkeys(one for key in DEPENDS for one in words(raw.get(key)))),
        checks=told_checks(raw, [line for key in SENTENCES for line in _lines(raw.get(key))], runnable),
        items=tuple(_lines(raw.get("acceptanceCriteria"))),
        done=any(raw.get(flag) is True for flag in FLAGS),
    )


def _gates(facts: Mapping[str, Any]) -> Iterator[Check]:
    """Return the commands that must hold after every story, by what they are called."""
    for key in GATES:
        named = facts.get(key)
        for name, line in named.items() if isinstance(named, dict) else ():
            if isinstance(line, str) and line.strip() and not effect(line):
                yield Check(command=line, kind=KINDS.get(name.casefold(), "verify"))


def _lines(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else strings(value)


# --- Task Master

TASK_MASTER = "task-master"
DEFAULT_TAG = "master"
STATUSES: Mapping[str, str] = {
    "pending": "pending",
    "todo": "pending",
    "in-progress": "running",
    "blocked": "pending",
    "done": "complete",
    "completed": "complete",
    "review": "skipped",
    "deferred": "skipped",
    "cancelled": "skipped",
}
"""Their words, and what we make of them; what a person has put aside is left alone."""
WRITTEN: Mapping[str, str] = {
    "pending": "pending",
    "running": "in-progress",
    "verifying": "in-progress",
    "waiting": "in-progress",
    "blocked": "pending",
    "complete": "done",
    "stuck": "blocked",
}
"""Our statuses as they know them; what a person skipped keeps the word it has."""
_OURS = ("status", "subtasks", "updatedAt", "complexity", "complexityScore")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A task or a subtask of theirs, with the ids of what it waits for."""

    id: str
    node: Node
    raw: Mapping[str, Any]
    depends_on: tuple[str, ...]
    parts: tuple["Item", ...] = ()

    @property
    def status(self) -> str:
        return word(self.raw.get("status")).casefold().replace("_", "-").replace(" ", "-") or "pending"

    @property
    def leaves(self) -> tuple["Item", ...]:
        return self.parts or (self,)


def is_task_master(value: Any) -> bool:
    """Tell whether a JSON value is a list of Task Master's tasks, by what others do not have."""
    listed = _tags(value)
    return bool(listed) and all(
        isinstance(one, dict) and "id" in one and "title" in one and ("status" in one or "dependencies" in one)
        for tasks in listed.values()
        for one in tasks
    )


def _tags(value: Any) -> dict[str, list[Any]]:
    if not isinstance(value, dict):
        return {}
    if isinstance(value.get("tasks"), list):
        return {"": value["tasks"]}
    return {
        name: one["tasks"]
        for name, one in value.items()
        if isinstance(one, dict) and isinstance(one.get("tasks"), list)
    }


def read_task_master(text: str, path: str, tag: str, runnable: Runnable) -> Plan:
    """Read the tasks of a tag; everything wrong with the plan is in its problems and concerns."""

    def tasks(root: Node) -> Plan:
        items, chosen, others = _items(root, tag)
        known = {item.id: tuple(leaf.id for leaf in item.leaves) for item in items}
        made = tuple(_task(text, leaf, item, known, runnable) for item in items for leaf in item.leaves)
        aside = f"The tags {', '.join(others)} are not read; {chosen} is." if others else ""
        told = (Problem(message=aside, line=1, hint="Choose with `task-master use-tag NAME`."),) if aside else ()
        return Plan(path=path, format=TASK_MASTER, tasks=made, concerns=(*told, *_odd(text, items)), title=chosen)

    return read_json(text, path, TASK_MASTER, "a list of tasks", tasks)


def mark_task_master(text: str, statuses: Mapping[str, str], tag: str = "") -> tuple[str, frozenset[str]]:
    """Write the statuses of tasks, and of those above them that follow; no other byte changes."""
    items = _items(places(text), tag)[0]
    edits, known = list[Edit](), set[str]()
    for item in items:
        after = []
        for leaf in item.leaves:
            wanted = WRITTEN.get(statuses.get(leaf.id, ""), "")
            same = not wanted or STATUSES.get(leaf.status) == STATUSES[wanted] != "pending" or leaf.status == wanted
            edits += () if same else set_value(leaf.node, "status", wanted, leaf.status)
            after.append(leaf.status if same else wanted)
            known.add(leaf.id)
        if item.parts and any(leaf.id in statuses for leaf in item.leaves):
            edits += set_value(item.node, "status", _above(item.status, after), item.status)
    return apply(text, edits), frozenset(known)


def _above(before: str, parts: Sequence[str]) -> str:
    """Return the status of a task by those of its subtasks."""
    settled = [STATUSES.get(one, "pending") in ("complete", "skipped") for one in parts]
    if all(settled):
        return "done" if STATUSES.get(before) != "complete" else before
    begun = any(settled) or any(STATUSES.get(one) == "running" for one in parts)
    return "in-progress" if begun else "pending" if STATUSES.get(before) == "complete" else before


def _items(root: Node, tag: str) -> tuple[tuple[Item, ...], str, tuple[str, ...]]:
    """Return the tasks of the tag that is current, its name, and those of the other tags."""
    if not root.is_object:
        raise ValueError("it holds no object")
    listed = root.get("tasks")
    if listed is not None:
        return tuple(map(_item, listed.objects)), "", ()
    tags = {name: found for name, node in root.value.items() if (found := node.get("tasks")) is not None}
    if not tags:
        raise ValueError('it has no list "tasks"')
    chosen = next((name for name in (tag, DEFAULT_TAG) if name in tags), next(iter(tags)))
    return tuple(map(_item, tags[chosen].objects)), chosen, tuple(name for name in tags if name != chosen)


def _item(node: Node) -> Item:
    raw, nested = node.plain, node.get("subtasks")
    name, below = word(raw.get("id")), nested.objects if nested else ()
    siblings = {word(one.plain.get("id")) for one in below}
    parts = tuple(_part(name, one, siblings) for one in below)
    return Item(id=name, node=node, raw=raw, depends_on=tuple(words(raw.get("dependencies"))), parts=parts)


def _part(above: str, node: Node, siblings: set[str]) -> Item:
    """Read a subtask: a bare number that it waits for is a subtask beside it, if there is one."""
    raw = node.plain
    own = word(raw.get("id"))
    depends = (f"{above}.{one}" if one in siblings else one for one in words(raw.get("dependencies")))
    name = own if own.startswith(f"{above}.") else f"{above}.{own}"
    return Item(id=name, node=node, raw=raw, depends_on=tuple(depends))


def _task(text: str, leaf: Item, item: Item, known: Mapping[str, tuple[str, ...]], runnable: Runnable) -> Task:
    """Make the task; what waits for a task with subtasks waits for all of them."""
    waits = (*leaf.depends_on, *(item.depends_on if leaf is not item else ()))
    depends = (below for name in waits for below in known.get(name, (name,)))
    shown = {name: value for name, value in leaf.raw.items() if name not in _OURS}
    above = {name: value for name, value in item.raw.items() if name not in _OURS}
    body = shown if leaf is item else {**shown, "partOf": above}
    state = STATUSES.get(leaf.status, "pending")
    aside = STATUSES.get(item.status) == "skipped"  # Task Master leaves the subtasks of a cancelled task pending
    return make_task(
        text,
        leaf.node,
        body,
        id=leaf.id,
        title=word(leaf.raw.get("title"), leaf.raw.get("description")) or f"Task {leaf.id}",
        depends_on=tuple(dict.fromkeys(name for name in depends if name != leaf.id or name in leaf.depends_on)),
        checks=told_checks(leaf.raw, [word(leaf.raw.get("testStrategy"))], runnable),
        done=state == "complete",
        skipped=state == "skipped" or (aside and state != "complete"),
    )


def _odd(text: str, items: Sequence[Item]) -> Iterator[Problem]:
    for item, leaf in ((above, leaf) for above in items for leaf in above.leaves):
        line = text.count("\n", 0, leaf.node.start) + 1
        put_aside = next((one for one in (leaf, item) if STATUSES.get(one.status) == "skipped"), None)
        if leaf.status not in STATUSES:
            yield Problem(
                message=f"Task {leaf.id} has the unknown status {leaf.status!r}; it is read as pending.",
                line=line,
                hint=f"Use one of {', '.join(STATUSES)}.",
            )
        elif put_aside is not None and STATUSES[leaf.status] != "complete":
            whose = f"Task {leaf.id}" if put_aside is leaf else f"Task {leaf.id} is part of {item.id}, which"
            yield Problem(
                message=f"{whose} is {put_aside.status} and is left alone.",
                line=line,
                hint="Set it to pending to have it done.",
            )
