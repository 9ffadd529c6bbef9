"""Autobuild as a program: phases in parallel, one retry after the siblings, a halt that keeps everything, and resuming."""

import json
import re
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from tests.stories.superplans import PLAN, all_right, run, superplan, write

if TYPE_CHECKING:
    from tests.project import CommandResult, Project

WRONG = write("2a", "wrong\n")
UNTIL_2A_FAILED, UNTIL_2C_LANDED = (
    {
        "run": f"bash -c 'until grep -q {shlex.quote(told)} ${{UNSTUCK_BRIEF%/*}}/../logs/execution.log; do sleep 0.05; done'"
    }
    for told in ("PARTIAL", "acted.2c:.landed")
)
"""Keep a phase busy until the supervisor has told what happened to another."""

PARTIAL_FAILURE = """\
PARALLEL BATCH - PARTIAL FAILURE
================================

Batch: [2A, 2B, 2C]

Status:
  Phase 2A: FAILED (attempt 1)
  Phase 2B: running...
  Phase 2C: complete

Decision: Allow running siblings to complete before retry.

Rationale:
1. Siblings may succeed, preserving their work
2. Retry of 2A won't conflict with running 2B
3. More efficient than cancelling all

Waiting for 2B to complete...
"""
AFTER_SIBLINGS = """\
PARALLEL BATCH - RETRY AFTER SIBLINGS
=====================================

All siblings complete:
  Phase 2A: failed (attempt 1)
  Phase 2B: complete
  Phase 2C: complete

Initiating retry for Phase 2A...

Note: 2B and 2C results preserved. Their commits (if --commit auto)
already created. 2A retry runs in isolation.
"""


def phase(project: "Project", name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((project.home / "phases" / f"phase-{name}.json").read_text())
    return content


def landed(project: "Project") -> list[str]:
    return [name for name, status in project.status().items() if status == "complete"]


def attempts(project: "Project") -> list[str]:
    """List the attempts in the order in which they were opened."""
    log = (project.home / "logs" / "execution.log").read_text()
    return [f"{name} #{number}" for name, number in re.findall(r"attempt_started (\w+): attempt (\d+)", log)]


@pytest.fixture
def halted(project: "Project") -> tuple["Project", "CommandResult"]:
    """Run a plan whose phase 2A fails twice while 2B is still at work."""
    superplan(project)
    project.script(**all_right(_2a=[[WRONG]], _2b=[[UNTIL_2A_FAILED, write("2b")]]))
    result = run(project)
    assert result.code == 3, result
    return project, result


# --- one retry, after the siblings ---------------------------------------------------------------------


def test_a_failed_phase_waits_for_its_siblings_and_is_then_tried_once_more(project: "Project") -> None:
    superplan(project)
    project.script(**all_right(_2a=[[UNTIL_2C_LANDED, WRONG], [write("2a")]], _2b=[[UNTIL_2A_FAILED, write("2b")]]))
    result = run(project)
    assert result.code == 0, result
    assert attempts(project)[-2:] == ["2a #2", "3 #1"]
    assert phase(project, "2a")["error"] == {
        "attempt_1": {"type": "test_failure", "message": "3 tests failing"},
        "resolved_on_retry": True,
    }
    assert (phase(project, "2a")["status"], phase(project, "2a")["attempt"]) == ("complete", 2)
    assert PARTIAL_FAILURE in result.err
    assert AFTER_SIBLINGS in result.err
    assert (
        "PHASE FAILURE - Initiating Retry\n================================\n\nPhase: 2A (Part 2A)\nAttempt: 1 of 2\n\n"
        "Failure details:\n  Type: test_failure\n  Message: 3 tests failing in tests/2a_test.py\n" in result.err
    )


def test_the_retry_is_told_what_failed_and_how_to_go_about_it(halted: tuple["Project", "CommandResult"]) -> None:
    brief = (halted[0].home / "briefs" / "2a-2-1.md").read_text()
    assert (
        "Fix the failing tests. The errors are in tests/2a_test.py.\nCommon issues: incorrect assertions, missing mocks"
        in brief
    )
    assert "validateToken returns null" in brief


def test_a_second_failure_halts_after_the_batch_with_everything_preserved(
    halted: tuple["Project", "CommandResult"],
) -> None:
    project, result = halted
    assert phase(project, "2a")["error"] == {
        "attempt_1": {"type": "test_failure", "message": "3 tests failing"},
        "attempt_2": {"type": "test_failure", "message": "3 tests still failing"},
        "final": "Failed after maximum retries",
    }
    assert phase(project, "3")["error"] == {
        "type": "blocked",
        "message": "Blocked by failed phase 2a",
        "blocking_phase": "2a",
    }
    assert landed(project) == ["1", "2b", "2c"]
    assert attempts(project).count("2a #2") == 1
    for text in (
        "UNSTUCK HALTED",
        "Reason: Phase 2A failed after retry",
        "COMPLETED PHASES",
        "Phase 2B: Part 2B ... complete\n  Commit: feat(part-2b): write part 2B",
        "FAILED PHASE\n",
        "  Attempts: 2/2\n  Error: test_failure\n  Details: 3 tests failing - AssertionError: validateToken returns null",
        "Phase 3: Part 3 ... blocked\n  Blocked by: 2A",
        "STATE PRESERVED\n---------------\nDirectory: .unstuck/\nState files: 5 phases\nLogs: .unstuck/logs/",
        "1. Fix the failing tests in tests/2a_test.py",
        f"2. Run: unstuck run {PLAN} --commit auto --resume",
    ):
        assert text in result.out, text
    assert not set("║╔─") & set(result.out), "without a terminal there are no boxes"
    assert "User action:\n- Review test failures manually\n- Check if tests are flaky" in result.err
    log = (project.home / "logs" / "execution.log").read_text()
    assert "6. Preserve state for resume" in log


def test_several_failed_siblings_are_each_tried_once_more_and_then_the_run_halts(project: "Project") -> None:
    superplan(project)
    project.script(**all_right(_2a=[[WRONG], [write("2a")]], _2b=[[write("2b", "wrong\n")]]))
    result = run(project, "--parallel", "1")
    assert result.code == 3, result
    assert sorted(attempts(project)[-2:]) == ["2a #2", "2b #2"], "both retries come after all first tries"
    assert (
        "Results:\n  Phase 2A: failed\n  Phase 2B: failed\n  Phase 2C: complete\n\nMultiple phases failed. Retrying each:\n\n"
        "Retry 1: Phase 2A (parallel with 2B retry)\nRetry 2: Phase 2B (parallel with 2A retry)\n" in result.err
    )
    assert (
        "Retry results:\n  Phase 2A: complete (retry succeeded)\n  Phase 2B: failed (retry failed)\n\n"
        "Phase 2B failed after retry.\nUNSTUCK HALTED" in result.err
    )
    assert landed(project) == ["1", "2a", "2c"]


def test_where_all_siblings_fail_each_is_tried_once_more_and_nothing_that_landed_is_lost(project: "Project") -> None:
    superplan(project)
    project.script(**all_right(**{f"_{name}": [[write(name, "wrong\n")]] for name in ("2a", "2b", "2c")}))
    result = run(project)
    assert result.code == 3, result
    assert sorted(attempts(project)[-3:]) == ["2a #2", "2b #2", "2c #2"]
    assert (
        "Retry 3: Phase 2C (parallel with 2A, 2B retry)\n\n[Retries run in parallel since they're independent]"
        in result.err
    )
    assert "Reason: Phase 2A failed after retry; Phase 2B failed after retry; Phase 2C failed after retry" in result.out
    assert "Phase 3: Part 3 ... blocked\n  Blocked by: 2A, 2B, 2C" in result.out
    assert landed(project) == ["1"]


RESULT = {
    "phase_id": "1", "status": "complete", "tasks": {"total": 1, "completed": 1}, "quality_gates": {"test": {"passed": True}},
    "commit_message": "feat: x", "files": {"created": [], "modified": [], "deleted": []}, "plan_updated": False, "error": None,
}  # fmt: skip
SHORT = {**RESULT, "tasks": {"total": 3, "completed": 1}}
CUT_OFF = '{"phase_id": "1", "status": "comp'
QUICK = '[limits]\nfirst_output = 20\n[profiles.quick]\nlike = "single-retry"\n[profiles.quick.limits]\nattempts = 2\nwall_clock = 5\n'


@pytest.mark.parametrize(
    ("tool", "output", "first", "kind", "guidance", "captured"),
    [
        pytest.param(
            "Linter", "src/a.py:1:1: F401 unused", [write("1", "bad")], "lint_error",
            "Fix linting errors. Run `bash gate.sh` to see current errors.",
            {"count": 1, "files": ["src/a.py"], "rules": ["F401"], "lines": ["src/a.py:1"]}, id="lint",
        ),
        pytest.param(
            "Type Checker", "src/a.py:3: error: Incompatible types  [arg-type]", [write("1", "bad")], "typecheck_error",
            "Fix type errors. Run `bash gate.sh` to see current errors.\nCheck that function signatures match usage.",
            {"count": 1, "files": ["src/a.py"], "messages": ["error: Incompatible types [arg-type]"], "lines": ["src/a.py:3"]}, id="types",
        ),
        pytest.param(
            "Formatter", "would reformat src/a.py", [write("1", "bad")], "format_error",
            "Run the formatter over the files it names, and nothing else.", {"count": 1, "files": ["src/a.py"]}, id="format",
        ),
        pytest.param(
            "Test Framework", "FAILED tests/a.py::t", [write("1", "bad"), {"print": json.dumps(SHORT)}], "task_incomplete",
            "Finish the items that are still open, then say that you are done.",
            {"claimed": "none", "tasks_completed": 1, "tasks_total": 3}, id="incomplete",
        ),
        pytest.param(
            "Test Framework", "FAILED tests/a.py::t", [write("1", "bad"), {"print": CUT_OFF}], "parse_error",
            "The JSON that you printed as your result cannot be read. None is needed: do the task, and say that you are done.",
            {"last_activity": CUT_OFF}, id="unreadable",
        ),
        pytest.param(
            "Test Framework", "FAILED tests/a.py::t", [write("1", "bad"), {"print": json.dumps(RESULT)}], "verification_mismatch",
            "Previous sub-agent reported success but verification failed.\nRun ALL quality gates after EVERY change. Ensure tests pass\n"
            "at the end, not just during development.",
            {"claimed": "done", "found": "fail", "discrepancy": ["bash gate.sh"]}, id="mismatch",
        ),
        pytest.param(
            "Test Framework", "", [{"print": "npm test"}, {"hang": True}], "timeout",
            "Previous attempt timed out. Focus on completing tasks efficiently.\nIf tests are slow, consider running targeted tests only.",
            {"last_activity": "npm test"}, id="timeout",
        ),
    ],
)  # fmt: skip
def test_each_type_of_failure_has_its_guidance_and_its_facts(
    project: "Project", tool: str, output: str, first: list[Any], kind: str, guidance: str, captured: dict[str, Any]
) -> None:
    project.settings(QUICK)
    superplan(project, [("1", "-", "-", "test -f 1.txt")], tools=f"| {tool} | bash gate.sh |\n")
    project.file("gate.sh", f"if grep -qs bad 1.txt; then echo {shlex.quote(output)}; exit 1; fi\n")
    project.script(_1=[first, [write("1")]])
    result = run(project, "--profile", "quick" if kind == "timeout" else "single-retry")
    assert result.code == 0, result
    brief = (project.home / "briefs" / "1-2-1.md").read_text()
    assert guidance in brief
    assert f"Type: {kind}" in brief
    assert ("Tasks completed: 1 of 3" in brief) is (kind == "task_incomplete")
    state = phase(project, "1")
    assert state["error"]["attempt_1"]["type"] == kind
    assert state["error"]["resolved_on_retry"] is True
    assert state["attempts"][0]["captured"].items() >= captured.items()


def test_the_checks_decide_where_the_agent_reports_a_failure_and_the_work_is_right(project: "Project") -> None:
    superplan(project, [("1", "-", "-", "test -f 1.txt")])
    project.script(_1=[[write("1"), {"print": json.dumps(RESULT | {"status": "failed", "error": {"message": "?"}})}]])
    result = run(project)
    assert result.code == 0, result
    verification = phase(project, "1")["verification"]
    assert (verification["subagent_claimed"], verification["fresh_verification"]) == ("failed", "passed")


def test_what_nothing_checks_is_asked_about_and_not_tried_again(project: "Project") -> None:
    superplan(project, [("1", "-", "-", "")])
    project.script(_1=[[write("1")]])
    result = run(project)
    assert (result.code, attempts(project)) == (3, ["1 #1"]), result
    assert "1. Look at the work, then take it: unstuck accept 1 --because TEXT" in result.out


# --- what is not retried -------------------------------------------------------------------------------


def test_a_missing_dependency_halts_at_once_and_names_the_package(project: "Project") -> None:
    superplan(project, tools="| Type Checker | bash types.sh |\n")
    project.file("types.sh", "echo \"error TS2688: Cannot find type definition file for 'jest'.\"\nexit 2\n")
    project.script(**all_right())
    result = run(project)
    assert result.code == 3, result
    assert attempts(project) == ["1 #1"]
    assert (
        "ERROR: dependency_missing (NON-RETRYABLE)\n=========================================\n\n"
        "Required dependency not installed:\n  Package: @types/jest\n  Required by: Type checking (`bash types.sh`)\n\n"
        "UNSTUCK CANNOT PROCEED\n\nResolution:\n  Install missing dependency: npm install -D @types/jest\n"
        f"  Then resume: unstuck run {PLAN} --commit auto --resume\n\n[HALTED - Manual intervention required]"
        in result.err
    )
    assert json.loads((project.home / "config.json").read_text())["commands"]["typecheck"] == "bash types.sh"


def test_a_gate_that_the_plan_names_must_be_there_and_one_that_it_does_not_name_is_none(project: "Project") -> None:
    superplan(project, [("1", "-", "-", "test -f 1.txt")], tools="| Linter | nosuchlinter . |\n| Formatter | - |\n")
    project.script(_1=[[write("1")]])
    result = run(project)
    assert (result.code, attempts(project)) == (3, ["1 #1"]), result
    assert "  Package: nosuchlinter\n  Required by: Linting (`nosuchlinter .`)\n" in result.err
    assert "1. Install what is missing: nosuchlinter\n" in result.out
    assert "unstuck accept" not in result.out, "nobody has worked yet"
    assert json.loads((project.home / "config.json").read_text())["commands"]["format"] is None


def conflicting(project: "Project") -> None:
    """Let 2A and 2B change the same lines of one file, 2A landing first."""
    rows = [("2A", "-", "2B", "grep -q A shared.txt"), ("2B", "-", "2A", "grep -q B shared.txt")]
    project.file("shared.txt", "".join(f"line {n}\n" for n in range(1, 41)))
    superplan(project, rows)
    wait = {
        "run": "bash -c 'until grep -q \"acted 2a: landed\" ${UNSTUCK_BRIEF%/*}/../logs/execution.log; do sleep 0.05; done'"
    }
    change = "sed -i '{}s/$/ {}/' shared.txt"
    project.script(
        _2a=[[{"run": change.format("10,25", "A")}]],
        _2b=[[wait, {"run": change.format("15,30", "B")}], [{"run": change.format("15,30", "B")}]],
    )


def test_a_conflict_is_told_with_the_lines_of_both_phases_and_halts(project: "Project") -> None:
    conflicting(project)
    result = run(project)
    assert result.code == 3, result
    assert (
        "ERROR: file_conflict (NON-RETRYABLE)\n====================================\n\nParallel phases modified the same file:\n"
        "  File: shared.txt\n  Phase 2A modified lines 10-25\n  Phase 2B modified lines 15-30\n\nUNSTUCK CANNOT PROCEED\n\n"
        "Resolution options:\n1. Manually merge the changes\n2. Modify plan to make these phases sequential\n"
        "3. Split the shared file to avoid conflicts\n\n[HALTED - Parallel conflict]" in result.err
    )
    assert attempts(project).count("2b #2") == 0
    assert phase(project, "2b")["attempts"][0]["type"] == "file_conflict"


def test_by_default_the_later_phase_is_done_again_on_top_of_the_earlier(project: "Project") -> None:
    conflicting(project)
    result = run(project, "--profile", "adaptive")
    assert result.code == 0, result
    assert project.git("show", "main:shared.txt").splitlines()[14] == "line 15 A B"
    assert "Other work landed first" in (project.home / "briefs" / "2b-2-1.md").read_text()


def test_green_alone_and_red_together_is_found_and_both_are_named(project: "Project") -> None:
    rows = [
        (name, "-", ", ".join({"2A", "2B", "2C"} - {name}), f"test -f {name.lower()}.txt")
        for name in ("2A", "2B", "2C")
    ]
    superplan(project, rows, tools="| Test Framework | bash both.sh |\n")
    project.file(
        "both.sh", 'if [ -f 2a.txt ] && grep -qs right 2c.txt; then echo "FAILED tests/x.py::both"; exit 1; fi\n'
    )
    first = {
        "run": "bash -c 'until [ $(grep -c \"acted 2[ab]: landed\" ${UNSTUCK_BRIEF%/*}/../logs/execution.log) = 2 ]; do sleep 0.05; done'"
    }
    project.script(_2a=[[write("2a")]], _2b=[[write("2b")]], _2c=[[first, write("2c")], [write("2c", "fitting\n")]])
    result = run(project)
    assert result.code == 0, result
    failed = phase(project, "2c")["attempts"][0]["message"]
    assert failed.startswith("Green alone, red together with 2a: the tests fail: "), failed
    assert ", from `bash both.sh`" in failed
    assert "red together with 2a" in (project.home / "briefs" / "2c-2-1.md").read_text()


def test_a_phase_that_breaks_an_earlier_ones_own_check_does_not_land(project: "Project") -> None:
    rows = [("2A", "-", "2B", "! grep -qs broken x.txt && test -f 2a.txt"), ("2B", "-", "2A", "test -f 2b.txt")]
    superplan(project, rows)
    wait = {
        "run": "bash -c 'until grep -q \"acted 2a: landed\" ${UNSTUCK_BRIEF%/*}/../logs/execution.log; do sleep 0.05; done'"
    }
    project.script(_2a=[[write("2a")]], _2b=[[wait, write("2b"), write("x", "broken\n")], [{"delete": "x.txt"}]])
    result = run(project)
    assert result.code == 0, result
    assert "red together with 2a" in phase(project, "2b")["attempts"][0]["message"]
    assert "x.txt" not in project.git("ls-tree", "--name-only", "main")


# --- resuming ------------------------------------------------------------------------------------------


def test_the_printed_command_resumes_after_an_external_fix(halted: tuple["Project", "CommandResult"]) -> None:
    project, result = halted
    command = re.search(r"Run: unstuck (.*)", result.out)
    assert command is not None
    project.file("fix.txt", "a person was here\n")
    project.script(**all_right(_2a=[[], [], [{"run": "cp fix.txt seen.txt"}, write("2a")]]))
    again = project.ask(*shlex.split(command[1]), cwd=project.root / "docs")
    assert again.code == 0, again
    assert (
        "RESUME AFTER EXTERNAL FIX\n=========================\n\nPrevious state:\n  Phase 2A: failed (test_failure)\n"
        in again.err
    )
    assert "4. Re-execute Phase 2A\n5. Continue with remaining phases if successful" in again.err
    assert phase(project, "2a")["attempt"] == 1, "the budget is fresh, the history stays"
    assert len(phase(project, "2a")["attempts"]) == 3
    assert (project.root / "seen.txt").read_text() == "a person was here\n"
    assert "| 2A | Part 2A | 1 | 2B, 2C | 3 | ✅ |" in (project.root / PLAN).read_text()


def test_a_fresh_start_keeps_commits_and_says_so(halted: tuple["Project", "CommandResult"]) -> None:
    project, _ = halted
    commit = phase(project, "1")["commit"]["commit_sha"]
    assert "| 1 | Part 1 | - | - | 3 | ✅ |" in (project.root / PLAN).read_text()
    project.script(**all_right())
    result = run(project, "--fresh")
    assert result.code == 0, result
    assert (
        f"FRESH START\n===========\n\nUser command: unstuck run {PLAN} --commit auto --fresh\n\nBehavior:\n"
        "1. Move the old state to .unstuck/old/\n2. Create fresh state files\n3. Start from the first phase"
        in result.err
    )
    assert "Warning: Does not undo previous commits. Use git reset if needed." in result.err
    assert attempts(project)[-5] == "1 #1", "what was ticked and is not on the branch is done again"
    assert (project.root / "1.txt").exists()
    assert project.git("cat-file", "-t", commit) == "commit"
    assert list((project.home / "old").glob("*/phases/phase-2a.json"))


@pytest.mark.parametrize("mode", ["auto", "single", "message-only"])
def test_a_fresh_start_leaves_alone_what_is_on_the_branch_already(project: "Project", mode: str) -> None:
    superplan(project, [("1", "-", "-", "test -f 1.txt")])
    project.script(_1=[[write("1")]])
    assert run(project, "--commit", mode).code == 0
    if mode == "message-only":
        project.file("mine.txt", "so that the commits are picked, not taken over\n")
        subprocess.run(["sh", str(project.home / "commits.sh")], cwd=project.root, check=True, capture_output=True)
    result = run(project, "--fresh")
    assert (result.code, "Nothing is left to do" in result.out) == (0, True), result


def test_editing_state_files_by_hand_runs_those_phases_again(project: "Project") -> None:
    superplan(project)
    project.script(**all_right())
    assert run(project).code == 0
    file = project.home / "phases" / "phase-2c.json"
    file.write_text(file.read_text().replace('"complete"', '"pending"'))
    (project.home / "phases" / "phase-3.json").unlink()
    result = project.ask("resume")
    assert result.code == 0, result
    assert attempts(project)[-2:] == ["2c #2", "3 #2"]


def test_a_phase_that_a_person_did_and_set_to_complete_is_settled_and_the_rest_goes_on(
    halted: tuple["Project", "CommandResult"],
) -> None:
    project, _ = halted
    project.file("2a.txt", "right, by hand\n")
    file = project.home / "phases" / "phase-2a.json"
    file.write_text(file.read_text().replace('"failed"', '"complete"', 1))
    result = project.ask("resume")
    assert result.code == 0, result
    assert "its status was set to complete by hand" in result.err
    assert (project.status()["2a"], attempts(project)[-1]) == ("skipped", "3 #1")
    assert (project.root / "2a.txt").read_text() == "right, by hand\n"


def test_from_runs_a_phase_and_all_that_follow_it_again(project: "Project") -> None:
    superplan(project)
    project.script(**all_right())
    assert run(project).code == 0
    result = run(project, "--from", "2C")
    assert result.code == 0, result
    assert attempts(project)[-2:] == ["2c #2", "3 #2"]
    refused = run(project, "--from", "9")
    assert (refused.code, "There is no task 9" in refused.err) == (64, True)


def test_from_in_a_new_run_settles_what_comes_before(project: "Project") -> None:
    superplan(project)
    project.script(**all_right())
    result = run(project, "--from", "3")
    assert result.code == 0, result
    assert project.status() == {"1": "skipped", "2a": "skipped", "2b": "skipped", "2c": "skipped", "3": "complete"}


def test_a_phase_is_reset_by_the_name_that_the_plan_gives_it(project: "Project") -> None:
    superplan(project)
    project.script(**all_right())
    assert run(project).code == 0
    assert project.ask("reset", "2C").code == 0
    assert project.ask("resume").code == 0
    assert attempts(project)[-1] == "2c #2"
    assert "Task 2a" in project.ask("show", "Phase 2A").out


def test_a_changed_phase_asks_and_unchanged_ones_stay_complete(halted: tuple["Project", "CommandResult"]) -> None:
    project, _ = halted
    plan = project.root / PLAN
    plan.write_text(plan.read_text().replace("Write part 2B", "Write part 2B anew"))
    project.script(**all_right())
    refused = project.ask("resume")
    assert (refused.code, "changed: 2b" in refused.err) == (64, True), refused
    result = run(project, "--accept-plan-change")
    assert result.code == 0, result
    assert "2c #2" not in attempts(project)
    assert "2b #2" in attempts(project)


def test_a_plan_that_changes_while_its_run_works_is_told_with_the_way_to_take_it_in(project: "Project") -> None:
    superplan(project, [("1", "-", "-", "test -f 1.txt")])
    person = {"run": f"sed -i 's/Write part 1/Write part one/' {project.root / PLAN}"}
    project.script(_1=[[person, write("1")], [write("1", "by the new text\n")]])
    result = run(project)
    assert result.code == 0, result
    way = re.search(r"The plan changed while the run worked \(changed: 1\).*: unstuck (.*) && unstuck (.*)", result.err)
    assert way is not None, result
    for command in way.groups():
        assert project.ask(*shlex.split(command)).code == 0
    assert (project.root / "1.txt").read_text() == "by the new text\n"


@pytest.mark.parametrize(
    ("plan", "text", "damage"),
    [
        ("prd.json", '[{"id": "1", "title": "One", "passes": false, "verify": "test -f 1.txt"}]', "sed -i 's/]//'"),
        ("todo.md", "- [ ] 1 One\n  - **Verify**: `test -f 1.txt`\n", "rm"),
    ],
)
def test_a_run_goes_on_though_its_plan_is_damaged_or_deleted_meanwhile_and_says_so(
    project: "Project", plan: str, text: str, damage: str
) -> None:
    project.file(plan, text)
    project.script(_1=[[{"run": f"{damage} {project.root / plan}"}, write("1")]])
    result = project.ask("run", plan, "--agent", project.agent)
    assert result.code == 0, result
    assert "The plan can no longer be read" in result.err
    assert project.git("show", f"HEAD:{plan}") == text.strip()


def test_what_a_predecessor_completed_stays_complete_if_its_commit_is_here(project: "Project") -> None:
    superplan(project)
    project.script(**all_right())
    head = project.git("rev-parse", "HEAD")
    for name, commit in (("1", head), ("2a", head), ("2b", "0" * 40)):
        state = {"phase_id": name, "phase_name": f"Part {name}", "status": "complete", "attempt": 1, "max_attempts": 2}
        project.file(
            f".autobuild/phases/phase-{name}.json", json.dumps(state | {"commit": {"commit_sha": commit}}), commit=False
        )
    red = {"type": "test_failure", "message": "3 tests failing"}
    for name, error in (
        ("2c", {"attempt_1": red, "attempt_2": {**red, "message": "3 tests still failing"}, "final": "Failed"}),
        ("3", {**red, "attempt_1_error": "2 tests failing", "attempt_2_error": red}),
    ):
        state = {"phase_id": name, "phase_name": f"Part {name}", "status": "failed", "attempt": 2, "error": error}
        project.file(f".autobuild/phases/phase-{name}.json", json.dumps(state), commit=False)
    project.file(".autobuild/config.json", json.dumps({"plan_path": PLAN}), commit=False)
    result = run(project)
    assert result.code == 0, result
    assert sorted(attempts(project)) == ["2b #1", "2c #1", "3 #1"]
    assert "Adopted from .autobuild/: complete before this run, with a commit on your branch: 1, 2A." in result.err
    assert "says that phase 2B is complete, but its commit is not on your branch" in result.err
    assert "  Error: test_failure: 3 tests still failing\n" in (project.home / "briefs" / "2c-1-1.md").read_text()
    assert "  Error: 2 tests failing\n" in (project.home / "briefs" / "3-1-1.md").read_text()


# --- commits -------------------------------------------------------------------------------------------


def test_message_only_leaves_a_script_that_makes_the_commits(project: "Project") -> None:
    superplan(project)
    odd = {"write": "odd\ntouch pwned\n$(touch pwned)", "text": "a name that is no command\n"}
    project.script(**all_right(_2a=[[write("2a"), odd]]))
    before = project.git("rev-parse", "main")
    result = run(project, "--commit", "message-only")
    assert result.code == 0, result
    assert project.git("rev-parse", "main") == before
    script = (project.home / "commits.sh").read_text()
    assert "# feat(part-2a): write part 2A" in script
    assert "#   A 2a.txt\n#   A odd\\ntouch pwned\\n$(touch pwned)\n" in script
    project.file("mine.txt", "the commits are picked onto mine\n")
    for _ in ("once", "twice does no harm"):
        subprocess.run(["sh", str(project.home / "commits.sh")], cwd=project.root, check=True, capture_output=True)
    assert not (project.root / "pwned").exists()
    assert project.commits("main")[5] == "Write mine.txt"
    assert set(project.commits("main")[:5]) == {
        f"feat(part-{name}): write part {name.upper()}" for name in ("1", "2a", "2b", "2c", "3")
    }


def test_single_makes_one_commit_of_all_phases(project: "Project") -> None:
    superplan(project)
    project.script(**all_right())
    assert run(project, "--commit", "single").code == 0
    assert project.commits("main")[:2] == ["Tick the plan", "Login Implementation Plan"]
    assert "- 2a feat(part-2a): write part 2A" in project.git("log", "-1", "--format=%B", "main~1")


def test_each_phase_lands_as_a_conventional_commit_with_its_files_on_record(project: "Project") -> None:
    superplan(project, extra="\n")
    project.script(**all_right(_2a=[[write("2a"), {"append": "1.txt", "text": "more\n"}]]))
    assert run(project).code == 0
    commit = phase(project, "2a")["commit"]
    assert {
        key: commit[key] for key in ("message", "type", "scope", "files_created", "files_modified", "committed")
    } == {
        "message": "feat(part-2a): write part 2A",
        "type": "feat",
        "scope": "part-2a",
        "files_created": ["2a.txt"],
        "files_modified": ["1.txt"],
        "committed": True,
    }


# --- before the start ----------------------------------------------------------------------------------


def test_concerns_are_told_and_do_not_stop_a_run(project: "Project") -> None:
    superplan(project, [("1", "-", "-", "test -f 1.txt")], extra="\n#### More\n- [ ] Handle errors etc.\n")
    project.script(_1=[[write("1")]])
    result = run(project)
    assert result.code == 0, result
    assert "Worth a look" in result.err
    assert "is ambiguous" in result.err


def test_a_circle_stops_everything_before_it_starts(project: "Project") -> None:
    superplan(project, [("2A", "3", "-", ""), ("3", "2A", "-", ""), ("4", "9", "-", "")])
    result = run(project)
    assert result.code == 64, result
    assert (
        "ERROR: circular_dependency (NON-RETRYABLE)\n==========================================\n\n"
        "Plan contains circular phase dependencies:\n  Phase 2A depends on Phase 3\n  Phase 3 depends on Phase 2A\n\n"
        'UNSTUCK CANNOT PROCEED\n\nResolution:\n  Fix the plan\'s "Depends On" column to remove the cycle.\n'
        "  Ensure dependencies form a directed acyclic graph (DAG).\n\n[HALTED - Invalid plan]" in result.err
    )
    assert (
        "ERROR: plan_invalid (NON-RETRYABLE)\n===================================\n\nPlan format is incorrect:\n"
        "  Line 26: Phase 4 depends on an unknown phase '9'. Correct the id, or add the phase.\n\nUNSTUCK CANNOT PROCEED\n"
        in result.err
    )
    assert not (project.store / "journal.db").exists()


def test_a_slot_lets_parallel_phases_choose_ports(project: "Project") -> None:
    superplan(project)
    say = {"run": "bash -c 'echo $UNSTUCK_SLOT > slot-$UNSTUCK_TASK'"}
    project.script(
        **all_right(
            _2a=[[write("2a"), say, UNTIL_THREE]],
            _2b=[[write("2b"), say, UNTIL_THREE]],
            _2c=[[write("2c"), say, UNTIL_THREE]],
        )
    )
    assert run(project, "--parallel", "3").code == 0
    assert sorted((project.root / f"slot-{name}").read_text().strip() for name in ("2a", "2b", "2c")) == ["0", "1", "2"]


UNTIL_THREE = {
    "run": "bash -c 'until [ $(grep -c \"attempt_started 2\" ${UNSTUCK_BRIEF%/*}/../logs/execution.log) = 3 ]; do sleep 0.05; done'"
}
