"""Check the subject of a commit message.

`pre-commit install` makes git run this file before each commit, with the path of the message as its argument.
`tests/test_commits.py` checks the history by the same rules.
"""

import re
import sys
from pathlib import Path

TYPES = ("feat", "fix", "refactor", "perf", "docs", "test", "build", "ci", "chore", "style", "revert")
SUBJECT = re.compile(rf"^({'|'.join(TYPES)})(\([\w/,-]+\))?!?: ")
MAX_CHARACTERS = 72
TEMPORARY = ("Merge ", "fixup! ", "squash! ", "amend! ")
"""Subjects that git writes. The history test reads them again, except those of merges."""


def subject_problem(subject: str) -> str:
    """Return what is wrong with a commit's subject, or an empty string."""
    if not SUBJECT.match(subject):
        return f"write `type(scope): what changed`, with one of these types: {', '.join(TYPES)}"
    if len(subject) > MAX_CHARACTERS:
        return f"{len(subject)} characters, at most {MAX_CHARACTERS}; move details to the body"
    return ""


def subject_of(message: str) -> str:
    """Return the first line of a message that is neither empty nor a comment."""
    lines = (line.strip() for line in message.splitlines())
    return next((line for line in lines if line and not line.startswith("#")), "")


def main(path: str) -> int:
    """Return the exit code for git: 1 refuses the commit."""
    subject = subject_of(Path(path).read_text(encoding="utf-8"))
    if subject.startswith(TEMPORARY):
        return 0
    problem = subject_problem(subject)
    if problem:
        sys.stderr.write(f"Commit refused: {subject!r}: {problem}\n")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
