"""Detect attempts at a task that repeat each other.

A false alarm throws good work away, so a signal is strong only if the attempts cannot be progress.
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
from unstuck.policy.approaches import approach_similarity, names_approach, new_words

SignalType = Literal[
    "same_tree", "same_diff", "reverted", "no_change", "repeated_approach", "same_failure", "not_converging"
]


class Strength(IntEnum):
    """The certainty that another attempt would repeat a failure."""

    WEAK = 1
    """Worth a hint in the next brief."""
    STRONG = 2
    CERTAIN = 3
    """The same files were verified before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """The results of one attempt. Empty values are unknown.

    Attempts that ended by no fault of the agent are left out.
    """

    attempt: int
    approach: str = ""
    start: str = ""  # the tree that it began with
    tree: str = ""
    changes: frozenset[str] = frozenset()  # digests of its changes since `start`, see `patch_marks`
    signature: str = ""
    failing: int | None = None  # the number of failing tests
    failed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A fact about the history of a task."""

    type: SignalType
    strength: Strength
    sentence: str
    attempts: tuple[int, ...]  # the earlier attempts that show it


SIMILARITY_THRESHOLD = 0.3
"""Two approaches are alike if they share more than this part of all words."""
RECENT_ATTEMPTS, SIMILAR_ATTEMPTS = 3, 2
"""An approach is repeated if it is like two of the last three."""
SAME_FAILURES, WITHOUT_PROGRESS = 3, 4


def strongest_signal(current: Footprint, earlier: Sequence[Footprint]) -> Signal | None:
    """Return the strongest reason to stop, or None if no signal is strong."""
    strong = [signal for signal in signals(current, earlier) if signal.strength >= Strength.STRONG]
    return max(strong, key=lambda signal: signal.strength, default=None)


def signals(current: Footprint, earlier: Sequence[Footprint]) -> tuple[Signal, ...]:
    """Return all signals of the history.

    Fewer failing tests than ever before are progress: then only an identical tree is a signal.
    """
    past = _failed_before(current, earlier)
    possible = [_no_change(current, past), _same_tree(current, past)]
    if not has_fewer_failures(current, past):
        possible += [
            _same_changes(current, past),
            repeated_approach(current, past),
            _same_failure(current, past),
            _not_converging(current, past),
        ]
    return tuple(signal for signal in possible if signal is not None)


def repeated_approach(current: Footprint, earlier: Sequence[Footprint]) -> Signal | None:
    """Return a signal if the approach is like two of the last three that failed.

    The signal is weak if the approach names something new: "store sessions in Redis" resembles "store sessions in
    memory" and is another idea. Without a named approach the changes and the failures are compared.
    """
    recent = _failed_before(current, earlier)[-RECENT_ATTEMPTS:]
    if not names_approach(current.approach):
        same = [attempt for attempt in recent if _is_same_work(current, attempt)]
        sentence = "made the same changes, or failed in the same way, as"
        return _repetition(current, sentence, same, Strength.STRONG)
    alike = [
        attempt for attempt in recent if approach_similarity(current.approach, attempt.approach) > SIMILARITY_THRESHOLD
    ]
    new = new_words(current.approach, [attempt.approach for attempt in recent])
    approach = f"goes about it ({one_line(current.approach, 80)})"
    if new:
        sentence = f"{approach}, with something new ({', '.join(sorted(new)[:3])}), like"
        return _repetition(current, sentence, alike, Strength.WEAK)
    return _repetition(current, f"{approach} much like", alike, Strength.STRONG)


def _repetition(current: Footprint, sentence: str, alike: Sequence[Footprint], strength: Strength) -> Signal | None:
    if len(alike) < SIMILAR_ATTEMPTS:
        return None
    return _signal("repeated_approach", strength, current, sentence, alike)


def has_fewer_failures(current: Footprint, earlier: Sequence[Footprint]) -> bool:
    """Return whether fewer tests fail than after any earlier attempt."""
    counts = [attempt.failing for attempt in _failed_before(current, earlier) if attempt.failing is not None]
    return current.failing is not None and bool(counts) and current.failing < min(counts)


# --- work, by its trees and changed lines ----------------------------------------------------------

MOST_LINES = 20_000


def patch_marks(texts: Iterable[tuple[str, str | None, str | None]]) -> tuple[str, ...]:
    """Return digests of the added and of the removed lines, given each path with its old and new text.

    A line is identified by its file and the line before it, not by its number. So the same work on another base has the
    same digests, and exchanged signs are those of the reverted work. The result is empty if lines show no difference.
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
    if not _is_idle(current):
        return None
    authors = [attempt for attempt in past if attempt.tree == current.tree and _has_worked(attempt)]
    did = f"added nothing to what attempt {authors[-1].attempt} left" if authors else "changed nothing"
    idle = list(takewhile(_is_idle, reversed(past)))
    if idle:
        return _signal("no_change", Strength.CERTAIN, current, f"{did}, and neither did", idle[::-1])
    sentence = f"Attempt {current.attempt} {did}."
    return Signal(type="no_change", strength=Strength.WEAK, sentence=sentence, attempts=())


def _is_idle(attempt: Footprint) -> bool:
    return bool(attempt.tree) and attempt.tree == attempt.start


def _has_worked(attempt: Footprint) -> bool:
    """Return whether the attempt certainly changed something."""
    return bool(attempt.changes or (attempt.start and attempt.start != attempt.tree))


def _same_tree(current: Footprint, past: Sequence[Footprint]) -> Signal | None:
    """Return a signal if the whole tree is an earlier one. Other trees in between make it a revert."""
    if not current.tree or _is_idle(current):
        return None
    same = [attempt for attempt in past if attempt.tree == current.tree]
    if not same:
        is_revert = any(attempt.start == current.tree != attempt.tree for attempt in past)
        if not is_revert:
            return None
        return _signal("reverted", Strength.STRONG, current, "took back all that was done since", past[:1])
    between = [attempt for attempt in past if attempt.attempt > same[-1].attempt and attempt.tree]
    if between:
        sentence = f"went back, past {_names(between)}, to the very files of"
        return _signal("reverted", Strength.CERTAIN, current, sentence, same)
    return _signal("same_tree", Strength.CERTAIN, current, "ended with the very files of", same)


def _same_changes(current: Footprint, past: Sequence[Footprint]) -> Signal | None:
    """Return a signal if the changes are those of an earlier attempt, or their exact reverse."""
    if not current.changes or any(attempt.tree and attempt.tree == current.tree for attempt in past):
        return None
    same = [attempt for attempt in past if attempt.changes == current.changes]
    if same:
        between = [attempt for attempt in past if attempt.attempt > same[-1].attempt and attempt.changes]
        if between:
            sentence = f"went back, past {_names(between)}, to the changes of"
            return _signal("reverted", Strength.STRONG, current, sentence, same)
        return _signal("same_diff", Strength.STRONG, current, "made the same changes as", same)
    reverse = frozenset(mark.translate({ord("+"): "-", ord("-"): "+"}) for mark in current.changes)
    reverted = [attempt for attempt in past if attempt.changes == reverse]
    if reverted:
        return _signal("reverted", Strength.STRONG, current, "took back exactly the changes of", reverted)
    return None


def _is_same_work(current: Footprint, earlier: Footprint) -> bool:
    pairs = (
        (current.tree, earlier.tree),
        (current.changes, earlier.changes),
        (current.signature, earlier.signature),
    )
    return any(value and value == other for value, other in pairs)


# --- failures --------------------------------------------------------------------------------------


def _same_failure(current: Footprint, past: Sequence[Footprint]) -> Signal | None:
    """Return a signal if the same failure came several times in a row."""
    same = list(takewhile(lambda attempt: attempt.signature == current.signature, reversed(past)))
    if not current.signature or len(same) + 1 < SAME_FAILURES:
        return None
    return _signal("same_failure", Strength.STRONG, current, "failed in the same way as", same[::-1])


def _not_converging(current: Footprint, past: Sequence[Footprint]) -> Signal | None:
    """Return a signal if the last attempts brought no new lowest number of failing tests.

    It is weak if every failure was another one: that is still a search.
    """
    counted = [attempt for attempt in (*past, current) if attempt.failing is not None][-WITHOUT_PROGRESS:]
    if current.failing is None or len(counted) < WITHOUT_PROGRESS:
        return None
    first, *rest = counted
    if min(attempt.failing or 0 for attempt in rest) < (first.failing or 0):
        return None
    signatures = [attempt.signature for attempt in counted if attempt.signature]
    strength = Strength.STRONG if len(set(signatures)) < len(signatures) else Strength.WEAK
    numbers = ", ".join(str(attempt.failing) for attempt in counted)
    sentence = f"leaves as many tests failing as before ({numbers}), like"
    return _signal("not_converging", strength, current, sentence, counted[:-1])


def _failed_before(current: Footprint, earlier: Sequence[Footprint]) -> list[Footprint]:
    """Return the failed attempts before the current one, which may be recorded already."""
    return [attempt for attempt in earlier if attempt.failed and attempt.attempt < current.attempt]


def _signal(
    signal_type: SignalType, strength: Strength, current: Footprint, did: str, attempts: Sequence[Footprint]
) -> Signal:
    sentence = f"Attempt {current.attempt} {did} {_names(attempts)}."
    numbers = tuple(attempt.attempt for attempt in attempts)
    return Signal(type=signal_type, strength=strength, sentence=sentence, attempts=numbers)


def _names(attempts: Sequence[Footprint]) -> str:
    numbers = [str(attempt.attempt) for attempt in attempts]
    if len(numbers) == 1:
        return f"attempt {numbers[0]}"
    return f"attempts {', '.join(numbers[:-1])} and {numbers[-1]}"


# --- findings of reviewers that come up again although they were reported as fixed ---------------------------------

RECURRING_ROUNDS = 3
"""The number of rounds with the issue, the current one included."""
ISSUE_SIMILARITY = 0.8
LONGEST_KEY = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One finding of a reviewer."""

    title: str = ""
    file: str = ""
    line: int | None = None


def recurring_issues(current: Sequence[Issue], earlier: Sequence[Sequence[Issue]]) -> tuple[tuple[Issue, int], ...]:
    """Return the current issues that came up in at least three rounds, each with the number of rounds."""
    counted = [(issue, 1 + _rounds_with(issue, earlier)) for issue in current]
    return tuple((issue, rounds) for issue, rounds in counted if rounds >= RECURRING_ROUNDS)


def issue_key(issue: Issue) -> str:
    """Return `title|file|line` in lower case, without words such as "Bug:" before the title."""
    title = re.sub(r"^(?:(?:error|issue|bug|fix):\s*)+", "", " ".join(issue.title.lower().split()))
    line = "" if issue.line is None else str(issue.line)
    return f"{title[:LONGEST_KEY]}|{issue.file.strip().lower()[-LONGEST_KEY:]}|{line[:20]}"


def _rounds_with(issue: Issue, rounds: Sequence[Sequence[Issue]]) -> int:
    """Count the rounds with an issue. Two similar remarks in one round count once."""
    return sum(any(_are_alike(issue, other) for other in issues) for issues in rounds)


def _are_alike(a: Issue, b: Issue) -> bool:
    matcher = SequenceMatcher(None, issue_key(a), issue_key(b))
    # The cheap upper bounds first: the exact ratio is quadratic.
    return all(bound() >= ISSUE_SIMILARITY for bound in (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio))


# --- actions within one session --------------------------------------------------------------------

Repetition = Literal["same_action", "same_tool", "in_a_row"]


def repetition(
    done: Sequence[tuple[str, str]], action: tuple[str, str], *, same: int = 2, tool: int = 3, row: int = 3
) -> Repetition | None:
    """Return why an action (a tool and its arguments) should not be repeated, or None.

    Counting a tool with any arguments is forgekeeper's rule for short recovery plans. `tool=0` switches it off.
    """
    if row and [*done[-(row - 1) :], action] == [action] * row:
        return "in_a_row"
    if same and done.count(action) >= same:
        return "same_action"
    if tool and sum(name == action[0] for name, _ in done) >= tool:
        return "same_tool"
    return None


def stalled(states: Sequence[str], beats: int = 5) -> bool:
    """Return whether the state was the same at the last heartbeats."""
    last = states[-beats:]
    return len(last) == beats and len(set(last)) == 1
