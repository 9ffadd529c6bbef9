"""Read the output of test runners by the table of their formats."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from unstuck.diagnosis.output.reading import FailedTest, Reading, first_own_place, folded_message, runner_reading
from unstuck.diagnosis.output.special_runners import go, pytest, tap
from unstuck.shipped import shipped_table

_SPECIAL_READERS: Mapping[str, Callable[[Sequence[str]], Reading | None]] = {"tap": tap, "pytest": pytest, "go": go}
"""Readers of outputs that need more than a row of the table."""

_compiled = cache(re.compile)


class FailureForm(NamedTuple):
    """One form in which a test runner prints a failing test.

    All patterns are regular expressions. A failing test without a name is a file that could not be loaded.
    """

    line: str
    """Begins a failing test; its groups are any of name, class, file, at, said (name2 … for other forms)."""
    line_above: str | None = None
    """Must match the line above."""
    starts_after: str | None = None
    """The failing tests stand below the last line of this form."""
    ends_before: str | None = None
    """The failing tests stand above the first line of this form."""
    listed_name: str | None = None
    """Lists the names, where they stand elsewhere than the messages."""
    includes_unlisted: bool = False
    """Failing tests that are not listed count, too."""
    only_if_none_yet: bool = False
    """Used only where the forms before it matched nothing."""
    is_repeated: bool = False
    """Prints each failing test more than once."""
    name_goes_on_after: str = ""
    """End of a line of the name after which the name goes on in the next line."""
    is_further_in: str | None = None
    """Must match the next line of such a name."""
    unloaded_file: str | None = None
    """A name of this form stands for a file that could not be loaded."""
    heading: str | None = None
    """A line above with any of the groups file, at, about, section."""
    has_block_above: bool = False
    """The message stands between the heading and the line, and not below the line."""
    sections: Sequence[str] = ()
    """Counts only below a heading with one of these sections."""
    block_end: str | None = None
    """Ends what belongs to the failing test."""
    message_begin: str | None = None
    message_end: str | None = None
    not_message: str | None = None
    """Lines between that are not part of the message."""
    most_message_lines: int | None = None
    stripped: str = ""
    """Characters to strip from the lines of the block."""
    place: str | None = None
    """Where the test failed; without a form, the first own line of the stack."""
    foreign_place: str | None = None
    """Lines with a place that is not the project's own."""
    uses_last_place: bool = False
    has_place_anywhere: bool = False
    """The place may stand in any line of the output."""
    message_elsewhere: str | None = None
    """The message of a file that could not be loaded, in any line of the output; {file} is its name."""
    parent: str | None = None
    """A block of this form repeats what its children report."""


class RunnerOutput(NamedTuple):
    """The output format of one test runner.

    The groups of `counts` and `added_counts` are total (with what was skipped), ran, passed, failed, errors, outside
    (errors outside of tests), skipped, empty and ticked. A group that is not a number counts as 1. `count` with `word`,
    and the matches of `each_count` within the group `rest`, are named by `count_names`.
    """

    tool: str
    marks: Sequence[str]
    """One of these texts is in every output of the runner."""
    needs: str | None = None
    """A line of this form must be there."""
    unless: str | None = None
    """No line of this form may be there."""
    counts: Sequence[str] = ()
    """Forms of the counts; the first that matches any line is used."""
    count_names: Mapping[str, str] = MappingProxyType({})
    each_count: str = r"(?P<count>\d+) (?P<word>\w+)"
    added_counts: str | None = None
    """Lines whose counts are added to the others."""
    uses_last_count: bool = False
    needs_counts: bool = False
    """Without counts the output is not the runner's."""
    counts_names: bool = False
    """The number of failing tests is the number of their names."""
    has_subtests: bool = False
    """Parts of one test are reported one by one."""
    no_tests: str | None = None
    """The runner says that there are no tests."""
    failure_forms: Sequence[FailureForm] = ()


@cache
def runner_outputs() -> tuple[RunnerOutput, ...]:
    return tuple(map(_runner_output, shipped_table("runners")["runner"]))


def _runner_output(row: Mapping[str, Any]) -> RunnerOutput:
    forms = tuple(FailureForm(**form) for form in row.get("failure_forms", ()))
    return RunnerOutput(**{**row, "failure_forms": forms})


def read_runner(runner: RunnerOutput, lines: Sequence[str]) -> Reading | None:
    """Return what one runner reports, or None if the output is not its own."""
    if runner.tool in _SPECIAL_READERS:
        return _SPECIAL_READERS[runner.tool](lines)
    if (runner.needs and not _matches_any(runner.needs, lines)) or (
        runner.unless and _matches_any(runner.unless, lines)
    ):
        return None
    counts = _counts(runner, lines)
    failures: list[FailedTest] = []
    for form in runner.failure_forms:
        if form.only_if_none_yet and failures:
            continue
        failures += [test for test in _failing_tests(form, lines) if not _is_listed(test, failures)]
    if counts or (failures and not runner.needs_counts):
        return _reading(runner, counts, failures)
    has_no_tests = runner.no_tests and _matches_any(runner.no_tests, lines)
    return runner_reading(runner.tool, ran=0) if has_no_tests else None


def _matches_any(pattern: str, lines: Sequence[str]) -> bool:
    return any(map(_compiled(pattern).search, lines))


def _is_listed(test: FailedTest, failures: Sequence[FailedTest]) -> bool:
    return bool(test.name) and any(failure.name.endswith(test.name) for failure in failures)


# --- counts -----------------------------------------------------------------------------------------------


def _counts(runner: RunnerOutput, lines: Sequence[str]) -> Counter[str]:
    """Return the counts by their names, without those that the runner does not print."""
    counts: Counter[str] = Counter()
    for match in _count_lines(runner, lines):
        groups = match.groupdict()
        if groups.get("word"):
            groups = {groups["word"]: groups["count"], **groups, "word": None, "count": None}
        rest = groups.pop("rest", None) or ""
        for part in _compiled(runner.each_count).finditer(rest):
            if part["word"] in runner.count_names:
                counts[runner.count_names[part["word"]]] += int(part["count"])
        for name, number in groups.items():
            if number and name != "count":
                counts[runner.count_names.get(name, name)] += int(number) if number.isdigit() else 1
    return counts


def _count_lines(runner: RunnerOutput, lines: Sequence[str]) -> list[re.Match[str]]:
    for pattern in runner.counts:
        matches = _matches(pattern, lines)
        if matches:
            added = _matches(runner.added_counts, lines) if runner.added_counts else []
            return [*(matches[-1:] if runner.uses_last_count else matches), *added]
    return []


def _matches(pattern: str, lines: Sequence[str]) -> list[re.Match[str]]:
    return [match for match in map(_compiled(pattern).search, lines) if match]


def _reading(runner: RunnerOutput, counts: Counter[str], failures: Sequence[FailedTest]) -> Reading:
    """Return the reading, with numbers that the runner does not print calculated from the others."""
    unloaded = sum(not test.name for test in failures)
    named, skipped = len(failures) - unloaded, counts["skipped"]
    if "red" in counts:
        failed = counts["red"] - unloaded
    else:
        failed = counts.get("failed", 0 if counts.keys() - {"ticked"} else named)
    if runner.counts_names:
        failed = named or failed
    errors = counts["errors"] if "errors" in counts else max(unloaded, counts["outside"])
    ran, passed = None, max(counts["passed"], counts["ticked"])
    if "total" in counts or "ran" in counts:
        ran = counts["ran"] or counts["total"] - skipped - counts["empty"]
        red = failed + counts["errors"]
        if runner.has_subtests and len(failures) >= red:
            tests = {test.name.partition(")")[0] or test.file for test in failures}
            red = len(tests) or red
        passed = passed or max(0, ran - red)
    elif counts:
        ran = passed + failed
    return runner_reading(runner.tool, failures, ran=ran, passed=passed, failed=failed, errors=errors, skipped=skipped)


# --- failing tests ----------------------------------------------------------------------------------------


def _failing_tests(form: FailureForm, lines: Sequence[str]) -> list[FailedTest]:
    """Return the failing tests of one form in the order of their lines, or of their listed names."""
    first, last = _bounds(form, lines)
    if form.listed_name:
        tests = _listed_tests(form, form.listed_name, lines, first, last)
    else:
        tests = list(_tests_with_blocks(form, lines, first, last))
    if not form.is_repeated:
        return tests
    last_of_each = {(test.file, test.name): test for test in reversed(tests)}
    return list(last_of_each.values())[::-1]


def _listed_tests(form: FailureForm, pattern: str, lines: Sequence[str], first: int, last: int) -> list[FailedTest]:
    """Return the tests whose names are listed, each with the message that stands elsewhere."""
    blocks = {test.name: test for test in reversed(list(_tests_with_blocks(form, lines, 0, len(lines))))}
    matches = _matches(pattern, lines[first:last])
    if form.is_repeated:
        matches = list({match["name"]: match for match in matches}.values())
    tests = []
    for match in matches:
        test = blocks.pop(match["name"], FailedTest(name=match["name"]))
        tests.append(test if test.message else replace(test, message=match.groupdict().get("said") or ""))
    return [*tests, *reversed(blocks.values())] if form.includes_unlisted else tests


def _bounds(form: FailureForm, lines: Sequence[str]) -> tuple[int, int]:
    """Return the first line of the failing tests and the line behind the last."""
    first, last = 0, len(lines)
    if form.starts_after:
        starts = [number + 1 for number, line in enumerate(lines) if _compiled(form.starts_after).search(line)]
        first = max(starts, default=last)
    if form.ends_before:
        ends = _compiled(form.ends_before)
        last = next((number for number in range(first, last) if ends.search(lines[number])), last)
    return first, last


def _tests_with_blocks(form: FailureForm, lines: Sequence[str], first: int, last: int) -> Iterator[FailedTest]:
    """Yield the failing tests that begin with a line of their own, each with the block below or above it."""
    begins, heading = _compiled(form.line), _compiled(form.heading or r"(?!)")
    above: dict[str, str | None] = {}
    above_at = number = first
    while number < last:
        line, number = lines[number], number + 1
        match = begins.search(line)
        if match is None or not _is_below(form, lines, number - 1):
            if head := heading.search(line):
                above, above_at = head.groupdict(), number
            continue
        if form.sections and above.get("section") not in form.sections:
            continue
        start = number
        number = _name_end(form, lines, start, last)
        groups = {name.rstrip("2"): text for name, text in match.groupdict().items() if text is not None}
        groups["name"] = _name(groups, above, lines[start:number], form)
        block = lines[above_at : start - 1] if form.has_block_above else _until(lines[number:], form.block_end)
        if not form.parent or not any(map(_compiled(form.parent).search, block[:2])):
            yield _failed_test(form, groups, above, block, lines)
        if form.has_block_above:
            above, above_at = {}, start


def _is_below(form: FailureForm, lines: Sequence[str], number: int) -> bool:
    """Return whether the line above has the form that it must have."""
    if not form.line_above:
        return True
    return number > 0 and _compiled(form.line_above).search(lines[number - 1]) is not None


def _name_end(form: FailureForm, lines: Sequence[str], number: int, last: int) -> int:
    """Return the number of the first line that is no longer part of the name."""
    if not form.name_goes_on_after:
        return number
    further_in = _compiled(form.is_further_in or "")
    while number < last and lines[number].strip():
        # A title may end like the whole name, and then goes on further in.
        if lines[number - 1].endswith(form.name_goes_on_after) and not further_in.search(lines[number]):
            break
        number += 1
    return number


def _name(groups: Mapping[str, str], above: Mapping[str, str | None], more: Sequence[str], form: FailureForm) -> str:
    name = " ".join([groups.get("name", ""), *(line.strip() for line in more)])
    name = name.removesuffix(form.name_goes_on_after or "\n")
    name = f"{groups['class']}.{name}" if "class" in groups else name
    return f"{above['about']} {name}" if above.get("about") else name


def _failed_test(
    form: FailureForm,
    groups: Mapping[str, str],
    above: Mapping[str, str | None],
    block: Sequence[str],
    lines: Sequence[str],
) -> FailedTest:
    name, file = groups["name"], groups.get("file") or above.get("file") or ""
    at = groups.get("at") or above.get("at")
    if form.stripped:
        block = [line.strip(form.stripped) for line in block]
    place_file, place_line, place_message = _place(form, lines if form.has_place_anywhere else block, file)
    message = place_message or groups.get("said") or _message(form, block)
    is_file = bool(file and name) and name.endswith(file)
    if (is_file or (form.unloaded_file and re.search(form.unloaded_file, name))) and (file or place_file):
        name = ""
    if not name and form.message_elsewhere:
        message = _message_elsewhere(form.message_elsewhere, file, lines)
    line = int(at) if at else None
    if place_line is not None and (not file or place_file.endswith(file)):
        line = place_line
    return FailedTest(name=name, file=file or place_file, line=line, message=folded_message([message]))


def _message_elsewhere(pattern: str, file: str, lines: Sequence[str]) -> str:
    form = _compiled(pattern.replace("{file}", re.escape(file)))
    return next((folded_message([line.lstrip("# ")]) for line in lines if form.search(line)), "")


def _place(form: FailureForm, block: Sequence[str], file: str) -> tuple[str, int | None, str]:
    """Return the file and the line where a test failed, and the message in that line."""
    if not form.place:
        stack = [line for line in block if form.has_place_anywhere or line.lstrip().startswith("at ")]
        return *first_own_place(stack), ""
    foreign, place = _compiled(form.foreign_place or r"(?!)"), _compiled(form.place)
    matches = [match for line in block if not foreign.search(line) and (match := place.search(line))]
    if form.is_repeated and file:
        matches = [match for match in matches if match["file"] == file]
    if not matches:
        return "", None, ""
    groups = matches[-1 if form.uses_last_place else 0].groupdict()
    at = groups["at"] or groups.get("at2")
    return groups["file"] or groups.get("file2") or "", int(at) if at else None, groups.get("said") or ""


def _message(form: FailureForm, block: Sequence[str]) -> str:
    """Return the message of a failing test."""
    begin, first_words = _compiled(form.message_begin or r"(?!)"), ""
    for number, line in reversed(list(enumerate(block))):
        if match := begin.search(line):
            block, first_words = block[number + 1 :], (match.groupdict().get("said") or "").strip()
            break
    skipped = _compiled(form.not_message or r"(?!)")
    lines = [line for line in _until(block, form.message_end) if not skipped.search(line)]
    message_lines = [line.lstrip("# ") for line in lines[: form.most_message_lines] if line.strip()]
    return folded_message(message_lines) or first_words


def _until(lines: Sequence[str], end: str | None) -> Sequence[str]:
    """Return the lines up to the first that matches the end."""
    if not end:
        return lines
    stop = next((number for number, line in enumerate(lines) if _compiled(end).search(line)), len(lines))
    return lines[:stop]
