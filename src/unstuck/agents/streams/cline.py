"""cline's `--json`: agent events, and a result with the reason of its end."""

from collections.abc import Mapping
from typing import Any

from unstuck.agents.faults import fault
from unstuck.agents.streams.session import Reading
from unstuck.agents.streams.stream import Event, Format, error_of, exit_code, given
from unstuck.agents.transcript import End

REASONS: Mapping[str, End] = {
    "max_iterations": "max_turns",
    "max_turns": "max_turns",
    "mistake_limit": "max_turns",
    "aborted": "killed",
    "cancelled": "killed",
}


def take(reading: Reading, event: Event) -> bool:
    match event.get("type"):
        case "agent_event":
            _agent(reading, event.get("event") or {})
        case "run_result":
            _result(reading, event)
        case "error":
            reading.fail(error_of(event, reading.at))
        case "hook_event" | "run_start" | "session":
            session = event.get("sessionId") or event.get("taskId")
            reading.session = str(session or reading.session)
        case _:
            return False
    return True


def _agent(reading: Reading, event: Event) -> None:
    tool = event.get("contentType") == "tool"
    match event.get("type"):
        case "content_start" if tool:
            reading.call(
                str(event.get("toolName") or ""), given(event.get("input")), str(event.get("toolCallId") or "")
            )
        case "content_end" if tool:
            _returned(reading, event)
        case "content_end":
            reading.say(str(event.get("text") or ""))
        case "error":
            reading.fail(error_of(event, reading.at))
        case "notice":
            about: dict[str, Any] = event.get("metadata") or {}
            if about.get("providerError"):
                reading.fail(fault(str(about["providerError"]), name=str(about.get("kind") or ""), at=reading.at))
        case "done":
            reason = str(event.get("reason") or "")
            if reason == "completed":
                reading.finish(ok=True)
        case _:
            pass


def _returned(reading: Reading, event: Event) -> None:
    output = event.get("output")
    results = output if isinstance(output, list) else [output]
    told = [one for one in results if isinstance(one, dict)]
    failed = next((one for one in told if not one.get("success", True)), None)
    code = exit_code(f"{failed.get('error')}\n{failed.get('result')}") if failed else None
    reading.returned(str(event.get("toolCallId")), ok=failed is None and not event.get("error"), exit_code=code)
    if failed and "denied" in str(failed.get("error")):
        reading.deny(str(event.get("toolCallId")))


def _result(reading: Reading, event: Event) -> None:
    usage = event.get("aggregateUsage") or event.get("usage") or {}
    reading.count(usage.get("inputTokens"), usage.get("outputTokens"))
    cost = usage.get("totalCost")
    reading.cost_usd = float(cost) if isinstance(cost, int | float) else reading.cost_usd
    reason, text = str(event.get("finishReason") or ""), str(event.get("text") or "")
    if reason == "completed":
        reading.finish(ok=True)
        reading.message = text or reading.message
        return
    if REASONS.get(reason) is None:
        reading.fail(fault(text, at=reading.at))
    reading.finish(ok=False, reason=REASONS.get(reason))


FORMAT = Format(take=take)
