"""How known agents are called: from their manifests, with what the user's configuration says about them."""

import os
import tomllib
from dataclasses import fields, replace
from pathlib import Path

import pytest

from unstuck.agents.agent_set import Assignment, CodingAgent, first_agent_on_path
from unstuck.agents.manifests import agent_catalog, how_to_log_in, logged_in, manifest, permission
from unstuck.agents.output_formats import EventRule, StreamTable, output_formats
from unstuck.app.config_file import read_config
from unstuck.model.config import AgentConfig, Config
from unstuck.model.outcome import Ended
from unstuck.shipped import shipped

KNOWN = [
    "claude",
    "codex",
    "gemini",
    "opencode",
    "qwen",
    "goose",
    "copilot",
    "kimi",
    "pi",
    "cline",
    "continue",
    "aider",
    "mini",
]


def assignment(folder: Path, **changes: object) -> Assignment:
    made = Assignment(
        run="r", task="1.1", attempt=1, session=1, slot=0, worktree=folder, brief="--do {brief} it\n", brief_file=folder / "brief.md",
        log=folder / "log", transcript=folder / "out",
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]  # names of its own fields


@pytest.mark.parametrize("name", KNOWN)
def test_every_manifest_makes_a_command_that_holds_the_brief_once(name: str, tmp_path: Path) -> None:
    agent = CodingAgent(name, agent_catalog()[name])
    command = agent.command(assignment(tmp_path))
    by_argument = [part for part in command.argv if "--do {brief} it" in part]
    assert len(by_argument) + (b"--do {brief} it" in command.stdin) == 1
    assert command.argv[0] == agent.manifest.program
    assert agent.manifest.output in output_formats()
    assert "IS_SANDBOX" not in command.env
    assert command.transcript is not None


def test_the_known_agents_are_those_of_the_contract_in_their_order() -> None:
    assert list(agent_catalog()) == KNOWN


@pytest.mark.parametrize("name", [name for name, agent in agent_catalog().items() if agent.resume])
def test_a_session_is_continued_by_its_name(name: str, tmp_path: Path) -> None:
    command = CodingAgent(name, agent_catalog()[name]).command(assignment(tmp_path, resume="s-1"))
    assert any("s-1" in part for part in command.argv)
    assert not any("{session}" in part for part in command.argv)


def test_a_brief_too_long_for_an_argument_is_named_by_its_file(tmp_path: Path) -> None:
    command = CodingAgent("codex", agent_catalog()["codex"]).command(assignment(tmp_path, brief="x" * 200_000))
    assert command.argv[-1] == f"Read the file {tmp_path / 'brief.md'} and do what it says."


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused the usual flag")
def test_as_root_claude_gets_a_list_of_tools() -> None:
    assert permission(agent_catalog()["claude"])[0] == "--allowedTools"


def test_a_user_changes_one_of_ours_key_by_key(tmp_path: Path) -> None:
    (tmp_path / "unstuck.toml").write_text(
        '[agents.claude]\narguments = ["-p"]\npermission = ["--ask-me"]\nenvironment = { SHELL = "/bin/zsh" }\n'
        '[agents.codex]\ncommand = "my-codex --flag"\n'
        '[agents.mine]\nprogram = "mine"\noutput = "codex"\nexit_codes = { 9 = "billing" }\n'
    )
    own = read_config(tmp_path).agents
    claude = manifest("claude", own)
    assert claude is not None
    assert (claude.arguments, permission(claude), claude.output) == (("-p",), ("--ask-me",), "claude")
    assert (claude.environment["SHELL"], claude.environment["CLAUDE_CODE_MAX_RETRIES"]) == ("/bin/zsh", "2")
    assert manifest("codex", own) == AgentConfig(command="my-codex --flag")
    mine = manifest("mine", own)
    assert mine is not None
    assert mine.exit_codes == {9: "billing"}
    assert manifest("nobody", own) is None


def test_the_first_known_agent_on_path_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("gemini", "codex"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert first_agent_on_path(Config()) == ("codex",)
    monkeypatch.setenv("PATH", "")
    assert first_agent_on_path(Config()) == ()


def test_signs_of_a_login_are_looked_for_and_never_read(tmp_path: Path) -> None:
    claude = agent_catalog()["claude"]
    assert logged_in(claude, {}, tmp_path) is False
    assert logged_in(claude, {"ANTHROPIC_API_KEY": "x"}, tmp_path) is True
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / ".credentials.json").mkdir()  # a folder cannot be read as a file
    assert logged_in(claude, {}, tmp_path) is True
    assert logged_in(AgentConfig(program="x"), {}, tmp_path) is None


def test_every_known_agent_says_how_a_person_logs_it_in() -> None:
    told = {name: how_to_log_in(agent) for name, agent in agent_catalog().items()}
    assert [name for name, how in told.items() if not how] == []
    assert [name for name, how in told.items() if how.endswith(".") or "\n" in how] == [], (
        "it becomes part of a sentence"
    )


def test_an_agent_that_did_not_start_has_no_transcript_to_read(tmp_path: Path) -> None:
    ended = Ended(ending="not_started", exit_code=127, tail="no such program")
    assert CodingAgent("codex", agent_catalog()["codex"]).outcome(ended, assignment(tmp_path)).end == ""


def test_what_we_ended_ourselves_counts_as_killed_unless_the_provider_was_at_fault(tmp_path: Path) -> None:
    agent = CodingAgent("codex", agent_catalog()["codex"])
    (tmp_path / "out").write_text('{"type":"thread.started","thread_id":"t"}\n{"type":"turn.started"}\n')
    ended = Ended(ending="silence")
    assert agent.outcome(ended, assignment(tmp_path)).end == "killed"
    with (tmp_path / "out").open("a") as file:
        file.write('{"type":"error","message":"Reconnecting... 1/5 (429 Too Many Requests)"}\n')
    found = agent.outcome(ended, assignment(tmp_path))
    assert (found.end, found.session) == ("rate_limited", "t")


def test_the_table_of_streams_uses_only_words_that_its_reader_knows() -> None:
    """A word that nobody reads would be a fact that is silently lost."""
    tables = tomllib.loads(shipped("streams.toml"))
    rules = [rule for table in tables.values() for rule in table["rule"]]
    words = {word for table in tables.values() for word in table} - {"rule"}
    assert words <= {field.name for field in fields(StreamTable)}
    assert {word for rule in rules for word in rule} <= {field.name for field in fields(EventRule)}
