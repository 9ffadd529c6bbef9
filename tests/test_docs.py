"""The documentation is kept true: the tutorial is run, and the references are compared with the program."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import click
import pytest
from scripts.write_policies import page

from unstuck.agents.scripted_agent import STEP_ACTIONS
from unstuck.cli import cli
from unstuck.cli.command_table import COMMANDS
from unstuck.model.config import AgentConfig, Config
from unstuck.model.event import Event
from unstuck.model.plan import Task
from unstuck.policy.profiles import profiles
from unstuck.remedies.chain import read_catalog

if TYPE_CHECKING:
    from tests.project import Project

ROOT = Path(__file__).parents[1]
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LEFT_OUT = "…"
EXIT = re.compile(r"\[exit code (\d+)\]")


def steps(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of the console blocks with the output that is shown for it."""
    command, shown = "", list[str]()
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                if command:
                    yield command, shown
                command, shown = line[2:], []
            elif line == ">" or line.startswith("> "):
                command += "\n" + line[2:]
            else:
                shown.append(line)
    yield command, shown


def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    cwd = tmp_path
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("UNSTUCK_", "GIT_"))}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "COLUMNS": "200",
    }
    for command, shown in steps((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")):
        script = f"{command}\ncode=$?\npwd > {tmp_path}/.where\nexit $code"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        output = done.stderr + done.stdout
        expected = [line for line in shown if line != LEFT_OUT and not EXIT.fullmatch(line)]
        code = next((int(found[1]) for line in shown if (found := EXIT.fullmatch(line))), 0)
        assert done.returncode == code, f"{command}\n{output}"
        position = 0
        for line in expected:
            found_at = output.find(line, position)
            assert found_at >= 0, (
                f"{command}\nis missing, after {output[:position][-200:]!r}:\n{line}\n--- in\n{output}"
            )
            position = found_at + len(line)
        cwd = Path((tmp_path / ".where").read_text(encoding="utf-8").strip()) if (tmp_path / ".where").exists() else cwd


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name: str) -> None:
    text = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    assert f"unstuck {name}" in text
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert any(option in text for option in parameter.opts), f"{name} {parameter.opts}"


def test_every_setting_is_documented_with_its_default() -> None:
    text = (ROOT / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")

    def keys(shape: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
        hints = get_type_hints(shape)
        for field in fields(shape):
            if is_dataclass(hints[field.name]):
                yield from keys(hints[field.name], f"{field.name}.")
            else:
                yield f"{prefix}{field.name}", field.default

    for key, default in keys(Config):
        row = next((line for line in text.splitlines() if line.startswith(f"| `{key}`")), None)
        assert row is not None, key
        if isinstance(default, str | int | float) and default != "":
            assert (
                f"`{default}`" in row or f"`{default:g}`" in row
                if isinstance(default, float)
                else f"`{str(default).lower()}`" in row
            ), row


def test_every_key_of_an_agent_is_documented() -> None:
    rows = re.findall(
        r"^\| (`.*?`) \|", (ROOT / "docs" / "reference" / "agents.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    known = {key.strip("`") for row in rows for key in row.split(", ")}
    assert {field.name for field in fields(AgentConfig)} - known == set()


def test_every_exit_code_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    for code in (0, 1, 2, 3, 64, 69, 130, 143):
        assert re.search(rf"^\| {code} \|", text, re.MULTILINE), code


def test_every_event_and_every_step_of_a_script_is_documented() -> None:
    files = (ROOT / "docs" / "reference" / "files.md").read_text(encoding="utf-8")
    for event in get_args(Event):
        assert f"`{event.__dataclass_fields__['type'].default}`" in files
    configuration = (ROOT / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
    for step in STEP_ACTIONS:
        assert f"{{ {step} = " in configuration


def test_the_examples_of_all_plan_fields_are_read_as_they_stand(project: "Project") -> None:
    text = (ROOT / "docs" / "reference" / "plan-fields.md").read_text(encoding="utf-8")
    shown: dict[str, set[str]] = {}
    names = ("tasks.md", "feature-plan.md", "implementation_plan.json")
    blocks = re.findall(r"```(?:markdown|json)\n(.*?)\n```\n\n\|", text, re.DOTALL)
    for name, block in zip(names, blocks, strict=True):
        project.file(name, f"{block}\n", commit=False)
        plan = project.ask("plan", name, "--json").json
        assert (plan["valid"], plan["concerns"], plan["problems"]) == (True, [], []), name
        shown[name] = {key for task in plan["tasks"] for key, value in task.items() if value}
    everything = {field.name for field in fields(Task)} - {"skipped", "digest", "joins"}
    assert everything <= set().union(*shown.values()), everything - set().union(*shown.values())
    assert {"depends_on", "group", "checks", "files", "markers", "fixes", "commit", "agent", "done"} <= shown[
        "tasks.md"
    ]


def test_the_page_of_policies_is_made_from_the_data() -> None:
    """Make it anew with: python -m scripts.write_policies."""
    assert (ROOT / "docs" / "reference" / "policies.md").read_text(encoding="utf-8") == page(profiles().values())


def test_every_chain_is_documented_as_it_is() -> None:
    text = (ROOT / "docs" / "reference" / "remedies.md").read_text(encoding="utf-8")
    for name, chain in read_catalog().chains.items():
        ways = [f"`{way.name}` {way.confidence:g}" for way in chain.strategies]
        assert f"| `{name}` | {' → '.join([*ways, f'`ask_user` {chain.ask_confidence:g}'])} |" in text
