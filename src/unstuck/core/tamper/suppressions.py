"""Find complaints of linters, type checkers and coverage that are silenced instead of heeded."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from unstuck.core.tamper.change import Change, Finding, Line, added_lines, removed_lines, role
from unstuck.core.tamper.gates import ARTEFACT
from unstuck.core.tamper.rules import found

BULK = 3
"""So many silenced complaints in one change are no longer single decisions, whatever each of them says."""
LONGEST_LINE = 300

_WHOLE_FILE = re.compile(
    r"#\s*(?:ruff|flake8):\s*noqa\s*$|#\s*mypy:\s*ignore-errors|@ts-nocheck|/\*\s*eslint-disable\s*\*/|#\s*type:\s*ignore\s*$(?<=^# type: ignore)|#\s*pylint:\s*skip-file|#\s*pyright:\s*(?:basic|ignore)|/\*\s*istanbul ignore file|biome-ignore-all|/\*\s*(?:c8|v8) ignore (?:file|start)"
)
_ONE_LINE = re.compile(
    r"#\s*noqa\b|#\s*type:\s*ignore|#\s*pylint:\s*disable|#\s*pragma:\s*no ?cover|eslint-disable|@ts-ignore|@ts-expect-error|istanbul ignore|(?:c8|v8) ignore|biome-ignore|#\s*pyright:\s*ignore|#\s*nosec|prettier-ignore|#\s*nosemgrep|//\s*nolint|#\[allow\(|@SuppressWarnings|rubocop:disable|@phpstan-ignore"
)
_RULE = re.compile(
    r"noqa:\s*[A-Z]|ignore\[|disable=|disable(?:-next)?-?l?i?n?e?\s+[@\w]|(?:expect-error|ts-ignore|ignore next|biome-ignore)[:\s]+\w|nosec:?\s*B\d|nolint:\w|disable:?\s+\w+/|\[allow\(\w|Warnings\(\W*\w"
)
_REASON = re.compile(r"--\s*\w|#.*#\s*\w|\s-\s\w|no ?cover\s*[-:(]+\s*\w")
_NEVER_RUN = re.compile(
    r"__main__|TYPE_CHECKING|NotImplementedError|abstractmethod|ImportError|ModuleNotFoundError|__repr__|Protocol|overload|\.\.\.|platform|win32|raise |unreachable|assert_never"
)
"""Places that no test can reach, so that to leave them out of coverage is fair."""


def judge_suppressions(changes: Sequence[Change]) -> Iterator[Finding]:
    """Find complaints of tools that are silenced instead of heeded."""
    spare: Counter[str] = Counter()
    for change in changes:
        spare.update(
            _mark(line)
            for line in removed_lines(change)
            if _ONE_LINE.search(line.text) or _WHOLE_FILE.search(line.text)
        )
    blanket: list[tuple[Change, Line]] = []
    for change in changes:
        part = role(change.path)
        if part not in {"product", "test", "support"} or _is_generated(change):
            continue
        before = {" ".join(line.split()) for line in (change.old or "").splitlines()}
        after = (change.new or "").splitlines()
        for line in added_lines(change):
            whole = _WHOLE_FILE.search(line.text) if line.text.lstrip().startswith(("#", "/")) else None
            mark = whole or _ONE_LINE.search(line.text)
            if mark is None or len(line.text) > LONGEST_LINE:
                continue
            if spare[_mark(line)] > 0:
                spare[_mark(line)] -= 1
            elif whole:
                yield found(
                    "suppressions-added",
                    change.path,
                    line.number,
                    "Every complaint about this file is silenced.",
                    line.text.strip(),
                )
            elif (
                part == "product"
                and _is_nameless(line.text[mark.start() :])
                and not _NEVER_RUN.search(_around(after, line))
            ):
                says = "A complaint is silenced without saying which."
                yield found("suppressions-added", change.path, line.number, says, line.text.strip())
            elif _is_blanket(line, mark.start(), before, after):
                blanket.append((change, line))
    if len(blanket) >= BULK:
        change, line = blanket[0]
        says = f"{len(blanket)} complaints of tools are silenced in this change."
        yield found("suppressions-added", change.path, line.number, says, line.text.strip())


def _is_blanket(line: Line, mark: int, before: set[str], after: list[str]) -> bool:
    """Tell whether a mark names neither rule nor reason, or was put onto code that was there before."""
    code = " ".join(line.text[:mark].rstrip("#/* {").split())
    below = " ".join(after[line.number].split()) if line.number < len(after) else ""
    old_code = code in before if code else below in before
    says = line.text[mark:]
    return not _RULE.search(says) or (old_code and not _REASON.search(says))


def _is_nameless(says: str) -> bool:
    return not (_RULE.search(says) or _REASON.search(says)) and "prettier" not in says


def _around(lines: list[str], line: Line) -> str:
    return "\n".join(lines[line.number - 1 : line.number + 1])


def _is_generated(change: Change) -> bool:
    return (
        ARTEFACT.search(change.path) is not None
        or re.search(r"(?i)generated|do not edit", (change.new or "")[:600]) is not None
    )


def _mark(line: Line) -> str:
    match = _WHOLE_FILE.search(line.text) or _ONE_LINE.search(line.text)
    return match.group().replace(" ", "") if match else ""
