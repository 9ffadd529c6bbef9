"""Read a superplan, whole or in parts: the overview table says which phases there are, their sections say what they are.

The same facts stand in both. Where they disagree the table counts, and a person is told.
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
    Cell,
    Document,
    Named,
    PhaseStatus,
    Row,
    Section,
    Table,
    find_sections,
    in_the_language_of,
    normalise,
    plain,
    read_cell,
    read_phases,
    read_status,
    words,
)
from unstuck.plans.review import paths_between
from unstuck.toolchain.command_roles import effect, role_of
from unstuck.toolchain.shell import Runnable, programs

FORMAT = "superplan"

DEPENDS, PARALLEL = ("depends on", "dependencies", "depends"), ("parallel with", "can run with", "parallel")
ESTIMATE, STATUS = ("estimate", "points", "estimate (points)"), ("status",)


class Part(NamedTuple):
    """One file of a plan; `name` is empty for the first."""

    name: str
    text: str


@dataclass(slots=True, kw_only=True)
class Phase:
    """One phase, as far as its row and its section tell."""

    id: str
    raw: str
    name: str
    line: int
    part: str = ""
    row: Row | None = None
    section: Section | None = None
    body: str = ""

    def cell(self, names: Sequence[str]) -> str | None:
        """Return what the row says; None if the table has no such column."""
        cell = self.row.cell(*names) if self.row else None
        return cell.text if cell else None

    def fact(self, names: Sequence[str]) -> str | None:
        value = self.section.fact(*names) if self.section else None
        return value.text if value else None

    def said(self, names: Sequence[str]) -> str:
        """Return what counts: the row's word, else the section's."""
        cell = self.cell(names)
        return cell if cell is not None else self.fact(names) or ""


@dataclass(slots=True)
class _Found:
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
    """Tell the phase overview from other tables."""
    return "phase" in table.columns and any(name in table.columns for name in (*DEPENDS, *PARALLEL, *STATUS))


_ROW = re.compile(
    r"^[ \t]*\|?[ \t]*\**Phase\**[ \t]*\|[^\n]*\b(?:Depends[ \t]+On|Parallel[ \t]+With)\b", re.MULTILINE | re.IGNORECASE
)


def looks_like(text: str, *, named_tasks: bool = False) -> bool:
    """Tell a superplan by its overview, or by the sections of its phases; in a file that is named tasks.md only by the former in English."""
    if "|" in text and _ROW.search(text):
        return True
    if named_tasks or ("|" not in text and "\n>" not in f"\n{text}"):
        return False  # without a table or a quotation there is none, and the words of all languages are not needed
    column, head, fact = _shapes()
    sections = head.search(text) is not None and fact.search(text) is not None
    tables = filter(is_overview, Document(text).tables() if not sections and column.search(text) else ())
    return sections or any(name in table.columns for table in tables for name in (*DEPENDS, *PARALLEL))


@cache
def _shapes() -> tuple[re.Pattern[str], ...]:
    """Return what a column of phases, the heading of a phase and a fact about one look like."""
    shapes = (
        rf"\|[ \t]*\**(?:{words().phase})\**[ \t]*(?:\||$)",
        rf"^#{{2,4}}[ \t]+{words().lead}\w",
        rf"^>[ \t]*\**(?:Depends On|Can Run With|{words().columns['depends on']})\b",
    )
    return tuple(re.compile(shape, re.MULTILINE | re.IGNORECASE) for shape in shapes)


def read(parts: Sequence[Part], path: str, *, runnable: Runnable, problems: Sequence[Problem] = ()) -> Plan:
    """Read a whole plan; everything wrong with it is in its problems and concerns."""
    found = _Found(problems=list(problems))
    documents = [(part, Document(part.text)) for part in parts]
    for part, document in documents:
        _read_tables(found, part, document)
    for part, document in documents:
        _read_sections(found, part, document, runnable)
        found.problems += [_in_part(one, part.name) for one in document.problems]
        found.concerns += [_in_part(one, part.name) for one in document.concerns]
    order = tuple(found.phases)
    tasks = tuple(_task(phase, order) for phase in found.phases.values())
    if not found.overview and tasks:
        hint = "Add a table | Phase | Name | Depends On | Parallel With | Estimate | Status |."
        found.odd("", 1, "The plan has no phase overview table; its sections alone count.", hint)
    for phase in found.phases.values():
        for line, message, hint in _disagreements(phase, order):
            found.odd(phase.part, line or phase.line, message, hint or "Make them say the same.")
    tasks, odd = agree_on_parallel(tasks)
    return Plan(
        path=path,
        format=FORMAT,
        title=found.title,
        tasks=tasks,
        gates=tuple(found.gates.values()),
        problems=tuple(found.problems),
        concerns=tuple(sorted([*found.concerns, *odd], key=lambda one: one.line or 0)),
    )


def _read_tables(found: _Found, part: Part, document: Document) -> None:
    found.title = found.title or next((plain(one.text) for one in document.headings() if one.level == 1), "")
    for table in document.tables():
        if is_overview(table):
            found.overview = True
            for row in table.rows:
                _read_row(found, part, row)
        elif "command" in table.columns and ("tool type" in table.columns or "tool" in table.columns):
            _read_tools(found, table)


def _read_row(found: _Found, part: Part, row: Row) -> None:
    raw = row.cell("phase")
    if raw is None or not plain(raw.text) or raw.text.casefold().strip("* ").startswith("total"):
        return
    shown, titled = read_cell(raw.text)
    name = normalise(shown)
    title = row.cell("name", "title", "description")
    if not name:
        hint = "Use letters and digits, such as 2A."
        found.wrong(part.name, row.line, f"The phase id {raw.text!r} cannot be used.", hint)
        return
    told = (plain(title.text) if title else "") or titled
    phase = Phase(id=name, raw=shown, name=told, line=row.line, part=part.name, row=row)
    first = found.phases.setdefault(name, phase)
    if first is not phase:
        again = f"Phase {shown} is listed twice; line {first.line} has it first."
        found.wrong(part.name, row.line, _same_id(first.raw, shown, name) or again, OWN_ID)


OWN_ID = "Give each phase an id of its own."


def _same_id(one: str, other: str, name: str) -> str:
    """Say that two phases which are written differently have one id; empty if they are written alike."""
    told = f"The phases {one} and {other} have the same id {name}: only letters and digits count."
    return told if one.casefold() != other.casefold() else ""


def _read_tools(found: _Found, table: Table) -> None:
    for row in table.rows:
        tool, command = row.cell("tool type", "tool"), row.cell("command")
        kind = words().tools.get(plain(tool.text).casefold()) if tool else None
        line = command.text.strip("` ").replace("\\|", "|") if command else ""
        if kind is not None and not effect(line) and line.casefold() not in {"", "-", "–", "—", "n/a", "none", "tbd"}:  # noqa: RUF001  # people do write these dashes
            found.gates.setdefault(kind, Check(command=line, kind=kind))


def _read_sections(found: _Found, part: Part, document: Document, runnable: Runnable) -> None:
    rows = set(found.phases)
    for section in find_sections(document, rows, runnable):
        phase = found.phases.get(section.id)
        if phase is None:
            phase = Phase(id=section.id, raw=section.raw, name=section.name, line=section.line, part=part.name)
            found.phases[section.id] = phase
            if found.overview:
                message = f"Phase {section.raw} has a section and no row in the overview."
                found.odd(part.name, section.line, message, "Add a row for it, or remove the section.")
        elif phase.section is not None:
            again = f"Phase {section.raw} has two sections; line {phase.section.line} has the first."
            message = _same_id(phase.section.raw, section.raw, section.id) or again
            found.wrong(part.name, section.line, message, OWN_ID)
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
                command=command, kind="test" if any(role_of(one) == "test" for one in programs(command)) else "verify"
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
    """Hash what a person could change: not the status, nor the ticks, which are ours to set."""
    cells = [phase.raw, phase.name, *(phase.said(names) for names in (DEPENDS, PARALLEL, ESTIMATE))]
    text, section = phase.body, phase.section
    if section is not None:
        status = section.fact(*STATUS)
        ours = [(box.place, box.place + len(box.mark)) for box in section.boxes]
        ours += [(status.start, status.end)] if status else []
        text = apply_edits(text, [Edit(start - section.start, end - section.start, "") for start, end in ours]).strip()
    return hashlib.sha256("\n".join([*cells, text]).encode(errors="replace")).hexdigest()[:16]


def _disagreements(phase: Phase, order: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Say where row and section differ, what is missing, and what could be misread."""
    name, told = phase.raw, phase.said(STATUS)
    both = f"The overview and the section of phase {name} disagree about"
    if told and not read_status(told)[1]:
        message = f"The status {told!r} of phase {name} is not one status; it is read as {_status(phase)}."
        yield 0, message, "Use one of ⬜ 🔄 ✅ ⏸️ ⏭️."
    if phase.section is None:
        message = f"Phase {name} has a row in the overview and no section: nothing says what it is about."
        yield 0, message, f"Write a section `### Phase {name}: {phase.name}`."
        return
    for what, names in (("Depends On", DEPENDS), ("Parallel With", PARALLEL)):
        ours, theirs = phase.cell(names), phase.fact(names)
        if ours is not None and theirs is not None:
            one, other = read_phases(ours, order, phase.id), read_phases(theirs, order, phase.id)
            skips = (one.optional and not other.ids) or (other.optional and not one.ids)
            if set(one.ids) != set(other.ids) and not skips:
                yield 0, f"{both} {what}: {_list(one)} and {_list(other)}; the overview counts.", ""
    ours, theirs = phase.cell(ESTIMATE), phase.fact(ESTIMATE)
    if ours and theirs and normalise(ours) != normalise(re.sub(r"\bpoints?\b", "", theirs.casefold())):
        yield 0, f"{both} the estimate: {ours!r} and {theirs!r}.", ""
    cell, fact = phase.cell(STATUS), phase.fact(STATUS)
    if cell and fact and read_status(cell)[0] != read_status(fact)[0]:
        yield 0, f"{both} the status: {cell!r} and {fact!r} (line {phase.section.line}); the overview counts.", ""
    if (condition := phase.section.fact("condition")) and _status(phase) == "pending":
        message = f"Phase {name} has a condition that nobody evaluates: {condition.text}"
        yield condition.line, message, "It will be run; mark it ⏭️ if it is not needed."


def _list(named: Named) -> str:
    return ", ".join(name.upper() for name in named.ids) or "nothing"


def _in_part(problem: Problem, part: str) -> Problem:
    return replace(problem, message=f"{part}: {problem.message}") if part else problem


def agree_on_parallel(tasks: Sequence[Task]) -> tuple[tuple[Task, ...], list[Problem]]:
    """Keep of what the phases say about running side by side what both say and nothing speaks against."""
    known = {task.id: task for task in tasks}
    reach = paths_between(tasks)
    kept: dict[str, list[str]] = {task.id: [] for task in tasks}
    odd: list[Problem] = []
    for task in tasks:
        for name in task.parallel_with:
            message, hint = _against(task, name, known.get(name), reach)
            if not message and name != task.id:
                kept[task.id].append(name)
            mutual = name in known and task.id in known[name].parallel_with
            if message and not (mutual and task.id >= name):  # of two that say so, one tells
                odd.append(Problem(message=message, line=task.line, hint=hint))
    return tuple(replace(task, parallel_with=tuple(kept[task.id])) for task in tasks), odd


def _against(task: Task, name: str, other: Task | None, reach: Mapping[str, frozenset[str]]) -> tuple[str, str]:
    """Say what speaks against running the two side by side, and the way out; nothing where nothing does."""
    if other is None:
        return f"Phase {task.shown} may run with {name!r}, which is not a phase.", "Correct the id."
    if task.id not in other.parallel_with:
        message = f"Phase {task.shown} may run with {other.shown}, but {other.shown} does not say so; they run one after the other."
        return message, f"Write {task.shown} into Parallel With of {other.shown}, too."
    both = f"Phases {task.shown} and {other.shown} are to run side by side"
    if name != task.id and (other.id in reach[task.id] or task.id in reach[other.id]):
        return f"{both}, and one depends on the other.", "Remove one of the two."
    shared = [path for path in task.files if path in other.files and name != task.id]
    message = f"{both} and both declare {', '.join(shared[:3])}; they run one after the other."
    return (message, "Split the file, or make the phases sequential.") if shared else ("", "")


# --- keeping status cells and boxes current: what stands there is replaced, and no other byte


def mark(text: str, statuses: Mapping[str, str]) -> str:
    """Write the statuses of phases into one file's text."""
    wanted = {name: words().ours[status] for name, status in statuses.items() if status in words().ours}
    found, part, document = _Found(), Part("", text), Document(text)
    _read_tables(found, part, document)
    _read_sections(found, part, document, lambda _: False)
    edits = [_edits(phase, wanted[name]) for name, phase in found.phases.items() if name in wanted]
    return apply_edits(text, list(chain.from_iterable(edits)))


def _edits(phase: Phase, wanted: PhaseStatus) -> Iterator[Edit]:
    """Change the status in the row and in the section; tick or untick the boxes where the phase is done, or done no longer."""
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
    symbol, said = words().written[wanted]
    said = in_the_language_of(text, wanted) or said
    has_symbol = any(char in words().symbols for char in text)
    has_words = any(char.isalpha() for char in text)
    new = f"{symbol} {said}" if has_symbol and has_words else said if has_words else symbol
    if new != text:
        yield Edit(old.start, old.end, new)
