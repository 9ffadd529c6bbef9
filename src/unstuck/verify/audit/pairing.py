"""Find for each test of before the one that it became: by place, by name, by body, by likeness."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

from unstuck.verify.audit.suite import Case

LIKE = 0.5
MOST_CANDIDATES = 20
"""Tests that are compared by likeness with one lost test, so that a large change stays linear."""

Pairs = list[tuple[Case, Case | None]]

_WAYS: tuple[Callable[[Case], Hashable], ...] = (
    lambda case: (case.kind, case.path, case.scope, case.name, case.body),
    lambda case: (case.kind, case.path, case.scope, case.name),
    lambda case: (case.kind, case.scope, case.name, case.body),
    lambda case: (case.kind, case.body) if case.body else object(),
    lambda case: (case.kind, case.path, case.name) if case.name else object(),
    lambda case: (case.kind, case.scope, case.name) if case.name else object(),
    lambda case: (case.kind, plain_name(case.name)) if case.name else object(),
)


def pair(old: Sequence[Case], new: Sequence[Case]) -> tuple[Pairs, list[Case]]:
    """Give each old case with the new one that it became, or None; and the new ones that no old one became."""
    lost, spare, pairs = list(old), list(new), Pairs()
    for way in _WAYS:
        shelf: dict[Hashable, list[Case]] = defaultdict(list)
        for case in reversed(spare):
            shelf[way(case)].append(case)
        rest: list[Case] = []
        taken: set[int] = set()
        for case in lost:
            candidates = shelf.get(way(case))
            if candidates:
                became = candidates.pop()
                taken.add(id(became))
                pairs.append((case, became))
            else:
                rest.append(case)
        lost = rest
        spare = [case for case in spare if id(case) not in taken]
    alike = _by_likeness(lost, spare)
    used = {id(became) for _, became in alike if became is not None}
    return pairs + alike, [case for case in spare if id(case) not in used]


def plain_name(name: str) -> str:
    """Give a name without case, separators and the word test."""
    return "".join(char for char in name.lower() if char.isalnum()).removeprefix("test")


def _by_likeness(lost: list[Case], spare: list[Case]) -> Pairs:
    index: dict[str, list[Case]] = defaultdict(list)
    for case in spare:
        for feature in _features(case):
            index[feature].append(case)
    taken: set[int] = set()
    pairs = Pairs()
    for case in lost:
        mine = _features(case)
        near: dict[int, Case] = {}
        for feature in sorted(mine, key=lambda one: (len(index.get(one, ())), one)):
            for other in index.get(feature, [])[:MOST_CANDIDATES]:
                if other.kind == case.kind and id(other) not in taken:
                    near[id(other)] = other
            if len(near) >= MOST_CANDIDATES:
                break
        scored = [(_likeness(mine, _features(other)), -place, other) for place, other in enumerate(near.values())]
        best = max(scored, default=None, key=lambda one: one[:2])
        if best is not None and best[0] >= LIKE:
            taken.add(id(best[2]))
            pairs.append((case, best[2]))
        else:
            pairs.append((case, None))
    return pairs


def _features(case: Case) -> frozenset[str]:
    return case.literals | {f"call:{name}" for name in case.names}


def _likeness(one: frozenset[str], two: frozenset[str]) -> float:
    return len(one & two) / max(1, len(one | two))
