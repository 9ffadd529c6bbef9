"""What was asserted before and is not now, what is asserted instead, and what the rest of the change says."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from unstuck.verify.tamper.suite import Assertion, Case

MOST_CANDIDATES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What the rest of the change says."""

    gone: frozenset[str] = frozenset()
    """Functions, classes and the like that the product no longer defines, under any name."""
    gone_texts: frozenset[str] = frozenset()
    """Routes and the like that no product text holds any more."""
    subclasses: frozenset[tuple[str, str]] = frozenset()
    """Classes of the product, each with its base."""
    vanished: frozenset[str] = frozenset()
    """Names that no changed product file holds any more."""
    local: frozenset[str] = frozenset()
    """Functions that the old tests defined themselves."""
    literals: frozenset[str] = frozenset()
    """Literals of files that tests may read their cases from."""
    constants: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(slots=True)
class Gain:
    assertion: Assertion
    case: Case
    uses: int = 0


@dataclass(slots=True)
class Pool:
    """All that is newly asserted anywhere, by shape and by name, so that a large change stays linear."""

    by_skeleton: dict[str, list[Gain]] = field(default_factory=dict)
    by_name: dict[str, list[Gain]] = field(default_factory=dict)

    def add(self, gain: Gain) -> None:
        self.by_skeleton.setdefault(gain.assertion.skeleton, []).append(gain)
        for name in gain.assertion.names | gain.case.calls or {""}:
            self.by_name.setdefault(name, []).append(gain)

    def near(self, old: Assertion) -> Iterator[Gain]:
        seen: set[int] = set()
        rarest_first = sorted(old.names or {""}, key=lambda name: len(self.by_name.get(name, ())))
        for name in rarest_first:
            for gain in self.by_name.get(name, [])[:MOST_CANDIDATES]:
                if id(gain) not in seen:
                    seen.add(id(gain))
                    yield gain


@dataclass(slots=True)
class Loss:
    assertion: Assertion
    case: Case
    became: Case | None
    own: list[Gain]
