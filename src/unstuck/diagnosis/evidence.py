"""What is known about a command that ended, and its output made readable: no colours, bars or control bytes; numbering is kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from unstuck.model.text import clean

if TYPE_CHECKING:
    from unstuck.model.verdict import CheckKind


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
    breaks: str = ""
    """How the arguments of the call break the schema of its tool; empty if they do not, or nobody knows it."""
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


PLAIN = {
    **dict.fromkeys(map(ord, "\u2018\u2019\u201a\u201b\u2032\u2039\u203a\u0060\u00b4"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u300c\u300d"), '"'),
    **dict.fromkeys(map(ord, "\u2502\u2503\u2551\u258c\u258f\u2588\u254e\u254f\u2506\u2507"), " "),
    **dict.fromkeys(map(ord, "\u00a0\u202f\u2009\u3000"), " "),
    0xFF1A: ":",
    0xFF0D: "-",
    # `lower` makes an ASCII letter of the second, but a pattern that ignores case under `re.ASCII` matches neither.
    0x017F: "s",
    0x212A: "K",
}
"""Quotes, frames and wide punctuation as rules write them."""


def lines(evidence: Evidence) -> tuple[Line, ...]:
    """Return both streams as cleaned lines, stdout first, numbered throughout."""
    out = [Line(number, text) for number, text in enumerate(clean(evidence.stdout), 1)]
    start = len(out) + 1
    return (*out, *(Line(number, text, "stderr") for number, text in enumerate(clean(evidence.stderr), start)))


def plain(line: str) -> str:
    """Return the line as rules see it: no indentation, ASCII quotes."""
    if not line.isascii() or "`" in line:
        line = line.translate(PLAIN)
    return line.strip()
