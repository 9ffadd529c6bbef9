"""Chains: for each category of failed tool calls the strategies, in the order in which they are tried."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from unstuck.diagnosis import KINDS, Kind
from unstuck.shipped import shipped

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


def read_catalog() -> Catalog:
    """Return all chains and their tables, from the compiled form: reading TOML would cost more than a whole plan."""
    content: dict[str, Any] = json.loads(shipped("chains.json"))
    chains = {name: _chain(name, row) for name, row in content.pop("chains").items()}
    return Catalog(chains=chains, tables=content)


def compile_chains() -> str:
    """Return the text of the compiled form."""
    import tomllib  # noqa: PLC0415  # only to compile

    content = tomllib.loads(shipped("chains.toml"))
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in content.items())
    return f"{{\n{lines}\n}}\n"


def _chain(name: str, row: dict[str, Any]) -> Chain:
    return Chain(
        name=name,
        ways=tuple(Way(**way) for way in row["ways"]),
        ask=row["ask"],
        ask_confidence=row["ask_confidence"],
        looks_at=frozenset(row["looks_at"]),
    )
