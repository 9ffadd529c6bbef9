"""Read single JSON values that agents print: events of a stream, or the result of a phase.

The text is not trusted: whatever it holds, nothing in here raises an error.
"""

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, cast

from unstuck.model.text import one_line

JsonEvent = Mapping[str, Any]

LONGEST_LINE = 4_000_000
EVENT_START = '{"type":'
LAST_SECOND = 10**11
"""The year 5138. A larger number is in milliseconds, or no time at all."""
ARGUMENT_CHARS = 1_000

SHOWN_ARGUMENTS: Final = ("command", "cmd", "file_path", "filePath", "path", "pattern", "query", "url")
"""The argument of a tool that is shown to the user: the first of these that the call has."""
TOOL_CALL_FIELDS: Final = (
    ("name", "input"),
    ("tool_name", "parameters"),
    ("tool", "input"),
    ("toolName", "arguments"),
    ("name", "arguments"),
)
"""The fields in which agents write the tool and its arguments."""
EXIT_CODE = re.compile(
    r"(?im)^(?:Exit code:? |Command failed with exit code: |.{0,2}Command exited with code |<?shellId: \d+ completed with exit code )(-?\d+)\b"
)
"""The line with which a tool's result states its exit code."""


def event_of(line: str) -> JsonEvent | None:
    """Return the JSON object on a line, or None.

    Where an agent has printed other text into the line, the object is the end of it.
    """
    text = line.strip()
    # The quotes of a text inside an event are escaped, so EVENT_START cannot match there.
    for start in (0, text.rfind(EVENT_START)):
        if start >= 0 and text.startswith("{", start) and len(text) <= LONGEST_LINE:
            with suppress(ValueError, RecursionError):
                return cast("JsonEvent", json.loads(text[start:]))
    return None


def timestamp_of(value: Any) -> float | None:
    """Return the seconds since 1970 of a time that an event states, or None if it is no time."""
    try:
        seconds = datetime.fromisoformat(value).timestamp() if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    seconds = seconds / 1000 if seconds > LAST_SECOND else seconds
    return seconds if 0 < seconds < LAST_SECOND else None


def argument_summary(arguments: object) -> str:
    """Return the arguments of a tool call as one line: the command or the file, else all of them."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return str(arguments)
    if isinstance(arguments, dict):
        for name in SHOWN_ARGUMENTS:
            if isinstance(arguments.get(name), str):
                return str(arguments[name])
        commands = arguments.get("commands")
        if isinstance(commands, list):
            return "; ".join(map(str, commands))
    return one_line(json.dumps(arguments, ensure_ascii=False), ARGUMENT_CHARS) if arguments else ""


def text_of(content: object) -> str:
    """Return the text of a message: a string, or a list with parts of text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part for part in content if isinstance(part, dict) and part.get("type") == "text")
    return "\n".join(str(part.get("text", "")) for part in parts)


def stated_exit_code(text: str) -> int | None:
    """Return the exit code that a tool's result states at its beginning or end."""
    codes = EXIT_CODE.findall(f"{text[:200]}\n{text[-500:]}")
    return int(codes[-1]) if codes else None


# --- one line for a person who watches the agent

_TEXT_FIELD = re.compile(
    r'"(?:text|command|file_path|filePath|message|content|deltaContent)" ?: ?"((?:[^"\\\n]|\\.){3,300})'
)
_USER_EVENT = re.compile(r'"(?:type|role)" ?: ?"user"')
"""An event with our own message, or with the answer of a tool."""
_MAX_DEPTH = 6
_GIST_CHARS = 200


def gist(line: str) -> str:
    """Return what a user should see of a line: the tool with its command or file, or the words.

    The line may be an incomplete event.
    """
    if not line.lstrip().startswith("{"):
        return line
    if _USER_EVENT.search(line[:400]):
        return ""
    try:
        call = _tool_call_in(json.loads(line), _MAX_DEPTH)
    except (ValueError, RecursionError):
        call = ""
    if call:
        return one_line(call, _GIST_CHARS)
    field = _TEXT_FIELD.search(line)
    return one_line(field[1].replace("\\n", " ").replace('\\"', '"'), _GIST_CHARS) if field else ""


def _tool_call_in(event: object, depth: int) -> str:
    """Return the tool call anywhere in an event, such as `Bash pytest -q`."""
    if not depth:
        return ""
    if isinstance(event, list):
        calls = (_tool_call_in(item, depth - 1) for item in event)
        return next(filter(None, calls), "")
    if not isinstance(event, dict):
        return ""
    for name, arguments in TOOL_CALL_FIELDS:
        if isinstance(event.get(name), str) and isinstance(event.get(arguments), dict | str):
            return f"{event[name]} {argument_summary(event[arguments])}"
    return _tool_call_in(list(event.values()), depth)


# --- the result JSON of a phase, as autobuild's sub-agents print it


LONGEST_TEXT = 1_000_000
"""Only the end of the output is read: an agent sums up its work there."""
REASON_CHARS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseResult:
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
        """True if it counts fewer completed tasks than there are, whatever its status is."""
        return self.tasks_completed < self.tasks_total


@dataclass(frozen=True, slots=True)
class UnreadableResult:
    """Text that looks like a result and cannot be read: autobuild's parse_error."""

    reason: str


_PHASE_ID = re.compile(r'"phase_id"\s*:')
_STATE_FILE_FIELD: Final = "phase_name"
"""Only our state file has this field. An agent that prints that file reports no result."""
_MAX_PLACES = 3
_MAX_BRACES = 10


def read_result(text: str) -> PhaseResult | UnreadableResult | None:
    """Return the result in a text: from a ```json fence, or from any object that holds "phase_id"."""
    return find_result(text[-LONGEST_TEXT:].split("\n"))[0]


def find_result(lines: Sequence[str]) -> tuple[PhaseResult | UnreadableResult | None, int]:
    """Return the result and the number of the line on which it ends."""
    fenced = [(end, body) for end, body in _json_fences(lines) if _PHASE_ID.search(body)]
    if fenced:
        end, body = fenced[-1]
        return _as_result(load_object(body)), end
    text = "\n".join(lines)
    first_problem: UnreadableResult | None = None
    for field in reversed(deque(_PHASE_ID.finditer(text), maxlen=_MAX_PLACES)):
        value = _object_around(text, field.start())
        if isinstance(value, dict):
            return _as_result(value), text.count("\n", 0, field.start())
        first_problem = first_problem or value
    return first_problem, len(lines)


def _json_fences(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the text of each ```json fence with the number of its last line."""
    body: list[str] | None = None
    number = 0
    for number, line in enumerate(lines):
        text = line.strip()
        if body is None and text.lower() == "```json":
            body = []
        elif body is not None and text == "```":
            yield number, "\n".join(body)
            body = None
        elif body is not None:
            body.append(line)
    if body is not None:
        yield number, "\n".join(body)


def _object_around(text: str, place: int) -> dict[str, Any] | UnreadableResult | None:
    """Load the object around a place. The braces before it are tried, the nearest first."""
    problem: UnreadableResult | None = None
    brace = place
    for attempt in range(_MAX_BRACES):
        brace = text.rfind("{", 0, brace)
        if brace < 0:
            break
        value = load_object(text[brace:], partly=True)
        if isinstance(value, dict) and "phase_id" in value:
            return value
        if attempt == 0 and isinstance(value, UnreadableResult):
            problem = value
    return problem


def load_object(text: str, *, partly: bool = False) -> dict[str, Any] | UnreadableResult:
    """Load a JSON object. With `partly`, other text may follow it."""
    try:
        value = json.JSONDecoder().raw_decode(text)[0] if partly else json.loads(text)
    except (ValueError, RecursionError) as error:
        return UnreadableResult(f"not JSON: {error}"[:REASON_CHARS])
    return value if isinstance(value, dict) else UnreadableResult("the JSON is no object")


_FIELD_TYPES: Final[tuple[tuple[str, tuple[type, ...]], ...]] = (
    ("phase_id", (str, int)),
    ("status", (str,)),
    ("tasks", (dict,)),
    ("quality_gates", (dict,)),
    ("commit_message", (str, type(None))),
    ("files", (dict,)),
    ("plan_updated", (bool,)),
)
"""The fields that autobuild requires, with their types."""


def _as_result(value: dict[str, Any] | UnreadableResult) -> PhaseResult | UnreadableResult | None:
    """Check the fields that a result must have. Return None for an object that is no result."""
    if isinstance(value, UnreadableResult):
        return value
    if _STATE_FILE_FIELD in value:
        return None
    for name, types in _FIELD_TYPES:
        if not isinstance(value.get(name, ...), types):
            return UnreadableResult(f'"{name}" of the result is missing, or of another type')
    status, tasks, files = (value[name] for name in ("status", "tasks", "files"))
    if status not in ("complete", "failed"):
        return UnreadableResult(f'"status" of the result is {status[:40]!r}, not "complete" or "failed"')
    counts = [tasks.get(name) for name in ("total", "completed")]
    if not all(isinstance(count, int) for count in counts):
        return UnreadableResult('"tasks" of the result needs the numbers "total" and "completed"')
    lists = [files.get(name) or [] for name in ("created", "modified", "deleted")]
    if not all(map(_is_list_of_texts, lists)):
        return UnreadableResult('"files" of the result holds no lists of paths')
    error_type, error_message = _error_in(value.get("error"))
    return PhaseResult(
        phase_id=str(value["phase_id"]),
        status=status,
        tasks_total=counts[0],
        tasks_completed=counts[1],
        created=tuple(lists[0]),
        modified=tuple(lists[1]),
        error_type=error_type,
        error_message=error_message[:REASON_CHARS],
    )


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _error_in(error: object) -> tuple[str, str]:
    """Return the type and the message of an error, which is an object or a text."""
    if isinstance(error, dict):
        return str(error.get("type") or ""), str(error.get("message") or "")
    return "", error if isinstance(error, str) else ""
