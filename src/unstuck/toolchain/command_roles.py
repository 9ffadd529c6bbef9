"""Say what a command is for, which of its exit codes are answers, and what it does besides: deletes, deploys, writes outside."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Literal, cast

from unstuck.shipped import shipped_table
from unstuck.toolchain.shell import ENDS, QUOTED, programs

Role = Literal["test", "lint", "types", "format", "build", "install", ""]
"""What a command is for. Decides what a finding is called where the output does not say."""


@cache
def listed(name: str) -> tuple[str, ...]:
    """Return a list of words of the table."""
    return tuple(shipped_table("toolchains")["words"][name].split())


def role(command: str, tool: str = "", check: str | None = None) -> Role:
    """Say what the command is for; the kind of our own check, where it was one, says it better."""
    if check in CHECKERS:
        return cast("Role", check)
    for part in reversed((tool, *programs(command))):
        if found := role_of(part):
            return found
    return ""


def answers(command: str, tool: str, exit_code: int | None) -> bool:
    """Whether the exit code answers a question that the last command asks."""
    parts = programs(command)
    last = next((part for part in reversed(parts) if part not in {"true", ":"}), tool)
    if inner := _TOLD.match(last):
        last = next(reversed(programs("".join(filter(None, inner.groups())))), last)
    return any(
        exit_code in row["codes"] and re.search(row["shows"], last) for row in shipped_table("toolchains")["answer"]
    )


def of_system(command: str) -> bool:
    """Whether what was said last was said by a program of the machine, and not by something written for this project."""
    return any(part.split(maxsplit=1)[0] in listed("system") for part in programs(command)[-1:])


def role_of(part: str) -> Role:
    """Say what a simple command is for: by its words where a program has many uses, else by its name."""
    if not part or part.split(maxsplit=1)[0] in listed("idle"):
        return ""
    for row in shipped_table("toolchains")["use"]:
        if re.search(row["shows"], part):
            known: Role = row["role"]
            return known
    name = re.sub(r"\.(?:exe|cmd|bat|phar|sh)$", "", part.split(maxsplit=1)[0])
    bare = re.sub(r"-?[\d.]+$", "", name)
    known = _by_name().get(name) or _by_name().get(bare) or ""
    return known or ("lint" if re.search(r"lint|validat|audit|secrets", name) else "")


@cache
def _by_name() -> Mapping[str, Role]:
    return {
        name: role
        for role, names in reversed(shipped_table("toolchains")["programs"].items())
        for name in names.split()
    }


# --- what a command does besides answering

CHECKERS = frozenset({"test", "lint", "types", "format", "build"})
"""What a program must be for, to be run because a sentence says that it passes."""
_SCRIPT = re.compile(
    r"(?:ba|da|z)?sh\s+[\w./-]*(?:test|check|lint|verify|spec)[\w.-]*\.sh\b|[\w./-]*(?:test|check|lint|verify)[\w-]*\.sh\b"
)
"""A script of the project that is called a check."""


@cache
def _effects_known() -> Sequence[tuple[str, re.Pattern[str]]]:
    """Return what a command may do to the world, by its words; the first row that fits is told."""
    return [(row["says"], re.compile(row["shows"])) for row in shipped_table("toolchains")["effect"]]


DEEPEST = 3
_LITERAL = re.compile(r"'[^']*'")
_SUBSTITUTED = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_TOLD = re.compile(
    r"^(?:(?:ba|da|z|k|fi)?sh(?:\s+-\w+)*?\s+-\w*c|eval)\s+(?:'([^']*)'|\"((?:[^\"\\]|\\.)*)\"|(\S.*))", re.DOTALL
)
"""Commands inside of commands: what the shell puts in, and what another shell is told."""


def effect(command: str) -> str:
    """Say in a word what a command does to the world, as far as its text shows; empty for one that only answers."""
    return next(_effects(command, DEEPEST), "")


def _effects(command: str, depth: int) -> Iterator[str]:
    """Read every simple command, and what shells inside of it are told to run."""
    parts = (*programs(command), *(part.strip().lstrip("\\") for part in ENDS.split(command)))
    for part in parts:
        acts = _acting(part)
        quoted = re.match(
            r"(?:echo|printf)\b", acts
        )  # such as the pattern of a search; what a database is told is no such text
        bare = QUOTED.sub("''", acts) if quoted else acts
        yield from (says for says, shape in _effects_known() if shape.search(acts) and shape.search(bare))
    inner = [*_SUBSTITUTED.findall(_LITERAL.sub("", command)), *(one for part in parts for one in _TOLD.findall(part))]
    for script in inner if depth else ():
        yield from _effects("".join(script).replace('\\"', '"'), depth - 1)


def _acting(part: str) -> str:
    """Return what of a simple command can act: of a program that only looks, where its output goes."""
    looks = part.split(" ", 1)[0] in listed("looks")
    return part[part.index(">") :] if looks and ">" in part else "" if looks else part


def only_checks(command: str) -> bool:
    """Whether every program of a command is a known checker, or merely looks: then a sentence may have it run."""
    parts = [part for part in programs(command) if part.split(" ", 1)[0] not in listed("beside")]
    return bool(parts) and not effect(command) and all(map(_checks, parts))


def _checks(part: str) -> bool:
    program = part.split(" ", 1)[0]
    return program in listed("looks") or role_of(part) in CHECKERS or _SCRIPT.match(part) is not None
