"""Turn what tests expect into something else: a check that hears of its tests is red with it."""

import re
from collections.abc import Collection, Iterator
from itertools import islice

from unstuck.verify.audit.cases import Case, read_tests
from unstuck.verify.audit.conserve import plain_name
from unstuck.verify.audit.grammars import VALUES, Token, is_kind
from unstuck.verify.change import pattern

_TESTS = re.compile(r"\s*(?:test|\[\[?)\s")
"""A line of the shell that is there for its comparison."""
_OTHER = {"true": "false", "false": "true", "True": "False", "False": "True"}


def expecting_otherwise(path: str, text: str, names: Collection[str] = ()) -> str:
    """Return a text whose tests of these names, or all, expect other values than before; nothing where none can be told to."""
    if pattern("settings", "script").search(path):
        lines = text.splitlines(keepends=True)
        turned = "".join((_TESTS.match(line) and asking_otherwise(line)) or line for line in lines)
        return turned if turned != text else ""
    read = read_tests(path, text)
    wanted = {plain_name(name) for name in names}
    cases = [] if isinstance(read, str) else [one for one in read if not wanted or plain_name(one.name) in wanted]
    tokens = {token.begins: token for case in cases for token in _expected(case)}
    source = text.encode("utf-8", errors="replace")
    changed = False
    for at in sorted(tokens, reverse=True):
        other = _other(tokens[at])
        changed |= other != tokens[at].text
        source = source[:at] + other.encode() + source[at + len(tokens[at].text.encode()) :]
    return source.decode() if changed else ""


def asking_otherwise(line: str) -> str:
    """Return a line of the shell that compares with another value; nothing where it compares with none, or on a condition."""
    if pattern("judge", "turned_round").search(line):
        return ""
    turned = pattern("judge", "compares").sub(lambda found: f"{found[1]}{_digit(found[2])}", line)
    return turned if turned != line else ""


def _digit(letter: str) -> str:
    return str((int(letter) + 4) % 9 + 1) if letter in "0123456789" else f"q{letter}"


def _expected(case: Case) -> Iterator[Token]:
    """Yield the literals that a test compares with, or else those of names that it has for nothing but comparing with them."""
    compared = [token for one in case.assertions for token in one.expects]
    if literals := [token for token in compared if token.sort in VALUES]:
        yield from literals
        return
    for name in dict.fromkeys(token.text for token in compared):
        others = [at for at, token in enumerate(case.tokens) if token.text == name and token not in compared]
        if len(others) != 1:
            continue
        after = case.tokens[others[0] + 1 : others[0] + 3]
        if after and after[0].text in {"=", ":="}:
            yield from (token for token in after[1:] if token.sort in VALUES)
        elif (at := _place_in_rows(case, others[0])) is not None:  # where a row is not that of the names themselves
            names = {token.text for token in case.tokens if token.sort == "id"}
            yield from (row[at] for row in case.cells if row[at].text.strip("'\"") not in names)


def _place_in_rows(case: Case, at: int) -> int | None:
    """Return whether the name that is bound at a token is the first value of a row or else the last; None where it is bound to none."""
    name, following = case.tokens[at], case.tokens[at + 1 : at + 2]
    around = [name.node, *islice(name.node.above(), 2)]
    given = any("parameter" in node.kind for node in around)
    looped = any(one.role == "left" and one.parent and is_kind("loop", one.parent.kind) for one in around)
    if not given and not looped:
        return None
    listed = [re.findall(r"\w+", found[1]) for found in pattern("node", "row_names").finditer(case.marks)]
    if given and listed:
        places = [names.index(name.text) for names in listed if name.text in names]
        return places[0] and -1 if places else None
    return 0 if looped and following and following[0].text == "," and case.tokens[at - 1].text != "," else -1


def _other(token: Token) -> str:
    """Return another value of the same kind; what cannot be told how stays."""
    text = token.text
    if token.sort == "num" and text[0].isdigit() and not text[1:2].isalpha():
        return _digit(text[0]) + text[1:]
    if token.sort == "str" and text[-1] in "\"'`":
        body = text.rstrip(text[-1])
        return f"{body}~{text[len(body) :]}" if body else f"{text[0]}~{text[1:]}"
    return _OTHER.get(text, text)
