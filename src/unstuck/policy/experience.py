"""What earlier runs teach: how often each agent's attempts landed, and what each move is worth. No evidence, no opinion. Pure."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unstuck.model.action import Weighed
from unstuck.model.plan import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What a move or an agent's attempts came to: how often it was tried, how often the work landed, and the seconds that took."""

    tried: int = 0
    won: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Tried") -> "Tried":
        return Tried(tried=self.tried + other.tried, won=self.won + other.won, seconds=self.seconds + other.seconds)

    def shrunk(self, divisor: int) -> "Tried":
        """Return evidence that counts less, because it is from somewhere else."""
        return Tried(tried=self.tried // divisor, won=self.won // divisor, seconds=self.seconds / divisor)

    @property
    def failed(self) -> int:
        return self.tried - self.won

    @property
    def rate(self) -> float:
        """The expected share that lands, starting from even odds."""
        return (self.won + 1) / (self.tried + 2)


Moves = Mapping[tuple[str, str, str], Tried]
"""By kind of failure, move, and the agent that had failed."""

ENOUGH = 10
"""Finished attempts before an agent's own rate is worth more than the user's order."""

MOST_COUNTED = 1000
"""Landed or failed attempts that sharpen a draw; more would only take longer."""

ELSEWHERE = 4
"""How many attempts in other repositories of the user's are worth one here."""

FADING = 0.63
"""How much less an agent that has failed a task is worth there, against an equally good one that has not.

Replaying 3,543 public runs: after one failure the same agent succeeds in 11.6 % of cases, another one in 18.3 %; the
quotient is 0.63.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    agents: Mapping[str, Tried] = field(default_factory=dict)
    sorts: Mapping[tuple[str, str], Tried] = field(default_factory=dict)  # by agent and sort of task, see `task_sort`
    moves: Moves = field(default_factory=dict)

    def best(self, agents: Sequence[str], tries: Mapping[str, int]) -> str | None:
        """Choose who should have the task next: by rates where all are known, else by the user's order."""
        if not agents:
            return None
        records = [self.agents.get(name, Tried()) for name in agents]
        if any(record.tried < ENOUGH for record in records):
            return min(agents, key=lambda name: (tries.get(name, 0), agents.index(name)))
        worth = {name: record.rate * FADING ** tries.get(name, 0) for name, record in zip(agents, records, strict=True)}
        return max(agents, key=lambda name: (worth[name], -agents.index(name)))

    def enough(self, agents: Sequence[str]) -> bool:
        """Whether every one of several agents is known well enough to let experience say who begins."""
        return len(agents) > 1 and all(self.agents.get(name, Tried()).tried >= ENOUGH for name in agents)

    def records(self, agents: Sequence[str], sort: str = "") -> tuple[tuple[str, int, int], ...]:
        """Return the counts of these agents as plain values: those of one sort of task, where all have enough of them."""
        known = [(name, self.sorts.get((name, sort), Tried())) for name in agents]
        if not sort or any(record.tried < ENOUGH for _, record in known):
            known = [(name, self.agents.get(name, Tried())) for name in agents]
        return tuple((name, record.won, record.failed) for name, record in known)


def task_sort(task: Task) -> str:
    """Say what sort of work a task is: a repair, a test to write, or by the ending that most of its files have."""
    if task.fixes:
        return "fix"
    if "RED" in task.markers:
        return "test"
    endings = Counter(ending for path in task.files if (ending := path.rpartition("/")[2].rpartition(".")[2].lower()))
    return endings.most_common(1)[0][0] if endings else ""


def pooled(here: Experience, others: Iterable[Experience]) -> Experience:
    """Add what other repositories taught, which counts a quarter: `ELSEWHERE`."""
    known: dict[str, dict[Any, Tried]] = {name: dict(getattr(here, name)) for name in ("agents", "sorts", "moves")}
    for other in others:
        for name, counts in known.items():
            for key, count in getattr(other, name).items():
                counts[key] = counts.get(key, Tried()) + count.shrunk(ELSEWHERE)
    return Experience(**known)


def drawn(records: Sequence[tuple[str, int, int]], seed: str) -> tuple[str, ...]:
    """Order agents by one draw each from what is known of their rates (Thompson sampling): the better ones mostly first.

    The draw comes from the seed, so the same run gives the same task to the same agent, also after a crash.
    """
    draws = {name: _beta(landed + 1, failed + 1, f"{seed}\0{name}") for name, landed, failed in records}
    return tuple(sorted(draws, key=lambda name: -draws[name]))


def _beta(a: int, b: int, seed: str) -> float:
    one, other = _gamma(min(a, MOST_COUNTED), f"{seed}+"), _gamma(min(b, MOST_COUNTED), f"{seed}-")
    return one / (one + other)


def _gamma(shape: int, seed: str) -> float:
    """Draw from a gamma distribution with a whole shape: a sum of so many exponential draws."""
    return sum(-math.log(_uniform(f"{seed}{number}")) for number in range(shape))


def _uniform(seed: str) -> float:
    """Return a number between 0 and 1, neither included, that looks like chance and is the same for the same seed."""
    number = int.from_bytes(hashlib.sha256(seed.encode(errors="replace")).digest()[:6])
    return (number + 0.5) / 2.0**48


# --- what may be done next, priced by what it came to before; the ladder's order is the prior ----------------------

PRICED = ("retry", "continue", "rollback", "switch", "fix", "ask")
"""Moves whose worth can be learned; what waits passes by itself."""

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


def weigh(rungs: Sequence[tuple[str, str]], kind: str, agent: str, moves: Moves) -> tuple[Weighed, ...]:
    """Weigh the open rungs of a ladder, in its order, and asking a person behind them."""
    made = [one for (_, move, name), one in moves.items() if name == ANY_AGENT and move != "ask"]
    usual = sum(one.seconds for one in made) / (sum(one.tried for one in made) or 1)
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


def _known(moves: Moves, kind: str, move: str, agent: str) -> Tried:
    """Return what is known of a move: with this agent, where that is enough; else with all of them; else nothing."""
    for name in (agent, ANY_AGENT):
        known = moves.get((kind, move, name), Tried())
        if known.tried >= ENOUGH_TRIES:
            return known
    return Tried()


def _cost(known: Tried, usual: float) -> float:
    """Return what a move takes against the usual one, as far as that is known; no figure is taken at its extreme."""
    if not known.tried or not usual:
        return 1.0
    return min(max(known.seconds / known.tried / usual, LEAST_COST), MOST_COST)
