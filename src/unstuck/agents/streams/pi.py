"""pi's `--mode json`. Errors are messages with `stopReason: error`, and its exit code is 0 all the same."""

from typing import Any

from unstuck.agents.faults import fault
from unstuck.agents.streams.session import Reading
from unstuck.agents.streams.stream import Event, Format, exit_code, given, text_of

PASSING = {
    "agent_start", "turn_start", "turn_end", "message_start", "message_update", "tool_execution_update", "compaction_start",
    "compaction_end", "queue_update", "auto_retry_start",
}  # fmt: skip


def take(reading: Reading, event: Event) -> bool:
    match event.get("type"):
        case "session":
            reading.session = str(event.get("id") or "")
        case "message_end":
            _message(reading, event.get("message") or {})
        case "tool_execution_start":
            if str(event.get("toolCallId")) not in reading.tools:
                reading.call(str(event.get("toolName") or ""), given(event.get("args")), str(event.get("toolCallId")))
        case "tool_execution_end":
            text = text_of((event.get("result") or {}).get("content"))
            failed = bool(event.get("isError"))
            reading.returned(str(event.get("toolCallId")), ok=not failed, exit_code=exit_code(text) if failed else None)
        case "agent_end":
            if reading.fault is None and reading.reason is None:
                reading.finish(ok=True)
        case "auto_retry_end":
            if not event.get("success"):
                reading.fail(fault(str(event.get("finalError") or ""), at=reading.at))
        case kind:
            return kind in PASSING
    return True


def _message(reading: Reading, message: dict[str, Any]) -> None:
    if message.get("role") != "assistant":
        return
    usage = message.get("usage") or {}
    reading.add(usage.get("input"), usage.get("output"), (usage.get("cost") or {}).get("total"))
    parts = message.get("content")
    for part in parts if isinstance(parts, list) else ():
        if part.get("type") == "toolCall":
            reading.call(str(part.get("name") or ""), given(part.get("arguments")), str(part.get("id") or ""))
    reading.say(text_of(parts))
    match message.get("stopReason"):
        case "error":
            words = str(message.get("errorMessage") or "")
            reading.fail(fault(words, at=reading.at))
            reading.message = words or reading.message
            reading.finished = "error"
        case "aborted":
            reading.finish(ok=False, reason="killed")
        case "length":
            reading.fail(fault("max_output_tokens"))
        case _:
            pass


FORMAT = Format(take=take)
