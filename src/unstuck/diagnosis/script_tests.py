"""Read the test runners of scripting languages: pytest, unittest, rspec, minitest, phpunit and ExUnit."""

import re
from collections.abc import Iterator, Sequence

from unstuck.diagnosis.reading import FailedTest, Reading, folded, numbers, place, summed, until

_LAST = re.compile(r"^=* ?((?:\d+ \w+(?: \w+)?(?:, )?)+|no tests ran) in [\d.]+ ?s\b")
_PYTEST_COUNT = re.compile(r"(?P<count>\d+) (?P<word>passed|failed|errors?|skipped|xfailed|xpassed)\b")
_RED = re.compile(
    r"^(FAILED|ERROR|SUBFAILED(?:[\[(].*?[\])])*) "
    r"([^\s:]+(?:::[^\s\[]+(?:\[.*?\](?= - |$))?)*)(?: - (.*))?$"
)
_TITLE = re.compile(r"^_{3,} (?:ERROR (?:at (?:setup|teardown) of|collecting) )?(\S.*?) _{3,}$")
_RULER = re.compile(r"^={3,} .* ={3,}$|^={3,} (?:FAILURES|ERRORS)")
_SAYS = re.compile(r"^E {3,}(\S.*)$")
_LONG = re.compile(r"^(\S+):(\d+): \S")
_NATIVE = re.compile(r"^ {2}File \"([^\"]+)\", line (\d+), in ")
_SYNTAX = re.compile(r"^E +File \"([^\"]+)\", line (\d+)")
_PYTEST_LIBRARY = re.compile(r"site-packages|/lib/python\d|^<")
_PROGRESS = re.compile(r"^(?:\S+\.py )?([.FEsxXRu]+) +\[ *\d+%\]$")


def pytest(lines: Sequence[str]) -> Reading | None:
    """Read pytest, quiet or not."""
    last = [found[1] for line in lines if (found := _LAST.match(line))]
    red = {(found[1], found[2]): found[3] or "" for line in lines if (found := _RED.match(line))}
    sections = _sections(lines)
    if not last and not sections and not any("::" in name or name.endswith(".py") for _, name in red):
        return None
    failures = [_pytest_failed(kind, name, said, sections) for (kind, name), said in red.items()]
    if not red:
        failures = list(sections.values())
    counts = numbers(_PYTEST_COUNT, last)
    failed, errors = counts.get("failed", 0), counts.get("error", 0) + counts.get("errors", 0)
    passed = counts.get("passed", 0)
    skipped = sum(counts.get(word, 0) for word in ("skipped", "xfailed", "xpassed"))
    if not last:
        shown = "".join(found[1] for line in lines if (found := _PROGRESS.match(line)))
        passed, skipped = shown.count("."), sum(map(shown.count, "sxX"))
        errors = sum(kind == "ERROR" for kind, _ in red)
        failed = len(failures) - errors
    unloaded = sum(not one.name for one in failures)
    ran = passed + failed + errors - unloaded if last or passed else None
    return summed("pytest", failures, ran=ran, passed=passed, failed=failed, errors=errors, skipped=skipped)


def _pytest_failed(kind: str, name: str, said: str, sections: dict[str, FailedTest]) -> FailedTest:
    file, _, case = name.partition("::")
    known = sections.get(case.replace("::", ".") or file)
    message = known.message if known and known.message else folded([said])
    shown = f"{case} {kind.removeprefix('SUBFAILED')}".rstrip() if kind.startswith("SUBFAILED") else case
    return FailedTest(name=shown, file=file, line=known.line if known else None, message=message)


def _sections(lines: Sequence[str]) -> dict[str, FailedTest]:
    """Return what stands below each failure's title; without a file, a title is a test's name alone."""
    found: dict[str, FailedTest] = {}
    title, block = "", list[str]()
    for line in [*lines, "=== end ==="]:
        heading = _TITLE.match(line)
        if heading is None and not _RULER.match(line):
            block.append(line)
            continue
        if title:
            found.setdefault(title, _section(title, block))
        title, block = (heading[1] if heading else ""), []
    return {title: one for title, one in found.items() if one.message or one.file}


def _section(title: str, block: Sequence[str]) -> FailedTest:
    said = [each[1] for line in block if (each := _SAYS.match(line))]
    message = _message(said) or next(
        (line for line in reversed(block) if re.match(r"^[\w.]+(?:Error|Exception)\b", line)), ""
    )
    places = [each for line in block if (each := _LONG.match(line) or _NATIVE.match(line) or _SYNTAX.match(line))]
    own = [each for each in places if not _PYTEST_LIBRARY.search(each[1])]
    at = own[-1] if own else None
    unloaded = title.endswith(".py")
    file = title if unloaded else at[1] if at else ""
    line = int(at[2]) if at and at[1].endswith(file) else None
    return FailedTest(name="" if unloaded else title, file=file, line=line, message=folded([message]))


def _message(said: Sequence[str]) -> str:
    """Return the first error; one that quotes a file's line says what is wrong with it below."""
    if said and said[0].startswith("File "):
        return next((line for line in said if re.match(r"\w+Error: ", line)), said[0])
    if len(said) > 1 and said[0].startswith("AssertionError: ") and said[1].startswith("assert "):
        return f"{said[0]}: {said[1]}"
    return said[0] if said else ""


_RAN = re.compile(r"^Ran (\d+) tests? in ")
_BAD = re.compile(r"^(?:FAILED|OK) \((.*)\)$")
_UNITTEST_COUNT = re.compile(r"(failures|errors|skipped|expected failures|unexpected successes)=(\d+)")
_CASE = re.compile(r"^(FAIL|ERROR): (\S.*)$")
_END = re.compile(r"^={70}$|^Ran \d+ tests? in |^-{70}$")
_FRAME = re.compile(r"^ +File \"([^\"]+)\", line (\d+)")
_UNITTEST_LIBRARY = re.compile(r"/lib/python\d|^<frozen")
_BROKEN = "unittest.loader._FailedTest"


def unittest(lines: Sequence[str]) -> Reading | None:
    """Read unittest; the subtests of one test are several failures, and one test."""
    totals = [int(found[1]) for line in lines if (found := _RAN.match(line))]
    if not totals:
        return None
    failures: list[FailedTest] = []
    tests: set[str] = set()
    for number, line in enumerate(lines):
        if (found := _CASE.match(line)) and number and lines[number - 1].startswith("=" * 70):
            failures.append(_unittest_failed(found[2], lines, number))
            tests.add(found[2].partition(")")[0])
    counts: dict[str, int] = {}
    for line in lines:
        for word, number_of in _UNITTEST_COUNT.findall(found[1]) if (found := _BAD.match(line)) else ():
            counts[word] = counts.get(word, 0) + int(number_of)
    skipped = counts.get("skipped", 0) + counts.get("expected failures", 0)
    failed, errors = counts.get("failures", 0) + counts.get("unexpected successes", 0), counts.get("errors", 0)
    ran = sum(totals) - skipped
    passed = max(0, ran - (len(tests) or failed + errors))
    return summed("unittest", failures, ran=ran, passed=passed, failed=failed, errors=errors, skipped=skipped)


def _unittest_failed(name: str, lines: Sequence[str], start: int) -> FailedTest:
    rule = next((at for at in range(start + 1, min(start + 4, len(lines))) if lines[at].startswith("-" * 70)), start)
    block = list(until(lines, rule + 1, _END))
    frames = [(at, found) for at, line in enumerate(block) if (found := _FRAME.match(line))]
    own = [found for _, found in frames if not _UNITTEST_LIBRARY.search(found[1])]
    said = block[frames[-1][0] + 1 :] if frames else block
    message = folded(line for line in said if line.strip() and not line.startswith((" ", "\t")))
    file, at = (own[-1][1], int(own[-1][2])) if own else ("", None)
    return FailedTest(name="" if _BROKEN in name and file else name, file=file, line=at, message=message)


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
