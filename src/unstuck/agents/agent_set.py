"""Edge: The agents of one run, as commands without a shell: any command line, the scripted one, and coding agents by their manifests.

Which agent a name stands for, those that the user lists, and those that the plan names for single tasks.
"""

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import NoReturn

from unstuck.agents import scripted_agent
from unstuck.agents.assignment import Agent, Assignment
from unstuck.agents.claims import approach, asks, claim
from unstuck.agents.manifests import catalog, how_to_log_in, logged_in, manifest, permission
from unstuck.agents.output_formats import formats, read_files
from unstuck.agents.output_streams import gist
from unstuck.model.config import AgentConfig, Config
from unstuck.model.errors import BadUsage, Unavailable
from unstuck.model.outcome import ENDED_BY_US, KILLED_BY_US, Ended, Outcome
from unstuck.model.plan import Plan
from unstuck.process.command import Command, Dialogue


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
    return re.sub("|".join(map(re.escape, places)), lambda found: places[found[0]], argument)


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
    return ScriptedAgent(name, (sys.executable, "-I", "-S", scripted_agent.__file__, str(script.resolve())))


def check(script: Path) -> None:
    """Refuse a script that cannot be read, or that has a step which cannot be played."""
    try:
        tasks = scripted_agent.load(script)
    except (OSError, ValueError) as error:
        raise BadUsage(
            f"The agent's script {script} cannot be read: {getattr(error, 'strerror', None) or error}.",
            hint="Name a file; it is TOML, or JSON if it ends in .json.",
        ) from error
    for task, attempts in tasks.items():
        for step in (step for attempt in attempts for steps in scripted_agent.sessions(attempt) for step in steps):
            if not step.keys() & scripted_agent.PLAY.keys():
                raise BadUsage(
                    f"The script of task {task} has an unknown step {dict(step)}.",
                    hint=f"Steps are: {', '.join(scripted_agent.PLAY)}.",
                )


LONGEST_ARGUMENT = 120_000
"""Bytes; the kernel takes a little more in one argument."""
FAILED_CALLS = 3
INPUT_CHARS = 200
OUR_SIGNAL = -9
RESULT = b'"type":"result"'
"""The last word of a session that takes messages; inside of any text its quotes would be escaped."""


@dataclass(frozen=True, slots=True)
class CodingAgent:
    """One known coding agent."""

    name: str
    manifest: AgentConfig

    @property
    def reports_cost(self) -> bool:
        return "cost" in self.manifest.capabilities

    @property
    def login(self) -> str:
        return how_to_log_in(self.manifest)

    def command(self, assignment: Assignment) -> Command:
        """Call it with the brief, in the session to continue if there is one."""
        manifest, brief = self.manifest, assignment.brief
        if manifest.prompt and len(brief.encode(errors="replace")) > LONGEST_ARGUMENT:
            brief = f"Read the file {assignment.brief_file} and do what it says."
        places = {"{brief}": brief, "{session}": assignment.resume, "{worktree}": str(assignment.worktree)}
        parts = [*manifest.arguments, *permission(manifest)]
        parts += manifest.resume if assignment.resume else ()
        parts += manifest.steer or manifest.prompt
        return Command(
            argv=(manifest.program, *(filled(part, places) for part in parts)),
            cwd=assignment.worktree,
            log=assignment.log,
            env={key: value for key, value in manifest.environment.items() if key not in os.environ},
            writes=manifest.writes,
            stdin=phrase(brief) if manifest.steer else b"" if manifest.prompt else brief.encode(errors="replace"),
            dialogue=Dialogue(end_mark=RESULT, encode=phrase) if manifest.steer else None,
            quiet=manifest.quiet,
            gist=gist,
            transcript=assignment.transcript,
        )

    def outcome(self, ended: Ended, assignment: Assignment) -> Outcome:
        """Read the session's transcript; how the process ended is only one of the facts."""
        if ended.ending == "not_started":
            return Outcome(ended=ended)
        stderr = assignment.transcript.with_name(f"{assignment.transcript.name}.err")
        found = read_files(
            self.manifest.output, assignment.transcript, stderr, code=_code(ended), meanings=self.manifest.exit_codes
        )
        session = (found.session or assignment.resume) if self.manifest.resume and not found.lost else ""
        failed = [replace(call, input=call.input[:INPUT_CHARS]) for call in found.tools if call.ok is False]
        told = {one.name: getattr(found, one.name) for one in fields(found) if one.name != "tools"}
        return Outcome(**{**told, "ended": ended, "session": session, "failed": tuple(failed[-FAILED_CALLS:])})

    @property
    def permission(self) -> tuple[str, ...]:
        """The flags with which it works without asking: a person should know them."""
        return permission(self.manifest)


def phrase(text: str) -> bytes:
    """Write a message as Claude Code reads it on stdin."""
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    return json.dumps({"type": "user", "message": message}).encode() + b"\n"


def _code(ended: Ended) -> int | None:
    if ended.ending in (*KILLED_BY_US, *ENDED_BY_US):
        return OUR_SIGNAL
    return -ended.signal if ended.signal else ended.exit_code


# --- who works in a run


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
    if known is not None and known.program and known.output not in formats():
        raise BadUsage(
            f"agents.{name}.output: there is no reader for {known.output!r}.", hint=f"Formats: {', '.join(formats())}."
        )
    if known is not None and known.program:
        found: CommandAgent | CodingAgent = CodingAgent(name, known)
    else:
        found = split(name, known.command) if known else split(name, name)
        found = replace(found, writes=known.writes if known else ())
    program = found.manifest.program if isinstance(found, CodingAgent) else found.argv[0]
    place = next((folder for folder in (Path.cwd(), root) if shutil.which(folder / program)), None)
    if isinstance(found, CommandAgent) and "/" in program and place is not None:
        return replace(found, named_from=place)
    if here and shutil.which(program) is None:
        raise Unavailable(
            f"The agent {program!r} is {'no program that can be run' if '/' in program else 'not on PATH'}.",
            hint="Install it, or name another; `unstuck agents` lists those that are known.",
        )
    return found


def first_found(config: Config) -> tuple[str, ...]:
    """Return the first known agent that is on PATH: what is used where nobody names one."""
    known = {**catalog(), **{name: found for name in config.agents if (found := manifest(name, config.agents))}}
    return next(((name,) for name, found in known.items() if found.program and shutil.which(found.program)), ())


def no_agent() -> NoReturn:
    raise Unavailable(
        "No agent is named, and none that unstuck knows is on PATH.",
        hint="Name one with --agent 'COMMAND', or as `agent = [...]` in unstuck.toml; `unstuck init` proposes one.",
    )
