"""The reference in the program: pages, settings with their origin, schemas that hold, completion for shells."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from jsonschema import Draft202012Validator

from unstuck.cli import cli
from unstuck.cli.command_table import COMMANDS
from unstuck.cli.reference_commands import ALIKE
from unstuck.shipped import HERE, pages, shipped_in

if TYPE_CHECKING:
    from tests.project import Project

ROOT = Path(__file__).parents[2]


def wrong(schema: Any, value: Any) -> list[str]:
    found = Draft202012Validator(schema).iter_errors(value)
    return [f"{error.json_path}: {error.message[:200]}" for error in found]


def test_what_commands_print_in_json_is_as_their_schemas_say(half_done: "Project", tmp_path: Path) -> None:
    schemas = {name: json.loads(text) for name, text in shipped_in("schemas").items()}
    for name, text in {
        "failed": "bash: git: command not found\n",
        "fine": "ok\n",
        "session": '{"type": "result", "subtype": "success", "is_error": false, "result": "Done."}\n',
    }.items():
        (tmp_path / name).write_text(text)
    commands = (
        "status", "show 1.1", "show 1.2", "runs", "plan tasks.md", "doctor", "agents", "config", "experience",
        "agents read claude {0}/session", "verify 1.2", "diagnose {0}/failed --exit-code 127",
        "diagnose {0}/fine --exit-code 0", "remedy {0}/failed --exit-code 127", "remedy {0}/fine --exit-code 0",
    )  # fmt: skip
    offenders: dict[str, list[str]] = {}
    for command in commands:
        words = [word.format(tmp_path) for word in command.split()]
        name = next(name for name in ("-".join(words[:2]), words[0]) if name in schemas)
        offenders[command] = wrong(schemas[name], half_done.ask(*words, "--json").json)
    for line in half_done.ask("log", "--json").out.splitlines():
        offenders[line] = wrong(schemas["log"], json.loads(line))
    assert {command: found for command, found in offenders.items() if found} == {}
    assert json.loads(half_done.ask("docs", "--schema", "agents read").out) == schemas["agents-read"]


def test_every_command_that_prints_json_has_a_schema() -> None:
    known = {name: cli.get_command(click.Context(cli), name) for name in COMMANDS}
    found = {name for name, command in known.items() if command and any("--json" in one.opts for one in command.params)}
    assert found - {"bench"} <= {*shipped_in("schemas"), *ALIKE}, "each bench has its own"


def test_what_a_run_prints_in_json_is_as_its_schema_says(project: "Project") -> None:
    project.file("tasks.md", "# A plan\n\n- [x] 1.1 Make a\n  - **Verify**: `true`\n")
    result = project.run("--json")
    assert wrong(json.loads(project.ask("docs", "--schema", "run").out), result.json) == [], result


def test_every_page_can_be_read_and_the_wheel_carries_them(project: "Project") -> None:
    listed = project.ask("docs").out
    assert [name for name in pages() if f"  {name} " not in listed] == []
    assert project.ask("docs", "configuration").out.startswith("# Configuration\n")
    near = project.ask("docs", "configuraton")
    assert (near.code, "Did you mean 'configuration'?" in near.err) == (64, True)
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert built["force-include"] == {"docs": f"{HERE.name}/docs"}


def test_every_key_is_told_with_its_value_its_default_and_the_file_that_says_so(project: "Project") -> None:
    project.settings('parallel = 2\n[agents.codex]\npermission = []\n[checks]\ntest = "true"\n')
    lines = [" ".join(line.split()) for line in project.ask("config").out.splitlines()]
    assert "parallel = 2 # unstuck.toml; default 4" in lines, lines
    assert "limits.silence = 1200 # default" in lines
    assert 'checks.test = "true" # unstuck.toml; default unset' in lines
    assert any(line.startswith("agents.codex.permission = [] # unstuck.toml; default [") for line in lines), lines
    assert "seconds a session may be silent" in project.ask("config", "limits").out
    assert project.ask("config", "limit").code == 64


def test_the_schema_of_the_configuration_takes_what_a_run_takes_and_refuses_what_it_refuses(project: "Project") -> None:
    schema = json.loads(project.ask("config", "--schema").out)
    taken = 'agent = ["codex"]\n[limits]\nsilence = 20\n[agents.mine]\ncommand = "x"\n[checks]\ntest = "make"\n'
    taken += '[profiles.mine]\nlike = "adaptive"\nladder = [{ of = ["unknown"], rungs = ["retry"] }]\nlimits = { attempts = 2 }\n'
    assert wrong(schema, tomllib.loads(taken)) == []
    for refused in ("paralel = 2", "[limits]\nquiet = 2", '[checks]\nspell = "x"', "[agents.mine]\ncomand = 1"):
        assert wrong(schema, tomllib.loads(refused)) != [], refused
    for profile in ("chargse = 1", 'view = "moon"', "ladder = [{ off = [] }]", "limits = { atempts = 1 }"):
        assert wrong(schema, tomllib.loads(f"[profiles.mine]\n{profile}\n")) != [], profile
    assert schema["properties"]["parallel"]["description"]


@pytest.mark.parametrize(("shell", "place"), [
    ("bash", ".local/share/bash-completion/completions/unstuck"),
    ("zsh", ".zfunc/_unstuck"),
    ("fish", ".config/fish/completions/unstuck.fish"),
])  # fmt: skip
def test_a_shell_s_completion_is_put_where_it_looks(
    project: "Project", tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str, place: str
) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert str(tmp_path / place) in project.ask("completion", shell).out
    assert project.ask("completion", shell, "--print").out.strip() == (tmp_path / place).read_text().strip()


def test_bash_completes_commands_and_options(project: "Project") -> None:
    script = project.ask("completion", "bash", "--print").out
    line = 'COMPREPLY=(); COMP_WORDS=({}); COMP_CWORD={}; _unstuck_completion unstuck; echo "${{COMPREPLY[@]}}"'
    asked = [line.format("unstuck sta", 1), line.format("unstuck show --br", 2)]
    done = subprocess.run(
        ["bash", "-c", "\n".join([script, *asked])],
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["status", "--brief"], done
