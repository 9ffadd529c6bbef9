"""The agents of one run: those of the user and those of the plan's tasks."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from unstuck.agents.command_agents import Agent, CodingAgent, CommandAgent, command_agent, load_scripted_agent
from unstuck.agents.manifests import agent_catalog, logged_in, manifest
from unstuck.agents.output_formats import output_formats
from unstuck.model.config import Config
from unstuck.model.errors import BadUsage, Unavailable
from unstuck.model.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSet:
    """The agents of a run, with remarks for the user about them."""

    agents: Mapping[str, Agent]
    remarks: tuple[str, ...] = ()

    def without_missing_agents(self, plan: Plan) -> Plan:
        """Return the plan without the agents that it names and this set does not have."""
        tasks = (replace(task, agent=task.agent if task.agent in self.agents else "") for task in plan.tasks)
        return replace(plan, tasks=tuple(tasks))


def gather_agents(
    names: Sequence[str], plan: Plan, config: Config, root: Path, *, budget_usd: float | None, here: bool = True
) -> AgentSet:
    """Return all agents of a run. Raise Unavailable if one that the user lists cannot start.

    A name in a plan never runs as a command. With `here` false other machines do the work, so that agents may be missing
    on this one.
    """
    if not names:
        raise_no_agent()
    agents: dict[str, Agent] = {name: find_agent(name, config, root, here=here) for name in names}
    missing: list[str] = []
    for name in dict.fromkeys(task.agent for task in plan.tasks if task.agent and task.agent not in agents):
        try:
            agents |= {name: find_agent(name, config, root, here=here)} if manifest(name, config.agents) else {}
        except Unavailable as error:
            missing.append(f"The plan names the agent {name} for a task: {error.message} Another one takes it.")
    login = login_remarks(agents) if here else ()
    return AgentSet(
        agents=agents,
        remarks=(*missing, *_permission_remarks(agents), *login, *_budget_remarks(agents, budget_usd)),
    )


def _permission_remarks(agents: Mapping[str, Agent]) -> Iterator[str]:
    """Yield the flags with which each coding agent works without asking."""
    for name, agent in agents.items():
        if isinstance(agent, CodingAgent) and agent.permission:
            yield f"{name} works without asking: {' '.join(agent.permission)}"


def login_remarks(agents: Mapping[str, Agent]) -> Iterator[str]:
    """Yield a remark for each agent without a sign of a login: a run would fail hours later."""
    for name, agent in agents.items():
        if isinstance(agent, CodingAgent) and logged_in(agent.manifest, os.environ, Path.home()) is False:
            yield f"{name} shows no sign of a login. To log in: {agent.login}"


def _budget_remarks(agents: Mapping[str, Agent], budget_usd: float | None) -> Iterator[str]:
    """Yield a remark about the agents whose costs a budget cannot see."""
    silent = [name for name, agent in agents.items() if not agent.reports_cost]
    if budget_usd is not None and silent:
        yield f"The budget of ${budget_usd:.2f} cannot be kept for {', '.join(silent)}: it does not say what it costs."


SCRIPT_PREFIX = "scripted:"


def find_agent(name: str, config: Config, root: Path, *, here: bool = True) -> CommandAgent | CodingAgent:
    """Return the agent of that name. Raise an error before the run begins if it cannot start."""
    if name.startswith(SCRIPT_PREFIX):
        return load_scripted_agent(name, Path(name.removeprefix(SCRIPT_PREFIX)))
    known_agent = manifest(name, config.agents)
    if known_agent is not None and known_agent.script:
        return replace(load_scripted_agent(name, root / known_agent.script), writes=known_agent.writes)
    if known_agent is not None and known_agent.program:
        if known_agent.output not in output_formats():
            raise BadUsage(
                f"agents.{name}.output: there is no reader for {known_agent.output!r}.",
                hint=f"Formats: {', '.join(output_formats())}.",
            )
        _require_program(known_agent.program, here=here)
        return CodingAgent(name, known_agent)
    agent = command_agent(name, known_agent.command if known_agent else name)
    agent = replace(agent, writes=known_agent.writes if known_agent else ())
    program = agent.argv[0]
    folder = next((folder for folder in (Path.cwd(), root) if shutil.which(folder / program)), None)
    if "/" in program and folder is not None:
        return replace(agent, program_folder=folder)
    _require_program(program, here=here)
    return agent


def _require_program(program: str, *, here: bool) -> None:
    """Raise Unavailable if the program cannot run on this machine, unless other machines do the work."""
    if here and shutil.which(program) is None:
        raise Unavailable(
            f"The agent {program!r} is {'no program that can be run' if '/' in program else 'not on PATH'}.",
            hint="Install it, or name another; `unstuck agents` lists those that are known.",
        )


def first_agent_on_path(config: Config) -> tuple[str, ...]:
    """Return the first known agent on PATH, which is the default agent, or nothing."""
    own = {name: agent for name in config.agents if (agent := manifest(name, config.agents))}
    agents = {**agent_catalog(), **own}
    return next(((name,) for name, agent in agents.items() if agent.program and shutil.which(agent.program)), ())


def raise_no_agent() -> NoReturn:
    raise Unavailable(
        "No agent is named, and none that unstuck knows is on PATH.",
        hint="Name one with --agent 'COMMAND', or as `agent = [...]` in unstuck.toml; `unstuck init` proposes one.",
    )
