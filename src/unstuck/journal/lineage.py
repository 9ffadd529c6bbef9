"""Where a task stands among the fix tasks of one original."""

from collections.abc import Container
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Where a task stands among those that repair each other: 1.3 → 1.3.1 → 1.3.1.1."""

    chain: tuple[str, ...]  # the root first, the task itself last
    fixes: tuple[str, ...]  # the fix tasks that it had in this epoch
    spent: int  # the fix tasks of the whole lineage in this epoch
    next_id: str

    @property
    def depth(self) -> int:
        """How many tasks it repairs, each the next one's fix."""
        return len(self.chain) - 1


def next_id(task: str, fixes: int, taken: Container[str]) -> str:
    """Return the first free id below the task's: 1.3 → 1.3.1. Counting goes on where it ended."""
    number = fixes + 1
    while f"{task}.{number}" in taken:
        number += 1
    return f"{task}.{number}"
