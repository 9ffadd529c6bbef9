"""What an output says, as one value: the tools that speak in it are found by their marks, and their readers loaded."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from unstuck.model.text import clean, one_line
from unstuck.shipped import shipped_table

MESSAGE_CHARS = 300
MOST_LINES = 12
"""Of a message's lines the first few tell what is wrong; the rest is a diff or a dump."""

_FOREIGN = re.compile(
    r"node_modules|node:internal|site-packages|dist-packages|/lib/python\d|/usr/(?:lib|share)/|<frozen|/rustc/"
)
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


HEAD, TAIL = 1 << 16, 3 << 16
"""More than this of an output is not read: the beginning names the tool, the end sums up."""

FIGURES = ("%", "error", "warning", "violation", "problem", "offense", "issue")
"""One of these is in every line that sums something up."""
FOUND = re.compile(
    r"^(?:vet: |:\w+)?\s{0,4}[^\s:()]+[:(]\d|^ +\d+:\d+ |^ *--> |reformat|^\[|^Diff in |: line \d|^::|undefined ref|^ERROR: |^error: cannot |^  \* |━━",
    re.MULTILINE,
)
"""Whether anything looks like a finding: their reader knows many forms, and takes a while to load."""


def read(text: str, *, formatter: bool = False) -> Reading:
    """Say what an output says. `formatter`: it is one's, and a line with nothing but a file names what it would change."""
    whole = len(text) <= HEAD + TAIL
    lines = clean(text if whole else f"{text[:HEAD]}\n{text[-TAIL:]}")
    joined = "\n".join([*lines, ""])
    readings = [*_runs(lines, joined), *_complaints(lines, joined, formatter=formatter)]
    found = [reading for reading in readings if reading is not None]
    reading = merged(found) if found else Reading()
    return reading if whole else replace(reading, whole=False)


def _runs(lines: Sequence[str], joined: str) -> Iterator[Reading | None]:
    """Yield what each test runner says of which a word is there; each is looked at more closely by its row."""
    for row in shipped_table("runners")["runner"]:
        if any(mark in joined for mark in row["marks"]):
            from unstuck.diagnosis.output.test_runners import read_run  # noqa: PLC0415  # only where a runner may speak

            yield read_run(row, lines)


def _complaints(lines: Sequence[str], joined: str, *, formatter: bool) -> Iterator[Reading | None]:
    """Yield what is complained of, and what is summed up, where anything looks like it."""
    found, summed_up = formatter or FOUND.search(joined), any(word in joined for word in FIGURES)
    if found or summed_up:
        from unstuck.diagnosis.output.linter_output import figures, findings  # noqa: PLC0415  # they know many forms

        yield findings(lines, formatter=formatter) if found else None
        yield figures(lines) if summed_up else None


ERROR_CHARS = 300
_OWN_WORDS = re.compile(
    r"^(?:E? +)?(?:\w+(?:\.\w+)*(?:Error|Exception)|Error|ERROR|error|fatal|(?:PHP )?Fatal error|panic)(?:\[\w+\])?:\s*\S"
    r"|.*\((?:\w+::)*\w+(?:Error|Exception)\)$|^Jest: .*threshold"
)
_ANNOUNCES = re.compile(r":$|subprocess-exited-with-error$")
"""What only says that an error follows."""
_NO_WORDS = re.compile(r"^[\W\d_]*$|^\s+at |^\s*(?:npm (?:ERR!|error)|make(?:\[\d+\])?: \*\*\*|error Command failed)")


def error_of(reading: Reading, text: str = "") -> str:
    """Return the error itself, for histories and questions; empty only where nothing was said at all."""
    spoken = [one for one in reading.failures if one.message] or list(reading.failures)
    worst = [one for one in reading.findings if one.severity == "error"]
    if any(one.name for one in spoken) or (spoken and not worst):
        return one_line(_of_test(spoken[0]), ERROR_CHARS)
    if found := worst or list(reading.findings):
        return one_line(_of_finding(found[0]), ERROR_CHARS)
    lines = [line for line in clean(text) if line.strip()]
    own = next((line for line in lines if _OWN_WORDS.match(line) and not _ANNOUNCES.search(line)), "")
    last = next((line for line in reversed(lines) if not _NO_WORDS.match(line)), lines[-1] if lines else "")
    return one_line((own or last).removeprefix("E "), ERROR_CHARS)


def _of_test(failed: FailedTest) -> str:
    where = f"{failed.file}:{failed.line}" if failed.file and failed.line else failed.file
    about = ", ".join(part for part in (failed.name, where) if part)
    return f"{failed.message} ({about})" if failed.message and about else failed.message or f"fails: {about}"


def _of_finding(found: Finding) -> str:
    where = f"{found.file}:{found.line}" if found.line else found.file
    return f"{where}: {found.message}{f' ({found.rule})' if found.rule else ''}"
