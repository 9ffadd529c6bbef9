"""Read JSON and remember where every value stands, so that one can be changed and nothing else."""

import json
import re
from dataclasses import dataclass
from typing import Any

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
