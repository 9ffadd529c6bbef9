"""Faults that hold an agent back from more than one task, and for how long."""

from dataclasses import dataclass
from math import inf

from unstuck.model.failure import AGENT_DOWN, Failure, Kind

LIMITED = frozenset({Kind.RATE_LIMITED, Kind.QUOTA_EXHAUSTED, Kind.PROVIDER_OVERLOADED})
"""Limits of providers: they pass, so no profile spends an attempt on them."""


AGENT = "agent:"


REST_SECONDS, LONGEST_REST = 900.0, 14_400.0
"""How long an agent rests after it was found down: a quarter of an hour, doubling up to four hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """A fault that concerns more than one task: one of them tries again at `until`, the others wait for that."""

    kind: Kind
    task: str  # the task that tries; empty for an agent at rest, which the first task that comes after `until` tries
    until: float  # infinite where only a person can put it in order

    @property
    def lasts(self) -> bool:
        return self.until == inf

    def holds(self, task: str, now: float) -> bool:
        """Whether the task must do without what is out of order."""
        return self.task != task and (self.task != "" or now < self.until)


def reach(kind: Kind, agent: str, *, met_by_check: bool) -> str | None:
    """Say how far a fault reaches: everything with one agent, or (None) only its task, as what a check met does."""
    if met_by_check:
        return None
    return f"{AGENT}{agent}" if kind in AGENT_DOWN or kind is Kind.NETWORK_ERROR else None


def out_of_order(kind: Kind, task: str) -> Breaker:
    """Hold every other task back from an agent that only a person can put in order."""
    return Breaker(kind=kind, task=task, until=inf)


def at_rest(failure: Failure, trips: int, at: float) -> Breaker:
    """Set an agent to rest: for a time that doubles with every trip, or until the stated reset if that is later."""
    rest = at + min(REST_SECONDS * 2.0 ** (trips - 1), LONGEST_REST)
    return Breaker(kind=failure.kind, task="", until=max(rest, failure.resets_at or 0.0))
