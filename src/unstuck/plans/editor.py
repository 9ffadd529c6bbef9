"""Edit the text of a plan: tick, un-tick and insert, with every byte outside of the edit as it was."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from unstuck.model.errors import CannotWrite
from unstuck.model.plan import Insertion
from unstuck.plans.blocks import Block

_BLANK_LINE = ("\n\n", "\n\r\n", "\r\r")
_WORD = re.compile(r"\S")
_LINE_END = re.compile(r"\r\n|\r|\n")


class Edit(NamedTuple):
    """Put `text` in the place of what stands from `start` to `end`."""

    start: int
    end: int
    text: str


def apply(text: str, edits: Sequence[Edit]) -> str:
    """Make edits that do not meet."""
    pieces, at = list[str](), 0
    for edit in sorted(edits):
        pieces += (text[at : edit.start], edit.text)
        at = edit.end
    return "".join((*pieces, text[at:]))


@dataclass(frozen=True, slots=True)
class Located:
    """A plan's text, and where each task stands in it."""

    text: str
    places: Mapping[str, Block]
    parents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Tasks that are done when all of these are."""
    within: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Boxes that are ticked with a task, because they are part of it."""

    def tick(self, done: Mapping[str, bool]) -> str:
        """Tick or un-tick the tasks that are there. `X` is a tick and stays."""
        wanted = {name: ticked for name, ticked in done.items() if name in self.places}
        wanted.update((name, True) for task, ticked in done.items() if ticked for name in self.within.get(task, ()))
        for parent in sorted(self.parents, key=len, reverse=True):  # the deepest first: theirs count for those above
            if not wanted.keys().isdisjoint(self.parents[parent]):
                wanted[parent] = all(wanted.get(name, self._ticked(name)) for name in self.parents[parent])
        boxes = {self.places[name].box: ticked for name, ticked in wanted.items() if self._ticked(name) != ticked}
        return apply(self.text, [Edit(box, box + 1, "x" if ticked else " ") for box, ticked in boxes.items()])

    def _ticked(self, name: str) -> bool:
        return self.text[self.places[name].box] in "xX"

    def insert(self, insertion: Insertion, locate: Callable[[str], "Located"]) -> "Located":
        """Write tasks into the text, those that are not there yet; `locate` reads what came of it."""
        blocks = {name: block for name, block in insertion.blocks.items() if name not in self.places}
        if not blocks:
            return self
        if insertion.beside not in self.places:
            raise CannotWrite(
                f"Task {insertion.beside} is no longer in the plan, so nothing can be written beside it.",
                hint="Put it back, or go on with `unstuck run PLAN --accept-plan-change`.",
            )
        after = locate(self._with(blocks.values(), insertion))
        lost = [name for name in blocks if name not in after.places]
        if lost or len(after.places) != len(self.places) + len(blocks):
            raise CannotWrite(  # a code block or comment that does not end swallows it, or what follows
                f"A task written beside {insertion.beside} would not be read as one ({(lost or list(blocks))[0]}).",
                hint=f"See that every code block, comment and here-document near task {insertion.beside} ends, then resume.",
            )
        return after

    def _with(self, blocks: Iterable[str], insertion: Insertion) -> str:
        at, apart = self._opening(insertion)
        first = self.text[self.places[insertion.beside].start :]
        indent = first[: len(first) - len(first.lstrip(" \t"))]
        ends = _LINE_END.search(first) or _LINE_END.search(self.text)
        end = ends[0] if ends else "\n"
        bodies = [indent + block.rstrip("\n").replace("\n", f"{end}{indent}") + end for block in blocks]
        gap = end if apart else ""
        text = "".join(f"{body}{gap}" if insertion.before else f"{gap}{body}" for body in bodies)
        if at == len(self.text) and not self.text.endswith(("\n", "\r")):
            text = f"{end}{text.removesuffix(end)}"  # the file goes on without a final line end
        return self.text[:at] + text + self.text[at:]

    def _opening(self, insertion: Insertion) -> tuple[int, bool]:
        """Return where to insert, and whether blank lines separate tasks there."""
        beside = self.places[insertion.beside]
        if insertion.before:
            return beside.start, self.text.endswith(_BLANK_LINE, 0, beside.start)
        family = f"{insertion.beside}."
        descendants = [place for name, place in self.places.items() if name.startswith(family)]
        last = max((beside, *descendants), key=lambda place: place.end)
        follows = self.text[last.end : last.end + 2]
        if _WORD.search(self.text, last.end) is None:
            return last.end, bool(follows) or self.text.endswith(_BLANK_LINE, 0, last.start)
        return last.end, follows.startswith(("\n", "\r"))
