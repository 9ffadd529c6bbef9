"""Write verdicts as JUnit XML, which build servers read: a suite for each task, a case for each check."""

import re
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from unstuck.journal import CheckResult, Remark, Verdict

TAIL_CHARS = 4000
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold, whatever one does."""


def junit(name: str, verdicts: Iterable[tuple[str, Verdict]]) -> str:
    """Return the document; `verdicts` are the last ones of each task, by the task's name."""
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
        _case(suite, task, result)
    for remark in verdict.remarks:
        if remark.severity != "warn":
            _remark(suite, task, remark)
    if not len(suite):
        case = ET.SubElement(suite, "testcase", classname=_text(task), name="verification")
        ET.SubElement(case, "skipped", message=_text(verdict.reason))
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))


def _case(suite: ET.Element, task: str, result: CheckResult) -> None:
    case = ET.SubElement(
        suite, "testcase", classname=_text(task), name=_text(result.command), time=f"{result.ended.seconds:.3f}"
    )
    if result.status == "fail":
        tests = f": {', '.join(result.tests)}" if result.tests else ""
        message = f"{result.kind}: exit code {result.ended.exit_code}{tests}"
        ET.SubElement(case, "failure", message=_text(message), type=result.kind).text = _text(
            result.ended.tail[-TAIL_CHARS:]
        )
    elif result.status == "inconclusive" or result.although:
        ET.SubElement(case, "skipped", message=_text(result.idle or result.although))


def _remark(suite: ET.Element, task: str, remark: Remark) -> None:
    case = ET.SubElement(
        suite, "testcase", classname=_text(task), name=_text(f"audit: {remark.rule} {remark.path}".strip())
    )
    if remark.severity == "reject":
        ET.SubElement(case, "failure", message=_text(str(remark)), type="audit")
    else:
        ET.SubElement(case, "skipped", message=_text(str(remark)))


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
