"""Edge: Any command line as an agent, and the scripted one: the brief on stdin and in a file, placeholders replaced per argument, no shell."""

import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from unstuck.agents import player
from unstuck.agents.claims import approach, asks, claim
from unstuck.errors import BadUsage
from unstuck.journal import Ended, Outcome
from unstuck.ports import Assignment, Command


@dataclass(frozen=True, slots=True)
class CommandAgent:
    """An agent that is a command. What it prints is its claim."""

    name: str
    argv: tuple[str, ...]
    reports_cost: bool = False
    login: str = ""
    named_from: Path | None = None
    """The folder from which its program was named by a path."""
    writes: tuple[str, ...] = ()
    """What it writes outside of its slot, as its user says."""

    def command(self, assignment: Assignment) -> Command:
        places = {
            "{task}": assignment.task,
            "{brief}": str(assignment.brief_file),
            "{worktree}": str(assignment.worktree),
            "{attempt}": str(assignment.attempt),
        }
        program, *arguments = self.argv
        if self.named_from is not None and not (assignment.worktree / program).exists():
            program = str(self.named_from / program)  # the user named it from there, and git does not carry it
        return Command(
            argv=tuple(filled(argument, places) for argument in (program, *arguments)),
            cwd=assignment.worktree,
            log=assignment.log,
            stdin=assignment.brief.encode(errors="replace"),
            writes=self.writes,
        )

    def outcome(self, ended: Ended, assignment: Assignment) -> Outcome:  # noqa: ARG002  # the port's signature
        question = asks(ended.tail) if ended.ok else ""
        outcome = Outcome(ended=ended, claim=claim(ended), approach=approach(ended.tail))
        return replace(outcome, end="asks", message=ended.tail) if question else outcome


def split(name: str, line: str) -> CommandAgent:
    """Make an agent from a command line, split as a shell would and run without one."""
    try:
        argv = tuple(shlex.split(line))
    except ValueError as error:
        raise BadUsage(
            f"The agent's command line cannot be split ({error}): {line}", hint="Check its quotes."
        ) from error
    if not argv:
        raise BadUsage(
            "The agent's command line is empty.", hint="Give a command, such as --agent 'my-agent --headless'."
        )
    return CommandAgent(name, argv)


def filled(argument: str, places: Mapping[str, str]) -> str:
    """Replace the placeholders in one pass, so that a value is never searched for placeholders itself."""
    parts: list[str] = []
    while argument:
        found = min(((argument.find(name), name) for name in places if name in argument), default=None)
        if found is None:
            break
        at, name = found
        parts += [argument[:at], places[name]]
        argument = argument[at + len(name) :]
    return "".join([*parts, argument])


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
