"""Plans in JSON: the place of every value, so that one can be changed and no other byte; and what all such plans share."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from unstuck.model.verdict import Check
from unstuck.plans.editor import Edit
from unstuck.plans.fields import code_spans
from unstuck.toolchain.command_roles import only_checks
from unstuck.toolchain.shell import Runnable, can_fail, first_word

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
        return next((self.value[name] for name in names if name in self.value), None) if self.is_object else None

    @property
    def is_object(self) -> bool:
        return isinstance(self.value, dict)

    @property
    def objects(self) -> tuple["Node", ...]:
        """The objects of a list."""
        return tuple(one for one in self.value if one.is_object) if isinstance(self.value, list) else ()

    @property
    def plain(self) -> Any:
        """The value without places."""
        if self.is_object:
            return {name: one.plain for name, one in self.value.items()}
        return [one.plain for one in self.value] if isinstance(self.value, list) else self.value


def places(text: str) -> Node:
    """Read a text; one that is no JSON raises ValueError."""
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


def strings(value: Any) -> list[str]:
    """Return what of a list is text."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def words(value: Any) -> list[str]:
    """Return the words of a list, which may be written as numbers."""
    return [said for one in value if (said := word(one))] if isinstance(value, list) else []


def word(*values: Any) -> str:
    """Return the first of these that is a word; it may be written as a number."""
    for value in values:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # noqa: PLW2901  # 1.0 is written 1
        if isinstance(value, str | int | float) and not isinstance(value, bool) and (said := str(value).strip()):
            return said
    return ""


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
