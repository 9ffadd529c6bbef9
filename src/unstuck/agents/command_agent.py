"""Any command line as an agent: the brief on stdin and in a file, placeholders replaced per argument, no shell."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from unstuck.agents.claims import approach, claim
from unstuck.errors import BadUsage
from unstuck.journal import Ended, Outcome
from unstuck.ports import Assignment, Command


@dataclass(frozen=True, slots=True)
class CommandAgent:
    """An agent that is a command. What it prints is its claim."""

    name: str
    argv: tuple[str, ...]
    reports_cost: bool = False
    named_from: Path | None = None
    """The folder from which its program was named by a path."""

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
        )

    def outcome(self, ended: Ended, assignment: Assignment) -> Outcome:  # noqa: ARG002  # the port's signature
        return Outcome(ended=ended, claim=claim(ended), approach=approach(ended.tail))


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
