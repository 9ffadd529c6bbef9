"""Turn a syntax tree of any grammar into tokens and plain nodes, without recursion and within bounds."""

import re
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Literal, NamedTuple

from tree_sitter import Language, Parser
from tree_sitter import Tree as Parsed

from unstuck.verify.audit.grammars import Grammar

LONGEST = 300_000
"""Characters of a text that is still parsed."""
DEEPEST = 2_000
"""Levels below which nothing is looked at: no person writes a test like this."""

Sort = Literal["id", "str", "num", "truth", "op"]

_STRING = re.compile(
    r"string|char(?:acter)?_literal|charlist|regex|heredoc|rune_literal|symbol$|^atom$|sigil|^quoted_atom"
)
_TYPE = re.compile(r"type$|_type\b")
_MEMBER = re.compile(r"property|field|method")
_NUMBER = re.compile(r"number|integer|float|decimal|int_literal|real_literal|hex_literal|imaginary")
_COMMENT = re.compile(r"comment")
_IDENTIFIER = re.compile(r"[@$]{0,2}[A-Za-z_][\w$]*[?!]?|`[^`]+`")
TRUTHS = frozenset({"true", "false", "null", "nil", "none", "undefined", "nullptr"})


class Token(NamedTuple):
    """One leaf of the tree; a string is one token, however it is built."""

    text: str
    sort: Sort
    line: int
    node: "Node"


@dataclass(slots=True, eq=False)
class Node:
    """One named node: its kind, the tokens that it spans, and its place in the tree."""

    kind: str
    role: str
    """The name of the field that it fills in its parent."""
    line: int
    start: int
    parent: "Node | None" = None
    end: int = 0
    children: "list[Node]" = field(default_factory=list)
    remark: str = ""
    """The comment right above it."""
    left: int = -1
    """The token at which a block is left whatever happens; -1 until somebody asks."""
    handlers: "list[Node] | None" = None
    """Its parts that catch a failure; None until somebody asks."""

    def above(self) -> "list[Node]":
        """Give its ancestors, the nearest first."""
        found: list[Node] = []
        node = self.parent
        while node is not None:
            found.append(node)
            node = node.parent
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    root: Node
    tokens: list[Token]
    broken: bool
    """Most of the text does not fit the grammar."""

    def text(self, node: Node) -> str:
        return " ".join(token.text for token in self.tokens[node.start : node.end])


def parse(grammar: Grammar, text: str) -> Tree:
    """Parse a text; where a part does not fit the grammar, the rest is still read."""
    source = text.encode("utf-8", errors="replace")
    return _plain(_parser(grammar.package, grammar.function).parse(source), source)


@cache
def _parser(package: str, function: str) -> Parser:
    return Parser(Language(getattr(import_module(package), function)()))


@cache
def _sorted(kind: str) -> tuple[bool, bool, bool]:
    """Tell of a kind of node whether it is a comment, a text in quotes, or a number."""
    atom = _STRING.search(kind) is not None and not _TYPE.search(kind)
    return _COMMENT.search(kind) is not None, atom, _NUMBER.search(kind) is not None


def _plain(parsed: Parsed, source: bytes) -> Tree:
    cursor = parsed.walk()
    tokens: list[Token] = []
    root = Node("", "", 1, 0)
    node, depth, lost = root, 0, 0
    remark, remark_end = "", -2
    while True:
        here = cursor.node
        assert here is not None  # a cursor always stands on a node
        kind, named = here.type, here.is_named
        entered = False
        comment, atom, number = _sorted(kind) if named else (False, False, False)
        if comment:
            text = source[here.start_byte : here.end_byte].decode("utf-8", "replace")
            remark = f"{remark}\n{text}" if here.start_point[0] <= remark_end + 1 else text
            remark_end = here.end_point[0]
        else:
            if kind == "ERROR":
                lost += here.end_byte - here.start_byte
            if named:
                child = Node(kind, cursor.field_name or "", here.start_point[0] + 1, len(tokens), node)
                if here.start_point[0] <= remark_end + 1:
                    child.remark = remark
                node.children.append(child)
                node = child
            if not atom and depth < DEEPEST and cursor.goto_first_child():
                depth += 1
                entered = True
            else:
                text = source[here.start_byte : here.end_byte].decode("utf-8", "replace")
                if text.strip():
                    tokens.append(
                        Token(
                            text,
                            _sort(kind, text, atom=atom, number=number, named=named),
                            here.start_point[0] + 1,
                            node,
                        )
                    )
                if named:
                    node.end = len(tokens)
                    node = node.parent or root
        if entered:
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                root.end = len(tokens)
                top = root.children[0] if len(root.children) == 1 else root
                return Tree(top, tokens, broken=lost * 2 > len(source))
            depth -= 1
            above = cursor.node
            if above is not None and above.is_named:
                node.end = len(tokens)
                node = node.parent or root


def _sort(kind: str, text: str, *, atom: bool, number: bool, named: bool) -> Sort:
    if text.lower() in TRUTHS and not _MEMBER.search(kind) and not (text[:1].isupper() and "identifier" in kind):
        return "truth"
    if atom:
        return "str"
    if (number and text[:1].isdigit()) or (text[:1] in "-." and text[1:2].isdigit()):
        return "num"
    return "id" if named and _IDENTIFIER.fullmatch(text) else "op"
