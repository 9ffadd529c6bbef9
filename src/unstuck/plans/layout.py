"""Match most tasks of a `tasks.md` whole, and most fields of a task at once.

Reading them line by line gives the same, but takes many times as long; a test compares the two.
"""

import re
from typing import NamedTuple

from unstuck.plans.lines import COLUMN_0, LineNumbers, Stretch
from unstuck.plans.plan import Check

_CAN_FAIL = r"`(?!echo|printf|true|exit)[A-Za-z./\[(!][^`\n]*`"
_CHECKED = rf"- \*\*Verify\*\*: {_CAN_FAIL}"
_TASK = (
    r"- \[([ xX])\][ \t]+([0-9]+(?:\.[0-9]+)*)[ \t]+([^\s\[][^\[\r\n]*)\r?"
    rf"(?:\n  (?!{_CHECKED})[ \t]*[^ \t\r\n][^\n]*)*"
    rf"(?:\n  ({_CHECKED})[^\n]*(?:\n  [ \t]*[^ \t\r\n][^\n]*)*)?"
    r"(?=\n[\r\n]*[^ \t\r\n])"
)
NEXT = re.compile(rf"\n(?:{_TASK}|{COLUMN_0})")
"""The next task that is numbered, has no markers and nothing odd in it (groups: tick, id, title, and a check that can
fail, if that is plain to see), or else the next line at column 0 (no groups)."""
_TICK, _ID, _TITLE, _CHECK = range(1, 5)

_OTHER = r"(?![-*+ \t]*\*\*(?:[Ff][Ii]|[Vv][Ee]|[Cc][Oo]|[Aa][Gg]))[^ \t\r\n][^\n]*"
"""A line that does not begin Files, Verify, Commit or Agent."""
_ITEMS = rf"(?:\n  (?=-){_OTHER})*"
FIELDS = re.compile(
    rf"\r?(?:\n  [ \t]*{_OTHER})*"
    rf"(?:\n  - \*\*Files\*\*: `([^`\s][^`\n]*(?:`, `[^`\s][^`\n]*)*)`\r?(?=\n){_ITEMS})?"
    rf"(?:\n  - \*\*Verify\*\*: ({_CAN_FAIL})\r?(?=\n){_ITEMS})?"
    rf"(?:\n  - \*\*Commit\*\*: `(?!(?i:no|n/a))([A-Za-z][^`\n]*)`\r?(?=\n){_ITEMS})?"
    r"\n?\Z"
)
"""What stands below a task's first line, if all its fields are one line each and in back-ticks: files, check, commit."""


class Asked(NamedTuple):
    """What a task's fields ask for, and why there are no checks; the reason is empty if it has no Verify at all."""

    files: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    commit: str | None = None
    reason: str = ""
    agent: str = ""


class LaidOut:
    """A task that was matched whole. Says of itself what a `Block` does; a long plan has thousands of them."""

    __slots__ = ("_found", "_numbers", "section")

    markers: tuple[str, ...] = ()
    fixes: str | None = None
    is_checkpoint = False
    literal: tuple[Stretch, ...] = ()

    def __init__(self, found: re.Match[str], numbers: LineNumbers, section: int) -> None:
        self._found = found
        self._numbers = numbers
        self.section = section

    @property
    def id(self) -> str:
        return self._found[_ID]

    @property
    def title(self) -> str:
        return self._found[_TITLE].rstrip()

    @property
    def ticked(self) -> bool:
        return self._found[_TICK] != " "

    @property
    def line(self) -> int:
        return self._numbers.at(self.start)

    @property
    def start(self) -> int:
        return self._found.start() + 1

    @property
    def box(self) -> int:
        return self._found.start(_TICK)

    @property
    def end(self) -> int:
        return self._found.end() + 1

    @property
    def is_verified(self) -> bool:
        return self._found[_CHECK] is not None

    def read_fields(self) -> Asked | None:
        """Return what it asks for; None if that takes a closer look."""
        found = FIELDS.match(self._found.string, self._found.end(_TITLE), self.end)
        if found is None:
            return None
        files, check, commit = found.groups()
        paths = (path.rstrip().removeprefix("./") for path in files.split("`, `")) if files else ()
        return Asked(
            tuple(dict.fromkeys(paths)),
            (Check(command=check.strip("`").rstrip()),) if check else (),
            commit.rstrip() if commit else None,
        )
