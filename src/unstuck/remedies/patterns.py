"""Different failures with one cause: what several of them together say that none says alone. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unstuck.diagnosis import Kind

WINDOW_SECONDS = 3600.0
LATEST = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One failure of the recent past."""

    kind: Kind
    name: str = ""
    """What it is about: the command, package or host."""
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    name: str
    because: str
    advice: str


@dataclass(frozen=True, slots=True)
class _Sign:
    """A cause, the kinds that point to it, and how many different things must be hit."""

    name: str
    kinds: frozenset[Kind]
    things: int
    distinct_kinds: int
    advice: str


_PERSON = "ask for it once instead of working around each"
SIGNS: Sequence[_Sign] = (
    _Sign("no_network", frozenset({Kind.NETWORK_ERROR, Kind.PACKAGE_NOT_FOUND}), 3, 1,
          "The machine has no way out to the network: use what is local, and ask for access once."),
    _Sign("bare_machine", frozenset({Kind.COMMAND_NOT_FOUND, Kind.AGENT_MISSING}), 3, 1,
          "Many commands are missing: PATH is wrong or this is a bare container; set it up once, " + _PERSON + "."),
    _Sign("not_set_up", frozenset({Kind.DEPENDENCY_MISSING, Kind.MODULE_MISSING, Kind.ENVIRONMENT_MISSING}), 3, 1,
          "The project is not set up: install what it declares, rather than package by package."),
    _Sign("overloaded_machine", frozenset({Kind.OUT_OF_MEMORY, Kind.KILLED, Kind.TIMEOUT, Kind.HANG, Kind.TEST_TIMEOUT, Kind.CHECK_TIMEOUT}), 3, 2,
          "The machine is short of memory or time: run less side by side."),
    _Sign("broken_disk", frozenset({Kind.DISK_FULL, Kind.PERMISSION_DENIED}), 2, 2,
          "The disk is full or read-only: " + _PERSON + "."),
)  # fmt: skip


def pattern(recent: Sequence[Seen], now: float) -> Pattern | None:
    """Return the cause that the failures of the last hour share, if they share one."""
    fresh = [seen for seen in recent[-LATEST:] if now - seen.at <= WINDOW_SECONDS]
    for sign in SIGNS:
        hits = [seen for seen in fresh if seen.kind in sign.kinds]
        things = {(seen.kind, seen.name) for seen in hits}
        if len(things) >= sign.things and len({seen.kind for seen in hits}) >= sign.distinct_kinds:
            named = ", ".join(dict.fromkeys(seen.name or str(seen.kind) for seen in hits))
            return Pattern(
                name=sign.name, because=f"{len(hits)} failures of the last hour: {named[:200]}", advice=sign.advice
            )
    return None


def pattern_json(found: Pattern | None) -> Mapping[str, str] | None:
    return {"name": found.name, "because": found.because, "advice": found.advice} if found else None
