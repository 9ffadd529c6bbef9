"""The words of phase plans: ids, lists of phases, and statuses in all their spellings."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, cast

from unstuck.plans.superplans import translated
from unstuck.plans.superplans.translated import AND, NOTHING, PHASE

PhaseStatus = Literal["pending", "running", "complete", "failed", "blocked", "skipped"]

_WORD = re.compile(rf"\b(?:{PHASE})(?![a-z])", re.IGNORECASE)
_REMARK = re.compile(r"\([^()]*\)?|\[[^\][]*\]?")
_SEPARATOR = re.compile(rf"[,;&+，；]|\band\b|{AND}", re.IGNORECASE)  # noqa: RUF001  # people do write these commas
_RANGE = re.compile(r"(.+?)(?:\s*[-–—]\s*|\s+(?:to|through)\s+)(.+)", re.IGNORECASE)  # noqa: RUF001  # people do write these dashes
LONGEST_RANGE = 60
_LINK = re.compile(r"\[([^\][]*)\]\([^()]*\)")
_TITLED = re.compile(r"([\w.-]{1,40}?)(?:\s*:\s+|\s+[-–—]\s+)(.*[^\W\d_]{2}.*)")  # noqa: RUF001  # as above
_TOKEN = re.compile(r"[\s/:]+|<br\s*/?>", re.IGNORECASE)
_NOTHING = frozenset({"", "none", "nothing", "na", "no", "nil", "null"}) | NOTHING
_ALL = frozenset({"all", "allprevious", "allabove", "everything"})

SYMBOLS: Mapping[str, PhaseStatus] = {
    "⬜": "pending",
    "🔲": "pending",
    "☐": "pending",
    "🔄": "running",
    "⏳": "running",
    "🚧": "running",
    "✅": "complete",
    "☑": "complete",
    "✔": "complete",
    "⏸": "blocked",
    "⏭": "skipped",
    "❌": "failed",
}
STATUS_WORDS: Mapping[str, PhaseStatus] = {
    "todo": "pending",
    "to do": "pending",
    "not started": "pending",
    "pending": "pending",
    "in progress": "running",
    "running": "running",
    "done": "complete",
    "complete": "complete",
    "completed": "complete",
    "blocked": "blocked",
    "skipped": "skipped",
    "skip": "skipped",
    "failed": "failed",
}
_BLANK = str.maketrans("*`_-", "    ")
WRITTEN: Mapping[PhaseStatus, tuple[str, str]] = {
    "pending": ("⬜", "Not Started"),
    "running": ("🔄", "In Progress"),
    "complete": ("✅", "Complete"),
    "failed": ("⏸️", "Blocked"),
    "blocked": ("⏸️", "Blocked"),
    "skipped": ("⏭️", "Skipped"),
}
"""How we write a status: as a symbol, and in words. Superplans know no sign for failed; what failed waits for a person."""


class Named(NamedTuple):
    """The phases that a cell or a line names."""

    ids: tuple[str, ...]
    optional: bool = False
    """It says `or nothing if skipped`: naming them and naming none comes to the same."""


def normalise(raw: str) -> str:
    """Return a phase's id: without the word Phase, in lower case, letters and digits only."""
    return re.sub(r"[^a-z0-9]", "", _WORD.sub(" ", raw).lower())


def without_links(text: str) -> str:
    """Return a text with the words of its links in their place."""
    return _LINK.sub(r"\1", text) if "](" in text else text


def read_cell(text: str) -> tuple[str, str]:
    """Read the cell that names a row's phase: its id as it stands there, and the title that may follow: `2A: Backend`."""
    shown = "".join(char for char in " ".join(without_links(text).split()) if char.isprintable())
    shown = _REMARK.sub("", shown.replace("*", "").replace("`", "")).strip()
    shown = _WORD.sub("", shown, count=1).strip(" :") if _WORD.match(shown) else shown
    titled = _TITLED.fullmatch(shown)
    return (titled[1], titled[2].strip()) if titled and any(map(str.isdigit, titled[1])) else (shown, "")


def read_status(text: str) -> tuple[PhaseStatus, bool]:
    """Return the status that a text names, and whether it names exactly one that we know."""
    symbols = dict.fromkeys(SYMBOLS[char] for char in text if char in SYMBOLS)
    if symbols:
        return next(iter(symbols)), len(symbols) == 1
    words = " ".join(_REMARK.sub(" ", _ticked(text)).translate(_BLANK).casefold().split())
    known = {**STATUS_WORDS, **cast("Mapping[str, PhaseStatus]", translated.STATUS_WORDS)}
    found = known.get(words) or next((value for word, value in known.items() if words.startswith(word)), None)
    return found or "pending", found is not None or not words.strip("–— ")  # noqa: RUF001  # as above


def _ticked(text: str) -> str:
    """Read a lone box as the word that it stands for."""
    box = text.strip()
    return "done" if box in ("[x]", "[X]") else text


def read_phases(text: str, order: Sequence[str], own: str = "") -> Named:
    """Read a list such as `2A, Phase 2B and 3`; `order` is all phases, for ranges and for `all previous`."""
    optional = any("nothing" in remark.casefold() for remark in _REMARK.findall(text))
    found: dict[str, None] = {}
    for part in _SEPARATOR.split(_REMARK.sub(" ", without_links(text))):
        found.update(dict.fromkeys(_phases(part, order, own)))
    return Named(tuple(found), optional)


def _phases(part: str, order: Sequence[str], own: str) -> Iterator[str]:
    name = normalise(part.replace("*", " "))
    if name in _NOTHING:
        return
    if name in _ALL:
        yield from order[: order.index(own)] if own in order else order
        return
    span = _RANGE.fullmatch(part.strip()) if name not in order and len(part) <= LONGEST_RANGE else None
    ends = [normalise(end) for end in span.groups()] if span else []
    if ends and all(end in order for end in ends):
        yield from order[order.index(ends[0]) : order.index(ends[1]) + 1]
    elif name in order:
        yield name
    else:
        yield from _apart(part, order) or (name,)


def _apart(part: str, order: Sequence[str]) -> tuple[str, ...]:
    """Return the phases in a part that is more than an id: `2A/2B`, `1: Setup`. A word that may be a typing error counts."""
    words = [normalise(word) for word in _TOKEN.split(part)]
    named = tuple(word for word in words if word in order or any(map(str.isdigit, word)))
    return named if any(word in order for word in named) else ()
