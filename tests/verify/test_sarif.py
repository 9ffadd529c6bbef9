"""Findings as SARIF 2.1.0, as code hosts read it."""

import json

from unstuck.verify.audit import Change, Finding, audit
from unstuck.verify.sarif import sarif

FINDINGS = (
    Finding(
        rule="test-deleted",
        severity="reject",
        path="tests/test a.py",
        line=7,
        says="The test is gone.",
        evidence="assert x",
    ),
    Finding(rule="ci-changed", severity="ask", path=".github/ci.yml", line=1, says="A step is gone."),
    Finding(rule="scope", severity="warn", path="docs/a.md", line=1, says="Not named."),
    Finding(rule="empty-claim", severity="reject", path="", line=1, says="Nothing changed."),
)


def test_each_finding_is_a_result_with_its_rule_level_and_place() -> None:
    run = sarif(FINDINGS)["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [(result["ruleId"], result["level"]) for result in run["results"]] == [
        ("test-deleted", "error"), ("ci-changed", "warning"), ("scope", "note"), ("empty-claim", "error"),
    ]  # fmt: skip
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "tests/test%20a.py"}, "region": {"startLine": 7}}


def test_a_finding_about_no_file_has_no_place() -> None:
    assert "locations" not in sarif(FINDINGS)["runs"][0]["results"][3]


def test_no_finding_is_a_run_with_no_results() -> None:
    log = sarif(())
    assert (log["version"], log["runs"][0]["results"]) == ("2.1.0", [])


def test_the_log_is_json_and_its_rules_say_what_they_mean() -> None:
    found = audit([Change(path="tests/test_a.py", old="def test_x():\n    assert f() == 1\n")], ("src/a.py",))
    log = json.loads(json.dumps(sarif(found, version="1.2.3")))
    driver = log["runs"][0]["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("unstuck", "1.2.3")
    assert driver["rules"][0]["shortDescription"]["text"] == "A test is gone, and nothing else asserts what it did."
