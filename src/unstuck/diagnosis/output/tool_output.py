"""Read the output of test runners, linters, type checkers, formatters and compilers."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from unstuck.diagnosis.output.linter_output import read_figures, read_findings
from unstuck.diagnosis.output.reading import FailedTest, Finding, Reading, merged_reading
from unstuck.diagnosis.output.test_runners import read_runner, runner_outputs
from unstuck.model.text import clean, one_line

HEAD, TAIL = 1 << 16, 3 << 16
"""Characters that are read of a long output: the beginning names the tool, the end sums up."""

FIGURE_WORDS = ("%", "error", "warning", "violation", "problem", "offense", "issue")
"""One of these is in every line with a figure."""
FINDING_SIGN = re.compile(
    r"^(?:vet: |:\w+)?\s{0,4}[^\s:()]+[:(]\d|^ +\d+:\d+ |^ *--> |reformat|^\[|^Diff in |: line \d|^::|undefined ref|^ERROR: |^error: cannot |^  \* |━━",
    re.MULTILINE,
)
"""In every output with findings; the patterns of the findings themselves take longer."""


def read_output(text: str, *, formatter: bool = False) -> Reading:
    """Return what the tools in an output report.

    In the output of a `formatter` a line with only a file names a file that it would change.
    """
    is_whole = len(text) <= HEAD + TAIL
    lines = clean(text if is_whole else f"{text[:HEAD]}\n{text[-TAIL:]}")
    joined = "\n".join([*lines, ""])
    readings = [*_runner_readings(lines, joined), *_linter_readings(lines, joined, formatter=formatter)]
    reading = merged_reading(readings) if readings else Reading()
    return reading if is_whole else replace(reading, whole=False)


def _runner_readings(lines: Sequence[str], joined: str) -> Iterator[Reading]:
    """Yield the reports of the test runners whose marks are in the output."""
    for runner in runner_outputs():
        if any(mark in joined for mark in runner.marks):
            reading = read_runner(runner, lines)
            if reading is not None:
                yield reading


def _linter_readings(lines: Sequence[str], joined: str, *, formatter: bool) -> Iterator[Reading]:
    """Yield the findings and the figures, where anything looks like one."""
    if formatter or FINDING_SIGN.search(joined):
        findings = read_findings(lines, formatter=formatter)
        if findings is not None:
            yield findings
    if any(word in joined for word in FIGURE_WORDS):
        figures = read_figures(lines)
        if figures is not None:
            yield figures


ERROR_CHARS = 300
_ERROR_LINE = re.compile(
    r"^(?:E? +)?(?:\w+(?:\.\w+)*(?:Error|Exception)|Error|ERROR|error|fatal|(?:PHP )?Fatal error|panic)(?:\[\w+\])?:\s*\S"
    r"|.*\((?:\w+::)*\w+(?:Error|Exception)\)$|^Jest: .*threshold"
)
_ANNOUNCEMENT = re.compile(r":$|subprocess-exited-with-error$")
"""A line that only says that an error follows."""
_NOT_AN_ERROR = re.compile(
    r"^[\W\d_]*$|^\s+at |^\s*(?:npm (?:ERR!|error)|make(?:\[\d+\])?: \*\*\*|error Command failed)"
)


def error_of(reading: Reading, text: str = "") -> str:
    """Return the error itself in one line, or an empty string if the text is empty."""
    failures = [failure for failure in reading.failures if failure.message] or list(reading.failures)
    errors = [finding for finding in reading.findings if finding.severity == "error"]
    if any(failure.name for failure in failures) or (failures and not errors):
        return one_line(_failure_text(failures[0]), ERROR_CHARS)
    if findings := errors or list(reading.findings):
        return one_line(_finding_text(findings[0]), ERROR_CHARS)
    lines = [line for line in clean(text) if line.strip()]
    error = next((line for line in lines if _ERROR_LINE.match(line) and not _ANNOUNCEMENT.search(line)), "")
    last = next((line for line in reversed(lines) if not _NOT_AN_ERROR.match(line)), lines[-1] if lines else "")
    return one_line((error or last).removeprefix("E "), ERROR_CHARS)


def _failure_text(failure: FailedTest) -> str:
    place = f"{failure.file}:{failure.line}" if failure.file and failure.line else failure.file
    test = ", ".join(part for part in (failure.name, place) if part)
    return f"{failure.message} ({test})" if failure.message and test else failure.message or f"fails: {test}"


def _finding_text(finding: Finding) -> str:
    place = f"{finding.file}:{finding.line}" if finding.line else finding.file
    return f"{place}: {finding.message}{f' ({finding.rule})' if finding.rule else ''}"
