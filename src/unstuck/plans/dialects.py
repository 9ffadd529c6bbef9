"""Dialects of a tasks.md: Kiro's, spec-kit's, and the plain checklists of issues, to-do files and fix plans.

Kiro numbers its tasks, at column 0 or nested. A task with subtasks is done when they are:

- [ ] 2. Models
  - [x] 2.1 Interfaces
    - _Requirements: 1.2_
  - [ ]* 2.2 Unit tests (optional: Kiro leaves such tasks out, and so does `unstuck`)

Spec-kit has phases: `- [ ] T012 [P] [US1] Create the model in src/models/user.py`. A phase waits for the earlier phases,
but user stories wait only for the foundation and not for each other. Words such as "depends on T012" in a task, or
"T014 depends on T012" below the heading Dependencies, are also dependencies.

A checklist has boxes after `-`, `*`, `+` or a number, nested or not. A box with boxes below it is done when they are.
If it has a Verify of its own it is one task, and the boxes below it are its items, which are ticked with it.
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
    find_tasks,
    make_task,
    parallel_groups,
    read_all_fields,
    read_tasks,
    resolve_dependencies,
    unverified,
)
from unstuck.toolchain.shell import Runnable

_KIRO_TASK = re.compile(r"^([ \t]*)- \[([ xX~-])\](\*?)[ \t]+(\d+(?:\.\d+)*)\.?(?=[ \t])([^\r\n]*)", re.MULTILINE)
_KIRO_ENDS = re.compile(r"^(?:[^\s-]|-(?![ \t]))", re.MULTILINE)
_OPTIONAL = "OPTIONAL"


def is_kiro(text: str) -> bool:
    """Return whether the text has the lines that only Kiro's plans have."""
    return "_Requirements:" in text and "**Verify**" not in text and re.search(r"(?m)^- \[.\] \d+\. ", text) is not None


def _find_kiro(text: str, runnable: Runnable | None, _titles: Mapping[str, str]) -> Boxes:
    """Return all boxes of a Kiro plan. Those with subtasks and optional ones are no tasks."""
    scanner = Scanner(text)
    blocks = list(_kiro_blocks(scanner))
    subtasks = subtasks_by_parent(blocks)
    tasks = [block for block in blocks if block.id not in subtasks and _OPTIONAL not in block.markers]
    read_all_fields(scanner, tasks, runnable)
    problems, almost = almost_tasks(scanner, blocks, "`- [ ] 1. ` or `- [x] 1. `")
    concerns = chain(
        almost, resolve_dependencies(tasks, subtasks), _optional_tasks(blocks), unverified(tasks, scanner.flat)
    )
    return Boxes(blocks, tasks, title_of(text), concerns, problems, parents=subtasks)


KIRO = Dialect("kiro", _find_kiro)


def subtasks_by_parent(blocks: Sequence[Block]) -> dict[str, tuple[str, ...]]:
    """Return the subtasks of each task that has any, without fix tasks and optional ones."""
    names = {block.id for block in blocks}
    subtasks: dict[str, list[str]] = {}
    for block in blocks:
        parent = block.id.rpartition(".")[0]
        if parent in names and block.fixes is None and _OPTIONAL not in block.markers:
            subtasks.setdefault(parent, []).append(block.id)
    return {name: tuple(below) for name, below in subtasks.items()}


def _kiro_blocks(scanner: Scanner) -> Iterator[Block]:
    """Yield the tasks. Literal lines hold none."""
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


def _optional_tasks(blocks: Sequence[Block]) -> Iterator[Problem]:
    """Yield a concern for each optional task, because it is left out."""
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
    """Return whether the text has spec-kit's task lines."""
    return "] T" in text and _TASK.search(text) is not None


def _spec_kit_tasks(text: str, boxes: Boxes) -> Iterator[Task]:
    """Yield the tasks of a spec-kit plan with their dependencies and groups."""
    lines = enumerate(text.split("\n"), 1)
    headings = [(number, head[1], head[2]) for number, line in lines if (head := _HEADING.match(line))]
    parts = list(_phase_parts([block.line for block in boxes.tasks], headings))
    tasks = [_with_story_and_files(task) for task in read_tasks(text, boxes)]
    joins: dict[str, list[str]] = {}
    needed = _spec_kit_dependencies(tasks, [phase for phase, _ in parts], text, joins)
    groups = parallel_groups(tasks, parts, ["P" in task.markers for task in tasks])
    for task, group in zip(tasks, groups, strict=True):
        unknown = (name for name in task.depends_on if name not in needed)
        yield replace(task, depends_on=(*needed[task.id], *unknown), joins=tuple(joins.get(task.id, ())), group=group)


SPEC_KIT = Dialect("spec-kit", find_tasks, _spec_kit_tasks)


def _with_story_and_files(task: Task) -> Task:
    """Return the task with its story as a marker, and with the files that its title names."""
    story = _STORY.match(task.title)
    markers = (*task.markers, story[1]) if story else task.markers
    title = task.title[story.end() :] if story else task.title
    files = task.files or tuple(dict.fromkeys(path[0] for path in _PATH.finditer(title)))
    return replace(task, title=title, markers=markers, files=files)


def _phase_parts(starts: Iterable[int], headings: Sequence[tuple[int, str, str]]) -> Iterator[tuple[str, str]]:
    """Yield for each line the phase and the part of it that it belongs to. `headings` are (line, level, title)."""
    ahead = deque(headings)
    phase = part = ""
    for at in starts:
        while ahead and ahead[0][0] <= at:
            start, level, title = ahead.popleft()
            phase, part = (f"{start} {title}", "") if level == "##" else (phase, title)
        yield phase, part


def _spec_kit_dependencies(
    tasks: Sequence[Task], phases: Sequence[str], text: str, joins: dict[str, list[str]]
) -> dict[str, tuple[str, ...]]:
    """Return the dependencies of each task. A task depends only on earlier ones, so there are no circles."""
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
        earlier = frozenset(name for row in before for name in row)
        names = [task.id for task in own if task.fixes is None]
        waits |= dict.fromkeys(names, needed)
        covered |= dict.fromkeys(names, earlier)
        foundation, since = (foundation, [*since, *names]) if story else (names, [])
    stated: dict[str, dict[str, None]] = {}
    for name, needed_name in _stated_dependencies(tasks, text):
        is_earlier = places.get(needed_name, len(tasks)) < places.get(name, 0)
        if is_earlier and needed_name not in covered.get(name, ()):
            stated.setdefault(name, {})[needed_name] = None
    return {name: (*waits.get(name, ()), *sorted(stated.get(name, ()), key=places.__getitem__)) for name in places}


def _stated_dependencies(tasks: Iterable[Task], text: str) -> Iterable[tuple[str, str]]:
    """Yield (task, dependency) for each dependency that the plan states in words."""
    for task in tasks:
        yield from ((task.id, name) for name in task.depends_on)
        for match in _DEPENDS.finditer(task.title):
            yield from ((task.id, name) for name in re.findall(_ID, match[1]))
    section = re.search(r"(?mi)^##[ \t]+.*dependenc.*$", text)
    below = text[section.end() :] if section else ""
    for match in _LINE.finditer(below):
        yield from ((match[1], name) for name in re.findall(_ID, match[2]))
    for match in _BEFORE.finditer(below):
        yield match[2], match[1]


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
    """One box of a checklist, up to the end of everything nested in it."""

    head: re.Match[str]
    place: str
    """The position among all boxes. A nested box has a longer one."""
    number: str = ""
    """The position among numbered boxes, such as 2.1."""
    own: list[str] = field(default_factory=list)
    """The lines that belong to no nested box, without the indentation of this box."""
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
        """True if the box has a Verify of its own, and so is one task with everything nested in it."""
        return bool(self.checks or self.reason)

    @property
    def struck(self) -> bool:
        """True if the user crossed it out."""
        return _STRUCK.fullmatch(self.words) is not None

    @property
    def is_task(self) -> bool:
        """True if the box is attempted as a task, and no box around it or inside it is."""
        return (not self.below or self.verified) and not any(item.verified for item in _boxes_around(self))


def is_checklist(text: str, *, named: bool = False) -> bool:
    """Return whether the text is a plain checklist and no tasks.md. `named`: the file's name says `fix plan`."""
    named = named or _FIX_PLAN.search(text) is not None
    boxes = list(_boxes(text))
    dashes = [box for box in boxes if not box["indent"] and box["bullet"] == "-"]
    other_bullets = [box for box in boxes if not box["indent"] and box["bullet"] != "-"]
    clear = any(_CLEAR_ID.match(box["title"]) for box in (*dashes, *other_bullets))
    if other_bullets:
        return not dashes or not clear
    nested = len(dashes) < len(boxes)
    return (nested or (named and bool(boxes))) and not clear and _TASK_FIELDS.search(text) is None


def _find_boxes(text: str, runnable: Runnable | None, titles: Mapping[str, str]) -> Boxes:
    """Return the boxes of a checklist. `titles` are those of an earlier reading by id."""
    items = _items(text)
    for item in items:
        _read_item_fields(item, runnable or bool)
    _name_items(items, titles)
    tasks = [item for item in items if item.is_task]
    within = {item.id: tuple(_nested_ids(item)) for item in tasks if item.below}
    inside = {name for names in within.values() for name in names}
    groups = (item for item in items if item.below and not item.is_task and item.id not in inside)
    parents = {group.id: tuple(item.id for item in group.below) for group in groups}
    problems, almost = almost_tasks(Scanner(_flat(text)), items, "`- [ ] ` or `- [x] `")
    concerns = chain(almost, resolve_dependencies(tasks), unverified(tasks, _flat(text)))
    return Boxes(items, tasks, title_of(text), concerns, problems, parents=parents, within=within)


def _nested_ids(item: Item) -> Iterator[str]:
    for nested in item.below:
        yield nested.id
        yield from _nested_ids(nested)


def _boxes(text: str) -> Iterator[re.Match[str]]:
    """Return the lines with boxes. Literal lines have none."""
    return BOX.finditer(Scanner(_flat(text)).seen)


def _items(text: str) -> list[Item]:
    """Return the boxes. A line belongs to the innermost box with a smaller indentation."""
    flat, items = _flat(text), list[Item]()
    heads = {head.start(): head for head in _boxes(text)}
    stack: list[Item] = []
    for number, match in enumerate(_EACH_LINE.finditer(flat), 1):
        line, at = match[0], match.start()
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
        if not blank:
            for item in stack:
                item.end = match.end()
    return items


def _flat(text: str) -> str:
    """Return the text with LF at all line ends. All offsets stay the same."""
    return text.replace("\r\n", " \n").replace("\r", "\n")


def _read_item_fields(item: Item, runnable: Runnable) -> None:
    """Read the fields of a box as those of a separate task."""
    reading = Reading(f"- [ ] x\n{''.join(item.own)}")
    (alone, *_) = reading.blocks()
    read_fields(reading.scanner, alone, runnable, item)


def _name_items(items: Sequence[Item], titles: Mapping[str, str]) -> None:
    """Set the id of every box: from its text, from its number if that is unique, or a free one."""
    for item in items:
        clear = _CLEAR_ID.match(item.words) is not None
        read_head(item, item.words if clear else f"x0 {item.words}")
        item.id = item.id if clear else ""
        item.number = _nested_number(item)
    numbers = [item.number for item in items if item.number and not item.id]
    tasks = [item for item in items if item.is_task]
    if len(set(numbers)) == len(numbers):
        for item in tasks:
            item.id = item.id or item.number
    name_tasks(tasks, titles)
    for item in items:
        item.id = item.id if item.is_task else f"box {item.place}"


def _nested_number(item: Item) -> str:
    own = item.head["number"]
    if own is None or item.above is None:
        return own or ""
    return f"{item.above.number}.{own}" if item.above.number else ""


def _checklist_tasks(_text: str, boxes: Boxes) -> Iterator[Task]:
    for item in boxes.tasks:
        assert isinstance(item, Item)
        text = f"- [{item.head['box']}] {item.words}\n{''.join(item.own)}{''.join(_lines_of(item.below, 1))}"
        around = [box.words for box in _boxes_around(item)]
        body = (f"Part of: {' / '.join(around)}\n\n" if around else "") + text
        digest = sha256(re.sub(r"\[[ xX]\]", "[]", body).encode(errors="replace")).hexdigest()[:16]
        items, skipped = tuple(nested.words for nested in item.below), item.struck and not item.ticked
        yield make_task(item, body, items=items, skipped=skipped, digest=digest)


CHECKLIST = Dialect("checklist", _find_boxes, _checklist_tasks)
DIALECTS: Mapping[str, Dialect] = {dialect.format: dialect for dialect in (TASKS_MD, SPEC_KIT, KIRO, CHECKLIST)}


def _boxes_around(item: Item) -> list[Item]:
    """Return the boxes in which a box is nested, the outermost first."""
    around: list[Item] = []
    while item.above is not None:
        item = item.above
        around.append(item)
    return around[::-1]


def _lines_of(items: Sequence[Item], depth: int) -> Iterator[str]:
    """Yield the lines of nested boxes, two columns further in at each level."""
    for item in items:
        yield f"{'  ' * depth}- [{item.head['box']}] {item.words}\n"
        yield from ("  " * depth + line for line in item.own)
        yield from _lines_of(item.below, depth + 1)
