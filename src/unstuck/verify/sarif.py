"""Write findings as SARIF 2.1.0, which code hosts and editors show beside the lines."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from unstuck.verify.audit import RULES, Finding

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"reject": "error", "ask": "warning", "warn": "note"}


def sarif(findings: Iterable[Finding], *, version: str = "0") -> dict[str, Any]:
    """Give a SARIF log with one run; the rules are those that were found."""
    found = list(findings)
    used = sorted({finding.rule for finding in found})
    places = {rule: place for place, rule in enumerate(used)}
    driver = {
        "name": "unstuck",
        "version": version,
        "rules": [_rule(rule) for rule in used],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, places) for finding in found],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(name: str) -> dict[str, Any]:
    rule = RULES.get(name)
    text = rule.means if rule is not None else name
    level = LEVELS[rule.severity] if rule is not None else "warning"
    return {"id": name, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level}}


def _result(finding: Finding, places: dict[str, int]) -> dict[str, Any]:
    message = f"{finding.says} {finding.evidence}".strip()
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": places[finding.rule],
        "level": LEVELS[finding.severity],
        "message": {"text": message},
        "properties": {"severity": finding.severity},
    }
    if finding.path:
        location = {"artifactLocation": {"uri": quote(finding.path)}, "region": {"startLine": max(1, finding.line)}}
        result["locations"] = [{"physicalLocation": location}]
    return result
