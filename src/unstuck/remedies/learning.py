"""What earlier remedies and failures teach: how often each strategy worked, and what several failures have in common. Pure."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from unstuck.model.failure import RecentFailure
from unstuck.remedies.chain import NOTHING_GIVEN, StrategyRow
from unstuck.shipped import shipped_table

PATIENCE = 5.0
"""The chain's confidence counts as this many tries: with as many of its own, the evidence weighs as much."""
FADING = 0.9
ENOUGH = 3
HOPELESS = 5
ASKED_OFTEN = 3
AS_GOOD = 0.05
"""Ways whose rates fall into one step of this width do equally well: what they cost and take decides."""
Key = tuple[str, str, str, str]
"""Chain, strategy, context, and the program or tool that was called."""


class Counts(NamedTuple):
    """How one way did: weights that fade, and plain totals."""

    tried: float = 0.0
    worked: float = 0.0
    tries: int = 0
    successes: int = 0
    steps: int = 0
    seconds: float = 0.0
    cost: float = 0.0

    def after(self, *, worked: bool, steps: int, seconds: float, cost: float = 0.0) -> "Counts":
        """Return the counts with one more outcome."""
        faded = self._replace(tried=self.tried * FADING, worked=self.worked * FADING)
        return faded.plus(Counts(1, worked, 1, worked, steps, seconds, cost))

    def plus(self, other: "Counts") -> "Counts":
        return Counts(*(mine + its for mine, its in zip(self, other, strict=True)))  # type: ignore[arg-type]  # counts stay whole

    def blended(self, confidence: float) -> float:
        """Return the chain's confidence, moved towards what was seen: a success never lowers it, a failure never raises it."""
        return (PATIENCE * confidence + self.worked) / (PATIENCE + self.tried)

    @property
    def spent(self) -> tuple[float, int]:
        """What one try cost and took; times within a factor of two are the same, because machines are that uneven."""
        tries = max(self.tries, 1)
        return round(self.cost / tries, 3), int(math.log2(1 + self.seconds / tries))


NOTHING = Counts()
NOTHING_KNOWN: Mapping[Key, Counts] = MappingProxyType({})


class Lessons(NamedTuple):
    """All that was learned, and how often a person consented to more than what is safe."""

    counts: Mapping[Key, Counts] = NOTHING_KNOWN
    consents: Mapping[str, int] = NOTHING_GIVEN

    def of(self, chain: str, strategy: str, context: str, tool: str = "") -> Counts:
        """Return what is known about a way: of this tool in this context if that is enough, else of this context, else of all."""
        elsewhere, beside, here = self._levels(chain, strategy, context, tool)
        near = beside.plus(here)
        return here if here.tries >= ENOUGH else near if near.tries >= ENOUGH else elsewhere.plus(near)

    def rate(self, chain: str, strategy: str, context: str, tool: str, confidence: float) -> float:
        """Return a confidence moved by what is known elsewhere, then by this context's other tools, then by this tool.

        Each level moves what the wider one says, so that no outcome can move it the other way by making a level count.
        """
        for level in self._levels(chain, strategy, context, tool):
            confidence = level.blended(confidence)
        return confidence

    def _levels(self, chain: str, strategy: str, context: str, tool: str) -> list[Counts]:
        """Return what is known of a way in other contexts, in this one with other tools, and with this tool."""
        levels = [NOTHING, NOTHING, NOTHING]
        for (its_chain, its_way, its_context, its_tool), counts in self.counts.items():
            if (its_chain, its_way) == (chain, strategy):
                level = 0 if its_context != context else 1 if its_tool != tool else 2
                levels[level] = levels[level].plus(counts)
        return levels

    def after(self, chain: str, strategy: str, context: str, *, worked: bool, **more: Any) -> "Lessons":
        return Lesson(chain, strategy, context, worked, **more).taught(self)

    def with_consent(self, risk: str) -> "Lessons":
        return self._replace(consents={**self.consents, risk: self.consents.get(risk, 0) + 1})


class Lesson(NamedTuple):
    """How one way went, whoever went it."""

    chain: str
    strategy: str
    context: str
    worked: bool
    tool: str = ""
    steps: int = 1
    seconds: float = 0.0
    cost: float = 0.0

    def taught(self, lessons: Lessons) -> Lessons:
        """Return the lessons with this one."""
        key = (self.chain, self.strategy, self.context, self.tool)
        counts = lessons.counts.get(key, NOTHING).after(
            worked=self.worked, steps=self.steps, seconds=self.seconds, cost=self.cost
        )
        return lessons._replace(counts={**lessons.counts, key: counts})


def order(
    strategies: Sequence[StrategyRow], chain: str, context: str, lessons: Lessons, tool: str = ""
) -> tuple[StrategyRow, ...]:
    """Return the ways as they should be tried: the listed order, adjacent ones swapped where the evidence says so."""
    listed, least = [], 1.0
    for strategy in strategies:
        least = min(
            least, strategy.confidence
        )  # the listed order stands until it is refuted, whatever the confidences say
        counts = lessons.of(chain, strategy.name, context, tool)
        listed.append((strategy, counts, lessons.rate(chain, strategy.name, context, tool, least)))
    for _ in listed:
        for place in range(len(listed) - 1):
            first, second = listed[place], listed[place + 1]
            known = first[1].tries >= ENOUGH and second[1].tries >= ENOUGH
            if known and _better(second[2], second[1], first[2], first[1]):
                listed[place : place + 2] = [second, first]
    return tuple(strategy for strategy, _, _ in listed)


def _better(rate: float, counts: Counts, other_rate: float, other: Counts) -> bool:
    """Whether a way works more often, or as often for less."""
    mine, its = round(rate / AS_GOOD), round(other_rate / AS_GOOD)
    return mine > its or (mine == its and counts.spent < other.spent)


def proposals(lessons: Lessons) -> tuple[str, ...]:
    """Say which preferences the user might want to set; none is ever assumed."""
    totals: dict[str, Counts] = {}
    for (_, strategy, _, _), counts in lessons.counts.items():
        totals[strategy] = totals.get(strategy, NOTHING).plus(counts)
    found = [
        f'{strategy} never worked here in {counts.tries} tries: leave it out with `never = ["{strategy}"]`.'
        for strategy, counts in sorted(totals.items())
        if counts.tries >= HOPELESS and counts.successes == 0
    ]
    if (times := lessons.consents.get("caution", 0)) >= ASKED_OFTEN:
        found.append(f'You allowed careful steps {times} times: allow them always with `allow = "caution"`.')
    return tuple(found)


WINDOW_SECONDS = 3600.0
LATEST = 50


class Pattern(NamedTuple):
    name: str
    because: str
    advice: str


def pattern(recent: Sequence[RecentFailure], now: float) -> Pattern | None:
    """Return the cause that the failures of the last hour share, if they share one."""
    fresh = [seen for seen in recent[-LATEST:] if now - seen.at <= WINDOW_SECONDS]
    for sign in shipped_table("chains")["signs"]:
        hits = [seen for seen in fresh if seen.kind in sign["kinds"]]
        things = {(seen.kind, seen.name) for seen in hits}
        if len(things) >= sign["things"] and len({seen.kind for seen in hits}) >= sign["distinct_kinds"]:
            named = ", ".join(dict.fromkeys(seen.name or str(seen.kind) for seen in hits))
            because = f"{len(hits)} failures of the last hour: {named[:200]}"
            return Pattern(name=sign["name"], because=because, advice=sign["advice"])
    return None
