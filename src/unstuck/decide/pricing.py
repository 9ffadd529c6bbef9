"""Price what may be done next by what it came to before: expected success per cost, the ladder's order as the prior. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

PRICED = ("retry", "continue", "rollback", "switch", "fix", "ask")
"""Moves whose worth can be learned; what waits passes by itself."""
Priced = Literal["retry", "continue", "rollback", "switch", "fix", "amend", "ask"]

ENOUGH_TRIES = 5
"""How often a move must have been made for this kind of failure before its own figures count."""
PRIOR_TRIES = 6.0
"""How many tries the ladder's word is worth beside them."""
FIRST_CHANCE, FALLING = 0.4, 0.8
"""What the first open rung is thought to achieve before there is evidence, and how much less each one behind it."""
ANSWERED = 0.9
"""How often a person's answer is thought to help."""
PERSON_COST = 30.0
"""What a person's time is worth, in usual attempts: asked early only where attempts have shown to be nearly hopeless."""
LEAST_COST, MOST_COST = 0.2, 5.0
ANY_AGENT = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What one move came to: how often it was made, how often the work landed after it, and the seconds that took."""

    tried: int = 0
    won: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Tried") -> "Tried":
        return Tried(tried=self.tried + other.tried, won=self.won + other.won, seconds=self.seconds + other.seconds)

    def shrunk(self, divisor: int) -> "Tried":
        """Return evidence that counts less, because it is from somewhere else."""
        return Tried(tried=self.tried // divisor, won=self.won // divisor, seconds=self.seconds / divisor)


Moves = Mapping[tuple[str, str, str], Tried]
"""By kind of failure, move, and the agent that had failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """One thing that could be done, and what it is worth."""

    rung: str
    move: str
    tried: int = 0
    won: int = 0
    chance: float = 0.0
    """How probable it is that the work lands after it."""
    cost: float = 1.0
    """In usual attempts."""

    @property
    def worth(self) -> float:
        return self.chance / self.cost


def weigh(rungs: Sequence[tuple[str, str]], kind: str, agent: str, moves: Moves) -> tuple[Weighed, ...]:
    """Weigh the open rungs of a ladder, in its order, and asking a person behind them."""
    usual = _mean_seconds([one for (_, move, name), one in moves.items() if name == ANY_AGENT and move != "ask"])
    weighed = []
    for place, (rung, move) in enumerate(rungs):
        known = _known(moves, kind, move, agent)
        before = FIRST_CHANCE * FALLING**place
        chance = (known.won + PRIOR_TRIES * before) / (known.tried + PRIOR_TRIES)
        cost = _cost(known, usual)
        weighed.append(Weighed(rung=rung, move=move, tried=known.tried, won=known.won, chance=chance, cost=cost))
    asked = _known(moves, kind, "ask", agent)
    chance = (asked.won + PRIOR_TRIES * ANSWERED) / (asked.tried + PRIOR_TRIES)
    person = Weighed(rung="ask", move="ask", tried=asked.tried, won=asked.won, chance=chance, cost=PERSON_COST)
    return tuple(replace(one, chance=round(one.chance, 3), cost=round(one.cost, 2)) for one in (*weighed, person))


def has_evidence(weighed: Sequence[Weighed]) -> bool:
    return any(one.tried for one in weighed)


def worthiest(weighed: Sequence[Weighed]) -> Weighed:
    """Return what is worth most; among equals the first."""
    return max(weighed, key=lambda one: one.worth)


def _known(moves: Moves, kind: str, move: str, agent: str) -> Tried:
    """Return what is known of a move: with this agent, where that is enough; else with all of them; else nothing."""
    for name in (agent, ANY_AGENT):
        known = moves.get((kind, move, name), Tried())
        if known.tried >= ENOUGH_TRIES:
            return known
    return Tried()


def _mean_seconds(all_tried: Sequence[Tried]) -> float:
    tried = sum(one.tried for one in all_tried)
    return sum(one.seconds for one in all_tried) / tried if tried else 0.0


def _cost(known: Tried, usual: float) -> float:
    """Return what a move takes against the usual one, as far as that is known; no figure is taken at its extreme."""
    if not known.tried or not usual:
        return 1.0
    return min(max(known.seconds / known.tried / usual, LEAST_COST), MOST_COST)
