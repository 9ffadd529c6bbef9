"""Edit the text of a plan: tick, un-tick and insert, with every byte outside of the edit as it was.

An edit of a long plan must not cost a reading of it: where the tasks stand is remembered with the bytes that it is
true for, and moved along with every edit of our own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from unstuck.adapters.plans.blocks import Block
from unstuck.core.plan import Insertion
from unstuck.errors import CannotWrite


class Place(NamedTuple):
    """Where a task stands: its block, and the character between its brackets."""

    start: int
    end: int
    box: int
    fixes: str | None = None


class Edit(NamedTuple):
    """Replace a stretch of the text."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Located:
    """A plan's bytes, their text, and where each task stands in it; of two with one id, the first."""

    content: bytes
    text: str
    places: Mapping[str, Place]

    def tick(self, done: Mapping[str, bool]) -> "Located":
        """Tick or un-tick the tasks that are there. `X` is a tick and stays."""
        boxes = sorted((self.places[name].box, ticked) for name, ticked in done.items() if name in self.places)
        edits = [
            Edit(box, box + 1, "x" if ticked else " ") for box, ticked in boxes if (self.text[box] != " ") != ticked
        ]
        return self._edited(edits)

    def insert(self, insertion: Insertion) -> "Located":
        """Write tasks into the text, those that are not there yet."""
        blocks = {name: block for name, block in insertion.blocks.items() if name not in self.places}
        if not blocks:
            return self
        if insertion.beside not in self.places:
            raise CannotWrite(
                f"Task {insertion.beside} is no longer in the plan, so nothing can be written beside it.",
                hint="Put it back, or go on with `unstuck run PLAN --accept-plan-change`.",
            )
        at, separator = self._opening(insertion)
        line_end = _line_end(self.text, self.places[insertion.beside].start)
        pieces: list[str] = []
        new: dict[str, Place] = {}
        length = 0
        last = at == len(self.text) and not self.text.endswith(("\n", "\r"))
        for name, block in blocks.items():
            before = f"{line_end if last and not pieces else ''}{line_end if separator else ''}"
            body = block.rstrip("\n").replace("\n", line_end)
            after = line_end if separator and insertion.before else ""
            piece = f"{'' if insertion.before else before}{body}{line_end}{after}"
            start = at + length + (0 if insertion.before else len(before))
            new[name] = Place(start, start + len(body) + len(line_end), start + len("- ["))
            pieces.append(piece)
            length += len(piece)
        text = "".join(pieces)
        text = text.removesuffix(line_end) if last else text
        edited = self._edited([Edit(at, at, text)])
        return Located(edited.content, edited.text, {**edited.places, **new})

    def _opening(self, insertion: Insertion) -> tuple[int, bool]:
        """Return where to insert, and whether blank lines separate tasks there."""
        beside = self.places[insertion.beside]
        if insertion.before:
            return beside.start, self.text[: beside.start].endswith(("\n\n", "\n\r\n", "\r\r"))
        family = f"{insertion.beside}."
        last = max((place for name, place in self.places.items() if name.startswith(family)), default=beside)
        last = max(last, beside, key=lambda place: place.end)
        follows = self.text[last.end : last.end + 2]
        if not self.text[last.end :].strip():
            return last.end, bool(follows) or self.text[: last.start].endswith(("\n\n", "\n\r\n", "\r\r"))
        return last.end, follows.startswith(("\n", "\r"))

    def _edited(self, edits: Sequence[Edit]) -> "Located":
        """Make the edits, which are in order, and move along what stands behind them."""
        if not edits:
            return self
        pieces: list[str] = []
        copied = 0
        for edit in edits:
            pieces += (self.text[copied : edit.start], edit.text)
            copied = edit.end
        text = "".join((*pieces, self.text[copied:]))
        content = text.encode("utf-8", "surrogateescape")
        _compare(self.text, text, edits)
        longer = [edit for edit in edits if len(edit.text) != edit.end - edit.start]
        places = {name: _moved(place, longer) for name, place in self.places.items()} if longer else self.places
        return Located(content, text, places)


def place(blocks: Sequence[Block], names: Sequence[str]) -> dict[str, Place]:
    """Say where each task stands."""
    places: dict[str, Place] = {}
    for block, name in zip(blocks, names, strict=True):
        places.setdefault(name, Place(block.start, block.end, block.box, block.fixes))
    return places


def _moved(place: Place, edits: Sequence[Edit]) -> Place:
    shift = sum(len(edit.text) - (edit.end - edit.start) for edit in edits if edit.end <= place.start)
    return Place(place.start + shift, place.end + shift, place.box + shift, place.fixes) if shift else place


def _compare(before: str, after: str, edits: Sequence[Edit]) -> None:
    """Compare everything outside of the edits: a plan is the user's, and a fault of ours must not reach it."""
    old = new = 0
    for edit in (*edits, Edit(len(before), len(before), "")):
        kept = edit.start - old
        if before[old : edit.start] != after[new : new + kept]:
            raise CannotWrite("An edit of the plan would have changed more than it should.", hint="Please report this.")
        old, new = edit.end, new + kept + len(edit.text)


def _line_end(text: str, at: int) -> str:
    """Return how the line at `at` ends."""
    for place in range(at, len(text)):
        if text[place] in "\r\n":
            return "\r\n" if text.startswith("\r\n", place) else text[place]
    return "\r\n" if "\r\n" in text else "\n"
