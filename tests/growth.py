"""How the cost of a call grows with its input, as a ratio within one run: seconds say more about the machine."""

import functools
import time
from collections.abc import Callable, Iterable

MANY = 4
TOO_MUCH = 2.5 * MANY
"""Four times the input may take ten times as long (caches, collections); quadratic work takes sixteen times."""
ROUNDS = 5


def faster_than_linear(cases: Iterable[str], work: Callable[[str], object]) -> list[str]:
    """Return the cases whose cost grows faster than they do: a quarter of a text against the whole of it."""
    return [f"{case[:40]!r} x {len(case)}" for case in cases if not any(_is_linear(case, work) for _ in range(ROUNDS))]


def _is_linear(case: str, work: Callable[[str], object]) -> bool:
    """What is cheaper than a loop on this machine is noise."""
    part = _cost(work, case[: len(case) // MANY])
    return _cost(work, case) <= TOO_MUCH * max(part, _noise() / MANY)


def _cost(work: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    work(text)
    return time.process_time() - began


@functools.cache
def _noise() -> float:
    return min(_cost(lambda _: sum(range(300_000)), "") for _ in range(3))
