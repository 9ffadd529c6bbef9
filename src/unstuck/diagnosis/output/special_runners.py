"""Read the outputs of TAP, pytest and go, which need more than a row of the table."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from unstuck.diagnosis.output.reading import FailedTest, Reading, first_own_place, folded_message, runner_reading

_TAP_POINT = r"^( *)(not )?ok \d+(?: -)?(?: (.*?))?(?: # (?i:(skip|todo)|time=).*)?$"
_TAP_HEADER = r"^TAP version \d|^\d+\.\.\d+"
_TAP_SUMMARY = r"^# (?P<word>pass|fail|cancelled) +(?P<count>\d+)$"
_TAP_SUITE = r"^\s+(?:type: 'suite'|failureType: 'subtestsFailed')$"
_TAP_MESSAGE = r"^\s+(?:error|message): *(.*)$"
_TAP_PLACE = r"^\s+(?:location|at): "
_TAP_KEY = r"^\s+(?:\w+|'[^']*'): ?"
_TAP_COMPARED = r"^\s+(?:operator|expected|actual): +\S"
_TAP_STACK = r"^\s+at |^\s+\w+Error \[|^\s+message: ''|^\s+at: "
_TAP_DETAIL = r"^\s+(?:name|assertion|details|duration_ms|code|stack):"
_FILE_AND_NAME = r"^(\S+\.\w+) > (.+)$"


def tap(lines: Sequence[str]) -> Reading | None:
    """Return the test points. A point of a whole suite is not a test."""
    if any(line.startswith("Files=") for line in lines):
        return None
    points = [(number, point) for number, line in enumerate(lines) if (point := re.match(_TAP_POINT, line))]
    counts = numbers(_TAP_SUMMARY, lines)
    if not (points or counts) or not any(re.match(_TAP_HEADER, line.strip()) for line in lines):
        return None
    failures: list[FailedTest] = []
    passed = skipped = undone = 0
    for (number, point), following in zip(points, [*(at for at, _ in points[1:]), len(lines)], strict=False):
        block = lines[number + 1 : following]
        if any(re.match(_TAP_SUITE, line) for line in _yaml(block)):
            continue
        if point[4]:
            skipped += 1
            undone += bool(point[2])
        elif point[2]:
            failed = _tap_failure(point[3] or "", block)
            failures.append(failed if failed.name else replace(failed, message=uncaught(lines)))
        else:
            passed += 1
    unloaded = sum(not failure.name for failure in failures)
    red = max(len(failures), counts.get("fail", 0) + counts.get("cancelled", 0) - undone) - unloaded
    passed = max(passed, counts.get("pass", 0))
    return runner_reading(
        "tap", failures, ran=passed + red, passed=passed, failed=red, errors=unloaded, skipped=skipped
    )


def _yaml(block: Sequence[str]) -> Iterator[str]:
    """Yield the lines that belong to the point before them."""
    for line in block:
        if line.strip() and not line.startswith(" "):
            return
        yield line
        if line.strip() == "...":
            return


def _tap_failure(name: str, block: Sequence[str]) -> FailedTest:
    lines = list(_yaml(block))
    file, at = first_own_place(line for line in lines if re.match(_TAP_PLACE, line))
    if not file:
        file, at = first_own_place(line for line in lines if line.lstrip().startswith("at ") or "(" in line)
    message = _tap_message(lines)
    if first := re.match(_FILE_AND_NAME, name):
        return FailedTest(name=first[2], file=first[1], line=at if file.endswith(first[1]) else None, message=message)
    return FailedTest(name="" if file and name == file else name, file=file, line=at, message=message)


def _tap_message(lines: Sequence[str]) -> str:
    """Return the message of a test point: its own key, else the compared values, else the first lines."""
    for number, line in enumerate(lines):
        match = re.match(_TAP_MESSAGE, line)
        text = match[1] if match else ""
        if text.strip("'\" ") and text[0] in "|>":
            block = takewhile(lambda line: not re.search(_TAP_KEY, line), lines[number + 1 :])
            message = folded_message(block)
        else:
            message = folded_message([text.strip("'\"")]) if text.strip("'\" ") else ""
        if message:
            return message
    compared = folded_message(line for line in lines if re.match(_TAP_COMPARED, line))
    if compared:
        return compared
    first_lines = takewhile(lambda line: not re.search(_TAP_STACK, line), lines)
    return folded_message(line for line in first_lines if line.strip(" -.") and not re.match(_TAP_DETAIL, line))


_PYTEST_SUMMARY = r"^=* ?((?:\d+ \w+(?: \w+)?(?:, )?)+|no tests ran) in [\d.]+ ?s\b"
_PYTEST_COUNT = r"(?P<count>\d+) (?P<word>passed|failed|errors?|skipped|xfailed|xpassed)\b"
_PYTEST_RED = (
    r"^(FAILED|ERROR|SUBFAILED(?:[\[(].*?[\])])*) "
    r"([^\s:]+(?:::[^\s\[]+(?:\[.*?\](?= - |$))?)*)(?: - (.*))?$"
)
_PYTEST_TITLE = r"^_{3,} (?:ERROR (?:at (?:setup|teardown) of|collecting) )?(\S.*?) _{3,}$"
_PYTEST_RULER = r"^={3,} .* ={3,}$|^={3,} (?:FAILURES|ERRORS)"
_PYTEST_ERROR = r"^E {3,}(\S.*)$"
_PYTEST_LONG_PLACE = r"^(\S+):(\d+): \S"
_PYTEST_NATIVE_PLACE = r"^ {2}File \"([^\"]+)\", line (\d+), in "
_PYTEST_SYNTAX_PLACE = r"^E +File \"([^\"]+)\", line (\d+)"
_PYTEST_LIBRARY = r"site-packages|/lib/python\d|^<"
_PYTEST_PROGRESS = r"^(?:\S+\.py )?([.FEsxXRu]+) +\[ *\d+%\]$"


def pytest(lines: Sequence[str]) -> Reading | None:
    """Return the report of pytest, quiet or not."""
    summaries = [match[1] for line in lines if (match := re.match(_PYTEST_SUMMARY, line))]
    red_lines = [match for line in lines if (match := re.match(_PYTEST_RED, line))]
    red = {(match[1], match[2]): match[3] or "" for match in red_lines}
    sections = _sections(lines)
    if not summaries and not sections and not any("::" in name or name.endswith(".py") for _, name in red):
        return None
    failures = [_pytest_failure(kind, name, summary, sections) for (kind, name), summary in red.items()]
    failures = failures if red else list(sections.values())
    counts = numbers(_PYTEST_COUNT, summaries)
    failed, errors = counts.get("failed", 0), counts.get("error", 0) + counts.get("errors", 0)
    passed = counts.get("passed", 0)
    skipped = sum(counts.get(word, 0) for word in ("skipped", "xfailed", "xpassed"))
    if not summaries:
        progress = "".join(match[1] for line in lines if (match := re.match(_PYTEST_PROGRESS, line)))
        passed, skipped = progress.count("."), sum(map(progress.count, "sxX"))
        errors = sum(kind == "ERROR" for kind, _ in red)
        failed = len(failures) - errors
    else:  # pytest counts subtests as failed, and may count their test as passed
        parts = [match[2] for match in red_lines if match[1].startswith("SUBFAILED")]
        undone = {*parts} - {name for kind, name in red if kind == "FAILED"}
        passed, failed = max(0, passed - len(undone)), max(len(undone), failed - len(parts) + len(undone))
    unloaded = sum(not failure.name for failure in failures)
    ran = passed + failed + errors - unloaded if summaries or passed else None
    return runner_reading("pytest", failures, ran=ran, passed=passed, failed=failed, errors=errors, skipped=skipped)


def _pytest_failure(kind: str, name: str, summary: str, sections: dict[str, FailedTest]) -> FailedTest:
    file, _, case = name.partition("::")
    section = sections.get(case.replace("::", ".") or file)
    message = section.message if section and section.message else folded_message([summary])
    test = f"{case} {kind.removeprefix('SUBFAILED')}".rstrip() if kind.startswith("SUBFAILED") else case
    return FailedTest(name=test, file=file, line=section.line if section else None, message=message)


def _sections(lines: Sequence[str]) -> dict[str, FailedTest]:
    """Return the failing test below each title. Without a file, a title is the name of a test alone."""
    sections: dict[str, FailedTest] = {}
    title, block = "", list[str]()
    for line in [*lines, "=== end ==="]:
        heading = re.match(_PYTEST_TITLE, line)
        if heading is None and not re.match(_PYTEST_RULER, line):
            block.append(line)
            continue
        if title:
            sections.setdefault(title, _section(title, block))
        title, block = (heading[1] if heading else ""), []
    return {title: test for title, test in sections.items() if test.message or test.file}


def _section(title: str, block: Sequence[str]) -> FailedTest:
    errors = [match[1] for line in block if (match := re.match(_PYTEST_ERROR, line))]
    exceptions = (line for line in reversed(block) if re.match(r"^[\w.]+(?:Error|Exception)\b", line))
    message = _pytest_message(errors) or next(exceptions, "")
    places = [place for place in map(_pytest_place, block) if place]
    own_places = [place for place in places if not re.search(_PYTEST_LIBRARY, place[1])]
    place = own_places[-1] if own_places else None
    is_unloaded = title.endswith(".py")
    file = title if is_unloaded else place[1] if place else ""
    line = int(place[2]) if place and place[1].endswith(file) else None
    return FailedTest(name="" if is_unloaded else title, file=file, line=line, message=folded_message([message]))


def _pytest_place(line: str) -> re.Match[str] | None:
    return (
        re.match(_PYTEST_LONG_PLACE, line)
        or re.match(_PYTEST_NATIVE_PLACE, line)
        or re.match(_PYTEST_SYNTAX_PLACE, line)
    )


def _pytest_message(errors: Sequence[str]) -> str:
    """Return the first error, or the message below it if it quotes a line of a file."""
    if errors and errors[0].startswith("File "):
        return next((line for line in errors if re.match(r"\w+Error: ", line)), errors[0])
    if len(errors) > 1 and errors[0].startswith("AssertionError: ") and errors[1].startswith("assert "):
        return f"{errors[0]}: {errors[1]}"
    return errors[0] if errors else ""


_GO_CASE = r"^ *--- (FAIL|PASS|SKIP): (\S+)"
_GO_CURRENT = r"^=== (?:RUN|CONT|NAME) +(\S+)"
_GO_MESSAGE = r"^ +(\S+\.go):(\d+): ?(.*)$"
_GO_PACKAGE = r"^(?:ok  |FAIL|---) ?\t(\S+)(?:\t| \[|$)(?!.*\[no tests to run\])"
_GO_BROKEN = r"^FAIL\t(\S+) \[(?:build|setup) failed\]"
_GO_NONE = r"^(?:\?|ok) +\t.*\[no test(?:s to run| files)\]"
_GO_PANIC = r"^panic: (.*)"
_GO_STACK = r"^\t(\S+_test\.go):(\d+) "
_TESTIFY_ERROR = r"^\s+Error: +\t?(\S.*)$"


def go(lines: Sequence[str]) -> Reading | None:
    """Return the report of go test. A test that fails by its subtests is not a failure of its own."""
    lines = _unpacked(lines) or lines
    cases = [(match[1], match[2]) for line in lines if (match := re.match(_GO_CASE, line))]
    packages = [match[1] for line in lines if (match := re.match(_GO_PACKAGE, line))]
    broken = [match[1] for line in lines if (match := re.match(_GO_BROKEN, line))]
    if not cases and not packages:
        return runner_reading("go", ran=0) if any(re.match(_GO_NONE, line) for line in lines) else None
    parents = {name.rpartition("/")[0] for _, name in cases}
    leaves = [(verdict, name) for verdict, name in cases if name not in parents]
    messages = _go_messages(lines)
    failures = []
    for name in (name for verdict, name in leaves if verdict == "FAIL"):
        file, line, message = messages.get(name, ("", None, ""))
        failures.append(FailedTest(name=name, file=file, line=line, message=message))
    failures += [FailedTest(name="", file=package, message="build failed") for package in broken]
    passed, skipped = (sum(verdict == word for verdict, _ in leaves) for word in ("PASS", "SKIP"))
    is_verbose = any(verdict != "FAIL" for verdict, _ in cases)
    ran = passed + len(failures) - len(broken) if is_verbose else None
    reading = runner_reading("go", failures, ran=ran, passed=passed, skipped=skipped)
    return replace(reading, measures={"packages": len(set(packages) - set(broken))})


def _unpacked(lines: Sequence[str]) -> list[str]:
    """Return the output in the events of `go test -json`, package by package."""
    outputs: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith("{") and '"Action":"output"' in line:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            outputs.setdefault(str(event.get("Package")), []).append(str(event.get("Output", "")))
    return [line for texts in outputs.values() for line in "".join(texts).split("\n")]


def _go_messages(lines: Sequence[str]) -> dict[str, tuple[str, int | None, str]]:
    """Return the file, line and text of the first message of each test."""
    messages: dict[str, tuple[str, int | None, str]] = {}
    current = ""
    for number, line in enumerate(lines):
        if now := re.match(_GO_CURRENT, line):
            current = now[1]
        elif case := re.match(_GO_CASE, line):
            current = case[2]
        elif (says := re.match(_GO_MESSAGE, line)) and current not in messages:
            text = says[3] or _testify_error(lines[number + 1 : number + 6])
            messages[current] = (says[1], int(says[2]), folded_message([text]))
        elif (panic := re.match(_GO_PANIC, line)) and current not in messages:
            stack = (match for part in lines[number:] if (match := re.match(_GO_STACK, part)))
            place = next(stack, None)
            file, at = (place[1], int(place[2])) if place else ("", None)
            messages[current] = (file, at, folded_message([panic[0]]))
    return messages


def _testify_error(lines: Sequence[str]) -> str:
    return next((match[1] for line in lines if (match := re.match(_TESTIFY_ERROR, line))), "")


_NODE_EXCEPTION = r"^(?:# | {2})?\w*Error(?: \[\w+\])?: \S"


def uncaught(lines: Sequence[str]) -> str:
    """Return the exception that ended a process of Node, for a file that could not be loaded."""
    return next((folded_message([line.lstrip("# ")]) for line in lines if re.match(_NODE_EXCEPTION, line)), "")


def numbers(pattern: str, lines: Sequence[str]) -> dict[str, int]:
    """Return the sum of `count` by `word` over all matches."""
    sums: dict[str, int] = {}
    for line in lines:
        for match in re.finditer(pattern, line):
            sums[match["word"]] = sums.get(match["word"], 0) + int(match["count"])
    return sums
