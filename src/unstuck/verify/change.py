"""What verification takes and gives: a file before and after, the part that its path plays, a remark, and the table of rules."""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_args

from unstuck.model.changes import Change
from unstuck.model.text import one_line
from unstuck.model.verdict import Remark, Severity
from unstuck.shipped import shipped
from unstuck.toolchain.toolchains import judging_files

SYMLINK = 0o120000
EVIDENCE_CHARS = 120
GRAVITY: tuple[Severity, ...] = get_args(Severity)
"""The gravest first."""
T = TypeVar("T")


class Rule(NamedTuple):
    """How grave it is to break it, how grave where the task names the path, what that means, and whether no policy weighs it."""

    severity: Severity
    named: Severity
    means: str
    fixed: bool = False


@cache
def known() -> dict[str, Any]:
    """Return what the audit knows of tests, settings and commands; see `catalog/audit.toml`."""
    return tomllib.loads(shipped("audit.toml"))


@cache
def rule_of(name: str) -> Rule:
    """Return a rule by its name."""
    return Rule(**known()["rule"][name])


@cache
def pattern(table: str, name: str) -> re.Pattern[str]:
    """Return one of the patterns that stand in the catalogue by their names."""
    return re.compile(known()[table][name])


def found(
    rule: str, path: str = "", line: int = 1, says: str = "", evidence: str = "", severity: Severity | None = None
) -> Remark:
    """Make a remark, as grave as its rule says unless told otherwise, with what shows it."""
    shown = "" if rule == "secret" else one_line(evidence, EVIDENCE_CHARS)
    text = says or rule_of(rule).means
    return Remark(
        rule=rule,
        severity=severity or rule_of(rule).severity,
        path=path,
        line=max(1, line),
        says=f"{text} ({shown})" if shown and shown not in text else text,
    )


@cache
def part_of(path: str) -> str:
    """Tell what part a path plays, in the product or in its judge; the first row that fits decides."""
    return next((part for part, shape in _parts() if shape.search(path)), "unknown")


def is_judge(path: str) -> bool:
    """Tell whether a path belongs to what judges the product: what is not known to be product does."""
    return part_of(path) not in {"product", "docs"}


@cache
def _parts() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the rows; which settings and locks a stack has, the table of stacks says."""
    of_the_stacks = dict(zip(("settings", "lock"), judging_files(), strict=True))
    rows = [(row["name"], row.get("paths") or rf"(?:^|/)(?:{of_the_stacks[row['name']]})$") for row in known()["part"]]
    return tuple((part, re.compile(paths)) for part, paths in rows)


class Line(NamedTuple):
    """One line of a text, numbered from 1."""

    number: int
    text: str


def added_lines(change: Change) -> Iterator[Line]:
    """Give the lines of the new text that the old one has fewer of."""
    return surplus(_lines(change.new), _lines(change.old), lambda line: line.text.strip())


def removed_lines(change: Change) -> Iterator[Line]:
    """Give the lines of the old text that the new one has fewer of."""
    return added_lines(Change(path=change.path, old=change.new, new=change.old))


def _lines(text: str | None) -> list[Line]:
    return [Line(number, line) for number, line in enumerate((text or "").splitlines(), 1) if line.strip()]


def surplus(some: Iterable[T], others: Iterable[T], key: Callable[[T], str]) -> Iterator[T]:
    """Give those that the others have fewer of, by a key. Order plays no part, so this is linear."""
    spare = Counter(map(key, others))
    for one in some:
        if spare[key(one)] > 0:
            spare[key(one)] -= 1
        else:
            yield one


def is_declared(path: str, declared: Iterable[str]) -> bool:
    """Tell whether a path is one of the declared ones, lies in a declared folder, or fits a declared pattern."""
    return any(_covers(place.strip().strip("`").removeprefix("./").rstrip("/"), path) for place in declared)


def _covers(place: str, path: str) -> bool:
    if not place or path == place or path.startswith(place + "/"):
        return bool(place)
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", place)
    table = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.fullmatch("".join(table.get(piece, re.escape(piece)) for piece in pieces), path) is not None
