"""Chains: for each category of failed tool calls the ways out, in the order in which they are tried. Values only.

Named tuples: to define a dataclass costs ten times as much, and a hook may pay that after every failing command.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from unstuck.diagnosis import KINDS, Kind

Risk = Literal["safe", "caution", "privileged", "destructive"]
RISKS: tuple[Risk, ...] = ("safe", "caution", "privileged", "destructive")
"""From what may run by itself to what nobody should do unasked."""
TaskType = Literal["", "exploratory", "implementation"]
ASK = "ask_user"
"""Every way of asking a person; always the last."""
MOST_AUTOMATED = 4


NOTHING_GIVEN: Mapping[str, Any] = MappingProxyType({})


class Way(NamedTuple):
    """One strategy of a chain, before it is filled in."""

    name: str
    confidence: float
    iterations: int
    creates: bool = False
    """It makes new files, which an agent that only explores must not."""
    between_attempts: bool = False
    """The supervisor may do its safe steps between two attempts."""


class Chain(NamedTuple):
    """The ways out of one category."""

    name: str
    ways: tuple[Way, ...]
    ask: str
    """The question, with blanks."""
    ask_confidence: float
    looks_at: frozenset[str] = frozenset()
    """What must be known about the machine to fill it in."""


class Catalog(NamedTuple):
    """All chains, and the tables that their ways look things up in."""

    chains: Mapping[str, Chain]
    tables: Mapping[str, Any] = NOTHING_GIVEN

    def chain(self, kind: Kind) -> Chain:
        """Return the chain of a kind: its own, its category's, or the one that only asks."""
        for name in (str(kind), KINDS[kind].category or ""):
            if name in self.chains:
                return self.chains[name]
        return self.chains["unknown"]


def worst(risks: list[Risk]) -> Risk:
    """Return the gravest of them; nothing at all is safe."""
    return max(risks, key=RISKS.index, default="safe")
