"""Write a first `unstuck.toml`: what was found here, as settings to read through."""

import json
import time
from dataclasses import dataclass
from pathlib import Path

from unstuck.config_file import NAME
from unstuck.errors import BadUsage
from unstuck.process import put
from unstuck.tools.detecting import Stack, agents_on_path, detect


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstConfig:
    path: Path
    text: str
    notes: tuple[str, ...]


def write_config(root: Path, *, force: bool) -> FirstConfig:
    """Write the file; one that is there is refused, or kept beside the new one."""
    path = root / NAME
    if path.exists():
        if not force:
            raise BadUsage(
                f"{path} is there already.", hint="Edit it, or replace it with --force: the old one is kept beside it."
            )
        path.rename(path.with_name(f"{NAME}.{time.strftime('%Y%m%d-%H%M%S')}.old"))
    stack = detect(root)
    text = render(stack, agents_on_path())
    put(path, text)
    return FirstConfig(path=path, text=text, notes=stack.notes)


def render(stack: Stack, agents: tuple[str, ...]) -> str:
    """Return the text; what was not found stands there as a comment."""
    lines = ["# How unstuck works on this repository. All keys: docs/reference/configuration.md", ""]
    lines += [f"# On PATH: {', '.join(agents)}." if agents else "# No known agent was found on PATH."]
    lines += [
        f"# agent = [{_quoted(agents[0] if agents else 'mine')}]    # the first known agent on PATH is used without it",
        "# [agents.mine]",
        "# command = 'my-agent --headless'    # the brief comes on stdin; {brief} is its file",
        "",
    ]
    lines += ["[checks]    # must hold after every task, whatever the task's own Verify says"]
    lines += [f"{check.kind} = {_quoted(check.command)}" for check in stack.checks] or ["# test = 'make test'"]
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
