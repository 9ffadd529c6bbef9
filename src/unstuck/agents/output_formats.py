"""The output formats of coding agents, by the names that their manifests use.

Most formats are JSON streams that `stream_tables.py` reads. Here are the readers of Claude Code's stream and of the formats
that are made for people.
"""

import re
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from unstuck.agents.agent_events import LONGEST_LINE, JsonEvent, text_of, timestamp_of
from unstuck.agents.output_streams import OutputFormat, SessionFacts, read_stream
from unstuck.agents.stream_tables import parts_at, stream_tables, text_at, value_at
from unstuck.model.outcome import End, Fault, Transcript


@cache
def output_formats() -> Mapping[str, OutputFormat]:
    """Return the formats by the names that manifests use."""
    tables = {name: table.as_format() for name, table in stream_tables().items()}
    claude = OutputFormat(read_event=_read_claude_event)
    return {
        "claude": claude,
        "qwen": claude,
        **tables,
        "plain": OutputFormat(read_text=_read_plain, has_no_last_word=True),
        "aider": OutputFormat(read_text=_read_aider, has_no_last_word=True),
        "mini": OutputFormat(read_text=_read_mini),
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


# --- text for people

MAX_LINES = 400
"""An agent's last words are not longer."""


def _read_plain(facts: SessionFacts, lines: Iterable[str]) -> None:
    """Read the agent's last words. Its errors are on stderr."""
    text = "\n".join(deque((line.rstrip("\n") for line in lines), maxlen=MAX_LINES)).strip()
    facts.events = 1 if text else 0
    facts.add_words(text)


AIDER_HEAD = "https://aider.chat/HISTORY"
UNITS: Final = {"k": 1_000, "M": 1_000_000}


AIDER_ERROR = re.compile(r"(?:litellm\.)(?P<name>\w+(?:Error|Exception|Timeout)\b): ?(?P<words>.*)")
AIDER_TOKENS = re.compile(
    r"Tokens: (?P<sent>\d[\d,]*(?:\.\d+)?[kM]?) sent,(?:.*,)? (?P<received>\d[\d,]*(?:\.\d+)?[kM]?) received\.(?:.*\$(?P<cost>\d+(?:\.\d+)?) session)?"
)
AIDER_EDIT = re.compile("Applied edit to (?P<file>.+)")
AIDER_CONTEXT_FULL = re.compile(
    r"(?i)Model \S+ has hit a token limit!|The chat session is (?:too large|larger than the context window)"
)
AIDER_NO_LOGIN = re.compile(
    "(?i)(?:Warning: .* expects these environment variables|No LLM model was specified and no API keys)"
    "|(?-i:- [A-Z_]*API_KEY: Not set)"
)
AIDER_TOO_MANY_TURNS = re.compile(r"Only \d+ reflections allowed")


def _read_aider(facts: SessionFacts, lines: Iterable[str]) -> None:
    """Read aider's text.

    Its exit code is 0 whatever happens. A litellm error without an answer after it is the end of the session.
    """
    error, has_begun = "", False
    answer: deque[str] = deque(maxlen=MAX_LINES)
    for line in (line.rstrip("\n") for line in lines):
        facts.events += 1 if line.strip() else 0
        if error:
            facts.add_error(f"{error} {line}")
            error = ""
        elif match := AIDER_ERROR.match(line):
            error = f"{match['name']}: {match['words']}"
            facts.add_error(error)
            answer.clear()
        elif match := AIDER_TOKENS.match(line):
            facts.add_words("\n".join(answer).strip())
            facts.set_usage(_token_count(match["sent"]), _token_count(match["received"]))
            facts.set_cost(float(match["cost"]) if match["cost"] else None)
            answer.clear()
        elif match := AIDER_EDIT.match(line):
            facts.add_call("edit", match["file"])
            facts.add_return(next(reversed(facts.tools)), ok=True)
        elif AIDER_CONTEXT_FULL.match(line):
            facts.add_error("context window exceeded")
        elif AIDER_NO_LOGIN.match(line):
            facts.add_error("no api key")
        elif AIDER_TOO_MANY_TURNS.match(line):
            facts.reason = "max_turns"
        elif has_begun:
            answer.append(line)
        has_begun = has_begun or line.startswith(AIDER_HEAD)


def _token_count(words: str) -> int:
    return round(float(words.rstrip("kM").replace(",", "")) * UNITS.get(words[-1], 1))


MINI_STEP = re.compile(r"mini-swe-agent \(step \d+, \$(?P<cost>[\d.]+)\):")
MINI_LIMIT = re.compile(r"(?:LimitsExceeded|CostLimit\w*|StepLimit\w*)")
MINI_ERROR = re.compile(r"(?:[\w.]+\.)?\w+(?:Error|Exception|Exceeded)\b")
MINI_SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
MINI_RULER = "────"
MINI_SECTIONS: Final = {"Tool:": "tool", "Exit:": "exit", "User:": "other"}


def _read_mini(facts: SessionFacts, lines: Iterable[str]) -> None:
    """Read mini-swe-agent's steps: words, commands and return codes. Its prompt stands before the first step."""
    section, is_fenced = "", False
    words: list[str] = []
    command: list[str] = []
    for line in (line.rstrip("\n") for line in lines):
        facts.events += 1 if line.strip() else 0
        if step := MINI_STEP.match(line):
            section, words, command, is_fenced = "step", [], [], False
            facts.set_cost(float(step["cost"]))
        elif section and line in MINI_SECTIONS:
            if section == "step":
                _end_mini_step(facts, words, command)
            section = MINI_SECTIONS[line]
        elif section == "step" and line.startswith("```"):
            is_fenced = not is_fenced
        elif section == "step" and not line.startswith(MINI_RULER):
            (command if is_fenced else words).append(line)
        elif section == "tool" and line == "<returncode>":
            section = "code"
        elif section == "code" and re.fullmatch(r"-?\d+", line.strip()):
            last_key = next(reversed(facts.tools), "")
            if last_key and facts.tools[last_key].ok is None:
                facts.add_return(last_key, ok=int(line) == 0, exit_code=int(line))
            section = "output"
        elif section == "exit" and (MINI_LIMIT.match(line) or MINI_ERROR.match(line)):
            facts.add_error(line)
            facts.finish(ok=False, reason="max_turns" if MINI_LIMIT.match(line) else None)
    if section == "step":
        _end_mini_step(facts, words, command)


def _end_mini_step(facts: SessionFacts, words: list[str], command: list[str]) -> None:
    facts.add_words("\n".join(words).strip())
    text = "\n".join(command).strip()
    if MINI_SUBMIT in text:
        facts.finish(ok=True)
    elif text:
        facts.add_call("bash", text)
