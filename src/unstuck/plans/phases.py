"""Read the tables and the sections of phases in a superplan, in the languages of `catalog/phases.toml`."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, count
from typing import Any, Literal, NamedTuple

from unstuck.model.plan import Problem
from unstuck.model.verdict import CheckKind
from unstuck.plans.fields import code_spans
from unstuck.plans.literal_text import Scanner
from unstuck.shipped import shipped_toml
from unstuck.toolchain.command_roles import only_checks
from unstuck.toolchain.shell import Runnable, can_fail, first_word

PhaseStatus = Literal["pending", "running", "complete", "failed", "blocked", "skipped"]

COLON = "[:\N{FULLWIDTH COLON}]"
REMARK = re.compile(r"\([^()]*\)?|\[[^\][]*\]?")
_LINK = re.compile(r"\[([^\][]*)\]\([^()]*\)")
_TITLED = re.compile(r"([\w.-]{1,40}?)(?:\s*:\s+|\s+[-–—]\s+)(.*[^\W\d_]{2}.*)")  # noqa: RUF001  # as above
_BLANK = str.maketrans("*`_-", "    ")


class Words(NamedTuple):
    """The words for phases in all languages."""

    columns: Mapping[str, str]
    """The words of other languages for each English name of a column, separated by `|`."""
    canonical: Mapping[str, str]
    """The English name of a column for each word of another language."""
    phase: str
    """The word Phase in all languages, as a pattern."""
    lead: str
    """The same in front of an id: only some scripts do without a space."""
    named: re.Pattern[str]
    """The same where it is a word."""
    separator: re.Pattern[str]
    nothing: frozenset[str]
    all: frozenset[str]
    symbols: Mapping[str, PhaseStatus]
    statuses: Mapping[str, PhaseStatus]
    """All words for a status, those of other languages behind ours."""
    written: Mapping[PhaseStatus, tuple[str, str]]
    ours: Mapping[str, PhaseStatus]
    """Our statuses as superplans know them."""
    tools: Mapping[str, CheckKind]
    """The purpose of a command for each word in a table of tools."""
    languages: Sequence[Mapping[str, Sequence[str]]]


@cache
def words() -> Words:
    """Read the table."""
    table: Mapping[str, Any] = shipped_toml("phases")
    columns: Mapping[str, str] = table["columns"]
    elsewhere = columns["phase"].split("|")
    phase = "|".join(["phases?", *(f"{word}[sn]?" if word.isascii() else word for word in elsewhere)])
    spaced = "|".join(word for word in phase.split("|") if word < "\u3000")
    joined = "|".join(word for word in elsewhere if word >= "\u3000")
    languages = [_split(row) for row in table["language"]]
    rows = [_split(table["statuses"]), *languages]
    return Words(
        columns=columns,
        canonical=_by_word(columns),
        phase=phase,
        lead=rf"(?:(?:{spaced})[ \t]+|(?:{joined})[ \t]*)",
        named=re.compile(rf"\b(?:{phase})(?![a-z])", re.IGNORECASE),
        separator=re.compile(rf"[,;&+，；]|{table['and']}", re.IGNORECASE),  # noqa: RUF001  # as above
        nothing=frozenset({"", *table["nothing"].split("|")}),
        all=frozenset(table["all"].split("|")),
        symbols={symbol: status for status, symbols in table["symbols"].items() for symbol in symbols},
        statuses={word.casefold(): status for row in rows for status, names in row.items() for word in names},
        written=table["written"],
        ours=_by_word(table["ours"]),
        tools=_by_word(table["tools"]),
        languages=languages,
    )


def _by_word(rows: Mapping[str, str]) -> dict[str, Any]:
    return {word: name for name, line in rows.items() for word in line.split("|")}


def _split(row: Mapping[str, str]) -> dict[Any, list[str]]:
    return {status: line.split("|") for status, line in row.items()}


def canonical(name: str) -> str:
    """Return the English name of a column or a fact. An unknown name is returned in lower case."""
    folded = " ".join(name.casefold().split())
    return words().canonical.get(folded, folded)


def in_the_language_of(text: str, status: str) -> str:
    """Return the word for a status in the language of a text, or an empty string for English."""
    folded = " ".join(text.casefold().split())
    for row in words().languages:
        pattern = "|".join(re.escape(word.casefold()) for names in row.values() for word in names)
        if re.search(rf"(?<!\w)(?:{pattern})(?!\w)", folded):
            return row["blocked" if status == "failed" else status][0]
    return ""


def normalise(raw: str) -> str:
    """Return the id of a phase: without the word Phase, in lower case, only letters and digits."""
    return re.sub(r"[^a-z0-9]", "", words().named.sub(" ", raw).lower())


def without_links(text: str) -> str:
    """Return a text with the words of its links instead of the links."""
    return _LINK.sub(r"\1", text) if "](" in text else text


def read_cell(text: str) -> tuple[str, str]:
    """Return the id and the title in the first cell of a row, such as `2A: Backend`. The title may be empty."""
    label = "".join(char for char in " ".join(without_links(text).split()) if char.isprintable())
    label = REMARK.sub("", label.replace("*", "").replace("`", "")).strip()
    label = words().named.sub("", label, count=1).strip(" :") if words().named.match(label) else label
    titled = _TITLED.fullmatch(label)
    return (titled[1], titled[2].strip()) if titled and any(map(str.isdigit, titled[1])) else (label, "")


def read_status(text: str) -> tuple[PhaseStatus, bool]:
    """Return the status that a text names, and whether it names exactly one known status."""
    symbols = dict.fromkeys(words().symbols[char] for char in text if char in words().symbols)
    if symbols:
        return next(iter(symbols)), len(symbols) == 1
    text = "done" if text.strip() in ("[x]", "[X]") else text
    folded = " ".join(REMARK.sub(" ", text).translate(_BLANK).casefold().split())
    statuses = words().statuses
    status = statuses.get(folded) or next((value for word, value in statuses.items() if folded.startswith(word)), None)
    return status or "pending", status is not None or not folded.strip("–— ")  # noqa: RUF001  # as above


# --- the headings, tables and lines of a text

_UNFIT = re.compile("[\udc80-\udcff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Undecodable bytes and control characters, which could change a terminal. Each is shown as U+FFFD."""
_HEADING = re.compile(r"[ ]{0,3}(#{1,6})[ \t]+([^\r\n]*)")
_RULER = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_BLANKS = " \t\r"
_CELL = re.compile(r"(?:\\.|[^|])*")


class Line(NamedTuple):
    """One line without its end. `seen` has blanks instead of literal text."""

    number: int
    start: int
    seen: str


class Heading(NamedTuple):
    line: Line
    level: int
    text: str


class Cell(NamedTuple):
    """The text of a cell or a fact without the blanks around it, with its offset and line."""

    text: str
    start: int
    line: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Row(NamedTuple):
    """The cells of a row by the names of their columns. A cell is None if the row is too short."""

    line: int
    cells: Mapping[str, Cell | None]

    def cell(self, *names: str) -> Cell | None:
        """Return the cell under the first of these names that is a column here."""
        return next((self.cells[name] for name in names if name in self.cells), None)


class Table(NamedTuple):
    """A table with its rows. Column names are in lower case, and in English if the word is known."""

    columns: Collection[str]
    rows: Sequence[Row]


class Document:
    """The headings, tables and lines of one text. All offsets are those of the original text."""

    def __init__(self, text: str) -> None:
        self.text = _UNFIT.sub("\ufffd", text)
        scanner = Scanner(self.text)
        self.concerns: list[Problem] = scanner.concerns
        self.problems: list[Problem] = scanner.problems
        texts = scanner.seen.split("\n")
        starts = accumulate((len(text) + 1 for text in texts), initial=0)
        self.lines = tuple(
            Line(number, start, text.rstrip("\r")) for number, start, text in zip(count(1), starts, texts, strict=False)
        )

    def headings(self) -> Iterator[Heading]:
        for line in self.lines:
            if "#" in line.seen[:4] and (match := _HEADING.match(line.seen)):
                yield Heading(line, len(match[1]), match[2].rstrip(" \t#"))

    def tables(self) -> Iterator[Table]:
        """Yield every table: a row of names, a ruler, and the rows up to the first line without a `|`."""
        at = 0
        while at + 1 < len(self.lines):
            ruler = self.lines[at + 1].seen
            if "|" not in self.lines[at].seen or "|" not in ruler or not _RULER.fullmatch(ruler):
                at += 1
                continue
            head, at = self.lines[at], at + 2
            columns, rows = dict[str, int](), list[Row]()
            for place, cell in enumerate(_cells(head)):
                columns.setdefault(canonical(plain(cell.text)), place)
            while at < len(self.lines) and "|" in self.lines[at].seen:
                cells = dict(enumerate(_cells(self.lines[at])))
                rows.append(Row(self.lines[at].number, {name: cells.get(place) for name, place in columns.items()}))
                at += 1
            yield Table(columns, rows)


def plain(text: str) -> str:
    """Return text without the marks of bold, italics, code and links."""
    return " ".join(without_links(text).replace("*", "").replace("`", "").replace("\\|", "|").split())


def _cells(line: Line) -> tuple[Cell, ...]:
    """Return the cells of a row. An escaped bar is text."""
    body = line.seen.strip(_BLANKS)
    first = line.start + line.seen.find(body)
    at, stop = (
        int(body.startswith("|")),
        len(body) - (len(body) > 1 and body.endswith("|") and not body.endswith("\\|")),
    )
    cells = list[Cell]()
    while at <= stop and (match := _CELL.match(body, at, stop)):
        content = match[0].strip(_BLANKS)
        start = first + at + (match[0].find(content) if content else min(1, len(match[0])))
        cells.append(Cell(content, start, line.number))
        at = match.end() + 1
    return tuple(cells)


# --- one phase

Area = Literal["work", "done", "checkpoint"]

_NAMED = r"[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*"
_DASH = "[-\N{EN DASH}\N{EM DASH}]"
_FACTS = frozenset({"depends on", "dependencies", "parallel with", "can run with", "estimate", "status"})
"""Facts that count without a quotation mark, but only above the first heading of a section."""
_LINES = re.compile(r"(?::\d+(?:-\d+)?|#L\d+(?:-L?\d+)?)\Z")
_CODE = re.compile(r"`[^`]*`")
_ASIDE = re.compile(r"[ \t]+\([^()]*\)\s*\Z")


@cache
def _line_pattern(name: str) -> re.Pattern[str]:
    return re.compile(shipped_toml("phases")["line"][name])


class Box(NamedTuple):
    """A line of a checklist. `place` is the offset of its mark, also if the mark is empty."""

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
    facts: dict[str, Cell] = field(default_factory=dict)
    boxes: list[Box] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """The files that the section says it will change."""
    commands: list[str] = field(default_factory=list)
    commit: str | None = None

    def fact(self, *names: str) -> Cell | None:
        return next((self.facts[name] for name in names if name in self.facts), None)


def find_sections(document: Document, listed: Collection[str], runnable: Runnable) -> Iterator[Section]:
    """Yield the sections of phases. A heading without the word Phase counts only if the overview lists its id."""
    headings = list(document.headings())
    for place, heading in enumerate(headings):
        match = phase_heading(heading, listed)
        if match is None:
            continue
        rest = headings[place + 1 :]
        ends = (at for at, later in enumerate(rest) if later.level <= heading.level or phase_heading(later, listed))
        stop = next(ends, None)
        end = rest[stop].line.start if stop is not None else len(document.text)
        section = Section(
            id=normalise(match["id"]), raw=match["id"], name=match["name"].strip(), line=heading.line.number,
            start=heading.line.start, end=end,
        )  # fmt: skip
        _fill(section, document, rest[:stop], runnable)
        yield section


@cache
def _phase() -> re.Pattern[str]:
    after = rf"[ \t]*{COLON}[ \t]*|[ \t]+{_DASH}[ \t]+|[ \t]*\Z"
    return re.compile(rf"\W*(?P<word>{words().lead})?(?P<id>{_NAMED})(?:{after})(?P<name>.*)", re.IGNORECASE)


def phase_heading(heading: Heading, listed: Collection[str]) -> re.Match[str] | None:
    """Return the match of a phase's heading with its id and name, or None for another heading."""
    match = _phase().fullmatch(heading.text)
    if match is None or heading.level < 2 or heading.level > 4:  # noqa: PLR2004  # a title is level 1
        return None
    name = normalise(match["id"])
    if name in listed:
        return match
    is_likely_id = any(char.isdigit() for char in name) or len(name) == 1
    return match if match["word"] and is_likely_id else None


def _fill(section: Section, document: Document, headings: Sequence[Heading], runnable: Runnable) -> None:
    marks = iter([*headings, None])
    ahead = next(marks)
    area: Area = "work"
    wanted: dict[str, None] = {}
    above = headings[0].line.start if headings else section.end
    for line in document.lines[section.line :]:
        if line.start >= section.end:
            break
        if ahead is not None and line.number == ahead.line.number:
            area = _area(ahead.text)
            section.files += _paths(ahead.text, _line_pattern("file_head"))
            ahead = next(marks)
            continue
        fact = _line_pattern("fact").fullmatch(line.seen) or (
            _line_pattern("unquoted").fullmatch(line.seen) if line.start < above else None
        )
        if fact and (line.seen.lstrip().startswith(">") or canonical(fact[1]) in _FACTS):
            value = Cell(fact[2].rstrip(), line.start + fact.start(2), line.number)
            section.facts.setdefault(canonical(fact[1]), value)
            continue
        if box := _line_pattern("box").fullmatch(line.seen):
            of = "checkpoint" if "CHECKPOINT" in box[2] else area
            section.boxes.append(Box(line.start + box.start(1), box[1], box[2].strip(), of))
        if area != "checkpoint":
            _read_line(section, line, wanted, runnable, done=area == "done")
    section.commands = [command for command in wanted if can_fail(command)]


def _read_line(section: Section, line: Line, wanted: dict[str, None], runnable: Runnable, *, done: bool) -> None:
    if verify := _line_pattern("verify").fullmatch(line.seen):
        wanted.update(dict.fromkeys(span for span in code_spans(verify[1]) if span))
    elif done and "`" in line.seen and _line_pattern("passes").search(_CODE.sub("", line.seen)):
        commands = (span for span in code_spans(line.seen) if _is_command(span, runnable))
        wanted.update(dict.fromkeys(span for span in commands if only_checks(span)))
    elif commit := _line_pattern("commit").fullmatch(line.seen):
        spans = code_spans(commit[1])
        section.commit = section.commit or (spans[0] if spans else _ASIDE.sub("", commit[1]).strip())
    else:
        section.files += _paths(line.seen, _line_pattern("file_line"))


def _area(heading: str) -> Area:
    folded = heading.casefold()
    if "definition of done" in folded or "quality gate" in folded:
        return "done"
    return "checkpoint" if "checkpoint" in folded else "work"


def _paths(text: str, shape: re.Pattern[str]) -> Iterator[str]:
    """Yield the paths that a line names, without line numbers."""
    match = shape.fullmatch(text)
    for name in (code_spans(match[1]) or [_ASIDE.sub("", match[1]).strip()]) if match else ():
        path = _LINES.sub("", name).strip().removeprefix("./")
        if path and not any(char.isspace() for char in path):
            yield path


def _is_command(span: str, runnable: Runnable) -> bool:
    """Return whether a back-ticked part of the Definition of Done is a command and not a name."""
    word = first_word(span)
    if not word or word.startswith("/") or not runnable(word):
        return False
    return len(span.split()) > 1 or ("." not in word and "/" not in word and word not in {"test", "time", "read"})
