"""`draft` and `plan --repair`: an agent writes a plan, all its mistakes are handed back, and nothing of it runs without a yes."""

import os
import pty
import subprocess
import sys

import pytest
from tests.project import Project

GOOD = """# Greetings

- [ ] 1.1 Write a greeting
  - **Files**: `greeting.txt`
  - **Verify**: `grep -q hello greeting.txt`
- [ ] 1.2 Write a farewell
  - **Files**: `farewell.txt`
  - **Depends**: 1.1
  - **Verify**: `grep -q bye farewell.txt`
- [ ] 1.3 [VERIFY] The readme is still there
  - **Verify**: `test -f readme.txt`
"""
TWO_MISTAKES = GOOD.replace("**Depends**: 1.1", "**Depends**: 9.9").replace(
    "grep -q bye farewell.txt", "test -f readme.txt"
)
RAN = "ran.log"


def writes(*plans: str, to: str = "tasks.md") -> list[list[dict[str, str]]]:
    return [[{"write": to, "text": plan}] for plan in plans]


def test_a_plan_with_two_mistakes_is_repaired_in_the_second_round_and_runs(project: Project) -> None:
    project.script(
        draft=writes(TWO_MISTAKES, GOOD),
        _1_1=[[{"write": "greeting.txt", "text": "hello\n"}]],
        _1_2=[[{"write": "farewell.txt", "text": "bye\n"}]],
    )
    result = project.ask("draft", "Greet people", "--agent", project.agent, "--yes", "--json")
    assert result.code == 0, result
    assert result.json["rounds"] == 2
    assert [proof["standing"] for proof in result.json["proofs"]] == ["red", "red", "guard"]
    brief = (project.store / "briefs" / "draft-2-1.md").read_text()
    assert "depends on an unknown task '9.9'" in brief
    assert "passes already on HEAD" in brief
    assert (project.root / "tasks.md").read_text() == GOOD
    assert project.run().code == 0


def test_without_a_yes_nothing_is_run_and_a_run_refuses_what_is_only_proposed(project: Project) -> None:
    ran = project.root.parent / RAN
    plan = GOOD.replace("grep -q hello greeting.txt", f"date > {ran}; grep -q hello greeting.txt")
    plan = plan.replace(f"date > {ran}", f"date >{ran}")
    project.script(draft=writes(plan), _1_1=[[{"write": "greeting.txt", "text": "hello\n"}]])
    result = project.ask("draft", "Greet people", "--agent", project.agent)
    assert result.code == 3, result
    assert "none of them is run" in result.err
    assert (project.root / "tasks.md").read_text().count("**Verify** (proposed by scripted") == 3
    refused = project.run()
    assert refused.code == 64
    assert "nobody has approved it" in refused.err
    assert not ran.exists()


def test_a_destructive_check_is_pointed_out_and_never_run(project: Project) -> None:
    treasure = project.root.parent / "treasure.txt"
    treasure.write_text("gold\n")
    plan = GOOD.replace("grep -q bye farewell.txt", f"rm -rf {treasure}; test -f farewell.txt")
    project.script(draft=writes(plan))
    result = project.ask("draft", "Greet people", "--agent", project.agent, "--yes")
    assert result.code == 64, result
    assert "deletes" in result.err
    assert "not run" in result.err
    assert treasure.exists()
    assert not (project.root / "tasks.md").exists()


def test_a_marked_plan_is_approved_later_without_an_agent(project: Project) -> None:
    project.script(draft=writes(GOOD))
    assert project.ask("draft", "Greet people", "--agent", project.agent).code == 3
    result = project.ask("plan", "tasks.md", "--repair", "--agent", project.agent, "--yes", "--json")
    assert result.code == 0, result
    assert result.json["rounds"] == 0
    assert (project.root / "tasks.md").read_text() == GOOD


def test_an_invalid_plan_is_repaired_and_a_persons_own_commands_need_no_yes(project: Project) -> None:
    good = f"{GOOD}- [ ] 1.4 A task that nothing checks, as its owner wants it\n"
    broken = good.replace("1.2 Write a farewell", "1.1 Write a farewell")
    project.file("specs/greet/tasks.md", broken)
    project.script(draft=[[{"write": "specs/greet/tasks.md", "text": good}]])
    kept = project.ask("plan", "specs/greet", "--repair", "--agent", project.agent)
    assert kept.code == 3, kept
    assert (project.root / "specs/greet/tasks.md").read_text() == broken
    assert "+- [ ] 1.2 Write a farewell" in (project.store / "drafts" / "greet.diff").read_text()
    result = project.ask("plan", "specs/greet", "--repair", "--agent", project.agent, "--yes")
    assert result.code == 0, result
    assert "proposes" not in result.err
    assert (project.root / "specs/greet/tasks.md").read_text() == good


def test_what_is_wrong_after_three_rounds_is_told_and_not_written(project: Project) -> None:
    (project.root / "prd.md").write_text("People want to be greeted.\n")
    project.script(draft=writes("no plan at all\n", TWO_MISTAKES, GOOD.replace("- [ ]", "- [x]"), to="plan.md"))
    result = project.ask("draft", "prd.md", "--agent", project.agent, "--yes", "-o", "plan.md")
    assert result.code == 64, result
    assert "After 3 rounds the plan still has 3 problems" in result.err
    assert "Task 1.1 is settled already, and nothing of a new plan is." in result.err
    assert "People want to be greeted." in (project.store / "briefs" / "draft-1-1.md").read_text()
    assert not (project.root / "plan.md").exists()


def test_what_an_agent_only_printed_is_taken_and_a_link_out_of_the_clone_is_not(project: Project) -> None:
    secret = project.root.parent / "secret.txt"
    secret.write_text("- [ ] 1.1 hunter2\n")
    project.script(draft=[[{"run": f"ln -s {secret} tasks.md"}], [{"print": f"```markdown\n{GOOD}```\nDone."}]])
    result = project.ask("draft", "Greet people", "--agent", project.agent, "--yes", "--json")
    assert result.code == 0, result
    assert result.json["rounds"] == 2
    assert "hunter2" not in (project.root / "tasks.md").read_text()
    assert (project.root / "tasks.md").read_text() == GOOD


@pytest.mark.parametrize(
    ("plan_format", "plan"),
    [
        ("kiro", "- [ ] 1. Greet\n  - [ ] 1.1 Write\n    - **Verify:** `test -f a.txt`\n    - _Requirements: 1_\n"),
        ("spec-kit", "## Phase 1: Setup\n\n- [ ] T001 Write a.txt\n  - Verify: `test -f a.txt`\n"),
    ],
)
def test_other_forms_are_drafted_and_marked(project: Project, plan_format: str, plan: str) -> None:
    project.script(draft=writes(plan))
    result = project.ask("draft", "Greet", "--agent", project.agent, "--format", plan_format)
    assert result.code == 3, result
    marked = project.ask("plan", "tasks.md", "--format", plan_format, "--json").json
    assert [task["checks"] for task in marked["tasks"]] == [[]]
    assert "nobody has approved it" in marked["problems"][0]["message"]


def test_a_person_at_a_terminal_is_asked_before_anything_runs(project: Project) -> None:
    project.script(draft=writes(GOOD))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-P", "-m", "unstuck", "draft", "Greet people", "--agent", project.agent]
    with subprocess.Popen(command, cwd=project.root, stdin=theirs, stderr=theirs, stdout=subprocess.DEVNULL) as process:
        os.close(theirs)
        first = read_until(ours, b"before any work?")
        os.write(ours, b"y\n")
        read_until(ours, b"Start it now?")
        os.write(ours, b"n\n")
        process.wait()
    os.close(ours)
    assert process.returncode == 0
    assert b"grep -q hello greeting.txt" in first
    assert (project.root / "tasks.md").read_text() == GOOD
    assert not (project.store / "journal.db").exists()


def read_until(terminal: int, words: bytes) -> bytes:
    said = b""
    while words not in said:
        said += os.read(terminal, 4096)
    return said
