"""Values of a JSON text with their places."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from unstuck.plans.blocks import Edit

_BLANKS = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Node:
    """A value with its place. The members of an object or a list are nodes too."""

    value: Any
    start: int
    end: int

    def get(self, *names: str) -> "Node | None":
        """Return an object's member under the first of these names that it has."""
        return next((self.value[name] for name in names if name in self.value), None) if self.is_object else None

    @property
    def is_object(self) -> bool:
        return isinstance(self.value, dict)

    @property
    def objects(self) -> tuple["Node", ...]:
        """The objects of a list."""
        return tuple(node for node in self.value if node.is_object) if isinstance(self.value, list) else ()

    @property
    def plain(self) -> Any:
        """The value without places."""
        if self.is_object:
            return {name: member.plain for name, member in self.value.items()}
        return [member.plain for member in self.value] if isinstance(self.value, list) else self.value


def places(text: str) -> Node:
    """Read a text with the places of its values. Raise ValueError for invalid JSON."""
    json.loads(text.removeprefix("\ufeff"))
    return _value(text, _blank(text, int(text.startswith("\ufeff"))))


def _value(text: str, at: int) -> Node:
    start, closer = at, {"{": "}", "[": "]"}.get(text[at])
    if closer is None:
        value, end = _DECODER.raw_decode(text, at)
        return Node(value, at, end)
    names, inner = list[str](), list[Node]()
    at = _blank(text, at + 1)
    while text[at] != closer:
        if closer == "}":
            name, at = _DECODER.raw_decode(text, at)
            names.append(name)
            at = _blank(text, _blank(text, at) + 1)
        inner.append(_value(text, at))
        at = _blank(text, inner[-1].end)
        at = _blank(text, at + 1) if text[at] == "," else at
    return Node(dict(zip(names, inner, strict=True)) if closer == "}" else inner, start, at + 1)


def _blank(text: str, at: int) -> int:
    """Return the end of the white space at a place."""
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def set_value(node: Node, name: str, wanted: object, current: object) -> Iterator[Edit]:
    """Yield the edit that changes a member of an object, or adds it as the first one.

    Yield nothing where the current value is the wanted one.
    """
    member = node.get(name)
    if wanted == current:
        return
    if member is not None:
        yield Edit(member.start, member.end, json.dumps(wanted))
    else:
        rest = ", " if node.value else ""
        yield Edit(node.start + 1, node.start + 1, f'"{name}": {json.dumps(wanted)}{rest}')


def strings(value: Any) -> list[str]:
    """Return the strings in a list."""
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def text_lines(value: Any) -> list[str]:
    """Return the strings in a list, or a list of one string."""
    return [value] if isinstance(value, str) else strings(value)


def words(value: Any) -> list[str]:
    """Return the words of a list, which may be written as numbers."""
    return [text for member in value if (text := word(member))] if isinstance(value, list) else []


def word(*values: Any) -> str:
    """Return the first of the values that is a word or a number, or an empty string."""
    for value in values:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # noqa: PLW2901  # 1.0 is written 1
        if isinstance(value, str | int | float) and not isinstance(value, bool) and (text := str(value).strip()):
            return text
    return ""
