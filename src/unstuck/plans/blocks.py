"""Find the tasks in the text of a `tasks.md`: their first lines taken apart, and how far their blocks go."""

import re
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from unstuck.plans.lines import AT_COLUMN_0, TASK_LINE, Scanner, Stretch
from unstuck.plans.plan import CHECKPOINT, Problem

_ID_TEXT = r"(?:VF|[A-Za-z]*\d+)(?:\.\d+)*"
_ID = re.compile(rf"({_ID_TEXT})[.:)]?(?=[ \t]|\Z)", re.ASCII)
_MARKER = re.compile(rf"\[(?:(P|VERIFY|RED|GREEN|YELLOW|RECOVERY)|FIX[ \t]+({_ID_TEXT}))\]", re.ASCII | re.IGNORECASE)
_HEADING = re.compile(r"(#{1,2})(?:[ \t]+([^\r\n]*)|(?=[\r\n]|\Z))")
_ALMOST = re.compile(r" ?(?:[-*+]|\d{1,9}[.)])[ \t]*\[[ \t]*([^\s\]]?)[ \t]*\](?![(\[:])[ \t]*([^\r\n]*)")
_CLEARLY_AN_ID = re.compile(r"(?:\d+(?:\.\d+)+|V(?:E?\d+|F))(?=[ \t.:)]|\Z)", re.ASCII)
OUR_ID = re.compile(r"t[1-9]\d*", re.ASCII)
"""What tasks without an id are called."""


@dataclass(slots=True, eq=False)
class Block:
    """One task in the text. Its block goes from `start` to `end`; blank lines after it are not part of it."""

    line: int
    start: int
    end: int
    section: int
    """The line of the heading it stands under; 0 before the first."""
    ticked: bool
    id: str = ""
    """Empty if the text gives none."""
    title: str = ""
    markers: tuple[str, ...] = ()
    fixes: str | None = None
    is_checkpoint: bool = False
    """Whether the task checks what was done before it: [VERIFY], or an id such as V4, VE1, VF."""
    indent: int = 0
    literal: list[Stretch] = field(default_factory=list)
    """What in it is code, a here-document or a comment."""

    @property
    def box(self) -> int:
        """Where the character between the brackets stands."""
        return self.start + self.indent + len("- [")


class Reading:
    """One pass over a text: its tasks, its title, and what looked wrong on the way."""

    def __init__(self, text: str) -> None:
        self.scanner = Scanner(text)
        self.flat = self.scanner.flat
        self.title = ""
        self.concerns = self.scanner.concerns
        self.problems = self.scanner.problems
        self._section = 0
        self._found: list[Block] = []
        self._open: Block | None = None
        """The last one found, as long as it may go on."""

    def blocks(self) -> list[Block]:
        """Find the tasks."""
        literal = deque(self.scanner.literal)
        starts = [found.start() for found in AT_COLUMN_0.finditer(self.scanner.seen)]
        for start in (*starts, len(self.flat)):
            while literal and literal[0].start < start:
                stretch = literal.popleft()
                if self._open:
                    self._open.literal.append(stretch)
            if start < len(self.flat):
                self._read_line(start)
        self._close(len(self.flat))
        return self._found

    def _read_line(self, start: int) -> None:
        """Read a line at column 0: a task's first one, a heading, or neither."""
        flat, line = self.flat, self.scanner.number(start)
        if flat[start] == " ":
            self._almost_a_task(line, start)
            return
        self._close(start)
        if task := TASK_LINE.match(flat, start):
            end = flat.find("\n", start) + 1 or len(flat)
            self._open = Block(line, start, end, self._section, task[1] != " ")
            self._found.append(self._open)
            self._read_head(self._open, flat[task.end() : end])
        elif heading := _HEADING.match(flat, start):
            self._section = line
            if heading[1] == "#":
                self.title = self.title or (heading[2] or "").strip()
        else:
            self._almost_a_task(line, start)

    def _read_head(self, block: Block, rest: str) -> None:
        read_head(block, rest.strip())
        if not block.title:
            name = f"Task {block.id}" if block.id else "A task"
            hint = "Write what is to be done after the box."
            problem = Problem(message=f"{name} has no title.", line=block.line, hint=hint)
            # With an id the task can still be told apart, and its fields may say what to do.
            (self.concerns if block.id else self.problems).append(problem)

    def _close(self, limit: int) -> None:
        """End the open block with its last line that says something; a comment at column 0 may belong to what follows."""
        block, self._open = self._open, None
        while block:
            last = block.start + len(self.flat[block.start : limit].rstrip(" \t\r\n"))
            tail = block.literal[-1] if block.literal else None
            if tail is None or tail.kind != "comment" or tail.end < last or self.flat[tail.start] in " \t":
                block.end = self.flat.find("\n", last) + 1 or len(self.flat)
                return
            limit = block.literal.pop().start

    def _almost_a_task(self, line: int, start: int) -> None:
        found = _ALMOST.match(self.flat, start)
        if found is None:
            return
        words = found[0].strip()
        if _CLEARLY_AN_ID.match(found[2]):
            hint = f"Write it as `- [ ] {found[2].strip()}`, beginning at column 0."
            self.problems.append(Problem(message=f"{words!r} looks like a task but is not one.", line=line, hint=hint))
        elif found[1] in {"", "x", "X"}:
            hint = "A task begins with `- [ ] ` or `- [x] ` at column 0."
            self.concerns.append(Problem(message=f"{words!r} is not read as a task.", line=line, hint=hint))


def name_tasks(blocks: Sequence[Block], known: Mapping[str, str]) -> list[str]:
    """Return every task's id; one without gets the `t<n>` that its title had before, or the next free one."""
    names = [block.id for block in blocks]
    if all(names):
        return names
    given = {name.casefold() for name in names if name}
    earlier: dict[str, deque[str]] = defaultdict(deque)
    for name, title in known.items():
        if name not in given and OUR_ID.fullmatch(name):
            earlier[title].append(name)
    taken = given.union(known)
    number = 0
    for at, block in enumerate(blocks):
        name = block.id
        if not name and earlier.get(block.title):
            name = earlier[block.title].popleft()
        while not name:
            number += 1
            name = "" if f"t{number}" in taken else f"t{number}"
        names[at] = name
    return names


def read_head(block: Block, rest: str) -> None:
    """Take the words after the box apart: an id, markers in any order, the title."""
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
    block.markers = tuple(markers)
    block.title = rest[at:]
    block.is_checkpoint = "VERIFY" in markers or (block.fixes is None and CHECKPOINT.fullmatch(block.id) is not None)
