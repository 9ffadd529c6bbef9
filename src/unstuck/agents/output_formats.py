"""The output formats of coding agents, by the names that their manifests use.

Most formats are JSON streams that are read by the table `catalog/streams.toml`, which explains its fields.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from unstuck.agents.output_streams import (
    OutputFormat,
    SessionFacts,
    read_aider_text,
    read_mini_text,
    read_plain_text,
    read_stream,
)
from unstuck.agents.printed_json import LONGEST_LINE, JsonEvent, stated_exit_code, text_of, timestamp_of
from unstuck.agents.provider_errors import error_line, fault_in_event
from unstuck.model.outcome import End, Fault, Transcript
from unstuck.shipped import shipped_toml


@cache
def output_formats() -> Mapping[str, OutputFormat]:
    """Return the formats by the names that manifests use."""
    tables = {name: table.as_format() for name, table in stream_tables().items()}
    claude = OutputFormat(read_event=_read_claude_event)
    return {
        "claude": claude,
        "qwen": claude,
        **tables,
        "plain": OutputFormat(read_text=read_plain_text, has_no_last_word=True),
        "aider": OutputFormat(read_text=read_aider_text, has_no_last_word=True),
        "mini": OutputFormat(read_text=read_mini_text),
    }


def read_recorded_session(
    name: str, stdout: Path, stderr: Path | None, *, code: int | None, meanings: Mapping[int, End] | None = None
) -> Transcript:
    """Read a session that was recorded. A missing file counts as empty."""
    stderr_lines = _lines_of(stderr) if stderr else ()
    return read_stream(output_formats()[name], _lines_of(stdout), stderr_lines, code=code, meanings=meanings)


def _lines_of(path: Path) -> Iterable[str]:
    """Yield the lines of a file. A line that is too long for an event is cut into pieces."""
    with suppress(OSError), path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        while line := file.readline(LONGEST_LINE + 1):
            yield line


def transcript_json(agent: str, transcript: Transcript) -> dict[str, Any]:
    """Return the public JSON form of a transcript."""
    resets, usage = transcript.resets_at, transcript.usage
    return {
        "schema": 1,
        "agent": agent,
        "end": transcript.end,
        "resets_at": datetime.fromtimestamp(resets, UTC).isoformat(timespec="seconds") if resets else None,
        "session_id": transcript.session or None,
        "cost_usd": transcript.cost_usd,
        "usage": {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens} if usage else None,
        "claim": transcript.claim,
        "message": transcript.message or None,
        "tools": [
            {"name": tool.name, "input": tool.input, "exit_code": tool.exit_code, "ok": bool(tool.ok)}
            for tool in transcript.tools
        ],
    }


# --- Claude Code's `stream-json`, which qwen-code prints as well

CLAUDE_REASONS: Final[Mapping[str, End]] = {
    "error_max_turns": "max_turns",
    "max_turns": "max_turns",
    "error_max_budget_usd": "budget",
    "budget_exhausted": "budget",
    "prompt_too_long": "context_exhausted",
    "aborted_streaming": "killed",
    "aborted_tools": "killed",
    "aborted": "killed",
}
"""The `subtype` and `terminal_reason` of a result event."""
CLAUDE_EXIT_CODE = re.compile(r"\A(?:Error: )?Exit code (\d+)\b|^Exit Code: (\d+)$", re.MULTILINE)
CLAUDE_API_ERROR = "[API Error: "
CLAUDE_OTHER_EVENTS: Final = ("system", "stream_event", "control_response", "control_request", "tool_progress")
"""Events that are known and say nothing about the session."""


def _read_claude_event(facts: SessionFacts, event: JsonEvent) -> bool:
    session = event.get("session_id")
    facts.session = session if isinstance(session, str) and session else facts.session
    match event.get("type"), event.get("subtype"):
        case "system", "api_retry":
            status, name = event.get("error_status"), text_at(event, "error")
            facts.retrying = not facts.add_error("", status=status, name=name)
        case "system", "retry":
            facts.retrying = True
        case "system", "permission_denied":
            facts.add_denied(text_at(event, "tool_use_id"), text_at(event, "tool_name"))
        case "system", "status" if event.get("compact_result") == "failed":
            words = text_at(event, "error") or "The conversation could not be compacted."
            facts.add_fault(Fault(end="context_exhausted", message=words))
        case "assistant", _:
            _read_claude_message(facts, event)
        case "user", _:
            _read_claude_tool_results(facts, event)
        case "rate_limit_event", _:
            _read_claude_limit(facts, event.get("rate_limit_info") or {})
        case "result", _:
            _read_claude_result(facts, event)
        case kind, _:
            return kind in CLAUDE_OTHER_EVENTS
    return True


def _read_claude_message(facts: SessionFacts, event: JsonEvent) -> None:
    message = event.get("message") or {}
    parts = message.get("content")
    text = text_of(parts) if isinstance(parts, list) else str(parts or "")
    if event.get("is_api_error_message") or event.get("error") or text.startswith(CLAUDE_API_ERROR):
        facts.add_error(text, status=event.get("api_error_status"), name=_claude_error_names(event))
        return
    for part in parts_at(message, "content"):
        if part.get("type") == "tool_use":
            facts.add_call(text_at(part, "name"), part.get("input"), text_at(part, "id"))
    if event.get("parent_tool_use_id") is None and message.get("model") != "<synthetic>":
        facts.add_words(text)
    facts.refused = facts.refused or message.get("stop_reason") == "refusal"


def _read_claude_tool_results(facts: SessionFacts, event: JsonEvent) -> None:
    for part in parts_at(event, "message.content"):
        if part.get("type") != "tool_result":
            continue
        failed = bool(part.get("is_error"))
        match = CLAUDE_EXIT_CODE.search(text_of(part.get("content"))) if failed else None
        code = int(match[1] or match[2]) if match else None
        facts.add_return(text_at(part, "tool_use_id"), ok=not failed, exit_code=code)


def _read_claude_limit(facts: SessionFacts, limit: Mapping[str, Any]) -> None:
    if limit.get("status") in ("rejected", "denied"):  # warnings are no fault
        words = f"The {limit.get('rateLimitType') or 'usage'} limit is reached."
        facts.add_fault(Fault(end="rate_limited", message=words, resets_at=timestamp_of(limit.get("resetsAt"))))


def _read_claude_result(facts: SessionFacts, event: JsonEvent) -> None:
    """Read a result event, of which the last one counts. Its `subtype` alone does not show an error."""
    facts.set_cost(event.get("total_cost_usd"))
    facts.set_usage(value_at(event, "usage.input_tokens"), value_at(event, "usage.output_tokens"))
    for denial in parts_at(event, "permission_denials"):
        facts.add_denied(text_at(denial, "tool_use_id"), text_at(denial, "tool_name"), denial.get("tool_input"))
    subtype = text_at(event, "subtype")
    if not event.get("is_error") and not subtype.startswith("error"):
        _read_claude_success(facts, event)
        return
    text = _claude_error_text(event)
    reason = CLAUDE_REASONS.get(subtype) or CLAUDE_REASONS.get(text_at(event, "terminal_reason"))
    if reason is None:
        facts.add_error(text, status=event.get("api_error_status"), name=_claude_error_names(event))
    facts.finish(ok=False, reason=reason)
    facts.message = facts.message if reason == "killed" else text or facts.message


def _read_claude_success(facts: SessionFacts, event: JsonEvent) -> None:
    has_limit = facts.fault is not None and facts.fault.resets_at and not event.get("result")
    limit = facts.fault if has_limit else None
    refused = facts.refused or (bool(event.get("safety_stops")) and not facts.tools)
    facts.finish(ok=True)
    facts.refused, facts.fault = refused, limit
    facts.message = text_at(event, "result") or facts.message


def _claude_error_text(event: JsonEvent) -> str:
    error = event.get("error")
    words = [event.get("result"), error.get("message") if isinstance(error, dict) else error]
    return " ".join(str(word) for word in (*words, *(event.get("errors") or ())) if word)


def _claude_error_names(event: JsonEvent) -> str:
    names = (event.get(key) for key in ("error", "api_error", "api_error_type"))
    return "\n".join(name for name in names if isinstance(name, str))


# --- streams that are read by the table


Conditions = Mapping[str, str | bool]
"""Paths, each with a pattern for the whole value, or with True for a value and False for an empty one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRule:
    """One row of the table: the facts to take from the events of one kind."""

    event: re.Pattern[str]
    part: str = ""
    where: Conditions = field(default_factory=dict)
    unless: Conditions = field(default_factory=dict)
    session: str = ""
    words: str = ""
    is_continued: str = ""
    message: str = ""
    cost: str = ""
    error: str = ""
    cut: str = "(?s)(.*)"
    status: str = ""
    name: str = ""
    fault: str = ""
    call: tuple[str, str, str] | None = None
    returned: str = ""
    ok: Conditions = field(default_factory=dict)
    fails: Conditions = field(default_factory=dict)
    code: str = ""
    result_text: str = ""
    denied: Conditions = field(default_factory=dict)
    usage: tuple[str, ...] = ()
    add_usage: tuple[str, ...] = ()
    finish: Literal["", "ok", "error", "well"] = ""
    reason: End | None = None
    reason_if: Conditions = field(default_factory=dict)
    reopens: bool = False
    refuses: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTable:
    """The table of one output format."""

    rules: tuple[EventRule, ...]
    kind: str = "type"
    session: str = ""
    banner: str = ""
    stderr_error: str = ""
    has_no_last_word: bool = False

    def as_format(self) -> OutputFormat:
        return OutputFormat(
            read_event=self._read_event,
            read_noise=self._read_noise,
            stderr_error=re.compile(self.stderr_error) if self.stderr_error else error_line(),
            has_no_last_word=self.has_no_last_word,
        )

    def _read_event(self, facts: SessionFacts, event: JsonEvent) -> bool:
        facts.session = text_at(event, self.session) or facts.session
        kind = str(event.get(self.kind))
        rules = [rule for rule in self.rules if rule.event.fullmatch(kind)]
        for rule in rules:
            for part in parts_at(event, rule.part):
                if _all_hold(part, event, rule.where) and not _any_holds(part, event, rule.unless):
                    _apply(rule, facts, part, event)
        return bool(rules)

    def _read_noise(self, facts: SessionFacts, line: str) -> None:
        if self.banner and not facts.session and (match := re.search(self.banner, line)):
            facts.session = match[1]


def stream_tables() -> dict[str, StreamTable]:
    """Return the tables of the catalogue by the names of their formats."""
    return {name: _table(content) for name, content in shipped_toml("streams").items()}


def _table(content: Mapping[str, Any]) -> StreamTable:
    rules = tuple(map(_rule, content["rule"]))
    return StreamTable(rules=rules, **{name: value for name, value in content.items() if name != "rule"})


def _rule(row: Mapping[str, Any]) -> EventRule:
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    values["event"] = re.compile(row["event"])
    return EventRule(**values)


def _apply(rule: EventRule, facts: SessionFacts, part: JsonEvent, event: JsonEvent) -> None:
    """Add the facts that a rule names, from a part of an event."""
    facts.session = text_at(part, rule.session) or facts.session
    if rule.usage:
        facts.set_usage(*(value_at(part, path) for path in rule.usage))
    if rule.add_usage:
        facts.add_usage(*(value_at(part, path) for path in rule.add_usage))
    facts.set_cost(value_at(part, rule.cost))
    _apply_error(rule, facts, part)
    if rule.call:
        name, arguments, key = rule.call
        facts.add_call(text_at(part, name), value_at(part, arguments), text_at(part, key))
    if rule.returned:
        _apply_return(rule, facts, part, event)
    if rule.words:
        facts.add_words(text_of(value_at(part, rule.words)), is_continued=bool(value_at(part, rule.is_continued)))
    facts.message = text_at(part, rule.message) or facts.message
    facts.refused = facts.refused or rule.refuses
    if rule.reopens:
        facts.finished = ""
    if rule.reason_if:
        facts.reason = rule.reason if _all_hold(part, event, rule.reason_if) else None
    if rule.finish == "well":
        if facts.fault is None and facts.finished != "error":
            facts.finish(ok=True, reason=facts.reason)
    elif rule.finish:
        facts.finish(ok=rule.finish == "ok", reason=rule.reason)


def _apply_error(rule: EventRule, facts: SessionFacts, part: JsonEvent) -> None:
    if rule.error == "*":
        facts.add_fault(fault_in_event(part, facts.at))
    elif rule.error or rule.fault:
        match = re.fullmatch(rule.cut, text_at(part, rule.error))
        words = rule.fault or (match[1] if match else "")
        facts.add_error(words, status=value_at(part, rule.status), name=text_at(part, rule.name))


def _apply_return(rule: EventRule, facts: SessionFacts, part: JsonEvent, event: JsonEvent) -> None:
    failed = not _all_hold(part, event, rule.ok) or _any_holds(part, event, rule.fails)
    code = value_at(part, rule.code)
    if not isinstance(code, int) and (failed or not (rule.ok or rule.fails)):
        code = stated_exit_code("\n".join(map(text_of, _values(part, rule.result_text))))
    denied = failed and bool(rule.denied) and _all_hold(part, event, rule.denied)
    facts.add_return(text_at(part, rule.returned), ok=not failed, exit_code=code, denied=denied)


def _all_hold(part: JsonEvent, event: JsonEvent, conditions: Conditions) -> bool:
    return all(_holds(part, event, path, wanted) for path, wanted in conditions.items())


def _any_holds(part: JsonEvent, event: JsonEvent, conditions: Conditions) -> bool:
    return any(_holds(part, event, path, wanted) for path, wanted in conditions.items())


def _holds(part: JsonEvent, event: JsonEvent, path: str, wanted: str | bool) -> bool:  # noqa: FBT001  # from the table
    values = _values(event, path[1:]) if path.startswith("/") else _values(part, path)
    if wanted is True:
        return any(values)
    if wanted is False:
        return not all(values)
    return any(re.fullmatch(wanted, str(value)) for value in values)


# --- paths into an event: `a.b`, or several as `a.b|c`


def parts_at(event: JsonEvent, paths: str) -> list[JsonEvent]:
    """Return the objects at the paths. Of a list these are its items. No path means the event itself."""
    parts = list[JsonEvent]()
    for value in _values(event, paths) if paths else (event,):
        items = value if isinstance(value, list) else [value]
        parts += (item for item in items if isinstance(item, dict))
    return parts


def value_at(value: Any, paths: str) -> Any:
    """Return the first value at the paths that is not empty. Several values of one path become one text."""
    for path in paths.split("|"):
        values = [item for item in _values(value, path) if item]
        if values:
            return values[0] if len(values) == 1 else ", ".join(map(str, values))
    return next(iter(_values(value, paths)), None)


def text_at(value: Any, paths: str) -> str:
    return str(value_at(value, paths) or "")


def _values(value: Any, paths: str) -> list[Any]:
    """Return all values at the paths. A path through a list leads into each of its items."""
    names = (path.split(".") for path in paths.split("|") if path)
    return [item for path in names for item in _values_at(value, path)]


def _values_at(value: Any, names: list[str]) -> Iterator[Any]:
    if not names:
        if value is not None:
            yield value
    elif isinstance(value, list):
        for item in value:
            yield from _values_at(item, names)
    elif isinstance(value, dict):
        yield from _values_at(value.get(names[0]), names[1:])
