"""Say what a command is for, and which of its exit codes are answers."""

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Literal

from unstuck.shipped import shipped_table
from unstuck.tools.shell import programs

if TYPE_CHECKING:
    from unstuck.diagnosis import Evidence

Role = Literal["test", "lint", "types", "format", "build", "install", ""]
"""What a command is for. Decides what a finding is called where the output does not say."""

IDLE = frozenset(
    """
    cat cd chmod chown cp curl echo export false git head less ln ls mkdir more mv printf pwd rm rmdir rsync scp sleep sort
    source ssh tail tee test touch true wc wget . [
    """.split()  # noqa: SIM905  # a table of words reads better as one
)
"""Programs whose arguments say nothing about what they are for."""

CHECK_ROLES: Mapping[str, Role] = {
    "test": "test",
    "lint": "lint",
    "types": "types",
    "format": "format",
    "build": "build",
}


def role(evidence: "Evidence") -> Role:
    """Say what the command is for; the kind of our own check, where it was one, says it better."""
    if evidence.check in CHECK_ROLES:
        return CHECK_ROLES[evidence.check or ""]
    for part in reversed((evidence.tool, *programs(evidence.command))):
        if found := role_of(part):
            return found
    return ""


def answers(evidence: "Evidence") -> bool:
    """Whether the exit code answers a question that the last command asks."""
    parts = programs(evidence.command)
    last = next((part for part in reversed(parts) if part not in {"true", ":"}), evidence.tool)
    return any(
        evidence.exit_code in row["codes"] and re.search(row["shows"], last)
        for row in shipped_table("toolchains")["answer"]
    )


def role_of(part: str) -> Role:
    """Say what a simple command is for: by its words where a program has many uses, else by its name."""
    if not part or part.split(maxsplit=1)[0] in IDLE:
        return ""
    for row in shipped_table("toolchains")["use"]:
        if re.search(row["shows"], part):
            known: Role = row["role"]
            return known
    name = re.sub(r"\.(?:exe|cmd|bat|phar|sh)$", "", part.split(maxsplit=1)[0])
    bare = re.sub(r"-?[\d.]+$", "", name)
    known = _by_name().get(name) or _by_name().get(bare) or ""
    return known or ("lint" if "lint" in name else "")


@cache
def _by_name() -> Mapping[str, Role]:
    return {
        name: role
        for role, names in reversed(shipped_table("toolchains")["programs"].items())
        for name in names.split()
    }
