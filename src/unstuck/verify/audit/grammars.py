"""Turn a text of any language into tokens, plain nodes, and words that survive renamed locals and another layout."""

import re
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Literal, NamedTuple

from tree_sitter import Language, Parser
from tree_sitter import Tree as Parsed

from unstuck.verify.change import known

NEVER, ALWAYS = re.compile(r"(?!)"), re.compile(r"")
_PLAIN = frozenset({"language", "package", "function", "endings"})
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
_AFTER_DOT = frozenset({".", "::", "->", "?.", "&.", "!!.", "?->", "#"})
CALLS = frozenset({"(", "!", "{", "<", "[", ".(", "do", "?."})
_OWN = frozenset({"self", "this", "$this", "@"})
_NOISE = frozenset({
    ";", "await", "async", "try", "self", "this", "$this", "let", "const", "var", "val", "mut", "final", "new", "&", "*", "$", "return",
})  # fmt: skip
_QUOTES = re.compile(r"""^[A-Za-z@$]{0,3}(?P<q>\"{3}|'{3}|["'`])(?P<body>.*)(?P=q)$""", re.DOTALL)
_CALLED_FIELD = frozenset({"function", "method", "macro", "target"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """How the tests of one language look: a row of the catalogue, its patterns over names, marks and paths."""

    language: str
    package: str
    """The Python package that holds the grammar."""
    endings: tuple[str, ...]
    function: str = "language"
    tests: re.Pattern[str] = NEVER
    """Names of functions that a runner takes for tests."""
    named_in: re.Pattern[str] = ALWAYS
    """What a text must hold for names alone to make tests."""
    marks: re.Pattern[str] = NEVER
    """Annotations, attributes and comments that make a function a test."""
    blocks: re.Pattern[str] = NEVER
    """Calls that hold a test in a block."""
    groups: re.Pattern[str] = NEVER
    """Calls that hold several tests in a block."""
    asserts: re.Pattern[str] = NEVER
    """Names that assert when they are called."""
    told: re.Pattern[str] = NEVER
    """Methods that assert when they are called on a certain receiver, as `t.Errorf`."""
    found: re.Pattern[str] = ALWAYS
    """Paths at which a runner with common settings looks for tests."""
    shut: re.Pattern[str] = NEVER
    """Lines that keep a whole file from being built or run."""


@cache
def grammars() -> tuple[Grammar, ...]:
    """Return the languages whose tests can be read."""
    return tuple(Grammar(**{key: _cell(key, value) for key, value in row.items()}) for row in known()["language"])


def _cell(key: str, value: Any) -> Any:
    return value if key in _PLAIN else re.compile(value)


def grammar_of(path: str) -> Grammar | None:
    """Give the grammar of a path by its ending."""
    ending = path.rpartition(".")[2].lower() if "." in path else ""
    return next((grammar for grammar in grammars() if ending in grammar.endings), None)


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


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """The tokens of a tree as words: what stays the same when only names of locals and layout change."""

    tree: Tree
    words: list[str]
    called: list[bool]
    """Of each token, whether it names something that is called, looked up in something, or a constant."""
    receivers: list[str]
    """Of each token after a dot, what stands before the dot."""

    def text(self, start: int, end: int) -> str:
        return " ".join(token.text for token in self.tree.tokens[start:end])

    def key(self, start: int, end: int) -> str:
        return " ".join(word for word in self.words[start:end] if word)

    def names(self, start: int, end: int) -> frozenset[str]:
        return frozenset(self.words[at] for at in range(start, end) if self.called[at])

    def values(self, start: int, end: int) -> tuple[str, ...]:
        tokens = self.tree.tokens
        return tuple(self.words[at] for at in range(start, end) if tokens[at].sort in {"str", "num", "truth"})


def form_of(tree: Tree) -> Form:
    """Normalise the tokens of a tree."""
    tokens = tree.tokens
    words: list[str] = []
    called: list[bool] = []
    receivers: list[str] = []
    last = len(tokens) - 1
    for at, token in enumerate(tokens):
        before = tokens[at - 1].text if at else ""
        after = tokens[at + 1].text if at < last else ""
        member = before in _AFTER_DOT
        receivers.append(tokens[at - 2].text if member and at > 1 else "")
        name = False
        match token.sort:
            case "id" if token.text in _NOISE:
                word = ""
            case "id":
                own = member and receivers[-1] in _OWN and after not in CALLS
                name = not own and (member or after in CALLS or is_callee(token.node) or token.text[:1].isupper())
                word = token.text if name else "_"
            case "str":
                found = _QUOTES.match(token.text)
                word = repr(found["body"] if found else token.text)
            case "num":
                word = token.text.replace("_", "").rstrip("lLuUfFdDmM") or token.text
                if before == "-" and words and tokens[at - 2].sort == "op" and tokens[at - 2].text not in {")", "]"}:
                    words[-1], word = "", f"-{word}"
            case "truth":
                word = token.text.lower()
            case _:
                word = "" if token.text in _NOISE or (token.text == "," and after in {")", "]", "}"}) else token.text
        words.append(word)
        called.append(name)
    return Form(tree, words, called, receivers)


def is_callee(node: Node) -> bool:
    if node.role in _CALLED_FIELD:
        return True
    parent = node.parent
    return (
        parent is not None
        and parent.kind == "infix_expression"
        and len(parent.children) > 1
        and parent.children[1] is node
    )
