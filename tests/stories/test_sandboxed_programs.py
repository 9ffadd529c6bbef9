"""Runs in a sandbox whose agent's program lies anywhere: beside, in or above the checkout, or far from it."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fork_server import ForkServer
from tests.project import LIMITS, Project, make_project

from unstuck.process.sandbox import sandbox_problem

pytestmark = pytest.mark.skipif(bool(sandbox_problem()), reason=sandbox_problem() or "there is a sandbox")

BWRAP = f'{LIMITS}\n[sandbox]\nmode = "bwrap"\n'
AGENT = '#!/bin/sh\n[ "$1" = --version ] && exit 0\ncat "$U/readme.txt" >> a.txt\necho work >> a.txt\n'
"""It copies a file of the user's checkout, which must not be there."""


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a folder below /tmp, which a sandbox replaces by an empty one."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # the place is what is tested
        folder = Path(name)
        monkeypatch.setenv("HOME", str(folder / "home"))
        (folder / "home").mkdir()
        (folder / "work").mkdir()
        yield folder


@pytest.fixture
def checkout(temporary: Path, fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = make_project(temporary / "work" / "project", fork_server)
    monkeypatch.setenv("U", str(project.root))
    project.settings(BWRAP)
    project.plan(("1.1", "Make a", "grep -qx work a.txt"))
    return project


def write_agent(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "own-agent"
    program.write_text(AGENT)
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    "place",
    ["work/project", "work/project/tools", "work", "work/bin", "work/tools", "", "home", "home/bin"],
)
def test_a_session_starts_wherever_the_agents_program_lies(checkout: Project, temporary: Path, place: str) -> None:
    program = write_agent(temporary / place)
    result = checkout.unstuck("run", "tasks.md", "--agent", str(program))
    assert result.code == 0, result
    assert checkout.git("show", "HEAD:a.txt") == "work", "nothing of the checkout is visible"


def test_a_session_starts_with_a_program_of_the_system(checkout: Project) -> None:
    result = checkout.unstuck("run", "tasks.md", "--agent", f"{shutil.which('sh')} -c 'echo work > a.txt'")
    assert result.code == 0, result


@pytest.mark.parametrize("place", ["work/project", "work", ""])
def test_a_folder_of_path_that_contains_the_checkout_gives_only_its_programs(
    checkout: Project, temporary: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_agent(temporary / place)
    monkeypatch.setenv("PATH", f"{temporary / place}{os.pathsep}{os.environ['PATH']}")
    result = checkout.unstuck("run", "tasks.md", "--agent", "sh -c own-agent")
    assert result.code == 0, result
    assert checkout.git("show", "HEAD:a.txt") == "work"


def test_a_sandbox_that_cannot_start_stops_a_run_before_its_first_session(checkout: Project, temporary: Path) -> None:
    program = write_agent(temporary / "tools")
    checkout.settings(f'agent = ["{program}"]\n{BWRAP}read = ["{temporary}"]\n')
    result = checkout.unstuck("run", "tasks.md")
    assert result.code == 69, result
    assert f"The sandbox of {program} does not start" in result.err
    assert "Hint: Move the agent's program, or what `read` and `write` under [sandbox] name" in result.err
    assert checkout.slots == []


def sandbox_finding(checkout: Project) -> dict[str, str]:
    findings = checkout.ask("doctor", "--json").json["findings"]
    return next(finding for finding in findings if finding["about"] == "sandbox")


def test_doctor_starts_the_sandbox_of_the_configured_agent(checkout: Project, temporary: Path) -> None:
    program = write_agent(temporary / "work")
    settings = f'agent = ["{program}"]\n{BWRAP}'
    checkout.settings(settings)
    assert sandbox_finding(checkout)["grade"] == "ok"
    checkout.settings(f'{settings}read = ["{temporary}"]\n')
    finding = sandbox_finding(checkout)
    assert finding["grade"] == "bad"
    assert "remount" in finding["says"]
    assert 'mode = "none"' in finding["remedy"]


def test_a_sandbox_that_breaks_during_a_run_is_not_charged_to_the_agent(
    checkout: Project, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, wrapper = temporary / "broken", temporary / "tools" / "bwrap"
    wrapper.parent.mkdir()
    real = shutil.which("bwrap")
    wrapper.write_text(
        f'#!/bin/sh\n[ ! -e {broken} ] || {{ echo "bwrap: No namespaces" >&2; exit 1; }}\nexec {real} "$@"\n'
    )
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}")
    checkout.settings(f'{BWRAP}checks = "none"\n')
    checkout.plan(("1.1", "Make a", f"grep -qx work a.txt && touch {broken}"), ("1.2", "Make more", "test -s b.txt"))
    result = checkout.unstuck("run", "tasks.md", "--agent", "sh -c 'echo work >> a.txt'")
    assert result.code == 3, result
    tasks = checkout.ask("status", "--json").json["tasks"]
    assert [task["status"] for task in tasks.values()] == ["complete", "stuck"]
    assert tasks["1.2"]["attempts"] == 1, "nothing is repeated that cannot help"
    assert tasks["1.2"]["why"].startswith("The sandbox of the session does not start: bwrap: No namespaces. Move the ")
    assert "agent_crashed" not in result.out + result.err
