"""Keep a superplan's status cells and boxes current: what stands there is replaced, and no other byte."""

from collections.abc import Iterator, Mapping

from unstuck.plans.editor import Edit, apply
from unstuck.plans.superplans.markdown import Document
from unstuck.plans.superplans.phase_section import Section, find_sections
from unstuck.plans.superplans.phase_words import SYMBOLS, WRITTEN, PhaseStatus, normalise, read_cell, read_status
from unstuck.plans.superplans.superplan import STATUS, is_overview
from unstuck.plans.superplans.translated import in_the_language_of

PHASE_STATUS: Mapping[str, PhaseStatus] = {
    "pending": "pending",
    "running": "running",
    "verifying": "running",
    "waiting": "running",
    "complete": "complete",
    "stuck": "failed",
    "blocked": "blocked",
    "skipped": "skipped",
}
"""Our statuses as superplans know them."""


def mark(text: str, statuses: Mapping[str, str]) -> tuple[str, frozenset[str]]:
    """Write the statuses of phases into one file's text; return it, and the phases that it knows."""
    wanted = {name: PHASE_STATUS[status] for name, status in statuses.items() if status in PHASE_STATUS}
    document = Document(text)
    edits: list[Edit] = []
    rows: dict[str, PhaseStatus | None] = {}
    for table in filter(is_overview, document.tables()):
        for row in table.rows:
            phase, cell = table.cell(row, "phase"), table.cell(row, *STATUS)
            name = normalise(read_cell(phase.text)[0]) if phase else ""
            if name and name not in rows:
                rows[name] = read_status(cell.text)[0] if cell else None
                if name in wanted and cell:
                    edits += _status(cell.text, cell.start, cell.end, wanted[name])
    sections = {one.id: one for one in find_sections(document, rows, lambda _: False)}
    for name, section in sections.items():
        if name in wanted:
            edits += _section(section, wanted[name], rows.get(name))
    return apply(text, edits), frozenset((*rows, *sections))


def _section(section: Section, wanted: PhaseStatus, row: PhaseStatus | None) -> Iterator[Edit]:
    """Change the status line; tick or untick the boxes where the phase is done, or done no longer."""
    fact = section.fact(*STATUS)
    before = read_status(fact.text)[0] if fact else row
    if fact is not None:
        yield from _status(fact.text, fact.start, fact.end, wanted)
    if (wanted == "complete") == (before == "complete"):
        return
    for box in section.boxes:
        if box.area != "checkpoint" and (wanted == "complete") != (box.mark in ("x", "X")):
            yield Edit(box.place, box.place + len(box.mark), "x" if wanted == "complete" else " ")


def _status(text: str, start: int, end: int, wanted: PhaseStatus) -> Iterator[Edit]:
    """Write a status in the style of the old one: a symbol, words, or both."""
    if read_status(text) == (wanted, True) and text:
        return
    symbol, words = WRITTEN[wanted]
    words = in_the_language_of(text, wanted) or words
    has_symbol = any(char in SYMBOLS for char in text)
    has_words = any(char.isalpha() for char in text)
    new = f"{symbol} {words}" if has_symbol and has_words else words if has_words else symbol
    if new != text:
        yield Edit(start, end, new)
