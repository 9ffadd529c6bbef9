"""Keep tasks from an agent that does not work until a time, or until a person has repaired it."""

from dataclasses import dataclass
from math import inf

from unstuck.model.failure import AGENT_DOWN, Failure, Kind

PROVIDER_LIMITS = frozenset({Kind.RATE_LIMITED, Kind.QUOTA_EXHAUSTED, Kind.PROVIDER_OVERLOADED})
"""These limits end after a while, so no profile charges an attempt for them."""

AGENT_PREFIX = "agent:"

REST_SECONDS, MAX_REST_SECONDS = 900.0, 14_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """A fault that concerns more than one task. One task tries again at `until`, the other tasks wait for it."""

    kind: Kind
    task: str  # the task that tries again; empty for a resting agent, which the first task after `until` tries
    until: float  # infinite if only a person can repair it

    @property
    def needs_person(self) -> bool:
        return self.until == inf

    def blocks(self, task: str, now: float) -> bool:
        """Return whether the task has to do without the faulty agent."""
        return self.task != task and (self.task != "" or now < self.until)


def breaker_scope(kind: Kind, agent: str, *, met_by_check: bool) -> str | None:
    """Return the key of the agent's breaker, or None if the fault affects only its task."""
    if met_by_check:
        return None
    return f"{AGENT_PREFIX}{agent}" if kind in AGENT_DOWN or kind is Kind.NETWORK_ERROR else None


def broken_agent_breaker(kind: Kind, task: str) -> Breaker:
    """Return the breaker of an agent that only a person can repair."""
    return Breaker(kind=kind, task=task, until=inf)


def resting_agent_breaker(failure: Failure, trips: int, at: float) -> Breaker:
    """Return the breaker of an agent that rests. The time doubles with every trip, and lasts until a stated reset."""
    rest_end = at + min(REST_SECONDS * 2.0 ** (trips - 1), MAX_REST_SECONDS)
    return Breaker(kind=failure.kind, task="", until=max(rest_end, failure.resets_at or 0.0))
