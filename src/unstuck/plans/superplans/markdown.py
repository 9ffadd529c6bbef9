"""See a Markdown document as headings, tables and lines with their places; what is literal is out of sight."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from unstuck.plans.lines import Scanner
from unstuck.plans.plan import Problem
from unstuck.plans.superplans.phase_words import without_links
from unstuck.plans.superplans.translated import canonical

_UNFIT = re.compile("[\udc80-\udcff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Bytes that are not UTF-8, as we carry them, and what would steer a terminal: shown as U+FFFD, one for one."""
_HEADING = re.compile(r"[ ]{0,3}(#{1,6})[ \t]+([^\r\n]*)")
_RULER = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_BLANKS = " \t\r"


class Line(NamedTuple):
    """One line without its end; `seen` is its text where nothing is literal."""

    number: int
    start: int
    end: int
    seen: str


class Heading(NamedTuple):
    line: Line
    level: int
    text: str


class Cell(NamedTuple):
    """A cell's text without the blanks around it, and where it stands."""

    text: str
    start: int
    end: int


class Row(NamedTuple):
    line: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns by name, in lower case and in English where we know the word, and its rows."""

    line: int
    columns: dict[str, int]
    rows: tuple[Row, ...]

    def cell(self, row: Row, *names: str) -> Cell | None:
        """Return the row's cell under the first of these names that is a column here."""
        place = next((self.columns[name] for name in names if name in self.columns), None)
        return row.cells[place] if place is not None and place < len(row.cells) else None


class Document:
    """One text, taken apart. Places in it are places in the text as given: a change at a place changes nothing else."""

    def __init__(self, text: str) -> None:
        self.text = _UNFIT.sub("\ufffd", text)
        scanner = Scanner(self.text)
        self.concerns: list[Problem] = scanner.concerns
        self.problems: list[Problem] = scanner.problems
        self.lines = tuple(_lines(scanner.seen))

    def headings(self) -> Iterator[Heading]:
        for line in self.lines:
            if "#" in line.seen[:4] and (found := _HEADING.match(line.seen)):
                yield Heading(line, len(found[1]), found[2].rstrip(" \t#"))

    def tables(self) -> Iterator[Table]:
        """Yield every table: a row of names, a ruler, and the rows up to the first line without a `|`."""
        at = 0
        while at + 1 < len(self.lines):
            if "|" not in self.lines[at].seen or not _is_ruler(self.lines[at + 1].seen):
                at += 1
                continue
            head, at = self.lines[at], at + 2
            rows = list[Row]()
            while at < len(self.lines) and "|" in self.lines[at].seen:
                rows.append(Row(self.lines[at].number, _cells(self.lines[at])))
                at += 1
            columns = dict[str, int]()
            for place, cell in enumerate(_cells(head)):
                columns.setdefault(canonical(plain(cell.text)), place)
            yield Table(head.number, columns, tuple(rows))


def plain(text: str) -> str:
    """Return text without the marks of bold, italics, code and links."""
    return " ".join(without_links(text).replace("*", "").replace("`", "").replace("\\|", "|").split())


def _lines(seen: str) -> Iterator[Line]:
    start = 0
    for number, text in enumerate(seen.split("\n"), 1):
        yield Line(number, start, start + len(text.rstrip("\r")), text.rstrip("\r"))
        start += len(text) + 1


def _is_ruler(text: str) -> bool:
    return "-" in text and "|" in text and _RULER.fullmatch(text) is not None


def _cells(line: Line) -> tuple[Cell, ...]:
    """Cut a row at its bars; one that is escaped is text."""
    body = line.seen.strip(_BLANKS)
    at = line.start + line.seen.find(body) + body.startswith("|")
    end = (
        line.start
        + line.seen.find(body)
        + len(body)
        - (len(body) > 1 and body.endswith("|") and not body.endswith("\\|"))
    )
    cells = list[Cell]()
    text = line.seen
    while at <= end:
        stop = at
        while stop < end and text[stop - line.start] != "|":
            stop += 2 if text[stop - line.start] == "\\" else 1
        stop = min(stop, end)
        inner = text[at - line.start : stop - line.start]
        content = inner.strip(_BLANKS)
        start = at + (inner.find(content) if content else min(1, len(inner)))
        cells.append(Cell(content, start, start + len(content)))
        at = stop + 1
    return tuple(cells)
