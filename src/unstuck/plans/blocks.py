"""Find the tasks in the text of a Markdown plan, and tell lines that may begin something from those that only look like it.

Literal lines (fenced code, here-documents, HTML comments) never begin a task, a heading or a field.
Lines end with LF, CRLF or a lone CR. Nothing is searched twice over, so scanning is linear.

Where we differ from CommonMark, on purpose: a here-document in the text of a list item hides its lines; a comment
opened inside a list item lasts to its `-->` even over lines at column 0; plain text or a heading at column 0 does not
end a code block inside a list item when a closing fence follows; HTML blocks other than comments hide nothing.
"""

import re
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Literal, NamedTuple

from unstuck.model.plan import CHECKPOINT, Problem
from unstuck.model.verdict import Check

Kind = Literal["code", "heredoc", "comment"]

TASK_LINE = re.compile(r"- \[([ xX])\](?=[ \t\r\n]|\Z)")

_ITEMS = r"(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*"
AT_COLUMN_0 = re.compile(r"(?<![^\n\ufeff])(?:[^ \t\r\n\ufeff]|[ ]-)")
"""How a line begins that is neither blank nor indented; ` -` only looks so."""
_VISIBLE = re.compile(r"[^\r\n]")
_OPENER = re.compile("```|~~~|<!--|<<")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|(?=[\r\n]|\Z))")
_FENCE = re.compile(rf"([ \t]*)({_ITEMS})(?:(`{{3,}})[^`\n]*|(~{{3,}})[^\n]*)(?=\n|\Z)")
_COMMENT = re.compile(rf"([ \t]*)({_ITEMS})<!--")
_BEGINS = r"(?:[-*+]|\d{1,9}[.)])(?:[ \t\r\n]|\Z)|```|~~~|<!--|(?P<heading>#{1,6}(?=[ \t\r\n]|\Z))"
_HEREDOC = re.compile(r"(?<!<)<<(?!<)-?[ \t]*(?:\\?([A-Za-z_]\w*)|'([\w.-]+)'|\"([\w.-]+)\")", re.ASCII)
_ENDS_HEREDOC = re.compile(r"\n[ \t]*([\w.-]+)[)\"'`;]*[ \t]*\r?(?=\n|\Z)", re.ASCII)
_LEFTOVER = re.compile(r"\)|[\"'](?![\"'])|`(?!``)")
_LONE_CR = re.compile(r"\r(?!\n)")
_INDENTED_CODE = 4


class Stretch(NamedTuple):
    """Whole lines that are literal."""

    line: int
    start: int
    end: int
    kind: Kind


class Scanner:
    """Look once over a text: what in it is literal, and what looked wrong on the way."""

    def __init__(self, text: str) -> None:
        self.flat = _LONE_CR.sub("\n", text)
        """The text with every lone CR as LF: the same places, but only one end of line to look for."""
        self.concerns: list[Problem] = []
        self.problems: list[Problem] = []
        self.unended = len(text)
        """Where a code block or a comment begins that never ends."""
        self._counted = (0, 1)
        self.literal = tuple(self._literal())
        self.seen = _hidden(self.flat, self.literal)
        """The same with blanks in the place of all that is literal: nothing in there can be found."""

    def _literal(self) -> Iterator[Stretch]:
        flat = self.flat
        width = 0  # the indentation from which lines belong to the list item above; 0 outside lists
        listed = False  # whether the block above began as a list item, whatever stands in it at column 0
        at = int(flat.startswith("\ufeff"))
        while at < len(flat):
            end = self._line_end(at)
            opens = _OPENER.search(flat, at, end) is not None
            literal = self._fence_or_comment(at, width) if opens else None
            if flat[at] not in " \t\r\n":
                item = _ITEM.match(flat, at)
                width = item.end() - at if item else 0  # how far in its text stands
                listed = width > 0 or (listed and literal is not None)
            if opens and literal is None and listed:
                literal = self._heredoc(at)
            if literal:
                yield literal
            at = literal.end if literal else end

    def _fence_or_comment(self, start: int, width: int) -> Stretch | None:
        fence = _FENCE.match(self.flat, start)
        if fence and (place := _place(fence, width)):
            return self._fence(start, fence[3] or fence[4], in_list=place == "list")
        comment = None if fence else _COMMENT.match(self.flat, start)
        if comment and (place := _place(comment, width)):
            return self._comment(start, comment.end(), in_list=place == "list")
        return None

    def _fence(self, start: int, mark: str, *, in_list: bool) -> Stretch:
        line = self.number(start)
        at = self._line_end(start) - 1
        heading = 0
        while found := _fence_end(mark, in_list).search(self.flat, at):
            if found["closer"]:
                return Stretch(line, start, self._line_end(found.start() + 1), "code")
            if found["heading"]:
                # A shell comment, if the fence is closed before the next list item; else a heading.
                heading = heading or found.start() + 1
                at = found.end() - 1
                continue
            if found[0] == "<<":
                before = self.flat.rfind("\n", 0, found.start()) + 1
                inner = self._heredoc(before)
                at = (inner.end if inner else self._line_end(before)) - 1
                continue
            return self._cut(Stretch(line, start, heading or found.start() + 1, "code"), mark)
        if heading:
            return self._cut(Stretch(line, start, heading, "code"), mark)
        self._never_ends("code block", line, start, f"Close it with a {mark} line.")
        return Stretch(line, start, len(self.flat), "code")

    def _cut(self, code: Stretch, mark: str) -> Stretch:
        """End a fence together with the list item it stands in."""
        self._concern(
            f"The code block that begins on line {code.line} is not closed before line {self.number(code.end)}.",
            code.line,
            f"Close it with an indented {mark} line.",
        )
        return code

    def _comment(self, start: int, opened: int, *, in_list: bool) -> Stretch | None:
        line = self.number(start)
        another = self.flat.find("<!--", opened) if in_list else -1
        end = self.flat.find("-->", opened - 2, another if another >= 0 else len(self.flat))
        if end >= 0:
            return Stretch(line, start, self._line_end(end), "comment")
        hint = "End it with -->."
        if in_list:
            self._concern(f"The comment that begins on line {line} does not end; it is read as text.", line, hint)
            return None
        self._never_ends("comment", line, start, hint)
        return Stretch(line, start, len(self.flat), "comment")

    def _heredoc(self, start: int) -> Stretch | None:
        """Return the here-documents that the line at `start` opens; None if it opens none that ends."""
        begin = end = self._line_end(start)
        line = self.number(start)
        for found in _HEREDOC.finditer(self.flat, start, begin):
            word = found[1] or found[2] or found[3]
            marks = self._heredocs[word]
            following = bisect_right(marks, (end - 1, True))
            if following < len(marks) and marks[following][1]:
                end = self._line_end(marks[following][0])
            elif word.isupper() and len(word) > 1:
                self._concern(
                    f"The here-document <<{word} on line {line} does not end; it is read as text.",
                    line,
                    f"End it with a line that holds only {word}.",
                )
        if end == begin:
            return None
        while _LEFTOVER.match(self.flat, end):
            end = self._line_end(end)
        return Stretch(line + 1, begin, end, "heredoc")

    @cached_property
    def _heredocs(self) -> Mapping[str, Sequence[tuple[int, bool]]]:
        """Where here-documents with a word open (False) and could end (True): one that opens anew ends none."""
        found: dict[str, list[tuple[int, bool]]] = defaultdict(list)
        for opened in _HEREDOC.finditer(self.flat):
            found[opened[1] or opened[2] or opened[3]].append((opened.start(), False))
        for ended in _ENDS_HEREDOC.finditer(self.flat):
            found[ended[1]].append((ended.start() + 1, True))
        return {word: sorted(marks) for word, marks in found.items()}

    def _never_ends(self, what: str, line: int, start: int, hint: str) -> None:
        """Report what runs to the end of the file: a problem if it hides lines that look like tasks."""
        self.unended = start
        hidden = len(re.compile(r"\n- \[[ xX]\][ \t]").findall(self.flat, start))
        message = f"The {what} that begins on line {line} never ends"
        if hidden:
            tasks = "a line that looks like a task" if hidden == 1 else f"{hidden} lines that look like tasks"
            self.problems.append(Problem(message=f"{message} and hides {tasks}.", line=line, hint=hint))

    def _concern(self, message: str, line: int, hint: str) -> None:
        self.concerns.append(Problem(message=message, line=line, hint=hint))

    def _line_end(self, at: int) -> int:
        """Return where the line after the one at `at` begins."""
        return self.flat.find("\n", at) + 1 or len(self.flat)

    def number(self, start: int) -> int:
        """Return the number of the line that begins at `start`. Counts on from the last one asked for."""
        place, number = self._counted
        number += self.flat.count("\n", place, start) if start >= place else -self.flat.count("\n", start, place)
        self._counted = (start, number)
        return number


def _hidden(text: str, literal: Sequence[Stretch]) -> str:
    pieces, at = list[str](), 0
    for stretch in literal:
        pieces += (text[at : stretch.start], _VISIBLE.sub(" ", text[stretch.start : stretch.end]))
        at = stretch.end
    return "".join((*pieces, text[at:]))


def _place(opener: re.Match[str], width: int) -> Literal["list", "top"] | None:
    """Say whether a fence or comment stands in a list item or at the top; None if so far in that it is code."""
    indent = len(opener[1].expandtabs(_INDENTED_CODE))
    if opener[2] or (width and indent >= width):
        return "list"
    return "top" if indent < _INDENTED_CODE else None


@cache
def _fence_end(mark: str, in_list: bool) -> re.Pattern[str]:  # noqa: FBT001  # a cache takes no keywords lightly
    """Match what ends a fence. Inside a list item also what begins something at column 0: the item has ended there."""
    closer = f"(?P<closer>{mark}{mark[0]}*)[ \t\r]*(?=\n|\\Z)"
    return re.compile(rf"\n[ \t]+{closer}|\n(?:{_BEGINS})|<<" if in_list else rf"\n[ ]{{0,3}}{closer}(?P<heading>)")


# --- tasks

_ID_TEXT = r"(?:VF|[A-Za-z]*\d+)(?:\.\d+)*"
KEY = r"[A-Z][A-Z0-9]{1,9}-\d{1,6}"
"""How trackers call what is to be done: PROJ-101. Other things are called so, too: UTF-8."""
_KEYED = re.compile(rf"\[?({KEY})\]?(?:\([^()\s]*\))?[.:)]?[ \t]+(?=\S)", re.ASCII)
_ID = re.compile(rf"({_ID_TEXT}|{KEY}(?:\.\d+)+)[.:)]?(?=[ \t]|\Z)", re.ASCII)
_LAST_MARKER = re.compile(r"(?<=\S)[ \t]+\[(P|VERIFY)\][ \t]*\Z")
"""The two that say how a task is run, where they stand behind its title."""
_MARKER = re.compile(
    rf"\[(?:(P|VERIFY|RED|GREEN|YELLOW|RECOVERY)|FIX[ \t]+({_ID_TEXT}|{KEY}(?:\.\d+)*))\]", re.ASCII | re.IGNORECASE
)
_HEADING = re.compile(r"(#{1,2})(?:[ \t]+([^\r\n]*)|(?=[\r\n]|\Z))")
_ALMOST = re.compile(
    r"(?<![^\n\ufeff])(?P<indent>[ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]*"
    r"\[[ \t]*(?P<box>[^\s\]]{0,12})[ \t]*\](?![(\[:])[ \t]*(?P<rest>[^\r\n]*)"
)
"""A line with a box, or with brackets that may be meant for one."""
_LIKE = re.compile(rf"({_ID_TEXT}|{KEY}(?:\.\d+)*)[.:)]?(?=[ \t]|\Z)", re.ASCII)
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
    box: int
    """Where the character between the brackets stands."""
    id: str = ""
    """Empty if the text gives none, until `name_tasks` does."""
    title: str = ""
    markers: tuple[str, ...] = ()
    fixes: str | None = None
    literal: list[Stretch] = field(default_factory=list)
    """What in it is code, a here-document or a comment."""
    files: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    commit: str | None = None
    agent: str = ""
    depends: tuple[str, ...] = ()
    """The ids of tasks that must be done before."""
    reason: str = ""
    """Why there are no checks; empty if it has no Verify at all."""
    proposed: str = ""
    """Who proposed commands that nobody has approved yet: none of them is a check."""

    def problem(self, message: str, hint: str) -> Problem:
        """Tell of something wrong with it, where it stands."""
        return Problem(message=message, line=self.line, hint=hint)


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
            return
        self._close(start)
        if task := TASK_LINE.match(flat, start):
            end = flat.find("\n", start) + 1 or len(flat)
            self._open = Block(line, start, end, self._section, task[1] != " ", task.start(1))
            self._found.append(self._open)
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


AT_THE_LEFT = "`- [ ] ` or `- [x] ` at column 0"


def almost_tasks(scanner: Scanner, blocks: Sequence[Block], like: str = AT_THE_LEFT) -> tuple[list[Problem], ...]:
    """Tell of lines with a box that are no tasks: as problems those with an id as the plan's own ones are, and the others.

    `like`: how a task begins; those at column 0 have their items further in, and what is part of none was meant for one.
    """
    taken, own = {block.line for block in blocks}, {shape(block.id) for block in blocks}
    starts = [block.start for block in blocks] if like is AT_THE_LEFT else []
    problems, concerns = list[Problem](), list[Problem]()
    for found in _ALMOST.finditer(scanner.seen):
        line, (box, rest), words = scanner.number(found.start()), (found["box"], found["rest"]), found[0].strip()
        further_in = like is AT_THE_LEFT and not AT_COLUMN_0.match(scanner.seen, found.start())
        above = bisect_right(starts, found.start()) if further_in else 0
        if line in taken or (above and found.start() < blocks[above - 1].end):
            continue
        # So far in it may be an example of how tasks are written.
        code = further_in and len(found["indent"].expandtabs(_INDENTED_CODE)) >= _INDENTED_CODE
        name = _LIKE.match(rest)
        called = name is not None and (shape(name[1]) in own or CHECKPOINT.fullmatch(name[1]) is not None)
        if called and len(box) <= 1 and not code:
            hint = f"Write it as `- [ ] {rest.strip()}`, beginning at column 0."
            problems.append(Problem(message=f"{words!r} looks like a task but is not one.", line=line, hint=hint))
        elif called or box in {"x", "X"} or (len(box) <= 1 and not box.isalnum()):
            hint = f"A task begins with {like}."
            concerns.append(Problem(message=f"{words!r} is not read as a task.", line=line, hint=hint))
    return problems, concerns


_NUMBERS = re.compile(r"\d+(\.\d)?(?:\.?\d)*", re.ASCII)


def shape(name: str) -> str:
    """Return what the ids of a plan have in common: T012 is like T1, and 1.2.1 like 1.4."""
    return _NUMBERS.sub(lambda found: "0.0" if found[1] else "0", name).casefold()


def take_keys(blocks: Sequence[Block]) -> None:
    """Take keys of a tracker for ids, where several tasks begin with one of the same project and none with another's."""
    found = [(block, key) for block in blocks if not block.id and (key := _KEYED.match(block.title))]
    numbered = Counter(name.partition("-")[0] for name in {key[1] for _, key in found})
    for block, key in found:
        if numbered[key[1].partition("-")[0]] > 1 and len({name[1] for _, name in found}) == len(found):
            block.id, block.title = key[1], block.title[key.end() :]


def name_tasks(blocks: Sequence[Block], known: Mapping[str, str]) -> None:
    """Give a task without an id its key, the `t<n>` that its title had before, or the next free one."""
    take_keys(blocks)
    given = {block.id.casefold() for block in blocks if block.id}
    earlier: dict[str, deque[str]] = defaultdict(deque)
    for name, title in known.items():
        if name not in given and OUR_ID.fullmatch(name):
            earlier[title].append(name)
    taken = given.union(known)
    number = 0
    for block in blocks:
        if not block.id and earlier.get(block.title):
            block.id = earlier[block.title].popleft()
        while not block.id:
            number += 1
            block.id = "" if f"t{number}" in taken else f"t{number}"


_TITLE = re.compile(r"^# +([^\r\n]+)", re.MULTILINE)


def title_of(text: str) -> str:
    """Return the first title of a text, wherever it stands."""
    title = _TITLE.search(text)
    return title[1].strip() if title else ""


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
    title = rest[at:]
    while last := _LAST_MARKER.search(title):
        markers[last[1]] = None
        title = title[: last.start()]
    block.markers = tuple(markers)
    block.title = title
