"""Write what verification found as SARIF 2.1.0, which code hosts and editors show beside the lines."""

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from unstuck import __version__
from unstuck.journal import Remark
from unstuck.verify.audit import RULES

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"reject": "error", "ask": "warning", "warn": "note"}


def sarif_text(remarks: Iterable[Remark]) -> str:
    """Return a SARIF log with one run as text; the rules are those that were found."""
    found = list(remarks)
    used = sorted({remark.rule for remark in found})
    places = {rule: place for place, rule in enumerate(used)}
    driver = {
        "name": "unstuck",
        "version": __version__,
        "rules": [_rule(rule) for rule in used],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(remark, places) for remark in found],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _rule(name: str) -> dict[str, Any]:
    rule = RULES.get(name)
    text = rule.means if rule is not None else name
    level = LEVELS[rule.severity] if rule is not None else "warning"
    return {"id": name, "shortDescription": {"text": text}, "defaultConfiguration": {"level": level}}


def _result(remark: Remark, places: dict[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": remark.rule,
        "ruleIndex": places[remark.rule],
        "level": LEVELS[remark.severity],
        "message": {"text": remark.says},
        "properties": {"severity": remark.severity},
    }
    if remark.path:
        location = {"artifactLocation": {"uri": quote(remark.path)}, "region": {"startLine": max(1, remark.line)}}
        result["locations"] = [{"physicalLocation": location}]
    return result
