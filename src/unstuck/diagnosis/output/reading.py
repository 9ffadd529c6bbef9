"""Values for what the output of a command reports."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

MESSAGE_CHARS = 300
MOST_LINES = 12
"""The first lines of a message tell what is wrong. The rest is a diff or a dump."""

_FOREIGN = r"node_modules|node:internal|site-packages|dist-packages|/lib/python\d|/usr/(?:lib|share)/|<frozen|/rustc/"
_PLACE = r"((?:file://)?(?:[A-Za-z]:)?[^\s():'\"]+\.\w{1,8}):(\d{1,7})(?::\d+)?"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTest:
    """One test that failed, or, without a name, a file of tests that could not be loaded."""

    name: str
    file: str = ""
    line: int | None = None
    message: str = ""

    @property
    def label(self) -> str:
        """Return the file and the name, as far as they are known."""
        return "::".join(part for part in (self.file, self.name) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One complaint of a linter, type checker, formatter or compiler."""

    file: str
    line: int | None = None
    rule: str = ""
    severity: str = "error"
    """`warning` where the tool calls it so. Everything else makes the tool fail."""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The report of the tools in one output."""

    tools: tuple[str, ...] = ()
    ran: int | None = None
    """None where no test runner reports, which is not the same as 0."""
    passed: int = 0
    failed: int = 0
    errors: int = 0
    """Tests that could not run: files that do not load, set-ups that break."""
    skipped: int = 0
    failures: tuple[FailedTest, ...] = ()
    findings: tuple[Finding, ...] = ()
    measures: Mapping[str, float] = field(default_factory=dict)
    """Figures by name, such as `coverage` or `violations`."""
    whole: bool = True
    """All of the output was read."""

    @property
    def red(self) -> int:
        return self.failed + self.errors


def runner_reading(
    tool: str,
    failures: Iterable[FailedTest] = (),
    *,
    ran: int | None = None,
    passed: int = 0,
    failed: int | None = None,
    errors: int | None = None,
    skipped: int = 0,
) -> Reading:
    """Return the report of a test runner, with missing counts from the failing tests."""
    tests = tuple(failures)
    unloaded = sum(not test.name for test in tests)
    return Reading(
        tools=(tool,),
        ran=ran,
        passed=passed,
        failed=len(tests) - unloaded if failed is None else failed,
        errors=unloaded if errors is None else errors,
        skipped=skipped,
        failures=tests,
    )


def merged_reading(readings: Sequence[Reading]) -> Reading:
    """Return the reports of several tools in one output as one."""
    if len(readings) == 1:
        return readings[0]
    ran = [reading.ran for reading in readings if reading.ran is not None]
    return Reading(
        tools=tuple(dict.fromkeys(tool for reading in readings for tool in reading.tools)),
        ran=sum(ran) if ran else None,
        passed=sum(reading.passed for reading in readings),
        failed=sum(reading.failed for reading in readings),
        errors=sum(reading.errors for reading in readings),
        skipped=sum(reading.skipped for reading in readings),
        failures=tuple(failure for reading in readings for failure in reading.failures),
        findings=tuple(finding for reading in readings for finding in reading.findings),
        measures={name: value for reading in readings for name, value in reading.measures.items()},
    )


def folded_message(lines: Iterable[str]) -> str:
    """Return the lines of a message as one line."""
    first_lines = [line.strip() for _, line in zip(range(MOST_LINES), lines, strict=False)]
    text = " ".join(" ".join(first_lines).split())
    return text if len(text) <= MESSAGE_CHARS else f"{text[: MESSAGE_CHARS - 1]}…"


def first_own_place(lines: Iterable[str]) -> tuple[str, int | None]:
    """Return the first file and line of a stack that is the project's own."""
    for line in lines:
        match = re.search(_PLACE, line)
        if match and not re.search(_FOREIGN, line):
            return match[1].removeprefix("file://"), int(match[2])
    return "", None
