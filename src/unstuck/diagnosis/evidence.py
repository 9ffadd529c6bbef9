"""Evidence about a command that ended, with the kinds of failure that it proves."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from unstuck.model.failure import Kind
from unstuck.model.text import clean
from unstuck.toolchain.command_roles import Role
from unstuck.toolchain.shell import parts, programs

if TYPE_CHECKING:
    from unstuck.model.verdict import CheckKind


NO_GROUPS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Facts about one ended command or session, with defaults for unknown facts."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    signal: str = ""
    """The signal's name without SIG, e.g. ``KILL``."""
    timed_out: bool = False
    tool: str = ""
    command: str = ""
    breaks: str = ""
    """The errors of the arguments against the schema of the tool."""
    check: "CheckKind | None" = None
    """The kind of check that the command was."""
    end: str = ""
    """The agent's own typed end reason, e.g. ``rate_limited``."""
    changed: bool | None = None
    """The work tree differs from its base; None if it was not compared."""


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


# --- kinds that the facts prove ---------------------------------------------------------------------------

CERTAIN_FACT = 95
ROLE_WEIGHT = 42
"""Weight of the purpose of a command that failed."""
KIND_OF_ROLE: Mapping[Role, Kind] = {
    "test": Kind.TEST_FAILED,
    "lint": Kind.LINT_FAILED,
    "types": Kind.TYPES_FAILED,
    "format": Kind.FORMAT_FAILED,
    "build": Kind.BUILD_BROKEN,
}
KIND_OF_SIGNAL: Mapping[str, Kind] = {
    "KILL": Kind.KILLED,
    "TERM": Kind.KILLED,
    "HUP": Kind.KILLED,
    "INT": Kind.INTERRUPTED,
    "XCPU": Kind.TIMEOUT,
    "ALRM": Kind.TIMEOUT,
    "XFSZ": Kind.DISK_FULL,
    **dict.fromkeys(("SEGV", "ABRT", "BUS", "FPE", "ILL", "TRAP", "SYS"), Kind.PROGRAM_CRASHED),
}
SIGNAL_NAMES = {1: "HUP", 2: "INT", 4: "ILL", 5: "TRAP", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL", 11: "SEGV",
                13: "PIPE", 14: "ALRM", 15: "TERM", 24: "XCPU", 25: "XFSZ", 31: "SYS"}  # fmt: skip
TIMEOUT_EXIT_CODE = 124
KIND_OF_EXIT_CODE: Mapping[int, tuple[Kind, int]] = {
    TIMEOUT_EXIT_CODE: (Kind.TIMEOUT, 60),
    126: (Kind.PERMISSION_DENIED, 55),
    127: (Kind.COMMAND_NOT_FOUND, 58),
}
KIND_OF_PROGRAM_EXIT_CODE: Mapping[str, Mapping[int, Kind]] = {
    "curl": {
        1: Kind.INVALID_ARGUMENTS, 2: Kind.INVALID_ARGUMENTS, 3: Kind.INVALID_ARGUMENTS,
        **dict.fromkeys((5, 6, 7, 18, 35, 51, 52, 55, 56, 58, 59, 60, 77, 92), Kind.NETWORK_ERROR),
        22: Kind.NETWORK_ERROR, 26: Kind.FILE_NOT_FOUND, 28: Kind.TIMEOUT, 37: Kind.FILE_NOT_FOUND,
        67: Kind.AUTH_FAILED, 78: Kind.FILE_NOT_FOUND,
    },
    "wget": {2: Kind.INVALID_ARGUMENTS, 4: Kind.NETWORK_ERROR, 5: Kind.NETWORK_ERROR, 6: Kind.AUTH_FAILED,
             8: Kind.NETWORK_ERROR},
    "ssh": {255: Kind.NETWORK_ERROR},
    "scp": {255: Kind.NETWORK_ERROR},
    "rsync": {10: Kind.NETWORK_ERROR, 12: Kind.NETWORK_ERROR, 23: Kind.FILE_NOT_FOUND,
              30: Kind.TIMEOUT, 35: Kind.TIMEOUT},
    "pytest": {2: Kind.BUILD_BROKEN, 4: Kind.INVALID_ARGUMENTS, 5: Kind.UNVERIFIED},
}  # fmt: skip
"""Exit codes that a program documents. A failed write has none: the folder may be missing as well as the disk full."""
KIND_OF_SESSION_END: Mapping[str, Kind] = {
    "context_exhausted": Kind.CONTEXT_EXHAUSTED,
    "rate_limited": Kind.RATE_LIMITED,
    "overloaded": Kind.PROVIDER_OVERLOADED,
    "auth_failed": Kind.AUTH_FAILED,
    "billing": Kind.BILLING,
    "max_turns": Kind.TASK_INCOMPLETE,
    "budget": Kind.TASK_INCOMPLETE,
    "permission_denied": Kind.PERMISSION_DENIED,
    "refused": Kind.AGENT_FAILED,
    "asks": Kind.QUESTION,
    "failed_claimed": Kind.AGENT_FAILED,
    "tool_hang": Kind.HANG,
    "crashed": Kind.AGENT_CRASHED,
    "killed": Kind.KILLED,
    "no_work": Kind.NO_CHANGE,
    "unreadable": Kind.RESULT_UNREADABLE,
    "network": Kind.NETWORK_ERROR,
    "bad_request": Kind.INVALID_ARGUMENTS,
}


def signal_of(exit_code: int | None) -> str:
    """Return the signal that an exit code stands for: Python's are below zero, a shell's above 128."""
    return SIGNAL_NAMES.get(-exit_code if exit_code and exit_code < 0 else (exit_code or 0) - 128, "")


def kinds_by_facts(evidence: Evidence, role: Role) -> list[tuple[Kind, int]]:
    """Return the kinds that follow without reading the output, each with its weight."""
    kinds: list[tuple[Kind, int]] = []
    if evidence.end in KIND_OF_SESSION_END:
        kinds.append((KIND_OF_SESSION_END[evidence.end], 99))
    if evidence.timed_out:
        kinds.append((Kind.TIMEOUT, 97))
    exit_code = evidence.exit_code
    has_timeout = any(re.match(r"(?:busybox\s+)?timeout\s", part) for part in parts(evidence.command))
    if has_timeout and exit_code == TIMEOUT_EXIT_CODE:
        kinds.append((Kind.TIMEOUT, CERTAIN_FACT))
    signal = evidence.signal.upper().removeprefix("SIG") or signal_of(exit_code)
    if signal in KIND_OF_SIGNAL:
        kind = Kind.TIMEOUT if has_timeout and signal in {"KILL", "TERM"} else KIND_OF_SIGNAL[signal]
        kinds.append((kind, 88 if evidence.signal or signal == "KILL" else 62))
    if exit_code is not None:
        kinds += _kinds_by_exit_code(evidence, exit_code)
    if evidence.changed is False and evidence.end == "done_claimed":
        kinds.append((Kind.NO_CHANGE, 98))
    if role in KIND_OF_ROLE and exit_code != 0:
        kinds.append((KIND_OF_ROLE[role], ROLE_WEIGHT))
    return kinds


def _kinds_by_exit_code(evidence: Evidence, exit_code: int) -> list[tuple[Kind, int]]:
    kinds = [KIND_OF_EXIT_CODE[exit_code]] if exit_code in KIND_OF_EXIT_CODE else []
    for part in (*programs(evidence.command), evidence.tool):
        kind_of_exit_code = KIND_OF_PROGRAM_EXIT_CODE.get(part.split(" ")[0], {})
        if exit_code in kind_of_exit_code:
            kinds.append((kind_of_exit_code[exit_code], 50))
    return kinds
