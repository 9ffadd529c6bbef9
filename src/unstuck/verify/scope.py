"""Claims against facts: files touched outside the task, files claimed that do not exist."""

import re
from collections.abc import Collection, Iterator, Sequence

from unstuck.verify.audit import Change, Finding, Severity, found, is_declared

_PATH = re.compile(r"(?<![\w./@:-])(?:\./)?[\w.@+-]+(?:/[\w.@+-]+)*\.[A-Za-z][A-Za-z0-9]{0,7}(?![\w/(])")
_CLAIMS = re.compile(
    r"\b(?:created|creates|added|adds|wrote|written|updated|modified|changed|edited|implemented|fixed|new file)\b",
    re.IGNORECASE,
)
_FOLLOWS = re.compile(r"(?:^|/)(?:__init__\.py|[\w.-]*lock(?:\.\w+)?|go\.sum|\.unstuck/.*)$")
"""Files that tools write by themselves when another file changes."""


def outside_scope(
    changes: Sequence[Change], declared: Sequence[str], severity: Severity = "warn"
) -> tuple[Finding, ...]:
    """Find files that were touched although the task does not name them; a task that names none has no fence."""
    if not declared:
        return ()
    return tuple(
        found("scope", change.path, 1, f"{change.path} is not among the task's Files.", severity=severity)
        for change in changes
        if not is_declared(change.path, declared) and not _FOLLOWS.search(change.path)
    )


def claimed_files(said: str) -> tuple[str, ...]:
    """Give the paths that a text claims to have made or changed, in the order of the text."""
    paths = (path for line in said.splitlines() if _CLAIMS.search(line) for path in _paths(line))
    return tuple(dict.fromkeys(paths))


def missing_files(said: str, present: Collection[str], gone: Collection[str] = ()) -> tuple[Finding, ...]:
    """Find claimed files that the tree does not hold; `gone` are those that the change deleted."""
    names = {path.rpartition("/")[2] for path in (*present, *gone)}
    return tuple(
        found(
            "claimed-file-missing",
            path,
            1,
            f"The agent says it worked on {path}, but there is no such file.",
            severity="warn" if "/" not in path else None,
        )
        for path in claimed_files(said)
        if path not in present and path not in gone and path.rpartition("/")[2] not in names
    )


def _paths(line: str) -> Iterator[str]:
    for match in _PATH.finditer(line):
        path = match.group().removeprefix("./")
        if not re.fullmatch(r"v?\d+(?:\.\w+)*", path) and not re.search(
            r"^(?:e\.g|i\.e|etc)\b|\.(?:com|org|net|io)$", path
        ):
            yield path
