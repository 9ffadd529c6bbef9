"""kimi-code's `stream-json`: chat messages and meta lines. Its stderr repeats the tools' output, so only its own line counts."""

import re

from unstuck.agents.faults import fault
from unstuck.agents.streams.session import Reading
from unstuck.agents.streams.stream import Event, Format, exit_code, given, text_of

OWN_ERROR = re.compile(r"^error: (?P<error>.*)")


def take(reading: Reading, event: Event) -> bool:
    match event.get("role"):
        case "assistant":
            reading.say(text_of(event.get("content")))
            for call in event.get("tool_calls") or ():
                function = call.get("function") or {}
                reading.call(
                    str(function.get("name") or ""), given(function.get("arguments")), str(call.get("id") or "")
                )
        case "tool":
            code = exit_code(text_of(event.get("content")))
            reading.returned(str(event.get("tool_call_id")), ok=code in (None, 0), exit_code=code)
        case "meta":
            _meta(reading, event)
        case role:
            return role in ("user", "system")
    return True


def _meta(reading: Reading, event: Event) -> None:
    match event.get("type"):
        case "turn.step.retrying":
            name = str(event.get("error_name") or "")
            reading.fail(
                fault(str(event.get("error_message") or ""), status=event.get("status_code"), name=name, at=reading.at)
            )
        case "session.resume_hint":
            reading.session = str(event.get("session_id") or "")
        case _:
            pass


FORMAT = Format(take=take, side=OWN_ERROR, wordless=True)
