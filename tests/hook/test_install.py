"""`unstuck install` and `uninstall`: settings of other programs are edited and never damaged."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstuck.cli import run_cli
from unstuck.hook import jsonc
from unstuck.hook.installing import WIRINGS, with_hook, with_mcp_server, without_hook, without_mcp_server

COMMAND = "/opt/bin/unstuck hook claude"
COMMENTED = """\
// my settings
{
    "model": "opus", // the best
    /* hooks of mine */
    "hooks": {
        "Stop": [
            {"hooks": [{"type": "command", "command": "say done"}]}, // keep this
        ],
    },
    "unknown": {"deep": [1, 2.5e3, null, true, "a // no comment"]}
}
"""


@pytest.fixture(autouse=True)
def no_homes(monkeypatch: pytest.MonkeyPatch) -> None:
    for wiring in WIRINGS.values():
        monkeypatch.delenv(wiring.home[0], raising=False)


def unstuck(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = run_cli(arguments)
    told = capsys.readouterr()
    return code, told.out + told.err


def test_everything_else_stays_and_comes_back_byte_for_byte() -> None:
    texts = {
        "commented": COMMENTED,
        "tabs": '{\n\t"a": {\n\t\t"b": []\n\t}\n}\n',
        "windows": '{\r\n  "a": 1\r\n}\r\n',
        "minified": '{"a":1,"hooks":{"Stop":[{"hooks":[]}]}}',
        "empty hooks of somebody": '{\n  "hooks": {\n    "Stop": [\n      {"hooks": []}\n    ]\n  }\n}',
    }
    for name, text in texts.items():
        made = with_hook("claude", text, COMMAND, guard=True)
        assert with_hook("claude", made, COMMAND, guard=True) == made, name
        content, before = jsonc.parse(made).value, jsonc.parse(text).value
        assert {key: value for key, value in content.items() if key != "hooks"} == {
            key: value for key, value in before.items() if key != "hooks"
        }
        assert content["hooks"]["Stop"][: len(before.get("hooks", {}).get("Stop", []))] == before.get("hooks", {}).get(
            "Stop", []
        )
        assert all(line in made for line in text.splitlines() if "//" in line or "/*" in line), name
        assert jsonc.parse(without_hook("claude", made)).value == before, name
        if name not in ("minified", "empty hooks of somebody"):
            assert without_hook("claude", made) == text, name


def test_another_path_of_ours_is_replaced_and_others_hooks_are_not() -> None:
    line = "unstuck hook claude && say done"
    mine = {"matcher": "Bash", "hooks": [{"type": "command", "command": line}]}
    text = json.dumps({"hooks": {"PostToolUse": [mine]}})
    made = with_hook(
        "claude", with_hook("claude", text, "/old/venv/bin/unstuck hook claude", guard=True), COMMAND, guard=False
    )
    hooks = jsonc.parse(made).value["hooks"]
    assert [group["hooks"][0]["command"] for group in hooks["PostToolUse"]] == [line, COMMAND]
    assert "PreToolUse" not in hooks


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.sampled_from([None, 1, 4, "\t"]))
def test_any_object_survives_install_and_uninstall(content: dict[str, Any], indent: int | str | None) -> None:
    content.pop("hooks", None)
    text = json.dumps(content, indent=indent)
    assert jsonc.parse(text).value == content
    made = with_hook("claude", text, COMMAND, guard=True)
    assert {key: value for key, value in json.loads(made).items() if key != "hooks"} == content
    assert json.loads(without_hook("claude", made)) == content


def test_toml_keeps_its_comments_and_refuses_what_it_cannot_add() -> None:
    text = '# mine\nmodel = "x" # good\n\n[mcp_servers.other]\ncommand = "o"\n'
    made = with_mcp_server("config.toml", text, ["/opt/bin/unstuck", "mcp"])
    assert made.startswith(text)
    assert (
        tomllib.loads(made)["mcp_servers"]["unstuck"].items()
        >= {"command": "/opt/bin/unstuck", "args": ["mcp"]}.items()
    )
    assert with_mcp_server("config.toml", made, ["/opt/bin/unstuck", "mcp"]) == made
    assert without_mcp_server("config.toml", made) == text
    assert without_mcp_server("config.toml", with_mcp_server("config.toml", "", ["u", "mcp"])) == ""
    for broken in ("a = ", "mcp_servers = {}\n", '[mcp_servers.unstuck]\ncommand = "mine"\n', "mcp_servers = 5"):
        with pytest.raises(ValueError, match="it "):
            with_mcp_server("config.toml", broken, ["u", "mcp"])


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode"])
def test_install_and_uninstall_by_command(
    agent: str,
    own_git_configuration: Path,
    scratch: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(scratch)
    before = {path for path in own_git_configuration.rglob("*") if path.is_file()}
    code, told = unstuck(capsys, "install", agent, "--dry-run")
    assert (code, "+" in told) == (0, True)
    assert {path for path in own_git_configuration.rglob("*") if path.is_file()} == before
    assert "Installed in" in unstuck(capsys, "install", agent)[1]
    made = {path for path in own_git_configuration.rglob("*") if path.is_file()} - before
    assert len(made) == 1
    assert f"hook {agent}" in (text := next(iter(made)).read_text().replace('", "', " "))
    assert "already" in unstuck(capsys, "install", agent)[1]
    assert next(iter(made)).read_text().replace('", "', " ") == text
    assert "Taken out of" in unstuck(capsys, "uninstall", agent)[1]
    assert "not installed" in unstuck(capsys, "uninstall", agent)[1]
    assert "Installed in" in unstuck(capsys, "install", agent, "--project")[1]
    assert str(scratch) in unstuck(capsys, "uninstall", agent, "--project")[1]


def test_opencode_gets_the_server_into_its_own_settings_and_no_guard_where_none_is_wanted(
    own_git_configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = own_git_configuration / ".config" / "opencode"
    folder.mkdir(parents=True)
    text = '{\n  // mine\n  "autoupdate": false\n}\n'
    (folder / "opencode.jsonc").write_text(text)
    assert unstuck(capsys, "install", "opencode", "--mcp", "--no-guard")[0] == 0
    made = (folder / "opencode.jsonc").read_text()
    assert "// mine" in made
    assert jsonc.parse(made).value["mcp"]["unstuck"]["type"] == "local"
    assert jsonc.parse(made).value["mcp"]["unstuck"]["command"][-1] == "mcp"
    assert "GUARDS = false" in (folder / "plugin" / "unstuck.js").read_text()
    assert unstuck(capsys, "install", "opencode", "--mcp")[0] == 0
    assert "GUARDS = true" in (folder / "plugin" / "unstuck.js").read_text()
    assert unstuck(capsys, "uninstall", "opencode")[0] == 0
    assert "unstuck" not in (folder / "opencode.jsonc").read_text()
    assert not (folder / "plugin" / "unstuck.js").exists()


def test_settings_that_cannot_be_read_are_left_alone_and_told_by_hand(
    own_git_configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = own_git_configuration / ".claude" / "settings.json"
    path.parent.mkdir()
    rows = {
        '{"a": 1,\n "b": }': "line 2 is no JSON",
        "[1]": "not an object",
        '{"hooks": []}': "not an object with an object",
        '{"hooks": {"Stop": {}}}': "are no list",
        '{"a": 1} trailing': "no JSON",
        "[" * 5000: "no JSON",
    }
    for text, why in rows.items():
        path.write_text(text)
        code, told = unstuck(capsys, "install", "claude")
        assert (code, path.read_text()) == (64, text)
        assert why in told
        assert '"PostToolUseFailure"' in told
    path.write_bytes(b'{"a": "\xff"}')
    assert unstuck(capsys, "install", "claude")[0] == 64
    assert path.read_bytes() == b'{"a": "\xff"}'
    assert list(path.parent.iterdir()) == [path]


def test_a_link_a_mode_and_a_backup_are_kept(
    own_git_configuration: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text(COMMENTED)
    real.chmod(0o640)
    path = own_git_configuration / ".claude" / "settings.json"
    path.parent.mkdir()
    path.symlink_to(real)
    assert unstuck(capsys, "install", "claude")[0] == 0
    assert path.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert real.with_name("dotfiles.json.unstuck-backup").read_text() == COMMENTED
    unstuck(capsys, "uninstall", "claude")
    assert real.read_text() == COMMENTED


def test_the_servers_are_offered_where_that_is_ours_to_do(
    own_git_configuration: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(scratch)
    code, told = unstuck(capsys, "install", "claude", "--mcp")
    assert (code, "claude mcp add" in told) == (64, True)
    assert unstuck(capsys, "install", "claude", "--project", "--mcp")[0] == 0
    assert json.loads((scratch / ".mcp.json").read_text())["mcpServers"]["unstuck"]["args"][-1] == "mcp"
    assert unstuck(capsys, "install", "codex", "--mcp")[0] == 0
    assert "mcp_servers.unstuck" in (own_git_configuration / ".codex" / "config.toml").read_text()
    unstuck(capsys, "uninstall", "codex")
    assert (own_git_configuration / ".codex" / "config.toml").read_text() == ""
    assert unstuck(capsys, "install", "gemini", "--mcp")[0] == 0
    assert set(json.loads((own_git_configuration / ".gemini" / "settings.json").read_text())) == {"hooks", "mcpServers"}
    unstuck(capsys, "uninstall", "gemini")
    assert json.loads((own_git_configuration / ".gemini" / "settings.json").read_text()) == {}


def test_the_installed_command_runs(own_git_configuration: Path, scratch: Path) -> None:
    """As an agent starts it: by its shell, with an event on stdin."""
    script = Path(sys.executable).with_name("unstuck")
    subprocess.run([script, "install", "claude"], cwd=scratch, check=True, capture_output=True)
    settings = json.loads((own_git_configuration / ".claude" / "settings.json").read_text())
    command = settings["hooks"]["Stop"][0]["hooks"][0]["command"]
    event = {"hook_event_name": "Stop", "session_id": "s", "cwd": str(scratch), "last_assistant_message": "I fixed it."}
    done = subprocess.run(["sh", "-c", command], input=json.dumps(event), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["decision"] == "block"
