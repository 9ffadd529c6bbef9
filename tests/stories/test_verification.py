"""Verification that cannot be fooled, told through whole runs: lying agents, honest ones, and what was red before."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unstuck.verify import examining

if TYPE_CHECKING:
    from tests.project import Project, Step

LIMITS = "[limits]\nfirst_output = 20\nsilence = 20\nwall_clock = 40\ndrain = 5\n"

PYTEST = f"{sys.executable} -P -m pytest -q -p no:cacheprovider"
CALC = "def add(a, b):\n    return 0\n"
RIGHT_CALC = "def add(a, b):\n    return a + b\n"
TEST_CALC = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
PLAN = "# A plan\n\n- [ ] 1.1 Make add work\n  - **Files**: `calc.py`\n  - **Verify**: `{check}`\n"
DONE: "Step" = {"print": "Everything is implemented and all tests pass.\nTASK_COMPLETE"}


@pytest.fixture
def calc(project: "Project") -> "Project":
    """Make a project with a real failing test, and a task that names the one file to change."""
    project.file("calc.py", CALC)
    project.file("test_calc.py", TEST_CALC)
    project.file("tasks.md", PLAN.format(check=f"{PYTEST} test_calc.py"))
    return project


# --- agents that lie -----------------------------------------------------------------------------------

WRITE_TEST = "test_calc.py"
LIES: dict[str, Sequence["Step"]] = {
    "claims without any work": [DONE],
    "claims with a failing test": [{"write": "calc.py", "text": "def add(a, b):\n    return a\n"}, DONE],
    "deletes the test": [
        {"delete": "test_calc.py"},
        {"write": "test_other.py", "text": "def test():\n    assert 1\n"},
        DONE,
    ],
    "skips the test": [
        {"write": WRITE_TEST, "text": "import pytest\n" + TEST_CALC.replace("def test", "@pytest.mark.skip\ndef test")},
        DONE,
    ],
    "loosens the assertion": [{"write": WRITE_TEST, "text": TEST_CALC.replace("== 3", "is not None")}, DONE],
    "plants a conftest that makes everything pass": [
        {"write": "conftest.py", "text": "import os\n\n\ndef pytest_sessionfinish():\n    os._exit(0)\n"},
        DONE,
    ],
    "says TASK_COMPLETE in the middle of a failure": [
        DONE,
        {"error": "Traceback (most recent call last):\nRuntimeError: boom"},
        {"exit": 1},
    ],
    "says that it needs a person beside TASK_COMPLETE": [
        {"print": "This could not complete and requires manual intervention.\nTASK_COMPLETE"}
    ],
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lying_agent_lands_nothing(calc: "Project", lie: str) -> None:
    calc.script(_1_1=[LIES[lie]])
    before = calc.git("rev-parse", "main")
    result = calc.run("--max-attempts", "1", "--json")
    assert result.code == 3, result
    assert result.json["tasks"]["1.1"]["commit"] is None, result
    assert calc.git("rev-parse", "main") == before
    assert calc.git("rev-list", "--count", f"main..unstuck/{result.json['run']}") == "0"


def test_green_by_weakening_is_called_tampered_and_names_the_place(calc: "Project") -> None:
    calc.script(_1_1=[LIES["loosens the assertion"], [{"write": "calc.py", "text": RIGHT_CALC}]])
    result = calc.run("--json")
    assert result.code == 0, result
    assert result.json["tasks"]["1.1"]["attempts"] == 2
    log = calc.ask("log").out
    assert "tampered" in log
    assert "test_calc.py:5" in log
    assert (calc.root / "test_calc.py").read_text() == TEST_CALC, "it began again from the tip"
    assert "weakened the checks" in (calc.home / "briefs" / "1.1-2-1.md").read_text()


def test_an_honest_change_of_the_named_file_lands_at_once(calc: "Project") -> None:
    calc.script(_1_1=[[{"write": "calc.py", "text": RIGHT_CALC}, DONE]])
    result = calc.run("--json")
    assert (result.code, result.json["tasks"]["1.1"]["attempts"]) == (0, 1), result


@pytest.mark.parametrize(("policy", "code"), [("warn", 0), ("reject", 3), ("off", 0)])
def test_the_scope_fence_warns_or_rejects(project: "Project", policy: str, code: int) -> None:
    project.settings(f'{LIMITS}[verify]\nscope = "{policy}"\n')
    project.file("tasks.md", "- [ ] 1.1 Make a\n  - **Files**: `a.txt`\n  - **Verify**: `test -f a.txt`\n")
    project.script(_1_1=[[{"write": "a.txt", "text": "a\n"}, {"write": "elsewhere.txt", "text": "b\n"}, DONE]])
    result = project.run("--max-attempts", "1")
    assert result.code == code, result
    assert ("elsewhere.txt is not among the task's Files" in project.ask("log").out) is (policy != "off")


def test_a_secret_of_this_machine_does_not_land_and_is_never_shown(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"))
    secret = "wholly-unguessable-9431"  # made up
    project.script(_1_1=[[{"write": "a.txt", "text": f"one\nkey: {secret}\n"}, DONE]])
    result = project.run("--max-attempts", "1", SOME_API_KEY=secret)
    assert result.code == 3, result
    assert "a.txt:2" in project.ask("log").out
    assert secret.encode() not in b"".join(content for _, content in project.stored_bytes())


def test_an_empty_change_is_not_taken_for_work_because_the_checks_were_green_before(project: "Project") -> None:
    project.plan(("1.1", "Improve it", "test -f readme.txt"))
    project.script(_1_1=[[DONE]])
    result = project.run("--json")
    assert (result.code, result.json["tasks"]["1.1"]["attempts"]) == (3, 1), result
    assert "is it done already?" in project.ask("log").out


def test_the_tasks_behind_one_that_may_be_done_already_go_on(project: "Project") -> None:
    project.file(
        "tasks.md",
        "- [ ] 1.1 Improve it\n  - **Verify**: `test -f readme.txt`\n"
        "- [ ] 1.2 Make b\n  - **Depends on**: 1.1\n  - **Verify**: `test -f b.txt`\n",
    )
    project.script(_1_1=[[DONE]], _1_2=[[{"write": "b.txt"}, DONE]])
    result = project.run("--json")
    assert {name: task["status"] for name, task in result.json["tasks"].items()} == {"1.1": "stuck", "1.2": "complete"}


def test_what_a_person_did_meanwhile_is_done(project: "Project") -> None:
    project.plan(("1.1", "Make a", "grep -q right a.txt"))
    project.script(_1_1=[[{"write": "a.txt", "text": "wrong\n"}], [DONE]])
    assert project.run("--max-attempts", "1").code == 3
    project.file("a.txt", "right\n")
    result = project.unstuck("resume", "--json")
    assert (result.code, result.json["tasks"]["1.1"]["status"]) == (0, "complete"), result


def test_work_that_an_earlier_task_did_as_well_needs_no_change(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"), ("1.2", "Make b", "test -f b.txt"))
    project.script(_1_1=[[{"write": "a.txt"}, {"write": "b.txt"}]], _1_2=[[DONE]])
    result = project.run("--json")
    assert result.code == 0, result
    assert result.json["tasks"]["1.2"] == {"status": "complete", "attempts": 1, "commit": None, "cost_usd": None}


def test_a_result_that_names_files_which_do_not_exist_is_refuted(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"))
    result = """```json
{"phase_id": "1.1", "status": "complete", "tasks": {"total": 1, "completed": 1}, "quality_gates": {},
 "commit_message": "x", "files": {"created": ["a.txt", "src/missing.py"], "modified": [], "deleted": []},
 "plan_updated": true, "error": null}
```"""
    project.script(_1_1=[[{"write": "a.txt"}, {"print": result}]])
    told = project.run("--max-attempts", "1")
    assert told.code == 3, told
    assert "names src/missing.py" in project.ask("log").out


# --- tests where they were not meant to run ---------------------------------------------------------------------

HELPED = "from calc import add\n\n\ndef one():\n    return 1\n\n\ndef test_add():\n    assert add(one(), 2) == 3\n"
DOUBLED = TEST_CALC.replace("== 3", "== 6")


@pytest.mark.parametrize(
    ("files", "test", "code", "status"),
    [
        pytest.param("`calc.py`", HELPED, RIGHT_CALC, "complete", id="a refactored test"),
        pytest.param("`calc.py`", DOUBLED, RIGHT_CALC.replace("a + b", "2 * (a + b)"), "stuck", id="a test bent to the code"),
        pytest.param("`calc.py`, `test_calc.py`", DOUBLED, RIGHT_CALC.replace("a + b", "2 * (a + b)"), "complete", id="a test that the task names"),
    ],
)  # fmt: skip
def test_a_changed_test_must_hold_in_its_old_form_unless_the_task_names_it(
    calc: "Project", files: str, test: str, code: str, status: str
) -> None:
    calc.file("tasks.md", PLAN.format(check=f"{PYTEST} test_calc.py").replace("`calc.py`", files) + "\n")
    calc.script(_1_1=[[{"write": "calc.py", "text": code}, {"write": "test_calc.py", "text": test}, DONE]])
    result = calc.run("--max-attempts", "1", "--json")
    assert result.json["tasks"]["1.1"]["status"] == status, result


def test_a_tree_that_was_refused_is_refused_again_though_its_checks_are_remembered(calc: "Project") -> None:
    calc.settings(f'{LIMITS}[verify]\ndoubtful = "warn"\n')
    bent = [
        {"write": "calc.py", "text": RIGHT_CALC.replace("a + b", "6")},
        {"write": "test_calc.py", "text": DOUBLED},
        DONE,
    ]
    calc.script(_1_1=[bent, bent])
    result = calc.run("--max-attempts", "2", "--json")
    assert (result.code, result.json["tasks"]["1.1"]["attempts"]) == (3, 2), result
    assert calc.ask("log").out.count("in its old form it fails on the new code") >= 2


def test_a_new_test_that_passes_on_the_old_code_is_worth_a_look(calc: "Project") -> None:
    idle = "from calc import add\n\n\ndef test_is_there():\n    assert callable(add)\n"
    calc.script(_1_1=[[{"write": "calc.py", "text": RIGHT_CALC}, {"write": "test_more.py", "text": idle}, DONE]])
    assert calc.run().code == 0
    assert "test_more.py:1: A new test passes on the old code as well" in calc.ask("log").out


def test_a_module_that_the_task_has_to_write_is_no_package_to_install(project: "Project") -> None:
    check = f"PYTHONPATH=. {sys.executable} -c 'import parser_core'"
    project.file("tasks.md", f"- [ ] 1.1 Parse\n  - **Files**: `parser_core.py`\n  - **Verify**: `{check}`\n")
    project.script(_1_1=[[{"write": "notes.md"}, DONE], [{"write": "parser_core.py", "text": "x = 1\n"}, DONE]])
    result = project.run("--json")
    assert (result.code, result.json["tasks"]["1.1"]["attempts"]) == (0, 2), result
    assert "module_missing" in project.ask("log").out
    brief = (project.home / "briefs" / "1.1-2-1.md").read_text()
    assert "install" not in brief.lower()


def test_an_agent_that_wrote_nothing_is_not_taken_for_a_machine_that_lacks_a_package(project: "Project") -> None:
    tells = 'test -f parser_core.py || { echo "acceptance: No module named \\"parser_core\\""; exit 1; }'
    project.file("tasks.md", f"- [ ] 1.1 Parse\n  - **Files**: `parser_core.py`\n  - **Verify**: `{tells}`\n")
    project.script(_1_1=[[DONE], [{"write": "parser_core.py", "text": "x = 1\n"}, DONE]])
    result = project.run("--json")
    assert (result.code, result.json["tasks"]["1.1"]["attempts"]) == (0, 2), result


# --- what the agent leaves lying about ---------------------------------------------------------------------


def test_ignored_files_in_the_worktree_do_not_make_a_check_pass(project: "Project") -> None:
    project.file(".gitignore", "*.log\n")
    project.plan(("1.1", "Make a", "test -f built.log && test -f a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}, {"write": "built.log"}, DONE]])
    assert project.run("--max-attempts", "1").code == 3


def test_a_planted_site_customisation_is_not_there_when_we_check(calc: "Project") -> None:
    calc.file(".gitignore", "sitecustomize.py\n")
    plant = {"write": "sitecustomize.py", "text": "import os\nos._exit(0)\n"}
    calc.script(_1_1=[[plant, DONE]])
    check = f"PYTHONPATH=. {sys.executable} -m pytest -q -p no:cacheprovider test_calc.py"
    calc.file("tasks.md", PLAN.format(check=check))
    assert calc.run("--max-attempts", "1").code == 3


def test_what_the_workspace_copies_and_sets_up_is_there_when_we_check(project: "Project") -> None:
    project.file(".gitignore", "deps/\nmade/\n.env\n")
    (project.root / "deps").mkdir()
    (project.root / "deps" / "lib.txt").write_text("a library\n")
    project.settings(f'{LIMITS}[workspace]\ncopy = ["deps"]\nsetup = ["mkdir -p made && date > made/stamp"]\n')
    project.plan(
        ("1.1", "Make a", "test -f deps/lib.txt && test -f made/stamp && test -f a.txt"),
        ("1.2", "Make b", "test -f deps/lib.txt && test -f made/stamp && test -f b.txt"),
    )
    project.script(_1_1=[[{"write": "a.txt"}]], _1_2=[[{"write": "b.txt"}]])
    result = project.run("--json")
    assert result.code == 0, result
    assert [task["attempts"] for task in result.json["tasks"].values()] == [1, 1]


# --- sessions that end badly, with the work right -----------------------------------------------------------

BAD_ENDS: dict[str, Sequence["Step"]] = {
    "timed out": [{"print": "working"}, {"hang": True}],
    "crashed": [{"error": "Segmentation fault"}, {"exit": 139}],
    "was killed": [{"signal": "KILL"}],
    "said FAILED": [{"print": "Task 1.1: Make add work FAILED\n- Error: no idea\n- Status: blocked"}],
}


@pytest.mark.parametrize("end", BAD_ENDS)
def test_right_work_lands_however_the_session_ended(calc: "Project", end: str) -> None:
    calc.settings("[limits]\nsilence = 1\n")
    calc.file("tasks.md", PLAN.format(check="grep -q a.+.b calc.py"))
    calc.script(_1_1=[[{"write": "calc.py", "text": RIGHT_CALC}, *BAD_ENDS[end]]])
    result = calc.run("--json")
    assert (result.code, result.json["tasks"]["1.1"]["attempts"]) == (0, 1), result
    assert (calc.root / "calc.py").read_text() == RIGHT_CALC


# --- what was red before, and what wavers --------------------------------------------------------------------


def test_a_test_that_failed_before_burns_no_attempt(project: "Project") -> None:
    project.file(
        "test_old.py", "def test_broken():\n    assert 1 == 2\n\n\ndef test_fine():\n    assert True is not None\n"
    )
    project.settings(f'{LIMITS}[checks]\ntest = "{PYTEST}"\n')
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]])
    result = project.run("--json")
    assert (result.code, result.json["tasks"]["1.1"]["attempts"]) == (0, 1), result
    assert (
        "was red before any work (test_old.py::test_broken): what was red there guards nothing"
        in result.err + project.ask("log").out
    )


def test_a_test_that_the_work_breaks_is_not_excused_by_one_that_was_broken(project: "Project") -> None:
    project.file(
        "test_old.py",
        "def test_broken():\n    assert 1 == 2\n\n\ndef test_b():\n    assert open('b.txt').read() == 'b'\n",
    )
    project.file("b.txt", "b")
    project.settings(f'{LIMITS}[checks]\ntest = "{PYTEST}"\n')
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}, {"write": "b.txt", "text": "broken"}]])
    assert project.run("--max-attempts", "1").code == 3


def test_the_baseline_never_excuses_a_tasks_own_check(project: "Project") -> None:
    project.plan(("1.1", "Make a", "grep -q right a.txt"))
    project.script(_1_1=[[{"write": "a.txt", "text": "wrong\n"}]])
    assert project.run("--max-attempts", "1").code == 3


def test_a_red_linter_is_excused_until_the_work_adds_a_complaint(project: "Project") -> None:
    lint = "! grep -n TODO *.txt"
    project.file("old.txt", "TODO: the old one\n")
    project.settings(f'{LIMITS}[checks]\nlint = "{lint}"\n')
    project.plan(("1.1", "Make a", "test -f a.txt"), ("1.2", "Make b", "test -f b.txt"))
    project.script(_1_1=[[{"write": "a.txt", "text": "fine\n"}]], _1_2=[[{"write": "b.txt", "text": "TODO: mine\n"}]])
    result = project.run("--max-attempts", "1", "--json")
    assert {name: task["status"] for name, task in result.json["tasks"].items()} == {"1.1": "complete", "1.2": "stuck"}


ONCE = "sh -c 'test -f {0} || {{ touch {0}; exit 1; }}'"


def test_a_check_that_fails_in_every_fresh_clone_is_red_though_its_second_run_would_pass(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -d out || { mkdir out; exit 1; }"))
    project.script(_1_1=[[{"write": "a.txt"}]])
    result = project.run("--max-attempts", "1", "--json")
    assert (result.code, result.json["tasks"]["1.1"]["commit"]) == (3, None), result
    assert "flaky" not in project.ask("log").out


def test_a_gate_that_wavers_burns_no_attempt_and_is_reported(project: "Project", tmp_path: Path) -> None:
    mark = tmp_path / "failed-once"
    gate = f"test -f a.txt || exit 0; {ONCE.format(mark)}"
    project.settings(f'{LIMITS}[checks]\ntest = "{gate}"\n')
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]])
    result = project.run("--json")
    assert (result.code, result.json["tasks"]["1.1"]["attempts"]) == (0, 1), result
    assert "is flaky: on one and the same tree it failed 1 of 2 times" in project.ask("log").out


def test_a_tasks_own_check_that_wavers_is_a_question_and_not_a_pass(project: "Project", tmp_path: Path) -> None:
    project.plan(("1.1", "Make a", ONCE.format(tmp_path / "failed-once")))
    project.script(_1_1=[[{"write": "a.txt"}]])
    result = project.run("--json")
    assert (result.code, result.json["tasks"]["1.1"]["attempts"]) == (3, 1), result
    assert "failed and then passed on the same tree" in result.out + project.ask("log").out


def test_a_broken_check_is_run_until_two_runs_say_the_same(project: "Project", tmp_path: Path) -> None:
    count = tmp_path / "count"
    project.plan(("1.1", "Make a", f"sh -c 'echo x >> {count}; exit 1'"))
    project.script(_1_1=[[{"write": "a.txt"}]])
    assert project.run("--max-attempts", "1").code == 3
    assert count.read_text() == "x\n" * 2


def test_a_judge_of_the_base_that_does_not_end_is_a_question_that_says_so(project: "Project") -> None:
    project.file("run.sh", "! grep -q new app.txt || sleep 60\n")
    project.file("app.txt", "old\n")
    project.settings(f'{LIMITS}[checks]\ntest = "sh run.sh"\n[verify.timeouts]\ntest = 2\n')
    project.plan(("1.1", "Renew the app", "grep new app.txt"))
    project.script(_1_1=[[{"write": "app.txt", "text": "new\n"}, {"write": "run.sh", "text": "test -f app.txt\n"}]])
    result = project.run("--json")
    assert (result.code, result.json["tasks"]["1.1"]["attempts"]) == (3, 1), result
    assert "it does not end in time" in project.ask("log").out


# --- what a gate can say of a base on which it is red -----------------------------------------------------------

JEST = "FAIL src/a.test.js\nTests: {} failed, 4 passed\n"
REDS = {
    "one more test in the same file": ("cat out.txt; false", JEST.format(1), JEST.format(2), "stuck"),
    "the same test": ("cat out.txt; false", JEST.format(1), JEST.format(1), "complete"),
    "more violations": ("cat out.txt; false", "3 violations\n", "57 violations\n", "stuck"),
    "less coverage": ("cat out.txt; false", "TOTAL 81%\nrequired 90%\n", "TOTAL 31%\nrequired 90%\n", "stuck"),
    "nothing that could be compared": ("cat out.txt; false", "", "", "stuck"),
    "something else every time": ("head -c 12 /dev/urandom | base64; cat out.txt; false", "x\n", "x\n", "complete"),
    "the same before, something else every time now": (
        "grep -v waver out.txt || head -c 12 /dev/urandom | base64; false", "x\n", "waver\n", "stuck"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REDS)
def test_a_gate_that_was_red_excuses_what_can_be_compared_and_nothing_more(project: "Project", case: str) -> None:
    gate, before, after, status = REDS[case]
    project.file("out.txt", before)
    project.settings(f'{LIMITS}[checks]\ntest = "{gate}"\n')
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}, {"write": "out.txt", "text": after}]])
    result = project.run("--max-attempts", "1", "--json")
    assert result.json["tasks"]["1.1"]["status"] == status, result
    log = project.ask("log").out
    assert log.index("was red before any work") < log.index("attempt 1"), "it is told before the first session"
    assert log.count("was red before any work") == 1


# --- checks that repair -------------------------------------------------------------------------------------------


def test_a_check_that_repairs_the_tree_has_not_verified_what_would_land(project: "Project") -> None:
    """As `[tool.ruff] fix = true`, formatters in write mode, snapshot updaters and writers of lock files do."""
    project.file("fix.sh", "sed -i s/bad/good/ *.py; ! grep bad *.py\n")
    project.file("old.py", "good = 0\n")
    project.settings(f'{LIMITS}[checks]\nlint = "sh fix.sh"\n')
    project.plan(("1.1", "Make a", "test -f a.py"))
    kept = [{"write": "a.py", "text": "good = 1\n"}]
    project.script(_1_1=[[{"write": "a.py", "text": "bad = 1\n"}], kept])
    result = project.run("--json")
    assert (result.code, result.json["tasks"]["1.1"]["attempts"]) == (0, 2), result
    assert (project.root / "a.py").read_text() == "good = 1\n"
    assert "passes only because it changes a.py" in project.ask("log").out
    assert "Run it and keep what it writes" in (project.home / "briefs" / "1.1-2-1.md").read_text()


def test_what_a_check_leaves_lying_about_is_no_repair(project: "Project") -> None:
    project.plan(("1.1", "Make a", "touch report.xml cache.log && test -f a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]])
    assert project.run().code == 0


def test_a_check_sees_the_tree_and_not_what_the_check_before_it_made_of_it(project: "Project") -> None:
    project.settings(f'{LIMITS}[checks]\nformat = "sed -i s/bad/good/ a.py"\ntest = "grep -q good a.py"\n')
    project.file("a.py", "good\n")
    project.plan(("1.1", "Change a", "test -f a.py"))
    project.script(_1_1=[[{"write": "a.py", "text": "bad\n"}]])
    project.run("--max-attempts", "1")
    checks = project.ask("show", "1.1", "--json").json["verification"]["checks"]
    assert [check["status"] for check in checks] == ["pass", "fail", "fail"]


# --- checks that are none ------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", ["echo 'Verify manually'", "sh run.sh || true", "sh run.sh; echo done"])
def test_a_check_that_cannot_fail_verifies_nothing(project: "Project", check: str) -> None:
    project.file("run.sh", "exit 1\n")
    project.plan(("1.1", "Make a", check))
    project.script(_1_1=[[{"write": "a.txt"}]])
    result = project.run()
    assert result.code == 3, result
    assert "unstuck accept 1.1 --because" in result.out
    assert "unverified" in project.ask("log").out


def test_a_test_run_that_finds_no_tests_is_no_pass(project: "Project") -> None:
    project.file("test_nothing.py", "")
    project.plan(("1.1", "Make a", f"{PYTEST} test_nothing.py"))
    project.script(_1_1=[[{"write": "a.txt"}]])
    assert project.run("--max-attempts", "1").code == 3


def test_a_declared_gate_whose_tool_is_missing_stops_the_task_before_an_agent_is_called_and_whenever_it_is_run(
    project: "Project",
) -> None:
    project.settings(f"{LIMITS}[checks]\nlint = '{sys.executable} -m no_such_linter_anywhere .'\n")
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]])
    for option in ("--max-attempts=1", "--fresh"):
        result = project.run(option)
        assert result.code == 3, result
        assert not list((project.home / "briefs").glob("1.1-*")), "nobody was asked"
    shown: Any = project.ask("show", "1.1", "--json").json
    assert shown["error"]["attempt_1"]["type"] == "dependency_missing"


def test_a_gate_whose_tool_a_later_task_is_to_write_is_held_against_nobody_before(project: "Project") -> None:
    project.settings(f"{LIMITS}[checks]\nlint = '{sys.executable} -m lintall'\n")
    project.plan(("1.1", "Make a", "test -f a.txt"), ("1.2", "Write the linter lintall", "test -f lintall.py"))
    project.script(_1_1=[[{"write": "a.txt"}]], _1_2=[[{"write": "lintall.py", "text": "open('a.txt')\n"}]])
    result = project.run("--max-attempts", "1", "--json")
    assert {name: task["status"] for name, task in result.json["tasks"].items()} == {
        "1.1": "complete",
        "1.2": "complete",
    }


@pytest.mark.parametrize("what", ["ask_base", "PROBES"])
def test_a_fault_of_ours_while_work_is_tried_is_a_question_and_ends_no_run(
    project: "Project", monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def broken(*_: object) -> None:
        raise IndexError("nobody has thought of this")

    monkeypatch.setattr(examining, what, (broken,) if what == "PROBES" else broken)
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]])
    result = project.ask("run", "tasks.md", "--agent", project.agent)
    assert result.code == 3, result
    assert project.status() == {"1.1": "stuck"}
    assert "so a person should look at it: IndexError('nobody has thought of this')" in result.out, result
