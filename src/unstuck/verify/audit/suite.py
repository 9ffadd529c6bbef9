"""The tests of one text as values, the same for every language: what each asserts, and whether it runs at all."""

from dataclasses import dataclass
from typing import Literal

EXACT, PARTIAL, WEAK, NOTHING = 3, 2, 1, 0
"""How much an assertion says: this value; a value like this; some value; nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """One assertion in a form that survives renamed locals, another layout and another style."""

    key: str
    """Its tokens without local names and layout, with the reason why it cannot fail in front, if there is one."""
    rank: int
    relation: str
    names: frozenset[str] = frozenset()
    """What it calls or looks at, without the words of the test framework."""
    values: tuple[str, ...] = ()
    """Its literals, in their order."""
    blurs: frozenset[str] = frozenset()
    """Calls that throw some of the compared value away, such as `sorted` or `len`."""
    line: int = 1
    text: str = ""
    idle: str = ""
    """Why it can no longer fail; empty where it can."""
    guarded: bool = False
    """It is reached on a condition only."""

    @property
    def literals(self) -> frozenset[str]:
        return frozenset(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test, a function that asserts or holds rows on behalf of tests, or what stands outside of all of them."""

    kind: Literal["test", "aid", "file"]
    name: str
    scope: str
    path: str
    line: int
    assertions: tuple[Assertion, ...] = ()
    rows: tuple[str, ...] = ()
    """The rows of the tables that it goes through."""
    body: str = ""
    """All of it without local names and layout."""
    literals: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    skip: str = ""
    """The words that keep it from running; empty where it runs."""
    sometimes: bool = False
    """It is skipped on a condition only."""
    guards: int = 0
    """How often it ends early on a condition."""
    focused: bool = False
    retried: bool = False

    @property
    def off(self) -> bool:
        return bool(self.skip) and not self.sometimes


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """All that one text holds of tests."""

    path: str
    cases: tuple[Case, ...] = ()
    unread: str = ""
    """Why it could not be read; empty where it could."""
