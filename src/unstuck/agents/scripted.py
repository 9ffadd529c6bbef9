r"""An agent that plays a script: edits, outputs, exits, hangs and crashes, for demos, documentation and tests.

The script is TOML or JSON. Each task has a list of attempts, each attempt a list of steps; the last attempt of the
list is played again when there are more:

    [[task."1.1"]]
    steps = [{ print = "Working…" }, { write = "a.py", text = "x = 1\n" }, { exit = 0 }]

An attempt that goes on in new sessions has a list of steps for each: `sessions = [[…], […]]`. It runs as a process of
its own, like every agent.
"""

import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from unstuck.agents import player
from unstuck.agents.command_agent import CommandAgent
from unstuck.errors import BadUsage
from unstuck.journal import Ended, Outcome
from unstuck.ports import Assignment

COST = re.compile(r"^COST: ([0-9.]+) ?(\S*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ScriptedAgent(CommandAgent):
    """A command agent that says what a session costs, if its script does."""

    reports_cost: bool = True

    def outcome(self, ended: Ended, assignment: Assignment) -> Outcome:
        outcome = CommandAgent.outcome(self, ended, assignment)
        bills = COST.findall(ended.tail)
        return replace(outcome, cost_usd=float(bills[-1][0]), session=bills[-1][1]) if bills else outcome


def scripted(name: str, script: Path) -> ScriptedAgent:
    """Return the agent that plays the script; a script that cannot be played is refused here."""
    check(script)
    return ScriptedAgent(name, (sys.executable, "-I", "-S", player.__file__, str(script.resolve())))


def check(script: Path) -> None:
    """Refuse a script that cannot be read, or that has a step which cannot be played."""
    try:
        tasks = player.load(script)
    except (OSError, ValueError) as error:
        raise BadUsage(
            f"The agent's script {script} cannot be read: {getattr(error, 'strerror', None) or error}.",
            hint="Name a file; it is TOML, or JSON if it ends in .json.",
        ) from error
    for task, attempts in tasks.items():
        for step in (step for attempt in attempts for steps in player.sessions(attempt) for step in steps):
            if not step.keys() & player.PLAY.keys():
                raise BadUsage(
                    f"The script of task {task} has an unknown step {dict(step)}.",
                    hint=f"Steps are: {', '.join(player.PLAY)}.",
                )
