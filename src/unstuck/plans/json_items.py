"""Tasks of a JSON plan, read by the words of its format in `catalog/json_plans.toml`."""

import json
import re
from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from unstuck.model.plan import Task
from unstuck.model.verdict import Check
from unstuck.plans.fields import code_spans
from unstuck.plans.json_values import Node, strings, word
from unstuck.shipped import shipped_toml
from unstuck.toolchain.command_roles import only_checks
from unstuck.toolchain.shell import Runnable, can_fail, first_word

COMMAND_MEMBERS = ("verify", "verification", "verifyCommand", "testCommand", "test_command", "command", "preCommit")
"""Members that hold commands."""
PROSE_MEMBERS = frozenset({"verify", "verification"})
"""Members that hold a command or a sentence for a person."""
_VERIFY = re.compile(r"\W*(?:Verify|Verification)\W*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanItem:
    """A task, subtask, story or phase of a JSON plan."""

    id: str
    node: Node
    raw: Mapping[str, Any]
    status_word: str = ""
    """The status as the plan writes it."""
    status: str = ""
    """The status of the task, or an empty string for an unknown word."""
    title: str = ""
    depends_on: tuple[str, ...] = ()
    parts: tuple["PlanItem", ...] = ()
    """The subtasks that are attempted in its place. It is done when they are."""

    @property
    def leaves(self) -> tuple["PlanItem", ...]:
        return self.parts or (self,)


class PlanContext(NamedTuple):
    """The facts about a plan that its tasks are read with."""

    line_ends: Sequence[int]
    tag: str
    """The name of the current tag."""
    runnable: Runnable

    def task(self, name: str, item: PlanItem, parent: PlanItem | None = None, **facts: Any) -> Task:
        """Return the task of an item. Its body has the members that a person wrote."""
        body = _user_members(name, item) | ({"partOf": _user_members(name, parent)} if parent else {})
        return Task(
            id=item.id,
            title=item.title or f"{keys_of(name)['noun']} {item.id}",
            line=self.line(item),
            body=json.dumps(body, indent=2, ensure_ascii=False),
            digest=json.dumps(body, sort_keys=True, default=str),
            **facts,
        )

    def line(self, item: PlanItem) -> int:
        return bisect(self.line_ends, item.node.start) + 1


def _user_members(name: str, item: PlanItem) -> dict[str, Any]:
    """Return the members of an item without those that a run writes."""
    return {key: value for key, value in item.raw.items() if key not in keys_of(name)["ours"]}


def read_item(name: str, node: Node, fallback: str, **members: Any) -> PlanItem:
    """Read an item by the names of members in its format. An item without an id gets the fallback."""
    raw, keys, status_words = node.plain, keys_of(name), statuses_of(name)
    own, title = (word(*map(raw.get, keys[key])) for key in ("id", "titles"))
    status_word = status_words.of(raw)
    status = status_words.status_of.get(status_word, "")
    read = {"id": own or fallback, "node": node, "raw": raw, "status_word": status_word, "status": status}
    return PlanItem(**{**read, "title": title, **members})


class StatusWords(NamedTuple):
    """The words for statuses in a format."""

    separator: str
    """The sign between two words of a status."""
    status_of: Mapping[str, str]
    """The status of a task for each word of the format."""
    word_of: Mapping[str, str]
    """The word to write for each status. A skipped task keeps its word."""

    def of(self, raw: Mapping[str, Any]) -> str:
        """Return the word that a task has for its status, in one spelling."""
        text = word(raw.get("status")).casefold() or "pending"
        return text.translate({ord(sign): self.separator for sign in " -_"})


@cache
def statuses_of(name: str) -> StatusWords:
    """Return the words for statuses in a format."""
    keys = keys_of(name)
    rows = {status: row.split("|") for status, row in keys["statuses"].items()}
    first = {status: row[0] for status, row in rows.items() if status != "skipped"}
    word_of = {**first, "verifying": first["running"], "waiting": first["running"], **keys.get("written", {})}
    return StatusWords(keys["between"], {text: status for status, row in rows.items() for text in row}, word_of)


def keys_of(name: str) -> Mapping[str, Any]:
    """Return the names of members and the words of a format from the catalogue."""
    keys: Mapping[str, Any] = shipped_toml("json_plans")[name]
    return keys


def checks_in(raw: Mapping[str, Any], sentences: Iterable[str], runnable: Runnable) -> tuple[Check, ...]:
    """Return the checks of a task: the commands in its members, and commands in sentences that only check."""
    commands: dict[str, None] = {}
    for name in COMMAND_MEMBERS:
        for text in _texts(raw.get(name)):
            is_command = name not in PROSE_MEMBERS or runnable(first_word(text)) or only_checks(text)
            commands.update(dict.fromkeys(code_spans(text) or [text] * is_command))
    for line in (line for text in sentences for line in text.splitlines()):
        is_request = _VERIFY.match(line) is not None
        commands.update((span, None) for span in code_spans(line) if is_request or only_checks(span))
    return tuple(Check(command=command) for command in commands if can_fail(command))


def _texts(value: Any) -> list[str]:
    """Return the texts of a member: a string, a list of strings, or an object with a command."""
    if isinstance(value, dict):
        value = value.get("command") or value.get("run")
    return [text for text in (strings(value) if isinstance(value, list) else [word(value)]) if text]


def command_checks(verification: Any) -> tuple[Check, ...]:
    """Return the command of a verification. Other ways to verify need a person or a browser."""
    if not isinstance(verification, dict):
        return ()
    command = word(verification.get("command"), verification.get("run"))
    return (Check(command=command),) if can_fail(command) else ()
