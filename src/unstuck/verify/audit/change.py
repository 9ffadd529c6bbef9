"""What the audit takes and gives: a file before and after, and a finding about it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Severity = Literal["reject", "ask", "warn"]

SYMLINK = 0o120000


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One path before and after. None is "does not exist"; a binary file that exists has an empty text."""

    path: str
    old: str | None = None
    new: str | None = None
    old_mode: int | None = None
    new_mode: int | None = None
    """As git writes them: 0o100644, 0o100755, 0o120000."""
    binary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing in a change that makes the checks say less than before."""

    rule: str
    severity: Severity
    path: str
    line: int
    says: str
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a text, numbered from 1."""

    number: int
    text: str


def is_declared(path: str, declared: Iterable[str]) -> bool:
    """Tell whether a path is one of the declared ones, lies in a declared folder, or fits a declared pattern."""
    return any(_covers(place, path) for place in declared)


def added_lines(change: Change) -> Iterator[Line]:
    """Give the lines of the new text that the old one has fewer of. Order plays no part, so this is linear."""
    yield from _surplus(change.new, change.old)


def removed_lines(change: Change) -> Iterator[Line]:
    """Give the lines of the old text that the new one has fewer of."""
    yield from _surplus(change.old, change.new)


def _surplus(text: str | None, other: str | None) -> Iterator[Line]:
    spare = Counter(line.strip() for line in (other or "").splitlines())
    for number, line in enumerate((text or "").splitlines(), 1):
        bare = line.strip()
        if not bare:
            continue
        if spare[bare] > 0:
            spare[bare] -= 1
        else:
            yield Line(number, line)


def _covers(place: str, path: str) -> bool:
    clean = place.strip().strip("`").removeprefix("./").rstrip("/")
    if not clean:
        return False
    if path == clean or path.startswith(clean + "/"):
        return True
    if not re.search(r"[*?]", clean):
        return False
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", clean)
    table = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.fullmatch("".join(table.get(piece, re.escape(piece)) for piece in pieces), path) is not None
