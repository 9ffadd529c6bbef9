"""Edge: The agents of one run: which agent a name stands for, those that the user lists, and those that the plan names for single tasks."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from unstuck.agents.command_agent import CodingAgent, CommandAgent, scripted, split
from unstuck.agents.formats import formats
from unstuck.agents.manifests import catalog, logged_in, manifest
from unstuck.config import AgentConfig, Config
from unstuck.errors import BadUsage, Unavailable
from unstuck.plans import Plan
from unstuck.ports import Agent


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """Who works in a run, and what a person should know about them before it starts."""

    agents: Mapping[str, Agent]
    remarks: tuple[str, ...] = ()

    def fitted(self, plan: Plan) -> Plan:
        """Return the plan without agents that are not here."""
        tasks = (replace(task, agent=task.agent if task.agent in self.agents else "") for task in plan.tasks)
        return replace(plan, tasks=tuple(tasks))


def gather(
    names: Sequence[str], plan: Plan, config: Config, root: Path, *, budget_usd: float | None, here: bool = True
) -> Crew:
    """Find all agents. One that the user lists must be here; what a plan names is never run as a command.

    Where other machines do the work, `here` is false: who is not on this one is not missed.
    """
    if not names:
        no_agent()
    agents: dict[str, Agent] = {name: agent(name, config, root, here=here) for name in names}
    absent: list[str] = []
    for name in dict.fromkeys(task.agent for task in plan.tasks if task.agent and task.agent not in agents):
        try:
            agents |= {name: agent(name, config, root, here=here)} if manifest(name, config.agents) else {}
        except Unavailable as error:
            absent.append(f"The plan names the agent {name} for a task: {error.message} Another one takes it.")
    return Crew(
        agents=agents,
        remarks=(*absent, *_flags(agents), *(without_login(agents) if here else ()), *_unpriced(agents, budget_usd)),
    )


def _flags(agents: Mapping[str, Agent]) -> Iterator[str]:
    """Say with which flags coding agents work without asking."""
    for name, one in agents.items():
        if isinstance(one, CodingAgent) and one.permission:
            yield f"{name} works without asking: {' '.join(one.permission)}"


def without_login(agents: Mapping[str, Agent]) -> Iterator[str]:
    """Say who shows no sign of a login, before a night is spent on finding out."""
    for name, one in agents.items():
        if isinstance(one, CodingAgent) and logged_in(one.manifest, os.environ, Path.home()) is False:
            yield f"{name} shows no sign of a login. To log in: {one.login}"


def _unpriced(agents: Mapping[str, Agent], budget_usd: float | None) -> Iterator[str]:
    """Say whose costs a budget cannot see: unknown is not nothing."""
    silent = [name for name, one in agents.items() if not one.reports_cost]
    if budget_usd is not None and silent:
        yield f"The budget of ${budget_usd:.2f} cannot be kept for {', '.join(silent)}: it does not say what it costs."


SCRIPT = "scripted:"


def agent(name: str, config: Config, root: Path, *, here: bool = True) -> CommandAgent | CodingAgent:
    """Return the agent of that name; one that cannot be started is refused before anything begins."""
    if name.startswith(SCRIPT):
        return scripted(name, Path(name.removeprefix(SCRIPT)))
    known = manifest(name, config.agents)
    if known is not None and known.script:
        return replace(scripted(name, root / known.script), writes=known.writes)
    if known is not None and known.program:
        found: CommandAgent | CodingAgent = _coding(name, known)
    else:
        found = split(name, known.command) if known else split(name, name)
        found = replace(found, writes=known.writes if known else ())
    program = found.manifest.program if isinstance(found, CodingAgent) else found.argv[0]
    place = next((folder for folder in (Path.cwd(), root) if shutil.which(folder / program)), None)
    if isinstance(found, CommandAgent) and "/" in program and place is not None:
        return replace(found, named_from=place)
    if here and shutil.which(program) is None:
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
    if known.output not in formats():
        raise BadUsage(
            f"agents.{name}.output: there is no reader for {known.output!r}.", hint=f"Formats: {', '.join(formats())}."
        )
    return CodingAgent(name, known)


def no_agent() -> NoReturn:
    raise Unavailable(
        "No agent is named, and none that unstuck knows is on PATH.",
        hint="Name one with --agent 'COMMAND', or as `agent = [...]` in unstuck.toml; `unstuck init` proposes one.",
    )
