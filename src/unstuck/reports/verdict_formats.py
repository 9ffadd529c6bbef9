"""Verdicts in the formats of other programs: JUnit XML for build servers, SARIF for editors, JSON."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from unstuck import __version__
from unstuck.diagnosis.classifying import repairs
from unstuck.model.verdict import CheckResult, Remark, Verdict
from unstuck.shipped import shipped_toml

NOT_COUNTED = "is red and does not count"
MAX_WARNINGS = 5
TAIL_CHARS = 4000
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold, not even escaped."""
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"reject": "error", "ask": "warning", "warn": "note"}


def verdict_notes(verdict: Verdict) -> Iterator[str]:
    """Yield notes for the user that decide nothing: warnings, flaky checks, checks that were red before."""
    warnings = [remark for remark in verdict.remarks if remark.severity == "warn"]
    yield from (f"Worth a look: {remark}" for remark in warnings[:MAX_WARNINGS])
    if len(warnings) > MAX_WARNINGS:
        yield f"Worth a look: {len(warnings) - MAX_WARNINGS} more like these; see `unstuck verify`."
    for result in verdict.results:
        if result.flaky and result.ended.ok:
            yield f"`{result.command}` is flaky: on one and the same tree it failed {result.runs - 1} of {result.runs} times."
        elif result.excused_because:
            yield f"`{result.command}` {NOT_COUNTED}: {result.excused_because}."
        elif result.not_meaningful_because and any(other.status == "pass" for other in verdict.results):
            yield f"A check says nothing: {result.not_meaningful_because}."


def red_before_note(before: CheckResult) -> str:
    """Return a note on a gate that was red before any work: which failures it does not guard against."""
    if before.ended.ok:
        return f"Red before any work: {repairs(before)}."
    failed = ", ".join(before.tests[:3]) or (
        f"exit code {before.ended.exit_code}" if before.ended.exit_code else "no end"
    )
    effect = "in another way every time, so it guards nothing" if before.flaky else "what was red there guards nothing"
    return f"`{before.command}` was red before any work ({failed}): {effect}."


def junit_xml(name: str, verdicts: Iterable[tuple[str, Verdict]]) -> str:
    """Return a JUnit document with a suite for each task and a case for each check.

    `verdicts` are the last verdicts by the name of the task.
    """
    suites = ET.Element("testsuites", name=_text(name))
    for task, verdict in verdicts:
        _suite(suites, task, verdict)
    for key in ("tests", "failures", "skipped"):
        suites.set(key, str(sum(int(suite.get(key, "0")) for suite in suites)))
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, encoding="unicode") + "\n"


def _suite(suites: ET.Element, task: str, verdict: Verdict) -> None:
    seconds = sum(result.ended.seconds for result in verdict.results)
    suite = ET.SubElement(suites, "testsuite", name=_text(task), time=f"{seconds:.3f}")
    for result in verdict.results:
        case = _case(suite, task, result.command)
        case.set("time", f"{result.ended.seconds:.3f}")
        _check(case, result)
    for remark in (remark for remark in verdict.remarks if remark.severity != "warn"):
        case = _case(suite, task, f"audit: {remark.rule} {remark.path}".strip())
        _note(case, str(remark), failed="audit" if remark.severity == "reject" else "")
    if not len(suite):
        _note(_case(suite, task, "verification"), verdict.reason)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))


def _check(case: ET.Element, result: CheckResult) -> None:
    if result.status == "fail":
        tests = f": {', '.join(result.tests)}" if result.tests else ""
        failure = _note(case, f"{result.kind}: exit code {result.ended.exit_code}{tests}", result.kind)
        failure.text = _text(result.ended.tail[-TAIL_CHARS:])
    elif result.status == "inconclusive" or result.excused_because:
        _note(case, result.not_meaningful_because or result.excused_because)


def _case(suite: ET.Element, task: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=_text(task), name=_text(name))


def _note(case: ET.Element, message: str, failed: str = "") -> ET.Element:
    """Mark a case as failed with the type `failed`, or as skipped if that is empty."""
    if failed:
        return ET.SubElement(case, "failure", message=_text(message), type=failed)
    return ET.SubElement(case, "skipped", message=_text(message))


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def sarif_text(remarks: Iterable[Remark]) -> str:
    """Return a SARIF log of one run as text. It lists only the rules of the given remarks."""
    findings = list(remarks)
    used = sorted({remark.rule for remark in findings})
    driver = {"name": "unstuck", "version": __version__, "rules": [_rule(rule) for rule in used]}
    results = [_result(remark, used.index(remark.rule)) for remark in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, ensure_ascii=False) + "\n"


def _rule(name: str) -> dict[str, Any]:
    row = shipped_toml("audit")["rule"].get(name, {"means": name, "severity": "ask"})
    level = {"level": LEVELS[row["severity"]]}
    return {"id": name, "shortDescription": {"text": row["means"]}, "defaultConfiguration": level}


def _result(remark: Remark, place: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": remark.rule,
        "ruleIndex": place,
        "level": LEVELS[remark.severity],
        "message": {"text": remark.says},
        "properties": {"severity": remark.severity},
    }
    if remark.path:
        location = {"artifactLocation": {"uri": quote(remark.path)}, "region": {"startLine": max(1, remark.line)}}
        result["locations"] = [{"physicalLocation": location}]
    return result


def check_object(result: CheckResult) -> dict[str, Any]:
    """Return the result of a check with its evidence, as the JSON files and commands show it."""
    return {
        "command": result.command,
        "kind": result.kind,
        "status": result.status,
        "exit_code": result.ended.exit_code,
        "seconds": round(result.ended.seconds, 3),
        "runs": result.runs,
        "flaky": result.flaky,
        "cached": result.cached,
        "why": result.not_meaningful_because or result.excused_because or None,
        "counts": asdict(result.counts) if result.counts else None,
        "tests": list(result.tests),
        "log": result.log or None,
    }
