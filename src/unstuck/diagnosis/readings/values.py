"""What an output says, as one value: how many tests ran, which failed, what was found, what was measured."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

MESSAGE_CHARS = 300
MOST_LINES = 12
"""Of a message's lines the first few tell what is wrong; the rest is a diff or a dump."""

_FOREIGN = re.compile(
    r"node_modules|node:internal|site-packages|dist-packages|/lib/python\d|/usr/(?:lib|share)/|<frozen|/rustc/"
)
_EXCEPTION = re.compile(r"^(?:# | {2})?\w*Error(?: \[\w+\])?: \S")
_PLACE = re.compile(r"((?:file://)?(?:[A-Za-z]:)?[^\s():'\"]+\.\w{1,8}):(\d{1,7})(?::\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTest:
    """One test that failed, or, without a name, a file of tests that could not be loaded."""

    name: str
    file: str = ""
    line: int | None = None
    message: str = ""

    @property
    def label(self) -> str:
        """Return how people call it: the file and the name, as far as they are known."""
        return "::".join(part for part in (self.file, self.name) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One complaint of a linter, type checker, formatter or compiler."""

    file: str
    line: int | None = None
    rule: str = ""
    severity: str = "error"
    """`warning` where the tool calls it so; everything else makes the tool fail."""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one output says. Without a word of a test runner `ran` is None, which is not the same as 0."""

    tools: tuple[str, ...] = ()
    ran: int | None = None
    passed: int = 0
    failed: int = 0
    errors: int = 0
    """What could not be run: files of tests that do not load, set-ups that break."""
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


def summed(
    tool: str,
    failures: Iterable[FailedTest] = (),
    *,
    ran: int | None = None,
    passed: int = 0,
    failed: int | None = None,
    errors: int | None = None,
    skipped: int = 0,
) -> Reading:
    """Return what a test runner says; what it does not count is counted from what it names."""
    named = tuple(failures)
    unloaded = sum(not one.name for one in named)
    bad = len(named) - unloaded if failed is None else failed
    broken = unloaded if errors is None else errors
    return Reading(
        tools=(tool,), ran=ran, passed=passed, failed=bad, errors=broken, skipped=skipped, failures=named
    )  # fmt: skip


def merged(readings: Sequence[Reading]) -> Reading:
    """Return several tools' words in one output as one reading."""
    if len(readings) == 1:
        return readings[0]
    ran = [one.ran for one in readings if one.ran is not None]
    return Reading(
        tools=tuple(dict.fromkeys(tool for one in readings for tool in one.tools)),
        ran=sum(ran) if ran else None,
        passed=sum(one.passed for one in readings),
        failed=sum(one.failed for one in readings),
        errors=sum(one.errors for one in readings),
        skipped=sum(one.skipped for one in readings),
        failures=tuple(failure for one in readings for failure in one.failures),
        findings=tuple(finding for one in readings for finding in one.findings),
        measures={name: value for one in readings for name, value in one.measures.items()},
    )


def folded(lines: Iterable[str]) -> str:
    """Return a message's lines as one."""
    words = " ".join(line.strip() for _, line in zip(range(MOST_LINES), lines, strict=False)).split()
    text = " ".join(words)
    return text if len(text) <= MESSAGE_CHARS else f"{text[: MESSAGE_CHARS - 1]}…"


def place(lines: Iterable[str]) -> tuple[str, int | None]:
    """Return the first place in a stack that is the project's own."""
    for line in lines:
        if (found := _PLACE.search(line)) and not _FOREIGN.search(line):
            return found[1].removeprefix("file://"), int(found[2])
    return "", None


def uncaught(lines: Iterable[str]) -> str:
    """Return the first exception that ended a process of Node, for a file that could not be loaded."""
    return next((folded([line.lstrip("# ")]) for line in lines if _EXCEPTION.match(line)), "")


def until(lines: Sequence[str], start: int, stop: re.Pattern[str]) -> Iterator[str]:
    """Yield lines from `start` up to the first that begins something else."""
    for line in lines[start:]:
        if stop.search(line):
            return
        yield line


def numbers(pattern: re.Pattern[str], lines: Iterable[str]) -> dict[str, int]:
    """Sum `count` by `word` over all matches."""
    sums: dict[str, int] = {}
    for line in lines:
        for found in pattern.finditer(line):
            sums[found["word"]] = sums.get(found["word"], 0) + int(found["count"])
    return sums
