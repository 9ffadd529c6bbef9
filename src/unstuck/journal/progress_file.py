"""Keep a progress file up to date: sections found by their headings, every other line as it was. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from unstuck.journal.ralph_state import Progress

COMPLETED, FIXES, LEARNINGS = "## Completed Tasks", "## Fix Task History", "## Learnings"
_HEADING = re.compile(r"#{1,2}(?:[ \t]|\r?$)")
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_REMARK = re.compile(r"[ \t]+(?!- [0-9a-f]{6})\S")
_TASK = re.compile(r"- \[[xX]\] (\S+)")
_FIX = re.compile(r"- Task (\S+):")
_NEVER = re.compile(r"(?!)")


def updated(text: str, said: Progress, spec: str) -> str:
    """Return the file's text with what is to be said in it; a missing section is made, an empty file begun."""
    mark = "\r" if "\r\n" in text else ""  # lines are split at LF, so a CR stays with its line
    unended = mark if text and not text.endswith("\n") else ""
    lines = f"{text}{unended}".split("\n") if text.strip() else [f"# Progress: {spec}", ""]
    completed, fixes = _marked(said.completed, mark), _marked(said.fixes, mark)
    lines = _put(lines, COMPLETED, completed, _TASK, before=(FIXES, LEARNINGS), gone=said.open, mark=mark)
    lines = _put(lines, FIXES, fixes, _FIX, before=(LEARNINGS,), mark=mark)
    start, end = _section(lines, LEARNINGS)
    known: dict[str, list[str]] = defaultdict(list)
    for line in lines[max(start, 0) : end]:
        known[_subject(line)].append(line.rstrip())
    new = [one for one in said.learnings if not any(_says(line, one) for line in known[_subject(one)])]
    lines = _put(lines, LEARNINGS, _marked({one: one for one in new}, mark), _NEVER, before=(), mark=mark)
    return "\n".join(lines).removesuffix(unended)


def _subject(learning: str) -> str:
    """Return which attempt a learning is about."""
    return learning.rstrip().partition(" failed (")[0]


def _marked(lines: Mapping[str, str], mark: str) -> dict[str, str]:
    return {name: f"{line}{mark}" for name, line in lines.items()}


def _put(
    lines: list[str],
    heading: str,
    wanted: Mapping[str, str],
    shape: re.Pattern[str],
    *,
    before: Sequence[str],
    mark: str,
    gone: frozenset[str] = frozenset(),
) -> list[str]:
    """Replace the lines of a section that are about the same tasks, and append the others at its end."""
    start, end = _section(lines, heading)
    if start < 0:
        return _begun(lines, [f"{heading}{mark}", *wanted.values()], before, mark) if wanted else lines
    left = dict(wanted)
    kept: list[str] = []
    for line in lines[start + 1 : end]:
        found = shape.match(line)
        name = found[1] if found else ""
        if name in left:
            new = left.pop(name)
            kept.append(line if _says(line, new.rstrip()) else new)
        elif name not in gone:
            kept.append(line)
    blank = len(kept)
    while blank and not kept[blank - 1].strip():
        blank -= 1
    apart = [mark] if left and blank == len(kept) and end < len(lines) else []
    return [*lines[: start + 1], *kept[:blank], *left.values(), *apart, *kept[blank:], *lines[end:]]


def _begun(lines: list[str], section: list[str], before: Sequence[str], mark: str) -> list[str]:
    """Make a section: before the first of the sections named that is there, else at the end."""
    at = next((place for other in before if (place := _section(lines, other)[0]) >= 0), len(lines))
    above = lines[:at]
    if at == len(lines):
        while above and not above[-1].strip():
            above.pop()
    apart = [mark] if above and above[-1].strip() else []
    return [*above, *apart, *section, mark if at < len(lines) else "", *lines[at:]]


def _says(line: str, wanted: str) -> bool:
    """Whether a line says this already, with or without a person's remark behind it."""
    return line.rstrip() == wanted or (line.startswith(wanted) and _REMARK.match(line, len(wanted)) is not None)


def _section(lines: Sequence[str], heading: str) -> tuple[int, int]:
    """Return where a section's heading stands and where the section ends; -1 if there is none."""
    start = -1
    for at in _headings(lines):
        if start >= 0:
            return start, at
        if lines[at].rstrip("#: \t\r").casefold() == heading.casefold():
            start = at
    return start, len(lines)


def _headings(lines: Sequence[str]) -> Iterator[int]:
    """Find the headings outside of fenced code. A fence that is never closed is text: it must not hide the rest."""
    closers: dict[str, list[int]] = defaultdict(list)
    for at in range(len(lines) - 1, -1, -1):
        if found := _FENCE.fullmatch(lines[at].rstrip()):
            closers[found[1]].append(at)
    inside = -1
    for at, line in enumerate(lines):
        if at <= inside:
            continue
        if found := _FENCE.match(line):
            ends = closers[found[1]]  # the next one last
            while ends and ends[-1] <= at:
                ends.pop()
            inside = ends[-1] if ends else inside
        elif _HEADING.match(line):
            yield at
