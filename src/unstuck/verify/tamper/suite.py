"""The tests of one text as values, the same for every language: what each asserts, and whether it runs at all."""

from dataclasses import dataclass
from typing import Literal

EXACT, PARTIAL, WEAK, DOUBTFUL, NOTHING = 4, 3, 2, 1, 0
"""How much an assertion says: this value; a value like this; some value; perhaps something; nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """One assertion in a form that survives renaming, reformatting and another assertion style."""

    relation: str
    rank: int
    key: str
    """Relation, called names and literals; local names and formatting are gone."""
    skeleton: str
    """The key without any name: it survives the renaming of what is tested."""
    literals: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    blurs: frozenset[str] = frozenset()
    """Calls around the compared value that throw some of it away, such as `sorted` or `round`."""
    tolerance: float = 0.0
    line: int = 1
    text: str = ""
    idle: str = ""
    """Why it can no longer fail; empty where it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """Something that a test replaces by a stand-in."""

    target: str
    """Dotted path or module specifier."""
    line: int
    everywhere: bool = False
    """Holds for all tests of the file or folder, not for one that asks for it."""
    names: frozenset[str] = frozenset()
    """Of a replaced module, the names that are replaced; empty for all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test, or a function that asserts on behalf of tests."""

    kind: Literal["test", "aid"]
    name: str
    scope: str
    path: str
    line: int
    assertions: tuple[Assertion, ...] = ()
    body: str = ""
    """The whole body without local names and formatting."""
    shape: str = ""
    """The body without its values: two tests of one shape differ in nothing else."""
    literals: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()
    swallows: bool = False
    """A decorator that drops the failures of what it decorates."""
    requests: frozenset[str] = frozenset()
    """Fixtures and decorators that it names: they are run for it, but it does not call them."""
    rows: tuple[frozenset[str], ...] | None = None
    """The literals of each case of a parametrised test; None where it is not parametrised."""
    open_rows: bool = False
    """The cases come from somewhere that cannot be seen."""
    looped: bool = False
    hidden: str = ""
    """Why no runner would find it; empty where one would."""
    skip: str = ""
    skip_is_conditional: bool = False
    focused: bool = False
    retries: str = ""
    patches: tuple[Patch, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """All that one text holds of tests."""

    path: str
    cases: tuple[Case, ...] = ()
    patches: tuple[Patch, ...] = ()
    """Those outside single tests."""
    defined: frozenset[str] = frozenset()
    """Functions that the text defines itself."""
    bound: frozenset[str] = frozenset()
    """Names that the text gives a meaning of its own, outside any function."""
    called: frozenset[str] = frozenset()
    prepared: frozenset[str] = frozenset()
    """What is called before each test."""
    stand_ins: int = 0
    """How many mocks and the like it makes."""
    constants: tuple[tuple[str, frozenset[str]], ...] = ()
    """Names with plain values, and those values."""
    imports: frozenset[str] = frozenset()
