"""Read what an agent says about its work.

A claim is a fact about the agent. It proves nothing about the work.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from unstuck.agents.printed_json import LONGEST_TEXT, PhaseResult, UnreadableResult, find_result
from unstuck.model.outcome import Claim, Ended, Outcome
from unstuck.model.text import shown

LONGEST_LINE = 2_000
APPROACH_CHARS = 300
FIELD_CHARS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureReport:
    """The failure object of smart-ralph."""

    task_id: str
    error: str
    attempted_fix: str
    status: str


NO_MARKER: Final = "Task did not complete"
"""Literal text of smart-ralph's format: the error if the output has no FAILED line."""
NO_ERROR: Final = "Task execution failed"
"""Literal text of smart-ralph's format."""
NO_FIX: Final = "No fix attempted"
"""Literal text of smart-ralph's parser. Its table of fields says "No previous fix attempted"."""
NO_STATUS: Final = "Unknown status"
"""Literal text of smart-ralph's format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Everything that the output of a session says about the work."""

    claim: Claim
    failure: FailureReport | None = None
    result: PhaseResult | None = None
    contradictions: tuple[str, ...] = ()
    """Phrases that contradict the claim of success."""
    approach: str = ""
    problem: str = ""
    """The reason the result could not be read."""

    @property
    def denied(self) -> bool:
        """True if something in the output contradicts a claim of success."""
        unfinished = self.result is not None and self.result.unfinished
        return bool(self.contradictions or self.problem or unfinished)


def session_claim(ended: Ended) -> Claim:
    """Return the claim of a session: an explicit failure, "done" if it ended well, or "none"."""
    statement = read_statement(ended.tail)
    if statement.claim == "failed":
        return "failed"
    return "done" if ended.ok and not statement.denied else "none"


def last_approach(text: str) -> str:
    """Return the last approach that the agent named, or its last attempted fix, as one short line."""
    return _approach_in(_last_lines(text))


def read_statement(text: str, task: str = "") -> Statement:
    """Read the output of a session. If it holds several claims, the last one counts."""
    lines = _last_lines(text)
    reports = _failure_reports(lines, task)
    result, result_line = find_result(lines)
    claims: list[tuple[int, Claim]] = [(covered.stop, "failed") for covered, _ in reports]
    report_lines = {number for covered, _ in reports for number in covered}
    claims += [(number, claim) for number, claim in _signal_lines(lines) if number not in report_lines]
    if isinstance(result, PhaseResult):
        claims.append((result_line, "done" if result.status == "complete" else "failed"))
    last_claim = max(claims, default=(0, "none"))[1]
    return Statement(
        claim=last_claim,
        failure=reports[-1][1] if reports and last_claim == "failed" else None,
        result=result if isinstance(result, PhaseResult) else None,
        contradictions=_contradictions_in(lines) if last_claim == "done" else (),
        approach=_approach_in(lines),
        problem=result.reason if isinstance(result, UnreadableResult) else "",
    )


def states_success(outcome: Outcome) -> bool:
    """Return whether the session's own words claim success, not only its exit code."""
    if outcome.claim != "done" or outcome.end == "done_claimed":
        return outcome.claim == "done"
    words = outcome.words
    if read_statement(words).claim == "done":
        return True
    return any(not _is_denied(words, match.start()) for match in _SUCCESS_WORDS.finditer(words))


_SUCCESS_WORDS = re.compile(
    r"(?i)(?:\b|_)(?:done|completed?|finished|implemented|fixed|works|ready)\b|\b(?:tests?|checks?) (?:now )?pass(?:es|ed)?\b"
)
_ENDS_WITH_DENIAL = re.compile(r"(?i)\b(?:no|not|without|never|nothing|\w+n['\u2019]t)\W+(?:\w+\W+){0,2}$")
_DENIAL_CHARS = 40


def _is_denied(text: str, start: int) -> bool:
    """Return whether the words before a place deny what follows, as in "no manual intervention"."""
    return _ENDS_WITH_DENIAL.search(text[max(0, start - _DENIAL_CHARS) : start]) is not None


def contradictions(text: str) -> tuple[str, ...]:
    """Return the phrases in an agent's words that deny success."""
    return _contradictions_in(_last_lines(text))


def failure_report(text: str, task: str = "") -> FailureReport:
    """Parse the output of a session that did not complete. Missing fields get smart-ralph's default texts."""
    reports = _failure_reports(_last_lines(text), task)
    return reports[-1][1] if reports else _as_report(task, {"error": NO_MARKER})


def _last_lines(text: str) -> list[str]:
    return shown(text[-LONGEST_TEXT:]).split("\n")


# --- questions that the agent asks


def last_question(text: str) -> str:
    """Return the question that the agent's last paragraph asks, or an empty string.

    A question that is not the last sentence counts in two cases: the rest of the paragraph waits for an answer, or the
    question is addressed to a person and the rest does not answer it.
    """
    spoken = [line.strip() for _, line in _spoken_lines(_last_lines(text)) if not _REPORT_LINE.match(line)]
    paragraph = "\n".join(spoken).strip().rpartition("\n\n")[2][-FIELD_CHARS:]
    for question in reversed(list(_QUESTION.finditer(paragraph))):
        rest = paragraph[question.end() :]
        is_open = _ADDRESSES_PERSON.search(question[0]) is not None and not _ANSWERS_ITSELF.search(rest)
        if not rest or _WAITS_FOR_ANSWER.search(rest) or is_open:
            return question[0].strip(" *_`")
    return ""


def blocking_question(text: str) -> str:
    """Return the question that an agent stopped for, or an empty string.

    It asks for a permission or a decision. An offer to do more is no such question.
    """
    question = last_question(text)
    if not question or read_statement(text).claim != "none" or not _ASKS_FOR_DECISION.search(question):
        return ""
    is_offer = _OFFERS_MORE.search(question) is not None and not re.search(r"(?i)\bor\b", question)
    return "" if is_offer else question


_REPORT_LINE = re.compile(r"\s*(?:APPROACH|COST): ")
_QUESTION = re.compile(r"(?:(?<=[.!?:] )|^)[^.!?\n]*(?:\.\w[^.!?\n]*)*\?[*_`)\"']*(?:\s+|\Z)", re.MULTILINE)
_WAITS_FOR_ANSWER = re.compile(
    r"(?i)\b(?:answer|reply|decision|go on|waiting|wait for|until you|without (?:you|that|this|it))\b"
)
_ADDRESSES_PERSON = re.compile(
    r"(?i)\b(?:should|shall|may|must) (?:I|we|it|the)\b|\b(?:do|would|could|can) you\b|\byou (?:want|prefer)\b"
)
_ANSWERS_ITSELF = re.compile(
    r"(?i)\bI(?: have|'ve|\u2019ve|'ll| will| went| chose| decided| used| took| picked| left| kept| did| made)\b|\bassum|\bfor now\b"
)
_ASKS_FOR_DECISION = re.compile(
    r"(?i)\b(?:should|shall|may|can|could|must)\b|\bdo (?:you|I) (?:want|need|prefer|approve|agree|allow)\b|\bwould you\b"
    r"|\b(?:which|what|where|who|how|whose)\b|\b(?:permission|approv|confirm|allow|proceed|okay|ok)\w*\b|\bis (?:it|that|this)\b"
)
_OFFERS_MORE = re.compile(
    r"(?i)\b(?:would you like|do you want|want|shall I|should I|may I|can I)\b(?: me)?(?: to)? (?:\w+ )?"
    r"(?:continue|proceed|go on|keep going|also|help|explain|start|do (?:that|this|anything))\b|anything else"
)


# --- signals that stand alone on a line

_SIGNALS: Final[Mapping[str, Claim]] = {
    "TASK_COMPLETE": "done",
    "VERIFICATION_PASS": "done",
    "VERIFICATION_FAIL": "failed",
    "ALL_TASKS_COMPLETE": "done",
}
"""Literal words of smart-ralph's format."""
_CONTRADICTION = re.compile(
    r"(?i)\b(?:requires\s+manual|cannot\s+be\s+automated|could\s+not\s+complete|needs\s+human|manual\s+intervention)\b"
)
"""Literal phrases of smart-ralph's format."""
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})")
_SIGNAL_LINE_CHARS = 80
"""A line with a signal holds one word and its decoration."""


def _signal_lines(lines: Sequence[str]) -> Iterator[tuple[int, Claim]]:
    """Yield the signals that stand alone on a line, each with its line number."""
    for number, line in _spoken_lines(lines):
        if len(line) >= _SIGNAL_LINE_CHARS:
            continue
        word = line.strip(" *_`#.!:\u2705\ufe0f").replace("\\_", "_")
        if word in _SIGNALS:
            yield number, _SIGNALS[word]


def _contradictions_in(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the phrases that deny success, but not those that are denied themselves."""
    spoken = " ".join(line for _, line in _spoken_lines(lines))
    phrases: dict[str, None] = {}
    for match in _CONTRADICTION.finditer(spoken):
        if not _is_denied(spoken, match.start()):
            phrases[" ".join(match[0].lower().split())] = None
    return tuple(phrases)


def _spoken_lines(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the agent's own lines with their numbers: no code and no quotations."""
    open_fence = ""
    for number, line in enumerate(lines):
        fence = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if fence and not open_fence:
            open_fence = fence[0].strip()
        elif fence and line.strip().startswith(open_fence) and not line.strip().strip("`~"):
            open_fence = ""
        elif not open_fence and not line.lstrip().startswith(">"):
            yield number, line


def _approach_in(lines: Sequence[str]) -> str:
    for label in ("APPROACH", "Attempted fix"):
        pattern = re.compile(rf"[\s*_#>-]{{0,20}}{label}\**:\**\s*(\S.*)")
        for line in reversed(lines):
            if label in line and (match := pattern.match(line[:LONGEST_LINE])):
                return match[1].strip().removesuffix("**").strip()[:APPROACH_CHARS]
    return ""


# --- failure reports of smart-ralph: "Task X.Y: name FAILED", then fields

_FAILED_LINE = re.compile(r"[\s#*_\u274c\ufe0f-]{0,20}Task\s+([A-Za-z0-9][\w.-]{0,63}?)\s*:(.*)\bFAILED\b")
_DENIED_FAILURE = re.compile(r"(?i)\b(?:0|no|none|not|never|nothing)\s*$")
_FIELD = re.compile(r"(?i)[-*\u2022]?\s*\**(Error|Attempted fix|Status)\**\s*:\**\s*(.*)")
_OTHER_FIELD = re.compile(r"[-*\u2022]\s+\**[A-Z][\w ]{0,30}\**:")
_MAX_LINES_TO_FIELD = 20
"""The largest distance between a FAILED line and its fields, in lines."""
_DENIED_FAILURE_CHARS = 120


def _failure_reports(lines: Sequence[str], task: str) -> list[tuple[range, FailureReport]]:
    """Return the failure reports of one task, or of all, each with the lines that it covers."""
    reports: list[tuple[range, FailureReport]] = []
    starts = [number for number, line in enumerate(lines) if "FAILED" in line and _failed_task(line)]
    for start, next_start in pairwise([*starts, len(lines)]):
        name = _failed_task(lines[start])
        if not task or name == task:
            fields, end = _report_fields(lines, start + 1, next_start)
            reports.append((range(start, end), _as_report(name, fields)))
    return reports


def _failed_task(line: str) -> str:
    """Return the id of the task that the line declares failed, or an empty string."""
    match = _FAILED_LINE.match(line[:LONGEST_LINE])
    if not match or _DENIED_FAILURE.search(match[2][-_DENIED_FAILURE_CHARS:]):
        return ""
    return match[1] if match[1] == "VF" or any(map(str.isdigit, match[1])) else ""


def _report_fields(lines: Sequence[str], start: int, stop: int) -> tuple[dict[str, str], int]:
    """Return the fields below a FAILED line, and the line on which they end. A field may have several lines."""
    fields: dict[str, list[str]] = {}
    name, field_indent, number = "", 0, start
    while number < stop:
        line = lines[number][:LONGEST_LINE]
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if field := _FIELD.match(text):
            name, field_indent = field[1].lower(), indent
            fields[name] = [field[2]]
        elif _FENCE.match(text) or _ends_at_blank(lines, number, stop, skip_text=not fields):
            break
        elif _OTHER_FIELD.match(text) and indent <= field_indent:
            name = ""
        elif name and text and text not in _SIGNALS:
            fields[name].append(text)
        number += 1
    return {name: "\n".join(value).strip()[:FIELD_CHARS] for name, value in fields.items()}, number


def _ends_at_blank(lines: Sequence[str], number: int, stop: int, *, skip_text: bool) -> bool:
    """Return whether the fields end here: the line is blank and no other field follows it."""
    is_blank = not lines[number][:LONGEST_LINE].strip()
    return is_blank and not _field_follows(lines, number + 1, stop, skip_text=skip_text)


def _field_follows(lines: Sequence[str], start: int, stop: int, *, skip_text: bool) -> bool:
    """Return whether a field follows after blank lines. With `skip_text` other text may stand before it."""
    for line in lines[start : min(stop, start + _MAX_LINES_TO_FIELD)]:
        text = line[:LONGEST_LINE].strip()
        if _FIELD.match(text):
            return True
        if text and (not skip_text or text in _SIGNALS or _FENCE.match(text)):
            return False
    return False


def _as_report(task: str, fields: Mapping[str, str]) -> FailureReport:
    return FailureReport(
        task_id=task,
        error=fields.get("error") or NO_ERROR,
        attempted_fix=fields.get("attempted fix") or NO_FIX,
        status=fields.get("status") or NO_STATUS,
    )


# --- files that the agent claims to have written

_PATH = re.compile(r"(?<![\w./@:-])(?:\./)?[\w.@+-]+(?:/[\w.@+-]+)*\.[A-Za-z][A-Za-z0-9]{0,7}(?![\w/(])")
_NO_PATH = re.compile(r"v?\d+(?:\.\w+)*|(?:e\.g|i\.e|etc)\b.*|.*\.(?:com|org|net|io)")
_CLAIMS_CHANGE = re.compile(
    r"\b(?:created|creates|added|adds|wrote|written|updated|modified|changed|edited|implemented|fixed|new file)\b",
    re.IGNORECASE,
)


def claimed_files(text: str) -> tuple[str, ...]:
    """Return the paths that a text claims to have made or changed, in the order of the text."""
    lines = (line for line in text.splitlines() if _CLAIMS_CHANGE.search(line))
    paths = (match.group().removeprefix("./") for line in lines for match in _PATH.finditer(line))
    return tuple(dict.fromkeys(path for path in paths if not _NO_PATH.fullmatch(path)))


def claimed_files_missing(text: str, present: Collection[str], deleted: Collection[str] = ()) -> tuple[str, ...]:
    """Return the claimed files that the tree does not hold and the change did not delete."""
    existing = {*present, *deleted}
    names = {path.rpartition("/")[2] for path in existing}
    return tuple(path for path in claimed_files(text) if path not in existing and path.rpartition("/")[2] not in names)
