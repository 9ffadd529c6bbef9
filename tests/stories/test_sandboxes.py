"""Runs with a sandbox, as a user sees them: what is asked for, what holds on this machine, and that it is said."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.project import LIMITS, Project

from unstuck.process.sandbox import sandbox_problem

needs_bubblewrap = pytest.mark.skipif(bool(sandbox_problem()), reason=sandbox_problem() or "there is a sandbox")
BWRAP = f'{LIMITS}\n[checks]\ntest = "test ! -e $U/readme.txt"\n[sandbox]\nmode = "bwrap"\n'


@needs_bubblewrap
def test_a_session_in_a_sandbox_does_its_work_and_reaches_nothing_of_the_users(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("U", str(project.root))
    project.settings(BWRAP)
    project.plan(("1.1", "Make a", "test -s a.txt && ! echo x > $U/by-a-check"))
    reach = (
        'echo x > "$U/sly.txt"; ls "$U/.git/unstuck"; cat "$UNSTUCK_BRIEF" > a.txt; git add a.txt; git commit -qm own'
    )
    project.script(_1_1=[[{"run": f"bash -c '{reach}'"}, {"start": "sleep 300"}]])
    result = project.run()
    assert result.code == 0, result
    assert "Make a" in project.git("show", "HEAD:a.txt")
    assert project.git("status", "--porcelain") == ""
    finding = next(one for one in project.ask("doctor", "--json").json["findings"] if one["about"] == "sandbox")
    assert (finding["grade"], "checks as well" in finding["says"]) == ("ok", True)


@needs_bubblewrap
def test_any_command_that_says_what_it_writes_works_in_a_sandbox_and_can_write_that(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = project.root.parent / "home"
    for name in (".mine/login", ".config/mine/settings", ".ssh/id", "notes.txt"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("x")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("U", str(project.root))
    acts = (
        "cat ~/.mine/login ~/.config/mine/settings > a.txt; cat ~/.ssh/id >> a.txt; echo x > ~/.mine/used; "
        "echo y > ~/notes.txt; echo x > $U/sly.txt; true"
    )
    project.settings(f'{LIMITS}\n[agents.mine]\ncommand = "bash -c \'{acts}\'"\nwrites = [".mine/"]\n')
    project.plan(("1.1", "Make a", "test -s a.txt"))
    result = project.ask("run", "tasks.md", "--agent", "mine")
    assert result.code == 0, result
    assert project.git("show", "HEAD:a.txt") == "xx", "its own settings, and no key"
    assert (home / ".mine" / "used").read_text() == "x\n"
    assert (home / "notes.txt").read_text() == "x"
    assert not (project.root / "sly.txt").exists()


@needs_bubblewrap
def test_verification_by_hand_runs_the_checks_in_the_sandbox_of_runs(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("U", str(project.root))
    project.settings(BWRAP)
    project.file("a.txt", "a\n")
    result = project.ask("verify", "HEAD")
    assert result.code == 0, result
    project.settings(BWRAP.replace('"bwrap"', '"none"'))
    project.file("b.txt", "b\n")
    assert project.ask("verify", "HEAD").code != 0, "without a sandbox the check sees the checkout"


@needs_bubblewrap
def test_a_remedy_in_a_sandbox_reaches_the_checkout_and_nothing_else(project: Project) -> None:
    elsewhere = project.root.parent / "elsewhere"
    elsewhere.mkdir()
    project.settings(BWRAP)
    project.file("config.yaml", "port: 1\n")

    def remedied(target: str) -> int:
        call = ("--exit-code", "1", "--command", f"tee {target} < Config.YAML", "--run", "--allow", "caution")
        said = "bash: Config.YAML: No such file or directory\n"
        argv = [sys.executable, "-P", "-m", "unstuck", "remedy", *call]
        return subprocess.run(
            argv, cwd=project.root, input=said, text=True, capture_output=True, check=False
        ).returncode

    assert remedied("copy.txt") == 0
    assert (project.root / "copy.txt").read_text() == "port: 1\n"
    assert remedied(str(elsewhere / "copy.txt")) != 0
    assert [*elsewhere.iterdir()] == []


@needs_bubblewrap
def test_agents_check_proves_that_an_agent_works_in_a_sandbox(project: Project) -> None:
    project.settings(
        f"{BWRAP}\n[agents.mine]\ncommand = '''{sys.executable} -I -c \"open('hello.txt', 'w').write('hello\\\\n')\"'''\n"
    )
    result = project.ask("agents", "check", "mine")
    assert result.code == 0, result
    assert "sandbox" in result.out


def test_a_sandbox_that_is_asked_for_and_not_there_stops_a_run_before_it_begins(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("git", "bash", "sh", "env"):
        (tools / name).symlink_to(shutil.which(name) or name)
    monkeypatch.setenv("PATH", str(tools))
    project.settings(BWRAP)
    project.plan(("1.1", "Make a", "true"))
    process = project.start("run", "tasks.md", "--agent", project.agent, PATH=os.environ["PATH"])
    _, err = process.communicate()
    assert process.returncode == 69
    assert "bubblewrap (bwrap) is not on PATH" in err
    assert "Hint: Install it" in err
