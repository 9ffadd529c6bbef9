"""Which checks are run, when, and how often: markers of test-driven plans, gates that were found, and the memory of them."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.project import Project

LIMITS = "[limits]\nfirst_output = 20\nsilence = 20\nwall_clock = 40\ndrain = 5\n"
PYTEST = f"{sys.executable} -P -m pytest -q -p no:cacheprovider"
GOOD_TEST = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
CALC = "def add(a, b):\n    return 0\n"

# --- red, green, verify ----------------------------------------------------------------------------------

RED = {
    "fails by its assertion": (GOOD_TEST, "complete"),
    "passes already": ("from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 0\n", "stuck"),
    "cannot be parsed": ("from calc import add\n\n\ndef test_add(:\n", "stuck"),
    "needs a package that nobody speaks of": ("import nobody_has_this\n\n\ndef test_add():\n    assert 1 == 2\n", "stuck"),
    "needs a name that is still to be written": ("from calc import sub\n\n\ndef test_sub():\n    assert sub(2, 1) == 1\n", "complete"),
    "holds no test": ("from calc import add\n", "stuck"),
}  # fmt: skip
VERIFY = {
    "plain": f"{PYTEST} test_add.py",
    "turned round": f"{PYTEST} test_add.py 2>&1 | grep -qiE 'fail|error|passed|no tests' && echo RED_PASS",
}


@pytest.mark.parametrize(
    ("case", "style"),
    [(case, "plain") for case in RED]
    + [("fails by its assertion", "turned round"), ("passes already", "turned round")],
)
def test_a_red_task_succeeds_when_its_test_fails_for_want_of_the_work(
    project: "Project", case: str, style: str
) -> None:
    text, status = RED[case]
    project.file("calc.py", CALC)
    project.file(
        "tasks.md", f"- [ ] 1.1 [RED] Test add\n  - **Files**: `test_add.py`\n  - **Verify**: `{VERIFY[style]}`\n"
    )
    project.script(_1_1=[[{"write": "test_add.py", "text": text}]])
    result = project.run("--max-attempts", "1", "--json")
    assert result.json["tasks"]["1.1"]["status"] == status, result


def test_a_red_test_may_land_past_the_gates_and_the_green_task_must_make_it_pass(project: "Project") -> None:
    project.file("calc.py", CALC)
    project.settings(f'{LIMITS}[checks]\ntest = "{PYTEST}"\n')
    project.file(
        "tasks.md",
        f"- [ ] 1.1 [RED] Test add\n  - **Files**: `test_add.py`\n  - **Verify**: `{VERIFY['plain']}`\n"
        f"- [ ] 1.2 [GREEN] Write add\n  - **Files**: `calc.py`\n  - **Verify**: `{VERIFY['plain']}`\n",
    )
    right = {"write": "calc.py", "text": "def add(a, b):\n    return a + b\n"}
    project.script(
        _1_1=[[{"write": "test_add.py", "text": GOOD_TEST}]],
        _1_2=[[{"write": "calc.py", "text": CALC + "\n"}], [right]],
    )
    result = project.run("--json")
    assert {name: task["attempts"] for name, task in result.json["tasks"].items()} == {"1.1": 1, "1.2": 2}, result
    assert result.code == 0


def test_a_verify_task_calls_no_agent_while_its_checks_pass(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"), ("V1 [VERIFY]", "All there", "test -f a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]], V1=[[{"exit": 1}]])
    result = project.run("--json")
    assert result.code == 0, result
    assert not list((project.home / "briefs").glob("V1-*")), "nobody was asked"
    assert result.json["tasks"]["V1"]["status"] == "complete"


def test_a_verify_task_calls_an_agent_when_its_checks_fail(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"), ("V1 [VERIFY]", "All there", "test -f b.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]], V1=[[{"write": "b.txt"}]])
    result = project.run("--json")
    assert result.code == 0, result
    assert len(list((project.home / "briefs").glob("V1-*"))) == 1
    assert (project.root / "b.txt").exists()


# --- the memory of checks ----------------------------------------------------------------------------------


def counting(project: "Project", tmp_path: Path) -> Path:
    """Give the project a gate that counts how often it is really run."""
    count = tmp_path / "count"
    count.touch()
    project.settings(f'{LIMITS}[checks]\ntest = "echo x >> {count}; test -f readme.txt"\n')
    return count


@pytest.mark.parametrize(("options", "runs"), [((), 2), (("--no-cache",), 4)])
def test_the_same_tree_is_checked_once(project: "Project", tmp_path: Path, options: tuple[str, ...], runs: int) -> None:
    count = counting(project, tmp_path)
    project.plan(("1.1", "Make a", ""), ("V1 [VERIFY]", "Again", "test -f a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]])
    result = project.run(*options)
    assert result.code == 0, result
    assert count.read_text() == "x\n" * runs, (
        "once before all work, and the landed tree is the one that V1 looks at, before and after"
    )


def test_another_tool_or_another_environment_is_another_result(project: "Project", tmp_path: Path) -> None:
    count = tmp_path / "count"
    tool = tmp_path / "bin" / "mytool"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\necho x >> {count}\n")
    tool.chmod(0o755)

    def look(**env: str) -> int:
        project.plan(("V1 [VERIFY]", "Look", f"{tool}"))
        result = project.run("--fresh", **env)
        assert result.code == 0, result
        return len(count.read_text().splitlines())

    assert look() == 1
    assert look() == 1
    assert look(MODE="other") == 2
    tool.write_text(f"#!/bin/sh\n# a new version\necho x >> {count}\n")
    assert look() == 3


def test_what_looks_outside_of_the_tree_is_asked_anew_in_every_run_on_the_base_as_well(
    project: "Project", tmp_path: Path
) -> None:
    (server := tmp_path / "server").touch()
    project.settings(f'{LIMITS}[checks]\ntest = "date >&2; cat {server}"\n')
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[{"exit": 1}]])
    assert project.run("--max-attempts", "1").code == 3
    server.unlink()  # that it is down is nobody's fault
    project.script(_1_1=[[{"write": "a.txt"}]])
    result = project.run("--fresh", "--json")
    assert (result.code, result.json["tasks"]["1.1"]["attempts"]) == (0, 1), result


# --- checks that nobody wrote down ---------------------------------------------------------------------------


@pytest.fixture
def unconfigured(project: "Project") -> "Project":
    project.git("rm", "-q", "unstuck.toml")
    project.git("commit", "-q", "-m", "No configuration")
    return project


def test_without_a_configuration_the_checks_that_fit_the_project_are_used(unconfigured: "Project") -> None:
    unconfigured.file("Makefile", "test:\n\ttest -f right.txt\n")
    unconfigured.plan(("1.1", "Make it right", ""))
    unconfigured.script(_1_1=[[{"write": "right.txt"}]])
    result = unconfigured.run()
    assert result.code == 0, result
    assert "the checks are those that fit the project: `make test`" in unconfigured.ask("log").out


def test_a_gate_that_nobody_asked_for_and_that_cannot_run_is_not_applicable(unconfigured: "Project") -> None:
    unconfigured.file("Makefile", "test:\n\tno-such-tool-anywhere\n")
    unconfigured.plan(("1.1", "Make a", "test -f a.txt"))
    unconfigured.script(_1_1=[[{"write": "a.txt"}]])
    result = unconfigured.run("--json")
    assert (result.code, result.json["tasks"]["1.1"]["attempts"]) == (0, 1), result


def test_a_configuration_without_checks_means_no_gates(project: "Project") -> None:
    project.file("Makefile", "test:\n\tfalse\n")
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]])
    assert project.run().code == 0


def test_every_line_of_a_verify_block_must_hold(project: "Project") -> None:
    project.file(
        "tasks.md",
        "- [ ] 1.1 Make both\n  - **Verify**:\n    ```sh\n    test -f first.txt\n    test -f second.txt\n    ```\n",
    )
    project.script(_1_1=[[{"write": "second.txt"}], [{"write": "first.txt"}]])
    result = project.run("--json")
    assert result.code == 0, result
    assert result.json["tasks"]["1.1"]["attempts"] == 2
