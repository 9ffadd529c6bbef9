"""Edits of JSON text that keep comments and formatting.

A small parser records the position of each value. Comments and trailing commas count as white space.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
REST = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/[ \t]*)?(?=\r?\n)")
DEEPEST = 100


class Broken(ValueError):
    """Raised for a text that is not JSON, with the place of the error."""

    def __init__(self, text: str, at: int) -> None:
        super().__init__(f"line {text.count(chr(10), 0, at) + 1} is no JSON")


class Node(NamedTuple):
    """One value and where it stands."""

    start: int
    end: int
    value: Any
    members: Mapping[str, "Member"] = {}  # never changed
    items: tuple["Node", ...] = ()


class Member(NamedTuple):
    start: int
    """Where its key begins."""
    node: Node


def parse(text: str) -> Node:
    """Read a whole text."""
    at = _skip(text, 1 if text.startswith("\ufeff") else 0)
    node = _value(text, at, DEEPEST)
    if _skip(text, node.end) != len(text):
        raise Broken(text, node.end)
    return node


def with_item(text: str, path: Sequence[str], item: Any, is_ours: Callable[[Any], bool]) -> str:
    """Return the text with the item once in the list at `path`. It replaces our other items there."""
    node = _at(parse(text), path)
    if node is not None and [old.value for old in node.items if is_ours(old.value)] == [item]:
        return text
    text = without_items(text, path, is_ours, prune=False)
    return _added(text, path, item)


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with the value at `path`, which replaces any other value there."""
    node = _at(parse(text), path)
    if node is not None and node.value == value:
        return text
    if node is not None:
        return f"{text[: node.start]}{_written(text, value, len(path))}{text[node.end :]}"
    return _added(text, path[:-1], value, key=path[-1])


def without_items(text: str, path: Sequence[str], is_ours: Callable[[Any], bool], *, prune: bool = True) -> str:
    """Return the text without our items in the list at `path`.

    The list and its parents are removed if they become empty.
    """
    while (node := _at(parse(text), path)) is not None:
        mine = next((item for item in node.items if is_ours(item.value)), None)
        if mine is None:
            return text
        alone = prune and len(node.items) == 1
        before = _neighbour([item.end for item in node.items], mine.start)
        text = without_member(text, path) if alone else _cut(text, mine.start, mine.end, before)
    return text


def without_member(text: str, path: Sequence[str]) -> str:
    """Return the text without the value at `path`. Parents that become empty are removed."""
    for depth in range(len(path), 0, -1):
        above = _at(parse(text), path[: depth - 1])
        if above is None or path[depth - 1] not in above.members:
            return text
        member = above.members[path[depth - 1]]
        before = _neighbour([sibling.node.end for sibling in above.members.values()], member.start)
        text = _cut(text, member.start, member.node.end, before)
        if len(above.members) > 1:
            return text
    return text


# --- writing ------------------------------------------------------------------------------------------------------


def _added(text: str, path: Sequence[str], value: Any, key: str | None = None) -> str:
    """Return the text with a value added at the end of a list or, with a key, of an object.

    Missing parents are added.
    """
    root = parse(text)
    depth = next((deep for deep in range(len(path), -1, -1) if _at(root, path[:deep]) is not None), 0)
    if depth < len(path):
        value = [value] if key is None else {key: value}
        for name in reversed(path[depth + 1 :]):
            value = {name: value}
        return _added(text, path[:depth], value, key=path[depth])
    node = _at(root, path)
    assert node is not None
    written = _written(text, value, depth + 1)
    if key is not None:
        written = f"{json.dumps(key)}: {written}"
    newline, unit = _style(text)
    ends = [member.node.end for member in node.members.values()] or [item.end for item in node.items]
    inner, outer = newline + unit * (depth + 1), newline + unit * depth
    if not ends:
        head = text[: node.end - 1].rstrip()
        return f"{head}{inner}{written}{outer}{text[node.end - 1 :]}"
    end = max(ends)
    after = _skip(text, end)
    if text[after] == ",":  # keep the style of a trailing comma
        at = _line_end(text, after + 1)
        return f"{text[:at]}{inner}{written},{text[at:]}"
    at = _line_end(text, end)
    return f"{text[:end]},{text[end:at]}{inner}{written}{text[at:]}"


def _line_end(text: str, at: int) -> int:
    """Return the end of the line if only a comment follows, so that the comment stays with its value."""
    match = REST.match(text, at)
    return match.end() if match else at


def _written(text: str, value: Any, depth: int) -> str:
    newline, unit = _style(text)
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + unit * depth)


def _style(text: str) -> tuple[str, str]:
    indent = re.search(r"\n([ \t]+)\S", text)
    return ("\r\n" if "\r\n" in text else "\n"), (indent[1] if indent else "  ")


def _cut(text: str, start: int, end: int, before: int | None) -> str:
    """Return the text without a value, its comma and a line that becomes empty.

    `before` is the end of the value before it.
    """
    after = _skip(text, end)
    comma = None
    if text[after : after + 1] == ",":
        end = after + 1
    elif before is not None:
        comma = _skip(text, before)
    line = text.rfind("\n", 0, start)
    blank = REST.match(text, end)
    if line >= 0 and not text[line:start].strip() and blank is not None and not blank[0].strip():
        start, end = line - (text[line - 1 : line] == "\r"), blank.end()
    return text[:start] + text[end:] if comma is None else text[:comma] + text[comma + 1 : start] + text[end:]


def _neighbour(ends: Sequence[int], start: int) -> int | None:
    return max((end for end in ends if end <= start), default=None)


# --- reading ------------------------------------------------------------------------------------------------------


def _at(node: Node, path: Sequence[str]) -> Node | None:
    for name in path:
        if name not in node.members:
            return None
        node = node.members[name].node
    return node


def _skip(text: str, at: int) -> int:
    match = SPACE.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int, depth: int) -> Node:
    if depth == 0 or at >= len(text):
        raise Broken(text, min(at, len(text)))
    closer = {"{": "}", "[": "]"}.get(text[at])
    if closer is None:
        return _scalar(text, at)
    members, items = dict[str, Member](), list[Node]()
    start, at = at, _skip(text, at + 1)
    while text[at : at + 1] != closer:
        first, key = at, STRING.match(text, at) if closer == "}" else None
        if closer == "}":
            colon = _skip(text, key.end()) if key else at
            if key is None or text[colon : colon + 1] != ":":
                raise Broken(text, at)
            at = _skip(text, colon + 1)
        node = _value(text, at, depth - 1)
        if key is None:
            items.append(node)
        else:
            members[json.loads(key[0])] = Member(first, node)
        at = _skip(text, node.end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != closer:
            raise Broken(text, min(at, len(text)))
    inner = (
        {name: member.node.value for name, member in members.items()}
        if closer == "}"
        else [item.value for item in items]
    )
    return Node(start, at + 1, inner, members, tuple(items))


def _scalar(text: str, at: int) -> Node:
    match = STRING.match(text, at) or SCALAR.match(text, at)
    if match is None:
        raise Broken(text, at)
    try:
        return Node(at, match.end(), json.loads(match[0]))
    except ValueError as error:
        raise Broken(text, at) from error
