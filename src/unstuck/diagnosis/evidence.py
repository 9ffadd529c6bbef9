"""What is known about a command that ended, before anybody judges it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from unstuck.plans import CheckKind


NO_GROUPS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Facts about one ended command or session. All are optional: what nobody knows is not held against anyone."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    signal: str = ""
    """The signal's name without SIG, e.g. ``KILL``."""
    timed_out: bool = False
    tool: str = ""
    command: str = ""
    check: "CheckKind | None" = None
    """Which of our checks it was."""
    end: str = ""
    """The agent's own typed end reason, e.g. ``rate_limited``."""
    changed: bool | None = None
    """Whether the work tree differs from its base; None if nobody looked."""


class Line(NamedTuple):
    """One cleaned line of output."""

    number: int
    text: str
    stream: Literal["stdout", "stderr"] = "stdout"


class Hit(NamedTuple):
    """One rule that fires on one line."""

    rule: str
    line: int
    """Index into the lines that were scanned."""
    groups: Mapping[str, str] = NO_GROUPS
