"""Edge: the MCP server: its tools with their schemas and descriptions, and its resources; a clerk does the work."""

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from unstuck import __version__
from unstuck.diagnosis import Evidence
from unstuck.errors import UnstuckError
from unstuck.mcp.clerk import Clerk

LONGEST, LINE = 4_000_000, 2_000
INSTRUCTIONS = """Recovery for coding agents. After a failing tool call: `diagnose` says what it means, `remedy` gives ways out that
fit your tools, `report_step` tells what came of one. Around a task: `attempt_history` before an attempt, `record_attempt`
after it; its answer is the decision. `ask_person` when nothing is left to try."""

Output = Annotated[str, Field(max_length=LONGEST, description="What the call printed, stdout; its end if it is long.")]
Errors = Annotated[str, Field(max_length=LONGEST, description="What it printed to stderr, where that is apart.")]
Code = Annotated[int | None, Field(description="Its exit code; leave it out where there is none.")]
Command = Annotated[str, Field(max_length=100_000, description="The command line that was run.")]
Tool = Annotated[str, Field(max_length=200, description="The tool that was called, e.g. Bash or read_file.")]
TimedOut = Annotated[bool, Field(description="Whether it ran out of time.")]
TaskName = Annotated[str, Field(max_length=64, description="The task's id, e.g. 1.3.")]
Approach = Annotated[str, Field(max_length=LINE, description="One line: how this attempt goes about the task.")]
Arguments = Annotated[dict[str, Any] | None, Field(description="The arguments of the failed tool call.")]
Schema = Annotated[dict[str, Any] | None, Field(description="The JSON schema of that tool's arguments.")]
Tools = Annotated[
    list[str] | None, Field(max_length=500, description="The tools you have; ways that need others are left out.")
]
Strategy = Annotated[str, Field(max_length=100, description="The `strategy` of one of the plans that `remedy` gave.")]
Error = Annotated[str, Field(max_length=LINE, description="What goes wrong.")]
Plan = Annotated[
    str, Field(max_length=LINE, description="A tasks.md in the workspace to write it into; empty: only return it.")
]
Question = Annotated[
    str, Field(max_length=LINE, description="What you need to know, so that it can be answered in a line.")
]

LOOKS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
Given = ParamSpec("Given")
Made = TypeVar("Made")


def serve(root: Path, profile: str) -> None:
    """Serve one workspace on stdin and stdout until the client goes."""
    offer(Clerk(root, profile)).run("stdio")


def offer(clerk: Clerk) -> MCPServer[Any]:
    """Return the server with everything that it offers."""
    server: MCPServer[Any] = MCPServer("unstuck", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")
    _about_calls(server, clerk)
    _about_tasks(server, clerk)
    _resources(server, clerk)
    return server


def _about_calls(server: MCPServer[Any], clerk: Clerk) -> None:
    @server.tool(annotations=LOOKS, structured_output=True)
    @_told
    def diagnose(
        output: Output = "", stderr: Errors = "", exit_code: Code = None, command: Command = "", tool: Tool = "",
        timed_out: TimedOut = False,  # noqa: FBT002  # a tool's arguments have names
    ) -> dict[str, Any]:  # fmt: skip
        """Say what a failed call means: kind, blame, whether trying again can help, the decisive line, places and tests."""
        return clerk.diagnose(_evidence(output, stderr, exit_code, command, tool, timed_out=timed_out))

    @server.tool(annotations=LOOKS, structured_output=True)
    @_told
    def remedy(
        output: Output = "", stderr: Errors = "", exit_code: Code = None, command: Command = "", tool: Tool = "",
        timed_out: TimedOut = False, tools: Tools = None, arguments: Arguments = None, schema: Schema = None,  # noqa: FBT002  # as above
    ) -> dict[str, Any]:  # fmt: skip
        """Give ways out of a failed call, the likeliest first, each with concrete steps for your tools and its risk."""
        evidence = _evidence(output, stderr, exit_code, command, tool, timed_out=timed_out)
        return clerk.remedy(evidence, tools, arguments or {}, schema)

    @server.tool(annotations=WRITES, structured_output=True)
    @_told
    def report_step(
        strategy: Strategy,
        worked: Annotated[bool, Field(description="Whether the call succeeds now.")],  # as above
        seconds: Annotated[float, Field(description="How long it took, where known.", ge=0)] = 0.0,
        cost: Annotated[float, Field(description="What it cost in dollars, where known.", ge=0)] = 0.0,
    ) -> dict[str, Any]:
        """Tell what a way out brought: later remedies are ordered by it."""
        return clerk.report_step(strategy, worked=worked, seconds=seconds, cost=cost)


def _about_tasks(server: MCPServer[Any], clerk: Clerk) -> None:
    @server.tool(annotations=WRITES, structured_output=True)
    @_told
    def record_attempt(
        task: TaskName, approach: Approach,
        succeeded: Annotated[bool, Field(description="Whether the checks of the task pass.")],  # as above
        output: Output = "", stderr: Errors = "", exit_code: Code = None, command: Command = "",
        timed_out: TimedOut = False,  # noqa: FBT002  # as above
        commit: Annotated[str, Field(max_length=64, description="The commit, where it succeeded.")] = "",
    ) -> dict[str, Any]:  # fmt: skip
        """Record how an attempt at a task ended; the answer is the decision: what to do next, why, and hints for it."""
        evidence = _evidence(output, stderr, exit_code, command, "", timed_out=timed_out)
        return clerk.record_attempt(task, approach, evidence, succeeded=succeeded, commit=commit)

    @server.tool(annotations=LOOKS, structured_output=True)
    @_told
    def attempt_history(task: TaskName, approach: Approach = "") -> dict[str, Any]:
        """Return what was tried at a task, hints for the next attempt, and a warning if your approach repeats a failed one."""
        return clerk.attempt_history(task, approach)

    @server.tool(annotations=LOOKS, structured_output=True)
    @_told
    def decide(task: TaskName) -> dict[str, Any]:
        """Return the decision that stands after the last recorded attempt at a task."""
        return clerk.decide(task)

    @server.tool(annotations=WRITES, structured_output=True)
    @_told
    def create_fix_task(task: TaskName, error: Error, attempted_fix: Error = "", plan: Plan = "") -> dict[str, Any]:
        """Make a task that repairs a failed one, within limits, and write it into the plan."""
        return clerk.create_fix_task(task, error, attempted_fix, plan)

    @server.tool(annotations=LOOKS, structured_output=True)
    @_told
    def run_status() -> dict[str, Any]:
        """Say where every task of the supervised run stands, and which tasks wait for a person."""
        return clerk.run_status()

    @server.tool(annotations=WRITES, structured_output=True)
    @_told
    def ask_person(task: TaskName, question: Question) -> dict[str, Any]:
        """Leave a question for a person and mark the task stuck; the report lies in the workspace."""
        return clerk.ask_person(task, question)


def _resources(server: MCPServer[Any], clerk: Clerk) -> None:
    @server.resource("unstuck://status", mime_type="application/json", description="Where every task stands.")
    def status() -> str:
        return json.dumps(clerk.run_status())

    @server.resource("unstuck://reports/{task}", mime_type="text/markdown", description="The report of one task.")
    def report(task: str) -> str:
        try:
            return clerk.report(task)
        except UnstuckError as error:
            raise ResourceError(error.message) from error


def _evidence(output: str, stderr: str, exit_code: int | None, command: str, tool: str, *, timed_out: bool) -> Evidence:
    return Evidence(stdout=output, stderr=stderr, exit_code=exit_code, command=command, tool=tool, timed_out=timed_out)


def _told(tool: Callable[Given, Made]) -> Callable[Given, Made]:
    """Let the model read our own refusals; what else goes wrong stays in the server's log."""

    @wraps(tool)
    def told(*args: Given.args, **kwargs: Given.kwargs) -> Made:
        try:
            return tool(*args, **kwargs)
        except UnstuckError as error:
            raise ToolError(f"{error.message} {error.hint}".strip()) from error

    return told
