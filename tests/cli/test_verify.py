"""`unstuck verify`: the checks and the audit by hand, and what other tools get to read."""

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.project import Project

CHECKS = "[checks]\ntest = 'sh test.sh'\n"


@pytest.fixture
def checked(project: "Project") -> "Project":
    project.settings(CHECKS)
    project.file("test.sh", "grep -q right a.txt\n")
    project.file("a.txt", "right\n")
    return project


def test_head_is_verified_in_a_clean_checkout(checked: "Project") -> None:
    (checked.root / "a.txt").write_text("not committed\n")
    result = checked.ask("verify")
    assert result.code == 0, result
    assert "sh test.sh" in result.out
    assert "Verdict: pass" in result.out
    assert "Not looked at, because no commit holds it: a.txt" in result.err
    assert checked.ask("verify", "--json").json["uncommitted"] == ["a.txt"]
    assert "Not looked at" not in checked.ask("verify", "HEAD").err
    assert (checked.root / "a.txt").read_text() == "not committed\n"


def test_a_commit_that_breaks_a_gate_fails_with_the_evidence(checked: "Project") -> None:
    checked.file("a.txt", "wrong\n")
    result = checked.ask("verify", "HEAD", "--json")
    assert result.code == 1, result
    assert result.json["status"] == "fail"
    (check,) = result.json["checks"]
    assert (check["command"], check["status"], check["exit_code"], check["runs"]) == ("sh test.sh", "fail", 1, 2)
    assert checked.ask("verify", "HEAD~1").code == 0


def test_a_commit_that_no_check_covers_is_inconclusive(project: "Project") -> None:
    assert project.ask("verify").code == 3


def test_a_second_look_is_a_lookup(checked: "Project") -> None:
    assert checked.ask("verify", "--json").json["checks"][0]["cached"] is False
    assert checked.ask("verify", "--json").json["checks"][0]["cached"] is True
    assert checked.ask("verify", "--no-cache", "--json").json["checks"][0]["cached"] is False


def test_a_task_is_verified_again_as_its_run_did(half_done: "Project") -> None:
    assert half_done.ask("verify", "1.1").code == 0
    result = half_done.ask("verify", "1.2")
    assert result.code == 1, result
    assert "grep -q right b.txt" in result.out


def test_what_is_neither_a_task_nor_a_commit_is_refused(half_done: "Project") -> None:
    result = half_done.ask("verify", "7.7")
    assert result.code == 64
    assert "no task and no commit" in result.err


def test_findings_are_written_for_other_tools(checked: "Project", tmp_path: "Path") -> None:
    checked.settings("[checks]\nlint = 'sh test.sh'\n")  # no check runs the tests: what was done to them stays in doubt
    checked.file("test_a.py", "def test_a():\n    assert open('a.txt').read() == 'right'\n")
    checked.file("test_a.py", "def test_a():\n    assert True\n")
    result = checked.ask("verify", "--sarif", str(tmp_path / "f.sarif"), "--junit", str(tmp_path / "f.xml"))
    assert result.code == 3, result
    results = json.loads((tmp_path / "f.sarif").read_text())["runs"][0]["results"]
    assert results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "test_a.py"
    suite = ET.fromstring((tmp_path / "f.xml").read_text())[0]
    assert (suite.get("tests"), suite.get("failures")) == (str(1 + len(results)), "0")


def test_a_file_that_cannot_be_written_is_bad_usage_and_costs_no_verdict(checked: "Project") -> None:
    result = checked.ask("verify", "--junit", "readme.txt/f.xml")
    assert (result.code, "Verdict: " in result.out, "Name another file." in result.err) == (64, True, True), result


def test_a_run_leaves_its_checks_as_junit_xml(half_done: "Project") -> None:
    (document,) = (half_done.home / "checks").glob("*.junit.xml")
    suites = ET.fromstring(document.read_text())
    assert [suite.get("failures") for suite in suites] == ["0", "1"]
    shown = half_done.ask("show", "1.2", "--json").json
    (check,) = shown["verification"]["checks"]
    assert (check["status"], check["exit_code"]) == ("fail", 1)
    assert check["log"].endswith("task-1.2.log")
