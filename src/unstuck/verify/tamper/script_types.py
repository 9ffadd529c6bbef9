"""Take out of TypeScript tokens what only the compiler reads, so that a test says the same with and without it."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

LONGEST_TYPE, DEEPEST_TYPE = 60, 6
"""Tokens; what is longer is no type argument."""

_IN_TYPE = frozenset({",", ".", "|", "&", "[", "]", "{", "}", ":", ";", "?"})
_WORDS = frozenset({"return", "case", "of", "in", "else", "typeof", "await", "yield", "new", "delete", "void"})
_PREFIX = frozenset({"typeof", "keyof", "readonly", "unique"})
_CLOSES = {"{": "}", "[": "]", "(": ")", "<": ">"}


class Piece(Protocol):
    """What a token must have."""

    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...


T = TypeVar("T", bound=Piece)


def without_types(tokens: Sequence[T]) -> list[T]:
    """Leave out type arguments of calls, `as T`, `satisfies T`, and the `!` of "it is there"."""
    kept: list[T] = []
    at, importing = 0, False
    while at < len(tokens):
        token = tokens[at]
        after = tokens[at + 1].text if at + 1 < len(tokens) else ""
        if token.text in {"import", "export"} and after in {"{", "*", "type"}:
            importing = True
        elif token.text in {"from", ";"} or token.kind == "str":
            importing = False
        before = kept[-1] if kept else None
        if before is not None and not importing and _ends_value(before):
            end = _skipped(tokens, at, before, after)
            if end > at:
                at = end
                continue
        kept.append(token)
        at += 1
    return kept


def _skipped(tokens: Sequence[Piece], at: int, before: Piece, after: str) -> int:
    """Return where the tokens of a type end that begin here; the same place where none do."""
    text = tokens[at].text
    if text == "!" and after in {".", ")", ",", ";", "[", "]"}:
        return at + 1
    if text in {"as", "satisfies"} and tokens[at].kind == "id":
        return _type_end(tokens, at + 1) if after not in {"", ",", ")", "=", "(", "."} else at
    if text == "<" and before.kind == "id":
        end = _closing(tokens, at)
        if end and end + 1 < len(tokens) and tokens[end + 1].text == "(":
            return end + 1
    return at


def _ends_value(token: Piece) -> bool:
    if token.kind == "id":
        return token.text not in _WORDS
    return token.kind in {"str", "num", "template"} or token.text in {")", "]", "}"}


def _closing(tokens: Sequence[Piece], at: int) -> int:
    """Return where the `>` stands that closes a `<`; 0 where this is no list of types."""
    depth = 0
    for place in range(at, min(at + LONGEST_TYPE, len(tokens))):
        text = tokens[place].text
        if text == "<":
            depth += 1
            if depth > DEEPEST_TYPE:
                return 0
        elif text == ">":
            depth -= 1
            if depth == 0:
                return place
        elif tokens[place].kind == "punc" and text not in _IN_TYPE:
            return 0
    return 0


def _type_end(tokens: Sequence[Piece], at: int) -> int:
    while at < len(tokens):
        while at < len(tokens) and tokens[at].text in _PREFIX:
            at += 1
        at = _primary_end(tokens, at)
        if at >= len(tokens) or tokens[at].text not in {"|", "&"}:
            return at
        at += 1
    return at


def _primary_end(tokens: Sequence[Piece], at: int) -> int:
    at = _bracket_end(tokens, at) if at < len(tokens) and tokens[at].text in _CLOSES else at + 1
    while at + 1 < len(tokens):
        if tokens[at].text == "." and tokens[at + 1].kind == "id":
            at += 2
        elif tokens[at].text == "<" or (tokens[at].text == "[" and tokens[at + 1].text == "]"):
            at = _bracket_end(tokens, at)
        else:
            break
    return at


def _bracket_end(tokens: Sequence[Piece], at: int) -> int:
    opening, closing, depth = tokens[at].text, _CLOSES[tokens[at].text], 0
    for place in range(at, min(at + LONGEST_TYPE, len(tokens))):
        depth += (tokens[place].text == opening) - (tokens[place].text == closing)
        if depth == 0:
            return place + 1
    return at + 1
