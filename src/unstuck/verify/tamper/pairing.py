"""Find for each test of before the one that it became: by place, by name, by body, by likeness."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace

from unstuck.verify.tamper.python_flow import SWALLOWED
from unstuck.verify.tamper.suite import Case, Suite

LIKE = 0.5
MOST_CANDIDATES = 20
"""Tests that are compared by likeness with one lost test, so that a large change stays linear."""


def expand(suites: Sequence[Suite]) -> list[Case]:
    """Give all tests and aids; a test also asserts what the functions do that it calls."""
    aids: dict[str, list[Case]] = defaultdict(list)
    for suite in suites:
        for case in suite.cases:
            if case.kind == "aid":
                aids[case.name].append(case)
    return [_expanded(case, aids) if case.kind == "test" else case for suite in suites for case in suite.cases]


def _expanded(case: Case, aids: dict[str, list[Case]]) -> Case:
    seen: set[str] = set()
    todo = sorted(case.calls | case.requests)
    assertions = list(case.assertions)
    literals = set(case.literals)
    skip, conditional = case.skip, case.skip_is_conditional
    calls = set(case.calls)
    while todo and len(seen) < 40:  # noqa: PLR2004 - a test that leans on more than this is beyond reading
        name = todo.pop()
        if name in seen or name not in aids:
            continue
        seen.add(name)
        aid = next((one for one in aids[name] if one.path == case.path), aids[name][0])
        if aid.swallows:
            assertions = [replace(one, rank=0, idle=SWALLOWED, key=f"({SWALLOWED}) {one.key}") for one in assertions]
        assertions = [one for one in assertions if not (one.relation == "call" and name in one.names)]
        assertions += aid.assertions
        literals |= aid.literals
        if aid.skip and not skip:
            skip, conditional = aid.skip, aid.skip_is_conditional
        calls |= aid.calls
        todo += sorted(aid.calls | aid.requests)
    return replace(
        case, assertions=tuple(assertions), literals=frozenset(literals), skip=skip, skip_is_conditional=conditional,
        calls=frozenset(calls),
    )  # fmt: skip


def pair(old: Iterable[Case], new: Iterable[Case]) -> list[tuple[Case, Case | None]]:
    """Give each old case with the new one that it became, or None."""
    lost = list(old)
    spare = list(new)
    pairs: list[tuple[Case, Case | None]] = []
    ways: tuple[Callable[[Case], Hashable], ...] = (
        lambda case: (case.kind, case.path, case.scope, case.name, case.body),
        lambda case: (case.kind, case.path, case.scope, case.name),
        lambda case: (case.kind, case.scope, case.name, case.body),
        lambda case: (case.kind, case.body, case.literals, len(case.assertions)) if case.body else object(),
        lambda case: (case.kind, case.scope, case.name),
        lambda case: (case.kind, _plain_name(case.name)),
    )
    for way in ways:
        shelf: dict[Hashable, list[Case]] = defaultdict(list)
        for case in reversed(spare):
            shelf[way(case)].append(case)
        rest: list[Case] = []
        taken: set[int] = set()
        for case in lost:
            candidates = shelf.get(way(case))
            if candidates:
                found = candidates.pop()
                taken.add(id(found))
                pairs.append((case, found))
            else:
                rest.append(case)
        lost = rest
        spare = [case for case in spare if id(case) not in taken]
    pairs += _by_likeness(lost, spare)
    return pairs


def _by_likeness(lost: list[Case], spare: list[Case]) -> list[tuple[Case, Case | None]]:
    index: dict[str, list[Case]] = defaultdict(list)
    for case in spare:
        for feature in _features(case):
            index[feature].append(case)
    taken: set[int] = set()
    pairs: list[tuple[Case, Case | None]] = []
    for case in lost:
        mine = _features(case)
        near: dict[int, Case] = {}
        for feature in sorted(mine, key=lambda one: len(index.get(one, ()))):
            for other in index.get(feature, [])[:MOST_CANDIDATES]:
                if other.kind == case.kind and id(other) not in taken:
                    near[id(other)] = other
            if len(near) >= MOST_CANDIDATES:
                break
        scored = [(_likeness(mine, _features(other)), place) for place, other in enumerate(near.values())]
        best = max(scored, default=(0.0, -1))
        if best[0] >= LIKE:
            found = list(near.values())[best[1]]
            taken.add(id(found))
            pairs.append((case, found))
        else:
            pairs.append((case, None))
    return pairs


def _features(case: Case) -> frozenset[str]:
    return case.literals | {f"call:{name}" for name in case.calls}


def _likeness(one: frozenset[str], two: frozenset[str]) -> float:
    return len(one & two) / max(1, len(one | two))


def _plain_name(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum()).removeprefix("test")
