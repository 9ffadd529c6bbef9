"""Edge: Write a first `unstuck.toml`: what was found and seen here, as settings to read through."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unstuck.config_file import NAME
from unstuck.errors import BadUsage
from unstuck.plans import CheckKind
from unstuck.process import put
from unstuck.tools.detecting import joined


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundGate:
    """A gate that fits, and what was seen of it."""

    kind: CheckKind
    line: str
    says: str
    kept: bool = True
    """Whether it can guard anything here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstConfig:
    path: Path
    text: str
    notes: tuple[str, ...]


def refuse_replacing(root: Path, *, force: bool) -> None:
    """Refuse where there is a file already, before anything is run for another."""
    if (root / NAME).exists() and not force:
        raise BadUsage(
            f"{root / NAME} is there already.",
            hint="Edit it, or replace it with --force: the old one is kept beside it.",
        )


def write_config(root: Path, text: str, notes: tuple[str, ...]) -> FirstConfig:
    """Write the file; one that is there is kept beside the new one."""
    path = root / NAME
    if path.exists():
        path.rename(path.with_name(f"{NAME}.{time.strftime('%Y%m%d-%H%M%S')}.old"))
    put(path, text)
    return FirstConfig(path=path, text=text, notes=notes)


def config_text(agents: Sequence[str], gates: Sequence[FoundGate], copy: Sequence[str], setup: Sequence[str]) -> str:
    """Return the text; what was not found, or cannot guard anything, stands there as a comment."""
    lines = ["# How unstuck works on this repository. All keys: docs/reference/configuration.md", ""]
    lines += [f"# On PATH: {', '.join(agents)}." if agents else "# No known agent was found on PATH."]
    lines += [
        f"# agent = [{_quoted(agents[0] if agents else 'mine')}]    # the first known agent on PATH is used without it",
        "# [agents.mine]",
        "# command = 'my-agent --headless'    # the brief comes on stdin; {brief} is its file",
        "",
    ]
    lines += ["[checks]    # must hold after every task, whatever the task's own Verify says"]
    lines += _gates(gates) or ["# test = 'make test'"]
    lines += ["", "[workspace]    # what a fresh worktree needs and git does not carry"]
    lines += [f"{key} = {_list(values)}" for key, values in (("copy", copy), ("setup", setup)) if values]
    return "\n".join(lines) + "\n"


def _gates(gates: Sequence[FoundGate]) -> list[str]:
    """Write each gate below what was seen of it."""
    lines: list[str] = []
    for check in joined([(gate.kind, gate.line) for gate in gates if gate.kept]):
        lines += [f"# {gate.kind}: {gate.says}" for gate in gates if gate.kept and gate.kind == check.kind]
        lines.append(f"{check.kind} = {_quoted(check.command)}")
    for gate in gates:
        if not gate.kept:
            lines += [f"# {gate.kind}: left out, because {gate.says}", f"# {gate.kind} = {_quoted(gate.line)}"]
    return lines


def _list(values: Sequence[str]) -> str:
    return f"[{', '.join(_quoted(value) for value in values)}]"


def _quoted(text: str) -> str:
    """Write a TOML string; JSON has the same form."""
    return json.dumps(text, ensure_ascii=False)
