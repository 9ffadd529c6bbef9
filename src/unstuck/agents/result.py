"""Read the result JSON of a phase, as autobuild's sub-agents print it, from text that anybody may have written."""

import json
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

LONGEST_TEXT = 1_000_000
DEEPEST_JSON = 64
TOLD_CHARS = 4_000
_KEY = re.compile(r'"phase_id"\s*:')
_STATE_FILE = "phase_name"
"""What a state file of ours has and a result has not: an agent that prints one reports nothing."""
_MOST_PLACES = 3
_MOST_BRACES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a phase, as autobuild's sub-agents print it."""

    phase_id: str
    status: Literal["complete", "failed"]
    tasks_total: int
    tasks_completed: int
    gates: tuple[tuple[str, bool], ...]
    commit_message: str
    created: tuple[str, ...]
    modified: tuple[str, ...]
    deleted: tuple[str, ...]
    plan_updated: bool
    error_type: str = ""
    error_message: str = ""
    error_details: str = ""

    @property
    def unfinished(self) -> bool:
        """Whether it counts fewer tasks done than there are, whatever its status says."""
        return self.tasks_completed < self.tasks_total


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A result that was meant and cannot be read: autobuild's parse_error."""

    reason: str


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
    """Load JSON that anybody may have written: bounded in depth, never raising."""
    if _depth(text) > DEEPEST_JSON:
        return Unreadable(f"the JSON is nested deeper than {DEEPEST_JSON}")
    try:
        value = json.JSONDecoder().raw_decode(text)[0] if partly else json.loads(text)
    except (ValueError, RecursionError) as error:
        return Unreadable(f"not JSON: {error}"[:TOLD_CHARS])
    return value if isinstance(value, dict) else Unreadable("the JSON is no object")


def _depth(text: str) -> int:
    """Count how deep brackets open before they close, strings included: a little too deep is deep enough."""
    depth = deepest = 0
    for bracket in re.finditer(r"[\[\]{}]", text):
        depth += 1 if bracket[0] in "[{" else -1
        deepest = max(deepest, depth)
        if deepest > DEEPEST_JSON or (depth <= 0 and deepest):
            break
    return deepest


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
        if name not in value:
            return Unreadable(f'the result has no "{name}"')
        if not isinstance(value[name], sorts):
            return Unreadable(f'"{name}" of the result is a {type(value[name]).__name__}')
    status, tasks, gates, files = (value[name] for name in ("status", "tasks", "quality_gates", "files"))
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
        gates=tuple((name, isinstance(gate, dict) and gate.get("passed") is True) for name, gate in gates.items()),
        commit_message=value["commit_message"] or "",
        created=tuple(lists[0]),
        modified=tuple(lists[1]),
        deleted=tuple(lists[2]),
        plan_updated=value["plan_updated"],
        error_type=str(told.get("type") or ""),
        error_message=str(told.get("message") or "")[:TOLD_CHARS],
        error_details=str(told.get("details") or "")[:TOLD_CHARS],
    )
