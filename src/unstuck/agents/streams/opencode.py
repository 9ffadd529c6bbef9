"""`opencode run --format json`: parts of messages. It has no last word: the last step that stopped stands for it."""

from typing import Any

from unstuck.agents.faults import fault
from unstuck.agents.streams.session import Reading
from unstuck.agents.streams.stream import Event, Format, error_of, given

ENDED = {"stop", "end_turn"}


def take(reading: Reading, event: Event) -> bool:
    session = event.get("sessionID")
    reading.session = session if isinstance(session, str) else reading.session
    part = event.get("part") or {}
    match event.get("type"):
        case "step_start":
            reading.finished = ""
        case "text":
            if not part.get("synthetic"):
                reading.say(str(part.get("text") or ""))
        case "tool_use":
            _tool(reading, part)
        case "step_finish":
            _step(reading, part)
        case "error":
            reading.fail(error_of(event, reading.at))
            reading.finished = ""
        case "reasoning":
            pass
        case _:
            return False
    return True


def _tool(reading: Reading, part: Event) -> None:
    state: dict[str, Any] = part.get("state") or {}
    key = str(part.get("callID") or part.get("id") or "")
    if key not in reading.tools:
        reading.call(str(part.get("tool") or ""), given(state.get("input")), key)
    if state.get("status") not in ("completed", "error"):
        return
    code = (state.get("metadata") or {}).get("exit")
    reading.returned(key, ok=state.get("status") == "completed", exit_code=code if isinstance(code, int) else None)
    if state.get("status") == "error" and "rejected permission" in str(state.get("error")):
        reading.deny(key)


def _step(reading: Reading, part: Event) -> None:
    tokens = part.get("tokens") or {}
    reading.add(tokens.get("input"), tokens.get("output"), part.get("cost"))
    reason = str(part.get("reason") or "")
    overflow = reading.fault is not None and reading.fault.end == "context_exhausted"
    if reason in ENDED and not overflow:
        reading.finish(ok=True)
    elif reason in ("length", "content-filter", "error"):
        words = {"length": "max_output_tokens", "content-filter": "content_filter"}
        reading.fail(fault(words.get(reason, reason)))


FORMAT = Format(take=take, wordless=True)
