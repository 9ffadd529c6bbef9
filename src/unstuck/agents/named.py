"""Find the agent that a name stands for: a known coding agent, one of the configuration, a script, or a command line."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from unstuck.agents.coding import CodingAgent
from unstuck.agents.command_agent import CommandAgent, split
from unstuck.agents.manifests import catalog, manifest
from unstuck.agents.readers import FORMATS
from unstuck.agents.scripted import scripted
from unstuck.config import AgentConfig, Config
from unstuck.errors import BadUsage, Unavailable

SCRIPT = "scripted:"


def agent(name: str, config: Config, root: Path) -> CommandAgent | CodingAgent:
    """Return the agent of that name; one that cannot be started is refused before anything begins."""
    if name.startswith(SCRIPT):
        return scripted(name, Path(name.removeprefix(SCRIPT)))
    known = manifest(name, config.agents)
    if known is not None and known.script:
        return scripted(name, root / known.script)
    found = (
        _coding(name, known) if known is not None and known.program else split(name, known.command if known else name)
    )
    program = found.manifest.program if isinstance(found, CodingAgent) else found.argv[0]
    place = next((folder for folder in (Path.cwd(), root) if shutil.which(folder / program)), None)
    if isinstance(found, CommandAgent) and "/" in program and place is not None:
        return replace(found, named_from=place)
    if shutil.which(program) is None:
        raise Unavailable(
            f"The agent {program!r} is not on PATH.",
            hint="Install it, or name another; `unstuck agents` lists those that are known.",
        )
    return found


def first_found(config: Config) -> tuple[str, ...]:
    """Return the first known agent that is on PATH: what is used where nobody names one."""
    known = {**catalog(), **{name: found for name in config.agents if (found := manifest(name, config.agents))}}
    return next(((name,) for name, found in known.items() if found.program and shutil.which(found.program)), ())


def _coding(name: str, known: AgentConfig) -> CodingAgent:
    if known.output not in FORMATS:
        raise BadUsage(
            f"agents.{name}.output: there is no reader for {known.output!r}.", hint=f"Formats: {', '.join(FORMATS)}."
        )
    return CodingAgent(name, known)


def no_agent() -> NoReturn:
    raise Unavailable(
        "No agent is named, and none that unstuck knows is on PATH.",
        hint="Name one with --agent 'COMMAND', or as `agent = [...]` in unstuck.toml; `unstuck init` proposes one.",
    )
