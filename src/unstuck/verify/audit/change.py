"""What the audit takes and gives: a file before and after, a finding about it, and the table of what can be found."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Severity = Literal["reject", "ask", "warn"]

SYMLINK = 0o120000


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One path before and after. None is "does not exist"; a binary file that exists has an empty text."""

    path: str
    old: str | None = None
    new: str | None = None
    old_mode: int | None = None
    new_mode: int | None = None
    """As git writes them: 0o100644, 0o100755, 0o120000."""
    binary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing in a change that makes the checks say less than before."""

    rule: str
    severity: Severity
    path: str
    line: int
    says: str
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    severity: Severity
    means: str
    declared: Severity = "ask"
    """How grave it is where the task names the path."""


RULES: dict[str, Rule] = {
    "test-deleted": Rule("reject", "A test is gone, and nothing else asserts what it did."),
    "test-hidden": Rule("reject", "A test is still there, but no runner finds it any more.", "reject"),
    "test-emptied": Rule("reject", "A test no longer asserts anything.", "reject"),
    "test-skipped": Rule("reject", "A test that ran is skipped or expected to fail.", "reject"),
    "skipped-sometimes": Rule("ask", "A test that always ran is skipped on a condition.", "warn"),
    "test-focused": Rule("reject", "One test is singled out, so that the others do not run.", "reject"),
    "test-retried": Rule("ask", "A test is repeated until it passes."),
    "cases-removed": Rule("reject", "A test goes through fewer rows."),
    "assertion-removed": Rule("reject", "An assertion is gone, and nothing else asserts the same."),
    "assertion-loosened": Rule("reject", "An assertion accepts more than before."),
    "assertion-vacuous": Rule("reject", "An assertion can no longer fail.", "reject"),
    "assertion-unreachable": Rule("reject", "An assertion is never reached, or its failure is dropped.", "reject"),
    "tests-exchanged": Rule("ask", "Tests are gone, and as many others have come.", "warn"),
    "expected-changed": Rule("ask", "A test expects something else than before.", "warn"),
    "tests-unread": Rule("ask", "Tests changed that cannot be read here.", "ask"),
    "snapshot-changed": Rule("ask", "Recorded output holds something else than before.", "warn"),
    "testdata-changed": Rule("warn", "A file that tests read holds something else than before.", "warn"),
    "test-aid-changed": Rule(
        "ask", "Code that runs before or around the tests is changed so that it can hide failures.", "ask"
    ),
    "early-exit": Rule("reject", "The process ends with success before the tests can say anything.", "reject"),
    "equality-overridden": Rule("reject", "Objects are made equal to anything.", "reject"),
    "tool-shadowed": Rule("reject", "A file takes the place of a tool that the checks use.", "reject"),
    "test-detected": Rule("ask", "Product code behaves differently when it is tested.", "ask"),
    "threshold-lowered": Rule("reject", "A gate asks for less than before."),
    "gate-loosened": Rule("reject", "A linter, type checker or coverage tool looks at less than before.", "warn"),
    "suppressions-added": Rule("ask", "Complaints of a tool are silenced in bulk.", "ask"),
    "test-settings-narrowed": Rule("reject", "The test runner's settings make it run less than before."),
    "ci-changed": Rule("ask", "Steps of the build server are gone.", "warn"),
    "check-changed": Rule("reject", "What a check runs is changed.", "warn"),
    "always-green": Rule("reject", "A failing command is made to look like a success.", "reject"),
    "own-settings-changed": Rule("reject", "The supervisor's own settings are changed.", "warn"),
    "secret": Rule("reject", "A secret stands in the change.", "reject"),
    "scope": Rule("warn", "A file outside the task's Files is touched.", "warn"),
    "claimed-file-missing": Rule("ask", "The agent claims a file that does not exist."),
}


def found(rule: str, path: str, line: int, says: str, evidence: str = "", severity: Severity | None = None) -> Finding:
    """Make a finding, as grave as its rule says unless told otherwise."""
    weight = severity or RULES[rule].severity
    return Finding(rule=rule, severity=weight, path=path, line=max(1, line), says=says, evidence=evidence[:300])


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a text, numbered from 1."""

    number: int
    text: str


def is_declared(path: str, declared: Iterable[str]) -> bool:
    """Tell whether a path is one of the declared ones, lies in a declared folder, or fits a declared pattern."""
    return any(_covers(place, path) for place in declared)


def added_lines(change: Change) -> Iterator[Line]:
    """Give the lines of the new text that the old one has fewer of. Order plays no part, so this is linear."""
    yield from _surplus(change.new, change.old)


def removed_lines(change: Change) -> Iterator[Line]:
    """Give the lines of the old text that the new one has fewer of."""
    yield from _surplus(change.old, change.new)


def _surplus(text: str | None, other: str | None) -> Iterator[Line]:
    spare = Counter(line.strip() for line in (other or "").splitlines())
    for number, line in enumerate((text or "").splitlines(), 1):
        bare = line.strip()
        if not bare:
            continue
        if spare[bare] > 0:
            spare[bare] -= 1
        else:
            yield Line(number, line)


def _covers(place: str, path: str) -> bool:
    clean = place.strip().strip("`").removeprefix("./").rstrip("/")
    if not clean:
        return False
    if path == clean or path.startswith(clean + "/"):
        return True
    if not re.search(r"[*?]", clean):
        return False
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", clean)
    table = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.fullmatch("".join(table.get(piece, re.escape(piece)) for piece in pieces), path) is not None
