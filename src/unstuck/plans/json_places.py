"""JSON plans of other tools: the place of every value, so that one can be changed and no other byte, and the commands they name."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from unstuck.plans.editor import Edit
from unstuck.plans.fields import code_spans
from unstuck.plans.plan import Check
from unstuck.tools import Runnable, can_fail, first_word, only_checks

_BLANKS = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its place; of an object's members, or a list's, each is a node again."""

    value: Any
    start: int
    end: int

    def get(self, *names: str) -> "Node | None":
        """Return an object's member under the first of these names that it has."""
        return (
            next((self.value[name] for name in names if name in self.value), None)
            if isinstance(self.value, dict)
            else None
        )

    @property
    def items(self) -> tuple["Node", ...]:
        return tuple(self.value) if isinstance(self.value, list) else ()


def places(text: str) -> Node:
    """Read a text that `json.loads` accepts."""
    return _value(text, _blank(text, int(text.startswith("\ufeff"))))


def _value(text: str, at: int) -> Node:
    if text[at] == "{":
        return _object(text, at)
    if text[at] == "[":
        return _list(text, at)
    value, end = _DECODER.raw_decode(text, at)
    return Node(value, at, end)


def _object(text: str, at: int) -> Node:
    members: dict[str, Node] = {}
    start, at = at, _blank(text, at + 1)
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        node = _value(text, _blank(text, _blank(text, at) + 1))
        members[name] = node
        at = _next(text, node.end)
    return Node(members, start, at + 1)


def _list(text: str, at: int) -> Node:
    items: list[Node] = []
    start, at = at, _blank(text, at + 1)
    while text[at] != "]":
        items.append(_value(text, at))
        at = _next(text, items[-1].end)
    return Node(items, start, at + 1)


def _next(text: str, at: int) -> int:
    at = _blank(text, at)
    return _blank(text, at + 1) if text[at] == "," else at


def _blank(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def set_value(node: Node, name: str, wanted: object, read_as: object) -> Iterator[Edit]:
    """Change a member of an object, or write it as the first one; nothing where it reads so already."""
    member = node.get(name)
    if wanted == read_as:
        return
    if member is not None:
        yield Edit(member.start, member.end, json.dumps(wanted))
    else:
        rest = ", " if node.value else ""
        yield Edit(node.start + 1, node.start + 1, f'"{name}": {json.dumps(wanted)}{rest}')


def plain_object(node: Node) -> dict[str, Any]:
    """Return an object without the places of its values."""
    return {name: _unwrap(child) for name, child in node.value.items()}


def _unwrap(node: Node) -> Any:
    if isinstance(node.value, dict):
        return plain_object(node)
    return [_unwrap(one) for one in node.value] if isinstance(node.value, list) else node.value


def strings(value: Any) -> list[str]:
    """Return what of a list is text."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def word(value: Any) -> str:
    """Return a word that may be written as a number."""
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() if isinstance(value, str | int | float) else ""


NAMES = ("verify", "verification", "verifyCommand", "testCommand", "test_command", "command", "preCommit")
"""Members that hold commands."""
PROSE = frozenset({"verify", "verification"})
"""Those of them in which people also write what somebody should look at."""
_VERIFY = re.compile(r"\W*(?:Verify|Verification)\W*:", re.IGNORECASE)


def told_checks(raw: Mapping[str, Any], sentences: Iterable[str], runnable: Runnable) -> tuple[Check, ...]:
    """Return what checks a task: the commands under their own names as they are; of sentences, what only checks."""
    found: dict[str, None] = {}
    for name in NAMES:
        for text in _texts(raw.get(name)):
            whole = name not in PROSE or runnable(first_word(text)) or only_checks(text)
            found.update(dict.fromkeys(code_spans(text) or [text] * whole))
    for line in (line for text in sentences for line in text.splitlines()):
        asked = _VERIFY.match(line) is not None
        found.update((span, None) for span in code_spans(line) if asked or only_checks(span))
    return tuple(Check(command=command) for command in found if can_fail(command))


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        value = value.get("command") or value.get("run")
    return [one for one in (strings(value) if isinstance(value, list) else [word(value)]) if one]
