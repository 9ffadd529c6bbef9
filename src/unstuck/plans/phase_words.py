"""The words of phase plans: ids, lists of phases, and statuses in all their spellings, by the table `catalog/phases.toml`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

from unstuck.shipped import shipped_toml

PhaseStatus = Literal["pending", "running", "complete", "failed", "blocked", "skipped"]

COLON = "[:\N{FULLWIDTH COLON}]"
LONGEST_RANGE = 60
_REMARK = re.compile(r"\([^()]*\)?|\[[^\][]*\]?")
_RANGE = re.compile(r"(.+?)(?:\s*[-–—]\s*|\s+(?:to|through)\s+)(.+)", re.IGNORECASE)  # noqa: RUF001  # people do write these dashes
_LINK = re.compile(r"\[([^\][]*)\]\([^()]*\)")
_TITLED = re.compile(r"([\w.-]{1,40}?)(?:\s*:\s+|\s+[-–—]\s+)(.*[^\W\d_]{2}.*)")  # noqa: RUF001  # as above
_TOKEN = re.compile(r"[\s/:]+|<br\s*/?>", re.IGNORECASE)
_BLANK = str.maketrans("*`_-", "    ")


class Words(NamedTuple):
    """The table, as it is asked."""

    columns: Mapping[str, str]
    """What each of our names is called elsewhere."""
    canonical: Mapping[str, str]
    """The other way round."""
    phase: str
    """The word Phase in all languages, as a pattern."""
    lead: str
    """The same in front of an id: only some scripts do without a space."""
    named: re.Pattern[str]
    """The same where it is a word."""
    separator: re.Pattern[str]
    nothing: frozenset[str]
    all: frozenset[str]
    symbols: Mapping[str, PhaseStatus]
    statuses: Mapping[str, PhaseStatus]
    """All words for a status, those of other languages behind ours."""
    written: Mapping[PhaseStatus, tuple[str, str]]
    languages: Sequence[Mapping[str, Sequence[str]]]


@cache
def words() -> Words:
    """Read the table."""
    table: Mapping[str, Any] = shipped_toml("phases")
    columns: Mapping[str, str] = table["columns"]
    elsewhere = columns["phase"].split("|")
    phase = "|".join(["phases?", *(f"{word}[sn]?" if word.isascii() else word for word in elsewhere)])
    spaced = "|".join(word for word in phase.split("|") if word < "\u3000")
    joined = "|".join(word for word in elsewhere if word >= "\u3000")
    languages = [{status: said.split("|") for status, said in row.items()} for row in table["language"]]
    known = [{status: said.split("|") for status, said in table["statuses"].items()}, *languages]
    return Words(
        columns=columns,
        canonical={word: name for name, said in columns.items() for word in said.split("|")},
        phase=phase,
        lead=rf"(?:(?:{spaced})[ \t]+|(?:{joined})[ \t]*)",
        named=re.compile(rf"\b(?:{phase})(?![a-z])", re.IGNORECASE),
        separator=re.compile(rf"[,;&+，；]|{table['and']}", re.IGNORECASE),  # noqa: RUF001  # as above
        nothing=frozenset({"", *table["nothing"].split("|")}),
        all=frozenset(table["all"].split("|")),
        symbols={symbol: status for status, symbols in table["symbols"].items() for symbol in symbols},
        statuses={word.casefold(): status for row in known for status, said in row.items() for word in said},
        written=table["written"],
        languages=languages,
    )


def canonical(name: str) -> str:
    """Return our own name for a column or a fact; the name itself where we know no other."""
    folded = " ".join(name.casefold().split())
    return words().canonical.get(folded, folded)


def in_the_language_of(text: str, status: str) -> str:
    """Return the word for a status in the language that a text has its own status in; empty for English."""
    said = " ".join(text.casefold().split())
    for row in words().languages:
        if any(_says(said, word.casefold()) for listed in row.values() for word in listed):
            return row["blocked" if status == "failed" else status][0]
    return ""


def _says(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


class Named(NamedTuple):
    """The phases that a cell or a line names."""

    ids: tuple[str, ...]
    optional: bool = False
    """It says `or nothing if skipped`: naming them and naming none comes to the same."""


def normalise(raw: str) -> str:
    """Return a phase's id: without the word Phase, in lower case, letters and digits only."""
    return re.sub(r"[^a-z0-9]", "", words().named.sub(" ", raw).lower())


def without_links(text: str) -> str:
    """Return a text with the words of its links in their place."""
    return _LINK.sub(r"\1", text) if "](" in text else text


def read_cell(text: str) -> tuple[str, str]:
    """Read the cell that names a row's phase: its id as it stands there, and the title that may follow: `2A: Backend`."""
    shown = "".join(char for char in " ".join(without_links(text).split()) if char.isprintable())
    shown = _REMARK.sub("", shown.replace("*", "").replace("`", "")).strip()
    shown = words().named.sub("", shown, count=1).strip(" :") if words().named.match(shown) else shown
    titled = _TITLED.fullmatch(shown)
    return (titled[1], titled[2].strip()) if titled and any(map(str.isdigit, titled[1])) else (shown, "")


def read_status(text: str) -> tuple[PhaseStatus, bool]:
    """Return the status that a text names, and whether it names exactly one that we know."""
    symbols = dict.fromkeys(words().symbols[char] for char in text if char in words().symbols)
    if symbols:
        return next(iter(symbols)), len(symbols) == 1
    text = "done" if text.strip() in ("[x]", "[X]") else text
    said = " ".join(_REMARK.sub(" ", text).translate(_BLANK).casefold().split())
    known = words().statuses
    found = known.get(said) or next((value for word, value in known.items() if said.startswith(word)), None)
    return found or "pending", found is not None or not said.strip("–— ")  # noqa: RUF001  # as above


def read_phases(text: str, order: Sequence[str], own: str = "") -> Named:
    """Read a list such as `2A, Phase 2B and 3`; `order` is all phases, for ranges and for `all previous`."""
    optional = any("nothing" in remark.casefold() for remark in _REMARK.findall(text))
    found: dict[str, None] = {}
    for part in words().separator.split(_REMARK.sub(" ", without_links(text))):
        found.update(dict.fromkeys(_phases(part, order, own)))
    return Named(tuple(found), optional)


def _phases(part: str, order: Sequence[str], own: str) -> Iterator[str]:
    name = normalise(part.replace("*", " "))
    if name in words().nothing:
        return
    if name in words().all:
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
    said = [normalise(word) for word in _TOKEN.split(part)]
    named = tuple(word for word in said if word in order or any(map(str.isdigit, word)))
    return named if any(word in order for word in named) else ()
