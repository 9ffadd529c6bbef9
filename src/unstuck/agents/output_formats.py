"""The output formats of coding agents: the table of JSON streams, and those that take weighing or are made for people."""

import re
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from unstuck.agents.output_streams import (
    LONGEST_LINE,
    Event,
    Format,
    Reading,
    error_line,
    error_of,
    exit_code,
    moment,
    read,
    text_of,
)
from unstuck.model.outcome import End, Fault, Transcript
from unstuck.shipped import shipped_toml


@cache
def formats() -> Mapping[str, Format]:
    """Return the formats by the names that manifests know them by."""
    listed = {name: _listed(table) for name, table in shipped_toml("streams").items()}
    spoken = {"plain": Format(prose=_plain, wordless=True), "aider": Format(prose=_aider, wordless=True)}
    claude = Format(take=_claude)
    return {"claude": claude, "qwen": claude, **listed, **spoken, "mini": Format(prose=_mini)}


def read_files(
    name: str, stdout: Path, stderr: Path | None, *, code: int | None, meanings: Mapping[int, End] | None = None
) -> Transcript:
    """Read a session that was recorded; a file that is missing counts as empty."""
    return read(formats()[name], _lines(stdout), _lines(stderr) if stderr else (), code=code, meanings=meanings)


def _lines(path: Path) -> Iterable[str]:
    """Yield lines; of one that is longer than any event, only pieces that no reader takes for one."""
    with suppress(OSError), path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        while line := file.readline(LONGEST_LINE + 1):
            yield line


# --- streams that the table describes; its words are explained there ---------------------------------------


def _listed(table: Mapping[str, Any]) -> Format:
    rows = [(re.compile(row["event"]), row) for row in table["on"]]

    def take(reading: Reading, event: Event) -> bool:
        reading.session = _word(event, table.get("session", "")) or reading.session
        kind = str(event.get(table.get("by", "type")))
        fitting = [row for shape, row in rows if shape.fullmatch(kind)]
        for row in fitting:
            for part in _parts(event, row.get("in")):
                if _holds(part, event, row.get("where", {})) and not _any_holds(part, event, row.get("unless", {})):
                    _take(reading, part, event, row)
        return bool(fitting)

    def noise(reading: Reading, line: str) -> None:
        found = re.search(table["banner"], line) if "banner" in table and not reading.session else None
        reading.session = found[1] if found else reading.session

    side = re.compile(table["side"]) if "side" in table else error_line()
    return Format(take=take, noise=noise, side=side, wordless=table.get("wordless", False))


def _take(reading: Reading, part: Event, event: Event, row: Mapping[str, Any]) -> None:
    """Take from a part of an event what its row names."""
    said = {key: _word(part, row[key]) for key in ("session", "error", "name", "message") if key in row}
    reading.session = said.get("session") or reading.session
    if "usage" in row:
        reading.count(*(_first(part, path) for path in row["usage"]))
    if "add" in row:
        reading.add(*(_first(part, path) for path in row["add"]))
    reading.bill(_first(part, row.get("cost", "")))
    if row.get("error") == "*":
        reading.fail(error_of(part, reading.at))
    elif "error" in row or "fault" in row:
        cut = re.fullmatch(row.get("cut", "(?s)(.*)"), said.get("error", ""))
        words = row.get("fault") or (cut[1] if cut else "")
        reading.error(words, status=_first(part, row.get("status", "")), name=said.get("name", ""))
    if "call" in row:
        name, arguments, key = row["call"]
        reading.call(_word(part, name), _first(part, arguments), _word(part, key))
    if "returned" in row:
        _returned(reading, part, event, row)
    if "say" in row:
        reading.say(text_of(_first(part, row["say"])), more=bool(_first(part, row.get("more", ""))))
    reading.message = said.get("message") or reading.message
    reading.refused = reading.refused or "refused" in row
    if "reopen" in row:
        reading.finished = ""
    if "reason_if" in row:
        reading.reason = row["reason"] if _holds(part, event, row["reason_if"]) else None
    if row.get("finish") == "well":
        if reading.fault is None and reading.finished != "error":
            reading.finish(ok=True, reason=reading.reason)
    elif "finish" in row:
        reading.finish(ok=row["finish"] == "ok", reason=row.get("reason"))


def _returned(reading: Reading, part: Event, event: Event, row: Mapping[str, Any]) -> None:
    failed = not _holds(part, event, row.get("ok", {})) or _any_holds(part, event, row.get("fails", {}))
    code = _first(part, row.get("code", ""))
    if not isinstance(code, int) and (failed or not row.keys() & {"ok", "fails"}):
        code = exit_code("\n".join(text_of(one) for one in _values(part, row.get("says", ""))))
    denied = failed and "denied" in row and _holds(part, event, row["denied"])
    reading.returned(_word(part, row["returned"]), ok=not failed, exit_code=code, denied=denied)


def _holds(part: Event, event: Event, wanted: Mapping[str, str | bool]) -> bool:
    return all(_is_so(part, event, path, form) for path, form in wanted.items())


def _any_holds(part: Event, event: Event, wanted: Mapping[str, str | bool]) -> bool:
    return any(_is_so(part, event, path, form) for path, form in wanted.items())


def _is_so(part: Event, event: Event, path: str, form: str | bool) -> bool:  # noqa: FBT001  # a cell of the table
    found = _values(event, path[1:]) if path.startswith("/") else _values(part, path)
    if isinstance(form, bool):
        return any(found) if form else any(not one for one in found)
    return any(re.fullmatch(form, str(one)) for one in found)


def _parts(event: Event, path: str | None) -> list[Any]:
    found = [event] if path is None else _values(event, path)
    listed = (one for value in found for one in (value if isinstance(value, list) else [value]))
    return [one for one in listed if isinstance(one, dict)]


def _values(thing: Any, paths: str) -> list[Any]:
    """Return what stands at any of the paths; one that leads through a list leads to all of its items."""
    return [one for path in paths.split("|") if path for one in _at(thing, path.split("."))]


def _at(thing: Any, names: list[str]) -> list[Any]:
    if not names:
        return [] if thing is None else [thing]
    if isinstance(thing, list):
        return [found for one in thing for found in _at(one, names)]
    return _at(thing.get(names[0]), names[1:]) if isinstance(thing, dict) else []


def _first(thing: Any, paths: str) -> Any:
    """Return the first value that says something; a list of words as one."""
    for path in paths.split("|"):
        found = [one for one in _values(thing, path) if one]
        if found:
            return found[0] if len(found) == 1 else ", ".join(map(str, found))
    return next(iter(_values(thing, paths)), None)


def _word(thing: Any, paths: str) -> str:
    return str(_first(thing, paths) or "")


# --- Claude Code's `stream-json`, which qwen-code prints as well -------------------------------------------

EXIT = re.compile(r"\A(?:Error: )?Exit code (\d+)\b|^Exit Code: (\d+)$", re.MULTILINE)
SAID_AS_ERROR = "[API Error: "


def _claude(reading: Reading, event: Event) -> bool:
    session = event.get("session_id")
    reading.session = session if isinstance(session, str) and session else reading.session
    match event.get("type"), event.get("subtype"):
        case "system", "api_retry":
            status, name = event.get("error_status"), _word(event, "error")
            reading.retrying = not reading.error("", status=status, name=name)
        case "system", "retry":
            reading.retrying = True
        case "system", "permission_denied":
            reading.deny(_word(event, "tool_use_id"), _word(event, "tool_name"))
        case "system", "status" if event.get("compact_result") == "failed":
            words = _word(event, "error") or "The conversation could not be compacted."
            reading.fail(Fault(end="context_exhausted", message=words))
        case "assistant", _:
            _claude_says(reading, event)
        case "user", _:
            for part in _parts(event, "message.content"):
                if part.get("type") == "tool_result":
                    failed = bool(part.get("is_error"))
                    found = EXIT.search(text_of(part.get("content"))) if failed else None
                    code = int(found[1] or found[2]) if found else None
                    reading.returned(_word(part, "tool_use_id"), ok=not failed, exit_code=code)
        case "rate_limit_event", _:
            told = event.get("rate_limit_info") or {}
            if told.get("status") in ("rejected", "denied"):  # warnings are no fault
                words = f"The {told.get('rateLimitType') or 'usage'} limit is reached."
                reading.fail(Fault(end="rate_limited", message=words, resets_at=moment(told.get("resetsAt"))))
        case "result", _:
            _claude_result(reading, event)
        case kind, _:
            return kind in ("system", "stream_event", "control_response", "control_request", "tool_progress")
    return True


def _claude_says(reading: Reading, event: Event) -> None:
    message = event.get("message") or {}
    parts = message.get("content")
    text = text_of(parts) if isinstance(parts, list) else str(parts or "")
    if event.get("is_api_error_message") or event.get("error") or text.startswith(SAID_AS_ERROR):
        reading.error(text, status=event.get("api_error_status"), name=_claude_names(event))
        return
    for part in _parts(message, "content"):
        if part.get("type") == "tool_use":
            reading.call(_word(part, "name"), part.get("input"), _word(part, "id"))
    if event.get("parent_tool_use_id") is None and message.get("model") != "<synthetic>":
        reading.say(text)
    reading.refused = reading.refused or message.get("stop_reason") == "refusal"


def _claude_result(reading: Reading, event: Event) -> None:
    """Take in the last word; of several the last counts. `subtype` alone says nothing."""
    reading.bill(event.get("total_cost_usd"))
    reading.count(_first(event, "usage.input_tokens"), _first(event, "usage.output_tokens"))
    for one in _parts(event, "permission_denials"):
        reading.deny(_word(one, "tool_use_id"), _word(one, "tool_name"), one.get("tool_input"))
    subtype = _word(event, "subtype")
    if not event.get("is_error") and not subtype.startswith("error"):
        limit = reading.fault if reading.fault and reading.fault.resets_at and not event.get("result") else None
        refused = reading.refused or (bool(event.get("safety_stops")) and not reading.tools)
        reading.finish(ok=True)
        reading.refused, reading.fault = refused, limit
        reading.message = _word(event, "result") or reading.message
        return
    inner = event.get("error")
    words = [event.get("result"), inner.get("message") if isinstance(inner, dict) else inner]
    text = " ".join(str(one) for one in (*words, *(event.get("errors") or ())) if one)
    reasons: Mapping[str, End] = shipped_toml("ends")["reasons"]
    reason = reasons.get(subtype) or reasons.get(_word(event, "terminal_reason"))
    if reason is None:
        reading.error(text, status=event.get("api_error_status"), name=_claude_names(event))
    reading.finish(ok=False, reason=reason)
    reading.message = reading.message if reason == "killed" else text or reading.message


def _claude_names(event: Event) -> str:
    return "\n".join(event[key] for key in ("error", "api_error", "api_error_type") if isinstance(event.get(key), str))


# --- text for people --------------------------------------------------------------------------------------

MOST_LINES = 400
"""What an agent says at the end is not longer."""


def _plain(reading: Reading, lines: Iterable[str]) -> None:
    """Take in what the agent says at the end, and nothing else. Its errors come on stderr."""
    text = "\n".join(deque((line.rstrip("\n") for line in lines), maxlen=MOST_LINES)).strip()
    reading.events = 1 if text else 0
    reading.say(text)


@cache
def _shapes(agent: str) -> Mapping[str, re.Pattern[str]]:
    return {name: re.compile(pattern) for name, pattern in shipped_toml("ends")[agent].items()}


HEAD = "https://aider.chat/HISTORY"
UNITS = {"k": 1_000, "M": 1_000_000}


def _aider(reading: Reading, lines: Iterable[str]) -> None:
    """Read aider's text. It ends with exit code 0 whatever happens: a litellm error with no answer after it is the end."""
    waiting, began, shapes = "", False, _shapes("aider")
    answer: deque[str] = deque(maxlen=MOST_LINES)
    for line in (line.rstrip("\n") for line in lines):
        reading.events += 1 if line.strip() else 0
        kind, found = next(((name, one) for name, shape in shapes.items() if (one := shape.match(line))), ("", None))
        if waiting:
            reading.error(f"{waiting} {line}")
            waiting = ""
        elif kind == "error" and found:
            waiting = f"{found['name']}: {found['words']}"
            reading.error(waiting)
            answer.clear()
        elif kind == "tokens" and found:
            reading.say("\n".join(answer).strip())
            reading.count(_count(found["sent"]), _count(found["received"]))
            reading.bill(float(found["cost"]) if found["cost"] else None)
            answer.clear()
        elif kind == "edit" and found:
            reading.call("edit", found["file"])
            reading.returned(next(reversed(reading.tools)), ok=True)
        elif kind in ("window", "login"):
            reading.error("context window exceeded" if kind == "window" else "no api key")
        elif kind == "reflections":
            reading.reason = "max_turns"
        elif began:
            answer.append(line)
        began = began or line.startswith(HEAD)


def _count(words: str) -> int:
    return round(float(words.rstrip("kM").replace(",", "")) * UNITS.get(words[-1], 1))


SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
RULER = "────"
SECTIONS = {"Tool:": "tool", "Exit:": "exit", "User:": "other"}


def _mini(reading: Reading, lines: Iterable[str]) -> None:
    """Read mini-swe-agent's steps: words, commands and their return codes. What stands before the first is its prompt."""
    section, fenced, shapes = "", False, _shapes("mini")
    words: list[str] = []
    command: list[str] = []
    for line in (line.rstrip("\n") for line in lines):
        reading.events += 1 if line.strip() else 0
        if found := shapes["step"].match(line):
            section, words, command, fenced = "step", [], [], False
            reading.bill(float(found["cost"]))
        elif section and line in SECTIONS:
            if section == "step":
                _mini_step(reading, words, command)
            section = SECTIONS[line]
        elif section == "step" and line.startswith("```"):
            fenced = not fenced
        elif section == "step" and not line.startswith(RULER):
            (command if fenced else words).append(line)
        elif section == "tool" and line == "<returncode>":
            section = "code"
        elif section == "code" and re.fullmatch(r"-?\d+", line.strip()):
            last = next(reversed(reading.tools), "")
            if last and reading.tools[last].ok is None:
                reading.returned(last, ok=int(line) == 0, exit_code=int(line))
            section = "output"
        elif section == "exit" and (shapes["limit"].match(line) or shapes["error"].match(line)):
            reading.error(line)
            reading.finish(ok=False, reason="max_turns" if shapes["limit"].match(line) else None)
    if section == "step":
        _mini_step(reading, words, command)


def _mini_step(reading: Reading, words: list[str], command: list[str]) -> None:
    reading.say("\n".join(words).strip())
    text = "\n".join(command).strip()
    if SUBMIT in text:
        reading.finish(ok=True)
    elif text:
        reading.call("bash", text)


# --- the public form ----------------------------------------------------------------------------------------


def as_json(agent: str, found: Transcript) -> dict[str, Any]:
    """Return the public form of what was read."""
    from datetime import UTC, datetime  # noqa: PLC0415  # only where somebody asks for it

    resets = datetime.fromtimestamp(found.resets_at, UTC).isoformat(timespec="seconds") if found.resets_at else None
    usage = found.usage
    return {
        "schema": 1,
        "agent": agent,
        "end": found.end,
        "resets_at": resets,
        "session_id": found.session or None,
        "cost_usd": found.cost_usd,
        "usage": {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens} if usage else None,
        "claim": found.claim,
        "message": found.message or None,
        "tools": [
            {"name": tool.name, "input": tool.input, "exit_code": tool.exit_code, "ok": bool(tool.ok)}
            for tool in found.tools
        ],
    }
