"""The protocol of the diagnosis of a failed command."""

from collections.abc import Sequence
from typing import Protocol

from unstuck.diagnosis.evidence import Evidence, Hit
from unstuck.diagnosis.judging import Diagnosis


class Scanner(Protocol):
    """Finds which classification rules fire on which lines."""

    def scan(self, lines: Sequence[str]) -> tuple[Hit, ...]:
        """Return the hits in the order of the lines."""


class Judge(Protocol):
    """Takes a closer look at the output of a command that failed."""

    def diagnose(self, evidence: Evidence) -> Diagnosis | None:
        """Say what went wrong, or None if nothing did."""

    def resets_at(self, found: Diagnosis, now: float) -> float | None:
        """Return when the limit ends that was found, in seconds since 1970, where the provider says so."""
