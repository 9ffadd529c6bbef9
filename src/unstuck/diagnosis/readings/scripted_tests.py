"""Read the test runners of scripting languages: rspec, minitest, phpunit and ExUnit."""

import re
from collections.abc import Iterator, Sequence

from unstuck.diagnosis.readings.values import FailedTest, Reading, folded, numbers, place, summed, until

_RSPEC_SUM = re.compile(r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?(?:, (\d+) errors? occurred outside)?")
_RSPEC_CASE = re.compile(r"^ {2}\d+\) (\S.*)$")
_RSPEC_END = re.compile(r"^ {2}\d+\) |^Finished in ")
_RSPEC_PLACE = re.compile(r"^ *# (?:\./)?(\S+?):(\d+)(?::in |$)")
_RSPEC_BROKEN = re.compile(r"^An error occurred while loading (?:\./)?(\S+?)\.?(?: - |$)")

_MINI_SUM = re.compile(r"^(\d+) (?:runs|tests), \d+ assertions, (\d+) failures, (\d+) errors, (\d+) skips")
_MINI_KIND = re.compile(r"^ *(?:\d+\) )?(Failure|Error):$")
_MINI_CASE = re.compile(r"^(\S.*?#\S.*?)(?: \[(\S+):(\d+)\])?:$")
_MINI_END = re.compile(r"^$|^ *\d+\) ")

_PHP_SUM = re.compile(r"^Tests: (\d+), Assertions: \d+(.*)$")
_PHP_COUNT = re.compile(r"(?P<word>Errors|Failures|Skipped|Incomplete): (?P<count>\d+)")
_PHP_OK = re.compile(r"^OK \((\d+) tests?, \d+ assertions?\)")
_PHP_SECTION = re.compile(r"^There (?:was|were) \d+ (\w[\w ]*?)s?:$")
_PHP_CASE = re.compile(r"^\d+\) (\S+::.+)$")
_PHP_END = re.compile(r"^\d+\) |^--$|^There (?:was|were) |^(?:ERRORS|FAILURES)!$")
_PHP_PLACE = re.compile(r"^(\S+\.php):(\d+)$")
_TESTDOX = "Summary of non-successful tests:"
_PHP_EMPTY = re.compile(r"^No tests found in class ")

_MIX_SUM = re.compile(r"^(?:(\d+) (?:doctests?|properties|property), )*(\d+) tests?, (\d+) failures?(.*)$")
_MIX_COUNT = re.compile(r"(?P<count>\d+) (?P<word>skipped|excluded|invalid)")
_MIX_CASE = re.compile(r"^ {2}\d+\) (\S.* \(\S+\))$")
_MIX_PLACE = re.compile(r"^ +(\S+\.exs?):(\d+)$")
_MIX_END = re.compile(r"^ +stacktrace:|^ {2}\d+\) |^Finished in ")
_MIX_BROKEN = re.compile(r"^\*\* \((?:CompileError|SyntaxError|TokenMissingError)\) (\S+?):(\d+):?(?:\d+:)? (.*)$")


def rspec(lines: Sequence[str]) -> Reading | None:
    """Read rspec."""
    total = next((found for line in reversed(lines) if (found := _RSPEC_SUM.match(line))), None)
    if total is None:
        return None
    start = lines.index("Failures:") if "Failures:" in lines else len(lines)
    failures: list[FailedTest] = []
    for number, line in enumerate(lines[start:], start):
        if found := _RSPEC_CASE.match(line):
            failures.append(_rspec_case(found[1], list(until(lines, number + 1, _RSPEC_END))))
    for number, line in enumerate(lines):
        if found := _RSPEC_BROKEN.match(line):
            one = _rspec_case("", list(until(lines, number + 1, re.compile(r"^Finished in |^An error occurred"))))
            failures.append(FailedTest(name="", file=found[1], line=one.line, message=one.message))
    examples, failed, pending = int(total[1]), int(total[2]), int(total[3] or 0)
    ran = examples - pending
    return summed(
        "rspec", failures, ran=ran, passed=ran - failed, failed=failed, errors=int(total[4] or 0), skipped=pending
    )


def _rspec_case(name: str, block: Sequence[str]) -> FailedTest:
    at = next((found for line in block if (found := _RSPEC_PLACE.match(line))), None)
    code = next((number for number, line in enumerate(block) if "Failure/Error:" in line), -1)
    said = folded(line for line in until(block, code + 1, _RSPEC_PLACE) if line.strip())
    said = said or (block[code].partition("Failure/Error:")[2].strip() if code >= 0 else "")
    return FailedTest(name=name, file=at[1] if at else "", line=int(at[2]) if at else None, message=said)


def minitest(lines: Sequence[str]) -> Reading | None:
    """Read minitest, alone or under Rails."""
    total = next((found for line in reversed(lines) if (found := _MINI_SUM.match(line))), None)
    if total is None:
        return None
    failures: list[FailedTest] = []
    for number, line in enumerate(lines[:-1]):
        if _MINI_KIND.match(line) and (found := _MINI_CASE.match(lines[number + 1])):
            block = list(until(lines, number + 2, _MINI_END))
            file, at = (found[2], int(found[3])) if found[2] else place(f"{part} " for part in block[1:])
            said = folded(part for part in block if not re.match(r"^ {4}\S+:\d+:in ", part))
            failures.append(FailedTest(name=found[1], file=file, line=at, message=said))
    runs, failed, errors, skipped = (int(total[group]) for group in (1, 2, 3, 4))
    ran = runs - skipped
    return summed(
        "minitest", failures, ran=ran, passed=ran - failed - errors, failed=failed, errors=errors, skipped=skipped
    )


def phpunit(lines: Sequence[str]) -> Reading | None:
    """Read phpunit; only its sections of errors and failures are about tests that failed."""
    fine = next((int(found[1]) for line in lines if (found := _PHP_OK.match(line))), None)
    if fine is not None:
        return summed("phpunit", ran=fine, passed=fine)
    total = next((found for line in reversed(lines) if (found := _PHP_SUM.match(line))), None)
    if total is None:
        return summed("phpunit", ran=0) if "No tests executed!" in lines else None
    counts = numbers(_PHP_COUNT, [total[2]])
    failures, section = list[FailedTest](), ""
    for number, line in enumerate(lines):
        if found := _PHP_SECTION.match(line):
            section = found[1]
        elif section in ("error", "failure") and (found := _PHP_CASE.match(line)):
            block = list(until(lines, number + 1, _PHP_END))
            at = next((each for part in block if (each := _PHP_PLACE.match(part))), None)
            said = folded(part for part in until(block, 0, _PHP_PLACE) if part.strip())
            file, where = (at[1], int(at[2])) if at else ("", None)
            failures.append(FailedTest(name=found[1], file=file, line=where, message=said))
    failures = failures or list(_testdox(lines))
    skipped = counts.get("Skipped", 0) + counts.get("Incomplete", 0)
    failed, errors = counts.get("Failures", 0), counts.get("Errors", 0)
    ran = int(total[1]) - skipped - sum(bool(_PHP_EMPTY.match(line)) for line in lines)
    return summed(
        "phpunit", failures, ran=ran, passed=ran - failed - errors, failed=failed, errors=errors, skipped=skipped
    )


def _testdox(lines: Sequence[str]) -> Iterator[FailedTest]:
    """Read the list of tests that did not succeed, below the names of their classes."""
    start = lines.index(_TESTDOX) if _TESTDOX in lines else len(lines)
    about = ""
    for number, line in enumerate(lines[start:], start):
        if line and not line.startswith(" "):
            about = line
        elif line.startswith(" ✘ "):
            block = [part.strip(" │┐├┴╵") for part in until(lines, number + 1, re.compile(r"^$|^ \S "))]
            file, at = place(f"{part} " for part in block)
            said = folded(part for part in block if part and not _PHP_PLACE.match(part))
            yield FailedTest(name=f"{about} {line[3:]}", file=file, line=at, message=said)


def mix(lines: Sequence[str]) -> Reading | None:
    """Read ExUnit."""
    total = next((found for line in reversed(lines) if (found := _MIX_SUM.match(line))), None)
    broken = [
        FailedTest(name="", file=found[1], line=int(found[2]), message=folded([found[3]]))
        for line in lines
        if (found := _MIX_BROKEN.match(line))
    ]
    if total is None:
        return summed("mix", broken) if broken else None
    failures: list[FailedTest] = []
    for number, line in enumerate(lines):
        if found := _MIX_CASE.match(line):
            block = list(until(lines, number + 1, _MIX_END))
            at = next((each for part in block if (each := _MIX_PLACE.match(part))), None)
            said = folded(part for part in block if part.strip() and not _MIX_PLACE.match(part))
            file, where = (at[1], int(at[2])) if at else ("", None)
            failures.append(FailedTest(name=found[1], file=file, line=where, message=said))
    counts = numbers(_MIX_COUNT, [total[4]])
    skipped = counts.get("skipped", 0)
    ran = int(total[1] or 0) + int(total[2]) - skipped
    failed, errors = int(total[3]), counts.get("invalid", 0)
    return summed("mix", failures, ran=ran, passed=ran - failed - errors, failed=failed, errors=errors, skipped=skipped)
