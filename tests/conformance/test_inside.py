"""Our hook and our tools inside real agents: what the model is told in its next request, and what it is kept from."""

import subprocess
from collections.abc import Callable, Mapping, Sequence

import pytest
from tests.conformance.agents import AGENTS
from tests.conformance.clis import pinned
from tests.conformance.conftest import Site
from tests.conformance.server import ModelServer
from tests.conformance.turns import Run, Say, Turn, Use
from tests.conformance.wires import Asked

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(300)]
MakeSite = Callable[..., Site]
SECONDS = 120

# Codex asks its model before an MCP server is up, unless the server is required.
COMMANDS: Mapping[str, Sequence[str]] = {
    "claude": (
        "claude", "-p", "do it", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions",
        "--mcp-config", ".mcp.json",
    ),
    "codex": (
        "codex", "exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust",
        "-c", "mcp_servers.unstuck.required=true", "do it",
    ),
    "opencode": ("opencode", "run", "--format", "json", "do it"),
    "gemini": ("gemini", "-p", "do it", "-m", "gemini-2.5-pro", "--yolo", "--output-format", "stream-json"),
}  # fmt: skip
DIAGNOSE = {"output": "bash: git: command not found", "exit_code": 127}
TOOL: Mapping[str, Sequence[Turn]] = {
    "claude": (Use("mcp__unstuck__diagnose", DIAGNOSE),),
    "codex": (
        Use("tool_search", {"query": "unstuck recovery of a failed call or task", "limit": 20}),
        Use("diagnose", DIAGNOSE, namespace="mcp__unstuck"),
    ),
    "opencode": (Use("unstuck_diagnose", DIAGNOSE),),
    "gemini": (Use("mcp_unstuck_diagnose", DIAGNOSE),),
}
OFFERED = (
    "diagnose", "remedy", "report_step", "record_attempt", "attempt_history", "decide", "create_fix_task", "run_status",
    "ask_person",
)  # fmt: skip
WAITS_FOR_SERVERS = {"MCP_CONNECTION_NONBLOCKING": "false", "MCP_TIMEOUT": "120000", "MCP_CONNECT_TIMEOUT_MS": "120000"}
"""Else Claude Code asks its first question without the tools where the machine is slower than it cares to wait."""
DONE = Say("I wrote greeting.txt. All done.")


@pytest.fixture(params=list(COMMANDS))
def agent(request: pytest.FixtureRequest) -> str:
    """Name an agent that is in the cache."""
    cli = pinned()[request.param]
    if not cli.installed:
        pytest.skip(f"{cli.name} {cli.version} is not in {cli.folder}: run `make conformance CLIS={cli.name}`")
    return cli.name


def heard(site: MakeSite, agent: str, turns: Sequence[Turn], settings: str = "") -> tuple[Site, list[Asked]]:
    """Install the hook and the tools, let the agent play the turns, and return what the model was asked each time."""
    with ModelServer(turns) as model:
        here = site(agent, model, settings=settings)
        scopes = (("--project",), ()) if agent == "claude" else ((),)
        for scope in scopes:
            words = ("install", agent, *scope, *(("--mcp",) if scope or agent != "claude" else ()))
            told = here.unstuck(*words)
            assert told.code == 0, told
        if agent == "claude":
            assert here.unstuck("uninstall", "claude").code == 0  # the project's is enough, and one hook speaks once
        subprocess.run(
            COMMANDS[agent],
            cwd=here.root,
            env={
                **here.env,
                "IS_SANDBOX": "1",
                "ENABLE_TOOL_SEARCH": "false",
                "GEMINI_CLI_TRUST_WORKSPACE": "true",
                **WAITS_FOR_SERVERS,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=True,
        )
        assert model.left == ()
        assert set(model.escapes) <= AGENTS[agent].tries
        return here, model.asked


def test_a_failing_clone_comes_with_a_way_out(site: MakeSite, agent: str) -> None:
    _, asked = heard(site, agent, (Run("git clone http://127.0.0.1:9/acme/tool"), Run("true"), Say("I stop here.")))
    assert "retry_with_backoff" not in asked[0].conversation
    assert "retry_with_backoff" in asked[1].conversation
    assert asked[2].conversation.count("filled in for this machine") == 1


def test_a_stop_with_failing_checks_is_refused_once(site: MakeSite, agent: str) -> None:
    if agent == "opencode":
        pytest.skip("opencode tells its plugins of no stop that they could refuse")
    settings = '\n[hook]\nchecks = ["grep -q hello greeting.txt"]\n'
    _, asked = heard(site, agent, (Run("echo nothing > greeting.txt"), DONE, DONE), settings)
    assert len(asked) == 3
    assert "grep -q hello greeting.txt` fails" in asked[2].conversation


def test_a_third_identical_call_is_nudged(site: MakeSite, agent: str) -> None:
    _, asked = heard(site, agent, (*[Run("cat tasks.md")] * 3, Say("I stop here.")))
    assert "third time in a row" not in asked[2].conversation
    assert "third time in a row" in asked[3].conversation


def test_a_destructive_call_is_refused_with_the_alternative(site: MakeSite, agent: str) -> None:
    turns = (Run("echo mine >> tasks.md"), Run("git reset --hard"), Say("I stop here."))
    here, asked = heard(site, agent, turns)
    assert "git stash push --include-untracked" in asked[2].conversation
    assert "mine" in (here.root / "tasks.md").read_text()


def test_the_tools_are_listed_and_called(site: MakeSite, agent: str) -> None:
    _, asked = heard(site, agent, (*TOOL[agent], Say("I stop here.")))
    listed = asked[1].conversation if agent == "codex" else " ".join(asked[-1].tools)
    assert [name for name in OFFERED if name not in listed] == []
    assert "command_not_found" in asked[-1].conversation
    assert "environment" in asked[-1].conversation
