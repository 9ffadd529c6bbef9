"""See a superplan as headings, tables and lines with their places, and read one phase's section: metadata, checklist, files, commands."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, NamedTuple

from unstuck.plans.blocks import Scanner
from unstuck.plans.fields import code_spans
from unstuck.plans.phase_words import COLON, canonical, normalise, without_links, words
from unstuck.plans.plan import Problem
from unstuck.tools import Runnable, can_fail, first_word, only_checks

_UNFIT = re.compile("[\udc80-\udcff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Bytes that are not UTF-8, as we carry them, and what would steer a terminal: shown as U+FFFD, one for one."""
_HEADING = re.compile(r"[ ]{0,3}(#{1,6})[ \t]+([^\r\n]*)")
_RULER = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_BLANKS = " \t\r"
_CELL = re.compile(r"(?:\\.|[^|])*")


class Line(NamedTuple):
    """One line without its end; `seen` is its text where nothing is literal."""

    number: int
    start: int
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
            yield Table(columns, tuple(rows))


def plain(text: str) -> str:
    """Return text without the marks of bold, italics, code and links."""
    return " ".join(without_links(text).replace("*", "").replace("`", "").replace("\\|", "|").split())


def _lines(seen: str) -> Iterator[Line]:
    start = 0
    for number, text in enumerate(seen.split("\n"), 1):
        yield Line(number, start, text.rstrip("\r"))
        start += len(text) + 1


def _is_ruler(text: str) -> bool:
    return "-" in text and "|" in text and _RULER.fullmatch(text) is not None


def _cells(line: Line) -> tuple[Cell, ...]:
    """Cut a row at its bars; one that is escaped is text."""
    body = line.seen.strip(_BLANKS)
    first = line.start + line.seen.find(body)
    at, stop = (
        int(body.startswith("|")),
        len(body) - (len(body) > 1 and body.endswith("|") and not body.endswith("\\|")),
    )
    cells = list[Cell]()
    while at <= stop and (found := _CELL.match(body, at, stop)):
        content = found[0].strip(_BLANKS)
        start = first + at + (found[0].find(content) if content else min(1, len(found[0])))
        cells.append(Cell(content, start, start + len(content)))
        at = found.end() + 1
    return tuple(cells)


# --- one phase

Area = Literal["work", "done", "checkpoint"]

_NAMED = r"[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*"
_DASH = "[-\N{EN DASH}\N{EM DASH}]"
_FACT = re.compile(
    rf"[ \t]*>[ \t]*\**([^\W\d_]{{1,40}}(?: [^\W\d_]{{1,20}}){{0,4}})(?:\*\*[ \t]*{COLON}|{COLON}\*\*|{COLON})[ \t]*(.*)"
)
_UNQUOTED = re.compile(
    rf"[ \t]*(?:[-*+][ \t]+)?\*\*([^\W\d_][^*:\n]{{1,40}}?)(?:\*\*[ \t]*{COLON}|{COLON}\*\*)[ \t]*(.*)"
)
_FACTS = frozenset({"depends on", "dependencies", "parallel with", "can run with", "estimate", "status"})
"""The same facts as many write them; only above the section's first heading, where they cannot be about anything else."""
_BOX = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[([ xX]?)\](?=[ \t]|\Z)[ \t]*(.*)")
_FILE_HEAD = re.compile(r"(?:Files?|Path)[ \t]*:[ \t]*(.+)", re.IGNORECASE)
_FILE_LINE = re.compile(
    r"[ \t]*(?:[-*+][ \t]+)?\**(?:Create|Modify|Update|Edit|Add|Delete|Remove|Test)\**[ \t]*:\**[ \t]*(\S.*)",
    re.IGNORECASE,
)
_VERIFY = re.compile(r"[ \t]*(?:[-*+][ \t]+)?\**(?:Verify|Verification)\**[ \t]*:\**[ \t]*(\S.*)", re.IGNORECASE)
_PASSES = re.compile(
    r"\b(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|green|(?:runs?|completes?|exits?|builds?) (?:clean\w*|successfully|with(?: exit)?(?: code)? 0)"
    r"|with(?:out| no) (?:any )?(?:errors|failures|warnings)|no (?:errors|failures))\b",
    re.IGNORECASE,
)
"""What a bullet must say of a command, to be more than a sentence about it."""
_COMMIT = re.compile(r"[ \t]*(?:[-*+>][ \t]+)?\**Commit(?:[ \t]+message)?\**[ \t]*:\**[ \t]*(\S.*)", re.IGNORECASE)
_RANGE = re.compile(r"(?::\d+(?:-\d+)?|#L\d+(?:-L?\d+)?)\Z")
_CODE = re.compile(r"`[^`]*`")
_REMARK = re.compile(r"[ \t]+\([^()]*\)\s*\Z")


class Value(NamedTuple):
    """A value of the metadata, and where it stands."""

    text: str
    start: int
    end: int
    line: int


class Box(NamedTuple):
    """A line of a checklist; `place` is where its mark is, or would be."""

    place: int
    mark: str
    text: str
    area: Area


@dataclass(slots=True, kw_only=True)
class Section:
    """One phase's section."""

    id: str
    raw: str
    name: str
    line: int
    start: int
    end: int
    facts: dict[str, Value] = field(default_factory=dict)
    boxes: list[Box] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """Those that it says it will change."""
    commands: list[str] = field(default_factory=list)
    commit: str | None = None

    def fact(self, *names: str) -> Value | None:
        return next((self.facts[name] for name in names if name in self.facts), None)


def find_sections(document: Document, listed: Collection[str], runnable: Runnable) -> Iterator[Section]:
    """Yield the sections of phases. A heading without the word Phase counts only if the overview lists its id."""
    headings = list(document.headings())
    for place, heading in enumerate(headings):
        found = phase_heading(heading, listed)
        if found is None:
            continue
        rest = headings[place + 1 :]
        stop = next(
            (at for at, one in enumerate(rest) if one.level <= heading.level or phase_heading(one, listed)), None
        )
        end = rest[stop].line.start if stop is not None else len(document.text)
        section = Section(
            id=normalise(found["id"]), raw=found["id"], name=found["name"].strip(), line=heading.line.number,
            start=heading.line.start, end=end,
        )  # fmt: skip
        _fill(section, document, rest[:stop], runnable)
        yield section


@cache
def _phase() -> re.Pattern[str]:
    after = rf"[ \t]*{COLON}[ \t]*|[ \t]+{_DASH}[ \t]+|[ \t]*\Z"
    return re.compile(rf"\W*(?P<word>{words().lead})?(?P<id>{_NAMED})(?:{after})(?P<name>.*)", re.IGNORECASE)


def phase_heading(heading: Heading, listed: Collection[str]) -> re.Match[str] | None:
    """Return the id and the name in a phase's heading; None for another heading."""
    found = _phase().fullmatch(heading.text)
    if found is None or heading.level < 2 or heading.level > 4:  # noqa: PLR2004  # a title is level 1
        return None
    name = normalise(found["id"])
    if name in listed:
        return found
    looks_so = any(char.isdigit() for char in name) or len(name) == 1
    return found if found["word"] and looks_so else None


def _fill(section: Section, document: Document, headings: Sequence[Heading], runnable: Runnable) -> None:
    inside = [line for line in document.lines if section.start < line.start < section.end]
    marks = iter([*headings, None])
    ahead = next(marks)
    area: Area = "work"
    wanted: dict[str, None] = {}
    above = headings[0].line.start if headings else section.end
    for line in inside:
        if ahead is not None and line.number == ahead.line.number:
            area = _area(ahead.text)
            section.files += _paths(ahead.text, _FILE_HEAD)
            ahead = next(marks)
            continue
        fact = _FACT.fullmatch(line.seen) or (_UNQUOTED.fullmatch(line.seen) if line.start < above else None)
        if fact and (line.seen.lstrip().startswith(">") or canonical(fact[1]) in _FACTS):
            at = line.start + fact.start(2)
            section.facts.setdefault(
                canonical(fact[1]), Value(fact[2].rstrip(), at, at + len(fact[2].rstrip()), line.number)
            )
            continue
        if box := _BOX.fullmatch(line.seen):
            of = "checkpoint" if "CHECKPOINT" in box[2] else area
            section.boxes.append(Box(line.start + box.start(1), box[1], box[2].strip(), of))
        if area != "checkpoint":
            _read_line(section, line, wanted, runnable, done=area == "done")
    section.commands = [command for command in wanted if can_fail(command)]


def _read_line(section: Section, line: Line, wanted: dict[str, None], runnable: Runnable, *, done: bool) -> None:
    if verify := _VERIFY.fullmatch(line.seen):
        wanted.update(dict.fromkeys(span for span in code_spans(verify[1]) if span))
    elif done and "`" in line.seen and _PASSES.search(_CODE.sub("", line.seen)):
        commands = (span for span in code_spans(line.seen) if _is_command(span, runnable))
        wanted.update(dict.fromkeys(span for span in commands if only_checks(span)))
    elif commit := _COMMIT.fullmatch(line.seen):
        spans = code_spans(commit[1])
        section.commit = section.commit or (spans[0] if spans else _REMARK.sub("", commit[1]).strip())
    else:
        section.files += _paths(line.seen, _FILE_LINE)


def _area(heading: str) -> Area:
    said = heading.casefold()
    if "definition of done" in said or "quality gate" in said:
        return "done"
    return "checkpoint" if "checkpoint" in said else "work"


def _paths(text: str, shape: re.Pattern[str]) -> Iterator[str]:
    """Yield the paths that a line names, without the lines in them."""
    found = shape.fullmatch(text)
    for name in (code_spans(found[1]) or [_REMARK.sub("", found[1]).strip()]) if found else ():
        path = _RANGE.sub("", name).strip().removeprefix("./")
        if path and not any(char.isspace() for char in path):
            yield path


def _is_command(span: str, runnable: Runnable) -> bool:
    """Whether a back-ticked part of the Definition of Done is a command and not a name: a lone word must be a program."""
    word = first_word(span)
    if not word or word.startswith("/") or not runnable(word):
        return False
    return len(span.split()) > 1 or ("." not in word and "/" not in word and word not in {"test", "time", "read"})
