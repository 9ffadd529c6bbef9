"""Edge: Write a first `unstuck.toml`: what was found here, as settings to read through."""

import json
import time
from dataclasses import dataclass
from pathlib import Path

from unstuck.config_file import NAME
from unstuck.errors import BadUsage
from unstuck.process import put
from unstuck.tools.detecting import Stack, detect
from unstuck.tools.workflows import CiCommand, ci_checks, ci_commands


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstConfig:
    path: Path
    text: str
    notes: tuple[str, ...]


def write_config(root: Path, *, agents: tuple[str, ...], force: bool) -> FirstConfig:
    """Write the file; one that is there is refused, or kept beside the new one."""
    path = root / NAME
    if path.exists():
        if not force:
            raise BadUsage(
                f"{path} is there already.", hint="Edit it, or replace it with --force: the old one is kept beside it."
            )
        path.rename(path.with_name(f"{NAME}.{time.strftime('%Y%m%d-%H%M%S')}.old"))
    stack = detect(root)
    text = render(stack, agents, ci_commands(root))
    put(path, text)
    return FirstConfig(path=path, text=text, notes=stack.notes)


def render(stack: Stack, agents: tuple[str, ...], of_ci: tuple[CiCommand, ...] = ()) -> str:
    """Return the text; what was not found stands there as a comment. What the CI runs goes before what fits the stack."""
    lines = ["# How unstuck works on this repository. All keys: docs/reference/configuration.md", ""]
    lines += [f"# On PATH: {', '.join(agents)}." if agents else "# No known agent was found on PATH."]
    lines += [
        f"# agent = [{_quoted(agents[0] if agents else 'mine')}]    # the first known agent on PATH is used without it",
        "# [agents.mine]",
        "# command = 'my-agent --headless'    # the brief comes on stdin; {brief} is its file",
        "",
    ]
    lines += ["[checks]    # must hold after every task, whatever the task's own Verify says"]
    wanted = {check.kind: check.command for check in (*stack.checks, *ci_checks(of_ci))}
    places = {one.kind: one.place for one in reversed(of_ci)}
    lines += [
        f"{kind} = {_quoted(command)}" + (f"    # as in {places[kind]}" if kind in places else "")
        for kind, command in wanted.items()
    ] or ["# test = 'make test'"]
    lines += ["", "[workspace]    # what a fresh worktree needs and git does not carry"]
    lines += [
        f"{key} = {_list(values)}"
        for key, values in (("copy", stack.copy), ("link", stack.link), ("setup", stack.setup))
        if values
    ]
    return "\n".join(lines) + "\n"


def _list(values: tuple[str, ...]) -> str:
    return f"[{', '.join(_quoted(value) for value in values)}]"


def _quoted(text: str) -> str:
    """Write a TOML string; JSON has the same form."""
    return json.dumps(text, ensure_ascii=False)
