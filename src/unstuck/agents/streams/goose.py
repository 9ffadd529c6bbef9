"""`goose run --output-format stream-json`. Its errors are messages, and its exit code is 0 whatever happens."""

import re
from typing import Any

from unstuck.agents.faults import fault
from unstuck.agents.streams.session import Reading
from unstuck.agents.streams.stream import Event, Format, exit_code, given, text_of

ERROR = "Ran into this error: "
TRAILER = "\n\nPlease retry if you think"
LIMIT = re.compile(r"(?i)^I've reached the maximum number of actions")
BANNER = re.compile(r"\s(\d{8}_\d+) · /")
DENIED = re.compile(r"(?i)user (?:has )?declined|permission denied|denied permission")


def take(reading: Reading, event: Event) -> bool:
    match event.get("type"):
        case "message":
            message = event.get("message") or {}
            for part in message.get("content") or ():
                _part(reading, part, mine=message.get("role") == "assistant")
        case "complete":
            reading.count(event.get("input_tokens"), event.get("output_tokens"))
            if reading.fault is None:
                reading.finish(ok=True, reason=reading.reason)
        case "error":
            reading.fail(fault(str(event.get("error") or event.get("message") or ""), at=reading.at))
        case "notification" | "model_change":
            pass
        case _:
            return False
    return True


def _part(reading: Reading, part: Event, *, mine: bool) -> None:
    match part.get("type"):
        case "text" if mine:
            text = str(part.get("text") or "")
            if text.startswith(ERROR):
                reading.fail(fault(text.removeprefix(ERROR).partition(TRAILER)[0], at=reading.at))
                reading.message = text
            else:
                reading.say(text)
                reading.reason = "max_turns" if LIMIT.match(text) else None
        case "systemNotification":
            if part.get("notificationType") != "thinkingMessage":
                reading.fail(fault(str(part.get("msg") or ""), name=str(part.get("notificationType")), at=reading.at))
        case "toolRequest":
            call: dict[str, Any] = (part.get("toolCall") or {}).get("value") or {}
            reading.call(str(call.get("name") or ""), given(call.get("arguments")), str(part.get("id") or ""))
        case "toolResponse":
            _returned(reading, part)
        case _:
            pass


def _returned(reading: Reading, part: Event) -> None:
    result = part.get("toolResult") or {}
    value = result.get("value") or {}
    text = text_of(value.get("content")) or str(result.get("error") or "")
    structured = (value.get("structuredContent") or {}).get("exit_code")
    failed = bool(value.get("isError")) or result.get("status") == "error"
    code = structured if isinstance(structured, int) else exit_code(text) if failed else None
    reading.returned(str(part.get("id")), ok=not failed, exit_code=code)
    if failed and DENIED.search(text[:300]):
        reading.deny(str(part.get("id")))


def banner(reading: Reading, line: str) -> None:
    """Take in the one thing that only the banner tells: the name of the session."""
    found = BANNER.search(line)
    reading.session = found[1] if found and not reading.session else reading.session


FORMAT = Format(take=take, noise=banner)
