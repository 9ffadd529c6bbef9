"""A classification rule: what one line of output proves, how strongly, and what would refute it.

Rules are matched line by line with Python's backtracking `re`. No pattern may stall it, and a literal text or an anchor
must say where to look, so the syntax of patterns is restricted.
"""

import re
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from unstuck.model.failure import Kind

Mark = Literal["success", "claim", "finding", "not_loaded", "noise"]
MARKS: tuple[Mark, ...] = ("success", "claim", "finding", "not_loaded", "noise")
"""A rule may also prove success, a claim of success, a finding whose kind follows from the command (lint, types, build …),
tests that could not be loaded, or a noisy line, which counts for less."""

GROUPS = frozenset(
    {"file", "line", "test", "rule", "count", "resets", "package", "command", "port", "env", "module", "status", "name"}
)
MIN_NEEDLE = 2
MOST_ALSO, MOST_ALSO_TEXTS = 2, 40
"""Limits of further sets of texts to search for before a pattern is compiled: their number and their size."""
COMMON = frozenset({
    "error", "rror", "failed", "fail", "not", "no", "in", "all", "file", "line", "test", "code", "found", "missing", "invalid",
    "expected", "cannot", "module", "but", "is",
})  # fmt: skip
"""Words in many outputs, whatever went wrong."""
MAX_COST = 10**8
"""Steps that a user's own pattern may take on one line with backtracking: a second or two."""


class Rule(NamedTuple):
    """One pattern and what it proves."""

    id: str
    proves: Kind | Mark
    pattern: str = ""
    strength: int = 70
    """0 to 100. Guide: 90 a tool's own code or verdict, 80 its own wording, 65 an errno text, 50 a shape, 30 a word."""
    command: str = ""
    """Holds only where this matches the command or the tool; always, where it is empty."""
    exits: tuple[int, ...] = ()
    unless: tuple[str, ...] = ()
    """Rules whose hits refute this one."""
    needs: tuple[str, ...] = ()
    """Rules of which one must match, too."""
    last: bool = False
    """Among equals the last hit decides, not the first: for summaries and final exceptions."""
    zero: bool = False
    """Proves a failure even though the exit code is 0."""
    loud: bool = False
    """Counts on a line that is noise by another rule."""
    stream: Literal["", "stdout", "stderr"] = ""
    needles: tuple[str, ...] = ()
    """Every matching line holds one of them; in lower case when the pattern ignores case. Empty: any line may match."""
    also: tuple[tuple[str, ...], ...] = ()
    """More of the kind: a matching line holds one of each, too. To compile a pattern costs more than to look for these."""

    @property
    def ignores_case(self) -> bool:
        return self.pattern.startswith("(?i)")


class BadPattern(ValueError):
    """A pattern that is not supported, or that could stall."""


def needles(pattern: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return texts of which every matching line holds one, and further such sets.

    Raise BadPattern for a pattern that is not supported or that can stall.
    """
    try:
        tree = re._parser.parse(pattern, re.ASCII)  # type: ignore[attr-defined]  # noqa: SLF001  # no public parser
    except (re.error, OverflowError, RecursionError) as error:
        raise BadPattern(str(error)) from error
    _refuse(pattern, tree)
    best, *more = sorted(_literals(tree), key=_worth, reverse=True)
    also = tuple(
        texts for texts in more if texts and len(texts) <= MOST_ALSO_TEXTS and min(map(len, texts)) >= MIN_NEEDLE
    )
    anchored = pattern.removeprefix("(?i)").startswith("^")
    if min((len(text) for text in best), default=0) < MIN_NEEDLE and not anchored:
        raise BadPattern("it has no literal text and no anchor to find it by")
    if not all(best):
        return (), ()
    if pattern.startswith("(?i)"):
        return _lower(best), tuple(map(_lower, also))[:MOST_ALSO]
    return best, also[:MOST_ALSO]


def _lower(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text.lower() for text in texts)


def _refuse(pattern: str, tree: Any) -> None:
    if pattern.startswith((".*", ".+", "(?i).*", "(?i).+", "^.*", "^.+")):
        raise BadPattern("it starts with `.*`; leave that out, a pattern may match anywhere in the line")
    if pattern.startswith("(?i)") and any(char.isalpha() for char in pattern if not char.isascii()):
        raise BadPattern("it ignores case and holds letters beyond ASCII, which match in one case only")
    unknown = sorted(set(re.compile(pattern).groupindex) - GROUPS)
    if unknown:
        raise BadPattern(f"it captures {unknown[0]!r}; known are {', '.join(sorted(GROUPS))}")
    flags = re.compile(pattern).flags & ~(re.UNICODE | re.IGNORECASE)
    if flags or "(?" in re.sub(r"^\(\?i\)|\(\?P<|\(\?:", "", pattern).replace(r"\(", ""):
        raise BadPattern(
            "it uses a flag or group that is not supported; known are (?i) at the start, (?:…) and (?P<…>…)"
        )
    if re.search(r"\\[AZzBkKGpPXQECxuUN]", pattern.replace(r"\\", "")):
        raise BadPattern("it uses an escape that is not supported")
    if _ambiguous(tree, inside=False):
        raise BadPattern("it repeats something that itself repeats or branches, which can take for ever")


def pattern_cost(pattern: str) -> int:
    """Return how many steps a search may take on one line, at worst and roughly."""
    return _cost(re._parser.parse(pattern, re.ASCII))  # type: ignore[attr-defined]  # noqa: SLF001  # no public parser


def _cost(tree: Iterable[tuple[Any, Any]]) -> int:
    total = 1
    for op, argument in tree:
        name = str(op)
        if name in REPEATS:
            total *= min(argument[1], _DIGITS if _digits(argument[2]) else LONGEST_LINE) * _cost(argument[2])
        else:
            total *= max((_cost(part) for part in _parts(name, argument)), default=1)
    return max(total, 1)


def _digits(body: Any) -> bool:
    """Return whether a repeat matches only digits, which are few in a row."""
    return len(body) == 1 and str(body[0][0]) == "IN" and "DIGIT" in str(body[0][1])


def _ambiguous(tree: Iterable[tuple[Any, Any]], *, inside: bool) -> bool:
    """Return whether a repeat contains another open repeat or a choice, so that a text can match in many ways."""
    for op, argument in tree:
        name = str(op)
        if name in REPEATS:
            many = argument[1] > _BOUND
            if inside and many:
                return True
            if _ambiguous(argument[2], inside=inside or many or argument[1] > _FEW):
                return True
        else:
            if inside and name == "BRANCH" and not _are_distinct(argument[1]):
                return True
            if any(_ambiguous(part, inside=inside) for part in _parts(name, argument)):
                return True
    return False


def _are_distinct(branches: Iterable[Any]) -> bool:
    """Return whether branches begin with different letters, so that only one can match."""
    starts = [str(branch[0]) if len(branch) and str(branch[0][0]) == "LITERAL" else "" for branch in branches]
    return all(starts) and len(set(starts)) == len(starts)


REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
LONGEST_LINE = 2000
_DIGITS = 20
_FEW = 10
_BOUND = 60


def _parts(name: str, argument: Any) -> list[Any]:
    match name:
        case "SUBPATTERN":
            return [argument[3]]
        case "BRANCH":
            return list(argument[1])
        case "ASSERT" | "ASSERT_NOT" | "GROUPREF" | "GROUPREF_EXISTS" | "ATOMIC_GROUP":
            raise BadPattern("it looks around or back, which is not supported")
        case _:
            return []


def _needles(tree: Iterable[tuple[Any, Any]]) -> tuple[str, ...]:
    """Return the longest texts of which every match holds at least one."""
    best = max(_literals(tree), key=_worth)
    return best if all(best) else ()


def _literals(tree: Iterable[tuple[Any, Any]]) -> list[tuple[str, ...]]:
    """Return, part by part, texts of which every match holds at least one."""
    literals: list[tuple[str, ...]] = []
    stretch = ""
    for op, argument in tree:
        name = str(op)
        if name == "LITERAL":
            stretch += chr(argument)
            continue
        literals.append((stretch,))
        stretch = ""
        if name == "SUBPATTERN":
            literals.append(_needles(argument[3]))
        elif name == "BRANCH":
            branches = [_needles(branch) for branch in argument[1]]
            literals.append(tuple(text for branch in branches for text in branch) if all(branches) else ())
        elif name in {"MAX_REPEAT", "MIN_REPEAT"} and argument[0] >= 1:
            literals.append(_needles(argument[2]))
    literals.append((stretch,))
    return literals


def _worth(texts: tuple[str, ...]) -> float:
    """Return a sort key that prefers few, long and rare texts."""
    return min((_rarity(text) for text in texts), default=0) / (1 + len(texts).bit_length() / 2)


def _rarity(text: str) -> float:
    if len(text) < MIN_NEEDLE or not any(map(str.isalnum, text)):
        return len(text) / 10  # a sign is more frequent than any word
    return len(text) / 2 if text.strip(" :'\"").lower() in COMMON else len(text)
