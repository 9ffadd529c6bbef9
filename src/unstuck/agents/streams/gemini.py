"""Gemini CLI's `stream-json`."""

import re

from unstuck.agents.faults import fault
from unstuck.agents.streams.session import Reading
from unstuck.agents.streams.stream import Event, Format, error_of, given

DENIED = re.compile(r"(?i)denied by (?:policy|user)|not allowed by policy|requires (?:user )?(?:approval|confirmation)")
MESSAGE_CHARS = 4_000


def take(reading: Reading, event: Event) -> bool:
    match event.get("type"):
        case "init":
            reading.session = str(event.get("session_id") or "")
        case "message":
            _message(reading, event)
        case "tool_use":
            reading.call(
                str(event.get("tool_name") or ""), given(event.get("parameters")), str(event.get("tool_id") or "")
            )
        case "tool_result":
            ok = event.get("status") == "success"
            reading.returned(str(event.get("tool_id")), ok=ok)
            if not ok and DENIED.search(f"{event.get('error')} {event.get('output')}"):
                reading.deny(str(event.get("tool_id")))
        case "error":
            reading.fail(error_of(event, reading.at) or fault(str(event.get("message") or ""), at=reading.at))
        case "result":
            _result(reading, event)
        case _:
            return False
    return True


def _message(reading: Reading, event: Event) -> None:
    if event.get("role") != "assistant":
        return
    text, before = str(event.get("content") or ""), reading.message if reading.in_words else ""
    reading.say(text)
    if event.get("delta") and before and text.strip():
        reading.message = (before + text)[-MESSAGE_CHARS:]


def _result(reading: Reading, event: Event) -> None:
    stats = event.get("stats") or {}
    reading.count(stats.get("input_tokens"), stats.get("output_tokens"))
    if event.get("status") == "success":
        reading.finish(ok=True)
        return
    reading.fail(error_of(event, reading.at))
    reading.finish(ok=False)


FORMAT = Format(take=take)
