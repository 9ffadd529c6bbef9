"""Read a plain checklist, nested or not: boxes after `-`, `*`, `+` or a number, as issues, to-do files and fix plans have them.

A box with boxes below it is done when they are; one that has a Verify of its own is one task, and the boxes below it are
its items, which are ticked with it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from unstuck.plans import tasks_md
from unstuck.plans.blocks import Block, Reading, Scanner, name_tasks, read_head
from unstuck.plans.editor import Located, place
from unstuck.plans.fields import read_asked
from unstuck.plans.plan import Plan, Problem, Task
from unstuck.tools import Runnable

FORMAT = "checklist"
BOX = re.compile(
    r"^(?P<indent>[ \t]*)(?P<bullet>[-*+]|(?P<number>\d{1,9})[.)])[ \t]+\[(?P<box>[ xX~/-])\](?=[ \t]|$)[ \t]*(?P<title>[^\r\n]*)",
    re.MULTILINE,
)
_CLEAR_ID = re.compile(r"(?:\d+(?:\.\d+)+|T\d{3,})[.:)]?[ \t]|\d+[.:)][ \t]|\S+[ \t]+\[FIX[ \t]")
_FIELDS = re.compile(r"\*\*(?:Do|Files|Verify|Done when|Commit)(?:\*\*[ \t]*:|:\*\*)")
_UNLIKE_TASKS = re.compile(
    r"^(?:[ \t]+(?:[-*+]|\d{1,9}[.)])|[*+]|\d{1,9}[.)])[ \t]+\[[ xX~/-]\]|\[tasklist\]", re.MULTILINE
)
"""Boxes that a tasks.md has no tasks for: nested ones, and those after another bullet than a dash."""
_FIX_PLAN = re.compile(r"^#+[^\n]*\bfix[ _-]plan\b", re.MULTILINE | re.IGNORECASE)
_TASKLIST = re.compile(r"^([ \t]*)(`{3,})\[tasklist\][^\n]*\n(.*?)^[ \t]*\2[ \t]*$", re.MULTILINE | re.DOTALL)
"""GitHub's own fence around a list of tasks."""
_STRUCK = re.compile(r"~~.*~~\W*")
_REFERENCE = re.compile(r"(?:[\w.-]+/[\w.-]+)?#\d+|https?://\S+/(?:issues|pull)/\d+")
_TITLE = re.compile(r"^# +([^\r\n]+)", re.MULTILINE)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_TAB = 4


@dataclass(slots=True, kw_only=True, eq=False)
class Item:
    """One box, with what stands below it and is no other box's."""

    head: re.Match[str]
    place: str
    """Where it stands among all; the deeper, the longer."""
    block: Block
    """Goes on to the end of all that is nested."""
    number: str = ""
    """Where it stands among numbered boxes, such as 2.1."""
    own: list[str] = field(default_factory=list)
    """Its own lines, as far out as if it stood at column 0."""
    above: "Item | None" = None
    below: list["Item"] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its id, or of a group where it stands."""
        return self.block.id or f"box {self.place}"

    @property
    def title(self) -> str:
        return self.head["title"].strip()

    @property
    def indent(self) -> int:
        return len(self.head["indent"].expandtabs(_TAB))

    @property
    def verified(self) -> bool:
        """Whether it has a Verify of its own, and so is one task with all that is nested in it."""
        return bool(self.block.asked.checks or self.block.asked.reason)

    @property
    def struck(self) -> bool:
        """Whether a person crossed it out."""
        return _STRUCK.fullmatch(self.title) is not None

    @property
    def is_task(self) -> bool:
        """Whether it is attempted: nothing nested in it is, and nothing that it is nested in."""
        return (not self.below or self.verified) and not any(one.verified for one in _chain(self))


def looks_like(text: str, *, named: bool = False) -> bool:
    """Tell a plain checklist from a tasks.md; `named`: the file's own name says that it is a fix plan."""
    named = named or _FIX_PLAN.search(text) is not None
    if not named and _UNLIKE_TASKS.search(text) is None:
        return False
    boxes = list(_boxes(text))
    dashes = [box for box in boxes if not box["indent"] and box["bullet"] == "-"]
    others = [box for box in boxes if not box["indent"] and box["bullet"] != "-"]
    clear = any(_CLEAR_ID.match(box["title"]) for box in (*dashes, *others))
    if others:
        return not dashes or not clear
    nested = len(dashes) < len(boxes)
    return (nested or (named and bool(boxes))) and not clear and _FIELDS.search(text) is None


def read(text: str, path: str, *, runnable: Runnable, known: Mapping[str, str] | None = None) -> Plan:
    """Read a whole plan."""
    if problems := tuple(tasks_md.not_text(text)):
        return Plan(path=path, format=FORMAT, tasks=(), problems=problems)
    text = tasks_md.printable(text)
    items = _items(text, runnable, known or {})
    tasks = [item for item in items if item.is_task]
    blocks = [item.block for item in tasks if not item.struck]
    title = _TITLE.search(text)
    return Plan(
        path=path,
        format=FORMAT,
        title=title[1].strip() if title else "",
        tasks=tuple(map(_task, tasks)),
        concerns=(*tasks_md.unverified(blocks), *_odd(tasks)),
        problems=tuple(tasks_md.unapproved(blocks)),
    )


def locate(text: str, known: Mapping[str, str] | None = None) -> Located:
    """Find every box of a plan."""
    readable = "" if any(tasks_md.not_text(text)) else tasks_md.printable(text)
    items = _items(readable, lambda _: False, known or {})
    above = {item.name: tuple(one.name for one in item.below) for item in items if item.below and not item.is_task}
    within = {item.name: tuple(_nested(item)) for item in items if item.is_task and item.below}
    inside = {name for names in within.values() for name in names}
    groups = {name: below for name, below in above.items() if name not in inside}
    places = {item.name: place([item.block])[item.block.id] for item in reversed(items)}
    return Located(text, places, groups, within)


def _nested(item: Item) -> Iterator[str]:
    for one in item.below:
        yield one.name
        yield from _nested(one)


def _items(text: str, runnable: Runnable, known: Mapping[str, str]) -> list[Item]:
    """Find the boxes, what belongs to each, and their names."""
    items = _found(text)
    for item in items:
        _read(item, runnable)
    _name(items, known)
    return items


def _boxes(text: str) -> Iterator[re.Match[str]]:
    """Find the lines with boxes; what is code or a comment holds none."""
    return BOX.finditer(Scanner(_flat(text)).seen)


def _found(text: str) -> list[Item]:
    """Find the boxes; a line belongs to the innermost box that it stands further in than."""
    flat, items = _flat(text), list[Item]()
    heads = {head.start(): head for head in _boxes(text)}
    stack: list[Item] = []
    outermost = 0
    for number, found in enumerate(_LINE.finditer(flat), 1):
        line, at = found[0], found.start()
        indent = len(line) - len(line.lstrip(" \t"))
        wide = len(line[:indent].expandtabs(_TAB))
        blank, top = not line.strip(), wide == 0 and line[:1] not in "-*+" and not line[:1].isdigit()
        while stack and not blank and (wide <= stack[-1].indent or top):
            stack.pop()
        if at in heads:
            above = stack[-1] if stack else None
            outermost += above is None
            where = f"{above.place}.{len(above.below):06}" if above is not None else f"{outermost:06}"
            head = heads[at]
            block = Block(number, at, at, 0, head["box"] in "xX", head.start("box"))
            item = Item(head=head, place=where, block=block, above=above)
            if above is not None:
                above.below.append(item)
            stack.append(item)
            items.append(item)
        elif stack:
            stack[-1].own.append(line[min(indent, len(stack[-1].head["indent"])) :])
        for one in stack if not blank else ():
            one.block.end = found.end()
    return items


def _flat(text: str) -> str:
    """Give all lines one end, and blank those of GitHub's fences out, so that what they hold is text; all places stay."""

    def opened(found: re.Match[str]) -> str:
        lines = found[0].split("\n")
        return "\n".join([" " * len(lines[0]), *lines[1:-1], " " * len(lines[-1])])

    flat = text.replace("\r\n", " \n").replace("\r", "\n")
    return _TASKLIST.sub(opened, flat) if "[tasklist]" in flat else flat


def _read(item: Item, runnable: Runnable) -> None:
    """Read the fields of a box, as those of a task that stands alone."""
    alone = f"- [ ] x\n{''.join(item.own)}"
    reading = Reading(alone)
    (block, *_) = reading.blocks()
    item.block.asked = read_asked(reading.scanner, block, runnable)


def _name(items: Sequence[Item], known: Mapping[str, str]) -> None:
    """Name every box: as its text or its numbers do, if no other has that name; a group after where it stands."""
    for item in items:
        clear = _CLEAR_ID.match(item.title) is not None
        read_head(item.block, item.title if clear else f"x0 {item.title}")
        item.block.id = item.block.id if clear else ""
        item.number = _number(item)
    numbers = [item.number for item in items if item.number and not item.block.id]
    tasks = [item for item in items if item.is_task]
    for item in tasks if len(set(numbers)) == len(numbers) else ():
        item.block.id = item.block.id or item.number
    name_tasks([item.block for item in tasks], known)
    for item in items:
        item.block.id = item.block.id if item.is_task else ""


def _number(item: Item) -> str:
    own = item.head["number"]
    if own is None or item.above is None:
        return own or ""
    return f"{item.above.number}.{own}" if item.above.number else ""


def _task(item: Item) -> Task:
    text = f"- [{item.head['box']}] {item.title}\n{''.join(item.own)}{''.join(_shown(item.below, 1))}"
    above = [one.title for one in _chain(item)]
    body = (f"Part of: {' / '.join(above)}\n\n" if above else "") + text
    return replace(
        tasks_md.make_task(body, replace(item.block, start=0, end=len(body))),
        items=tuple(one.title for one in item.below),
        skipped=item.struck and not item.block.ticked,
        digest=sha256(re.sub(r"\[[ xX]\]", "[]", body).encode(errors="replace")).hexdigest()[:16],
    )


def _chain(item: Item) -> list[Item]:
    """Return the boxes that a box is nested in, the outermost first."""
    found: list[Item] = []
    while item.above is not None:
        item = item.above
        found.append(item)
    return found[::-1]


def _shown(items: Sequence[Item], depth: int) -> Iterator[str]:
    for item in items:
        yield f"{'  ' * depth}- [{item.head['box']}] {item.title}\n"
        yield from ("  " * depth + line for line in item.own)
        yield from _shown(item.below, depth + 1)


def _odd(items: Sequence[Item]) -> Iterator[Problem]:
    for item in items:
        title = item.block.title.strip()
        if _REFERENCE.fullmatch(title) and not item.block.ticked:
            yield Problem(
                message=f"Task {item.name} only refers to {title}: nothing here says what is to be done.",
                line=item.block.line,
                hint="Write what it asks for behind the reference.",
            )
