"""Read from a test runner's last words how many tests it ran."""

import re
from collections.abc import Callable
from itertools import chain

from unstuck.diagnosis.cleaning import shown
from unstuck.journal import Counts

_WORDS = {
    "passed": ("passed", "pass", "passing", "ok"),
    "failed": ("failed", "fail", "failing", "failures", "errors", "error", "cancelled"),
    "skipped": ("skipped", "skip", "ignored", "pending", "todo", "xfailed", "xpassed", "deselected"),
}
_NAMED = {word: field for field, words in _WORDS.items() for word in words}
_SHAPES = (
    r"^[=\s]*((?:\d+ (?:passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?)(?:, )?)+) in [\d.:]+ ?s?\b",  # pytest
    r"^\s*Tests:?\s+((?:\d+ (?:passed|failed|skipped|todo|pending)(?:, | \| )?)+)",  # jest, vitest
    r"^test result: \w+\. ((?:\d+ (?:passed|failed|ignored)(?:; )?)+)",  # cargo
)
_NODE = re.compile(r"^(?:#|\u2139) (pass|fail|cancelled|skipped|todo) (\d+)\s*$", re.MULTILINE)
_MOCHA = re.compile(r"^\s+(\d+) (passing|failing|pending)\b", re.MULTILINE)
_UNITTEST = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)
_UNITTEST_BAD = re.compile(r"\b(failures|errors|skipped)=(\d+)")


def read_counts(output: str) -> Counts | None:
    """Return the sum of all summaries in the output; None where no known runner speaks."""
    text = shown(output)
    return next((found for read in _READERS if (found := read(text)) is not None), None)


def _summaries(text: str) -> Counts | None:
    lines = list(chain.from_iterable(re.findall(shape, text, re.MULTILINE) for shape in _SHAPES))
    return _counts([(word, number) for line in lines for number, word in re.findall(r"(\d+) (\w+)", line)])


def _node(text: str) -> Counts | None:
    return _counts(_NODE.findall(text))


def _mocha(text: str) -> Counts | None:
    return _counts([(word, number) for number, word in _MOCHA.findall(text)])


def _unittest(text: str) -> Counts | None:
    ran = sum(map(int, _UNITTEST.findall(text)))
    if not ran:
        return None
    bad = _counts(_UNITTEST_BAD.findall(text)) or Counts()
    return Counts(passed=max(0, ran - bad.failed - bad.skipped), failed=bad.failed, skipped=bad.skipped)


def _counts(pairs: list[tuple[str, str]]) -> Counts | None:
    sums = dict.fromkeys(_WORDS, 0)
    for word, number in pairs:
        if word in _NAMED:
            sums[_NAMED[word]] += int(number)
    return Counts(**sums) if any(sums.values()) else None


_READERS: tuple[Callable[[str], Counts | None], ...] = (_summaries, _node, _unittest, _mocha)
