"""Dialects of a tasks.md: Kiro's, spec-kit's, and the plain checklists of issues, to-do files and fix plans.

Kiro numbers its tasks, at column 0 or nested, and one with subtasks is done when they are:

- [ ] 2. Models
  - [x] 2.1 Interfaces
    - _Requirements: 1.2_
  - [ ]* 2.2 Unit tests (optional: Kiro leaves such tasks out, and so do we)

Spec-kit has phases that build on each other: `- [ ] T012 [P] [US1] Create the model in src/models/user.py`. A phase waits for
the ones before it, but user stories wait only for the foundation and not for each other; words such as "depends on T012" in a
task, or "T014 depends on T012" below the heading Dependencies, are dependencies, too.

A checklist is nested or not: boxes after `-`, `*`, `+` or a number. A box with boxes below it is done when they are; one that has
a Verify of its own is one task, and the boxes below it are its items, which are ticked with it.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain

from unstuck.model.plan import Problem, Task, dependencies_on_all
from unstuck.plans.blocks import Block, Reading, almost_tasks, name_tasks, read_head, title_of
from unstuck.plans.fields import read_fields
from unstuck.plans.literal_text import Scanner
from unstuck.plans.tasks_md import (
    TASKS_MD,
    Boxes,
    Dialect,
    depend,
    find_tasks,
    grouped,
    make_task,
    read_all,
    read_tasks,
    unverified,
)
from unstuck.toolchain.shell import Runnable

_KIRO_TASK = re.compile(r"^([ \t]*)- \[([ xX~-])\](\*?)[ \t]+(\d+(?:\.\d+)*)\.?(?=[ \t])([^\r\n]*)", re.MULTILINE)
_KIRO_ENDS = re.compile(r"^(?:[^\s-]|-(?![ \t]))", re.MULTILINE)
_OPTIONAL = "OPTIONAL"


def is_kiro(text: str) -> bool:
    """Tell whether the text is a plan as Kiro writes them, by what other plans do not have."""
    return "_Requirements:" in text and "**Verify**" not in text and re.search(r"(?m)^- \[.\] \d+\. ", text) is not None


def _find_kiro(text: str, runnable: Runnable | None, _known: Mapping[str, str]) -> Boxes:
    """Find every task of a plan, those with subtasks included."""
    scanner = Scanner(text)
    blocks = list(_blocks(scanner))
    above = parents(blocks)
    own = [block for block in blocks if block.id not in above and _OPTIONAL not in block.markers]
    read_all(scanner, own, runnable)
    problems, almost = almost_tasks(scanner, blocks, "`- [ ] 1. ` or `- [x] 1. `")
    remarks = chain(almost, depend(own, above), _left_out(blocks), unverified(own, scanner.flat))
    return Boxes(blocks, own, title_of(text), remarks, problems, parents=above)


KIRO = Dialect("kiro", _find_kiro)


def parents(blocks: Sequence[Block]) -> dict[str, tuple[str, ...]]:
    """Map every task with subtasks to those that must be done for it; fix tasks and optional ones are none of them.

    A task whose subtasks are all optional is none of these: nobody would do it for it.
    """
    names = {block.id for block in blocks}
    found: dict[str, list[str]] = {}
    for block in blocks:
        above = block.id.rpartition(".")[0]
        if above in names and block.fixes is None:
            found.setdefault(above, []).extend([] if _OPTIONAL in block.markers else [block.id])
    return {name: tuple(below) for name, below in found.items() if below}


def _blocks(scanner: Scanner) -> Iterator[Block]:
    """Find the tasks; what is code or a comment holds none."""
    flat = scanner.flat
    heads = list(_KIRO_TASK.finditer(scanner.seen))
    for number, head in enumerate(heads):
        limit = heads[number + 1].start() if number + 1 < len(heads) else len(flat)
        ends = _KIRO_ENDS.search(flat, head.end(), limit)
        last = head.start() + len(flat[head.start() : ends.start() if ends else limit].rstrip())
        block = Block(
            line=scanner.number(head.start()),
            start=head.start(),
            end=flat.find("\n", last) + 1 or len(flat),
            section=0,
            ticked=head[2] in "xX",
            box=head.start(2),
        )
        read_head(block, f"{head[4]} {head[5].strip()}")
        block.markers = (*block.markers, *([_OPTIONAL] if head[3] else []))
        yield block


def _left_out(blocks: Sequence[Block]) -> Iterator[Problem]:
    for block in blocks:
        if _OPTIONAL in block.markers and not block.ticked:
            hint = "Remove the * behind its box to have it done."
            yield block.problem(f"Task {block.id} is optional and is left out.", hint)


# --- spec-kit

_TASK = re.compile(r"(?m)^- \[[ xX]\] T\d{3,}\b")
_HEADING = re.compile(r"(#{2,3})[ \t]+([^\r\n]*)")
_ID = r"T\d{3,}[a-z]?"
_DEPENDS = re.compile(rf"(?i)\b(?:depends on|requires|after)\b[:\s]+((?:{_ID}(?:\s*(?:,|and|&)\s*)?)+)")
_LINE = re.compile(rf"(?i)\b({_ID})\b[^.\n]{{0,40}}?\bdepends on\b[:\s]+((?:{_ID}(?:\s*(?:,|and|&)\s*)?)+)")
_BEFORE = re.compile(rf"({_ID})\s*(?:→|->|before|blocks)\s*({_ID})")
_A_STORY = re.compile(r"US\d+")
_STORY = re.compile(r"\[(US\d+)\][ \t]*")
_PATH = re.compile(
    r"(?<![\w/.-])(?:\.?[\w-]+/)+[\w.-]*\w|\b[\w-]+\.(?:py|ts|tsx|js|jsx|go|rs|java|md|json|ya?ml|toml|sql|sh|css|html)\b"
)


def is_spec_kit(text: str) -> bool:
    """Tell whether the text has spec-kit's task lines."""
    return "] T" in text and _TASK.search(text) is not None


def _spec_kit_tasks(text: str, found: Boxes) -> Iterator[Task]:
    lines = enumerate(text.split("\n"), 1)
    headings = [(number, head[1], head[2]) for number, line in lines if (head := _HEADING.match(line))]
    parts = list(_parts([block.line for block in found.tasks], headings))
    tasks = list(map(_told, read_tasks(text, found)))
    joins: dict[str, list[str]] = {}
    needed = _needed(tasks, [phase for phase, _ in parts], text, joins)
    for task, group in zip(tasks, grouped(tasks, parts, ["P" in task.markers for task in tasks]), strict=True):
        unknown = (name for name in task.depends_on if name not in needed)
        yield replace(task, depends_on=(*needed[task.id], *unknown), joins=tuple(joins.get(task.id, ())), group=group)


SPEC_KIT = Dialect("spec-kit", find_tasks, _spec_kit_tasks)


def _told(task: Task) -> Task:
    """Take the story out of the title, and the paths that it names."""
    story = _STORY.match(task.title)
    markers = (*task.markers, story[1]) if story else task.markers
    title = task.title[story.end() :] if story else task.title
    files = task.files or tuple(dict.fromkeys(found[0] for found in _PATH.finditer(title)))
    return replace(task, title=title, markers=markers, files=files)


def _parts(starts: Iterable[int], headings: Sequence[tuple[int, str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the phase and the part of it that each task stands in."""
    ahead = deque(headings)
    phase = part = ""
    for at in starts:
        while ahead and ahead[0][0] <= at:
            start, level, title = ahead.popleft()
            phase, part = (f"{start} {title}", "") if level == "##" else (phase, title)
        yield phase, part


def _needed(
    tasks: Sequence[Task], phases: Sequence[str], text: str, joins: dict[str, list[str]]
) -> dict[str, tuple[str, ...]]:
    """Work out what each task waits for; nothing waits for what stands below it, so there are no circles."""
    members: dict[str, list[Task]] = {}
    for task, phase in zip(tasks, phases, strict=True):
        members.setdefault(phase, []).append(task)
    places = {task.id: place for place, task in enumerate(tasks)}
    waits: dict[str, tuple[str, ...]] = {}
    covered: dict[str, frozenset[str]] = {}
    foundation: list[str] = []
    since: list[str] = []
    for phase, own in members.items():
        story = "user story" in phase.lower() or any(
            _A_STORY.fullmatch(marker) for task in own for marker in task.markers
        )
        before = (foundation,) if story else (foundation, since)
        needed = tuple(name for row in before for name in dependencies_on_all(row, joins))
        known = frozenset(name for row in before for name in row)
        names = [task.id for task in own if task.fixes is None]
        waits |= dict.fromkeys(names, needed)
        covered |= dict.fromkeys(names, known)
        foundation, since = (foundation, [*since, *names]) if story else (names, [])
    told: dict[str, dict[str, None]] = {}
    for one, other in _said(tasks, text):
        if places.get(other, len(tasks)) < places.get(one, 0) and other not in covered.get(one, ()):
            told.setdefault(one, {})[other] = None
    return {name: (*waits.get(name, ()), *sorted(told.get(name, ()), key=places.__getitem__)) for name in places}


def _said(tasks: Iterable[Task], text: str) -> Iterable[tuple[str, str]]:
    """Yield (task, what it depends on) as the words of the plan have it."""
    for task in tasks:
        yield from ((task.id, other) for other in task.depends_on)
        for found in _DEPENDS.finditer(task.title):
            yield from ((task.id, other) for other in re.findall(_ID, found[1]))
    section = re.search(r"(?mi)^##[ \t]+.*dependenc.*$", text)
    below = text[section.end() :] if section else ""
    for found in _LINE.finditer(below):
        yield from ((found[1], other) for other in re.findall(_ID, found[2]))
    for found in _BEFORE.finditer(below):
        yield found[2], found[1]


# --- plain checklists

BOX = re.compile(
    r"^(?P<indent>[ \t]*)(?P<bullet>[-*+]|(?P<number>\d{1,9})[.)])[ \t]+\[(?P<box>[ xX~/-])\](?=[ \t]|$)[ \t]*(?P<title>[^\r\n]*)",
    re.MULTILINE,
)
_CLEAR_ID = re.compile(r"(?:\d+(?:\.\d+)+|T\d{3,})[.:)]?[ \t]|\d+[.:)][ \t]|\S+[ \t]+\[FIX[ \t]")
_TASK_FIELDS = re.compile(r"\*\*(?:Do|Files|Verify|Done when|Commit)(?:\*\*[ \t]*:|:\*\*)")
_FIX_PLAN = re.compile(r"^#+[^\n]*\bfix[ _-]plan\b", re.MULTILINE | re.IGNORECASE)
_STRUCK = re.compile(r"~~.*~~\W*")
_EACH_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_TAB = 4


@dataclass(slots=True, kw_only=True, eq=False)
class Item(Block):
    """One box, with what stands below it and is no other box's. It goes on to the end of all that is nested."""

    head: re.Match[str]
    place: str
    """Where it stands among all; the deeper, the longer."""
    number: str = ""
    """Where it stands among numbered boxes, such as 2.1."""
    own: list[str] = field(default_factory=list)
    """Its own lines, as far out as if it stood at column 0."""
    above: "Item | None" = None
    below: list["Item"] = field(default_factory=list)

    @property
    def words(self) -> str:
        return self.head["title"].strip()

    @property
    def indent(self) -> int:
        return len(self.head["indent"].expandtabs(_TAB))

    @property
    def verified(self) -> bool:
        """Whether it has a Verify of its own, and so is one task with all that is nested in it."""
        return bool(self.checks or self.reason)

    @property
    def struck(self) -> bool:
        """Whether a person crossed it out."""
        return _STRUCK.fullmatch(self.words) is not None

    @property
    def is_task(self) -> bool:
        """Whether it is attempted: nothing nested in it is, and nothing that it is nested in."""
        return (not self.below or self.verified) and not any(one.verified for one in _chain(self))


def is_checklist(text: str, *, named: bool = False) -> bool:
    """Tell a plain checklist from a tasks.md; `named`: the file's own name says that it is a fix plan."""
    named = named or _FIX_PLAN.search(text) is not None
    boxes = list(_boxes(text))
    dashes = [box for box in boxes if not box["indent"] and box["bullet"] == "-"]
    others = [box for box in boxes if not box["indent"] and box["bullet"] != "-"]
    clear = any(_CLEAR_ID.match(box["title"]) for box in (*dashes, *others))
    if others:
        return not dashes or not clear
    nested = len(dashes) < len(boxes)
    return (nested or (named and bool(boxes))) and not clear and _TASK_FIELDS.search(text) is None


def _find_boxes(text: str, runnable: Runnable | None, known: Mapping[str, str]) -> Boxes:
    """Find the boxes, what belongs to each, and their names."""
    items = _found(text)
    for item in items:
        _read(item, runnable or bool)
    _name(items, known)
    tasks = [item for item in items if item.is_task]
    within = {item.id: tuple(_nested(item)) for item in tasks if item.below}
    inside = {name for names in within.values() for name in names}
    groups = (item for item in items if item.below and not item.is_task and item.id not in inside)
    above = {item.id: tuple(one.id for one in item.below) for item in groups}
    problems, almost = almost_tasks(Scanner(_flat(text)), items, "`- [ ] ` or `- [x] `")
    remarks = chain(almost, depend(tasks), unverified(tasks, _flat(text)))
    return Boxes(items, tasks, title_of(text), remarks, problems, parents=above, within=within)


def _nested(item: Item) -> Iterator[str]:
    for one in item.below:
        yield one.id
        yield from _nested(one)


def _boxes(text: str) -> Iterator[re.Match[str]]:
    """Find the lines with boxes; what is code or a comment holds none."""
    return BOX.finditer(Scanner(_flat(text)).seen)


def _found(text: str) -> list[Item]:
    """Find the boxes; a line belongs to the innermost box that it stands further in than."""
    flat, items = _flat(text), list[Item]()
    heads = {head.start(): head for head in _boxes(text)}
    stack: list[Item] = []
    for number, found in enumerate(_EACH_LINE.finditer(flat), 1):
        line, at = found[0], found.start()
        indent = len(line) - len(line.lstrip(" \t"))
        wide = len(line[:indent].expandtabs(_TAB))
        blank, top = not line.strip(), wide == 0 and line[:1] not in "-*+" and not line[:1].isdigit()
        while stack and not blank and (wide <= stack[-1].indent or top):
            stack.pop()
        if at in heads:
            above = stack[-1] if stack else None
            where = f"{above.place}.{len(items)}" if above is not None else str(len(items))
            head = heads[at]
            item = Item(number, at, at, 0, head["box"] in "xX", head.start("box"), head=head, place=where, above=above)
            if above is not None:
                above.below.append(item)
            stack.append(item)
            items.append(item)
        elif stack:
            stack[-1].own.append(line[min(indent, len(stack[-1].head["indent"])) :])
        for one in stack if not blank else ():
            one.end = found.end()
    return items


def _flat(text: str) -> str:
    """Give all lines one end; all places stay."""
    return text.replace("\r\n", " \n").replace("\r", "\n")


def _read(item: Item, runnable: Runnable) -> None:
    """Read the fields of a box, as those of a task that stands alone."""
    reading = Reading(f"- [ ] x\n{''.join(item.own)}")
    (alone, *_) = reading.blocks()
    read_fields(reading.scanner, alone, runnable, item)


def _name(items: Sequence[Item], known: Mapping[str, str]) -> None:
    """Name every box: as its text or its numbers do, if no other has that name; a group after where it stands."""
    for item in items:
        clear = _CLEAR_ID.match(item.words) is not None
        read_head(item, item.words if clear else f"x0 {item.words}")
        item.id = item.id if clear else ""
        item.number = _number(item)
    numbers = [item.number for item in items if item.number and not item.id]
    tasks = [item for item in items if item.is_task]
    for item in tasks if len(set(numbers)) == len(numbers) else ():
        item.id = item.id or item.number
    name_tasks(tasks, known)
    for item in items:
        item.id = item.id if item.is_task else f"box {item.place}"


def _number(item: Item) -> str:
    own = item.head["number"]
    if own is None or item.above is None:
        return own or ""
    return f"{item.above.number}.{own}" if item.above.number else ""


def _checklist_tasks(_text: str, found: Boxes) -> Iterator[Task]:
    for item in found.tasks:
        assert isinstance(item, Item)
        text = f"- [{item.head['box']}] {item.words}\n{''.join(item.own)}{''.join(_shown(item.below, 1))}"
        above = [one.words for one in _chain(item)]
        body = (f"Part of: {' / '.join(above)}\n\n" if above else "") + text
        digest = sha256(re.sub(r"\[[ xX]\]", "[]", body).encode(errors="replace")).hexdigest()[:16]
        items, skipped = tuple(one.words for one in item.below), item.struck and not item.ticked
        yield make_task(item, body, items=items, skipped=skipped, digest=digest)


CHECKLIST = Dialect("checklist", _find_boxes, _checklist_tasks)
DIALECTS: Mapping[str, Dialect] = {one.format: one for one in (TASKS_MD, SPEC_KIT, KIRO, CHECKLIST)}


def _chain(item: Item) -> list[Item]:
    """Return the boxes that a box is nested in, the outermost first."""
    found: list[Item] = []
    while item.above is not None:
        item = item.above
        found.append(item)
    return found[::-1]


def _shown(items: Sequence[Item], depth: int) -> Iterator[str]:
    for item in items:
        yield f"{'  ' * depth}- [{item.head['box']}] {item.words}\n"
        yield from ("  " * depth + line for line in item.own)
        yield from _shown(item.below, depth + 1)
