"""Plans in JSON that other tools keep, by the words in `catalog/json_plans.toml`.

Auto-Claude's `implementation_plan.json`, the stories of Ralph's `prd.json`, and Task Master's `tasks.json`, with tags or without. They are read as forgivingly as their makers do. Statuses are kept current: one value changes, and nothing else.
"""

import json
import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from unstuck.model.plan import Plan, Problem, Task, conventional_subject, dependencies_on_all
from unstuck.model.text import one_line
from unstuck.model.verdict import Check
from unstuck.plans.blocks import Edit, apply_edits
from unstuck.plans.fields import code_spans
from unstuck.shipped import shipped_toml
from unstuck.toolchain.command_roles import effect, only_checks
from unstuck.toolchain.shell import Runnable, can_fail, first_word

_BLANKS = re.compile(r"[ \t\r\n]*")


_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its place; of an object's members, or a list's, each is a node again."""

    value: Any
    start: int
    end: int

    def get(self, *names: str) -> "Node | None":
        """Return an object's member under the first of these names that it has."""
        return next((self.value[name] for name in names if name in self.value), None) if self.is_object else None

    @property
    def is_object(self) -> bool:
        return isinstance(self.value, dict)

    @property
    def objects(self) -> tuple["Node", ...]:
        """The objects of a list."""
        return tuple(one for one in self.value if one.is_object) if isinstance(self.value, list) else ()

    @property
    def plain(self) -> Any:
        """The value without places."""
        if self.is_object:
            return {name: one.plain for name, one in self.value.items()}
        return [one.plain for one in self.value] if isinstance(self.value, list) else self.value


def places(text: str) -> Node:
    """Read a text; one that is no JSON raises ValueError."""
    json.loads(text.removeprefix("\ufeff"))
    return _value(text, _blank(text, int(text.startswith("\ufeff"))))


def _value(text: str, at: int) -> Node:
    start, closer = at, {"{": "}", "[": "]"}.get(text[at])
    if closer is None:
        value, end = _DECODER.raw_decode(text, at)
        return Node(value, at, end)
    names, inner = list[str](), list[Node]()
    at = _blank(text, at + 1)
    while text[at] != closer:
        if closer == "}":
            name, at = _DECODER.raw_decode(text, at)
            names.append(name)
            at = _blank(text, _blank(text, at) + 1)
        inner.append(_value(text, at))
        at = _blank(text, inner[-1].end)
        at = _blank(text, at + 1) if text[at] == "," else at
    return Node(dict(zip(names, inner, strict=True)) if closer == "}" else inner, start, at + 1)


def _blank(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def set_value(node: Node, name: str, wanted: object, read_as: object) -> Iterator[Edit]:
    """Change a member of an object, or write it as the first one; nothing where it reads so already."""
    member = node.get(name)
    if wanted == read_as:
        return
    if member is not None:
        yield Edit(member.start, member.end, json.dumps(wanted))
    else:
        rest = ", " if node.value else ""
        yield Edit(node.start + 1, node.start + 1, f'"{name}": {json.dumps(wanted)}{rest}')


def strings(value: Any) -> list[str]:
    """Return what of a list is text."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def words(value: Any) -> list[str]:
    """Return the words of a list, which may be written as numbers."""
    return [said for one in value if (said := word(one))] if isinstance(value, list) else []


def word(*values: Any) -> str:
    """Return the first of these that is a word; it may be written as a number."""
    for value in values:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # noqa: PLW2901  # 1.0 is written 1
        if isinstance(value, str | int | float) and not isinstance(value, bool) and (said := str(value).strip()):
            return said
    return ""


NAMES = ("verify", "verification", "verifyCommand", "testCommand", "test_command", "command", "preCommit")
"""Members that hold commands."""


PROSE = frozenset({"verify", "verification"})
"""Those of them in which people also write what somebody should look at."""


_VERIFY = re.compile(r"\W*(?:Verify|Verification)\W*:", re.IGNORECASE)


def told_checks(raw: Mapping[str, Any], sentences: Iterable[str], runnable: Runnable) -> tuple[Check, ...]:
    """Return what checks a task: the commands under their own names as they are; of sentences, what only checks."""
    found: dict[str, None] = {}
    for name in NAMES:
        for text in _texts(raw.get(name)):
            whole = name not in PROSE or runnable(first_word(text)) or only_checks(text)
            found.update(dict.fromkeys(code_spans(text) or [text] * whole))
    for line in (line for text in sentences for line in text.splitlines()):
        asked = _VERIFY.match(line) is not None
        found.update((span, None) for span in code_spans(line) if asked or only_checks(span))
    return tuple(Check(command=command) for command in found if can_fail(command))


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        value = value.get("command") or value.get("run")
    return [one for one in (strings(value) if isinstance(value, list) else [word(value)]) if one]


class Words(NamedTuple):
    """The statuses of a format."""

    between: str
    known: Mapping[str, str]
    """Its words, and what they are to us."""
    written: Mapping[str, str]
    """Our statuses in its words; what a person skipped is not among them."""

    def of(self, raw: Mapping[str, Any]) -> str:
        """Return the word that a task has for its status, in one spelling."""
        said = word(raw.get("status")).casefold() or "pending"
        return said.translate({ord(one): self.between for one in " -_"})


def table(name: str) -> Mapping[str, Any]:
    """Return all that the catalogue has on a format."""
    found: Mapping[str, Any] = shipped_toml("json_plans")[name]
    return found


@cache
def statuses_of(name: str) -> Words:
    """Return the statuses of a format."""
    rows = {status: said.split("|") for status, said in table(name)["statuses"].items()}
    first = {status: said[0] for status, said in rows.items() if status != "skipped"}
    written = {**first, "verifying": first["running"], "waiting": first["running"], **table(name).get("written", {})}
    return Words(table(name)["between"], {one: status for status, said in rows.items() for one in said}, written)


class Given(NamedTuple):
    """What a plan is read with: where the lines of its text begin, the tag that is current, and what can be run."""

    starts: Sequence[int]
    tag: str
    runnable: Runnable

    def task(self, name: str, item: "Item", above: "Item | None" = None, **facts: Any) -> Task:
        """Make the value for a task, of which the agent reads all that is no status of ours."""
        body = _asked(name, item) | ({"partOf": _asked(name, above)} if above else {})
        return Task(
            id=item.id,
            title=item.title or f"{table(name)['noun']} {item.id}",
            line=self.line(item),
            body=json.dumps(body, indent=2, ensure_ascii=False),
            digest=json.dumps(body, sort_keys=True, default=str),
            **facts,
        )

    def line(self, item: "Item") -> int:
        return bisect(self.starts, item.node.start) + 1


def _asked(name: str, item: "Item") -> dict[str, Any]:
    """Return what of a task is a person's: all but what a run writes into it."""
    return {key: value for key, value in item.raw.items() if key not in table(name)["ours"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A task of theirs, its aliases resolved, with the ids of what it waits for."""

    id: str
    node: Node
    raw: Mapping[str, Any]
    said: str = ""
    """Their word for its status."""
    status: str = ""
    """Ours; empty for a word that nobody knows."""
    title: str = ""
    depends_on: tuple[str, ...] = ()
    parts: tuple["Item", ...] = ()
    """What is attempted in its place: it is done when they are."""

    @property
    def leaves(self) -> tuple["Item", ...]:
        return self.parts or (self,)


def _read(name: str, node: Node, fallback: str, **more: Any) -> Item:
    """Read a task by the names that its format has for things."""
    raw, keys, known = node.plain, table(name), statuses_of(name)
    own, title = (word(*map(raw.get, keys[what])) for what in ("id", "titles"))
    said = known.of(raw)
    status = known.known.get(said, "")
    return Item(
        **{"id": own or fallback, "node": node, "raw": raw, "said": said, "status": status, "title": title, **more}
    )


# --- Auto-Claude's implementation plan: phases of subtasks

FORMAT = "implementation_plan.json"
COMMIT_TYPES: Mapping[str, str] = {"refactor": "refactor", "migration": "refactor", "investigation": "chore"}


def _plan(root: Node, given: Given) -> Plan:
    phases, problems, concerns = _phases(root), list[Problem](), list[Problem]()
    facts, tasks = root.plain, list[Task]()
    kind = COMMIT_TYPES.get(word(facts.get("workflow_type")), "")
    joins: dict[str, list[str]] = {}
    known: dict[str, list[Item]] = {}
    for phase in phases:
        for name in {phase.id, word(phase.raw.get("id"), phase.raw.get("phase_id"))}:
            known.setdefault(name, []).append(phase)
    waits = [_before(phase, known, problems, joins) for phase in phases]
    for place, (phase, before) in enumerate(zip(phases, waits, strict=True), 1):
        earlier = list[str]()
        side_by_side = phase.raw.get("parallel_safe") is True
        for subtask in phase.parts:
            group = f"P{place}" if side_by_side and len(phase.parts) > 1 else None
            depends_on = before if side_by_side else (*before, *earlier[-1:])
            own = tuple(joins.get(subtask.id, ()))
            tasks.append(_subtask(given, subtask, kind, depends_on=depends_on, joins=own, group=group))
            concerns += (replace(one, line=tasks[-1].line) for one in _odd_subtask(subtask))
            earlier.append(subtask.id)
    title = str(facts.get("feature") or facts.get("title") or "")
    plan = Plan(path="", format=FORMAT, title=title, tasks=tuple(tasks))
    return replace(plan, problems=tuple(problems), concerns=tuple(concerns))


def _phases(root: Node) -> tuple[Item, ...]:
    """Resolve all aliases; raise ValueError where there are no phases at all. A phase is an item whose parts are its subtasks."""
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
    """Write the statuses of subtasks, and the plan's own that follow from them."""
    written = statuses_of(FORMAT).written
    subtasks = [one for phase in _phases(root) for one in phase.parts]
    before = [written[one.status or "pending"] for one in subtasks]
    after = [written.get(statuses.get(one.id, ""), was) for one, was in zip(subtasks, before, strict=True)]
    for subtask, was, wanted in zip(subtasks, before, after, strict=True):
        yield from set_value(subtask.node, "status", wanted, was)
    for name, old, new in zip(("status", "planStatus"), overall(before), overall(after), strict=True):
        if root.get(name) is not None and old != new:
            yield from set_value(root, name, new, "")


def _phase(node: Node, place: int) -> Item:
    raw = node.plain
    number = word(raw.get("phase")) or str(place)
    depends, found = raw.get("depends_on"), node.get("subtasks", "chunks")
    return Item(
        id=number,
        node=node,
        raw=raw,
        title=word(raw.get("name"), raw.get("title")) or f"Phase {number}",
        depends_on=tuple(words(depends if isinstance(depends, list) else [depends])),
        parts=tuple(_read(FORMAT, one, f"{number}.{at}") for at, one in enumerate(found.objects if found else (), 1)),
    )


def _subtask(given: Given, subtask: Item, kind: str, **order: Any) -> Task:
    raw, said = subtask.raw, subtask.title
    files = [*strings(raw.get("files_to_create")), *strings(raw.get("files_to_modify"))]
    return given.task(
        FORMAT,
        subtask,
        checks=_checks(raw.get("verification")),
        files=tuple(dict.fromkeys(files)),
        commit=conventional_subject(said, scope=word(raw.get("service")), kind=kind) if said else None,
        done=subtask.status == "complete",
        **order,
    )


def _checks(verification: Any) -> tuple[Check, ...]:
    """Return the command, under either of its names; other ways to verify need a person or a browser."""
    if not isinstance(verification, dict):
        return ()
    command = word(verification.get("command"), verification.get("run"))
    return (Check(command=command),) if can_fail(command) else ()


def _odd_subtask(subtask: Item) -> Iterator[Problem]:
    name, verification = subtask.id, subtask.raw.get("verification")
    kind = word(verification.get("type")) if isinstance(verification, dict) else ""
    by_hand = subtask.status != "complete" and kind not in ("", "command") and not _checks(verification)
    rows: tuple[tuple[object, str, str], ...] = (
        (not subtask.status,
         f"Subtask {name} has the unknown status {word(subtask.raw.get('status'))!r}; it is read as pending.",
         f"Use one of {', '.join(table(FORMAT)['shown'])}."),
        (verification and not isinstance(verification, dict),
         f"The verification of subtask {name} is not read: it is not an object.",
         'Write it as {"type": "command", "run": "a command that fails while it is not done"}.'),
        (by_hand,
         f"Subtask {name} is verified by {kind}, which is not a command.", "Give it a command that fails while it is not done."),
        (not subtask.title, f"Subtask {name} has no description.", "Say what is to be done."),
    )  # fmt: skip
    return (Problem(message=message, hint=hint) for odd, message, hint in rows if odd)


def _before(
    phase: Item, known: Mapping[str, Sequence[Item]], problems: list[Problem], joins: dict[str, list[str]]
) -> tuple[str, ...]:
    """Return the subtasks of the phases that this one depends on; an empty phase passes on what it waits for itself."""
    found: dict[str, None] = {}
    seen, waiting = {id(phase)}, list(phase.depends_on)
    for name in waiting:  # grows while it is walked
        needed = known.get(name, ())
        if not needed and name in phase.depends_on:
            message = f"{phase.title} depends on an unknown phase {name!r}."
            problems.append(Problem(message=message, hint="Correct the id, or add the phase."))
        for other in needed:
            if other is phase:
                problems.append(Problem(message=f"{phase.title} depends on itself.", hint="Remove that dependency."))
            elif id(other) not in seen:
                seen.add(id(other))
                found.update(dict.fromkeys(dependencies_on_all([one.id for one in other.parts], joins)))
                waiting += () if other.parts else other.depends_on
    return tuple(found)


# --- Ralph's stories, which say with `passes` whether they hold

PRD = "prd.json"
LAST = 1e9
TITLE_CHARS = 120


def is_prd(value: Any) -> bool:
    """Tell whether a JSON value holds stories that say whether they pass."""
    lists = [value] if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    return any(map(_are_stories, lists))


def _are_stories(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value) and bool(_flag(value))


def _flag(stories: Sequence[Any]) -> str:
    return next((flag for flag in table(PRD)["flags"] if any(isinstance(one.get(flag), bool) for one in stories)), "")


def _prd(root: Node, given: Given) -> Plan:
    """Read the stories, the most urgent first."""
    ranked = sorted(_stories(root), key=lambda story: _rank(story.raw.get("priority")))
    facts = root.plain if root.is_object else {}
    title = word(next((facts[name] for name in table(PRD)["title"] if facts.get(name)), None))
    tasks = tuple(_story(given, story) for story in ranked)
    return Plan(path="", format=PRD, title=title, tasks=tasks, gates=tuple(_gates(facts)))


def _mark_prd(root: Node, statuses: Mapping[str, str], _tag: str) -> Iterator[Edit]:
    """Say of each story whether it passes; what a person skipped keeps what it has."""
    stories = _stories(root)
    flag = _flag([story.raw for story in stories])
    for story in stories:
        if (status := statuses.get(story.id, "skipped")) != "skipped":
            yield from set_value(story.node, flag, status == "complete", story.raw.get(flag) is True)


def _stories(root: Node) -> Sequence[Item]:
    """Return the stories; one without an id is called after its place."""
    lists = [root] if isinstance(root.value, list) else list(root.value.values()) if root.is_object else []
    found = next((one for one in lists if _are_stories(one.plain)), None)
    if found is None:
        raise ValueError('it has no list of objects with "passes", "complete" or "done"')
    return [_read(PRD, node, f"s{place}") for place, node in enumerate(found.objects, 1)]


def _rank(priority: Any) -> float:
    if isinstance(priority, int | float) and not isinstance(priority, bool):
        return float(priority)
    said, known = word(priority).casefold(), table(PRD)["priorities"]
    return float(said) if said.isdecimal() else known.get(said, known["medium"] if said else LAST)


def _story(given: Given, story: Item) -> Task:
    raw, keys = story.raw, table(PRD)
    return given.task(
        PRD,
        replace(story, title=one_line(story.title, TITLE_CHARS)),
        depends_on=tuple(dict.fromkeys(one for key in keys["depends"] for one in words(raw.get(key)))),
        checks=told_checks(raw, [line for key in keys["sentences"] for line in _lines(raw.get(key))], given.runnable),
        items=tuple(_lines(raw.get("acceptanceCriteria"))),
        done=any(raw.get(flag) is True for flag in keys["flags"]),
    )


def _gates(facts: Mapping[str, Any]) -> Iterator[Check]:
    """Return the commands that must hold after every story, by what they are called."""
    for key in table(PRD)["gates"]:
        named = facts.get(key)
        for name, line in named.items() if isinstance(named, dict) else ():
            if isinstance(line, str) and line.strip() and not effect(line):
                yield Check(command=line, kind=table(PRD)["kinds"].get(name.casefold(), "verify"))


def _lines(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else strings(value)


# --- Task Master. A task with subtasks is done when they are: the subtasks are what is attempted, under ids such as 5.2.

TASK_MASTER = "task-master"
DEFAULT_TAG = "master"


def is_task_master(value: Any) -> bool:
    """Tell whether a JSON value is a list of Task Master's tasks, by what others do not have."""
    if not isinstance(value, dict):
        return False
    tags = [value] if isinstance(value.get("tasks"), list) else [one for one in value.values() if isinstance(one, dict)]
    listed = [one["tasks"] for one in tags if isinstance(one.get("tasks"), list)]
    return bool(listed) and all(
        isinstance(one, dict) and "id" in one and "title" in one and ("status" in one or "dependencies" in one)
        for tasks in listed
        for one in tasks
    )


def _task_master(root: Node, given: Given) -> Plan:
    """Read the tasks of a tag."""
    items, chosen, others = _items(root, given.tag)
    known = {item.id: tuple(leaf.id for leaf in item.leaves) for item in items}
    joins: dict[str, list[str]] = {}
    waits = [(leaf, item, _waits(leaf, item, known, joins)) for item in items for leaf in item.leaves]
    tasks = tuple(
        _task(given, leaf, item, depends_on=names, joins=tuple(joins.get(leaf.id, ()))) for leaf, item, names in waits
    )
    aside = f"The tags {', '.join(others)} are not read; {chosen} is."
    told = [Problem(message=aside, line=1, hint="Choose with `task-master use-tag NAME`.")] if others else []
    return Plan(path="", format=TASK_MASTER, title=chosen, tasks=tasks, concerns=(*told, *_odd(given, items)))


def _mark_task_master(root: Node, statuses: Mapping[str, str], tag: str) -> Iterator[Edit]:
    """Write the statuses of tasks, and of those above them that follow."""
    items, known = _items(root, tag)[0], statuses_of(TASK_MASTER)
    for item in items:
        after = []
        for leaf in item.leaves:
            wanted = known.written.get(statuses.get(leaf.id, ""), leaf.said)
            same = wanted == leaf.said or leaf.status == known.known[wanted] != "pending"
            yield from () if same else set_value(leaf.node, "status", wanted, leaf.said)
            after.append(leaf.status if same else known.known[wanted])
        if item.parts and any(leaf.id in statuses for leaf in item.leaves):
            yield from set_value(item.node, "status", _above(item, after), item.said)


def _above(item: Item, parts: Sequence[str]) -> str:
    """Return the word for the status of a task by those of its subtasks."""
    settled = [one in ("complete", "skipped") for one in parts]
    if all(settled):
        return item.said if item.status == "complete" else "done"
    if any(settled) or "running" in parts:
        return "in-progress"
    return "pending" if item.status == "complete" else item.said


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


def _item(node: Node, above: str = "", siblings: Sequence[str] = ()) -> Item:
    """Read a task or a subtask, which is below one: a bare number that it waits for is a subtask beside it, if there is one."""
    raw, nested = node.plain, node.get("subtasks") if not above else None
    own, below = word(raw.get("id")), nested.objects if nested else ()
    beside = [word(one.plain.get("id")) for one in below]
    return _read(
        TASK_MASTER,
        node,
        "",
        id=own if not above or own.startswith(f"{above}.") else f"{above}.{own}",
        depends_on=tuple(f"{above}.{one}" if one in siblings else one for one in words(raw.get("dependencies"))),
        parts=tuple(_item(one, own, beside) for one in below),
    )


def _waits(
    leaf: Item, item: Item, known: Mapping[str, tuple[str, ...]], joins: dict[str, list[str]]
) -> tuple[str, ...]:
    """Return what a task depends on; what waits for a task with subtasks waits for all of them, itself aside."""
    found: dict[str, None] = {}
    for name in (*leaf.depends_on, *(item.depends_on if leaf is not item else ())):
        below = known.get(name, (name,))
        found.update(dict.fromkeys(below if leaf.id in below else dependencies_on_all(below, joins)))
    return tuple(name for name in found if name != leaf.id or name in leaf.depends_on)


def _task(given: Given, leaf: Item, item: Item, **order: Any) -> Task:
    aside = item.status == "skipped"  # Task Master leaves the subtasks of a cancelled task pending
    return given.task(
        TASK_MASTER,
        leaf,
        None if leaf is item else item,
        checks=told_checks(leaf.raw, [word(leaf.raw.get("testStrategy"))], given.runnable),
        done=leaf.status == "complete",
        skipped=leaf.status == "skipped" or (aside and leaf.status != "complete"),
        **order,
    )


def _odd(given: Given, items: Sequence[Item]) -> Iterator[Problem]:
    for item, leaf in ((above, leaf) for above in items for leaf in above.leaves):
        line = given.line(leaf)
        put_aside = next((one for one in (leaf, item) if one.status == "skipped"), None)
        if not leaf.status:
            message = f"Task {leaf.id} has the unknown status {leaf.said!r}; it is read as pending."
            yield Problem(message=message, line=line, hint=f"Use one of {', '.join(table(TASK_MASTER)['shown'])}.")
        elif put_aside is not None and leaf.status != "complete":
            message = f"Task {put_aside.id} is {put_aside.said}; {leaf.id} is left alone."
            yield Problem(message=message, line=line, hint="Set it to pending to have it done.")


# --- all of them


Reader = Callable[[Node, Given], Plan]
Marker = Callable[[Node, Mapping[str, str], str], Iterable[Edit]]
FORMATS: Mapping[str, tuple[str, Reader, Marker]] = {
    FORMAT: ("a plan", _plan, _mark_plan),
    PRD: ("a list of stories", _prd, _mark_prd),
    TASK_MASTER: ("a list of tasks", _task_master, _mark_task_master),
}
"""What each is, how it is read, and what marks it."""


def read(name: str, text: str, path: str, *, tag: str = "", runnable: Runnable = bool) -> Plan:
    """Read a whole plan; everything wrong with it is in its problems and concerns, even that it is no JSON."""
    given = Given([place for place, char in enumerate(text) if char == "\n"], tag, runnable)
    what, reader, _ = FORMATS[name]
    try:
        return replace(reader(places(text), given), path=path)
    except (ValueError, RecursionError) as error:
        problem = Problem(message=f"The file is not {what} in JSON: {error}.", hint="Correct the JSON.")
        return Plan(path=path, format=name, tasks=(), problems=(problem,))


def mark(name: str, text: str, statuses: Mapping[str, str], tag: str = "") -> str:
    """Write where tasks stand; no other byte changes. Raise ValueError for what cannot be read."""
    return apply_edits(text, list(FORMATS[name][2](places(text), statuses, tag)))


UNKNOWN = (
    'a JSON file without "phases" (implementation_plan.json), "tasks" with id, title and status (task-master), '
    'or stories with "passes" (prd.json)'
)


def format_of(value: Any) -> str:
    """Name the format of a JSON value, or say that it has none of these."""
    if isinstance(value, dict) and "phases" in value:
        return FORMAT
    return TASK_MASTER if is_task_master(value) else PRD if is_prd(value) else UNKNOWN
