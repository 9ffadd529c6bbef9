"""The law of conservation: what a test asserted before must be asserted after, somewhere, at least as strictly.

Tests may be renamed, moved, split, merged, turned into tables or written in another style. What may not happen is that
an assertion vanishes, says less, can no longer fail, or expects something else without anybody having asked for it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from unstuck.journal import Remark
from unstuck.verify.audit.asserting import EXACT, NOTHING, WEAK, Assertion
from unstuck.verify.audit.cases import Case
from unstuck.verify.change import found

LIKE = 0.5
MOST_ALIKE = 20
"""Tests that are compared by likeness with one lost test, so that a large change stays linear."""

Pairs = list[tuple[Case, Case | None]]
MOST_CANDIDATES = 60
MOST_GAINS = 300
"""New assertions that are compared with one lost one, so that a huge test stays linear."""
_NEUTRAL = frozenset({
    "read", "read_text", "getvalue", "decode", "encode", "open", "Path", "join", "strip", "str", "text", "String", "toString", "to_s", "value",
    "get", "len", "length", "size", "fmt", "Sprintf", "format", "json", "data", "result", "status", "code",
})  # fmt: skip
"""Names that say how a result is looked at, not what was tested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What the rest of the change says about the product."""

    gone: frozenset[str] = frozenset()
    """Names that the product defined and no longer mentions."""
    literals_gone: frozenset[str] = frozenset()
    """Routes, and names of gone definitions as texts, that no product text holds any more."""
    literals: frozenset[str] = frozenset()
    """Literals of files that tests may read their rows from."""


@dataclass(slots=True, eq=False)
class _Gain:
    assertion: Assertion
    case: Case
    used: bool = False


@dataclass(slots=True, eq=False)
class _Loss:
    assertion: Assertion
    case: Case
    became: Case | None
    own: list[_Gain]


@dataclass(slots=True)
class _Pool:
    """All that is newly asserted anywhere, by form and by name, so that a large change stays linear."""

    by_key: dict[str, list[_Gain]] = field(default_factory=lambda: defaultdict(list))
    by_name: dict[str, list[_Gain]] = field(default_factory=lambda: defaultdict(list))

    def add(self, gain: _Gain) -> None:
        self.by_key[gain.assertion.key].append(gain)
        for name in gain.assertion.names | gain.case.names or {""}:
            self.by_name[name].append(gain)

    def near(self, names: Iterable[str]) -> Iterator[_Gain]:
        for name in sorted(set(names) or {""}, key=lambda one: (len(self.by_name.get(one, ())), one))[:6]:
            yield from self.by_name.get(name, [])[:MOST_CANDIDATES]


class _Tables:
    """The literals that new tests may go through or name without holding them: tables, constants, builders."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.files: dict[str, frozenset[str]] = {case.path: case.literals for case in cases if case.kind == "file"}
        self.aids = {case.name: case.literals for case in cases if case.kind == "aid"}

    def near(self, path: str, names: Iterable[str]) -> frozenset[str]:
        return self.files.get(path, frozenset()).union(*(self.aids.get(name, frozenset()) for name in names))


@dataclass(frozen=True, slots=True, eq=False)
class Lost:
    """A finding about one old case, and how many assertions or rows it is about."""

    case: Case
    remark: Remark
    count: int = 1


def judge_losses(pairs: Pairs, fresh: Sequence[Case], world: World) -> tuple[list[Lost], Counter[str]]:
    """Compare each old case with what it became; `fresh` are the new ones that no old one became.

    Give what is lost, and how many new assertions each path holds that take the place of no old one.
    """
    losses, pool = _difference(pairs, fresh)
    lost = list(_judged(pairs, fresh, world, losses, pool))
    lost += _rows_lost(pairs, fresh)
    spare = {
        id(gain): gain
        for gains in pool.by_key.values()
        for gain in gains
        if not gain.used and gain.assertion.rank > WEAK
    }
    return lost, Counter(gain.case.path for gain in spare.values())


def _judged(pairs: Pairs, fresh: Sequence[Case], world: World, losses: list[_Loss], pool: _Pool) -> Iterator[Lost]:
    open_losses: dict[int, list[_Loss]] = defaultdict(list)
    alive = [*(became for _, became in pairs if became is not None), *fresh]
    tables = _Tables(alive)
    for loss in losses:
        if not (
            _moved(loss, pool)
            or _absorbed(loss, loss.own, world, tables)
            or _absorbed(loss, pool.near(loss.assertion.names), world, tables)
        ):
            open_losses[id(loss.case)].append(loss)
    for case, became in pairs:
        left = open_losses.get(id(case), [])
        if became is None:
            for finding in _deleted(case, left, fresh, world):
                yield Lost(case, finding, max(1, len(left)))
        elif left:
            for finding in _changed(became, left, world):
                yield Lost(case, finding)


def _difference(pairs: Pairs, fresh: Sequence[Case]) -> tuple[list[_Loss], _Pool]:
    losses: list[_Loss] = []
    pool = _Pool()
    counts = _counts([*(became for _, became in pairs if became is not None), *fresh])
    for case, became in pairs:
        if case.off:
            continue
        own = []
        if became is not None:
            had = Counter(one.key for one in case.assertions)
            own = [_Gain(one, became) for one in _surplus(became.assertions, had)]
            for gain in own if id(became) in counts else ():
                pool.add(gain)
        kept = Counter(one.key for one in became.assertions) if became is not None else Counter[str]()
        losses += [_Loss(one, case, became, own) for one in _surplus(case.assertions, kept) if one.rank > NOTHING]
    for case in fresh:
        for one in case.assertions if id(case) in counts else ():
            pool.add(_Gain(one, case))
    losses.sort(key=lambda loss: -loss.assertion.rank)
    return losses, pool


def _counts(cases: Sequence[Case]) -> set[int]:
    """Give the cases whose assertions are run: tests that are not skipped, and functions that something calls."""
    callers = Counter(name for case in cases for name in case.names)
    return {
        id(case)
        for case in cases
        if (case.kind == "test" and not case.off)
        or (case.kind == "aid" and callers[case.name] > (case.name in case.names))
    }


def _surplus(assertions: Sequence[Assertion], other: Mapping[str, int]) -> list[Assertion]:
    spare = Counter(other)
    rest: list[Assertion] = []
    for one in assertions:
        if spare[one.key] > 0:
            spare[one.key] -= 1
        else:
            rest.append(one)
    return rest


def _moved(loss: _Loss, pool: _Pool) -> bool:
    """Find the very same assertion elsewhere."""
    for gain in pool.by_key.get(loss.assertion.key, ()):
        if not gain.used:
            gain.used = True
            return True
    return False


def _absorbed(loss: _Loss, gains: Iterable[_Gain], world: World, tables: _Tables) -> bool:
    """Find an assertion that says the same: as strict, about the same, with the same values or with rows that hold them."""
    old = loss.assertion
    for gain in islice(gains, MOST_GAINS):
        new = gain.assertion
        if new.idle or new.rank < old.rank or new.blurs - old.blurs or _opposed(old, new):
            continue
        if gain.used and not gain.case.rows:
            continue
        known = new.names | gain.case.names
        about = old.names - _NEUTRAL - world.gone
        if about and not about & known:
            continue
        if _holds(gain, old, world, tables) and (old.values or about <= known or old.relation == new.relation):
            gain.used = True
            return True
    return False


def _holds(gain: _Gain, old: Assertion, world: World, tables: _Tables) -> bool:
    """Tell whether the values of an assertion stand in another one, or in what that one goes through or names."""
    new, case = gain.assertion, gain.case
    if Counter(old.values) <= Counter(new.values):
        return True
    if len(new.values) >= len(old.values):
        return False
    near = new.literals | world.literals | tables.near(case.path, new.names)
    if case.rows or case.kind == "aid" or not new.values:
        near |= case.literals
    return old.literals <= near


def _opposed(old: Assertion, new: Assertion) -> bool:
    if "raises" in (old.relation, new.relation) and old.relation != new.relation:
        return True
    return {old.relation, new.relation} in (
        {"eq", "ne"},
        {"truthy", "falsy"},
        {"quiet", "raises"},
    ) and old.rank >= new.rank


def _deleted(case: Case, left: list[_Loss], fresh: Sequence[Case], world: World) -> Iterator[Remark]:
    if case.kind != "test" or case.off:
        strong = [loss for loss in left if loss.assertion.rank == EXACT and not loss.assertion.names & world.gone]
        if strong and not case.off:
            says = f"{case.name or case.path} asserted on behalf of tests and is gone."
            yield found("assertion-removed", case.path, case.line, says, strong[0].assertion.text)
        return
    asserting = [one for one in case.assertions if one.rank > NOTHING]
    if asserting and not left:
        return
    mentioned = case.names | frozenset(name for one in case.assertions for name in one.names)
    if mentioned & world.gone or case.literals & world.literals_gone:
        return
    if not asserting and any(case.names <= other.names for other in fresh):
        return
    evidence = left[0].assertion.text if left else case.body
    says = f"The test {case.name or case.path} is gone, and nothing else asserts what it did."
    yield found("test-deleted", case.path, case.line, says, evidence)


def _changed(became: Case, left: list[_Loss], world: World) -> Iterator[Remark]:
    left = [loss for loss in left if not loss.assertion.names & world.gone]
    if not left:
        return
    if not any(one.rank > NOTHING for one in became.assertions):
        yield _nothing_left(became, left)
        return
    for loss in left:
        yield from _one_loss(loss, became)


def _nothing_left(became: Case, left: list[_Loss]) -> Remark:
    evidence = left[0].assertion.text
    rule, line, says = "test-emptied", became.line, f"The test {became.name} no longer asserts anything."
    if became.assertions:
        one = next((one for one in became.assertions if one.idle), became.assertions[0])
        evidence, line = evidence if one.idle else f"{evidence} → {one.text}", one.line
        rule, says = _idle(one, became) or ("assertion-vacuous", f"What {became.name} still asserts can never fail.")
    return found(rule, became.path, line, says, evidence)


def _idle(one: Assertion, became: Case) -> tuple[str, str] | None:
    return ("assertion-unreachable", f"The assertion in {became.name} {one.idle}.") if one.idle else None


def _one_loss(loss: _Loss, became: Case) -> Iterator[Remark]:
    old = loss.assertion
    free = sorted(
        islice((gain for gain in loss.own if not gain.used), MOST_GAINS),
        key=lambda gain: (
            -len(gain.assertion.names & old.names),
            -gain.assertion.rank,
            abs(gain.assertion.line - old.line),
        ),
    )
    same = [gain for gain in free if gain.assertion.rank >= old.rank and not gain.assertion.idle]
    taken = next(iter(same or free), None)
    if taken is None or (old.names and not old.names & taken.assertion.names and taken.assertion.rank == WEAK):
        says = f"{became.name} no longer asserts this, and nothing else does."
        yield found("assertion-removed", became.path, became.line, says, old.text)
        return
    taken.used = True
    rule, says = _weaker(old, taken.assertion, became)
    yield found(rule, became.path, taken.assertion.line, says, f"{old.text} → {taken.assertion.text}")


def _weaker(old: Assertion, new: Assertion, became: Case) -> tuple[str, str]:
    """Say what an assertion became: it cannot fail any more, accepts more, or expects something else."""
    if (idle := _idle(new, became)) is not None:
        return idle
    if new.rank == NOTHING:
        return "assertion-vacuous", f"What {became.name} asserts here can never fail."
    other = old.literals - new.literals
    looser = new.rank < old.rank and not (new.rank > WEAK and other)
    if looser or (new.rank <= old.rank and new.blurs - old.blurs and other):
        return "assertion-loosened", f"{became.name} accepts more than before."
    return "expected-changed", f"{became.name} expects something else than before."


def _rows_lost(pairs: Pairs, fresh: Sequence[Case]) -> Iterator[Lost]:
    """Find rows of tables that are gone: not moved to another table, nor written out as a test."""
    spare: Counter[str] = Counter()
    for case, became in pairs:
        if became is not None:
            spare += Counter(became.rows) - Counter(case.rows)
    for case in fresh:
        spare += Counter(case.rows)
    for case, became in pairs:
        if became is None or case.off:
            continue
        lost = Counter(case.rows) - Counter(became.rows)
        come = Counter(became.rows) - Counter(case.rows)
        elsewhere = lost & (spare - come)
        spare -= elsewhere
        left = list((lost - elsewhere).elements())
        missing = [row for row in left if not _is_written_out(row, became, fresh)]
        if not missing:
            continue
        if len(missing) > come.total():
            says = f"{became.name or became.path} goes through {len(missing) - come.total()} rows fewer."
            finding = found("cases-removed", became.path, became.line, says, missing[0])
            yield Lost(case, finding, len(missing) - come.total())
        else:
            says = f"{became.name or became.path} goes through other rows than before."
            yield Lost(case, found("expected-changed", became.path, became.line, says, missing[0]))


def _is_written_out(row: str, became: Case, fresh: Sequence[Case]) -> bool:
    values = {word for word in row.split() if word[:1] in "'\"" or word[:1].isdigit()}
    return bool(values) and any(values <= other.literals for other in fresh if other is not became)


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
            for other in index.get(feature, [])[:MOST_ALIKE]:
                if other.kind == case.kind and id(other) not in taken:
                    near[id(other)] = other
            if len(near) >= MOST_ALIKE:
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
