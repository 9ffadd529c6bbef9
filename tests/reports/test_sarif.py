"""What verification found as SARIF 2.1.0, as code hosts read it."""

import json

from unstuck import __version__
from unstuck.model.verdict import Remark
from unstuck.reports.verdict_formats import sarif_text

REMARKS = (
    Remark(rule="test-deleted", severity="reject", path="tests/test a.py", line=7, says="The test is gone."),
    Remark(rule="ci-changed", severity="ask", path=".github/ci.yml", line=1, says="A step is gone."),
    Remark(rule="scope", severity="warn", path="docs/a.md", line=1, says="Not named."),
    Remark(rule="unheard-of", severity="reject", path="", line=1, says="Nothing changed."),
)


def test_each_remark_is_a_result_with_its_rule_level_and_place() -> None:
    log = json.loads(sarif_text(REMARKS))
    run = log["runs"][0]
    driver, rules = run["tool"]["driver"], [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [(result["ruleId"], result["level"]) for result in run["results"]] == [
        ("test-deleted", "error"), ("ci-changed", "warning"), ("scope", "note"), ("unheard-of", "error"),
    ]  # fmt: skip
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "tests/test%20a.py"}, "region": {"startLine": 7}}
    assert "locations" not in run["results"][3], "what is about no file has no place"
    assert (log["version"], driver["name"], driver["version"]) == ("2.1.0", "unstuck", __version__)
    means = {rule["id"]: rule["shortDescription"]["text"] for rule in driver["rules"]}
    assert means["test-deleted"] == "A test is gone, and nothing else asserts what it did."


def test_no_remark_is_a_run_with_no_results() -> None:
    assert json.loads(sarif_text(()))["runs"][0]["results"] == []
