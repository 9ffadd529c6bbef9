"""Long tables of rows that each take a process or more: `make test` has some of every kind, `make exhaustive` the others."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def some(rows: Iterable[Any], *, every: int = 0, kept: Collection[Any] = (), parts: bool = False) -> list[Any]:
    """Return all rows; those that are neither the n-th nor named are left to `make exhaustive`. `parts`: a row is several arguments."""
    return [
        pytest.param(
            *(row if parts else (row,)),
            marks=() if row in kept or (every and number % every == 0) else pytest.mark.exhaustive,
        )
        for number, row in enumerate(rows)
    ]
