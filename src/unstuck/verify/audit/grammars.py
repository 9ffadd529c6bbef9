"""Turn a text of any language into tokens and plain nodes, each token with a word that survives renamed locals and another layout."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from tree_sitter import Language, Parser
from tree_sitter import Node as Parsed

from unstuck.verify.change import known, pattern

DEEPEST = 2_000
"""Levels below which nothing is looked at: no person writes a test like this."""
VALUES = frozenset({"str", "num", "truth"})
CALLS = frozenset({"(", "!", "{", "<", "[", ".(", "do", "?."})
_AFTER_DOT = frozenset({".", "::", "->", "?.", "&.", "!!.", "?->", "#"})
_QUOTES = re.compile(r"""^[A-Za-z@$]{0,3}(?P<q>\"{3}|'{3}|["'`])(?P<body>.*)(?P=q)$""", re.DOTALL)


@dataclass(frozen=True, slots=True, eq=False)
class Grammar:
    """How the tests of one language look: a row of the catalogue, which says what its columns are."""

    language: str
    package: str
    """The Python package that holds the grammar."""
    endings: list[str]
    looks: dict[str, str]
    function: str = "language"

    def fits(self, column: str, text: str) -> bool:
        """Tell whether a name, a mark, a path or a text is what a column is about; `named_in` and `found` are, unless it says more."""
        look = self.looks.get(column)
        return re.search(look, text) is not None if look is not None else column in {"named_in", "found"}


@cache
def grammars() -> tuple[Grammar, ...]:
    """Return the languages whose tests can be read."""
    return tuple(Grammar(**row) for row in known()["language"])


def grammar_of(path: str) -> Grammar | None:
    """Give the grammar of a path by its ending."""
    ending = path.rpartition(".")[2].lower() if "." in path else ""
    return next((grammar for grammar in grammars() if ending in grammar.endings), None)


@cache
def words(name: str) -> frozenset[str]:
    """Return one of the lists of words that stand in the catalogue by their names."""
    return frozenset(known()["word"][name].split())


@cache
def is_kind(name: str, kind: str) -> bool:
    """Tell whether a kind of node is what the catalogue calls so."""
    return pattern("node", name).search(kind) is not None


@dataclass(slots=True, eq=False)
class Token:
    """One leaf of the tree; a text in quotes is one token, however it is built."""

    text: str
    sort: str
    """One of: id, str, num, truth, op."""
    line: int
    node: "Node"
    begins: int = 0
    """The byte of the text that it begins at."""
    word: str = ""
    """What stays of it when only names of locals and layout change; empty where nothing does."""
    called: bool = False
    """It names something that is called, looked up in something, or a constant."""
    receiver: str = ""
    """What stands before the dot that it stands behind."""


@dataclass(slots=True, eq=False)
class Node:
    """One named node: its kind, the tokens that it spans, and its place in the tree."""

    kind: str
    role: str
    """The name of the field that it fills in its parent."""
    line: int
    all: list[Token]
    """Every token of the text."""
    start: int
    parent: "Node | None" = None
    end: int = 0
    children: "list[Node]" = field(default_factory=list)
    idle: str = ""
    """Why what is asserted here can never fail; empty where it can."""
    guarded: bool = False
    """It is reached on a condition only."""

    @property
    def tokens(self) -> list[Token]:
        return self.all[self.start : self.end]

    @property
    def text(self) -> str:
        return text_of(self.tokens)

    def part(self, *roles: str) -> "Node | None":
        """Give the first child that fills one of these fields."""
        return next((child for child in self.children if child.role in roles), None)

    def above(self) -> "Iterator[Node]":
        """Give its ancestors, the nearest first."""
        node = self
        while node.parent is not None:
            node = node.parent
            yield node

    def holds(self, other: "Node") -> bool:
        return self.start <= other.start and other.end <= self.end


def text_of(tokens: Sequence[Token]) -> str:
    return " ".join(token.text for token in tokens)


def key_of(tokens: Sequence[Token]) -> str:
    """Give what tokens say whatever the locals are called and however they are laid out."""
    return " ".join(token.word for token in tokens if token.word)


def names_of(tokens: Sequence[Token]) -> frozenset[str]:
    return frozenset(token.word for token in tokens if token.called)


def values_of(tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(token.word for token in tokens if token.sort in VALUES)


def parse(grammar: Grammar, text: str) -> Node | None:
    """Parse a text; where a part does not fit the grammar the rest is still read, where most of it does not, nothing is."""
    source = text.encode("utf-8", errors="replace")
    root = Node("", "", 1, [], 0)
    lost = _plain(_parser(grammar.package, grammar.function).parse(source).walk(), source, root)
    root.end = len(root.all)
    for at in range(root.end):
        _give_word(root.all, at)
    top = root.children[0] if len(root.children) == 1 else root
    return None if lost * 2 > len(source) else top


@cache
def _parser(package: str, function: str) -> Parser:
    return Parser(Language(getattr(import_module(package), function)()))


def _plain(cursor: Any, source: bytes, node: Node) -> int:
    """Copy what is named and what is a leaf below a node; say how many bytes do not fit the grammar."""
    tokens = node.all
    depth, lost = 0, 0
    while True:
        here: Parsed = cursor.node
        kind, line = here.type, here.start_point[0] + 1
        comment = here.is_named and is_kind("comment", kind)
        if here.is_named and not comment:
            child = Node(kind, cursor.field_name or "", line, tokens, len(tokens), node)
            node.children.append(child)
            node = child
        lost += here.end_byte - here.start_byte if kind == "ERROR" else 0
        whole = comment or depth >= DEEPEST or (here.is_named and is_kind("string", kind))
        if not whole and cursor.goto_first_child():
            depth += 1
            continue
        said = "" if comment else source[here.start_byte : here.end_byte].decode("utf-8", "replace")
        if said.strip():
            tokens.append(Token(said, _sort(kind, said, named=here.is_named), line, node, here.start_byte))
        while True:
            if cursor.node.is_named and not is_kind("comment", cursor.node.type):
                node.end = len(tokens)
                node = node.parent or node
            if cursor.goto_next_sibling():
                break
            if not cursor.goto_parent():
                return lost
            depth -= 1


def _sort(kind: str, text: str, *, named: bool) -> str:
    if (
        text.lower() in words("truths")
        and not is_kind("member", kind)
        and not (text[:1].isupper() and "identifier" in kind)
    ):
        return "truth"
    if named and is_kind("string", kind):
        return "str"
    if (named and text[:1].isdigit() and is_kind("number", kind)) or (text[:1] in "-." and text[1:2].isdigit()):
        return "num"
    return "id" if named and pattern("node", "identifier").fullmatch(text) else "op"


def _give_word(tokens: Sequence[Token], at: int) -> None:
    """Say what stays of a token, by those beside it."""
    token, before = tokens[at], tokens[at - 1].text if at else ""
    after = tokens[at + 1].text if at + 1 < len(tokens) else ""
    member = before in _AFTER_DOT
    token.receiver = tokens[at - 2].text if member and at > 1 else ""
    match token.sort:
        case "id" | "op" if token.text in words("noise"):
            pass
        case "id":
            own = member and token.receiver in words("own") and after not in CALLS
            token.called = not own and (member or after in CALLS or is_callee(token.node) or token.text[:1].isupper())
            token.word = token.text if token.called else "_"
        case "str":
            quoted = _QUOTES.match(token.text)
            token.word = repr(quoted["body"] if quoted else token.text)
        case "num":
            token.word = token.text.replace("_", "").rstrip("lLuUfFdDmM") or token.text
            if before == "-" and tokens[at - 2].sort == "op" and tokens[at - 2].text not in {")", "]"}:
                tokens[at - 1].word, token.word = "", f"-{token.word}"
        case "truth":
            token.word = token.text.lower()
        case _:
            token.word = "" if token.text == "," and after in {")", "]", "}"} else token.text


def is_callee(node: Node) -> bool:
    if node.role in {"function", "method", "macro", "target"}:
        return True
    beside = node.parent.children if node.parent is not None and node.parent.kind == "infix_expression" else []
    return len(beside) > 1 and beside[1] is node
