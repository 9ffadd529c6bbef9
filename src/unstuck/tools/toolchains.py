"""The one table of stacks, as values: what shows them, sets them up, checks them and judges them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from unstuck.plans import CheckKind
from unstuck.shipped import shipped_table

Signs = tuple[tuple[str, str], ...]
"""Files or patterns, each with a regular expression that it must hold; any of them shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What makes a fresh checkout ready."""

    shown_by: Signs
    manager: str
    line: str
    makes: str = ""
    extra: str = ""
    group: str = ""
    each: str = ""
    runs: str = ""
    alone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What must hold after every task, where its signs are there."""

    kind: CheckKind
    line: str
    needs: str = ""
    shown_by: Signs = ()
    scripts: tuple[str, ...] = ()
    fallback: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """A test runner that can be asked for some files only."""

    name: str
    shows: str
    keeps: str
    item: str
    takes: str
    between: str = " "
    ran: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixer:
    """A tool that may repair what it should check, and how it is asked not to."""

    shows: str
    asks: str
    writes: str = ""
    looks: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """A stack: all rows about it."""

    name: str
    shows: tuple[str, ...]
    manifests: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()
    setup: tuple[Setup, ...] = ()
    gate: tuple[Gate, ...] = ()
    runner: tuple[Runner, ...] = ()
    checking: tuple[str, ...] = ()
    developing: tuple[str, ...] = ()
    linting: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()


@cache
def toolchains() -> tuple[Toolchain, ...]:
    return tuple(_row(Toolchain, row) for row in shipped_table("toolchains")["stack"])


def fixers() -> tuple[Fixer, ...]:
    return tuple(Fixer(**row) for row in shipped_table("toolchains")["fixer"])


def judges() -> tuple[str, str]:
    """Return regular expressions of the names of files that say what passes, of all stacks: settings, and locks."""
    chains = toolchains()
    return "|".join(one for row in chains for one in row.settings), "|".join(one for row in chains for one in row.locks)


def manifest_files() -> tuple[str, ...]:
    """Name the files in which projects say what they need; a checkout is set up anew when one of them changes."""
    return tuple(dict.fromkeys(_plain_names()))


def _plain_names() -> Iterator[str]:
    for chain in toolchains():
        named = (*chain.manifests, *chain.shows, *(file for row in chain.setup for file, _ in row.shown_by))
        yield from (name for name in named if not re.search(r"[*?\[]", name))


PARTS: Mapping[str, Any] = {"setup": Setup, "gate": Gate, "runner": Runner}


def _row(shape: Any, row: Mapping[str, Any]) -> Any:
    return shape(**{key: _cells(key, value) for key, value in row.items()})


def _cells(key: str, value: Any) -> Any:
    return tuple(_row(PARTS[key], one) for one in value) if key in PARTS else _frozen(value)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
