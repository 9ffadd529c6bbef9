"""The agents of a run: any command, the scripted agent, and coding agents by their manifests."""

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import NoReturn, Protocol

from unstuck.agents import scripted_agent
from unstuck.agents.claims import blocking_question, last_approach, session_claim
from unstuck.agents.manifests import agent_catalog, how_to_log_in, logged_in, manifest, permission
from unstuck.agents.output_formats import output_formats, read_recorded_session
from unstuck.agents.printed_json import gist
from unstuck.model.config import AgentConfig, Config
from unstuck.model.errors import BadUsage, Unavailable
from unstuck.model.outcome import ENDED_BY_US, KILLED_BY_US, Ended, Outcome
from unstuck.model.plan import Plan
from unstuck.process.command import Command, Dialogue


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Everything that an agent needs to start one session."""

    run: str
    task: str
    attempt: int
    session: int
    slot: int
    worktree: Path
    brief: str
    brief_file: Path
    log: Path
    transcript: Path
    """The file for the output of an agent whose output is read."""
    resume: str = ""
    """The agent's own name for the session to continue."""


class Agent(Protocol):
    """An agent that works on tasks, one session at a time."""

    @property
    def name(self) -> str: ...

    @property
    def reports_cost(self) -> bool:
        """True if its outcomes state the cost of a session."""

    @property
    def login(self) -> str:
        """Instructions for the user to log the agent in, or an empty string."""

    def command(self, assignment: Assignment) -> Command:
        """Return the command that does the work."""

    def outcome(self, ended: Ended, assignment: Assignment) -> Outcome:
        """Read what the agent says about its work and its end. After a crash this may run again."""


@dataclass(frozen=True, slots=True)
class CommandAgent:
    """An agent that is any command. Its output is its claim."""

    name: str
    argv: tuple[str, ...]
    reports_cost: bool = False
    login: str = ""
    program_folder: Path | None = None
    """The folder from which the user named the program by a path."""
    writes: tuple[str, ...] = ()
    """The paths outside of its slot that it writes, as the user says."""

    def command(self, assignment: Assignment) -> Command:
        values = {
            "{task}": assignment.task,
            "{brief}": str(assignment.brief_file),
            "{worktree}": str(assignment.worktree),
            "{attempt}": str(assignment.attempt),
        }
        program, *arguments = self.argv
        if self.program_folder is not None and not (assignment.worktree / program).exists():
            program = str(self.program_folder / program)  # git does not carry it into the worktree
        return Command(
            argv=tuple(fill_placeholders(argument, values) for argument in (program, *arguments)),
            cwd=assignment.worktree,
            log=assignment.log,
            stdin=assignment.brief.encode(errors="replace"),
            writes=self.writes,
        )

    def outcome(self, ended: Ended, assignment: Assignment) -> Outcome:  # noqa: ARG002  # the protocol's signature
        question = blocking_question(ended.tail) if ended.ok else ""
        outcome = Outcome(ended=ended, claim=session_claim(ended), approach=last_approach(ended.tail))
        return replace(outcome, end="asks", message=ended.tail) if question else outcome


def command_agent(name: str, line: str) -> CommandAgent:
    """Return the agent of a command line, which is split as a shell would and runs without one."""
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


def fill_placeholders(argument: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders in one pass, so that a value is never searched for placeholders."""
    return re.sub("|".join(map(re.escape, values)), lambda match: values[match[0]], argument)


COST_LINE = re.compile(r"^COST: ([0-9.]+) ?(\S*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ScriptedAgent(CommandAgent):
    """A command agent that runs a script. Its script can state the cost of a session."""

    reports_cost: bool = True

    def outcome(self, ended: Ended, assignment: Assignment) -> Outcome:
        outcome = CommandAgent.outcome(self, ended, assignment)
        costs = COST_LINE.findall(ended.tail)
        return replace(outcome, cost_usd=float(costs[-1][0]), session=costs[-1][1]) if costs else outcome


def load_scripted_agent(name: str, script: Path) -> ScriptedAgent:
    """Return the agent that runs a script. Raise BadUsage for a script that cannot run."""
    check_script(script)
    return ScriptedAgent(name, (sys.executable, "-I", "-S", scripted_agent.__file__, str(script.resolve())))


def check_script(script: Path) -> None:
    """Raise BadUsage for a script that cannot be read, or that has an unknown step."""
    try:
        tasks = scripted_agent.load(script)
    except (OSError, ValueError) as error:
        raise BadUsage(
            f"The agent's script {script} cannot be read: {getattr(error, 'strerror', None) or error}.",
            hint="Name a file; it is TOML, or JSON if it ends in .json.",
        ) from error
    for task, attempts in tasks.items():
        for step in scripted_agent.all_steps(attempts):
            if not step.keys() & scripted_agent.STEP_ACTIONS.keys():
                raise BadUsage(
                    f"The script of task {task} has an unknown step {dict(step)}.",
                    hint=f"Steps are: {', '.join(scripted_agent.STEP_ACTIONS)}.",
                )


LONGEST_ARGUMENT_BYTES = 120_000
"""The kernel accepts a little more in one argument."""
MAX_FAILED_CALLS = 3
INPUT_CHARS = 200
SUPERVISOR_SIGNAL = -9
"""The exit code of a session that the supervisor ended."""
RESULT_EVENT = b'"type":"result"'
"""The last event of a session that reads messages from stdin. Inside a text its quotes would be escaped."""


@dataclass(frozen=True, slots=True)
class CodingAgent:
    """A coding agent with a manifest."""

    name: str
    manifest: AgentConfig

    @property
    def reports_cost(self) -> bool:
        return "cost" in self.manifest.capabilities

    @property
    def login(self) -> str:
        return how_to_log_in(self.manifest)

    @property
    def permission(self) -> tuple[str, ...]:
        """The flags that let it work without asking. The user should know them."""
        return permission(self.manifest)

    def command(self, assignment: Assignment) -> Command:
        """Return the command with the brief. It continues a session if the assignment names one."""
        manifest, brief = self.manifest, assignment.brief
        if manifest.prompt and len(brief.encode(errors="replace")) > LONGEST_ARGUMENT_BYTES:
            brief = f"Read the file {assignment.brief_file} and do what it says."
        values = {"{brief}": brief, "{session}": assignment.resume, "{worktree}": str(assignment.worktree)}
        arguments = [*manifest.arguments, *permission(manifest)]
        arguments += manifest.resume if assignment.resume else ()
        arguments += manifest.steer or manifest.prompt
        return Command(
            argv=(manifest.program, *(fill_placeholders(argument, values) for argument in arguments)),
            cwd=assignment.worktree,
            log=assignment.log,
            env={name: value for name, value in manifest.environment.items() if name not in os.environ},
            writes=manifest.writes,
            stdin=self._stdin(brief),
            dialogue=Dialogue(end_mark=RESULT_EVENT, encode=user_message) if manifest.steer else None,
            quiet=manifest.quiet,
            gist=gist,
            transcript=assignment.transcript,
        )

    def _stdin(self, brief: str) -> bytes:
        if self.manifest.steer:
            return user_message(brief)
        return b"" if self.manifest.prompt else brief.encode(errors="replace")

    def outcome(self, ended: Ended, assignment: Assignment) -> Outcome:
        """Read the transcript of the session. The end of the process is only one of the facts."""
        if ended.ending == "not_started":
            return Outcome(ended=ended)
        manifest, stdout = self.manifest, assignment.transcript
        stderr = stdout.with_name(f"{stdout.name}.err")
        transcript = read_recorded_session(
            manifest.output, stdout, stderr, code=_exit_code(ended), meanings=manifest.exit_codes
        )
        can_continue = bool(manifest.resume) and not transcript.lost
        session = (transcript.session or assignment.resume) if can_continue else ""
        failed = [replace(call, input=call.input[:INPUT_CHARS]) for call in transcript.tools if call.ok is False]
        names = (field.name for field in fields(transcript) if field.name != "tools")
        facts = {name: getattr(transcript, name) for name in names}
        return Outcome(**{**facts, "ended": ended, "session": session, "failed": tuple(failed[-MAX_FAILED_CALLS:])})


def user_message(text: str) -> bytes:
    """Return a message as Claude Code reads it on stdin."""
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    return json.dumps({"type": "user", "message": message}).encode() + b"\n"


def _exit_code(ended: Ended) -> int | None:
    if ended.ending in (*KILLED_BY_US, *ENDED_BY_US):
        return SUPERVISOR_SIGNAL
    return -ended.signal if ended.signal else ended.exit_code


# --- the agents of one run


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
