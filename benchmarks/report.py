"""What a benchmark found: figures for machines, lines for people, and whether its targets were met."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unstuck.model.errors import UnstuckError


class BenchBroken(UnstuckError):
    """The benchmark could not measure what it claims to measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A figure and what it may come to at the most."""

    name: str
    value: float
    at_most: float

    @property
    def met(self) -> bool:
        return self.value <= self.at_most


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of one benchmark."""

    figures: Mapping[str, Any]
    lines: tuple[str, ...]
    targets: tuple[Target, ...]

    @property
    def met(self) -> bool:
        return all(target.met for target in self.targets)
