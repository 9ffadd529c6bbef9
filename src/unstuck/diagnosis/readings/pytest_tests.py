"""Read pytest: its last line, its short summary, and the first error of each failure's own section."""

import re
from collections.abc import Sequence

from unstuck.diagnosis.readings.values import FailedTest, Reading, folded, numbers, summed

_LAST = re.compile(r"^=* ?((?:\d+ \w+(?: \w+)?(?:, )?)+|no tests ran) in [\d.]+ ?s\b")
_COUNT = re.compile(r"(?P<count>\d+) (?P<word>passed|failed|errors?|skipped|xfailed|xpassed)\b")
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
_LIBRARY = re.compile(r"site-packages|/lib/python\d|^<")
_PROGRESS = re.compile(r"^(?:\S+\.py )?([.FEsxXRu]+) +\[ *\d+%\]$")


def pytest(lines: Sequence[str]) -> Reading | None:
    """Read pytest, quiet or not."""
    last = [found[1] for line in lines if (found := _LAST.match(line))]
    red = {(found[1], found[2]): found[3] or "" for line in lines if (found := _RED.match(line))}
    sections = _sections(lines)
    if not last and not sections and not any("::" in name or name.endswith(".py") for _, name in red):
        return None
    failures = [_failed(kind, name, said, sections) for (kind, name), said in red.items()]
    if not red:
        failures = list(sections.values())
    counts = numbers(_COUNT, last)
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


def _failed(kind: str, name: str, said: str, sections: dict[str, FailedTest]) -> FailedTest:
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
    own = [each for each in places if not _LIBRARY.search(each[1])]
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
