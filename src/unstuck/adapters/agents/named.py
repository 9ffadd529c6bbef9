"""Find the agent that a name stands for: one of the configuration, a script, or a command line."""

import shutil
from pathlib import Path
from typing import NoReturn

from unstuck.adapters.agents.command import CommandAgent, split
from unstuck.adapters.agents.scripted import scripted
from unstuck.config import Config
from unstuck.errors import Unavailable

SCRIPT = "scripted:"


def agent(name: str, config: Config, root: Path) -> CommandAgent:
    """Return the agent of that name; one that cannot be started is refused before anything begins."""
    if name.startswith(SCRIPT):
        return scripted(name, Path(name.removeprefix(SCRIPT)))
    own = config.agents.get(name)
    if own is not None and own.script:
        return scripted(name, root / own.script)
    found = split(name, own.command if own is not None else name)
    if shutil.which(found.argv[0]) is None:
        raise Unavailable(
            f"The agent {found.argv[0]!r} is not on PATH.", hint="Install it, or name another with --agent."
        )
    return found


def no_agent() -> NoReturn:
    raise Unavailable(
        "No agent is named.",
        hint="Name one with --agent 'COMMAND', or as `agent = [...]` in unstuck.toml; `unstuck init` proposes one.",
    )
