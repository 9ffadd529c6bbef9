"""The tasks of a text that has been read, each made when it is first looked at."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, overload

from unstuck.plans.blocks import AnyBlock
from unstuck.plans.layout import Asked
from unstuck.plans.plan import Task


class Read(NamedTuple):
    """What a text says, task by task."""

    text: str
    blocks: Sequence[AnyBlock]
    names: Sequence[str]
    asked: Callable[[AnyBlock], Asked]
    depends_on: Sequence[tuple[str, ...]]
    groups: Sequence[str | None]


class TaskList(Sequence[Task]):
    """All is read by then, and what is wrong is known; but a plan of thousands is seldom looked at whole."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._made: list[Task | None] = [None] * len(read.blocks)

    @overload
    def __getitem__(self, at: int) -> Task: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Task, ...]: ...
    def __getitem__(self, at: int | slice) -> Task | tuple[Task, ...]:
        if isinstance(at, slice):
            return tuple(self[place] for place in range(*at.indices(len(self))))
        task = self._made[at]
        if task is None:
            task = self._made[at] = _make(self._read, at)
        return task

    def __len__(self) -> int:
        return len(self._made)

    def __iter__(self) -> Iterator[Task]:
        return (self[at] for at in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def _make(read: Read, at: int) -> Task:
    block = read.blocks[at]
    asked = read.asked(block)
    return Task(
        id=read.names[at],
        title=block.title,
        line=block.line,
        body=read.text[block.start : block.end],
        depends_on=read.depends_on[at],
        group=read.groups[at],
        checks=asked.checks,
        files=asked.files,
        markers=block.markers,
        fixes=block.fixes,
        commit=asked.commit,
        agent=asked.agent,
        done=block.ticked,
    )
