"""Claude Code's `stream-json`, which qwen-code prints as well."""

import re
from collections.abc import Mapping
from typing import Any

from unstuck.agents.faults import fault
from unstuck.agents.streams.session import Reading
from unstuck.agents.streams.stream import Event, Format, given, moment, text_of
from unstuck.agents.transcript import End, Fault

REASONS: Mapping[str, End] = {
    "error_max_turns": "max_turns",
    "max_turns": "max_turns",
    "error_max_budget_usd": "budget",
    "budget_exhausted": "budget",
    "prompt_too_long": "context_exhausted",
    "aborted_streaming": "killed",
    "aborted_tools": "killed",
    "aborted": "killed",
}
"""What a result's own words for its end mean."""
EXIT = re.compile(r"\A(?:Error: )?Exit code (\d+)\b|^Exit Code: (\d+)$", re.MULTILINE)
SAID_AS_ERROR = "[API Error: "
REJECTED = ("rejected", "denied")


def take(reading: Reading, event: Event) -> bool:
    session = event.get("session_id")
    reading.session = session if isinstance(session, str) and session else reading.session
    match event.get("type"):
        case "system":
            _system(reading, event)
        case "assistant":
            _assistant(reading, event)
        case "user":
            _user(reading, event)
        case "rate_limit_event":
            _rate_limit(reading, event.get("rate_limit_info") or {})
        case "result":
            _result(reading, event)
        case kind:
            return kind in ("stream_event", "control_response", "control_request", "tool_progress")
    return True


def _system(reading: Reading, event: Event) -> None:
    match event.get("subtype"):
        case "api_retry":
            found = fault("", status=event.get("error_status"), name=str(event.get("error") or ""), at=reading.at)
            reading.fail(found)
            reading.retrying = found is None
        case "retry":
            reading.retrying = True
        case "permission_denied":
            reading.deny(str(event.get("tool_use_id") or ""), str(event.get("tool_name") or ""))
        case "status" if event.get("compact_result") == "failed":
            reading.fail(
                Fault(
                    end="context_exhausted",
                    message=str(event.get("error") or "The conversation could not be compacted."),
                )
            )


def _assistant(reading: Reading, event: Event) -> None:
    message = event.get("message") or {}
    parts = message.get("content")
    parts = parts if isinstance(parts, list) else [{"type": "text", "text": str(parts or "")}]
    text = text_of(parts)
    if event.get("is_api_error_message") or event.get("error") or text.startswith(SAID_AS_ERROR):
        reading.fail(fault(text, status=event.get("api_error_status"), name=_names(event), at=reading.at))
        return
    for part in parts:
        if part.get("type") == "tool_use":
            reading.call(str(part.get("name") or ""), given(part.get("input")), str(part.get("id") or ""))
    if text and event.get("parent_tool_use_id") is None and message.get("model") != "<synthetic>":
        reading.say(text)
    if message.get("stop_reason") == "refusal":
        reading.refused = True


def _user(reading: Reading, event: Event) -> None:
    parts = (event.get("message") or {}).get("content")
    for part in parts if isinstance(parts, list) else ():
        if part.get("type") != "tool_result":
            continue
        failed = bool(part.get("is_error"))
        found = EXIT.search(text_of(part.get("content"))) if failed else None
        code = int(found[1] or found[2]) if found else None
        reading.returned(str(part.get("tool_use_id")), ok=not failed, exit_code=code)


def _rate_limit(reading: Reading, told: Mapping[str, Any]) -> None:
    """Take in the state of the limits: only a refusal is a fault, warnings are not."""
    if told.get("status") in REJECTED:
        reading.fail(
            Fault(
                end="rate_limited",
                message=f"The {told.get('rateLimitType') or 'usage'} limit is reached.",
                resets_at=moment(told.get("resetsAt")),
            )
        )


def _result(reading: Reading, event: Event) -> None:
    """Take in the last word; of several the last counts. `subtype` alone says nothing."""
    cost, usage = event.get("total_cost_usd"), event.get("usage") or {}
    reading.cost_usd = float(cost) if isinstance(cost, int | float) else reading.cost_usd
    reading.count(usage.get("input_tokens"), usage.get("output_tokens"))
    for one in event.get("permission_denials") or ():
        if isinstance(one, dict):
            reading.deny(
                str(one.get("tool_use_id") or ""), str(one.get("tool_name") or ""), given(one.get("tool_input"))
            )
    subtype, how = str(event.get("subtype") or ""), str(event.get("terminal_reason") or "")
    if not event.get("is_error") and not subtype.startswith("error"):
        limit = (
            reading.fault
            if reading.fault is not None and reading.fault.resets_at is not None and not event.get("result")
            else None
        )
        refused = reading.refused or (bool(event.get("safety_stops")) and not reading.tools)
        reading.finish(ok=True)
        reading.refused, reading.fault = refused, limit
        reading.message = str(event.get("result") or reading.message)
        return
    inner = event.get("error")
    words = [
        event.get("result"),
        inner.get("message") if isinstance(inner, dict) else inner,
        *(event.get("errors") or ()),
    ]
    text = " ".join(str(word) for word in words if word)
    found = fault(text, status=event.get("api_error_status"), name=_names(event), at=reading.at)
    reason = REASONS.get(subtype) or REASONS.get(how)
    if reason is None and found is not None:
        reading.fail(found)
    reading.finish(ok=False, reason=reason)
    reading.message = reading.message if reason == "killed" else text or reading.message


def _names(event: Event) -> str:
    return "\n".join(
        str(event[key]) for key in ("error", "api_error", "api_error_type") if isinstance(event.get(key), str)
    )


FORMAT = Format(take=take)
