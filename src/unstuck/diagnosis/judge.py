"""The protocol of the diagnosis of a failed command."""

from typing import Protocol

from unstuck.diagnosis.evidence import Evidence
from unstuck.diagnosis.judging import Diagnosis


class Judge(Protocol):
    """Takes a closer look at the output of a command that failed."""

    def diagnose(self, evidence: Evidence) -> Diagnosis | None:
        """Say what went wrong, or None if nothing did."""

    def resets_at(self, found: Diagnosis, now: float) -> float | None:
        """Return when the limit ends that was found, in seconds since 1970, where the provider says so."""
