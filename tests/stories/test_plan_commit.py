"""The plan's own commit: our ticks and tasks in the text that was committed, and nothing that a person wrote meanwhile."""

import json
import shlex
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sampling import some

if TYPE_CHECKING:
    from tests.project import Project

TASKS_MD = (
    "# Plan\n\n- [ ] 1.1 Make a\n  - **Verify**: `test -f a.txt`\n\n- [ ] 1.2 Make b\n  - **Verify**: `test -f b.txt`\n"
)
SUPERPLAN = """\
# Plan

| Phase | Name | Depends On | Parallel With | Estimate | Status |
|---|---|---|---|---|---|
| 1 | Make a | - | - | 1 | ⬜ |

### Phase 1: Make a

> **Status**: ⬜ Not Started

#### Definition of Done
- [ ] `test -f a.txt` passes
"""
PHASES = json.dumps({"phases": [{"phase": 1, "subtasks": [
    {"id": "s1", "description": "Make a", "status": "pending", "verification": {"type": "command", "command": "test -f a.txt"}}]}]}, indent=1)  # fmt: skip
TASK_MASTER = json.dumps({"tasks": [
    {"id": 1, "title": "Make a", "status": "pending", "dependencies": [], "testStrategy": "Run `test -f a.txt`."}]}, indent=1)  # fmt: skip
PRD = json.dumps({"userStories": [
    {"id": "US-1", "title": "Make a", "acceptanceCriteria": ["`test -f a.txt` passes"], "passes": False}]}, indent=1)  # fmt: skip
KIRO = "# Implementation Plan\n\n- [ ] 1. Make things\n  - [ ] 1.1 Make a\n    - Verify: `test -f a.txt`\n    - _Requirements: 1.1_\n"
SPEC_KIT = "# Tasks: x\n\n## Phase 1: Setup\n\n- [ ] T001 Make a in a.txt\n  - **Verify**: `test -f a.txt`\n"
CHECKLIST = "# Things\n\n* [ ] Make a\n  * Verify: `test -f a.txt`\n"
MAKE_A, MAKE_B = {"write": "a.txt"}, {"write": "b.txt"}

FORMATS = {
    "tasks.md": ("tasks.md", TASKS_MD, ("_1_1", "_1_2"), "# Plan", "# My plan"),
    "superplan": ("plan.md", SUPERPLAN, ("1",), "# Plan", "# My plan"),
    "phases": ("implementation_plan.json", PHASES, ("s1",), '{\n "phases"', '{\n "feature": "mine",\n "phases"'),
    "task-master": ("tasks.json", TASK_MASTER, ("1",), '"title": "Make a",', '"title": "Make a", "mine": 1,'),
    "prd": ("prd.json", PRD, ("US-1",), '"title": "Make a",', '"title": "Make a", "mine": 1,'),
    "kiro": ("tasks.md", KIRO, ("_1_1",), "# Imp", "# My imp"),
    "spec-kit": ("tasks.md", SPEC_KIT, ("T001",), "# Tasks", "# My tasks"),
    "checklist": ("todo.md", CHECKLIST, ("t1",), "# Things", "# My things"),
}


def everything(*names: str) -> dict[str, list[list[dict[str, str]]]]:
    """Return a script that does each of these tasks, whatever it is."""
    return {name: [[MAKE_A, MAKE_B]] for name in names}


@pytest.mark.parametrize(("form", "when"), some(product(FORMATS, ("before", "staged", "during")), every=4, parts=True))
def test_a_persons_own_edits_of_the_plan_stay_theirs_and_only_our_marks_are_committed(
    project: "Project", form: str, when: str
) -> None:
    name, text, tasks, old, new = FORMATS[form]
    plan = project.file(name, text)
    script = everything(*tasks)
    if when == "during":
        edit = f"import pathlib; p = pathlib.Path({str(plan)!r}); p.write_text(p.read_text().replace({old!r}, {new!r}))"
        script[tasks[-1]][0].insert(0, {"run": shlex.join([sys.executable, "-c", edit])})
    else:
        plan.write_text(text.replace(old, new))
    if when == "staged":
        project.git("add", name)
    project.script(**script)
    result = project.run(plan=name)
    assert result.code == 0, result
    assert project.commits()[0] == "Tick the plan", result
    committed, working = project.git("show", f"HEAD:{name}"), plan.read_text().rstrip("\n")
    assert committed == working.replace(new, old), "HEAD's text has our marks and nothing of theirs"
    assert working != text.replace(old, new).rstrip("\n"), "the file that lies there has the marks as well"
    assert new in working
    staged = project.git("show", f":{name}")
    assert staged == (working if when == "staged" else committed)
    assert project.git("log", "-1", "--name-only", "--format=") == name


def test_tasks_that_we_wrote_are_committed_without_a_persons_edits(project: "Project") -> None:
    plan = project.file("specs/demo/tasks.md", TASKS_MD)
    project.file("specs/demo/.progress.md", "# Progress\n")
    failed = "Task 1.1: Make a FAILED\n- Error: no parser\n- Attempted fix: none\n- Status: Blocked"
    edit = f"sed -i 's/# P/# My p/' {plan} {plan.with_name('.progress.md')}"
    project.script(
        _1_1=[[{"print": failed}], [MAKE_A]], _1_1_1=[[{"run": edit}, MAKE_A]], _1_2=[[MAKE_B, asking("ADD_FOLLOWUP")]], _1_2_1=[[]]
    )  # fmt: skip
    result = project.run("--recovery-mode", plan="specs/demo")
    assert result.code == 0, result
    for name in ("tasks.md", ".progress.md"):
        working = plan.with_name(name).read_text()
        assert working.startswith("# My p")
        assert project.git("show", f"HEAD:specs/demo/{name}") == working.replace("# My p", "# P").rstrip("\n")
    assert "- [x] 1.1.1 [FIX 1.1]" in plan.read_text()
    assert "- [x] 1.2.1 After it" in plan.read_text()


def asking(sort: str) -> dict[str, str]:
    task = "- [ ] 9 After it\n  - **Do**: it\n  - **Files**: a.txt\n  - **Done when**: done\n  - **Verify**: `test -f a.txt`\n  - **Commit**: feat: it"
    request = {"type": sort, "originalTaskId": "1.2", "reasoning": "More", "proposedTasks": [task]}
    return {"print": f"TASK_MODIFICATION_REQUEST\n{json.dumps(request)}"}


def test_a_task_that_was_never_committed_or_is_another_there_is_ticked_only_where_it_lies(project: "Project") -> None:
    plan = project.file("tasks.md", TASKS_MD.replace("1.1 Make a", "1.1 Drop everything").partition("- [ ] 1.2")[0])
    plan.write_text(TASKS_MD)
    project.script(_1_1=[[MAKE_A]], _1_2=[[MAKE_B]])
    result = project.run()
    assert result.code == 0, result
    assert "Tick the plan" not in project.commits()
    assert plan.read_text() == TASKS_MD.replace("[ ]", "[x]")


def test_a_plan_that_git_does_not_track_or_that_is_only_staged_stays_so(project: "Project") -> None:
    plan = project.file("tasks.md", TASKS_MD, commit=False)
    project.git("add", "-N", "tasks.md")
    project.script(_1_1=[[MAKE_A]], _1_2=[[MAKE_B]])
    result = project.run()
    assert result.code == 0, result
    assert project.commits()[0] == "Make b"
    assert project.git("status", "--porcelain", "tasks.md").split() == ["A", "tasks.md"]
    assert plan.read_text() == TASKS_MD.replace("[ ]", "[x]")


MEANWHILE = {
    "a-merge": ("git -C {root} update-ref MERGE_HEAD HEAD", "in the middle of a merge"),
    "a-lock": ("touch {root}/.git/index.lock", "git refused"),
}


@pytest.mark.parametrize("what", MEANWHILE)
def test_where_the_plan_cannot_be_committed_the_work_is_done_and_the_reason_told(project: "Project", what: str) -> None:
    act, reason = MEANWHILE[what]
    plan = project.file("tasks.md", TASKS_MD)
    act = act.format(root=project.root)
    project.script(_1_1=[[MAKE_A]], _1_2=[[MAKE_B, {"run": act}]])
    result = project.run()
    assert result.code == 0, result
    assert reason in result.out
    assert "Tick the plan" not in project.commits()
    assert plan.read_text() == TASKS_MD.replace("[ ]", "[x]")


def test_a_conflict_in_the_plan_that_a_person_is_solving_is_left_alone(project: "Project") -> None:
    plan = project.file("tasks.md", TASKS_MD)
    blob = project.git("rev-parse", "HEAD:tasks.md")
    entries = "".join(f"100644 {blob} {stage}\ttasks.md\n" for stage in (1, 2, 3))
    act = f"cd {project.root} && git rm -q --cached tasks.md && printf %s {shlex.quote(entries)} | git update-index --index-info"
    project.script(_1_1=[[MAKE_A]], _1_2=[[MAKE_B, {"run": shlex.join(["sh", "-c", act])}]])
    result = project.run()
    assert result.code == 0, result
    assert project.git("ls-files", "--stage", "tasks.md").splitlines() == entries.splitlines()
    assert plan.read_text() == TASKS_MD.replace("[ ]", "[x]")


def test_line_ends_and_encodings_of_the_file_are_no_edits(project: "Project") -> None:
    project.git("config", "core.autocrlf", "true")
    plan = project.file("tasks.md", TASKS_MD.replace("\n", "\r\n"))
    assert "\r" not in project.git("show", "HEAD:tasks.md")
    project.script(_1_1=[[MAKE_A]], _1_2=[[MAKE_B]])
    result = project.run()
    assert result.code == 0, result
    assert project.git("show", "HEAD:tasks.md") == TASKS_MD.replace("[ ]", "[x]").rstrip("\n")
    assert plan.read_bytes().decode() == TASKS_MD.replace("[ ]", "[x]").replace("\n", "\r\n")
    assert project.git("status", "--porcelain", "--untracked-files=no") == ""


def test_a_plan_that_is_made_read_only_meanwhile_is_ticked_and_committed_when_it_can_be(project: "Project") -> None:
    plan = project.file("tasks.md", TASKS_MD)
    project.script(_1_1=[[MAKE_A]], _1_2=[[MAKE_B, {"run": f"chmod 444 {plan}"}]])
    result = project.run()
    assert (result.code, "Cannot write tasks.md: it is read-only" in result.err) == (1, True), result
    plan.chmod(0o644)
    assert project.unstuck("resume").code == 0
    assert project.git("show", "HEAD:tasks.md") == TASKS_MD.replace("[ ]", "[x]").rstrip("\n")
    assert project.git("status", "--porcelain", "--untracked-files=no") == ""


def test_a_plan_outside_of_the_repository_is_ticked_and_never_committed(project: "Project", tmp_path: Path) -> None:
    plan = tmp_path / "plan.md"
    plan.write_text(TASKS_MD)
    project.script(_1_1=[[MAKE_A]], _1_2=[[MAKE_B]])
    result = project.run(plan=str(plan))
    assert result.code == 0, result
    assert project.commits()[0] == "Make b"
    assert plan.read_text() == TASKS_MD.replace("[ ]", "[x]")
