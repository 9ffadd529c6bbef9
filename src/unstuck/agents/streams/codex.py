"""`codex exec --json`: threads, turns and items."""

from unstuck.agents.faults import fault
from unstuck.agents.streams.session import Reading
from unstuck.agents.streams.stream import Event, Format, error_of, given, text_of

TOOLS = {"command_execution", "file_change", "mcp_tool_call", "web_search", "patch_apply"}


def take(reading: Reading, event: Event) -> bool:
    match event.get("type"):
        case "thread.started":
            reading.session = str(event.get("thread_id") or "")
        case "turn.started":
            reading.finished = ""
        case "item.started" | "item.updated" | "item.completed":
            _item(reading, event.get("item") or {}, completed=event.get("type") == "item.completed")
        case "error":
            message = str(event.get("message") or "")
            reading.fail(fault(message, at=reading.at))
            reading.message = message or reading.message
        case "turn.completed":
            usage = event.get("usage") or {}
            reading.count(usage.get("input_tokens"), usage.get("output_tokens"))
            reading.finish(ok=True)
        case "turn.failed":
            reading.fail(error_of(event, reading.at))
            reading.finish(ok=False)
        case _:
            return False
    return True


def _item(reading: Reading, item: Event, *, completed: bool) -> None:
    kind, key = str(item.get("type") or ""), str(item.get("id") or "")
    if kind == "agent_message":
        reading.say(str(item.get("text") or ""))
    elif kind == "refusal":
        reading.refused = True
    elif kind in TOOLS:
        name = str(item.get("tool") or kind)
        if key not in reading.tools:
            arguments = item.get("command") or item.get("arguments") or item.get("query") or _files(item)
            reading.call(name, given(arguments) if not isinstance(arguments, str) else arguments, key)
        if completed:
            code = item.get("exit_code")
            well = item.get("status") not in ("failed", "declined") and not item.get("error")
            reading.returned(key, ok=well, exit_code=code if isinstance(code, int) else None)
            if item.get("status") == "declined":
                reading.deny(key)
    elif kind == "reasoning" and completed:
        text_of(item.get("text"))


def _files(item: Event) -> str:
    changes = item.get("changes")
    return (
        ", ".join(str(change.get("path")) for change in changes if isinstance(change, dict))
        if isinstance(changes, list)
        else ""
    )


FORMAT = Format(take=take)
