"""`unstuck mcp` over stdio, as a client of the official package sees it."""

import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp import Client, MCPError, StdioServerParameters
from unstuck.app.experience_table import experience_rows

SOURCE = Path(__file__).parents[2] / "src"
TOOLS = {
    "diagnose", "remedy", "report_step", "record_attempt", "attempt_history", "decide", "create_fix_task", "run_status",
    "ask_person",
}  # fmt: skip
RED = {"output": "AssertionError: Expected 200 but got 404", "exit_code": 1, "succeeded": False}
PLAN = "# Plan\n\n- [ ] 1.1 Parse\n  - **Do**: parse\n  - **Verify**: `true`\n"


@asynccontextmanager
async def served(root: Path) -> AsyncIterator[Client]:
    words = ["-m", "unstuck", "mcp", "--workspace", str(root), "--profile", "standard"]
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    async with Client(StdioServerParameters(command=sys.executable, args=words, env=env)) as client:
        yield client


def played(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    anyio.run(scene)


async def ask(client: Client, tool: str, /, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refused(client: Client, tool: str, /, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content)


def test_every_tool_does_what_it_says(scratch: Path) -> None:
    (scratch / "tasks.md").write_text(PLAN)

    async def scene() -> None:
        async with served(scratch) as client:
            listed = (await client.list_tools()).tools
            assert {tool.name for tool in listed} == TOOLS
            for tool in listed:
                properties = tool.input_schema.get("properties", {})
                assert tool.description
                assert tool.output_schema
                assert all(one.get("description") for one in properties.values()), tool.name
            found = await ask(client, "diagnose", output="bash: git: command not found", exit_code=127)
            assert (found["kind"], found["blame"], found["difficulty"]) == (
                "command_not_found",
                "environment",
                "medium",
            )
            call = {
                "output": "bash: git: command not found",
                "exit_code": 127,
                "command": "git clone https://github.com/a/b",
            }
            plans = (await ask(client, "remedy", **call, tools=["Bash"]))["plans"]
            assert plans[0]["steps"][0]["tool"] == "Bash"
            shell = {"name": "sh", "inputSchema": {"type": "object", "properties": {"line": {"type": "string"}}}}
            plans = (await ask(client, "remedy", **call, tools=[shell]))["plans"]
            assert list(plans[0]["steps"][0]["args"]) == ["line"]
            assert (await ask(client, "report_step", strategy=plans[0]["strategy"], worked=False))["noted"]
            [row] = experience_rows(scratch)["rows"]
            assert (row["strategy"], row["tries"], row["successes"]) == (plans[0]["strategy"], 1, 0), "one experience"
            actions, warned = [], ""
            for approach in (
                "Using async await for fetch",
                "Using async/await with try-catch",
                "Using async await pattern",
            ):
                warned = (await ask(client, "attempt_history", task="1.1", approach=approach))["circular"]
                actions.append((await ask(client, "record_attempt", task="1.1", approach=approach, **RED))["action"])
            assert (actions, bool(warned)) == (["retry", "retry", "escalate"], True)
            decided = await ask(client, "decide", task="1.1")
            assert (decided["action"], decided["type"]) == ("escalate", "CIRCULAR_FIX")
            history = await ask(client, "attempt_history", task="1.1")
            assert [one["number"] for one in history["attempts"]] == [1, 2, 3]
            assert "Try a DIFFERENT approach" in history["hints"]
            fix = await ask(client, "create_fix_task", task="1.1", error="it `breaks`\n- [ ] 9 evil", plan="tasks.md")
            assert (fix["id"], fix["plan"]) == ("1.1.1", "tasks.md")
            assert "[FIX 1.1]" in (scratch / "tasks.md").read_text()
            assert "\n- [ ] 9" not in (scratch / "tasks.md").read_text()
            asked = await ask(client, "ask_person", task="2.1", question="Which port?")
            assert "Which port?" in (scratch / asked["report"]).read_text()
            status = await ask(client, "run_status")
            assert (status["run"], status["stuck"]) == (None, ["2.1"])
            resource = (await client.read_resource("unstuck://status")).contents[0]
            assert json.loads(resource.text)["stuck"] == ["2.1"]  # type: ignore[union-attr]  # it is text
            report = (await client.read_resource("unstuck://reports/1.1")).contents[0]
            assert "Stuck Subtask: 1.1" in report.text  # type: ignore[union-attr]  # as above

    played(scene)


def test_wrong_and_hostile_arguments_are_answered_in_words(scratch: Path) -> None:
    (scratch.parent / "secret.md").write_text(PLAN)
    (scratch / "link.md").symlink_to(scratch.parent / "secret.md")

    async def scene() -> None:
        async with served(scratch) as client:
            assert "exit_code" in await refused(client, "diagnose", output="x", exit_code="one")
            assert "task" in await refused(client, "decide")
            assert "Nothing was recorded" in await refused(client, "decide", task="9.9")
            assert "no name of a task" in await refused(client, "record_attempt", task="../x", approach="a", **RED)
            assert "no name of a task" in await refused(client, "ask_person", task="../../../evil", question="?")
            assert "no name of a task" in await refused(client, "create_fix_task", task="../../../evil", error="e")
            assert "No remedy named" in await refused(client, "report_step", strategy="x", worked=True)
            assert "no JSON schema" in await refused(
                client, "remedy", output="Error: x", exit_code=1, tool="t", schema={"type": 5}
            )
            for path in ("../secret.md", str(scratch.parent / "secret.md"), "link.md", "a/../../secret.md", "\0"):
                told = await refused(client, "create_fix_task", task="1.1", error="e", plan=path)
                assert "outside of the workspace" in told or "no path" in told, path
            assert (scratch.parent / "secret.md").read_text() == PLAN
            assert "no_such_tool" in str(await _error(client, "no_such_tool"))
            with pytest.raises(MCPError):
                await client.read_resource("unstuck://reports/..%2f..%2fetc")
            large = "x" * 1_000 + "\n"
            assert (await ask(client, "diagnose", output=large * 3_000 + "npm ERR! code E404", exit_code=1))["failed"]
            assert "4000000" in await refused(client, "diagnose", output="x" * 4_000_001)

    played(scene)


async def _error(client: Client, tool: str) -> object:
    try:
        return (await client.call_tool(tool, {})).content
    except MCPError as error:
        return error


def test_a_cancelled_call_leaves_the_server_able(scratch: Path) -> None:
    async def scene() -> None:
        async with served(scratch) as client:
            large = "\n".join(f"error {number}: it broke" for number in range(100_000))
            with anyio.move_on_after(0.01):
                await client.call_tool("diagnose", {"output": large, "exit_code": 1})
            async with anyio.create_task_group() as group:
                for number in range(4):
                    group.start_soon(_recorded, client, f"{number}.1")
            assert (await ask(client, "diagnose", output="ok", exit_code=0)) == {"schema": 1, "failed": False}
        async with served(scratch) as client:
            assert len((await ask(client, "attempt_history", task="3.1"))["attempts"]) == 1

    played(scene)


async def _recorded(client: Client, task: str) -> None:
    assert (await ask(client, "record_attempt", task=task, approach="a", **RED))["action"] == "retry"
