"""What to tell an agent about the way it failed: the kind's advice with its blanks filled, and words to leave alone."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from unstuck.decide import FILLERS, meaningful, words
from unstuck.diagnosis.kinds import Failure
from unstuck.plans import Check, CheckKind, Task

BLANK = re.compile(r"\{([A-Z_]+)\}")
PIVOT_WORDS, PIVOT_AFTER = 5, 2

FIXING: Mapping[str, str] = {
    "ruff check": "ruff check --fix",
    "eslint": "eslint --fix",
    "npm run lint": "npm run lint -- --fix",
    "pnpm lint": "pnpm lint --fix",
    "yarn lint": "yarn lint --fix",
    "rubocop": "rubocop -a",
    "golangci-lint run": "golangci-lint run --fix",
    "cargo clippy": "cargo clippy --fix",
}
"""Linter → the same one repairing what it can."""


def advice(failure: Failure, task: Task, checks: Sequence[Check], texts: Mapping[str, str]) -> str:
    """Return the kind's advice. A sentence with a blank that cannot be filled is left out: half a sentence helps nobody."""
    lines = texts.get(failure.kind, "").splitlines()
    filled = [_filled(line, _blanks(failure, task, checks)) for line in lines]
    return "\n".join(line for line in filled if line)


def pivot(approaches: Sequence[str], about: str = "") -> tuple[str, ...]:
    """Return the words that failed approaches share: the next one should do without them.

    `about` is the task's own text: its words name what is to be done, and cannot be done without.
    """
    theirs = words(about)
    counts = Counter(
        word for approach in approaches if meaningful(approach) for word in words(approach) - FILLERS - theirs
    )
    shared = sorted((-count, word) for word, count in counts.items() if count >= PIVOT_AFTER)  # a set has no order
    return tuple(word for _, word in shared)[:PIVOT_WORDS]


def _blanks(failure: Failure, task: Task, checks: Sequence[Check]) -> dict[str, str]:
    files = dict.fromkeys(test.partition("::")[0] for test in failure.tests) or dict.fromkeys(task.files)
    lint = _command(checks, "lint")
    fixing = next((repaired for plain, repaired in FIXING.items() if plain in lint), "")
    return {
        "FILES": ", ".join(list(files)[:5]),
        "LINT_COMMAND": lint,
        "LINT_FIX_COMMAND": fixing,
        "TYPECHECK_COMMAND": _command(checks, "types"),
    }


def _command(checks: Sequence[Check], kind: CheckKind) -> str:
    return next((check.command for check in checks if check.kind == kind), "")


def _filled(line: str, blanks: Mapping[str, str]) -> str:
    sentences = re.split(r"(?<=[.!?]) ", line)
    whole = [one for one in sentences if all(blanks.get(blank) for blank in BLANK.findall(one))]
    return BLANK.sub(lambda found: blanks[found[1]], " ".join(whole))
