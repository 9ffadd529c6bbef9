"""Compare the approaches of attempts by their words."""

import re
from collections import Counter
from collections.abc import Sequence

SHARED_WORDS = 2
"""One shared word makes no two approaches alike."""
STOP_WORDS = frozenset(
    ("with", "using", "the", "a", "an", "and", "or", "but", "in", "on", "at", "to", "for", "trying")
)  # fmt: skip
PLACEHOLDERS = (
    "session ended without progress", "no fix attempted", "no previous fix attempted", "no approach given", "unknown",
    "none", "n/a", "not specified", "retry", "retrying", "try again", "same as before", "subtask implementation",
)  # fmt: skip
"""Texts of tools for an agent that named no approach. They are equal in all attempts."""

FILLERS = frozenset(
    (
        "again", "another", "approach", "back", "better", "change", "changed", "different", "differently", "do", "fix",
        "from", "further", "increase", "instead", "into", "it", "just", "longer", "make", "method", "more", "now", "of",
        "once", "pattern", "properly", "raise", "retry", "set", "simply", "solution", "switch", "technique", "that", "then",
        "this", "time", "try", "update", "use", "value", "version", "via", "way",
    )
)  # fmt: skip
"""Words without content. They make no approach new."""
_PARAMETER = (
    r"(?:\b(?:to|by)\s+|(?<![=<>~!])=\s*|\(\s*)\d[\w.]*|\b\d+(?:ms|s|m|min|h|x|k|kb|mb|gb)\b|(?<!\S)--?\w[\w-]*"
)
LONGEST_APPROACH = 2_000


def approach_similarity(a: str, b: str) -> float:
    """Return the Jaccard similarity of two approaches, or 0 for placeholders and for one shared word."""
    if not names_approach(a) or not names_approach(b):
        return 0.0
    return jaccard(a, b) if len(approach_words(a) & approach_words(b)) >= SHARED_WORDS else 0.0


def jaccard(a: str, b: str) -> float:
    """Return the shared part of all words, as Auto-Claude counts them."""
    first, second = approach_words(a), approach_words(b)
    return len(first & second) / len(first | second) if first | second else 0.0


def approach_words(text: str) -> frozenset[str]:
    """Return the words without stop words. "async/await" is two words."""
    return frozenset(re.findall(r"[^\W_]+", text[:LONGEST_APPROACH].lower())) - STOP_WORDS


def names_approach(text: str) -> bool:
    """Return whether the text names an approach."""
    return bool(approach_words(text)) and text.strip(" .!-*\"'`").lower() not in PLACEHOLDERS


def new_words(approach: str, earlier: Sequence[str]) -> frozenset[str]:
    """Return the words that no earlier approach has. Changed numbers and options are not new."""
    old_stems = {_stem(word) for text in earlier for word in approach_words(text)}
    content = approach_words(re.sub(_PARAMETER, " ", approach[:LONGEST_APPROACH], flags=re.IGNORECASE))
    return frozenset(word for word in content - FILLERS if _stem(word) not in old_stems)


def _stem(word: str) -> str:
    """Return "timeout", "pars", "pip" for "timeouts", "parsing", "pip3"."""
    word = word.rstrip("0123456789") or word
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:  # noqa: PLR2004  # shorter stems are other words
            return word.removesuffix(ending)
    return word


MAX_AVOIDED_WORDS, AVOID_AFTER = 5, 2


def words_to_avoid(approaches: Sequence[str], about: str = "") -> tuple[str, ...]:
    """Return the words that failed approaches share: the next approach should avoid them.

    `about` is the task's own text. Its words name the task and cannot be avoided.
    """
    task_words = approach_words(about)
    counts: Counter[str] = Counter()
    for approach in approaches:
        if names_approach(approach):
            counts.update(approach_words(approach) - FILLERS - task_words)
    shared = sorted((-count, word) for word, count in counts.items() if count >= AVOID_AFTER)  # a set has no order
    return tuple(word for _, word in shared)[:MAX_AVOIDED_WORDS]
