"""Find rules in lines with google-re2: all patterns at once, in linear time whatever the pattern."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]  # it ships no types

from unstuck.diagnosis.evidence import Hit
from unstuck.diagnosis.rule import Rule
from unstuck.diagnosis.scan_re import bounded

BLOCK = 1 << 12
MAX_MEMORY = 1 << 27


class Re2Scanner:
    """One set of all patterns: asked for a block of lines first, and line by line only where a block has a hit."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rule for rule in rules if rule.pattern)
        options = re2.Options()
        options.max_mem = MAX_MEMORY
        options.log_errors = False
        self._set = re2.Set.SearchSet(options)
        for rule in self._rules:
            self._set.Add(_multiline(rule.pattern))
        if self._rules:
            self._set.Compile()

    def scan(self, lines: Sequence[str]) -> tuple[Hit, ...]:
        """Return the hits in the order of the lines; `lines` are plain, as `cleaning.plain` gives them."""
        if not self._rules:
            return ()
        pairs = bounded(self._pairs(lines))
        return tuple(Hit(self._rules[rule].id, line, self._groups(rule, lines[line])) for line, rule in pairs)

    def _pairs(self, lines: Sequence[str]) -> Iterator[tuple[int, int]]:
        match, start, size = self._set.Match, 0, 0
        for end in range(1, len(lines) + 1):
            size += len(lines[end - 1]) + 1
            if size < BLOCK and end < len(lines):
                continue
            if match("\n".join(lines[start:end])):
                for line in range(start, end):
                    yield from ((line, rule) for rule in sorted(match(lines[line]) or ()))
            start, size = end, 0

    def _groups(self, rule: int, line: str) -> dict[str, str]:
        found = _compiled(self._rules[rule].pattern).search(line)
        return {name: value for name, value in found.groupdict().items() if value} if found else {}


def _multiline(pattern: str) -> str:
    """Let anchors hold at every line of a block."""
    return f"(?mi){pattern[4:]}" if pattern.startswith("(?i)") else f"(?m){pattern}"


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)
