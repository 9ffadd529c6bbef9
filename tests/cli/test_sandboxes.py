"""Runs with a sandbox, as a user sees them: what is asked for, what holds on this machine, and that it is said."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from tests.project import LIMITS, Project

from unstuck.process.sandbox import trouble

needs_bubblewrap = pytest.mark.skipif(bool(trouble()), reason=trouble() or "there is a sandbox")
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
    told = project.run()
    assert told.code == 0, told
    assert "Make a" in project.git("show", "HEAD:a.txt")
    assert project.git("status", "--porcelain") == ""
    finding = next(one for one in project.ask("doctor", "--json").json["findings"] if one["about"] == "sandbox")
    assert (finding["grade"], "checks as well" in finding["says"]) == ("ok", True)


@needs_bubblewrap
def test_agents_check_proves_that_an_agent_works_in_a_sandbox(project: Project) -> None:
    project.settings(
        f"{BWRAP}\n[agents.mine]\ncommand = '''{sys.executable} -I -c \"open('hello.txt', 'w').write('hello\\\\n')\"'''\n"
    )
    told = project.ask("agents", "check", "mine")
    assert told.code == 0, told
    assert "sandbox" in told.out


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
