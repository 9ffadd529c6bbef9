"""Read what an agent says of its work. A claim is a fact about the agent, never about the work."""

import json
import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from unstuck.model.outcome import Claim, Ended, Outcome
from unstuck.model.text import shown

LONGEST_TEXT = 1_000_000
"""What an agent says of its work stands at the end of what it prints."""
LONGEST_LINE = 2_000
APPROACH_CHARS = 300
FIELD_CHARS = 4_000
_PATH = re.compile(r"(?<![\w./@:-])(?:\./)?[\w.@+-]+(?:/[\w.@+-]+)*\.[A-Za-z][A-Za-z0-9]{0,7}(?![\w/(])")
_NO_PATH = re.compile(r"v?\d+(?:\.\w+)*|(?:e\.g|i\.e|etc)\b.*|.*\.(?:com|org|net|io)")
_CLAIMS = re.compile(
    r"\b(?:created|creates|added|adds|wrote|written|updated|modified|changed|edited|implemented|fixed|new file)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The failure object of smart-ralph."""

    task_id: str
    error: str
    attempted_fix: str
    status: str


NO_MARKER = "Task did not complete"
NO_ERROR = "Task execution failed"
NO_FIX = "No fix attempted"  # smart-ralph's table of fields says "No previous fix attempted"; its parser decides
NO_STATUS = "Unknown status"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a phase, as autobuild's sub-agents print it."""

    phase_id: str
    status: Literal["complete", "failed"]
    tasks_total: int
    tasks_completed: int
    created: tuple[str, ...]
    modified: tuple[str, ...]
    error_type: str = ""
    error_message: str = ""

    @property
    def unfinished(self) -> bool:
        """Whether it counts fewer tasks done than there are, whatever its status says."""
        return self.tasks_completed < self.tasks_total


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A result that was meant and cannot be read: autobuild's parse_error."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """All that a session's output says of its work."""

    claim: Claim
    failure: Report | None = None
    result: Result | None = None
    contradictions: tuple[str, ...] = ()
    """Phrases beside a claim of success that deny it."""
    approach: str = ""
    problem: str = ""
    """Why the result could not be read."""

    @property
    def denied(self) -> bool:
        """Whether something in it speaks against a claim of success."""
        unfinished = self.result is not None and self.result.unfinished
        return bool(self.contradictions or self.problem or unfinished)


def claim(ended: Ended) -> Claim:
    """Say what the session claims: an explicit failure, or done by ending well, or nothing."""
    said = statement(ended.tail)
    if said.claim == "failed":
        return "failed"
    return "done" if ended.ok and not said.denied else "none"


def approach(text: str) -> str:
    """Return the last approach that the agent named, or the last fix that it attempted, as one bounded line."""
    return _approach(_lines(text))


def statement(text: str, task: str = "") -> Statement:
    """Read the output of a session. The last word counts."""
    lines = _lines(text)
    reports = _reports(lines, task)
    found, place = find_result(lines)
    marks: list[tuple[int, Claim]] = [(where.stop, "failed") for where, _ in reports]
    inside = {at for where, _ in reports for at in where}
    marks += [(at, said) for at, said in _signals(lines) if at not in inside]
    if isinstance(found, Result):
        marks.append((place, "done" if found.status == "complete" else "failed"))
    said = max(marks, default=(0, "none"))[1]
    return Statement(
        claim=said,
        failure=reports[-1][1] if reports and said == "failed" else None,
        result=found if isinstance(found, Result) else None,
        contradictions=_contradictions(lines) if said == "done" else (),
        approach=_approach(lines),
        problem=found.reason if isinstance(found, Unreadable) else "",
    )


def says_done(outcome: Outcome) -> bool:
    """Whether a claim of success was read in what the session said, and not only in its exit code."""
    if outcome.claim != "done" or outcome.end == "done_claimed":
        return outcome.claim == "done"
    said = outcome.words
    return statement(said).claim == "done" or any(
        not re.search(_DENIED, said[max(0, found.start() - 40) : found.start()]) for found in _DONE.finditer(said)
    )


def last_question(text: str) -> str:
    """Return the question that the agent's last paragraph asks, in its own words; empty if it asks nothing.

    One that is not the last sentence is asked if what follows waits for an answer, or if it is put to somebody and what
    follows does not answer it.
    """
    spoken = [line.strip() for _, line in _spoken(_lines(text)) if not _OURS.match(line)]
    paragraph = "\n".join(spoken).strip().rpartition("\n\n")[2][-FIELD_CHARS:]
    for found in reversed(list(_QUESTION.finditer(paragraph))):
        rest = paragraph[found.end() :]
        if not rest or _WAITS.search(rest) or (_PUT.search(found[0]) and not _ANSWERS.search(rest)):
            return found[0].strip(" *_`")
    return ""


def asks(text: str) -> str:
    """Return the question that an agent stopped for: it needs a permission or a decision, and does not just offer more."""
    found = last_question(text)
    if not found or statement(text).claim != "none" or not _NEEDS.search(found):
        return ""
    return "" if _OFFERS.search(found) and not re.search(r"(?i)\bor\b", found) else found


_OURS = re.compile(r"\s*(?:APPROACH|COST): ")
_QUESTION = re.compile(r"(?:(?<=[.!?:] )|^)[^.!?\n]*(?:\.\w[^.!?\n]*)*\?[*_`)\"']*(?:\s+|\Z)", re.MULTILINE)
_WAITS = re.compile(r"(?i)\b(?:answer|reply|decision|go on|waiting|wait for|until you|without (?:you|that|this|it))\b")
_PUT = re.compile(
    r"(?i)\b(?:should|shall|may|must) (?:I|we|it|the)\b|\b(?:do|would|could|can) you\b|\byou (?:want|prefer)\b"
)
_ANSWERS = re.compile(
    r"(?i)\bI(?: have|'ve|\u2019ve|'ll| will| went| chose| decided| used| took| picked| left| kept| did| made)\b|\bassum|\bfor now\b"
)
_DONE = re.compile(
    r"(?i)(?:\b|_)(?:done|completed?|finished|implemented|fixed|works|ready)\b|\b(?:tests?|checks?) (?:now )?pass(?:es|ed)?\b"
)
_NEEDS = re.compile(
    r"(?i)\b(?:should|shall|may|can|could|must)\b|\bdo (?:you|I) (?:want|need|prefer|approve|agree|allow)\b|\bwould you\b"
    r"|\b(?:which|what|where|who|how|whose)\b|\b(?:permission|approv|confirm|allow|proceed|okay|ok)\w*\b|\bis (?:it|that|this)\b"
)
_OFFERS = re.compile(
    r"(?i)\b(?:would you like|do you want|want|shall I|should I|may I|can I)\b(?: me)?(?: to)? (?:\w+ )?"
    r"(?:continue|proceed|go on|keep going|also|help|explain|start|do (?:that|this|anything))\b|anything else"
)


def contradictions(text: str) -> tuple[str, ...]:
    """Return the phrases that deny success, in whatever an agent says of its work."""
    return _contradictions(_lines(text))


def failure_report(text: str, task: str = "") -> Report:
    """Parse the output of a session that did not complete; what it does not say gets smart-ralph's default texts."""
    reports = _reports(_lines(text), task)
    return reports[-1][1] if reports else _report(task, {"error": NO_MARKER})


def _lines(text: str) -> list[str]:
    return shown(text[-LONGEST_TEXT:]).split("\n")


# --- words on a line of their own ------------------------------------------------------------------

_WORDS: Mapping[str, Claim] = {
    "TASK_COMPLETE": "done",
    "VERIFICATION_PASS": "done",
    "VERIFICATION_FAIL": "failed",
    "ALL_TASKS_COMPLETE": "done",
}
_CONTRADICTION = r"requires\s+manual|cannot\s+be\s+automated|could\s+not\s+complete|needs\s+human|manual\s+intervention"
_DENIED = r"(?i)\b(?:no|not|without|never|nothing|\w+n['\u2019]t)\W+(?:\w+\W+){0,2}$"
_FENCE = r"\s*(?:`{3,}|~{3,})"


def _signals(lines: Sequence[str]) -> Iterator[tuple[int, Claim]]:
    """Find the words that stand alone on a line, outside fences and quotations."""
    for at, line in _spoken(lines):
        word = line.strip(" *_`#.!:\u2705\ufe0f").replace("\\_", "_") if len(line) < 80 else ""  # noqa: PLR2004  # one word and its ornaments
        if word in _WORDS:
            yield at, _WORDS[word]


def _contradictions(lines: Sequence[str]) -> tuple[str, ...]:
    """Find phrases that deny success, unless they are denied themselves ("no manual intervention")."""
    spoken = " ".join(line for _, line in _spoken(lines))
    found: dict[str, None] = {}
    for match in re.finditer(rf"(?i)\b(?:{_CONTRADICTION})\b", spoken):
        if not re.search(_DENIED, spoken[max(0, match.start() - 40) : match.start()]):
            found[" ".join(match[0].lower().split())] = None
    return tuple(found)


def _spoken(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the agent's own lines: no code and no quotation."""
    fence = ""
    for at, line in enumerate(lines):
        mark = re.match(_FENCE, line) if "```" in line or "~~~" in line else None
        if mark and not fence:
            fence = mark[0].strip()
        elif mark and line.strip().startswith(fence) and not line.strip().strip("`~"):
            fence = ""
        elif not fence and not line.lstrip().startswith(">"):
            yield at, line


def _approach(lines: Sequence[str]) -> str:
    for label in ("APPROACH", "Attempted fix"):
        shape = re.compile(rf"[\s*_#>-]{{0,20}}{label}\**:\**\s*(\S.*)")
        for line in reversed(lines):
            if label in line and (found := shape.match(line[:LONGEST_LINE])):
                return found[1].strip().removesuffix("**").strip()[:APPROACH_CHARS]
    return ""


# --- "Task X.Y: name FAILED" -----------------------------------------------------------------------

_MARKER = r"[\s#*_\u274c\ufe0f-]{0,20}Task\s+([A-Za-z0-9][\w.-]{0,63}?)\s*:(.*)\bFAILED\b"
_DENIED_MARKER = r"(?i)\b(?:0|no|none|not|never|nothing)\s*$"
_FIELD = r"(?i)[-*\u2022]?\s*\**(Error|Attempted fix|Status)\**\s*:\**\s*(.*)"
_OTHER_FIELD = r"[-*\u2022]\s+\**[A-Z][\w ]{0,30}\**:"
_FAR = 20
"""How many lines may stand between a marker and its fields."""
_SHORT = 120
"""Ids are known by their shape only where the marker stands near the start of the line."""


def _reports(lines: Sequence[str], task: str) -> list[tuple[range, Report]]:
    """Read every failure of a task, or of all, in order, each with the lines that it covers."""
    found: list[tuple[range, Report]] = []
    starts = [at for at, line in enumerate(lines) if "FAILED" in line and _marker(line)]
    for at, following in pairwise([*starts, len(lines)]):
        name = _marker(lines[at])
        if not task or name == task:
            fields, end = _read_fields(lines, at + 1, following)
            found.append((range(at, end), _report(name, fields)))
    return found


def _marker(line: str) -> str:
    """Return the id of the task that the line declares failed, or ""."""
    found = re.match(_MARKER, line[:LONGEST_LINE])
    if not found or re.search(_DENIED_MARKER, found[2][-_SHORT:]):
        return ""
    return found[1] if found[1] == "VF" or any(map(str.isdigit, found[1])) else ""


def _read_fields(lines: Sequence[str], start: int, stop: int) -> tuple[dict[str, str], int]:
    """Read the fields below a marker, each of which may go on over several lines; return where they end."""
    fields: dict[str, list[str]] = {}
    name, indent, at = "", 0, start
    while at < stop:
        line = lines[at][:LONGEST_LINE]
        bare = line.strip()
        margin = len(line) - len(line.lstrip())
        if found := re.match(_FIELD, bare):
            name, indent = found[1].lower(), margin
            fields[name] = [found[2]]
        elif re.match(_FENCE, bare) or (not bare and not _field_follows(lines, at + 1, stop, prose=not fields)):
            break
        elif re.match(_OTHER_FIELD, bare) and margin <= indent:
            name = ""
        elif name and bare and bare not in _WORDS:
            fields[name].append(bare)
        at += 1
    return {name: "\n".join(value).strip()[:FIELD_CHARS] for name, value in fields.items()}, at


def _field_follows(lines: Sequence[str], at: int, stop: int, *, prose: bool) -> bool:
    """Look for a field behind blank lines; behind prose, too, as long as there was no field yet."""
    for line in lines[at : min(stop, at + _FAR)]:
        bare = line[:LONGEST_LINE].strip()
        if re.match(_FIELD, bare):
            return True
        if bare and (not prose or bare in _WORDS or re.match(_FENCE, bare)):
            return False
    return False


def _report(task: str, fields: Mapping[str, str]) -> Report:
    return Report(
        task_id=task,
        error=fields.get("error") or NO_ERROR,
        attempted_fix=fields.get("attempted fix") or NO_FIX,
        status=fields.get("status") or NO_STATUS,
    )


# --- the result JSON of a phase, as autobuild's sub-agents print it, from text that anybody may have written

TOLD_CHARS = 4_000
_KEY = re.compile(r'"phase_id"\s*:')
_STATE_FILE = "phase_name"
"""What a state file of ours has and a result has not: an agent that prints one reports nothing."""
_MOST_PLACES = 3
_MOST_BRACES = 10


def read_result(text: str) -> Result | Unreadable | None:
    """Find the result: in a ```json fence, else any object that holds "phase_id"; None where there is none."""
    return find_result(text[-LONGEST_TEXT:].split("\n"))[0]


def find_result(lines: Sequence[str]) -> tuple[Result | Unreadable | None, int]:
    """Return the result and the line on which it ends."""
    fenced = [(at, body) for at, body in _json_fences(lines) if _KEY.search(body)]
    if fenced:
        at, body = fenced[-1]
        return _checked(load_object(body)), at
    text = "\n".join(lines)
    first: Unreadable | None = None
    for key in reversed(deque(_KEY.finditer(text), maxlen=_MOST_PLACES)):
        found = _around(text, key.start())
        if isinstance(found, dict):
            return _checked(found), text.count("\n", 0, key.start())
        first = first or found
    return first, len(lines)


def _json_fences(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    body: list[str] | None = None
    at = 0
    for at, line in enumerate(lines):
        bare = line.strip()
        if body is None and bare.lower() == "```json":
            body = []
        elif body is not None and bare == "```":
            yield at, "\n".join(body)
            body = None
        elif body is not None:
            body.append(line)
    if body is not None:
        yield at, "\n".join(body)


def _around(text: str, at: int) -> dict[str, Any] | Unreadable | None:
    """Load the object around a place: try the braces before it, the nearest first; None where there is no brace."""
    found: Unreadable | None = None
    brace = at
    for attempt in range(_MOST_BRACES):
        brace = text.rfind("{", 0, brace)
        if brace < 0:
            break
        loaded = load_object(text[brace:], partly=True)
        if isinstance(loaded, dict) and "phase_id" in loaded:
            return loaded
        if attempt == 0 and isinstance(loaded, Unreadable):
            found = loaded
    return found


def load_object(text: str, *, partly: bool = False) -> dict[str, Any] | Unreadable:
    """Load JSON that anybody may have written; never raises."""
    try:
        value = json.JSONDecoder().raw_decode(text)[0] if partly else json.loads(text)
    except (ValueError, RecursionError) as error:
        return Unreadable(f"not JSON: {error}"[:TOLD_CHARS])
    return value if isinstance(value, dict) else Unreadable("the JSON is no object")


_SHAPE: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("phase_id", (str, int)),
    ("status", (str,)),
    ("tasks", (dict,)),
    ("quality_gates", (dict,)),
    ("commit_message", (str, type(None))),
    ("files", (dict,)),
    ("plan_updated", (bool,)),
)


def _checked(value: dict[str, Any] | Unreadable) -> Result | Unreadable | None:
    """Check the fields that a result must have; None for an object that is no result."""
    if isinstance(value, Unreadable):
        return value
    if _STATE_FILE in value:
        return None
    for name, sorts in _SHAPE:
        if not isinstance(value.get(name, ...), sorts):
            return Unreadable(f'"{name}" of the result is missing, or of another type')
    status, tasks, files = (value[name] for name in ("status", "tasks", "files"))
    if status not in ("complete", "failed"):
        return Unreadable(f'"status" of the result is {status[:40]!r}, not "complete" or "failed"')
    counts = [tasks.get(name) for name in ("total", "completed")]
    if not all(isinstance(count, int) for count in counts):
        return Unreadable('"tasks" of the result needs the numbers "total" and "completed"')
    lists = [files.get(name) or [] for name in ("created", "modified", "deleted")]
    if not all(isinstance(paths, list) and all(isinstance(path, str) for path in paths) for paths in lists):
        return Unreadable('"files" of the result holds no lists of paths')
    error = value.get("error")
    told = error if isinstance(error, dict) else {"message": error} if isinstance(error, str) else {}
    return Result(
        phase_id=str(value["phase_id"]),
        status=status,
        tasks_total=counts[0],
        tasks_completed=counts[1],
        created=tuple(lists[0]),
        modified=tuple(lists[1]),
        error_type=str(told.get("type") or ""),
        error_message=str(told.get("message") or "")[:TOLD_CHARS],
    )


def claimed_files(said: str) -> tuple[str, ...]:
    """Give the paths that a text claims to have made or changed, in the order of the text."""
    lines = (line for line in said.splitlines() if _CLAIMS.search(line))
    paths = (match.group().removeprefix("./") for line in lines for match in _PATH.finditer(line))
    return tuple(dict.fromkeys(path for path in paths if not _NO_PATH.fullmatch(path)))


def missing_files(said: str, present: Collection[str], gone: Collection[str] = ()) -> tuple[str, ...]:
    """Give the claimed files that the tree does not hold; `gone` are those that the change deleted."""
    there = {*present, *gone}
    names = {path.rpartition("/")[2] for path in there}
    return tuple(path for path in claimed_files(said) if path not in there and path.rpartition("/")[2] not in names)
