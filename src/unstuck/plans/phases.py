"""Read the phases of a superplan: their words in all languages, by the table `catalog/phases.toml`, and their sections.

A text is seen as headings, tables and lines with their places; a section has metadata, a checklist, files and commands.
"""

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
LONGEST_RANGE = 60
_REMARK = re.compile(r"\([^()]*\)?|\[[^\][]*\]?")
_RANGE = re.compile(r"(.+?)(?:\s*[-–—]\s*|\s+(?:to|through)\s+)(.+)", re.IGNORECASE)  # noqa: RUF001  # people do write these dashes
_LINK = re.compile(r"\[([^\][]*)\]\([^()]*\)")
_TITLED = re.compile(r"([\w.-]{1,40}?)(?:\s*:\s+|\s+[-–—]\s+)(.*[^\W\d_]{2}.*)")  # noqa: RUF001  # as above
_TOKEN = re.compile(r"[\s/:]+|<br\s*/?>", re.IGNORECASE)
_BLANK = str.maketrans("*`_-", "    ")


class Words(NamedTuple):
    """The table, as it is asked."""

    columns: Mapping[str, str]
    """What each of our names is called elsewhere."""
    canonical: Mapping[str, str]
    """The other way round."""
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
    """What the commands in a table of tools are for."""
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
    languages = [{status: said.split("|") for status, said in row.items()} for row in table["language"]]
    known = [{status: said.split("|") for status, said in table["statuses"].items()}, *languages]
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
        statuses={word.casefold(): status for row in known for status, said in row.items() for word in said},
        written=table["written"],
        ours=_by_word(table["ours"]),
        tools=_by_word(table["tools"]),
        languages=languages,
    )


def _by_word(rows: Mapping[str, str]) -> dict[str, Any]:
    return {word: name for name, said in rows.items() for word in said.split("|")}


def canonical(name: str) -> str:
    """Return our own name for a column or a fact; the name itself where we know no other."""
    folded = " ".join(name.casefold().split())
    return words().canonical.get(folded, folded)


def in_the_language_of(text: str, status: str) -> str:
    """Return the word for a status in the language that a text has its own status in; empty for English."""
    said = " ".join(text.casefold().split())
    for row in words().languages:
        known = "|".join(re.escape(word.casefold()) for listed in row.values() for word in listed)
        if re.search(rf"(?<!\w)(?:{known})(?!\w)", said):
            return row["blocked" if status == "failed" else status][0]
    return ""


class Named(NamedTuple):
    """The phases that a cell or a line names."""

    ids: tuple[str, ...]
    optional: bool = False
    """It says `or nothing if skipped`: naming them and naming none comes to the same."""


def normalise(raw: str) -> str:
    """Return a phase's id: without the word Phase, in lower case, letters and digits only."""
    return re.sub(r"[^a-z0-9]", "", words().named.sub(" ", raw).lower())


def without_links(text: str) -> str:
    """Return a text with the words of its links in their place."""
    return _LINK.sub(r"\1", text) if "](" in text else text


def read_cell(text: str) -> tuple[str, str]:
    """Read the cell that names a row's phase: its id as it stands there, and the title that may follow: `2A: Backend`."""
    shown = "".join(char for char in " ".join(without_links(text).split()) if char.isprintable())
    shown = _REMARK.sub("", shown.replace("*", "").replace("`", "")).strip()
    shown = words().named.sub("", shown, count=1).strip(" :") if words().named.match(shown) else shown
    titled = _TITLED.fullmatch(shown)
    return (titled[1], titled[2].strip()) if titled and any(map(str.isdigit, titled[1])) else (shown, "")


def read_status(text: str) -> tuple[PhaseStatus, bool]:
    """Return the status that a text names, and whether it names exactly one that we know."""
    symbols = dict.fromkeys(words().symbols[char] for char in text if char in words().symbols)
    if symbols:
        return next(iter(symbols)), len(symbols) == 1
    text = "done" if text.strip() in ("[x]", "[X]") else text
    said = " ".join(_REMARK.sub(" ", text).translate(_BLANK).casefold().split())
    known = words().statuses
    found = known.get(said) or next((value for word, value in known.items() if said.startswith(word)), None)
    return found or "pending", found is not None or not said.strip("–— ")  # noqa: RUF001  # as above


def read_phases(text: str, order: Sequence[str], own: str = "") -> Named:
    """Read a list such as `2A, Phase 2B and 3`; `order` is all phases, for ranges and for `all previous`."""
    optional = any("nothing" in remark.casefold() for remark in _REMARK.findall(text))
    found: dict[str, None] = {}
    for part in words().separator.split(_REMARK.sub(" ", without_links(text))):
        found.update(dict.fromkeys(_phases(part, order, own)))
    return Named(tuple(found), optional)


def _phases(part: str, order: Sequence[str], own: str) -> Iterator[str]:
    name = normalise(part.replace("*", " "))
    if name in words().nothing:
        return
    if name in words().all:
        yield from order[: order.index(own)] if own in order else order
        return
    span = _RANGE.fullmatch(part.strip()) if name not in order and len(part) <= LONGEST_RANGE else None
    ends = [normalise(end) for end in span.groups()] if span else []
    if ends and all(end in order for end in ends):
        yield from order[order.index(ends[0]) : order.index(ends[1]) + 1]
    elif name in order:
        yield name
    else:
        yield from _apart(part, order) or (name,)


def _apart(part: str, order: Sequence[str]) -> tuple[str, ...]:
    """Return the phases in a part that is more than an id: `2A/2B`, `1: Setup`. A word that may be a typing error counts."""
    said = [normalise(word) for word in _TOKEN.split(part)]
    named = tuple(word for word in said if word in order or any(map(str.isdigit, word)))
    return named if any(word in order for word in named) else ()


# --- a text, taken apart

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
    """The text of a cell or a fact without the blanks around it, and where it stands."""

    text: str
    start: int
    line: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Row(NamedTuple):
    """A row's cells by the names of their columns; None where it is too short."""

    line: int
    cells: Mapping[str, Cell | None]

    def cell(self, *names: str) -> Cell | None:
        """Return the cell under the first of these names that is a column here."""
        return next((self.cells[name] for name in names if name in self.cells), None)


class Table(NamedTuple):
    """A table: its columns, in lower case and in English where we know the word, and its rows."""

    columns: Collection[str]
    rows: Sequence[Row]


class Document:
    """One text, taken apart. Places in it are places in the text as given: a change at a place changes nothing else."""

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
            if "#" in line.seen[:4] and (found := _HEADING.match(line.seen)):
                yield Heading(line, len(found[1]), found[2].rstrip(" \t#"))

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
        cells.append(Cell(content, start, line.number))
        at = found.end() + 1
    return tuple(cells)


# --- one phase

Area = Literal["work", "done", "checkpoint"]

_NAMED = r"[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*"
_DASH = "[-\N{EN DASH}\N{EM DASH}]"
_FACTS = frozenset({"depends on", "dependencies", "parallel with", "can run with", "estimate", "status"})
"""The same facts as many write them; only above the section's first heading, where they cannot be about anything else."""
_LINES = re.compile(r"(?::\d+(?:-\d+)?|#L\d+(?:-L?\d+)?)\Z")
_CODE = re.compile(r"`[^`]*`")
_ASIDE = re.compile(r"[ \t]+\([^()]*\)\s*\Z")


@cache
def _shape(name: str) -> re.Pattern[str]:
    """Return what a line of a section looks like that says something."""
    return re.compile(shipped_toml("phases")["line"][name])


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
    facts: dict[str, Cell] = field(default_factory=dict)
    boxes: list[Box] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """Those that it says it will change."""
    commands: list[str] = field(default_factory=list)
    commit: str | None = None

    def fact(self, *names: str) -> Cell | None:
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
            section.files += _paths(ahead.text, _shape("file_head"))
            ahead = next(marks)
            continue
        fact = _shape("fact").fullmatch(line.seen) or (
            _shape("unquoted").fullmatch(line.seen) if line.start < above else None
        )
        if fact and (line.seen.lstrip().startswith(">") or canonical(fact[1]) in _FACTS):
            value = Cell(fact[2].rstrip(), line.start + fact.start(2), line.number)
            section.facts.setdefault(canonical(fact[1]), value)
            continue
        if box := _shape("box").fullmatch(line.seen):
            of = "checkpoint" if "CHECKPOINT" in box[2] else area
            section.boxes.append(Box(line.start + box.start(1), box[1], box[2].strip(), of))
        if area != "checkpoint":
            _read_line(section, line, wanted, runnable, done=area == "done")
    section.commands = [command for command in wanted if can_fail(command)]


def _read_line(section: Section, line: Line, wanted: dict[str, None], runnable: Runnable, *, done: bool) -> None:
    if verify := _shape("verify").fullmatch(line.seen):
        wanted.update(dict.fromkeys(span for span in code_spans(verify[1]) if span))
    elif done and "`" in line.seen and _shape("passes").search(_CODE.sub("", line.seen)):
        commands = (span for span in code_spans(line.seen) if _is_command(span, runnable))
        wanted.update(dict.fromkeys(span for span in commands if only_checks(span)))
    elif commit := _shape("commit").fullmatch(line.seen):
        spans = code_spans(commit[1])
        section.commit = section.commit or (spans[0] if spans else _ASIDE.sub("", commit[1]).strip())
    else:
        section.files += _paths(line.seen, _shape("file_line"))


def _area(heading: str) -> Area:
    said = heading.casefold()
    if "definition of done" in said or "quality gate" in said:
        return "done"
    return "checkpoint" if "checkpoint" in said else "work"


def _paths(text: str, shape: re.Pattern[str]) -> Iterator[str]:
    """Yield the paths that a line names, without the lines in them."""
    found = shape.fullmatch(text)
    for name in (code_spans(found[1]) or [_ASIDE.sub("", found[1]).strip()]) if found else ():
        path = _LINES.sub("", name).strip().removeprefix("./")
        if path and not any(char.isspace() for char in path):
            yield path


def _is_command(span: str, runnable: Runnable) -> bool:
    """Whether a back-ticked part of the Definition of Done is a command and not a name: a lone word must be a program."""
    word = first_word(span)
    if not word or word.startswith("/") or not runnable(word):
        return False
    return len(span.split()) > 1 or ("." not in word and "/" not in word and word not in {"test", "time", "read"})
