"""Who falls ill with what, and for how long: drawn from the seed, the same for every supervisor. Pure.

A task is ill for its first attempts. An agent that is told what went wrong gets well sooner than one that hears the
same brief again; some never do, and a good supervisor finds that out and asks a person.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

NEVER = 1_000_000
HEALTHY = "healthy"
MIXED = "mixed"
PLANTED = {"pre-existing-failure": "failing", "flaky-test": "flaky"}
"""Pathologies of the repository: a file that is there from the start, and an agent that does half of the work."""

PATHOLOGIES: Mapping[str, str] = {
    HEALTHY: "no disease: what a supervisor costs when all goes well",
    "liar": "claims to be done and did nothing",
    "half-done": "does half of the work and claims all of it",
    "breaker": "leaves a file that does not parse",
    "regressor": "does its task and breaks another one",
    "looper": "tries the same again",
    "flip-flopper": "tries A, then B, then A",
    "weakener": "edits tests and gates until they pass",
    "hanger": "falls silent for ever",
    "slow-but-right": "does the work and finishes long after the time limit",
    "forker": "leaves double-forked processes behind",
    "flooder": "prints without end",
    "quota-hitter": "is refused by its provider until a stated time",
    "context-loser": "runs out of context in the middle",
    "scope-creeper": "does its task and renames a public function, with its tests",
    "committer": "commits, resets, moves branches, drops the stash, pushes",
    "crasher": "dies of SIGSEGV or SIGKILL",
    "mute": "ends without a word, with or without the work",
    "asker": "stops to ask",
    "saboteur": "deletes the supervisor's state, leaves locks, prunes objects, writes junk",
    "pre-existing-failure": "half-done, where a test was red before it began",
    "flaky-test": "half-done, where a test fails every third time",
    MIXED: "draws from all of them",
}

WEIGHTS: Mapping[str, int] = {
    "half-done": 30, "liar": 8, "breaker": 7, "regressor": 8, "looper": 6, "flip-flopper": 3, "weakener": 6,
    "hanger": 7, "slow-but-right": 2, "forker": 2, "flooder": 1, "quota-hitter": 5, "context-loser": 4,
    "scope-creeper": 3, "committer": 2, "crasher": 3, "mute": 1, "asker": 2, "saboteur": 1,
}  # fmt: skip
"""What ails an attempt in `mixed`. Two rates are taken from 3,543 public agent runs: half of all claims to be done are
wrong (see `ILL`), and a quarter of the runs that a timeout ended were right (hanger to slow-but-right)."""

ILL: Mapping[str, tuple[tuple[float, int], ...]] = {
    MIXED: ((0.49, 0), (0.79, 1), (0.95, 2), (1.0, NEVER)),
    HEALTHY: ((1.0, 0),),
    "quota-hitter": ((0.25, 0), (0.75, 1), (1.0, 2)),
    "": ((0.25, 0), (0.70, 1), (0.93, 2), (1.0, NEVER)),
}
"""How many attempts are ill, as cumulative odds; a quota always comes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a task's illness goes."""

    told: int
    """Attempts that are ill, if each is told what went wrong before."""
    untold: int

    @property
    def curable(self) -> bool:
        return self.told < NEVER


def draw(*key: object) -> float:
    """Return a number from 0 to 1 that depends on the key alone."""
    digest = hashlib.sha256("\0".join(map(str, key)).encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def course(pathology: str, seed: int, project: str, task: str) -> Course:
    """Return how the illness of one task goes."""
    odds = ILL.get(pathology, ILL[""])
    chance = draw("ill", pathology, seed, project, task)
    told = next(attempts for limit, attempts in odds if chance < limit)
    later = 0 if told in (0, NEVER) else int(2 * draw("untold", pathology, seed, project, task))
    return Course(told=told, untold=told + later)


def disease(pathology: str, seed: int, project: str, task: str, attempt: int) -> str:
    """Return what ails one attempt."""
    if pathology in PLANTED:
        return "half-done"
    if pathology != MIXED:
        return pathology
    chance = draw("disease", seed, project, task, attempt) * sum(WEIGHTS.values())
    for name, weight in WEIGHTS.items():
        chance -= weight
        if chance < 0:
            return name
    return "half-done"
