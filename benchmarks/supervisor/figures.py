"""Sum trials up: shares with Wilson intervals, ratios with bootstrap intervals, and what our own supervisor must show. Pure."""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from benchmarks.supervisor.courses import MIXED
from benchmarks.supervisor.score import Result

Z = 1.959964
"""Two-sided 95 %."""
RESAMPLES = 400
ENOUGH = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and the interval in which it lies with 95 % confidence."""

    value: float
    low: float
    high: float


def wilson(hits: int, of: int) -> Estimate | None:
    """Return a share; nothing where there was nothing to count."""
    if of == 0:
        return None
    share, spread = hits / of, Z * Z / of
    middle = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / of + spread / (4 * of)) / (1 + spread)
    return Estimate(share, max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)))


def ratio(
    results: Sequence[Result], over: Callable[[Result], float], under: Callable[[Result], float]
) -> Estimate | None:
    """Return one sum by another; the interval comes from drawing the trials again, always in the same way."""
    whole = sum(map(under, results))
    if not whole:
        return None
    chance = random.Random(0)  # noqa: S311 - no secret is drawn
    found = []
    for _ in range(RESAMPLES):
        drawn = chance.choices(results, k=len(results))
        if below := sum(map(under, drawn)):
            found.append(sum(map(over, drawn)) / below)
    found.sort()
    value = sum(map(over, results)) / whole
    return Estimate(value, found[int(0.025 * len(found))], found[math.ceil(0.975 * len(found)) - 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What the trials of one cell come to."""

    supervisor: str
    pathology: str
    """Empty for all of them together."""
    trials: int
    tasks: int
    curable: int
    done: int
    solved: Estimate | None
    """Tasks truly done, of those that the agent can do."""
    false_dones: int
    false_share: Estimate | None
    regressions: int
    good_lost: int
    bytes_lost: int
    pushed: int
    orphans: int
    overrun: int
    """Trials that had not ended by the deadline."""
    attempts: Estimate | None
    """Per landed task, as the next three."""
    dollars: Estimate | None
    minutes: Estimate | None
    cpu: Estimate | None
    """Processor seconds of the supervisor per attempt."""
    questions: int
    right_questions: int
    unasked: int


def summary(results: Sequence[Result], pathology: str = "") -> Summary:
    """Sum trials of one supervisor up."""

    def total(what: Callable[[Result], int]) -> int:
        return sum(map(what, results))

    return Summary(
        supervisor=results[0].supervisor,
        pathology=pathology,
        trials=len(results),
        tasks=total(lambda one: one.tasks),
        curable=total(lambda one: one.curable),
        done=total(lambda one: one.done),
        solved=wilson(total(lambda one: one.curable_done), total(lambda one: one.curable)),
        false_dones=total(lambda one: one.false_dones),
        false_share=wilson(total(lambda one: one.false_dones), total(lambda one: one.claimed)),
        regressions=total(lambda one: one.regressions),
        good_lost=total(lambda one: one.good_lost),
        bytes_lost=total(lambda one: one.bytes_lost),
        pushed=total(lambda one: one.pushed),
        orphans=total(lambda one: one.orphans),
        overrun=total(lambda one: int(one.code is None)),
        attempts=ratio(results, lambda one: one.attempts, lambda one: one.done),
        dollars=ratio(results, lambda one: one.cost, lambda one: one.done),
        minutes=ratio(results, lambda one: one.minutes, lambda one: one.done),
        cpu=ratio(results, lambda one: one.cpu, lambda one: one.attempts),
        questions=total(lambda one: one.questions),
        right_questions=total(lambda one: one.right_questions),
        unasked=total(lambda one: one.unasked),
    )


def summaries(results: Iterable[Result]) -> list[Summary]:
    """Return the cells, supervisor by supervisor, each with the sum of all pathologies first."""
    found: list[Summary] = []
    order: dict[str, list[Result]] = {}
    for result in results:
        order.setdefault(result.supervisor, []).append(result)
    for own in order.values():
        found.append(summary(own))
        by_pathology = sorted(own, key=lambda one: one.pathology)
        cells = {name: list(group) for name, group in groupby(by_pathology, key=lambda one: one.pathology)}
        found += [summary(cells[name], name) for name in dict.fromkeys(one.pathology for one in own)]
    return found


@dataclass(frozen=True, slots=True)
class Target:
    """What our own supervisor must show, and whether it does."""

    text: str
    met: bool


def targets(found: Sequence[Summary], ours: str) -> list[Target]:
    """Hold our supervisor to its word."""
    cells = [cell for cell in found if cell.supervisor == ours and cell.pathology]
    if not cells:
        return []
    rows = [
        Target(f"{name} in every pathology: {sum(getattr(cell, field) for cell in cells)}{_where(cells, field)}",
               not any(getattr(cell, field) for cell in cells))
        for name, field in (
            ("no false done landed", "false_dones"),
            ("no regression landed", "regressions"),
            ("no byte lost", "bytes_lost"),
            ("no orphan", "orphans"),
        )
    ]  # fmt: skip
    mixed = next((cell for cell in cells if cell.pathology == MIXED), None)
    if mixed is not None and mixed.solved is not None:
        share = mixed.solved.value
        rows.append(Target(f"at least 95 % of what the agent can do landed in mixed: {share:.0%}", share >= ENOUGH))
    rows += _thrift(found, ours)
    return rows


def _where(cells: Sequence[Summary], field: str) -> str:
    bad = [cell.pathology for cell in cells if getattr(cell, field)]
    return f" ({', '.join(bad)})" if bad else ""


def _thrift(found: Sequence[Summary], ours: str) -> list[Target]:
    """Compare attempts per landed task with every foreign supervisor that lands as many."""
    whole = {cell.supervisor: cell for cell in found if not cell.pathology}
    mine = whole[ours]
    rivals = [
        cell
        for name, cell in whole.items()
        if not name.startswith(ours) and cell.done >= mine.done and cell.attempts and cell.false_dones == 0
    ]
    worse = [
        cell.supervisor
        for cell in rivals
        if mine.attempts and cell.attempts and cell.attempts.value <= mine.attempts.value
    ]
    told = f": {', '.join(worse)} needs no more" if worse else ""
    return [Target(f"fewer attempts per landed task than every other supervisor that lands as many{told}", not worse)]
