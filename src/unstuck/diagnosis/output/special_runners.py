"""Read the Test Anything Protocol, pytest and go, which need more than a row of the table."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from unstuck.diagnosis.output.tool_output import FailedTest, Reading, folded, place, summed

_POINT = re.compile(r"^( *)(not )?ok \d+(?: -)?(?: (.*?))?(?: # (?i:(skip|todo)|time=).*)?$")
_VERSION = re.compile(r"^TAP version \d|^\d+\.\.\d+")
_TAP_SUMMARY = re.compile(r"^# (?P<word>pass|fail|cancelled) +(?P<count>\d+)$")
_SUITE = re.compile(r"^\s+(?:type: 'suite'|failureType: 'subtestsFailed')$")
_SAID = re.compile(r"^\s+(?:error|message): *(.*)$")
_WHERE = re.compile(r"^\s+(?:location|at): ")
_KEY = re.compile(r"^\s+(?:\w+|'[^']*'): ?")
_WANTED = re.compile(r"^\s+(?:operator|expected|actual): +\S")
_TAP_STACK = re.compile(r"^\s+at |^\s+\w+Error \[|^\s+message: ''|^\s+at: ")
_ABOUT = re.compile(r"^\s+(?:name|assertion|details|duration_ms|code|stack):")
_FILE_FIRST = re.compile(r"^(\S+\.\w+) > (.+)$")


def tap(lines: Sequence[str]) -> Reading | None:
    """Read test points; a point that stands for a suite of others is not a test."""
    if any(line.startswith("Files=") for line in lines):
        return None
    points = [(number, found) for number, line in enumerate(lines) if (found := _POINT.match(line))]
    counts = numbers(_TAP_SUMMARY, lines)
    if not (points or counts) or not any(_VERSION.match(line.strip()) for line in lines):
        return None
    failures: list[FailedTest] = []
    passed = skipped = undone = 0
    for (number, found), following in zip(points, [*(at for at, _ in points[1:]), len(lines)], strict=False):
        block = lines[number + 1 : following]
        if any(_SUITE.match(line) for line in _yaml(block)):
            continue
        if found[4]:
            skipped += 1
            undone += bool(found[2])
        elif found[2]:
            failed = _tap_failed(found[3] or "", block)
            failures.append(failed if failed.name else replace(failed, message=uncaught(lines)))
        else:
            passed += 1
    unloaded = sum(not one.name for one in failures)
    red = max(len(failures), counts.get("fail", 0) + counts.get("cancelled", 0) - undone) - unloaded
    passed = max(passed, counts.get("pass", 0))
    return summed("tap", failures, ran=passed + red, passed=passed, failed=red, errors=unloaded, skipped=skipped)


def _yaml(block: Sequence[str]) -> Iterator[str]:
    """Yield the lines that belong to the point before them."""
    for line in block:
        if line.strip() and not line.startswith(" "):
            return
        yield line
        if line.strip() == "...":
            return


def _tap_failed(name: str, block: Sequence[str]) -> FailedTest:
    lines = list(_yaml(block))
    file, at = place(line for line in lines if _WHERE.match(line))
    if not file:
        file, at = place(line for line in lines if line.lstrip().startswith("at ") or "(" in line)
    said = ""
    for number, line in enumerate(lines):
        found = _SAID.match(line)
        if found and found[1].strip("'\" ") and not said:
            text = found[1]
            said = (
                folded(takewhile(lambda line: not _KEY.search(line), lines[number + 1 :]))
                if text[0] in "|>"
                else folded([text.strip("'\"")])
            )
    if not said:
        said = folded(line for line in lines if _WANTED.match(line))
    if not said:
        said = folded(
            line
            for line in takewhile(lambda line: not _TAP_STACK.search(line), lines)
            if line.strip(" -.") and not _ABOUT.match(line)
        )
    if first := _FILE_FIRST.match(name):
        return FailedTest(name=first[2], file=first[1], line=at if file.endswith(first[1]) else None, message=said)
    return FailedTest(name="" if file and name == file else name, file=file, line=at, message=said)


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
    else:  # parts of a test are counted with what failed, and not with what passed; their test may be said to have passed
        parts = [found[2] for line in lines if (found := _RED.match(line)) and found[1].startswith("SUBFAILED")]
        undone = {*parts} - {name for kind, name in red if kind == "FAILED"}
        passed, failed = max(0, passed - len(undone)), max(len(undone), failed - len(parts) + len(undone))
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
    message = _pytest_message(said) or next(
        (line for line in reversed(block) if re.match(r"^[\w.]+(?:Error|Exception)\b", line)), ""
    )
    places = [each for line in block if (each := _LONG.match(line) or _NATIVE.match(line) or _SYNTAX.match(line))]
    own = [each for each in places if not _PYTEST_LIBRARY.search(each[1])]
    at = own[-1] if own else None
    unloaded = title.endswith(".py")
    file = title if unloaded else at[1] if at else ""
    line = int(at[2]) if at and at[1].endswith(file) else None
    return FailedTest(name="" if unloaded else title, file=file, line=line, message=folded([message]))


def _pytest_message(said: Sequence[str]) -> str:
    """Return the first error; one that quotes a file's line says what is wrong with it below."""
    if said and said[0].startswith("File "):
        return next((line for line in said if re.match(r"\w+Error: ", line)), said[0])
    if len(said) > 1 and said[0].startswith("AssertionError: ") and said[1].startswith("assert "):
        return f"{said[0]}: {said[1]}"
    return said[0] if said else ""


_GO_CASE = re.compile(r"^ *--- (FAIL|PASS|SKIP): (\S+)")
_GO_NOW = re.compile(r"^=== (?:RUN|CONT|NAME) +(\S+)")
_GO_SAYS = re.compile(r"^ +(\S+\.go):(\d+): ?(.*)$")
_GO_PACKAGE = re.compile(r"^(?:ok  |FAIL|---) ?\t(\S+)(?:\t| \[|$)(?!.*\[no tests to run\])")
_GO_BROKEN = re.compile(r"^FAIL\t(\S+) \[(?:build|setup) failed\]")
_GO_NONE = re.compile(r"^(?:\?|ok) +\t.*\[no test(?:s to run| files)\]")
_GO_PANIC = re.compile(r"^panic: (.*)")
_GO_STACK = re.compile(r"^\t(\S+_test\.go):(\d+) ")
_TESTIFY = re.compile(r"^\s+Error: +\t?(\S.*)$")


def go(lines: Sequence[str]) -> Reading | None:
    """Read go test; a test that fails by its subtests is not a failure of its own."""
    lines = _unpacked(lines) or lines
    cases = [(found[1], found[2]) for line in lines if (found := _GO_CASE.match(line))]
    packages = [found[1] for line in lines if (found := _GO_PACKAGE.match(line))]
    broken = [found[1] for line in lines if (found := _GO_BROKEN.match(line))]
    if not cases and not packages:
        return summed("go", ran=0) if any(_GO_NONE.match(line) for line in lines) else None
    parents = {name.rpartition("/")[0] for _, name in cases}
    leaves = [(verdict, name) for verdict, name in cases if name not in parents]
    said = _go_messages(lines)
    failures = [
        FailedTest(name=name, file=file, line=at, message=message)
        for name in (name for verdict, name in leaves if verdict == "FAIL")
        for file, at, message in [said.get(name, ("", None, ""))]
    ]
    failures += [FailedTest(name="", file=package, message="build failed") for package in broken]
    passed, skipped = (sum(verdict == word for verdict, _ in leaves) for word in ("PASS", "SKIP"))
    told = any(verdict != "FAIL" for verdict, _ in cases)
    failed = len(failures) - len(broken)
    reading = summed("go", failures, ran=passed + failed if told else None, passed=passed, skipped=skipped)
    return replace(reading, measures={"packages": len(set(packages) - set(broken))})


def _unpacked(lines: Sequence[str]) -> list[str]:
    """Return what `go test -json` wraps, package by package."""
    said: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith("{") and '"Action":"output"' in line:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            said.setdefault(str(event.get("Package")), []).append(str(event.get("Output", "")))
    return [line for texts in said.values() for line in "".join(texts).split("\n")]


def _go_messages(lines: Sequence[str]) -> dict[str, tuple[str, int | None, str]]:
    """Return what was first said of each test: below its verdict, or while it ran."""
    found: dict[str, tuple[str, int | None, str]] = {}
    current = ""
    for number, line in enumerate(lines):
        if now := _GO_NOW.match(line):
            current = now[1]
        elif case := _GO_CASE.match(line):
            current = case[2]
        elif (says := _GO_SAYS.match(line)) and current not in found:
            text = says[3] or next(
                (each[1] for part in lines[number + 1 : number + 6] if (each := _TESTIFY.match(part))), ""
            )
            found[current] = (says[1], int(says[2]), folded([text]))
        elif (panic := _GO_PANIC.match(line)) and current not in found:
            at = next((each for part in lines[number:] if (each := _GO_STACK.match(part))), None)
            found[current] = (
                at[1] if at else "",
                int(at[2]) if at else None,
                folded([line if not panic[1] else panic[0]]),
            )
    return found


_EXCEPTION = re.compile(r"^(?:# | {2})?\w*Error(?: \[\w+\])?: \S")


def uncaught(lines: Sequence[str]) -> str:
    """Return the first exception that ended a process of Node, for a file that could not be loaded."""
    return next((folded([line.lstrip("# ")]) for line in lines if _EXCEPTION.match(line)), "")


def numbers(pattern: re.Pattern[str], lines: Sequence[str]) -> dict[str, int]:
    """Sum `count` by `word` over all matches."""
    sums: dict[str, int] = {}
    for line in lines:
        for found in pattern.finditer(line):
            sums[found["word"]] = sums.get(found["word"], 0) + int(found["count"])
    return sums
