"""Find the lines that classification rules match; literal texts decide which patterns are tried."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache

from unstuck.diagnosis.evidence import Hit
from unstuck.diagnosis.rule import Rule

BLOCK_CHARS = 1 << 18
SMALL = 1 << 14
KEEP = 40
"""Hits of one rule at either end; nothing between them could change a judgement, and a flood must not fill memory."""


class RuleScanner:
    """A search for many rules at once. It compiles only patterns whose literal text occurs."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rule for rule in rules if rule.pattern)

    def scan(self, lines: Sequence[str]) -> tuple[Hit, ...]:
        """Return the hits in the order of the lines; `lines` are plain, as `evidence.plain` gives them."""
        pairs = _bounded(pair for start, block in _blocks(lines) for pair in self._block(start, block))
        return tuple(Hit(self._rules[rule].id, line, self._groups(rule, lines[line])) for line, rule in pairs)

    def _block(self, start: int, lines: Sequence[str]) -> Iterator[tuple[int, int]]:
        text = "\n".join(lines)
        lower = text.lower()
        starts: list[int] = []
        words = _words(lower) if len(text) > SMALL else ""
        for index, rule in enumerate(self._rules):
            where = lower if rule.ignores_case else text
            needles = [needle for needle in rule.needles if (not words or _perhaps(needle, words)) and needle in where]
            if rule.needles and not needles:
                continue
            if not all(any(needle in where for needle in texts) for texts in rule.also):
                continue
            if len(lower) != len(text) or not needles:
                candidates = list(range(len(lines)))
            else:
                starts = starts or _starts(lines)
                candidates = sorted({line for needle in needles for line in _lines_with(needle, where, starts)})
            search = _compiled(rule.pattern).search
            yield from ((start + line, index) for line in candidates if search(lines[line]))

    def _groups(self, rule: int, line: str) -> dict[str, str]:
        found = _compiled(self._rules[rule].pattern).search(line)
        return {name: value for name, value in found.groupdict().items() if value} if found else {}


def _bounded(found: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Keep at most twice KEEP pairs (line, rule) of every rule; sorted by line, then by rule."""
    first: dict[int, list[int]] = {}
    last: dict[int, list[int]] = {}
    for line, rule in found:
        start = first.setdefault(rule, [])
        if len(start) < KEEP:
            start.append(line)
            continue
        end = last.setdefault(rule, [])
        end.append(line)
        if len(end) > 2 * KEEP:
            del end[:KEEP]
    pairs = [(line, rule) for rule, lines in first.items() for line in lines]
    pairs += [(line, rule) for rule, lines in last.items() for line in lines[-KEEP:]]
    return sorted(pairs)


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """Cut into blocks of bounded size, each with the index of its first line."""
    start = size = 0
    for index, line in enumerate(lines):
        size += len(line) + 1
        if size > BLOCK_CHARS:
            yield start, lines[start : index + 1]
            start, size = index + 1, 0
    if start < len(lines):
        yield start, lines[start:]


def _words(lower: str) -> str:
    """Return every different word of a long text once, numbers as 0: a fraction of it, in which most needles are missed."""
    return " ".join(set(_numbers().sub("0", lower).split()))


def _perhaps(needle: str, words: str) -> bool:
    """Whether every part of the needle is part of some word."""
    return all(part in words for part in _parts(needle))


@cache
def _parts(needle: str) -> tuple[str, ...]:
    return tuple(_numbers().sub("0", needle.lower()).split())


@lru_cache(maxsize=1)
def _numbers() -> re.Pattern[str]:
    return re.compile(r"\d+", re.ASCII)


def _starts(lines: Sequence[str]) -> list[int]:
    starts, offset = [], 0
    for line in lines:
        starts.append(offset)
        offset += len(line) + 1
    return starts


def _lines_with(needle: str, text: str, starts: list[int]) -> Iterator[int]:
    at = text.find(needle)
    while at >= 0:
        line = bisect_right(starts, at) - 1
        yield line
        at = text.find(needle, starts[line + 1]) if line + 1 < len(starts) else -1


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)
