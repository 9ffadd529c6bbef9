"""The MCP server that offers recovery tools to agents."""

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple, ParamSpec, TypeVar

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from unstuck import __version__
from unstuck.app.inspect import look
from unstuck.app.remedy_plan import judged, make_call
from unstuck.app.remedy_runs import hide_ours
from unstuck.diagnosis.evidence import Evidence
from unstuck.diagnosis.rulebook import as_json, open_rulebook
from unstuck.library.recovery import Recovery
from unstuck.model.errors import BadUsage, UnstuckError
from unstuck.model.plan import Insertion, Task
from unstuck.plans.plan_file import open_plan

MAX_OUTPUT_CHARS = 4_000_000
MAX_LINE_CHARS = 2_000
FILE = "recovery.jsonl"
INSTRUCTIONS = """Recovery for coding agents. After a failing tool call: `diagnose` says what it means, `remedy` gives ways out that
fit your tools, `report_step` tells what came of one. Around a task: `attempt_history` before an attempt, `record_attempt`
after it; its answer is the decision. `ask_person` when nothing is left to try."""

Output = Annotated[
    str, Field(max_length=MAX_OUTPUT_CHARS, description="What the call printed, stdout; its end if it is long.")
]
Errors = Annotated[
    str, Field(max_length=MAX_OUTPUT_CHARS, description="What it printed to stderr, where that is apart.")
]
Code = Annotated[int | None, Field(description="Its exit code; leave it out where there is none.")]
Command = Annotated[str, Field(max_length=100_000, description="The command line that was run.")]
Tool = Annotated[str, Field(max_length=200, description="The tool that was called, e.g. Bash or read_file.")]
TimedOut = Annotated[bool, Field(description="Whether it ran out of time.")]
TaskName = Annotated[str, Field(max_length=64, description="The task's id, e.g. 1.3.")]
Approach = Annotated[
    str, Field(max_length=MAX_LINE_CHARS, description="One line: how this attempt goes about the task.")
]
Arguments = Annotated[dict[str, Any] | None, Field(description="The arguments of the failed tool call.")]
Schema = Annotated[dict[str, Any] | None, Field(description="The JSON schema of that tool's arguments.")]
Tools = Annotated[
    list[str | dict[str, Any]] | None,
    Field(max_length=500, description="The tools you have, names or definitions; ways that need others are left out."),
]
Strategy = Annotated[str, Field(max_length=100, description="The `strategy` of one of the plans that `remedy` gave.")]
Error = Annotated[str, Field(max_length=MAX_LINE_CHARS, description="What goes wrong.")]
Plan = Annotated[
    str,
    Field(
        max_length=MAX_LINE_CHARS, description="A tasks.md in the workspace to write it into; empty: only return it."
    ),
]
Question = Annotated[
    str, Field(max_length=MAX_LINE_CHARS, description="What you need to know, so that it can be answered in a line.")
]

LOOKS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class ToolRow(NamedTuple):
    """A tool of the server, with the description that clients read."""

    function: Callable[..., dict[str, Any]]
    description: str
    annotations: ToolAnnotations


def serve(root: Path, profile: str) -> None:
    """Serve one workspace on stdin and stdout until the client disconnects."""
    workspace = WorkspaceTools(root, profile)
    server: MCPServer[Any] = MCPServer("unstuck", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")
    for row in _tools(workspace):
        register = server.tool(description=row.description, annotations=row.annotations, structured_output=True)
        register(_with_tool_errors(row.function))
    _resources(server, workspace)
    server.run("stdio")


class WorkspaceTools:
    """The tools for one workspace with its history. The parameters of a method are the schema of its tool."""

    def __init__(self, root: Path, profile: str) -> None:
        self.root = root.resolve()
        store = self.root / ".unstuck"
        if not store.exists():
            hide_ours(self.root)
        self._recovery = Recovery(profile=profile, path=store / FILE, cwd=self.root)

    def diagnose(
        self, output: Output = "", stderr: Errors = "", exit_code: Code = None, command: Command = "", tool: Tool = "",
        timed_out: TimedOut = False,  # noqa: FBT002  # a tool's arguments have names
    ) -> dict[str, Any]:  # fmt: skip
        """Return the diagnosis of a failed call."""
        evidence = _evidence(output, stderr, exit_code, command, tool, timed_out=timed_out)
        return as_json(open_rulebook(self.root).diagnose(evidence), evidence)

    def remedy(
        self, output: Output = "", stderr: Errors = "", exit_code: Code = None, command: Command = "", tool: Tool = "",
        timed_out: TimedOut = False, tools: Tools = None, arguments: Arguments = None, schema: Schema = None,  # noqa: FBT002  # as above
    ) -> dict[str, Any]:  # fmt: skip
        """Return remedies for a failed call, the likeliest first."""
        evidence = _evidence(output, stderr, exit_code, command, tool, timed_out=timed_out)
        call = make_call(evidence, tools=tools, args=arguments, schema=schema)
        diagnosis = judged(evidence, call, self.root)
        return dict(self._recovery.remedy(diagnosis, tools=tools, args=arguments, schema=schema))

    def report_step(
        self,
        strategy: Strategy,
        worked: Annotated[bool, Field(description="Whether the call succeeds now.")],  # as above
        seconds: Annotated[float, Field(description="How long it took, where known.", ge=0)] = 0.0,
        cost: Annotated[float, Field(description="What it cost in dollars, where known.", ge=0)] = 0.0,
    ) -> dict[str, Any]:
        """Record whether a remedy worked."""
        (self._recovery.worked if worked else self._recovery.failed)(strategy, seconds=seconds, cost=cost)
        return {"step": strategy, "worked": worked, "noted": True}

    def record_attempt(
        self, task: TaskName, approach: Approach,
        succeeded: Annotated[bool, Field(description="Whether the checks of the task pass.")],  # as above
        output: Output = "", stderr: Errors = "", exit_code: Code = None, command: Command = "",
        timed_out: TimedOut = False,  # noqa: FBT002  # as above
        commit: Annotated[str, Field(max_length=64, description="The commit, where it succeeded.")] = "",
    ) -> dict[str, Any]:  # fmt: skip
        """Record the end of an attempt and return the decision."""
        attempt = self._recovery.attempt(task, approach)
        if succeeded:
            return attempt.passed(commit).as_json()
        return attempt.failed(
            output, stderr=stderr, exit_code=exit_code, command=command, timed_out=timed_out
        ).as_json()

    def attempt_history(self, task: TaskName, approach: Approach = "") -> dict[str, Any]:
        """Return the attempts at a task with hints for the next one."""
        past = [
            {**asdict(attempt), "kind": str(attempt.kind) if attempt.kind else None}
            for attempt in self._recovery.history(task)
        ]
        circular = self._recovery.circular(task, approach) if approach else ""
        return {"task": task, "attempts": past, "hints": self._recovery.hints(task), "circular": circular}

    def decide(self, task: TaskName) -> dict[str, Any]:
        """Return the last decision on a task."""
        if (advice := self._recovery.last(task)) is None:
            raise BadUsage(f"Nothing was recorded of task {task[:80]}.", hint="Call record_attempt first.")
        return advice.as_json()

    def create_fix_task(
        self, task: TaskName, error: Error, attempted_fix: Error = "", plan: Plan = ""
    ) -> dict[str, Any]:
        """Return a task that repairs a failed one, and insert it into the plan."""
        if not plan:
            name, text = self._recovery.fix_task(Task(id=task, title=task), error, attempted_fix)
            return {"id": name, "text": text, "plan": None}
        path = self._inside(plan)
        opened = open_plan(path, root=self.root)
        original = next((candidate for candidate in opened.read().tasks if candidate.id == task), None)
        if original is None or not opened.extensible:
            raise BadUsage(
                f"{plan} has no task {task[:80]} that could be repaired by another.", hint="Name a task of the plan."
            )
        name, text = self._recovery.fix_task(original, error, attempted_fix)
        opened.insert(Insertion(blocks={name: text}, beside=task))
        return {"id": name, "text": text, "plan": str(path.relative_to(self.root))}

    def run_status(self) -> dict[str, Any]:
        """Return the status of all tasks of the supervised run."""
        stuck = list(self._recovery.stuck)
        try:
            view = look(self.root)
        except UnstuckError:
            return {"run": None, "tasks": [], "stuck": stuck}
        rows = [asdict(row) for row in view.summary.rows]
        return {"run": view.run, "live": view.owner is not None, "tasks": rows, "stuck": stuck}

    def ask_person(self, task: TaskName, question: Question) -> dict[str, Any]:
        """Record a question to the user and write a report."""
        report = self._recovery.ask(task, question)
        path = self.root / ".unstuck" / "reports" / f"{task}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(report, encoding="utf-8")
        return {
            "asked": True,
            "report": str(path.relative_to(self.root)),
            "next": "Leave this task and go on with others; a person will answer.",
        }

    def report(self, task: str) -> str:
        """Return the report of a task."""
        return self._recovery.report(task)

    def _inside(self, path: str) -> Path:
        """Return a path inside of the workspace, or raise BadUsage for any other."""
        try:
            resolved = (self.root / path).resolve()
        except (OSError, ValueError) as error:
            raise BadUsage(f"{path[:80]!r} is no path.", hint="Name a file in the workspace.") from error
        if not resolved.is_relative_to(self.root):
            raise BadUsage(f"{path[:80]!r} lies outside of the workspace.", hint="Name a file in the workspace.")
        return resolved


def _tools(workspace: WorkspaceTools) -> tuple[ToolRow, ...]:
    return (
        ToolRow(
            workspace.diagnose,
            "Say what a failed call means: kind, blame, whether trying again can help, the decisive line, places and tests.",
            LOOKS,
        ),
        ToolRow(
            workspace.remedy,
            "Give ways out of a failed call, the likeliest first, each with concrete steps for your tools and its risk.",
            LOOKS,
        ),
        ToolRow(workspace.report_step, "Tell what a way out brought: later remedies are ordered by it.", WRITES),
        ToolRow(
            workspace.record_attempt,
            "Record how an attempt at a task ended; the answer is the decision: what to do next, why, and hints for it.",
            WRITES,
        ),
        ToolRow(
            workspace.attempt_history,
            "Return what was tried at a task, hints for the next attempt, and a warning if your approach repeats a failed one.",
            LOOKS,
        ),
        ToolRow(workspace.decide, "Return the decision that stands after the last recorded attempt at a task.", LOOKS),
        ToolRow(
            workspace.create_fix_task,
            "Make a task that repairs a failed one, within limits, and write it into the plan.",
            WRITES,
        ),
        ToolRow(
            workspace.run_status,
            "Say where every task of the supervised run stands, and which tasks wait for a person.",
            LOOKS,
        ),
        ToolRow(
            workspace.ask_person,
            "Leave a question for a person and mark the task stuck; the report lies in the workspace.",
            WRITES,
        ),
    )


def _resources(server: MCPServer[Any], workspace: WorkspaceTools) -> None:
    @server.resource("unstuck://status", mime_type="application/json", description="Where every task stands.")
    def status() -> str:
        return json.dumps(workspace.run_status())

    @server.resource("unstuck://reports/{task}", mime_type="text/markdown", description="The report of one task.")
    def report(task: str) -> str:
        try:
            return workspace.report(task)
        except UnstuckError as error:
            raise ResourceError(error.message) from error


def _evidence(output: str, stderr: str, exit_code: int | None, command: str, tool: str, *, timed_out: bool) -> Evidence:
    return Evidence(stdout=output, stderr=stderr, exit_code=exit_code, command=command, tool=tool, timed_out=timed_out)


def _with_tool_errors(tool: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return the tool with errors of `unstuck` as answers. Other errors go to the server's log."""

    @wraps(tool)
    def answer(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return tool(*args, **kwargs)
        except UnstuckError as error:
            raise ToolError(f"{error.message} {error.hint}".strip()) from error

    return answer
