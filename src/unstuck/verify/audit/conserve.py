"""The law of conservation: what a test asserted before must be asserted after, somewhere, at least as strictly.

Tests may be renamed, moved, split, merged, turned into tables or written in another style. What may not happen is that
an assertion vanishes, says less, can no longer fail, or expects something else without anybody having asked for it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from operator import attrgetter

from unstuck.model.verdict import Remark
from unstuck.verify.audit.asserting import EXACT, NOTHING, WEAK, Assertion
from unstuck.verify.audit.cases import Case
from unstuck.verify.audit.grammars import words
from unstuck.verify.change import surplus

MOST_CANDIDATES = 60
MOST_GAINS = 300
"""New assertions that are compared with one lost one, so that a huge test stays linear."""
_EMPTY = re.compile(r"==+ (?:(?:frozenset|set|list|dict|tuple) \( \)|\[ \]|\{ \}|\( \)|'')$")
_OPPOSED = ({"eq", "ne"}, {"truthy", "falsy"})
_key = attrgetter("key")

Pairs = list[tuple[Case, Case | None]]


@dataclass(frozen=True, slots=True, eq=False)
class Lost:
    """A remark about one old case, and how many assertions or rows it is about."""

    case: Case
    remark: Remark
    count: int = 1


@dataclass(slots=True, eq=False)
class _Gain:
    assertion: Assertion
    case: Case
    used: bool = False


class Balance:
    """The old cases, each with what it became, against all that is asserted now.

    `fresh` are the cases that no old one became, `gone` the names that left the product.
    """

    def __init__(self, pairs: Pairs, fresh: Sequence[Case], gone: frozenset[str]) -> None:
        self.pairs, self.fresh, self.gone = pairs, fresh, gone
        alive = [*(became for _, became in pairs if became is not None), *fresh]
        self.files = {case.path: case.literals for case in alive if case.kind == "file"}
        self.aids = {case.name: case.literals for case in alive if case.kind == "aid"}
        self.own: dict[Case, list[_Gain]] = defaultdict(list)
        """What is newly asserted in what each old case became."""
        for case, became in pairs:
            if became is not None and not case.off:
                self.own[case] = [_Gain(one, became) for one in surplus(became.assertions, case.assertions, _key)]
        callers = Counter(name for case in alive for name in case.names)
        called = {case for case in alive if case.kind == "aid" and callers[case.name] > (case.name in case.names)}
        run = called | {case for case in alive if case.kind == "test" and not case.off}
        others = (_Gain(one, case) for case in fresh for one in case.assertions)
        self.gains = [gain for gain in chain(*self.own.values(), others) if gain.case in run]
        self.by_key: dict[str, list[_Gain]] = defaultdict(list)
        self.by_name: dict[str, list[_Gain]] = defaultdict(list)
        for gain in self.gains:
            self.by_key[gain.assertion.key].append(gain)
            for name in gain.assertion.names | gain.case.names or {""}:
                self.by_name[name].append(gain)

    def lost(self) -> Iterator[Lost]:
        """Yield what is lost."""
        losses = [
            (one, case)
            for case, became in self.pairs
            for one in surplus(case.assertions, became.assertions if became is not None else (), _key)
            if one.rank > NOTHING and not case.off
        ]
        left: dict[Case, list[Assertion]] = defaultdict(list)
        for one, case in sorted(losses, key=lambda loss: -loss[0].rank):
            same = (gain for gain in self.by_key.get(one.key, ()) if not gain.used)
            if not self._absorbed(one, chain(islice(same, 1), self.own[case], self._near(one))):
                left[case].append(one)
        for case, became in self.pairs:
            missing = left[case]
            if became is None:
                yield from (Lost(case, remark, max(1, len(missing))) for remark in self._deleted(case, missing))
            else:
                yield from (Lost(case, remark) for remark in self._changed(became, missing, self.own[case]))
        yield from self._rows_lost()

    def spare(self) -> Counter[str]:
        """Count the new assertions of each path that take the place of no old one."""
        return Counter(gain.case.path for gain in self.gains if not gain.used and gain.assertion.rank > WEAK)

    def _near(self, one: Assertion) -> Iterator[_Gain]:
        for name in sorted(one.names or {""}, key=lambda name: (len(self.by_name.get(name, ())), name))[:6]:
            yield from self.by_name.get(name, [])[:MOST_CANDIDATES]

    def _absorbed(self, old: Assertion, gains: Iterable[_Gain]) -> bool:
        """Find an assertion that says the same: as strict, about the same, with the same values or with rows that hold them."""
        about = old.names - words("neutral") - self.gone
        for gain in islice(gains, MOST_GAINS):
            new, known = gain.assertion, gain.assertion.names | gain.case.names
            if new.idle or not _as_strict(old, new) or new.blurs - old.blurs or _opposed(old, new):
                continue
            if (gain.used and not gain.case.rows) or (about and not about & known):
                continue
            if self._holds(gain, old) and (old.values or about <= known or old.relation == new.relation):
                gain.used = True
                return True
        return False

    def _holds(self, gain: _Gain, old: Assertion) -> bool:
        """Tell whether the values of an assertion stand in another one, or in what that one goes through or names."""
        new, case = gain.assertion, gain.case
        if Counter(old.values) <= Counter(new.values):
            return True
        if len(new.values) >= len(old.values):
            return False
        near = new.literals | self.files.get(case.path, frozenset())
        near = near.union(*(self.aids.get(name, frozenset()) for name in new.names))
        if case.rows or case.kind == "aid" or not new.values:
            near |= case.literals
        return old.literals <= near

    def _deleted(self, case: Case, left: list[Assertion]) -> Iterator[Remark]:
        if case.kind != "test":
            strong = [one for one in left if one.rank == EXACT and not one.names & self.gone]
            if strong:
                yield case.remark("assertion-removed", "{} asserted on behalf of tests and is gone.", strong[0].text)
            return
        asserting = any(one.rank > NOTHING for one in case.assertions)
        mentioned = case.names.union(*(one.names for one in case.assertions))
        lives_on = not left if asserting else any(case.names <= other.names for other in self.fresh)
        keys = {one.key for one in case.assertions}
        aids = (other for other in self.fresh if other.kind == "aid" and keys)
        hidden = next((aid for aid in aids if {one.key for one in aid.assertions} == keys), None)
        if hidden is not None and not (case.off or lives_on):
            yield hidden.remark("test-hidden", f"{case.name} is now {{}}, which no runner takes for a test.")
        elif not (case.off or lives_on or mentioned & self.gone):
            says = "The test {} is gone, and nothing else asserts what it did."
            yield case.remark("test-deleted", says, left[0].text if left else case.body)

    def _changed(self, became: Case, left: list[Assertion], own: list[_Gain]) -> Iterator[Remark]:
        left = [one for one in left if not one.names & self.gone]
        if left and not any(one.rank > NOTHING for one in became.assertions):
            hollow = sorted(became.assertions, key=lambda one: not one.idle)[:1]
            emptied = became.remark("test-emptied", "The test {} no longer asserts anything.", left[0].text)
            yield _weaker(left[0], hollow[0], became) if hollow else emptied
            return
        for old in left:
            free = [gain for gain in islice(own, MOST_GAINS) if not gain.used]
            ranked = [((gain.assertion.rank, bool(old.names & gain.assertion.names)), gain) for gain in free]
            (rank, alike), near = max(ranked, key=lambda one: one[0], default=((WEAK, False), None))
            if near is None or (old.names and rank == WEAK and not alike):
                says = "{} no longer asserts this, and nothing else does."
                yield became.remark("assertion-removed", says, old.text)
            else:
                near.used = True
                yield _weaker(old, near.assertion, became)

    def _rows_lost(self) -> Iterator[Lost]:
        """Find rows of tables that are gone: not moved to another table, nor written out as a test."""
        both = [(case, became) for case, became in self.pairs if became is not None]
        spare: Counter[str] = Counter(row for case in self.fresh for row in case.rows)
        for case, became in both:
            spare += Counter(became.rows) - Counter(case.rows)
        for case, became in both:
            gone, come = Counter(case.rows) - Counter(became.rows), Counter(became.rows) - Counter(case.rows)
            elsewhere = gone & (spare - come)
            spare -= elsewhere
            left = (row for row in (gone - elsewhere).elements() if row not in became.body)
            missing = [row for row in left if not self._is_written_out(row, became)] if not case.off else []
            fewer = len(missing) - come.total()
            if missing and fewer > 0:
                says = f"{{}} goes through {fewer} rows fewer."
                yield Lost(case, became.remark("cases-removed", says, missing[0]), fewer)
            elif missing:
                says = "{} goes through other rows than before."
                yield Lost(case, became.remark("expected-changed", says, missing[0]))

    def _is_written_out(self, row: str, became: Case) -> bool:
        values = {word for word in row.split() if word[:1] in "'\"" or word[:1].isdigit()}
        return bool(values) and any(values <= other.literals for other in self.fresh if other is not became)


def _as_strict(old: Assertion, new: Assertion) -> bool:
    """Tell whether an assertion asks for as much as another: to be empty is to equal an empty value."""
    return new.rank >= old.rank or (new.relation == "falsy" and _EMPTY.search(old.key) is not None)


def _opposed(old: Assertion, new: Assertion) -> bool:
    if "raises" in (old.relation, new.relation):
        return old.relation != new.relation
    return {old.relation, new.relation} in _OPPOSED and old.rank >= new.rank


def _weaker(old: Assertion, new: Assertion, became: Case) -> Remark:
    """Say what an assertion became: it cannot fail any more, accepts more, or expects something else."""
    other = old.literals - new.literals
    looser = new.rank < old.rank and not (new.rank > WEAK and other)
    if new.idle:
        rule, says = "assertion-unreachable", f"The assertion in {{}} {new.idle}."
    elif new.rank == NOTHING:
        rule, says = "assertion-vacuous", "What {} asserts here can never fail."
    elif looser or (new.rank <= old.rank and new.blurs - old.blurs and other):
        rule, says = "assertion-loosened", "{} accepts more than before."
    else:
        rule, says = "expected-changed", "{} expects something else than before."
    return replace(became.remark(rule, says, f"{old.text} → {new.text}"), line=new.line)


# --- which new case an old one became --------------------------------------------------------------------------------

_WAYS: tuple[Callable[[Case], Hashable], ...] = (
    lambda case: (case.kind, case.path, case.scope, case.name),
    lambda case: (case.kind, case.body) if case.body else object(),
    lambda case: (case.kind, plain_name(case.name)) if case.name else object(),
)


def pair(old: Sequence[Case], new: Sequence[Case]) -> tuple[Pairs, list[Case]]:
    """Give each old case with the new one that it became, or None; and the new ones that no old one became."""
    lost, spare, pairs = list(old), list(new), Pairs()
    for way in _WAYS:
        shelf: dict[Hashable, list[Case]] = defaultdict(list)
        for case in reversed(spare):
            shelf[way(case)].append(case)
        met = [(case, shelf[way(case)].pop() if shelf[way(case)] else None) for case in lost]
        pairs += [(case, became) for case, became in met if became is not None]
        lost = [case for case, became in met if became is None]
        used = {became for _, became in met}
        spare = [case for case in spare if case not in used]
    return pairs + [(case, None) for case in lost], spare


def plain_name(name: str) -> str:
    """Give a name without case, separators and the word test."""
    return "".join(char for char in name.lower() if char.isalnum()).removeprefix("test")
