"""Keep a progress file up to date: sections found by their headings, every other line as it was. Pure."""

import re
from collections.abc import Mapping, Sequence

from unstuck.core.spec_folder import Progress

COMPLETED, FIXES, LEARNINGS = "## Completed Tasks", "## Fix Task History", "## Learnings"
_HEADING = re.compile(r"#{1,2}(?:[ \t]|\r?$)")
_FENCE = re.compile(r"[ ]{0,3}(```|~~~)")
_TASK = re.compile(r"- \[[xX]\] (\S+)")
_FIX = re.compile(r"- Task (\S+):")
_NEVER = re.compile(r"(?!)")


def updated(text: str, said: Progress, spec: str) -> str:
    """Return the file's text with what is to be said in it; a missing section is made, an empty file begun."""
    mark = "\r" if "\r\n" in text else ""  # lines are split at LF, so a CR stays with its line
    lines = text.split("\n") if text.strip() else [f"# Progress: {spec}", ""]
    completed, fixes = _marked(said.completed, mark), _marked(said.fixes, mark)
    lines = _put(lines, COMPLETED, completed, _TASK, before=(FIXES, LEARNINGS), gone=said.open, mark=mark)
    lines = _put(lines, FIXES, fixes, _FIX, before=(LEARNINGS,), mark=mark)
    start, end = _section(lines, LEARNINGS)
    known = {line.rstrip() for line in lines[max(start, 0) : end]}
    new = _marked({line: line for line in said.learnings if line not in known}, mark)
    return "\n".join(_put(lines, LEARNINGS, new, _NEVER, before=(), mark=mark))


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
        if name not in gone:
            kept.append(left.pop(name) if name in left else line)
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


def _section(lines: Sequence[str], heading: str) -> tuple[int, int]:
    """Return where a section's heading stands and where the section ends; -1 if there is none. Fenced lines are none."""
    start, fence = -1, ""
    for at, line in enumerate(lines):
        if found := _FENCE.match(line):
            fence = "" if fence == found[1] else fence or found[1]
        elif not fence and _HEADING.match(line):
            if start >= 0:
                return start, at
            if line.strip().casefold() == heading.casefold():
                start = at
    return start, len(lines)
