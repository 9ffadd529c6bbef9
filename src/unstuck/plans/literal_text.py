"""Find the literal lines of a Markdown plan: fenced code, here-documents and HTML comments.

Literal lines never begin a task, a heading or a field. Lines end with LF, CRLF or a lone CR.
No part of the text is searched twice, so scanning takes linear time.

These rules differ from CommonMark on purpose:
- A here-document in the text of a list item hides its lines.
- A comment that begins inside a list item lasts to its `-->`, even over lines at column 0.
- Plain text or a heading at column 0 does not end a code block inside a list item if a closing fence follows.
- HTML blocks other than comments hide nothing.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Literal, NamedTuple

from unstuck.model.plan import Problem

Kind = Literal["code", "heredoc", "comment"]


_ITEMS = r"(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*"
AT_COLUMN_0 = re.compile(r"(?<![^\n\ufeff])(?:[^ \t\r\n\ufeff]|[ ]-)")
"""The first characters of a line that is neither blank nor indented. ` -` also counts: a list item one column in."""
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
INDENTED_CODE = 4
"""Columns of indentation from which CommonMark reads a line as code."""


class Stretch(NamedTuple):
    """A range of whole lines that are literal."""

    line: int
    start: int
    end: int
    kind: Kind


class Scanner:
    """One scan of a text for literal lines, with the mistakes noticed on the way."""

    def __init__(self, text: str) -> None:
        self.flat = _LONE_CR.sub("\n", text)
        """The text with every lone CR as LF. All offsets stay the same."""
        self.concerns: list[Problem] = []
        self.problems: list[Problem] = []
        self.unended = len(text)
        """The offset of a code block or a comment that never ends."""
        self._counted = (0, 1)
        self.literal = tuple(self._literal())
        self.seen = _hidden(self.flat, self.literal)
        """The text with blanks instead of everything literal, so that searches skip it. All offsets stay the same."""

    def _literal(self) -> Iterator[Stretch]:
        flat = self.flat
        width = 0  # the indentation from which lines belong to the list item above; 0 outside lists
        in_item = False  # the block above began as a list item, even if it has lines at column 0
        at = int(flat.startswith("\ufeff"))
        while at < len(flat):
            end = self._line_end(at)
            opens = _OPENER.search(flat, at, end) is not None
            literal = self._fence_or_comment(at, width) if opens else None
            if flat[at] not in " \t\r\n":
                item = _ITEM.match(flat, at)
                width = item.end() - at if item else 0
                in_item = width > 0 or (in_item and literal is not None)
            if opens and literal is None and in_item:
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
        while match := _fence_end(mark, in_list).search(self.flat, at):
            if match["closer"]:
                return Stretch(line, start, self._line_end(match.start() + 1), "code")
            if match["heading"]:
                # It is a shell comment if the fence is closed before the next list item. Otherwise it is a heading.
                heading = heading or match.start() + 1
                at = match.end() - 1
                continue
            if match[0] == "<<":
                before = self.flat.rfind("\n", 0, match.start()) + 1
                inner = self._heredoc(before)
                at = (inner.end if inner else self._line_end(before)) - 1
                continue
            return self._end_with_list_item(Stretch(line, start, heading or match.start() + 1, "code"), mark)
        if heading:
            return self._end_with_list_item(Stretch(line, start, heading, "code"), mark)
        self._report_unended("code block", line, start, f"Close it with a {mark} line.")
        return Stretch(line, start, len(self.flat), "code")

    def _end_with_list_item(self, code: Stretch, mark: str) -> Stretch:
        """Return the code, and note that it ended with its list item and not with a fence."""
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
        self._report_unended("comment", line, start, hint)
        return Stretch(line, start, len(self.flat), "comment")

    def _heredoc(self, start: int) -> Stretch | None:
        """Return the here-documents that the line at `start` opens, or None if it opens none that ends."""
        begin = end = self._line_end(start)
        line = self.number(start)
        for match in _HEREDOC.finditer(self.flat, start, begin):
            word = match[1] or match[2] or match[3]
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
        """The offsets at which here-documents of each word open (False) and could end (True), in order."""
        marks: dict[str, list[tuple[int, bool]]] = defaultdict(list)
        for opening in _HEREDOC.finditer(self.flat):
            marks[opening[1] or opening[2] or opening[3]].append((opening.start(), False))
        for ending in _ENDS_HEREDOC.finditer(self.flat):
            marks[ending[1]].append((ending.start() + 1, True))
        return {word: sorted(offsets) for word, offsets in marks.items()}

    def _report_unended(self, what: str, line: int, start: int, hint: str) -> None:
        """Add a problem for a literal that never ends, if it hides lines that look like tasks."""
        self.unended = start
        hidden = len(re.compile(r"\n- \[[ xX]\][ \t]").findall(self.flat, start))
        message = f"The {what} that begins on line {line} never ends"
        if hidden:
            tasks = "a line that looks like a task" if hidden == 1 else f"{hidden} lines that look like tasks"
            self.problems.append(Problem(message=f"{message} and hides {tasks}.", line=line, hint=hint))

    def _concern(self, message: str, line: int, hint: str) -> None:
        self.concerns.append(Problem(message=message, line=line, hint=hint))

    def _line_end(self, at: int) -> int:
        """Return the offset of the line after the one at `at`."""
        return self.flat.find("\n", at) + 1 or len(self.flat)

    def number(self, start: int) -> int:
        """Return the number of the line that begins at `start`. It counts from the line of the last call."""
        place, number = self._counted
        number += self.flat.count("\n", place, start) if start >= place else -self.flat.count("\n", start, place)
        self._counted = (start, number)
        return number


def _hidden(text: str, literal: Sequence[Stretch]) -> str:
    """Return the text with blanks instead of the literal lines."""
    pieces, at = list[str](), 0
    for stretch in literal:
        pieces += (text[at : stretch.start], _VISIBLE.sub(" ", text[stretch.start : stretch.end]))
        at = stretch.end
    return "".join((*pieces, text[at:]))


def _place(opener: re.Match[str], width: int) -> Literal["list", "top"] | None:
    """Return whether a fence or comment is in a list item or at the top. None: it is indented code."""
    indent = len(opener[1].expandtabs(INDENTED_CODE))
    if opener[2] or (width and indent >= width):
        return "list"
    return "top" if indent < INDENTED_CODE else None


@cache
def _fence_end(mark: str, in_list: bool) -> re.Pattern[str]:  # noqa: FBT001  # a cache takes no keywords lightly
    """Return the pattern that ends a fence. In a list item, a block at column 0 also ends it."""
    closer = f"(?P<closer>{mark}{mark[0]}*)[ \t\r]*(?=\n|\\Z)"
    return re.compile(rf"\n[ \t]+{closer}|\n(?:{_BEGINS})|<<" if in_list else rf"\n[ ]{{0,3}}{closer}(?P<heading>)")
