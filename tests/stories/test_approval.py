"""What a person wants to approve is held until they do, and nothing is paid for twice."""

import json
from typing import TYPE_CHECKING

import pytest
from tests.project import LIMITS

from unstuck.app.inspect import look

if TYPE_CHECKING:
    from tests.project import Project

BEFORE = LIMITS + "[approve]\nbefore = [{}]\n"


def sessions(project: "Project") -> int:
    tasks = look(project.root).state.tasks.values()
    return sum(attempt.sessions for task in tasks for attempt in task.attempts)


def written(project: "Project") -> None:
    """Write a plan of two tasks, the second of which needs the first, and an agent that does them."""
    plan = project.plan(("1.1", "Make a", "test -f a.txt"), ("1.2", "Make b", "test -f a.txt -a -f b.txt"))
    project.file(plan.name, plan.read_text() + "  - **Depends**: 1.1\n")
    project.script(_1_1=[[{"write": "a.txt"}]], _1_2=[[{"write": "b.txt"}]])


def test_a_plan_is_begun_when_it_is_approved(project: "Project") -> None:
    project.settings(BEFORE.format('"plan"'))
    written(project)
    result = project.run()
    assert result.code == 3, result
    assert "unstuck approve" in result.out
    assert project.ask("resume", "--quiet").code == 3, "going on is no approval"
    assert sessions(project) == 0
    assert project.ask("approve").code == 0
    assert project.unstuck("resume").code == 0
    assert sessions(project) == 2
    result = project.ask("approve")
    assert (result.code, "Nothing waits for an approval." in result.err) == (64, True), result


def test_work_lands_when_it_is_approved_and_is_not_done_again(project: "Project") -> None:
    project.settings(BEFORE.format('"land"'))
    written(project)
    result = project.run()
    assert result.code == 3
    asked = " ".join(result.out.partition("What needs you:")[2].split())
    assert asked.startswith("1.1: All checks pass. It lands when you approve it: unstuck approve 1.1 read its story"), (
        asked
    )
    assert project.ask("resume", "--quiet").code == 3
    assert project.status() == {"1.1": "stuck", "1.2": "blocked"}
    assert "0 of them different" in project.ask("replay", "--profile", "adaptive").out
    assert project.ask("approve", "1.2").code == 64, "what is not done cannot be approved"
    assert project.ask("approve", "1.1").code == 0
    assert project.ask("resume", "--quiet").code == 3, "the second waits now"
    assert project.ask("approve").code == 0
    assert project.unstuck("resume").code == 0
    assert sessions(project) == 2
    assert [subject for subject in project.commits() if subject.startswith("Make")] == ["Make b", "Make a"]


@pytest.mark.parametrize("awaiting", [True, False])
def test_a_state_file_that_awaits_approval_holds_its_run(project: "Project", awaiting: bool) -> None:
    folder = project.root / "specs" / "demo"
    project.file("specs/demo/tasks.md", "# Tasks\n\n- [ ] 1.1 Make a\n  - **Verify**: `test -f a.txt`\n")
    state = folder / ".ralph-state.json"
    state.write_text(json.dumps({"phase": "execution", "awaitingApproval": awaiting, "mine": 1}))
    project.script(_1_1=[[{"write": "a.txt"}]])
    result = project.run(plan="specs/demo")
    assert result.code == (3 if awaiting else 0), result
    if awaiting:
        assert "awaitingApproval" in result.out
        assert sessions(project) == 0
        assert project.ask("approve").code == 0
        assert project.unstuck("resume").code == 0
    assert sessions(project) == 1
    assert json.loads(state.read_text())["awaitingApproval"] is False
    assert json.loads(state.read_text())["mine"] == 1
