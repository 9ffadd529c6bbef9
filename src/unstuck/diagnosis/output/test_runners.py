"""Read what test runners say: one reader over the table `catalog/runners.toml`, a row for each."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from unstuck.diagnosis.output.tool_output import FailedTest, Reading, folded, place, summed

Row = Mapping[str, Any]
Place = tuple[str, int | None]
EACH = r"(?P<count>\d+) (?P<word>\w+)"

form = cache(re.compile)


def read_run(row: Row, lines: Sequence[str]) -> Reading | None:
    """Return what one runner says, or None if it does not speak here."""
    if row.get("own"):
        own: Callable[[Sequence[str]], Reading | None] = getattr(
            import_module("unstuck.diagnosis.output.special_runners"), row["tool"]
        )
        return own(lines)
    if ("needs" in row and not _any(row["needs"], lines)) or ("unless" in row and _any(row["unless"], lines)):
        return None
    counts = _counts(row, lines)
    failures: list[FailedTest] = []
    for case in row["case"]:
        if not (case.get("otherwise") and failures):
            failures += [
                one for one in _cases(case, lines)
                if not (one.name and any(known.name.endswith(one.name) for known in failures))
            ]  # fmt: skip
    if not counts and (row.get("counted") or not failures):
        return summed(row["tool"], ran=0) if "none" in row and _any(row["none"], lines) else None
    return _reckoned(row, counts, failures)


def _any(pattern: str, lines: Sequence[str]) -> bool:
    return any(map(form(pattern).search, lines))


# --- counts -----------------------------------------------------------------------------------------------


def _counts(row: Row, lines: Sequence[str]) -> Counter[str]:
    """Return the sums by their names; those that the runner does not print are not there."""
    found = next(filter(None, ([*filter(None, map(form(one).search, lines))] for one in row["counts"])), [])
    also = [*filter(None, map(form(row["also"]).search, lines))] if found and "also" in row else []
    counts: Counter[str] = Counter()
    words = row.get("words", {})
    for sums in (*(found[-1:] if row.get("last") else found), *also):
        groups = sums.groupdict()
        if groups.get("word"):
            groups = {groups["word"]: groups["count"], **groups, "word": None, "count": None}
        for name, number in groups.items():
            if name == "rest":
                for one in form(row.get("each", EACH)).finditer(number or ""):
                    if one["word"] in words:
                        counts[words[one["word"]]] += int(one["count"])
            elif number and name != "count":
                counts[words.get(name, name)] += int(number) if number.isdigit() else 1
    return counts


def _reckoned(row: Row, counts: Counter[str], failures: Sequence[FailedTest]) -> Reading:
    """Reckon what is not printed from what is: what ran, what passed of it, and what failed."""
    unloaded = sum(not one.name for one in failures)
    named, skipped = len(failures) - unloaded, counts["skipped"]
    failed = (
        counts["red"] - unloaded
        if "red" in counts
        else counts.get("failed", 0 if counts.keys() - {"ticked"} else named)
    )
    failed = named or failed if row.get("named") else failed
    errors = counts["errors"] if "errors" in counts else max(unloaded, counts["outside"])
    ran, passed = None, max(counts["passed"], counts["ticked"])
    if "total" in counts or "ran" in counts:
        ran = counts["ran"] or counts["total"] - skipped - counts["empty"]
        bad = failed + counts["errors"]
        if row.get("subtests") and len(failures) >= bad:  # all are there: the parts of one test are one
            bad = len({one.name.partition(")")[0] or one.file for one in failures}) or bad
        passed = passed or max(0, ran - bad)
    elif counts:
        ran = passed + failed
    return summed(
        row["tool"], failures, ran=ran, passed=passed, failed=failed, errors=errors, skipped=skipped
    )  # fmt: skip


# --- failing tests ----------------------------------------------------------------------------------------


def _cases(case: Row, lines: Sequence[str]) -> list[FailedTest]:
    """Return the failing tests of one form, in the order in which they, or their names, stand there."""
    first, last = _bounds(case, lines)
    if "listed" not in case:
        found = list(_blocks(case, lines, first, last))
    else:
        blocks = {one.name: one for one in reversed(list(_blocks(case, lines, 0, len(lines))))}
        names = list(filter(None, map(form(case["listed"]).search, lines[first:last])))
        found = []
        for name in {one["name"]: one for one in names}.values() if case.get("once") else names:
            known = blocks.pop(name["name"], FailedTest(name=name["name"]))
            found.append(known if known.message else replace(known, message=name.groupdict().get("said") or ""))
        found += reversed(blocks.values()) if case.get("unlisted") else []
    return list({(one.file, one.name): one for one in reversed(found)}.values())[::-1] if case.get("once") else found


def _bounds(case: Row, lines: Sequence[str]) -> tuple[int, int]:
    first, last = 0, len(lines)
    if "after" in case:
        first = max((number + 1 for number, line in enumerate(lines) if form(case["after"]).search(line)), default=last)
    if "before" in case:
        first_after = (at for at, line in enumerate(lines) if at >= first and form(case["before"]).search(line))
        last = next(first_after, last)
    return first, last


def _blocks(case: Row, lines: Sequence[str], first: int, last: int) -> Iterator[FailedTest]:
    """Yield the failing tests that begin with a line of their own, each with what stands below it, or above."""
    begins, heading = form(case["line"]), form(case.get("heading", r"(?!)"))
    above: dict[str, str | None] = {}
    above_at = number = first
    while number < last:
        line, number = lines[number], number + 1
        found = begins.search(line)
        if found is None or ("below" in case and not (number > 1 and form(case["below"]).search(lines[number - 2]))):
            if head := heading.search(line):
                above, above_at = head.groupdict(), number
            continue
        if "within" in case and above.get("section") not in case["within"]:
            continue
        start = number
        if "joined" in case:
            while (
                number < last and lines[number].strip()
            ):  # a title may end like the whole name, and then goes on further in
                if lines[number - 1].endswith(case["joined"]) and not form(case["further"]).search(lines[number]):
                    break
                number += 1
        groups = {name.rstrip("2"): text for name, text in found.groupdict().items() if text is not None}
        groups["name"] = _name(groups, above, lines[start:number], case)
        block = lines[above_at : start - 1] if case.get("above") else _until(lines[number:], case.get("end"))
        if "parent" not in case or not any(map(form(case["parent"]).search, block[:2])):
            yield _failed(case, groups, above, block, lines)
        if case.get("above"):
            above, above_at = {}, start


def _name(groups: Mapping[str, str], above: Mapping[str, str | None], more: Sequence[str], case: Row) -> str:
    name = " ".join([groups.get("name", ""), *(line.strip() for line in more)]).removesuffix(case.get("joined", "\n"))
    name = f"{groups['class']}.{name}" if "class" in groups else name
    return f"{above['about']} {name}" if above.get("about") else name


def _failed(
    case: Row, groups: Mapping[str, str], above: Mapping[str, str | None], block: Sequence[str], lines: Sequence[str]
) -> FailedTest:
    name, file = groups["name"], groups.get("file") or above.get("file") or ""
    at = groups.get("at") or above.get("at")
    if case.get("strip"):
        block = [line.strip(case["strip"]) for line in block]
    where, there, told = _place(case, block if "anywhere" not in case else lines, file)
    said = told or groups.get("said") or _message(case, block)
    if (file and name and (name == file or name.endswith(file))) or ("file" in case and re.search(case["file"], name)):
        name = name if not (file or where) else ""
    if not name and "elsewhere" in case:
        sought = form(case["elsewhere"].replace("{file}", re.escape(file)))
        said = next((folded([line.lstrip("# ")]) for line in lines if sought.search(line)), "")
    line = there if there is not None and (not file or where.endswith(file)) else int(at) if at else None
    return FailedTest(name=name, file=file or where, line=line, message=folded([said]))


def _place(case: Row, block: Sequence[str], file: str) -> tuple[str, int | None, str]:
    """Return where a test failed, and what is said there; without a form, the first own line of its stack."""
    if "place" not in case:
        return *place(line for line in block if "anywhere" in case or line.lstrip().startswith("at ")), ""
    foreign = form(case.get("foreign", r"(?!)"))
    found = [one for line in block if not foreign.search(line) and (one := form(case["place"]).search(line))]
    own = [one for one in found if one["file"] == file] if case.get("once") and file else found
    if not own:
        return "", None, ""
    groups = own[-1 if case.get("lastly") else 0].groupdict()
    at = groups["at"] or groups.get("at2")
    return groups["file"] or groups.get("file2") or "", int(at) if at else None, groups.get("said") or ""


def _message(case: Row, block: Sequence[str]) -> str:
    """Return what is said of a failing test."""
    begin, said = form(case.get("begin", r"(?!)")), ""
    for number, line in reversed(list(enumerate(block))):
        if found := begin.search(line):
            block, said = block[number + 1 :], (found.groupdict().get("said") or "").strip()
            break
    skip = form(case.get("skip", r"(?!)"))
    told = [line for line in _until(block, case.get("stop")) if not skip.search(line)][: case.get("most")]
    return folded(line.lstrip("# ") for line in told if line.strip()) or said


def _until(lines: Sequence[str], end: str | None) -> Sequence[str]:
    """Return the lines up to the first that begins something else."""
    stop = next((number for number, line in enumerate(lines) if form(end).search(line)), len(lines)) if end else 0
    return lines[:stop] if end else lines
