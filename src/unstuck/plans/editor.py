"""Edit the text of a plan: tick, un-tick and insert, with every byte outside of the edit as it was.

An edit of a long plan must not cost a reading of it: where the tasks stand is remembered with the bytes that it is
true for, and our own edits are reckoned with.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from unstuck.errors import CannotWrite
from unstuck.plans.blocks import Block, Reading
from unstuck.plans.lines import OPENERS
from unstuck.plans.plan import Insertion


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


class Places(Mapping[str, Place]):
    """Where each task stands; of two with one id, the first.

    An edit moves all that stands behind it. It is remembered, and reckoned with for the few that are asked for.
    """

    def __init__(
        self,
        found: Mapping[str, Block | Place],
        edits: tuple[Edit, ...] = (),
        since: Mapping[str, int] | None = None,
    ) -> None:
        self._found = found
        self._edits = edits
        self._since = since or {}
        """How many of the edits were made before a task was found; none before most were."""

    def __getitem__(self, name: str) -> Place:
        found = self._found[name]
        start, moved = found.start, 0
        for edit in self._edits[self._since.get(name, 0) :]:
            if start + moved >= edit.end:
                moved += len(edit.text) - (edit.end - edit.start)
        return Place(start + moved, found.end + moved, found.box + moved, found.fixes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def edited(self, edits: Sequence[Edit]) -> "Places":
        """Reckon with edits, which are in order and do not meet."""
        moving = [edit for edit in reversed(edits) if len(edit.text) != edit.end - edit.start]
        return Places(self._found, (*self._edits, *moving), self._since) if moving else self

    def extended(self, new: Mapping[str, Place]) -> "Places":
        """Add tasks, or put some elsewhere."""
        since = {**self._since, **dict.fromkeys(new, len(self._edits))}
        return Places({**self._found, **new}, self._edits, since)


def place(blocks: Sequence[Block], names: Sequence[str]) -> Places:
    """Say where each task stands."""
    found: dict[str, Block] = {}
    for block, name in zip(blocks, names, strict=True):
        found.setdefault(name, block)
    return Places(found)


INDENT_CHARS = 200

_BLANK_LINE = ("\n\n", "\n\r\n", "\r\r")
_WORD = re.compile(r"\S")


@dataclass(frozen=True, slots=True)
class Located:
    """A plan's bytes, their text, and where each task stands in it."""

    content: bytes
    text: str
    places: Places
    parents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Tasks that are done when all of these are."""
    within: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Boxes that are ticked with a task, because they are part of it."""

    def tick(self, done: Mapping[str, bool]) -> "Located":
        """Tick or un-tick the tasks that are there. `X` is a tick and stays."""
        wanted = {name: ticked for name, ticked in done.items() if name in self.places}
        wanted.update((name, True) for task, ticked in done.items() if ticked for name in self.within.get(task, ()))
        for parent in sorted(self.parents, key=len, reverse=True):  # the deepest first: theirs count for those above
            if not wanted.keys().isdisjoint(self.parents[parent]):
                wanted[parent] = all(wanted.get(name, self._ticked(name)) for name in self.parents[parent])
        boxes = sorted((self.places[name].box, name) for name, ticked in wanted.items() if self._ticked(name) != ticked)
        return self._edited([Edit(box, box + 1, "x" if wanted[name] else " ") for box, name in boxes])

    def _ticked(self, name: str) -> bool:
        return self.text[self.places[name].box] in "xX"

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
        at, apart = self._opening(insertion)
        line_end = _line_end(self.text, self.places[insertion.beside].start)
        unended = at == len(self.text) and not self.text.endswith(("\n", "\r"))
        first = self.places[insertion.beside].start
        beside = self.text[first : first + INDENT_CHARS]
        indent = beside[: len(beside) - len(beside.lstrip(" \t"))]
        pieces = [line_end] if unended else []
        new: dict[str, Place] = {}
        for name, block in blocks.items():
            gap = [line_end] if apart else []
            start = at + sum(map(len, pieces)) + (0 if insertion.before else len("".join(gap)))
            body = indent + block.rstrip("\n").replace("\n", f"{line_end}{indent}") + line_end
            pieces += [body, *gap] if insertion.before else [*gap, body]
            new[name] = _placed(body, start)
        text = "".join(pieces)
        if unended:  # the file goes on without a final line end; the task above has one now
            text = text.removesuffix(line_end)
            *_, name = new
            new[name] = new[name]._replace(end=new[name].end - len(line_end))
        edited = self._edited([Edit(at, at, text)])
        if unended:
            above = [(name, place) for name, place in edited.places.items() if place.end == at]
            new.update((name, place._replace(end=at + len(line_end))) for name, place in above)
        found = replace(edited, places=edited.places.extended(new))
        around = self.text[self.places[insertion.beside].start : at] + text
        if any(opener in around for opener in OPENERS):
            found.compare_with_reading(insertion)
        return found

    def compare_with_reading(self, insertion: Insertion) -> None:
        """Read the whole text again: a code block or comment that does not end would swallow what was inserted."""
        read = {block.start for block in Reading(self.text).blocks()}
        lost = [
            name
            for name, place in self.places.items()
            if place.start not in read and self.text[place.start] not in " \t"  # nested ones are not told
        ]
        if lost:
            raise CannotWrite(
                f"A task written beside {insertion.beside} would not be read as one ({lost[0]}).",
                hint=f"See that every code block, comment and here-document near task {insertion.beside} ends, then resume.",
            )

    def _opening(self, insertion: Insertion) -> tuple[int, bool]:
        """Return where to insert, and whether blank lines separate tasks there."""
        beside = self.places[insertion.beside]
        if insertion.before:
            return beside.start, self.text.endswith(_BLANK_LINE, 0, beside.start)
        family = f"{insertion.beside}."
        descendants = [self.places[name] for name in self.places if name.startswith(family)]
        last = max(max(descendants, default=beside), beside, key=lambda place: place.end)
        follows = self.text[last.end : last.end + 2]
        if _WORD.search(self.text, last.end) is None:
            return last.end, bool(follows) or self.text.endswith(_BLANK_LINE, 0, last.start)
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
        return replace(self, content=content, text=text, places=self.places.edited(edits))


def _placed(body: str, start: int) -> Place:
    """Say where a block stands that begins at `start`."""
    indent = len(body) - len(body.lstrip(" \t"))
    block = Reading(body[indent:]).blocks()[0]
    return Place(start, start + indent + block.end, start + indent + block.box, block.fixes)


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
