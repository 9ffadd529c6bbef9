"""Dialects of a tasks.md: Kiro's and spec-kit's.

Kiro numbers its tasks, at column 0 or nested, and one with subtasks is done when they are:

- [ ] 2. Models
  - [x] 2.1 Interfaces
    - _Requirements: 1.2_
  - [ ]* 2.2 Unit tests (optional: Kiro leaves such tasks out, and so do we)

Spec-kit has phases that build on each other: `- [ ] T012 [P] [US1] Create the model in src/models/user.py`. A phase waits for
the ones before it, but user stories wait only for the foundation and not for each other; words such as "depends on T012" in a
task, or "T014 depends on T012" below the heading Dependencies, are dependencies, too.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from unstuck.plans import tasks_md
from unstuck.plans.blocks import Block, Scanner, read_head
from unstuck.plans.editor import Located, place
from unstuck.plans.fields import read_asked
from unstuck.plans.plan import Plan, Problem, Task
from unstuck.tools import Runnable

KIRO = "kiro"
_KIRO_TASK = re.compile(r"^([ \t]*)- \[([ xX~-])\](\*?)[ \t]+(\d+(?:\.\d+)*)\.?(?=[ \t])([^\r\n]*)", re.MULTILINE)
_KIRO_ENDS = re.compile(r"^(?:[^\s-]|-(?![ \t]))", re.MULTILINE)
_KIRO_TITLE = re.compile(r"^# +([^\r\n]+)", re.MULTILINE)
_OPTIONAL = "OPTIONAL"


def is_kiro(text: str) -> bool:
    """Tell whether the text is a plan as Kiro writes them, by what other plans do not have."""
    return "_Requirements:" in text and "**Verify**" not in text and re.search(r"(?m)^- \[.\] \d+\. ", text) is not None


def read_kiro(text: str, path: str, *, runnable: Runnable, known: Mapping[str, str] | None = None) -> Plan:  # noqa: ARG001  # ids are in the text
    """Read a whole plan."""
    if problems := tuple(tasks_md.not_text(text)):
        return Plan(path=path, format=KIRO, tasks=(), problems=problems)
    text = tasks_md.printable(text)
    scanner = Scanner(text)
    blocks = list(_blocks(scanner))
    above = parents(blocks)
    own = [block for block in blocks if block.id not in above and _OPTIONAL not in block.markers]
    for block in own:
        block.asked = read_asked(scanner, block, runnable)
    title = _KIRO_TITLE.search(text)
    return Plan(
        path=path,
        format=KIRO,
        title=title[1].strip() if title else "",
        tasks=tuple(tasks_md.make_task(text, block) for block in own),
        concerns=tuple(_left_out(blocks)),
        problems=tuple(tasks_md.unapproved(own)),
    )


def locate_kiro(text: str, known: Mapping[str, str] | None = None) -> Located:  # noqa: ARG001  # ids are in the text
    """Find every task of a plan, those with subtasks included."""
    blocks = [] if any(tasks_md.not_text(text)) else list(_blocks(Scanner(tasks_md.printable(text))))
    return Located(text, place(blocks), parents(blocks))


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
            yield Problem(
                message=f"Task {block.id} is optional and is left out.",
                line=block.line,
                hint="Remove the * behind its box to have it done.",
            )


# --- spec-kit

SPEC_KIT = "spec-kit"
_TASK = re.compile(r"(?m)^- \[[ xX]\] T\d{3,}\b")
_HEADING = re.compile(r"(?m)^(#{2,3})[ \t]+([^\r\n]*)")
_ID = r"T\d{3,}[a-z]?"
_DEPENDS = re.compile(rf"(?i)\b(?:depends on|requires|after)\b[:\s]+((?:{_ID}(?:\s*(?:,|and|&)\s*)?)+)")
_LINE = re.compile(rf"(?i)\b({_ID})\b[^.\n]{{0,40}}?\bdepends on\b[:\s]+((?:{_ID}(?:\s*(?:,|and|&)\s*)?)+)")
_BEFORE = re.compile(rf"({_ID})\s*(?:→|->|before|blocks)\s*({_ID})")
_STORY = re.compile(r"\[(US\d+)\][ \t]*")
_PATH = re.compile(
    r"(?<![\w/.-])(?:\.?[\w-]+/)+[\w.-]*\w|\b[\w-]+\.(?:py|ts|tsx|js|jsx|go|rs|java|md|json|ya?ml|toml|sql|sh|css|html)\b"
)


def is_spec_kit(text: str) -> bool:
    """Tell whether the text has spec-kit's task lines."""
    return "] T" in text and _TASK.search(text) is not None


def read_spec_kit(text: str, path: str, *, runnable: Runnable, known: Mapping[str, str] | None = None) -> Plan:
    """Read a whole plan."""
    plan = tasks_md.read(text, path, runnable=runnable, known=known)
    headings = [(text.count("\n", 0, found.start()) + 1, found[1], found[2]) for found in _HEADING.finditer(text)]
    parts = list(_parts([task.line for task in plan.tasks], headings))
    tasks = [_told(task) for task in plan.tasks]
    needed = _needed(tasks, [phase for phase, _ in parts], text)
    grouped = zip(tasks, _grouped(tasks, parts), strict=True)
    found = tuple(replace(task, depends_on=needed[task.id], group=group) for task, group in grouped)
    return replace(plan, format=SPEC_KIT, tasks=found)


def _told(task: Task) -> Task:
    """Take the story out of the title, and the paths that it names."""
    story = _STORY.match(task.title)
    markers = (*task.markers, story[1]) if story else task.markers
    title = task.title[story.end() :] if story else task.title
    return replace(task, title=title, markers=markers, files=task.files or _files(title), group=None)


def _parts(starts: Iterable[int], headings: Sequence[tuple[int, str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the phase and the part of it that each task stands in."""
    ahead = deque(headings)
    phase = part = ""
    for at in starts:
        while ahead and ahead[0][0] <= at:
            start, level, title = ahead.popleft()
            phase, part = (f"{start} {title}", "") if level == "##" else (phase, title)
        yield phase, part


def _needed(tasks: Sequence[Task], phases: Sequence[str], text: str) -> dict[str, tuple[str, ...]]:
    """Work out what each task waits for; nothing waits for what stands below it, so there are no circles."""
    members: dict[str, list[Task]] = {}
    for task, phase in zip(tasks, phases, strict=True):
        members.setdefault(phase, []).append(task)
    places = {task.id: place for place, task in enumerate(tasks)}
    needed: dict[str, dict[str, None]] = {task.id: {} for task in tasks}
    foundation: list[str] = []
    since: list[str] = []
    for phase, own in members.items():
        story = "user story" in phase.lower() or any(_story(task) for task in own)
        for task in own:
            if task.fixes is None:
                needed[task.id].update(dict.fromkeys(foundation if story else [*foundation, *since]))
        names = [task.id for task in own if task.fixes is None]
        foundation, since = (foundation, [*since, *names]) if story else (names, [])
    for one, other in _said(tasks, text):
        if one in places and other in places and places[other] < places[one]:
            needed[one][other] = None
    return {name: tuple(sorted(names, key=places.__getitem__)) for name, names in needed.items()}


def _said(tasks: Iterable[Task], text: str) -> Iterable[tuple[str, str]]:
    """Yield (task, what it depends on) as the words of the plan have it."""
    for task in tasks:
        for found in _DEPENDS.finditer(task.title):
            yield from ((task.id, other) for other in re.findall(_ID, found[1]))
    section = re.search(r"(?mi)^##[ \t]+.*dependenc.*$", text)
    below = text[section.end() :] if section else ""
    for found in _LINE.finditer(below):
        yield from ((found[1], other) for other in re.findall(_ID, found[2]))
    for found in _BEFORE.finditer(below):
        yield found[2], found[1]


def _story(task: Task) -> bool:
    return any(re.fullmatch(r"US\d+", marker) for marker in task.markers)


def _grouped(tasks: Sequence[Task], parts: Sequence[tuple[str, str]]) -> list[str | None]:
    """Name the group of each task: adjacent [P] tasks of one part that share no file."""
    found: list[str | None] = [None] * len(tasks)
    members: list[int] = []
    for at, task in enumerate(tasks):
        if task.fixes is not None:
            continue
        claimed = {file for member in members for file in tasks[member].files}
        fits = members and parts[at] == parts[members[-1]] and len(members) < tasks_md.LARGEST_GROUP
        if "P" not in task.markers or not fits or not claimed.isdisjoint(task.files):
            members = []
        if "P" in task.markers:
            members.append(at)
            if len(members) > 1:
                found[members[0]] = found[at] = f"P{tasks[members[0]].line}"
    return found


def _files(title: str) -> tuple[str, ...]:
    """List the paths that a title names."""
    return tuple(dict.fromkeys(found[0] for found in _PATH.finditer(title)))
