"""Find and edit the blocks of tasks in the text of a Markdown plan."""

import re
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from unstuck.model.errors import CannotWrite
from unstuck.model.plan import CHECKPOINT, Insertion, Problem
from unstuck.model.verdict import Check
from unstuck.plans.literal_text import AT_COLUMN_0, INDENTED_CODE, Scanner, Stretch

TASK_LINE = re.compile(r"- \[([ xX])\](?=[ \t\r\n]|\Z)")

_ID_TEXT = r"(?:VF|[A-Za-z]*\d+)(?:\.\d+)*"
KEY = r"[A-Z][A-Z0-9]{1,9}-\d{1,6}"
"""The key of an issue in a tracker, such as PROJ-101. Other words have this form too, such as UTF-8."""
_KEYED = re.compile(rf"\[?({KEY})\]?(?:\([^()\s]*\))?[.:)]?[ \t]+(?=\S)", re.ASCII)
_ID = re.compile(rf"({_ID_TEXT}|{KEY}(?:\.\d+)+)[.:)]?(?=[ \t]|\Z)", re.ASCII)
_LAST_MARKER = re.compile(r"(?<=\S)[ \t]+\[(P|VERIFY)\][ \t]*\Z")
"""Of these two markers also those after the title count."""
_MARKER = re.compile(
    rf"\[(?:(P|VERIFY|RED|GREEN|YELLOW|RECOVERY)|FIX[ \t]+({_ID_TEXT}|{KEY}(?:\.\d+)*))\]", re.ASCII | re.IGNORECASE
)
_HEADING = re.compile(r"(#{1,2})(?:[ \t]+([^\r\n]*)|(?=[\r\n]|\Z))")
_ALMOST = re.compile(
    r"(?<![^\n\ufeff])(?P<indent>[ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]*"
    r"\[[ \t]*(?P<box>[^\s\]]{0,12})[ \t]*\](?![(\[:])[ \t]*(?P<rest>[^\r\n]*)"
)
"""A line with a box, or with brackets that may be meant as one."""
_LIKELY_ID = re.compile(rf"({_ID_TEXT}|{KEY}(?:\.\d+)*)[.:)]?(?=[ \t]|\Z)", re.ASCII)
OUR_ID = re.compile(r"t[1-9]\d*", re.ASCII)
"""The ids that `unstuck` gives to tasks without one."""


@dataclass(slots=True, eq=False)
class Block:
    """One task in the text, from `start` to `end` without the blank lines after it."""

    line: int
    start: int
    end: int
    section: int
    """The line of the heading above, or 0 before the first heading."""
    ticked: bool
    box: int
    """The offset of the character between the brackets."""
    id: str = ""
    """Empty if the text has none, until `name_tasks` sets it."""
    title: str = ""
    markers: tuple[str, ...] = ()
    fixes: str | None = None
    literal: list[Stretch] = field(default_factory=list)
    """The literal lines inside the block."""
    files: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    commit: str | None = None
    agent: str = ""
    depends: tuple[str, ...] = ()
    """The ids of tasks that must be done before."""
    reason: str = ""
    """The reason why a Verify gives no checks. Empty if the task has no Verify."""
    proposed: str = ""
    """`proposed by` and the agent's name, if the user has not approved the commands yet. None of them is a check."""

    def problem(self, message: str, hint: str) -> Problem:
        """Return a problem at this task's line."""
        return Problem(message=message, line=self.line, hint=hint)


class Reading:
    """One pass over a text for its tasks and its title, with the mistakes noticed on the way."""

    def __init__(self, text: str) -> None:
        self.scanner = Scanner(text)
        self.flat = self.scanner.flat
        self.title = ""
        self.concerns = self.scanner.concerns
        self.problems = self.scanner.problems
        self._section = 0
        self._blocks: list[Block] = []
        self._open: Block | None = None
        """The last task so far, while it may have more lines."""

    def blocks(self) -> list[Block]:
        """Return the tasks in the order of the text."""
        literal = deque(self.scanner.literal)
        starts = [match.start() for match in AT_COLUMN_0.finditer(self.scanner.seen)]
        for start in (*starts, len(self.flat)):
            while literal and literal[0].start < start:
                stretch = literal.popleft()
                if self._open:
                    self._open.literal.append(stretch)
            if start < len(self.flat):
                self._read_line(start)
        self._close(len(self.flat))
        return self._blocks

    def _read_line(self, start: int) -> None:
        """Read a line at column 0, which may begin a task or be a heading."""
        flat, line = self.flat, self.scanner.number(start)
        if flat[start] == " ":
            return
        self._close(start)
        if task := TASK_LINE.match(flat, start):
            end = flat.find("\n", start) + 1 or len(flat)
            self._open = Block(line, start, end, self._section, task[1] != " ", task.start(1))
            self._blocks.append(self._open)
            self._read_head(self._open, flat[task.end() : end])
        elif heading := _HEADING.match(flat, start):
            self._section = line
            if heading[1] == "#":
                self.title = self.title or (heading[2] or "").strip()

    def _read_head(self, block: Block, rest: str) -> None:
        read_head(block, rest.strip())
        if not block.title:
            name = f"Task {block.id}" if block.id else "A task"
            hint = "Write what is to be done after the box."
            problem = block.problem(f"{name} has no title.", hint)
            # With an id the task can still be identified, and its fields may say what to do.
            (self.concerns if block.id else self.problems).append(problem)

    def _close(self, limit: int) -> None:
        """End the open block after its last line with text.

        A comment at column 0 is left out, because it may belong to the next task.
        """
        block, self._open = self._open, None
        while block:
            last = block.start + len(self.flat[block.start : limit].rstrip(" \t\r\n"))
            tail = block.literal[-1] if block.literal else None
            if tail is None or tail.kind != "comment" or tail.end < last or self.flat[tail.start] in " \t":
                block.end = self.flat.find("\n", last) + 1 or len(self.flat)
                return
            limit = block.literal.pop().start


AT_THE_LEFT = "`- [ ] ` or `- [x] ` at column 0"


def almost_tasks(scanner: Scanner, blocks: Sequence[Block], like: str = AT_THE_LEFT) -> tuple[list[Problem], ...]:
    """Return problems and concerns about lines with a box that are no tasks.

    A line whose id looks like the plan's own ids is a problem, any other is a concern.
    `like` describes how a task of this plan begins.
    """
    task_lines, shapes = {block.line for block in blocks}, {id_shape(block.id) for block in blocks}
    starts = [block.start for block in blocks] if like is AT_THE_LEFT else []
    problems, concerns = list[Problem](), list[Problem]()
    for match in _ALMOST.finditer(scanner.seen):
        line, box, rest, words = scanner.number(match.start()), match["box"], match["rest"], match[0].strip()
        is_indented = like is AT_THE_LEFT and not AT_COLUMN_0.match(scanner.seen, match.start())
        above = bisect_right(starts, match.start()) if is_indented else 0
        if line in task_lines or (above and match.start() < blocks[above - 1].end):
            continue  # a task, or an item of one
        # A line with this indentation may be an example of how tasks are written.
        is_code = is_indented and len(match["indent"].expandtabs(INDENTED_CODE)) >= INDENTED_CODE
        name = _LIKELY_ID.match(rest)
        has_id = name is not None and (id_shape(name[1]) in shapes or CHECKPOINT.fullmatch(name[1]) is not None)
        if has_id and len(box) <= 1 and not is_code:
            hint = f"Write it as `- [ ] {rest.strip()}`, beginning at column 0."
            problems.append(Problem(message=f"{words!r} looks like a task but is not one.", line=line, hint=hint))
        elif has_id or box in {"x", "X"} or (len(box) <= 1 and not box.isalnum()):
            hint = f"A task begins with {like}."
            concerns.append(Problem(message=f"{words!r} is not read as a task.", line=line, hint=hint))
    return problems, concerns


_NUMBERS = re.compile(r"\d+(\.\d)?(?:\.?\d)*", re.ASCII)


def id_shape(name: str) -> str:
    """Return the id with its numbers replaced: T012 and T1 have one shape, and so have 1.2.1 and 1.4."""
    return _NUMBERS.sub(lambda number: "0.0" if number[1] else "0", name).casefold()


def use_tracker_keys(blocks: Sequence[Block]) -> None:
    """Use the tracker keys in titles as ids, if they are unique and several name the same project."""
    keyed = [(block, key) for block in blocks if not block.id and (key := _KEYED.match(block.title))]
    keys = {key[1] for _, key in keyed}
    if len(keys) != len(keyed):
        return
    projects = Counter(key.partition("-")[0] for key in keys)
    for block, key in keyed:
        if projects[key[1].partition("-")[0]] > 1:
            block.id, block.title = key[1], block.title[key.end() :]


def name_tasks(blocks: Sequence[Block], earlier: Mapping[str, str]) -> None:
    """Set the id of each task without one: its tracker key, its earlier id `t<n>`, or the next free one.

    `earlier` holds the titles of an earlier reading by their ids.
    """
    use_tracker_keys(blocks)
    given = {block.id.casefold() for block in blocks if block.id}
    free: dict[str, deque[str]] = defaultdict(deque)
    for name, title in earlier.items():
        if name not in given and OUR_ID.fullmatch(name):
            free[title].append(name)
    taken = given.union(earlier)
    number = 0
    for block in blocks:
        if not block.id and free.get(block.title):
            block.id = free[block.title].popleft()
        while not block.id:
            number += 1
            block.id = "" if f"t{number}" in taken else f"t{number}"


_TITLE = re.compile(r"^# +([^\r\n]+)", re.MULTILINE)


def title_of(text: str) -> str:
    """Return the first title of a text, or an empty string."""
    title = _TITLE.search(text)
    return title[1].strip() if title else ""


def read_head(block: Block, rest: str) -> None:
    """Set the block's id, markers and title from the words after the box."""
    markers: dict[str, None] = {}
    at = 0
    while True:
        if marker := _MARKER.match(rest, at):
            block.fixes = block.fixes or marker[2]
            if marker[1]:
                markers[marker[1].upper()] = None
            at = marker.end()
        elif not block.id and (name := _ID.match(rest, at)):
            block.id = name[1]
            at = name.end()
        else:
            break
        while rest.startswith((" ", "\t"), at):
            at += 1
    title = rest[at:]
    while last := _LAST_MARKER.search(title):
        markers[last[1]] = None
        title = title[: last.start()]
    block.markers = tuple(markers)
    block.title = title


# --- edits, which leave every other byte of the text as it was


_BLANK_LINE = ("\n\n", "\n\r\n", "\r\r")
_WORD = re.compile(r"\S")
_LINE_END = re.compile(r"\r\n|\r|\n")

TICK = "x"
"""The character in the box of a finished task. Ticking a task changes this one byte of a Markdown plan."""
NO_TICK = " "


class Edit(NamedTuple):
    """The replacement of the text from `start` to `end`."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Return the text with the edits, which must not overlap. All other characters stay the same."""
    pieces, at = list[str](), 0
    for edit in sorted(edits):
        pieces += (text[at : edit.start], edit.text)
        at = edit.end
    return "".join((*pieces, text[at:]))


@dataclass(frozen=True, slots=True)
class Located:
    """A plan's text with the block of each task."""

    text: str
    places: Mapping[str, Block]
    parents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The subtasks of each parent task, which is done when all of them are."""
    within: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The boxes inside each task, which are ticked with it."""

    def tick(self, done: Mapping[str, bool]) -> str:
        """Return the text with these tasks ticked (True) or not. Unknown ids are ignored, and `X` stays `X`."""
        wanted = {name: ticked for name, ticked in done.items() if name in self.places}
        wanted.update((name, True) for task, ticked in done.items() if ticked for name in self.within.get(task, ()))
        for parent in sorted(self.parents, key=len, reverse=True):  # the deepest first, because parents depend on them
            if not wanted.keys().isdisjoint(self.parents[parent]):
                wanted[parent] = all(wanted.get(name, self._ticked(name)) for name in self.parents[parent])
        boxes = {self.places[name].box: ticked for name, ticked in wanted.items() if self._ticked(name) != ticked}
        edits = [Edit(box, box + 1, TICK if ticked else NO_TICK) for box, ticked in boxes.items()]
        return apply_edits(self.text, edits)

    def _ticked(self, name: str) -> bool:
        return self.text[self.places[name].box].lower() == TICK

    def insert(self, insertion: Insertion, locate: Callable[[str], "Located"]) -> "Located":
        """Return the text with the tasks that it does not have yet. Raise CannotWrite if they cannot be read back.

        `locate` finds the tasks in the new text.
        """
        blocks = {name: block for name, block in insertion.blocks.items() if name not in self.places}
        if not blocks:
            return self
        if insertion.beside not in self.places:
            raise CannotWrite(
                f"Task {insertion.beside} is no longer in the plan, so nothing can be written beside it.",
                hint="Put it back, or go on with `unstuck run PLAN --accept-plan-change`.",
            )
        after = locate(self._with_blocks(blocks.values(), insertion))
        lost = [name for name in blocks if name not in after.places]
        if lost or len(after.places) != len(self.places) + len(blocks):
            raise CannotWrite(  # a code block or comment that does not end hides it or the next tasks
                f"A task written beside {insertion.beside} would not be read as one ({(lost or list(blocks))[0]}).",
                hint=f"See that every code block, comment and here-document near task {insertion.beside} ends, then resume.",
            )
        return after

    def _with_blocks(self, blocks: Iterable[str], insertion: Insertion) -> str:
        at, has_blank_lines = self._insertion_point(insertion)
        first = self.text[self.places[insertion.beside].start :]
        indent = first[: len(first) - len(first.lstrip(" \t"))]
        ends = _LINE_END.search(first) or _LINE_END.search(self.text)
        end = ends[0] if ends else "\n"
        bodies = [indent + block.rstrip("\n").replace("\n", f"{end}{indent}") + end for block in blocks]
        gap = end if has_blank_lines else ""
        text = "".join(f"{body}{gap}" if insertion.before else f"{gap}{body}" for body in bodies)
        if at == len(self.text) and not self.text.endswith(("\n", "\r")):
            text = f"{end}{text.removesuffix(end)}"  # the file has no final line end, before and after
        return self.text[:at] + text + self.text[at:]

    def _insertion_point(self, insertion: Insertion) -> tuple[int, bool]:
        """Return the offset at which to insert, and whether blank lines separate the tasks there."""
        beside = self.places[insertion.beside]
        if insertion.before:
            return beside.start, self.text.endswith(_BLANK_LINE, 0, beside.start)
        family = f"{insertion.beside}."
        descendants = [place for name, place in self.places.items() if name.startswith(family)]
        last = max((beside, *descendants), key=lambda place: place.end)
        follows = self.text[last.end : last.end + 2]
        if _WORD.search(self.text, last.end) is None:
            return last.end, bool(follows) or self.text.endswith(_BLANK_LINE, 0, last.start)
        return last.end, follows.startswith(("\n", "\r"))
