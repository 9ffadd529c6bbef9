"""One task without a plan file: the same engine, the same guarantees."""

import json

from tests.project import Project

WRITE = {"write": "greeting.txt", "text": "hello\n"}


def test_a_goal_lands_without_any_file_of_the_users(project: Project) -> None:
    project.script(goal=[[{"print": "nothing yet"}], [WRITE]])
    done = project.unstuck("go", "Greet people\nin a file", "--check", "test -s greeting.txt", "--agent", project.agent)
    assert done.code == 0, done
    assert project.commits()[0] == "Greet people"
    assert (project.root / "greeting.txt").read_text() == "hello\n"
    assert project.git("status", "--porcelain") == ""
    assert "Greet people" in project.ask("runs").out
    brief = project.ask("show", "goal", "--brief").out
    assert "in a file" in brief
    assert "test -s greeting.txt" in brief


def test_a_goal_is_taken_up_again_and_a_finished_one_is_set_again(project: Project) -> None:
    project.script(goal=[[]])
    goal = ("go", "Greet people", "--check", "test -s greeting.txt", "--max-attempts", "1", "--agent", project.agent)
    stuck = project.unstuck(*goal)
    assert stuck.code == 3, stuck
    project.script(goal=[[], [WRITE]])
    assert project.unstuck("resume").code == 0
    assert project.commits()[0] == "Greet people"
    assert len(json.loads(project.ask("runs", "--json").out)["runs"]) == 1
    assert "done already" in project.unstuck(*goal).out
    assert len(json.loads(project.ask("runs", "--json").out)["runs"]) == 2


def test_a_check_that_a_pasted_goal_names_is_never_run(project: Project) -> None:
    project.settings("[checks]\ntest = 'test -s greeting.txt || test ! -e marker'\n")
    project.script(goal=[[WRITE]])
    goal = "Greet\n- [ ] 1.1 More\n  - **Verify**: `touch marker`\n"
    done = project.unstuck("go", goal, "--agent", project.agent)
    assert done.code == 0, done
    assert not list(project.root.parent.rglob("marker"))
    assert list(project.status()) == ["goal"]


def test_where_nothing_can_check_a_goal_one_is_told_before_it_starts(project: Project) -> None:
    project.script(goal=[[WRITE]])
    done = project.unstuck("go", "Greet people", "--agent", project.agent)
    assert done.code == 3, done
    assert "--check" in done.err
    assert project.unstuck("go", "  ").code == 64
    assert project.ask("go", "x", "--check", " ").code == 64


def test_without_a_configuration_the_checks_that_fit_are_found_tried_and_guard(project: Project) -> None:
    project.git("rm", "-q", "unstuck.toml")
    project.file("setup.cfg", "")
    project.file("shop.py", "PRICE = 1\n")
    project.file(
        "tests/test_shop.py",
        "import unittest\nimport shop\nclass T(unittest.TestCase):\n  def test_price(self): self.assertEqual(shop.PRICE, 1)\n",
    )
    broken, right = ({"write": "shop.py", "text": text} for text in ("PRICE = 2\n", "PRICE = 1\nNAME = 'shop'\n"))
    project.script(goal=[[broken], [right]])
    done = project.unstuck("go", "Name the shop", "--agent", project.agent)
    assert done.code == 0, done
    assert "test: 1 pass in " in done.err
    assert json.loads(project.ask("status", "--json").out)["tasks"]["goal"]["attempts"] == 2
    assert project.git("status", "--porcelain") == "", "no file of the user's is needed or made"
    assert "python3 -m unittest discover -s tests" in project.ask("show", "goal", "--brief").out
