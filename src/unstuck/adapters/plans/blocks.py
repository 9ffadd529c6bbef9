"""Find the tasks in the text of a `tasks.md`: their first lines taken apart, and how far their blocks go."""

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from unstuck.adapters.plans.lines import TASK_LINE, Scanner, Stretch
from unstuck.core.plan import CHECKPOINT, Problem

_ID_TEXT = r"(?:VF|[A-Za-z]*\d+)(?:\.\d+)*"
_ID = re.compile(rf"({_ID_TEXT})[.:)]?(?=[ \t]|\Z)", re.ASCII)
_MARKER = re.compile(rf"\[(?:(P|VERIFY|RED|GREEN|YELLOW|RECOVERY)|FIX[ \t]+({_ID_TEXT}))\]", re.ASCII | re.IGNORECASE)
_HEADING = re.compile(r"(#{1,2})(?:[ \t]+([^\r\n]*)|(?=[\r\n]|\Z))")
_ALMOST = re.compile(r" ?(?:[-*+]|\d{1,9}[.)])[ \t]*\[[ \t]*([^\s\]]?)[ \t]*\](?![(\[:])[ \t]*([^\r\n]*)")
_CLEARLY_AN_ID = re.compile(r"(?:\d+(?:\.\d+)+|V(?:E?\d+|F))(?=[ \t.:)]|\Z)", re.ASCII)
_OUR_ID = re.compile(r"t[1-9]\d*", re.ASCII)


@dataclass(slots=True, kw_only=True)
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
    markers: tuple[str, ...] = ()
    fixes: str | None = None
    title: str = ""
    indent: int = 0
    literal: list[Stretch] = field(default_factory=list)
    """What in it is code, a here-document or a comment."""

    @property
    def box(self) -> int:
        """Where the character between the brackets stands."""
        return self.start + self.indent + len("- [")

    @property
    def is_checkpoint(self) -> bool:
        """Tell whether the task checks what was done before it: [VERIFY], or an id such as V4, VE1, VF."""
        return "VERIFY" in self.markers or (self.fixes is None and CHECKPOINT.fullmatch(self.id) is not None)


class Reading:
    """One pass over a text: its tasks, its title, and what looked wrong on the way."""

    def __init__(self, text: str) -> None:
        self._scanner = Scanner(text)
        self.flat = self._scanner.flat
        self.title = ""
        self.concerns = self._scanner.concerns
        self.problems = self._scanner.problems

    def blocks(self) -> Iterator[Block]:
        """Yield each task when its block has ended."""
        flat = self.flat
        block: Block | None = None
        section = 0
        for stretch in self._scanner:
            if stretch.kind != "text":
                if block:
                    block.literal.append(stretch)
                continue
            if flat[stretch.start] == " ":
                self._almost_a_task(stretch)
                continue
            if block:
                yield self._close(block, stretch.start)
                block = None
            if task := TASK_LINE.match(flat, stretch.start):
                block = self._begin(stretch, section, ticked=task[1] != " ")
            elif heading := _HEADING.match(flat, stretch.start):
                section = stretch.line
                if heading[1] == "#":
                    self.title = self.title or (heading[2] or "").strip()
            else:
                self._almost_a_task(stretch)
        if block:
            yield self._close(block, len(flat))

    def _begin(self, stretch: Stretch, section: int, *, ticked: bool) -> Block:
        block = Block(line=stretch.line, start=stretch.start, end=stretch.end, section=section, ticked=ticked)
        read_head(block, self.flat[stretch.start + len("- [x]") : stretch.end].strip())
        if not block.title:
            name = f"Task {block.id}" if block.id else "A task"
            hint = "Write what is to be done after the box."
            problem = Problem(message=f"{name} has no title.", line=stretch.line, hint=hint)
            # With an id the task can still be told apart, and its fields may say what to do.
            (self.concerns if block.id else self.problems).append(problem)
        return block

    def _close(self, block: Block, limit: int) -> Block:
        """End the block with its last line that says something; a comment at column 0 may belong to what follows."""
        while True:
            last = block.start + len(self.flat[block.start : limit].rstrip(" \t\r\n"))
            tail = block.literal[-1] if block.literal else None
            if tail is None or tail.kind != "comment" or tail.end < last or self.flat[tail.start] in " \t":
                block.end = self.flat.find("\n", last) + 1 or len(self.flat)
                return block
            limit = block.literal.pop().start

    def _almost_a_task(self, stretch: Stretch) -> None:
        found = _ALMOST.match(self.flat, stretch.start)
        if found is None:
            return
        line = stretch.line
        words = found[0].strip()
        if _CLEARLY_AN_ID.match(found[2]):
            hint = f"Write it as `- [ ] {found[2].strip()}`, beginning at column 0."
            self.problems.append(Problem(message=f"{words!r} looks like a task but is not one.", line=line, hint=hint))
        elif found[1] in {"", "x", "X"}:
            hint = "A task begins with `- [ ] ` or `- [x] ` at column 0."
            self.concerns.append(Problem(message=f"{words!r} is not read as a task.", line=line, hint=hint))


def name_tasks(blocks: Sequence[Block], known: Mapping[str, str]) -> list[str]:
    """Return every task's id; one without gets the `t<n>` that its title had before, or the next free one."""
    if all(block.id for block in blocks):
        return [block.id for block in blocks]
    given = {block.id.casefold() for block in blocks if block.id}
    earlier: dict[str, deque[str]] = defaultdict(deque)
    for name, title in known.items():
        if name not in given and _OUR_ID.fullmatch(name):
            earlier[title].append(name)
    taken = given.union(known)
    names: list[str] = []
    number = 0
    for block in blocks:
        name = block.id
        if not name and earlier.get(block.title):
            name = earlier[block.title].popleft()
        while not name:
            number += 1
            name = "" if f"t{number}" in taken else f"t{number}"
        names.append(name)
    return names


def read_head(block: Block, rest: str) -> None:
    """Take the words after the box apart: an id, markers in any order, the title."""
    if "[" not in rest:  # most tasks have no markers
        name = _ID.match(rest)
        block.id = name[1] if name else ""
        block.title = rest[name.end() :].lstrip(" \t") if name else rest
        return
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
