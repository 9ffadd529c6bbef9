"""What earlier remedies teach: how often each way worked, as counts that fade. Pure; no evidence, the seed's order stands.

The law: a rate is Laplace-smoothed, (worked + 1) / (tried + 2), and blended with the chain's own confidence by
tried / (tried + 5). Every new outcome takes a tenth off the weight of the older ones, so a world that changed is
noticed. A way overtakes the one before it only after both were tried three times, and only if its blended rate is
higher; asking a person stays last. What is known in this context counts, or else what is known in all of them.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from unstuck.remedies.chain import NOTHING_GIVEN, Way

PATIENCE = 5.0
"""k: with this many tries the evidence weighs as much as the seed's confidence."""
FADING = 0.9
ENOUGH = 3
HOPELESS = 5
ASKED_OFTEN = 3
Key = tuple[str, str, str]
"""Chain, strategy, context."""


class Counts(NamedTuple):
    """How one way did: weights that fade, and plain totals."""

    tried: float = 0.0
    worked: float = 0.0
    tries: int = 0
    successes: int = 0
    steps: int = 0
    seconds: float = 0.0

    def after(self, *, worked: bool, steps: int, seconds: float) -> "Counts":
        """Return the counts with one more outcome."""
        return Counts(
            tried=self.tried * FADING + 1,
            worked=self.worked * FADING + worked,
            tries=self.tries + 1,
            successes=self.successes + worked,
            steps=self.steps + steps,
            seconds=self.seconds + seconds,
        )

    def plus(self, other: "Counts") -> "Counts":
        return Counts(
            tried=self.tried + other.tried,
            worked=self.worked + other.worked,
            tries=self.tries + other.tries,
            successes=self.successes + other.successes,
            steps=self.steps + other.steps,
            seconds=self.seconds + other.seconds,
        )

    @property
    def rate(self) -> float:
        return (self.worked + 1) / (self.tried + 2)

    def blended(self, confidence: float) -> float:
        """Return the chain's confidence, moved towards what was seen."""
        weight = self.tried / (self.tried + PATIENCE)
        return (1 - weight) * confidence + weight * self.rate


NOTHING = Counts()
NOTHING_KNOWN: Mapping[Key, Counts] = MappingProxyType({})


class Lessons(NamedTuple):
    """All that was learned, and how often a person consented to more than what is safe."""

    counts: Mapping[Key, Counts] = NOTHING_KNOWN
    consents: Mapping[str, int] = NOTHING_GIVEN

    def of(self, chain: str, way: str, context: str) -> Counts:
        """Return what is known about a way: in this context if that is enough, else in all of them."""
        here = self.counts.get((chain, way, context), NOTHING)
        if here.tries >= ENOUGH:
            return here
        total = NOTHING
        for (its_chain, its_way, _), counts in self.counts.items():
            if (its_chain, its_way) == (chain, way):
                total = total.plus(counts)
        return total

    def after(
        self, chain: str, way: str, context: str, *, worked: bool, steps: int = 1, seconds: float = 0.0
    ) -> "Lessons":
        key = (chain, way, context)
        counts = self.counts.get(key, NOTHING).after(worked=worked, steps=steps, seconds=seconds)
        return self._replace(counts={**self.counts, key: counts})

    def with_consent(self, risk: str) -> "Lessons":
        return self._replace(consents={**self.consents, risk: self.consents.get(risk, 0) + 1})


def order(ways: Sequence[Way], chain: str, context: str, lessons: Lessons) -> tuple[Way, ...]:
    """Return the ways as they should be tried: the listed order, adjacent ones swapped where the evidence says so."""
    listed, least = [], 1.0
    for way in ways:
        least = min(least, way.confidence)  # the listed order stands until it is refuted, whatever the confidences say
        counts = lessons.of(chain, way.name, context)
        listed.append((way, counts, counts.blended(least)))
    for _ in listed:
        for place in range(len(listed) - 1):
            first, second = listed[place], listed[place + 1]
            known = first[1].tries >= ENOUGH and second[1].tries >= ENOUGH
            if known and second[2] > first[2]:
                listed[place : place + 2] = [second, first]
    return tuple(way for way, _, _ in listed)


def proposals(lessons: Lessons) -> tuple[str, ...]:
    """Say which preferences the user might want to set; none is ever assumed."""
    totals: dict[str, Counts] = {}
    for (_, way, _), counts in lessons.counts.items():
        totals[way] = totals.get(way, NOTHING).plus(counts)
    hopeless = [way for way, counts in sorted(totals.items()) if counts.tries >= HOPELESS and counts.successes == 0]
    found = [
        f'{way} never worked here in {totals[way].tries} tries: leave it out with `never = ["{way}"]`.'
        for way in hopeless
    ]
    if lessons.consents.get("caution", 0) >= ASKED_OFTEN:
        found.append(
            f'You allowed careful steps {lessons.consents["caution"]} times: allow them always with `allow = "caution"`.'
        )
    return tuple(found)
