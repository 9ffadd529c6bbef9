"""Tell commands that can fail from those that cannot: `echo 'Verify manually'` checks nothing, whatever it prints."""

import re

from unstuck.tools.command_line import QUOTED

_NEVER_FAIL = frozenset({"echo", "printf", "true", ":", "sleep", "pwd", "date"})
_BLOCKS = re.compile(r"[(){}`]|\$\(|(?:^|[;&|\n]\s*)(?:if|for|while|until|case|function|trap|\[\[|!)\b|(?:^|\s)!\s")
"""A line with any of these is not taken apart: it is taken for a check."""
_STRICT = re.compile(r"(?:^|[;&\n]\s*)set\s+(?:-\w*e|-o\s+errexit)")
_ASSIGNMENT = re.compile(r"^\w+=\S*\s*")


def can_fail(command: str) -> bool:
    """Whether the line can end with another exit code than 0, as far as its text shows."""
    bare = re.sub(r"(?:^|\s)#.*$", "", QUOTED.sub(" '' ", command), flags=re.MULTILINE)
    if _BLOCKS.search(bare):
        return True
    lists = [part for part in re.split(r"[;\n]|(?<![&>])&(?![&>])", bare) if part.strip()]
    if not lists:
        return False
    return any(map(_list_can_fail, lists)) if _STRICT.search(bare) else _list_can_fail(lists[-1])


def _list_can_fail(line: str) -> bool:
    """Fold `a && b || c` from the left, as the shell does."""
    first, *rest = re.split(r"(&&|\|\|)", line)
    possible = _pipeline_can_fail(first)
    for operator, part in zip(rest[::2], rest[1::2], strict=True):
        following = _pipeline_can_fail(part)
        possible = possible or following if operator == "&&" else possible and following
    return possible


def _pipeline_can_fail(pipeline: str) -> bool:
    last = pipeline.rpartition("|")[2].strip()
    while match := _ASSIGNMENT.match(last):
        last = last[match.end() :]
    words = last.split()
    if not words or words[0] in _NEVER_FAIL or words[0] == "set":
        return False
    return words[:2] != ["exit", "0"]
