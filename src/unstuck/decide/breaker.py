"""Faults that concern more than one task: how far they reach, and when what is out of order is tried again."""

from dataclasses import dataclass

from unstuck.diagnosis import AGENT_DOWN, Failure, Kind

AGENT = "agent:"
REST_SECONDS, LONGEST_REST = 900.0, 14_400.0
"""How long an agent rests after it was found down: a quarter of an hour, doubling up to four hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """A fault that concerns more than one task: one of them tries again at `until`, the others wait for that."""

    kind: Kind
    task: str
    """The task that tries; empty for an agent at rest, which the first task that comes after `until` tries."""
    until: float

    def holds(self, task: str, now: float) -> bool:
        """Whether the task must do without what is out of order."""
        return self.task != task and (self.task != "" or now < self.until)


def reach(kind: Kind, agent: str) -> str | None:
    """Say how far a fault reaches: the whole run, everything with one agent, or (None) only its task."""
    if kind in (Kind.DISK_FULL, Kind.NETWORK_ERROR):
        return "run"
    return f"{AGENT}{agent}" if kind in AGENT_DOWN else None


def at_rest(failure: Failure, trips: int, at: float) -> Breaker:
    """Set an agent to rest: for a time that doubles with every trip, or until the stated reset if that is later."""
    rest = at + min(REST_SECONDS * 2.0 ** (trips - 1), LONGEST_REST)
    return Breaker(kind=failure.kind, task="", until=max(rest, failure.resets_at or 0.0))
