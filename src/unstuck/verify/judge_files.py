"""Tell what a change does to its judge, beyond what the task names."""

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from unstuck.plans import Task

if TYPE_CHECKING:
    from unstuck.verify.audit import Change

_CASES = re.compile(
    r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$|[._-](?:test|spec)\.[cm]?[jt]sx?$|_(?:test|spec)\.(?:go|rb|exs|c|cc|cpp)$"
    r"|(?:^|/)\w*(?:Tests?|IT|Spec|TestCase)\.(?:java|kt|scala|groovy|cs|php|swift)$|(?:^|/)tests/[\w-]+\.rs$"
)
"""Names that runners take for tests: a new one of these adds tests, and bends nothing."""

_SETTINGS = re.compile(r"(?:^|/)(?:\.[^/]+|[A-Z]\w*file|[^/]+\.(?:ini|cfg|conf|toml|properties|config\.\w+))$")
"""Files of no known kind that a tool reads by itself, whatever the task is about."""


def unnamed(changes: "Sequence[Change]", task: Task) -> "tuple[Change, ...]":
    """Return the changes to judge files that the task does not name; our own settings are the audit's."""
    from unstuck.verify.audit import is_declared, is_judge, part_of  # noqa: PLC0415  # heavy: loaded when there is a change

    return tuple(
        change
        for change in changes
        if (is_judge(change.path) or (task.files and change.old is not None and is_led_to(change.path, task)))
        and part_of(change.path) != "ours"
        and (task.files or not is_data(change.path))
        and not is_declared(change.path, task.files)
    )


def is_led_to(path: str, task: Task) -> bool:
    """Whether a check of the task names a file, by its path, its name, or what stands before its ending: ID=1.1."""
    name = path.rpartition("/")[2]
    meant = {path, name, name.rpartition(".")[0] or name}
    return any(not meant.isdisjoint(_WORDS.split(check.command)) for check in task.checks)


_WORDS = re.compile(r"[\s=:,;'\"()&|]+|(?<!\w)\./")


def is_data(path: str) -> bool:
    """Whether a file of no known kind may be the work itself; where the task names Files, this is none of them."""
    from unstuck.verify.audit import part_of  # noqa: PLC0415  # as above

    return part_of(path) == "unknown" and _SETTINGS.search(path) is None


def bent(changes: "Sequence[Change]", task: Task) -> "tuple[Change, ...]":
    """Return those of them that could bend the judge; new tests are none of them."""
    return tuple(one for one in unnamed(changes, task) if one.old is not None or not _CASES.search(one.path))


_RESHAPES = re.compile(
    r"(?i)\b(?:renam|refactor|restructur|reorgani[sz]|rewrit|rework|migrat|deprecat|tidy|clean(?:s|ed|ing)? up)"
)
"""Words of a task that is about the form of the code."""


def speaks_of(task: Task, touched: "Sequence[Change]", said: str) -> bool:
    """Whether a task speaks of the names that its change took out of the tests and that the base's tests miss now.

    One without words is a change that a person looks at by hand.
    """
    text = f"{task.title}\n{task.body}"
    before, after = _names("\n".join(x.old or "" for x in touched)), _names("\n".join(x.new or "" for x in touched))
    missed = (before - after) & _names(said)
    return not text.strip() or _RESHAPES.search(text) is not None or missed <= _names(text)


def _names(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w+", text))


def unaccounted(changes: "Sequence[Change]", names: Collection[str] = ()) -> bool:
    """Whether a test of the base lost something that it asserted: one of these by name, or any where none is known by it.

    A text that cannot even be loaded fails without the name of a test. Where none could be read, nobody can account for them.
    """
    from unstuck.verify.audit import accounted  # noqa: PLC0415  # as above

    tests = accounted(changes)
    wanted = {re.split(r"::| > |\[", name)[-1 if "[" not in name else -2].strip() for name in names}
    concerned = [one for one in tests if one.name.rpartition("::")[2] in wanted] or tests
    return not concerned or any(one.now is None for one in concerned)
