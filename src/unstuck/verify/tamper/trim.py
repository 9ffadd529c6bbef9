"""Blank out the tests that a change leaves as they are, so that a large file costs no more than what changed in it.

Only what stands at the beginning of a line opens a piece; line numbers stay. Where anything outside the tests changed
that could bear on them, nothing is blanked out.
"""

import re
from collections import Counter
from collections.abc import Iterator

from unstuck.verify.tamper.change import Change, added_lines, language

SMALL = 2_000
"""Characters below which trimming saves nothing."""

_TEST = {
    "python": re.compile(r"^(?:async )?def (test\w*)\(|^class (\w*Test\w*)", re.MULTILINE),
    "script": re.compile(r"\A(?:describe|it|test|suite|context)\b[\w.]*\("),
}
_BEARS = re.compile(
    r"autouse|pytestmark|set[uU]p|skip|patch|[mM]ock|globals|setattr|\bdel\b|before|after|spyOn|stub|exit|only|__test__"
)
_OUTSIDE = re.compile(r"import\b|from\b|#|//|/\*|\*|const .*require\(")
_FAKE = re.compile(r"(?i)fake|mock|stub|dummy|import\(|\*/|pytest|[;\\]")


def trim(tongue: str, old: str, new: str) -> tuple[str, str]:
    """Give both texts without the tests that are the same in both."""
    shape = _TEST.get(tongue)
    if shape is None or min(len(old), len(new)) < SMALL:
        return old, new
    before, after = list(_pieces(old, tongue)), list(_pieces(new, tongue))
    kept, now = (
        Counter(piece for piece in pieces if not shape.search(piece) and not _OUTSIDE.match(piece))
        for pieces in (before, after)
    )
    if kept - now or any(_BEARS.search(piece) for piece in now - kept):
        return old, new
    heads = Counter(match.group() for piece in after if (match := shape.search(piece)))
    same = Counter(piece for piece in before if _is_whole(piece, tongue)) & Counter(after)
    same = Counter(
        {
            piece: count
            for piece, count in same.items()
            if (match := shape.search(piece)) and (tongue == "script" or heads[match.group()] == 1)
        }
    )
    return _blanked(before, same), _blanked(after, same)


def is_idle(change: Change) -> bool:
    """Tell whether a change of tests touches nothing but imports, comments and blank lines, as mass edits do."""
    if change.old is None or change.new is None or language(change.path) not in _TEST:
        return False
    old, new = (list(_bearing(text)) for text in (change.old, change.new))
    return old == new and not any(_FAKE.search(line.text) for line in added_lines(change))


def _bearing(text: str) -> Iterator[str]:
    for line in text.splitlines():
        bare = line.lstrip()
        if bare and not _OUTSIDE.match(bare):
            yield line.rstrip()


def _pieces(text: str, tongue: str) -> Iterator[str]:
    """Cut a text where a line begins at its margin, keeping decorators with what they decorate."""
    lines: list[str] = []
    decorating = False
    for line in text.splitlines(keepends=True):
        opens = not line[0].isspace() and line[0] not in ")]}"
        if opens and lines and not decorating:
            yield "".join(lines)
            lines = []
        lines.append(line)
        if opens:
            decorating = tongue == "python" and line[0] == "@"
    if lines:
        yield "".join(lines)


def _is_whole(piece: str, tongue: str) -> bool:
    """Tell whether a piece can be taken out: a string that goes on beyond it would tear the text apart."""
    if tongue == "python":
        return piece.count('"""') % 2 == 0 and piece.count("'''") % 2 == 0
    return piece.count("`") % 2 == 0 and all(piece.count(one) == piece.count(two) for one, two in ("{}", "()", "[]"))


def _blanked(pieces: list[str], same: Counter[str]) -> str:
    left = same.copy()
    out: list[str] = []
    for piece in pieces:
        if left[piece] > 0:
            left[piece] -= 1
            out.append("\n" * len(piece.splitlines()))
        else:
            out.append(piece)
    return "".join(out)
