"""The agents of one run: those that the user lists, and those that the plan names for single tasks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unstuck.agents.coding import CodingAgent
from unstuck.agents.manifests import manifest
from unstuck.agents.named import agent, no_agent
from unstuck.config import Config
from unstuck.errors import Unavailable
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


def gather(names: Sequence[str], plan: Plan, config: Config, root: Path, *, budget_usd: float | None) -> Crew:
    """Find all agents. One that the user lists must be here; what a plan names is never run as a command."""
    if not names:
        no_agent()
    agents: dict[str, Agent] = {name: agent(name, config, root) for name in names}
    absent: list[str] = []
    for name in dict.fromkeys(task.agent for task in plan.tasks if task.agent and task.agent not in agents):
        try:
            agents |= {name: agent(name, config, root)} if manifest(name, config.agents) else {}
        except Unavailable as error:
            absent.append(f"The plan names the agent {name} for a task: {error.message} Another one takes it.")
    return Crew(agents=agents, remarks=(*absent, *_flags(agents), *_unpriced(agents, budget_usd)))


def _flags(agents: Mapping[str, Agent]) -> Iterator[str]:
    """Say with which flags coding agents work without asking."""
    for name, one in agents.items():
        if isinstance(one, CodingAgent) and one.permission:
            yield f"{name} works without asking: {' '.join(one.permission)}"


def _unpriced(agents: Mapping[str, Agent], budget_usd: float | None) -> Iterator[str]:
    """Say whose costs a budget cannot see: unknown is not nothing."""
    silent = [name for name, one in agents.items() if not one.reports_cost]
    if budget_usd is not None and silent:
        yield f"The budget of ${budget_usd:.2f} cannot be kept for {', '.join(silent)}: it does not say what it costs."
