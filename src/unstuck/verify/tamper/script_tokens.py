"""Cut JavaScript or TypeScript into tokens and match its brackets; never fails, whatever the text."""

import re
from dataclasses import dataclass

from unstuck.verify.tamper.script_types import without_types

_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)|<!--[^\n]*)"
    r"|(?P<str>'(?:[^'\\\n]|\\[\s\S])*'|\"(?:[^\"\\\n]|\\[\s\S])*\")"
    r"|(?P<num>(?:0[xXbBoO][\da-fA-F_]+|(?:\d[\d_]*)?\.?\d[\d_]*\.?(?:[eE][+-]?\d+)?)n?)"
    r"|(?P<id>[A-Za-z_$#@\u0080-\uffff][\w$\u0080-\uffff]*)"
    r"|(?P<punc>=>|\.\.\.|\?\.(?!\d)|\?\?=?|===|!==|==|!=|<=|>=|&&=?|\|\|=?|\+\+|--|\+=|-=|\*\*|\*=|/=|[\s\S])"
)
_REGEX = re.compile(r"/(?![*/])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
_BEFORE_REGEX = frozenset({
    "(", ",", "=", ":", "[", "!", "&", "|", "?", "{", "}", ";", "=>", "&&", "||", "??", "return", "typeof",
    "case", "in", "of", "==", "===", "!=", "!==", "+", "-", "<", ">",
})  # fmt: skip
UNCLOSED = 500
"""How many tokens we look at behind a bracket that is never closed."""
_PAIRS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    """id, num, str, template, regex or punc."""
    text: str
    line: int
    value: str = ""
    """Of a literal, what it stands for, whatever the quotes."""


@dataclass(frozen=True, slots=True)
class Script:
    """A text as tokens, and for each opening bracket where it closes."""

    tokens: tuple[Token, ...]
    closes: dict[int, int]
    opens: dict[int, int]
    """The other way round."""
    around: tuple[int, ...]
    """For each token, where the innermost bracket around it closes."""

    def end(self, start: int) -> int:
        """Return where the bracket at `start` closes, or the end of the text."""
        return self.closes.get(start, len(self.tokens))

    def text(self, at: int) -> str:
        """Return the text of a token; empty beyond the ends."""
        return self.tokens[at].text if 0 <= at < len(self.tokens) else ""


def cut(text: str) -> Script:
    """Cut a text into tokens."""
    tokens: list[Token] = []
    position, line = 0, 1
    while position < len(text):
        char = text[position]
        start_line = line
        if char == "`":
            end = _template_end(text, position)
            raw = text[position:end]
            tokens.append(Token("template", raw, start_line, raw.strip("`")))
        elif (
            char == "/" and (not tokens or tokens[-1].text in _BEFORE_REGEX) and (found := _REGEX.match(text, position))
        ):
            end = found.end()
            tokens.append(Token("regex", found.group(), start_line, found.group()))
        else:
            match = _TOKEN.match(text, position)
            assert match is not None  # the last alternative takes any character
            end = match.end()
            kind = match.lastgroup or "punc"
            if kind != "space":
                tokens.append(Token(kind, match.group(), start_line, _value(kind, match.group())))
        line += text.count("\n", position, end)
        position = end
    tokens = without_types(tokens)
    closes = _brackets(tokens)
    opens = {closing: opening for opening, closing in closes.items()}
    return Script(tuple(tokens), closes, opens, _around(len(tokens), closes))


def _value(kind: str, text: str) -> str:
    if kind == "str":
        return text[1:-1].replace("\\'", "'").replace('\\"', '"')
    if kind == "num":
        return text.replace("_", "")
    return ""


def _template_end(text: str, start: int) -> int:
    depth, position = 0, start + 1
    while position < len(text):
        char = text[position]
        if char == "\\":
            position += 1
        elif char == "`" and depth == 0:
            return position + 1
        elif char == "$" and text[position + 1 : position + 2] == "{":
            depth += 1
            position += 1
        elif char == "{" and depth:
            depth += 1
        elif char == "}" and depth:
            depth -= 1
        position += 1
    return len(text)


def _brackets(tokens: list[Token]) -> dict[int, int]:
    closes: dict[int, int] = {}
    stack: list[tuple[str, int]] = []
    for place, token in enumerate(tokens):
        if token.kind != "punc":
            continue
        if token.text in _PAIRS:
            stack.append((_PAIRS[token.text], place))
        elif token.text in ")]}":
            # A bracket that does not fit closes the nearest one that it can, so one slip does not spoil the rest.
            for depth in range(len(stack) - 1, max(-1, len(stack) - 6), -1):
                if stack[depth][0] == token.text:
                    closes[stack[depth][1]] = place
                    del stack[depth:]
                    break
    return closes


def _around(count: int, closes: dict[int, int]) -> tuple[int, ...]:
    stack = [count]
    ends: list[int] = []
    for place in range(count):
        while len(stack) > 1 and stack[-1] < place:
            stack.pop()
        ends.append(stack[-1])
        if place in closes:
            stack.append(closes[place])
    return tuple(ends)


def arguments(script: Script, opening: int) -> list[tuple[int, int]]:
    """Split what stands in a bracket at its commas: first token and end of each part."""
    end = script.closes.get(opening, min(len(script.tokens), opening + UNCLOSED))
    parts: list[tuple[int, int]] = []
    start = place = opening + 1
    while place < end:
        if place in script.closes:
            place = script.closes[place]
        elif script.tokens[place].text == "," and script.tokens[place].kind == "punc":
            parts.append((start, place))
            start = place + 1
        place += 1
    if start < end:
        parts.append((start, end))
    return parts


def statement_end(script: Script, start: int, limit: int) -> int:
    """Return where the expression that begins at `start` ends: at a semicolon, a comma, or a line that begins anew."""
    place = start
    while place < limit:
        token = script.tokens[place]
        if token.kind == "punc" and token.text in {";", ",", ")", "]", "}"}:
            return place
        if place > start and token.line > script.tokens[place - 1].line and _begins_anew(script, place):
            return place
        place = script.closes.get(place, place) + 1
    return limit


def _begins_anew(script: Script, place: int) -> bool:
    before, token = script.tokens[place - 1], script.tokens[place]
    if before.kind == "punc" and before.text not in {")", "]", "}", "++", "--"}:
        return False
    if before.text in {"await", "return", "new", "typeof", "async", "of", "in", "yield"}:
        return before.text == "return"
    return not (token.kind == "punc" and token.text not in {"{", "}", "!", "++", "--", ";"}) and token.text not in {
        "instanceof", "in", "of", "as", "satisfies",
    }  # fmt: skip
