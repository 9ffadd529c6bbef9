"""Read single JSON events that coding agents print."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, cast

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
