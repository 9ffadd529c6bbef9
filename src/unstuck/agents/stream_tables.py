"""Read the JSON streams of coding agents by the table `catalog/streams.toml`, which explains its fields."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from unstuck.agents.agent_events import JsonEvent, stated_exit_code, text_of
from unstuck.agents.output_streams import OutputFormat, SessionFacts
from unstuck.agents.provider_errors import error_line, fault_in_event
from unstuck.model.outcome import End
from unstuck.shipped import shipped_toml

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
