"""Write a piece of JavaScript in a form that survives renamed locals, extracted variables and reformatting."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from unstuck.verify.tamper.script_tokens import Script, statement_end

Span = tuple[int, int]
DEEPEST_INLINING = 5
MOST_PIECES = 1500

BLURS = frozenset({
    "sort", "toSorted", "Set", "round", "floor", "ceil", "abs", "Boolean", "toLowerCase", "toUpperCase", "trim",
    "String", "Number", "parseInt", "length", "size", "toFixed", "keys", "includes", "startsWith", "endsWith", "some",
})  # fmt: skip
_KEYWORDS = frozenset({
    "true", "false", "null", "undefined", "NaN", "Infinity",
})  # fmt: skip
_WORDS = frozenset({
    "await", "async", "new", "return", "typeof", "void", "function", "const", "let", "var", "this", "of", "in",
    "if", "else", "for", "while",
})  # fmt: skip
_SILENT = frozenset({"await", ";", "async", "?."})


@dataclass(slots=True)
class Form:
    pieces: list[tuple[bool, str]] = field(default_factory=list)
    literals: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    blurs: set[str] = field(default_factory=set)

    @property
    def key(self) -> str:
        return " ".join(text for _, text in self.pieces)

    @property
    def shape(self) -> str:
        return " ".join("#" if text in self.literals else text for _, text in self.pieces)

    @property
    def skeleton(self) -> str:
        return " ".join("_" if name else text for name, text in self.pieces)


def form(script: Script, span: Span, known: Mapping[str, Span]) -> Form:
    """Write out the tokens of a span; names in `known` are replaced by what they stand for."""
    found = Form()
    _write(script, span, known, found, 0)
    return found


def _write(script: Script, span: Span, known: Mapping[str, Span], to: Form, depth: int) -> None:
    for place in range(*span):
        if len(to.pieces) > MOST_PIECES:
            return
        token = script.tokens[place]
        before, after = script.text(place - 1), script.text(place + 1)
        if token.kind == "template" and "${" in token.value:
            _write_template(script, token.value, known, to, depth)
        elif token.kind in {"str", "num", "regex", "template"}:
            _write_literal(token.kind, token.value, before, to)
        elif token.kind == "punc":
            if token.text == "," and after in {"]", "}", ")"}:
                continue  # formatters add and remove the last comma
            if token.text not in _SILENT:
                to.pieces.append((False, "." if token.text == "?." else token.text))
            elif token.text == "?.":
                to.pieces.append((False, "."))
        elif token.text in _KEYWORDS:
            to.literals.add(token.text)
            to.pieces.append((False, token.text))
        elif token.text in _WORDS:
            if token.text == "typeof":
                to.blurs.add("typeof")
            if token.text not in _SILENT:
                to.pieces.append((False, token.text))
        else:
            _write_name(
                script, place, known, to, depth, member=before in {".", "?."}, called=after == "(", key=after == ":"
            )


def _write_template(script: Script, value: str, known: Mapping[str, Span], to: Form, depth: int) -> None:
    """Write `a ${b}` as 'a ' + b."""
    first = True
    for part in re.split(r"(\$\{[^{}]*\})", value):
        if not part:
            continue
        if not first:
            to.pieces.append((False, "+"))
        first = False
        inner = part[2:-1].strip() if part.startswith("${") else ""
        if inner.isidentifier() and inner in known and depth < DEEPEST_INLINING:
            _write(script, known[inner], known, to, depth + 1)
        elif inner:
            to.pieces.append((True, "_" if inner.isidentifier() else inner))
        else:
            _write_literal("str", part, "", to)


def _write_literal(kind: str, value: str, before: str, to: Form) -> None:
    text = value if kind == "num" else repr(value)
    if kind == "num" and before == "-":
        text = "-" + value
    to.literals.add(text)
    to.pieces.append((False, text))


def _write_name(
    script: Script,
    place: int,
    known: Mapping[str, Span],
    to: Form,
    depth: int,
    *,
    member: bool,
    called: bool,
    key: bool,
) -> None:
    name = script.tokens[place].text
    meant = known.get(name)
    if not member and not key and not called and meant is not None and depth < DEEPEST_INLINING:
        _write(script, meant, known, to, depth + 1)
        return
    if name in BLURS and (member or called):
        to.blurs.add(name)
        to.pieces.append((False, f"<{name}>"))
    if member or called or key or (name.isupper() and len(name) > 1):
        to.names.add(name)
        to.pieces.append((True, name))
    else:
        to.pieces.append((True, "_"))


def single_assignments(script: Script, span: Span) -> dict[str, Span]:
    """Give the names of a block that are declared once and never assigned again, with what they stand for."""
    found: dict[str, Span] = {}
    again: set[str] = set()
    place, end = span
    while place < end:
        token = script.tokens[place]
        if token.text in {"const", "let", "var"} and place + 2 < end and script.tokens[place + 1].kind == "id":
            name, at = script.tokens[place + 1].text, place + 2
            if script.text(at) == ":":  # a type
                at = _after_type(script, at, end)
            if script.text(at) == "=":
                stop = statement_end(script, at + 1, end)
                if name in found:
                    again.add(name)
                elif not _is_function(script, (at + 1, stop)):
                    found[name] = (at + 1, stop)
                place = at
        elif token.kind == "id" and script.text(place + 1) in {"=", "+=", "-=", "++", "--"} and script.text(place - 1) not in {
            ".", "const", "let", "var",
        }:  # fmt: skip
            again.add(token.text)
        place += 1
    return {name: meant for name, meant in found.items() if name not in again}


def _after_type(script: Script, at: int, end: int) -> int:
    while at < end and script.text(at) not in {"=", ";"}:
        at = script.closes.get(at, at) + 1
    return at


def _is_function(script: Script, span: Span) -> bool:
    start = span[0]
    if script.text(start) == "async":
        start += 1
    if script.text(start) == "function":
        return True
    after = script.end(start) + 1 if script.text(start) == "(" else start + 1
    return script.text(after) == "=>"
