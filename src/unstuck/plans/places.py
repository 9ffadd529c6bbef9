"""Where the tasks of a plan stand, in a text that goes on being edited."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from unstuck.plans.blocks import AnyBlock


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
        found: Mapping[str, AnyBlock | Place],
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


def place(blocks: Sequence[AnyBlock], names: Sequence[str]) -> Places:
    """Say where each task stands."""
    found: dict[str, AnyBlock] = {}
    for block, name in zip(blocks, names, strict=True):
        found.setdefault(name, block)
    return Places(found)
