"""Read and mark superplans: plans with an overview table of phases and a section for each phase.

A fact may be in the table and in the section. If they disagree the table counts, and the plan has a concern.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from typing import NamedTuple

from unstuck.model.plan import Plan, Problem, Task, conventional_subject
from unstuck.model.verdict import Check, CheckKind
from unstuck.plans.blocks import Edit, apply_edits
from unstuck.plans.phases import (
    REMARK,
    Cell,
    Document,
    PhaseStatus,
    Row,
    Section,
    Table,
    find_sections,
    in_the_language_of,
    normalise,
    plain,
    read_cell,
    read_status,
    without_links,
    words,
)
from unstuck.plans.review import agree_on_parallel
from unstuck.toolchain.command_roles import effect, role_of
from unstuck.toolchain.shell import Runnable, programs

FORMAT = "superplan"

DEPENDS, PARALLEL = ("depends on", "dependencies", "depends"), ("parallel with", "can run with", "parallel")
ESTIMATE, STATUS = ("estimate", "points", "estimate (points)"), ("status",)


LONGEST_RANGE = 60
_RANGE = re.compile(r"(.+?)(?:\s*[-–—]\s*|\s+(?:to|through)\s+)(.+)", re.IGNORECASE)  # noqa: RUF001  # people do write these dashes
_TOKEN = re.compile(r"[\s/:]+|<br\s*/?>", re.IGNORECASE)


class Part(NamedTuple):
    """One file of a plan. The name of the first is empty."""

    name: str
    text: str


class PhaseList(NamedTuple):
    """The phases that a cell or a line names."""

    ids: tuple[str, ...]
    optional: bool = False
    """True if the text says `or nothing if skipped`, so that naming no phase means the same."""


@dataclass(slots=True, kw_only=True)
class Phase:
    """One phase with its row in the overview and its section."""

    id: str
    raw: str
    name: str
    line: int
    part: str = ""
    row: Row | None = None
    section: Section | None = None
    body: str = ""

    def cell(self, names: Sequence[str]) -> str | None:
        """Return the text in the row, or None if the table has no such column."""
        cell = self.row.cell(*names) if self.row else None
        return cell.text if cell else None

    def fact(self, names: Sequence[str]) -> str | None:
        value = self.section.fact(*names) if self.section else None
        return value.text if value else None

    def said(self, names: Sequence[str]) -> str:
        """Return the text in the row, or that in the section if the table has no such column."""
        cell = self.cell(names)
        return cell if cell is not None else self.fact(names) or ""


@dataclass(slots=True)
class _Draft:
    phases: dict[str, Phase] = field(default_factory=dict)
    gates: dict[CheckKind, Check] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    concerns: list[Problem] = field(default_factory=list)
    title: str = ""
    overview: bool = False

    def wrong(self, part: str, line: int, message: str, hint: str) -> None:
        self.problems.append(_in_part(Problem(message=message, line=line, hint=hint), part))

    def odd(self, part: str, line: int, message: str, hint: str) -> None:
        self.concerns.append(_in_part(Problem(message=message, line=line, hint=hint), part))


def is_overview(table: Table) -> bool:
    """Return whether a table is the overview of the phases."""
    return "phase" in table.columns and any(name in table.columns for name in (*DEPENDS, *PARALLEL, *STATUS))


_ROW = re.compile(
    r"^[ \t]*\|?[ \t]*\**Phase\**[ \t]*\|[^\n]*\b(?:Depends[ \t]+On|Parallel[ \t]+With)\b", re.MULTILINE | re.IGNORECASE
)


def looks_like(text: str, *, named_tasks: bool = False) -> bool:
    """Return whether a text is a superplan, by its overview or by the sections of its phases.

    `named_tasks`: the file is named tasks.md, so that only an overview in English counts.
    """
    if "|" in text and _ROW.search(text):
        return True
    if named_tasks or ("|" not in text and "\n>" not in f"\n{text}"):
        return False  # without a table or a quotation it is none, and the other languages need not be read
    column, head, fact = _shapes()
    sections = head.search(text) is not None and fact.search(text) is not None
    tables = filter(is_overview, Document(text).tables() if not sections and column.search(text) else ())
    return sections or any(name in table.columns for table in tables for name in (*DEPENDS, *PARALLEL))


@cache
def _shapes() -> tuple[re.Pattern[str], ...]:
    """Return the patterns of a column, a heading and a fact of phases."""
    shapes = (
        rf"\|[ \t]*\**(?:{words().phase})\**[ \t]*(?:\||$)",
        rf"^#{{2,4}}[ \t]+{words().lead}\w",
        rf"^>[ \t]*\**(?:Depends On|Can Run With|{words().columns['depends on']})\b",
    )
    return tuple(re.compile(shape, re.MULTILINE | re.IGNORECASE) for shape in shapes)


def read(parts: Sequence[Part], path: str, *, runnable: Runnable, problems: Sequence[Problem] = ()) -> Plan:
    """Read a whole plan. Everything wrong with it is in its problems and concerns."""
    draft = _Draft(problems=list(problems))
    documents = [(part, Document(part.text)) for part in parts]
    for part, document in documents:
        _read_tables(draft, part, document)
    for part, document in documents:
        _read_sections(draft, part, document, runnable)
        draft.problems += [_in_part(problem, part.name) for problem in document.problems]
        draft.concerns += [_in_part(concern, part.name) for concern in document.concerns]
    order = tuple(draft.phases)
    tasks = tuple(_task(phase, order) for phase in draft.phases.values())
    if not draft.overview and tasks:
        hint = "Add a table | Phase | Name | Depends On | Parallel With | Estimate | Status |."
        draft.odd("", 1, "The plan has no phase overview table; its sections alone count.", hint)
    for phase in draft.phases.values():
        for line, message, hint in _disagreements(phase, order):
            draft.odd(phase.part, line or phase.line, message, hint or "Make them say the same.")
    tasks, odd = agree_on_parallel(tasks)
    return Plan(
        path=path,
        format=FORMAT,
        title=draft.title,
        tasks=tasks,
        gates=tuple(draft.gates.values()),
        problems=tuple(draft.problems),
        concerns=tuple(sorted([*draft.concerns, *odd], key=lambda concern: concern.line or 0)),
    )


def _read_tables(draft: _Draft, part: Part, document: Document) -> None:
    draft.title = draft.title or next(
        (plain(heading.text) for heading in document.headings() if heading.level == 1), ""
    )
    for table in document.tables():
        if is_overview(table):
            draft.overview = True
            for row in table.rows:
                _read_row(draft, part, row)
        elif "command" in table.columns and ("tool type" in table.columns or "tool" in table.columns):
            _read_tools(draft, table)


def _read_row(draft: _Draft, part: Part, row: Row) -> None:
    raw = row.cell("phase")
    if raw is None or not plain(raw.text) or raw.text.casefold().strip("* ").startswith("total"):
        return
    label, titled = read_cell(raw.text)
    name = normalise(label)
    title = row.cell("name", "title", "description")
    if not name:
        hint = "Use letters and digits, such as 2A."
        draft.wrong(part.name, row.line, f"The phase id {raw.text!r} cannot be used.", hint)
        return
    phase_name = (plain(title.text) if title else "") or titled
    phase = Phase(id=name, raw=label, name=phase_name, line=row.line, part=part.name, row=row)
    first = draft.phases.setdefault(name, phase)
    if first is not phase:
        again = f"Phase {label} is listed twice; line {first.line} has it first."
        draft.wrong(part.name, row.line, _same_id(first.raw, label, name) or again, OWN_ID)


OWN_ID = "Give each phase an id of its own."


def _same_id(label: str, other: str, name: str) -> str:
    """Return a message for two phases with different labels and one id. It is empty for equal labels."""
    message = f"The phases {label} and {other} have the same id {name}: only letters and digits count."
    return message if label.casefold() != other.casefold() else ""


def _read_tools(draft: _Draft, table: Table) -> None:
    for row in table.rows:
        tool, command = row.cell("tool type", "tool"), row.cell("command")
        kind = words().tools.get(plain(tool.text).casefold()) if tool else None
        line = command.text.strip("` ").replace("\\|", "|") if command else ""
        if kind is not None and not effect(line) and line.casefold() not in {"", "-", "–", "—", "n/a", "none", "tbd"}:  # noqa: RUF001  # people do write these dashes
            draft.gates.setdefault(kind, Check(command=line, kind=kind))


def _read_sections(draft: _Draft, part: Part, document: Document, runnable: Runnable) -> None:
    rows = set(draft.phases)
    for section in find_sections(document, rows, runnable):
        phase = draft.phases.get(section.id)
        if phase is None:
            phase = Phase(id=section.id, raw=section.raw, name=section.name, line=section.line, part=part.name)
            draft.phases[section.id] = phase
            if draft.overview:
                message = f"Phase {section.raw} has a section and no row in the overview."
                draft.odd(part.name, section.line, message, "Add a row for it, or remove the section.")
        elif phase.section is not None:
            again = f"Phase {section.raw} has two sections; line {phase.section.line} has the first."
            message = _same_id(phase.section.raw, section.raw, section.id) or again
            draft.wrong(part.name, section.line, message, OWN_ID)
            continue
        phase.section = section
        phase.name = phase.name or section.name
        phase.body = document.text[section.start : section.end]
        phase.line, phase.part = section.line, part.name


def _task(phase: Phase, order: Sequence[str]) -> Task:
    status, section = _status(phase), phase.section
    files = dict.fromkeys(section.files) if section else {}
    items = tuple(box.text for box in section.boxes if box.area == "work") if section else ()
    name = phase.name or f"Phase {phase.raw}"
    return Task(
        id=phase.id,
        label=phase.raw if phase.raw != phase.id else "",
        title=name,
        line=phase.line,
        body=phase.body.strip("\r\n") or f"Phase {phase.raw}: {name}",
        depends_on=read_phases(phase.said(DEPENDS), order, phase.id).ids,
        parallel_with=read_phases(phase.said(PARALLEL), order, phase.id).ids,
        checks=tuple(
            Check(
                command=command,
                kind="test" if any(role_of(program) == "test" for program in programs(command)) else "verify",
            )
            for command in (section.commands if section else ())
        ),
        files=tuple(files),
        items=items,
        commit=(section.commit if section else None) or conventional_subject(name, plain(items[0]) if items else ""),
        done=status == "complete",
        skipped=status == "skipped",
        estimate=phase.said(ESTIMATE),
        digest=_digest(phase),
    )


def _status(phase: Phase) -> PhaseStatus:
    return read_status(phase.said(STATUS))[0]


def _digest(phase: Phase) -> str:
    """Return a hash of the phase without its status and ticks, which a run changes."""
    cells = [phase.raw, phase.name, *(phase.said(names) for names in (DEPENDS, PARALLEL, ESTIMATE))]
    text, section = phase.body, phase.section
    if section is not None:
        status = section.fact(*STATUS)
        ours = [(box.place, box.place + len(box.mark)) for box in section.boxes]
        ours += [(status.start, status.end)] if status else []
        text = apply_edits(text, [Edit(start - section.start, end - section.start, "") for start, end in ours]).strip()
    return hashlib.sha256("\n".join([*cells, text]).encode(errors="replace")).hexdigest()[:16]


def _disagreements(phase: Phase, order: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield (line, message, hint) for each disagreement, and for missing or unclear facts."""
    name, status = phase.raw, phase.said(STATUS)
    both = f"The overview and the section of phase {name} disagree about"
    if status and not read_status(status)[1]:
        message = f"The status {status!r} of phase {name} is not one status; it is read as {_status(phase)}."
        yield 0, message, "Use one of ⬜ 🔄 ✅ ⏸️ ⏭️."
    if phase.section is None:
        message = f"Phase {name} has a row in the overview and no section: nothing says what it is about."
        yield 0, message, f"Write a section `### Phase {name}: {phase.name}`."
        return
    for what, names in (("Depends On", DEPENDS), ("Parallel With", PARALLEL)):
        ours, theirs = phase.cell(names), phase.fact(names)
        if ours is not None and theirs is not None:
            in_row, in_section = read_phases(ours, order, phase.id), read_phases(theirs, order, phase.id)
            skips = (in_row.optional and not in_section.ids) or (in_section.optional and not in_row.ids)
            if set(in_row.ids) != set(in_section.ids) and not skips:
                yield 0, f"{both} {what}: {_list(in_row)} and {_list(in_section)}; the overview counts.", ""
    ours, theirs = phase.cell(ESTIMATE), phase.fact(ESTIMATE)
    if ours and theirs and normalise(ours) != normalise(re.sub(r"\bpoints?\b", "", theirs.casefold())):
        yield 0, f"{both} the estimate: {ours!r} and {theirs!r}.", ""
    cell, fact = phase.cell(STATUS), phase.fact(STATUS)
    if cell and fact and read_status(cell)[0] != read_status(fact)[0]:
        yield 0, f"{both} the status: {cell!r} and {fact!r} (line {phase.section.line}); the overview counts.", ""
    if (condition := phase.section.fact("condition")) and _status(phase) == "pending":
        message = f"Phase {name} has a condition that nobody evaluates: {condition.text}"
        yield condition.line, message, "It will be run; mark it ⏭️ if it is not needed."


def _list(phases: PhaseList) -> str:
    return ", ".join(name.upper() for name in phases.ids) or "nothing"


def read_phases(text: str, order: Sequence[str], own: str = "") -> PhaseList:
    """Return the phases in a list such as `2A, Phase 2B and 3`. `order` has all phases of the plan."""
    optional = any("nothing" in remark.casefold() for remark in REMARK.findall(text))
    names: dict[str, None] = {}
    for part in words().separator.split(REMARK.sub(" ", without_links(text))):
        names.update(dict.fromkeys(_phases_in(part, order, own)))
    return PhaseList(tuple(names), optional)


def _phases_in(part: str, order: Sequence[str], own: str) -> Iterator[str]:
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
        yield from _phases_in_words(part, order) or (name,)


def _phases_in_words(part: str, order: Sequence[str]) -> tuple[str, ...]:
    """Return the phases in a text such as `2A/2B` or `1: Setup`. A mistyped id with a digit also counts."""
    tokens = [normalise(word) for word in _TOKEN.split(part)]
    named = tuple(word for word in tokens if word in order or any(map(str.isdigit, word)))
    return named if any(word in order for word in named) else ()


def _in_part(problem: Problem, part: str) -> Problem:
    return replace(problem, message=f"{part}: {problem.message}") if part else problem


# --- status cells and boxes: marking replaces these and changes no other byte


def mark(text: str, statuses: Mapping[str, str]) -> str:
    """Write the statuses of phases into one file's text."""
    wanted = {name: words().ours[status] for name, status in statuses.items() if status in words().ours}
    draft, part, document = _Draft(), Part("", text), Document(text)
    _read_tables(draft, part, document)
    _read_sections(draft, part, document, lambda _: False)
    edits = [_edits(phase, wanted[name]) for name, phase in draft.phases.items() if name in wanted]
    return apply_edits(text, list(chain.from_iterable(edits)))


def _edits(phase: Phase, wanted: PhaseStatus) -> Iterator[Edit]:
    """Yield the edits of the status cells, and of the boxes if the phase is now done or reopened."""
    cell = phase.row.cell(*STATUS) if phase.row else None
    fact = phase.section.fact(*STATUS) if phase.section else None
    for old in filter(None, (cell, fact)):
        yield from _restated(old, wanted)
    before = fact or cell
    if (wanted == "complete") == (before is not None and read_status(before.text)[0] == "complete"):
        return
    for box in phase.section.boxes if phase.section else ():
        if box.area != "checkpoint" and (wanted == "complete") != (box.mark in ("x", "X")):
            yield Edit(box.place, box.place + len(box.mark), "x" if wanted == "complete" else " ")


def _restated(old: Cell, wanted: PhaseStatus) -> Iterator[Edit]:
    """Write a status in the style of the old one: a symbol, words, or both."""
    text = old.text
    if read_status(text) == (wanted, True) and text:
        return
    symbol, name = words().written[wanted]
    name = in_the_language_of(text, wanted) or name
    has_symbol = any(char in words().symbols for char in text)
    has_words = any(char.isalpha() for char in text)
    new = f"{symbol} {name}" if has_symbol and has_words else name if has_words else symbol
    if new != text:
        yield Edit(old.start, old.end, new)
