"""Copilot CLI's `--output-format json`: a stream of session events, and a result with its exit code."""

import re
from typing import Any

from unstuck.agents.faults import fault
from unstuck.agents.streams.session import Reading
from unstuck.agents.streams.stream import Event, Format, given

DENIED = re.compile(r"(?i)permission denied|denied by|could not request permission|not allowed")
PLAIN = re.compile(
    r"^(?:session|user|assistant|model|tool|permission|hook|system|subagent|skill|abort|external_tool|command|elicitation)[._]?"
)


def take(reading: Reading, event: Event) -> bool:
    kind, told = str(event.get("type") or ""), event.get("data")
    content: dict[str, Any] = told if isinstance(told, dict) else {}
    match kind:
        case "result":
            reading.session = str(event.get("sessionId") or reading.session)
            reading.finish(ok=not event.get("exitCode")) if reading.fault is None or event.get("exitCode") else None
        case "session.start" | "session.resume":
            reading.session = str(content.get("sessionId") or reading.session)
        case "session.error":
            reading.fail(_error(reading, content))
            reading.message = str(content.get("message") or reading.message)
        case "model.call_failure":
            reading.fail(_error(reading, content))
        case "assistant.message":
            reading.say(str(content.get("content") or ""))
            for request in content.get("toolRequests") or ():
                _call(reading, request.get("toolCallId"), request.get("name"), request.get("arguments"))
        case "tool.execution_start":
            _call(reading, content.get("toolCallId"), content.get("toolName"), content.get("arguments"))
        case "tool.execution_complete":
            _returned(reading, content)
        case "abort":
            reading.finish(ok=False, reason="killed")
        case _:
            return PLAIN.match(kind) is not None
    return True


def _error(reading: Reading, content: Event) -> Any:
    words = str(content.get("message") or content.get("errorMessage") or "")
    return fault(words, status=content.get("statusCode"), name=str(content.get("errorType") or ""), at=reading.at)


def _call(reading: Reading, key: object, name: object, arguments: object) -> None:
    if str(key) not in reading.tools:
        reading.call(str(name or ""), given(arguments), str(key))


def _returned(reading: Reading, content: Event) -> None:
    code = (content.get("shellExecution") or {}).get("exitCode")
    ok = bool(content.get("success"))
    reading.returned(str(content.get("toolCallId")), ok=ok, exit_code=code if isinstance(code, int) else None)
    if not ok and DENIED.search(str(content.get("error") or "")):
        reading.deny(str(content.get("toolCallId")))


FORMAT = Format(take=take)
