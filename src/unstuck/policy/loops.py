"""Say whether the attempts at a task go in circles. Pure: same history, same signals.

Law: a false alarm throws good work away, so only what could not be progress is called strong.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import IntEnum
from itertools import pairwise, takewhile
from typing import Literal

from unstuck.model.text import one_line

Sort = Literal["same_tree", "same_diff", "reverted", "no_change", "repeated_approach", "same_failure", "not_converging"]


class Strength(IntEnum):
    """How sure it is that going on would repeat what failed."""

    WEAK = 1
    """Worth a hint in the next brief."""
    STRONG = 2
    CERTAIN = 3
    """The same files were judged before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What one attempt left behind. Leave out attempts that ended by no fault of the agent. Empty means unknown."""

    attempt: int
    approach: str = ""
    start: str = ""  # the tree that it began with
    tree: str = ""
    changes: frozenset[str] = frozenset()  # what it changed since `start`, see `patch_marks`
    signature: str = ""
    failing: int | None = None  # how many tests fail
    failed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A fact about the history of a task."""

    sort: Sort
    strength: Strength
    sentence: str
    attempts: tuple[int, ...]  # the earlier attempts that show it


LIKE, WINDOW, SIMILAR, SHARED_WORDS = 0.3, 3, 2, 2
"""An approach is like another that shares more than this of all words, and two of them; two of the last three are a circle."""
SAME_FAILURES, WITHOUT_PROGRESS = 3, 4


def looping(current: Footprint, earlier: Sequence[Footprint]) -> Signal | None:
    """Return the strongest reason to stop going on like this, if there is a good one."""
    found = [signal for signal in signals(current, earlier) if signal.strength >= Strength.STRONG]
    return max(found, key=lambda signal: signal.strength, default=None)


def signals(current: Footprint, earlier: Sequence[Footprint]) -> tuple[Signal, ...]:
    """Return all that the history shows.

    Fewer failing tests than ever before is progress: then only an identical tree speaks of a loop.
    """
    past = _before(current, earlier)
    exact = (_no_change(current, past), _same_tree(current, past))
    rest = (
        _same_changes(current, past),
        circular(current, past),
        _same_failure(current, past),
        _not_converging(current, past),
    )
    found = exact if converging(current, past) else (*exact, *rest)
    return tuple(signal for signal in found if signal is not None)


def circular(current: Footprint, earlier: Sequence[Footprint]) -> Signal | None:
    """Tell whether the approach is like two of the last three that failed.

    An approach that names something new is only weakly so: "store sessions in Redis" resembles "store sessions in
    memory" and is another idea. Where the agent named no approach, its changes and its failure are compared.
    """
    recent = _before(current, earlier)[-WINDOW:]
    if not meaningful(current.approach):
        alike = [one for one in recent if _same_work(current, one)]
        strength, sentence = Strength.STRONG, "made the same changes, or failed in the same way, as"
    else:
        alike = [one for one in recent if similar(current.approach, one.approach) > LIKE]
        new = novel(current.approach, [one.approach for one in recent])
        strength = Strength.WEAK if new else Strength.STRONG
        sentence = f"goes about it ({one_line(current.approach, 80)}) much like"
        if new:
            sentence = f"{sentence.removesuffix(' much like')}, with something new ({', '.join(sorted(new)[:3])}), like"
    if len(alike) < SIMILAR:
        return None
    return _signal("repeated_approach", strength, current, sentence, alike)


def converging(current: Footprint, earlier: Sequence[Footprint]) -> bool:
    """Tell whether fewer tests fail than after any earlier attempt."""
    counts = [one.failing for one in _before(current, earlier) if one.failing is not None]
    return current.failing is not None and bool(counts) and current.failing < min(counts)


# --- approaches, by their words --------------------------------------------------------------------

STOP_WORDS = frozenset(
    ("with", "using", "the", "a", "an", "and", "or", "but", "in", "on", "at", "to", "for", "trying")
)  # fmt: skip
PLACEHOLDERS = (
    "session ended without progress", "no fix attempted", "no previous fix attempted", "no approach given", "unknown",
    "none", "n/a", "not specified", "retry", "retrying", "try again", "same as before", "subtask implementation",
)  # fmt: skip
"""What tools write where an agent named no approach: equal in all attempts, and without meaning."""

FILLERS = frozenset(
    (
        "again", "another", "approach", "back", "better", "change", "changed", "different", "differently", "do", "fix",
        "from", "further", "increase", "instead", "into", "it", "just", "longer", "make", "method", "more", "now", "of",
        "once", "pattern", "properly", "raise", "retry", "set", "simply", "solution", "switch", "technique", "that", "then",
        "this", "time", "try", "update", "use", "value", "version", "via", "way",
    )
)  # fmt: skip
"""Words that say nothing about what is done, so they make no approach new."""
_PARAMETER = (
    r"(?:\b(?:to|by)\s+|(?<![=<>~!])=\s*|\(\s*)\d[\w.]*|\b\d+(?:ms|s|m|min|h|x|k|kb|mb|gb)\b|(?<!\S)--?\w[\w-]*"
)
LONGEST_APPROACH = 2_000


def similar(a: str, b: str) -> float:
    """Return the Jaccard likeness of two approaches; one shared word is no likeness, nor is a placeholder."""
    comparable = meaningful(a) and meaningful(b) and len(words(a) & words(b)) >= SHARED_WORDS
    return jaccard(a, b) if comparable else 0.0


def jaccard(a: str, b: str) -> float:
    """Return how many of all words both share, as Auto-Claude counts them."""
    ours, theirs = words(a), words(b)
    return len(ours & theirs) / len(ours | theirs) if ours | theirs else 0.0


def words(text: str) -> frozenset[str]:
    """Split at everything that is no letter or digit ("async/await" is two words); leave the stop words out."""
    return frozenset(re.findall(r"[^\W_]+", text[:LONGEST_APPROACH].lower())) - STOP_WORDS


def meaningful(approach: str) -> bool:
    """Tell whether the text names an approach at all."""
    return bool(words(approach)) and approach.strip(" .!-*\"'`").lower() not in PLACEHOLDERS


def novel(approach: str, earlier: Sequence[str]) -> frozenset[str]:
    """Return the words that no earlier approach has; changed numbers and options make nothing new."""
    known = {_stem(word) for text in earlier for word in words(text)}
    content = words(re.sub(_PARAMETER, " ", approach[:LONGEST_APPROACH], flags=re.IGNORECASE))
    return frozenset(word for word in content - FILLERS if _stem(word) not in known)


def _stem(word: str) -> str:
    """Fold "timeouts", "parsing", "pip3" into "timeout", "pars", "pip"."""
    word = word.rstrip("0123456789") or word
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:  # noqa: PLR2004  # shorter stems are other words
            return word.removesuffix(ending)
    return word


# --- work, by its trees and changed lines ----------------------------------------------------------

MOST_LINES = 20_000


def patch_marks(texts: Iterable[tuple[str, str | None, str | None]]) -> tuple[str, ...]:
    """Return a digest of all added and one of all removed lines, given each path with its text before and after.

    A line is known by its file and the line before it, not by its number: the same work on a base that has moved has the
    same marks, and marks with their signs turned are those of the work taken back. Empty where lines do not tell.
    """
    added, removed = list[str](), list[str]()
    for path, old, new in texts:
        before, after = _placed(path, old), _placed(path, new)
        if before == after:
            return ()
        added += (after - before).elements()
        removed += (before - after).elements()
    if not added and not removed:
        return ()
    return f"+{_digest(added)}", f"-{_digest(removed)}"


def _placed(path: str, text: str | None) -> Counter[str]:
    lines = [line.rstrip() for line in (text or "").splitlines()[:MOST_LINES] if line.strip()]
    there = Counter(f"{path}\n{before}\n{line}" for before, line in pairwise(("", *lines)))
    return there if text is None else there + Counter([path])


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(sorted(lines)).encode(errors="replace")).hexdigest()[:16]


def _no_change(current: Footprint, past: Sequence[Footprint]) -> Signal | None:
    if not _idle(current):
        return None
    work = next((one for one in reversed(past) if one.tree == current.tree and _worked(one)), None)
    said = f"added nothing to what attempt {work.attempt} left" if work else "changed nothing"
    if idle := list(takewhile(_idle, reversed(past))):
        return _signal("no_change", Strength.CERTAIN, current, f"{said}, and neither did", idle[::-1])
    sentence = f"Attempt {current.attempt} {said}."
    return Signal(sort="no_change", strength=Strength.WEAK, sentence=sentence, attempts=())


def _idle(one: Footprint) -> bool:
    return bool(one.tree) and one.tree == one.start


def _worked(one: Footprint) -> bool:
    """Whether it is known to have changed something."""
    return bool(one.changes or (one.start and one.start != one.tree))


def _same_tree(current: Footprint, past: Sequence[Footprint]) -> Signal | None:
    """Compare whole trees; to come back to an older one by way of another is a revert."""
    same = [one for one in past if one.tree and one.tree == current.tree]
    undid = bool(current.tree) and any(one.start == current.tree != one.tree for one in past)
    if _idle(current) or not (same or undid):
        return None
    if not same:
        return _signal("reverted", Strength.STRONG, current, "took back all that was done since", past[:1])
    between = [one for one in past if one.attempt > same[-1].attempt and one.tree]
    if between:
        sentence = f"went back, past {_names(between)}, to the very files of"
        return _signal("reverted", Strength.CERTAIN, current, sentence, same)
    return _signal("same_tree", Strength.CERTAIN, current, "ended with the very files of", same)


def _same_changes(current: Footprint, past: Sequence[Footprint]) -> Signal | None:
    """Compare changes: the same again, in a row or by way of others, or exactly the reverse of earlier ones."""
    if not current.changes or any(one.tree and one.tree == current.tree for one in past):
        return None
    if same := [one for one in past if one.changes == current.changes]:
        between = [one for one in past if one.attempt > same[-1].attempt and one.changes]
        says = f"went back, past {_names(between)}, to the changes of" if between else "made the same changes as"
        return _signal("reverted" if between else "same_diff", Strength.STRONG, current, says, same)
    undone = frozenset(mark.translate({ord("+"): "-", ord("-"): "+"}) for mark in current.changes)
    if opposite := [one for one in past if undone == one.changes]:
        return _signal("reverted", Strength.STRONG, current, "took back exactly the changes of", opposite)
    return None


def _same_work(current: Footprint, one: Footprint) -> bool:
    ours = (current.tree, current.changes, current.signature)
    theirs = (one.tree, one.changes, one.signature)
    return any(mine and mine == other for mine, other in zip(ours, theirs, strict=True))


# --- failures --------------------------------------------------------------------------------------


def _same_failure(current: Footprint, past: Sequence[Footprint]) -> Signal | None:
    """Count how often in a row the same failure came."""
    same = list(takewhile(lambda one: one.signature == current.signature, reversed(past)))
    if not current.signature or len(same) + 1 < SAME_FAILURES:
        return None
    return _signal("same_failure", Strength.STRONG, current, "failed in the same way as", same[::-1])


def _not_converging(current: Footprint, past: Sequence[Footprint]) -> Signal | None:
    """See no new best number of failing tests in the last attempts; always another failure is still a search."""
    counted = [one for one in (*past, current) if one.failing is not None][-WITHOUT_PROGRESS:]
    if current.failing is None or len(counted) < WITHOUT_PROGRESS:
        return None
    first, *rest = counted
    if min(one.failing or 0 for one in rest) < (first.failing or 0):
        return None
    known = [one.signature for one in counted if one.signature]
    strength = Strength.STRONG if len(set(known)) < len(known) else Strength.WEAK
    numbers = ", ".join(str(one.failing) for one in counted)
    sentence = f"leaves as many tests failing as before ({numbers}), like"
    return _signal("not_converging", strength, current, sentence, counted[:-1])


def _before(current: Footprint, earlier: Sequence[Footprint]) -> list[Footprint]:
    """Leave out the attempt itself, which may be recorded already, and attempts that did not fail."""
    return [one for one in earlier if one.failed and one.attempt < current.attempt]


def _signal(sort: Sort, strength: Strength, current: Footprint, says: str, shown: Sequence[Footprint]) -> Signal:
    sentence = f"Attempt {current.attempt} {says} {_names(shown)}."
    return Signal(sort=sort, strength=strength, sentence=sentence, attempts=tuple(one.attempt for one in shown))


def _names(shown: Sequence[Footprint]) -> str:
    numbers = [str(one.attempt) for one in shown]
    if len(numbers) == 1:
        return f"attempt {numbers[0]}"
    return f"attempts {', '.join(numbers[:-1])} and {numbers[-1]}"


# --- what reviewers raise round after round, although it was said to be fixed ------------------------

ROUNDS = 3
"""Rounds with the issue, the current one included."""
ALIKE = 0.8
LONGEST_KEY = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """What a reviewer found wrong."""

    title: str = ""
    file: str = ""
    line: int | None = None


def recurring(current: Sequence[Issue], earlier: Sequence[Sequence[Issue]]) -> tuple[tuple[Issue, int], ...]:
    """Return the current issues that came up in at least three rounds, this one included, and in how many."""
    counted = [(issue, 1 + _rounds(issue, earlier)) for issue in current]
    return tuple((issue, rounds) for issue, rounds in counted if rounds >= ROUNDS)


def key(issue: Issue) -> str:
    """Return `title|file|line` in lower case, without the words that only announce an issue."""
    title = re.sub(r"^(?:(?:error|issue|bug|fix):\s*)+", "", " ".join(issue.title.lower().split()))
    line = "" if issue.line is None else str(issue.line)
    return f"{title[:LONGEST_KEY]}|{issue.file.strip().lower()[-LONGEST_KEY:]}|{line[:20]}"


def _rounds(issue: Issue, rounds: Sequence[Sequence[Issue]]) -> int:
    """Count rounds, not mentions: two similar remarks in one review are no recurrence."""
    return sum(any(_reads_alike(issue, other) for other in issues) for issues in rounds)


def _reads_alike(a: Issue, b: Issue) -> bool:
    matcher = SequenceMatcher(None, key(a), key(b))
    # The cheap upper bounds first: the exact ratio is quadratic.
    return all(bound() >= ALIKE for bound in (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio))


# --- actions within one session --------------------------------------------------------------------

Repetition = Literal["same_action", "same_tool", "in_a_row"]


def repetition(
    done: Sequence[tuple[str, str]], action: tuple[str, str], *, same: int = 2, tool: int = 3, row: int = 3
) -> Repetition | None:
    """Say why an action (a tool and its arguments) should not be taken once more.

    Counting a tool with any arguments is forgekeeper's rule for short recovery plans; `tool=0` leaves it out.
    """
    if row and [*done[-(row - 1) :], action] == [action] * row:
        return "in_a_row"
    if same and done.count(action) >= same:
        return "same_action"
    if tool and sum(name == action[0] for name, _ in done) >= tool:
        return "same_tool"
    return None


def stalled(states: Sequence[str], beats: int = 5) -> bool:
    """Tell whether nothing changed over the last heartbeats, given the state at each."""
    last = states[-beats:]
    return len(last) == beats and len(set(last)) == 1


PIVOT_WORDS, PIVOT_AFTER = 5, 2


def pivot(approaches: Sequence[str], about: str = "") -> tuple[str, ...]:
    """Return the words that failed approaches share: the next one should do without them.

    `about` is the task's own text: its words name what is to be done, and cannot be done without.
    """
    theirs = words(about)
    counts = Counter(
        word for approach in approaches if meaningful(approach) for word in words(approach) - FILLERS - theirs
    )
    shared = sorted((-count, word) for word, count in counts.items() if count >= PIVOT_AFTER)  # a set has no order
    return tuple(word for _, word in shared)[:PIVOT_WORDS]
