"""Recognise an issue that a reviewer raises round after round although it was said to be fixed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

THRESHOLD = 3
"""Rounds with the issue, the current one included."""
ALIKE = 0.8
LONGEST_KEY = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """What a reviewer found wrong."""

    title: str = ""
    file: str = ""
    line: int | None = None
    sort: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """An issue and in how many rounds it was raised."""

    issue: Issue
    rounds: int


def recurring(
    current: Sequence[Issue], earlier: Sequence[Sequence[Issue]], threshold: int = THRESHOLD, alike: float = ALIKE
) -> tuple[Recurrence, ...]:
    """Return the current issues that came up in at least `threshold` rounds, this one included."""
    counted = [Recurrence(issue=issue, rounds=1 + _rounds(issue, earlier, alike)) for issue in current]
    return tuple(one for one in counted if one.rounds >= threshold)


def likeness(a: Issue, b: Issue) -> float:
    """Return how alike two issues read, from 0 to 1."""
    return SequenceMatcher(None, key(a), key(b)).ratio()


def key(issue: Issue) -> str:
    """Return `title|file|line` in lower case, without the words that only announce an issue."""
    title = re.sub(r"^(?:(?:error|issue|bug|fix):\s*)+", "", " ".join(issue.title.lower().split()))
    line = "" if issue.line is None else str(issue.line)
    return f"{title[:LONGEST_KEY]}|{issue.file.strip().lower()[-LONGEST_KEY:]}|{line[:20]}"


def _rounds(issue: Issue, rounds: Sequence[Sequence[Issue]], alike: float) -> int:
    """Count rounds, not mentions: two similar remarks in one review are no recurrence."""
    return sum(any(_alike(issue, other, alike) for other in issues) for issues in rounds)


def _alike(a: Issue, b: Issue, alike: float) -> bool:
    matcher = SequenceMatcher(None, key(a), key(b))
    # The cheap upper bounds first: the exact ratio is quadratic.
    return matcher.real_quick_ratio() >= alike and matcher.quick_ratio() >= alike and matcher.ratio() >= alike
