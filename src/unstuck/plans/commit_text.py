"""Commit subjects in the conventional form, from what a plan says."""

import re
from collections.abc import Mapping

from unstuck.tell import one_line

CONVENTIONAL = re.compile(r"(?P<type>[a-z]+)(?:\((?P<scope>[^()]{1,60})\))?!?: \S.*", re.DOTALL)
TYPES: Mapping[str, str] = {
    "bootstrap": "chore", "setup": "chore", "tooling": "chore", "dependencies": "chore", "cleanup": "chore", "ci": "ci",
    "test": "test", "tests": "test", "testing": "test", "docs": "docs", "documentation": "docs", "readme": "docs",
    "fix": "fix", "bugfix": "fix", "hotfix": "fix", "refactor": "refactor", "refactoring": "refactor",
    "performance": "perf", "migration": "refactor",
}  # fmt: skip
"""The words of a title that make it something else than a feature."""

SUBJECT_CHARS, SCOPE_CHARS = 72, 24
_WORDS = re.compile(r"[a-z0-9]+")
_REMARK = re.compile(r"\s*\([^()]*\)")


def conventional(title: str, text: str = "", *, scope: str = "", kind: str = "") -> str:
    """Write `type(scope): text` for a task; a title that is in this form already stays as it is."""
    if CONVENTIONAL.fullmatch(title):
        return title
    words = _WORDS.findall(_REMARK.sub("", title.lower()))
    kind = kind or next((TYPES[word] for word in words if word in TYPES), "feat")
    scope = scope or "-".join(words)
    while len(scope) > SCOPE_CHARS and "-" in scope:
        scope = scope.rpartition("-")[0]
    said = one_line(text or title, SUBJECT_CHARS).rstrip(".")
    plain = len(said) > 1 and said[0].isupper() and said[1].islower()
    head = f"{kind}({scope[:SCOPE_CHARS]})" if scope else kind
    return one_line(f"{head}: {said[0].lower() + said[1:] if plain else said}", SUBJECT_CHARS)


def parts(subject: str) -> tuple[str | None, str | None]:
    """Return the type and the scope of a subject in the conventional form."""
    found = CONVENTIONAL.fullmatch(subject)
    return (found["type"], found["scope"]) if found else (None, None)
