"""Read the tests of one text by its grammar: the cases that it holds, each with what it asserts and whether it runs at all."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from unstuck.verify.audit.asserting import (
    NOTHING,
    PARTIAL,
    SWALLOWED,
    Assertion,
    claim_of,
    is_block,
    is_claim,
    is_guard,
    is_silent,
    statement_of,
)
from unstuck.verify.audit.grammars import LONGEST, Form, Grammar, Node, Tree, form_of, grammar_of, parse
from unstuck.verify.change import pattern

_MARK = re.compile(r"^(?:modifiers|attribute\w*|annotation|marker_annotation|decorator)$")
_MARK_BEFORE = re.compile(r"^(?:attribute_item|decorator|annotation|unary_operator)$")
_CALL = re.compile(r"call|invocation")
_HOLDERS = frozenset({"decorated_definition", "expression_statement", "export_statement"})
_VALUES = frozenset({"str", "num", "truth"})
_OWN = frozenset({"", "self", "this", "$this", "Self", "s", "suite"})
_DEFINES = re.compile(r"definition|declaration")
_MAYBE = re.compile(r"if|unless|when|elif|try|catch|except|for|while|conditional")
_STRING = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_TAG_OR_TEXT = re.compile(rf"(?i)(\b(?:tags?|category|trait|groups?) ?\([^)]*\))|{_STRING.pattern}")
_NOWHERE = re.compile(r"(?i)ignore|\bif 0|false|any\(\)|(?<!or)skip|never")
"""Conditions on which a whole file is built nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test, a function that asserts or holds rows on behalf of tests, or what stands outside of all of them."""

    kind: Literal["test", "aid", "file"]
    name: str
    scope: str
    path: str
    line: int
    assertions: tuple[Assertion, ...] = ()
    rows: tuple[str, ...] = ()
    """The rows of the tables that it goes through."""
    body: str = ""
    """All of it without local names and layout."""
    literals: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    skip: str = ""
    """The words that keep it from running; empty where it runs."""
    sometimes: bool = False
    """It is skipped on a condition only."""
    guards: int = 0
    """How often it ends early on a condition."""
    focused: bool = False
    retried: bool = False

    @property
    def off(self) -> bool:
        return bool(self.skip) and not self.sometimes


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """All that one text holds of tests."""

    path: str
    cases: tuple[Case, ...] = ()
    unread: str = ""
    """Why it could not be read; empty where it could."""


@dataclass(slots=True, eq=False)
class _Open:
    """A case that is being read."""

    kind: Literal["test", "aid", "file"]
    name: str
    scope: str
    node: Node
    marks: str = ""
    callee: str = ""
    found: list[Assertion] = field(default_factory=list)
    statements: set[int] = field(default_factory=set)
    rows: list[str] = field(default_factory=list)
    inner: list[tuple[int, int]] = field(default_factory=list)
    skip: str = ""
    sometimes: bool = False
    outer: "_Open | None" = None
    recovers: bool = False
    """It drops panics and says nothing of them."""


def read_tests(path: str, text: str) -> Suite:
    """Read all tests of a text; say so where that cannot be done."""
    grammar = grammar_of(path)
    if grammar is None:
        return Suite(path=path, unread="there is no reader for this language")
    if len(text) > LONGEST:
        return Suite(path=path, unread="it is too long")
    try:
        tree = parse(grammar, text)
    except ImportError:
        return Suite(path=path, unread=f"the grammar of {grammar.language} is not installed")
    if tree.broken:
        return Suite(path=path, unread=f"it is not {grammar.language} that can be parsed")
    return Suite(path=path, cases=tuple(_Reading(path, text, grammar, tree).cases()))


class _Reading:
    """One pass over a tree: which case each token belongs to, and what it says there."""

    def __init__(self, path: str, text: str, grammar: Grammar, tree: Tree) -> None:
        self.path, self.grammar, self.tree = path, grammar, tree
        self.form: Form = form_of(tree)
        self.whole = _Open("file", "", "", tree.root)
        self.owner: dict[int, _Open] = {id(tree.root): self.whole}
        self.open: list[_Open] = [self.whole]
        self.by_name = grammar.named_in.search(text) is not None
        self.shut = "; ".join(" ".join(line.split()) for line in grammar.shut.findall(text))

    def cases(self) -> Iterator[Case]:
        self._find_cases()
        self._read_tokens()
        self._read_tables()
        for one in self.open:
            case = self._closed(one)
            if one is not self.whole or case.assertions or case.rows:
                yield case

    def _find_cases(self) -> None:
        """Find every test and every function beside them, outermost first."""
        todo: list[tuple[Node, _Open, str]] = [(self.tree.root, self.whole, "")]
        while todo:
            node, owner, scope = todo.pop()
            self.owner[id(node)] = owner
            opened = self._case_at(node, owner, scope)
            below = scope
            if opened is not None:
                opened.outer = owner
                owner.inner.append((opened.node.start, opened.node.end))
                self.open.append(opened)
                self.owner[id(opened.node)] = opened
                if opened.node.start >= node.end:  # its body stands beside its head
                    todo.append((opened.node, opened, below))
                    todo += [(child, opened, below) for child in reversed(node.children)]
                    continue
                owner = opened
                below = f"{scope} {opened.name}".strip() if opened.kind == "test" else scope
            elif pattern("node", "class").match(node.kind):
                below = f"{scope} {self._name(node)}".strip()
            elif (group := self._group(node)) is not None:
                below = f"{scope} {group}".strip()
            todo += [(child, owner, below) for child in reversed(node.children) if id(child) not in self.owner]
        self.open.sort(key=lambda one: one.node.start)

    def _case_at(self, node: Node, owner: _Open, scope: str) -> _Open | None:
        defined = node.children[-1] if node.kind == "decorated_definition" and node.children else node
        if pattern("node", "function").match(defined.kind) and (
            node.parent is None or node.parent.kind != "decorated_definition"
        ):
            name, marks = self._name(defined), self._marks(defined)
            collected = self.grammar.language != "Python" or self._is_collected(defined)
            by_name = self.by_name and self.grammar.tests.search(name) is not None
            if collected and (by_name or self.grammar.marks.search(marks)):
                return _Open("test", name, scope, node, marks)
            return _Open("aid", name, scope, node, marks) if name and owner is self.whole else None
        callee = self._callee(node)
        if not callee or not self.by_name or not self.grammar.blocks.search(callee):
            return None
        body = self._block(node)
        if body is None and not pattern("run", "skip_block").search(callee) and self.grammar.language != "Elixir":
            return None
        place = node if body is None or body.start < node.end else body
        return _Open("test", self._title(node), scope, place, self._marks(node), callee)

    def _is_collected(self, node: Node) -> bool:
        """Tell whether a runner of Python would look here: not in a function, nor in a class that is no test class."""
        for above in node.above():
            if pattern("node", "function").match(above.kind):
                return False
            if above.kind == "class_definition":
                parts = (self.tree.text(part) for part in above.children if part.role in {"name", "superclasses"})
                named = re.search(r"[Tt]est|Case|Mixin|Base", " ".join(parts)) is not None
                return named and "__test__ = False" not in self.tree.text(above)
        return True

    def _group(self, node: Node) -> str | None:
        callee = self._callee(node)
        holds = callee and self.grammar.groups.search(callee) and self._block(node) is not None
        return self._title(node) if holds else None

    def _callee(self, node: Node) -> str:
        """Give the dotted name of what is called, without the arguments of calls on the way; nothing where nothing is."""
        if not _CALL.search(node.kind) or not node.children:
            return ""
        head, end = node.children[0], 0
        if self.grammar.language == "Ruby":
            end = next((part.end for part in node.children if part.role == "method"), 0)
        else:
            while _CALL.search(head.kind) and head.children:
                head = head.children[0]
        words: list[str] = []
        depth = 0
        for token in self.tree.tokens[node.start : min(end or head.end, node.start + 12)]:
            depth += (token.text in {"(", "["}) - (token.text in {")", "]"})
            if depth == 0 and (token.sort in {"id", "str"} or token.text == "."):
                words.append(token.text)
        return "".join(words)

    def _block(self, node: Node) -> Node | None:
        """Give the block that a call holds, or that stands right behind it as behind a C++ macro."""
        todo = list(node.children)
        for _ in range(3):
            for part in todo:
                if pattern("node", "lambda").match(part.kind):
                    return part
            todo = [
                inner
                for part in todo
                for inner in part.children
                if part.role != "function" and not _CALL.search(part.kind)
            ]
        if self.grammar.language != "C++":
            return None
        statement = statement_of(node)
        beside = statement.parent.children if statement.parent is not None else []
        place = next((at for at, part in enumerate(beside) if part is statement), -1)
        after = beside[place + 1] if 0 <= place < len(beside) - 1 else None
        return after if after is not None and after.kind == "compound_statement" else None

    def _title(self, node: Node) -> str:
        """Give the name of a test that is a call: the first text that it is given, or all that it is."""
        block = self._block(node)
        start = next((part.start for part in node.children[1:] if "argument" in part.kind), node.start)
        end = block.start if block is not None and start < block.start < node.end else node.end
        tokens = self.tree.tokens[start : min(end, start + 12)]
        text = next((token.text for token in tokens if token.sort == "str"), "")
        return text.strip("'\"`") or " ".join(token.text for token in tokens).strip("( ,")

    def _name(self, node: Node) -> str:
        part = next((child for child in node.children if child.role in {"name", "declarator"}), None)
        if part is None:
            return ""
        if part.role == "declarator":
            return re.sub(r"^[*& ]+", "", self.tree.text(part))[:200]
        return self.tree.text(part).strip("`")

    def _marks(self, node: Node) -> str:
        """Give the annotations, attributes and remarks that a definition carries."""
        texts = [self.tree.text(child) for child in node.children if _MARK.match(child.kind)]
        holder = node
        while holder.parent is not None and holder.parent.kind in _HOLDERS:
            holder = holder.parent
            texts += [self.tree.text(child) for child in holder.children if _MARK.match(child.kind)]
        beside = holder.parent.children if holder.parent is not None else []
        place = next((at for at, child in enumerate(beside) if child is holder), 0)
        while place > 0 and _MARK_BEFORE.match(beside[place - 1].kind):
            place -= 1
            texts.append(self.tree.text(beside[place]))
            texts.append(beside[place].remark if self.grammar.language == "PHP" else "")
        if self.grammar.language in {"PHP", "C++", "JavaScript", "Python"}:
            texts.append(" ".join(re.findall(r"@(?:test|group|requires|dataProvider)\b.*", node.remark)))
        return " ".join(text for text in texts if text)

    def _owner_of(self, node: Node) -> _Open:
        return self.owner.get(id(node), self.whole)

    def _read_tokens(self) -> None:
        """Find assertions and calls that end a test without a verdict."""
        for at, token in enumerate(self.tree.tokens):
            if token.sort not in {"id", "op"}:
                continue
            if token.sort == "id" and self.form.called[at]:
                self._skipped(at)
                if token.text == "recover" and self.grammar.language == "Go":
                    closure = next((node for node in token.node.above() if node.kind == "defer_statement"), None)
                    self._owner_of(token.node).recovers |= closure is not None and is_silent(self.form, closure)
            if not is_claim(self.grammar, self.form, at):
                continue
            owner = self._owner_of(token.node)
            claim = claim_of(self.grammar, self.form, at, owner.node)
            if claim is None or id(claim[0]) in owner.statements or claim[0] is owner.node:
                continue
            owner.statements.add(id(claim[0]))
            owner.found.append(claim[1])

    def _skipped(self, at: int) -> None:
        """Find a call that ends a test without a verdict."""
        token, receiver = self.tree.tokens[at], self.form.receivers[at]
        if not pattern("run", "skip_call").search(f"{receiver}.{token.text}" if receiver else token.text):
            return
        owner, statement = self._owner_of(token.node), statement_of(token.node)
        if owner.skip or _holds(statement, owner.node):
            return
        if re.match(r"import|from$|use$", self.tree.tokens[statement.start].text) or _DEFINES.search(statement.kind):
            return
        inside = [node for node in statement.above() if node.start >= owner.node.start and node is not owner.node]
        owner.skip = self.tree.text(statement)[:120]
        constant = re.search(r"(?i)assum\w+ \( (?:false|true)", owner.skip) is not None
        owner.sometimes = any(_MAYBE.match(node.kind) for node in (statement, *inside)) or (
            pattern("run", "always_conditional").search(token.text) is not None and not constant
        )

    def _read_tables(self) -> None:
        """Find the rows of tables: the parts of a list that hold several values each, and marks that hold a row."""
        todo = [self.tree.root]
        while todo:
            node = todo.pop()
            owner = self._owner_of(node)
            if _is_table(self.form, node) and id(statement_of(node)) not in owner.statements:
                rows = [part for part in node.children if owner.kind == "test" or _is_row(self.form, part)]
                owner.rows += [self.form.key(part.start, part.end) for part in rows]
                continue
            todo += reversed(node.children)
        for one in self.open:
            one.rows += _marked_rows(one.marks)

    def _closed(self, one: _Open) -> Case:
        """Make the case, with what its groups and the whole text say about whether it runs."""
        places = list(_outside(one.node.start, one.node.end, one.inner))
        callees = [(one.callee, self._head(one)), *self._groups_of(one)]
        skip, sometimes = self._why_skipped(one, callees) if one.kind == "test" else (one.skip, one.sometimes)
        raised = pattern("node", "raises").search(one.marks) if one.kind == "test" else None
        if raised:
            claim = Assertion(key=raised[0], rank=PARTIAL, relation="raises", line=one.node.line, text=raised[0])
            one.found.append(claim)
        if one.recovers or (one.outer is not None and one.outer.recovers):
            one.found = [
                replace(claim, rank=NOTHING, idle=SWALLOWED, key=f"({SWALLOWED}) {claim.key}") for claim in one.found
            ]
        return Case(
            kind=one.kind,
            name=one.name,
            scope=one.scope,
            path=self.path,
            line=one.node.line,
            assertions=tuple(one.found),
            rows=tuple(one.rows),
            body=" ".join(self.form.words[at] for at in places if self.form.words[at]),
            literals=frozenset(self.form.words[at] for at in places if self.tree.tokens[at].sort in _VALUES),
            names=frozenset(self.form.words[at] for at in places if self.form.called[at]),
            skip=skip,
            sometimes=sometimes,
            guards=sum(is_guard(self.form, part) for body in self._bodies(one.node) for part in body.children),
            focused=any(
                callee and pattern("run", "focus").search(f"{callee} {_STRING.sub('', head)}")
                for callee, head in callees
            ),
            retried=pattern("run", "retry").search(_plain(one.marks)) is not None,
        )

    def _groups_of(self, one: _Open) -> Iterator[tuple[str, str]]:
        """Yield the calls around a test that hold it, each with what it is told."""
        for node in one.node.above():
            callee = self._callee(node)
            if callee and self.grammar.groups.search(callee):
                yield callee, self.tree.text(node)[:120].partition(" do ")[0].partition("=>")[0]

    def _why_skipped(self, one: _Open, callees: Sequence[tuple[str, str]]) -> tuple[str, bool]:
        """Say what keeps a test from running, and whether on a condition only: its own words, its marks, its groups, its text."""
        if re.search(r"\bDISABLED_", one.name):
            return "DISABLED_", False
        if one.skip:
            return one.skip, one.sometimes
        if any(above.kind.startswith("preproc_if") and self._is_never(above) for above in one.node.above()):
            return "#if 0", False
        holders = (above for above in one.node.above() if self._is_group(above))
        for mark in (one.marks, *map(self._marks, holders)):
            if pattern("run", "skip_mark").search(_plain(mark)):
                return mark[:120], pattern("run", "skip_condition").search(_plain(mark)) is not None
        for callee, head in callees:
            if callee and pattern("run", "skip_block").search(callee):
                return callee, "If" in callee
            if callee and pattern("run", "skip_option").search(head):
                return head[:120], "If" in callee
        return self.shut[:120], _NOWHERE.search(self.shut) is None

    def _is_group(self, node: Node) -> bool:
        if pattern("node", "class").match(node.kind) or pattern("node", "function").match(node.kind):
            return True
        callee = self._callee(node)
        return bool(callee) and self.grammar.groups.search(callee) is not None

    def _is_never(self, node: Node) -> bool:
        condition = next((part for part in node.children if part.role == "condition"), None)
        return condition is not None and self.tree.text(condition).lower() in {"0", "false", "never"}

    def _head(self, one: _Open) -> str:
        text = self.form.text(one.node.start, min(one.node.end, one.node.start + 30))
        return re.split(r" do | \{ | => |function", text)[0] if one.callee else ""

    def _bodies(self, node: Node) -> Iterator[Node]:
        todo = [node]
        while todo:
            part = todo.pop()
            if is_block(part.kind) and part.children and part.kind != "arrow_function":
                yield part
                if not any(is_block(child.kind) for child in part.children):
                    continue
            todo += [
                child
                for child in part.children
                if is_block(child.kind) or _CALL.search(child.kind) or "argument" in child.kind
            ]


def _plain(mark: str) -> str:
    """Give a mark without its texts in quotes, which are names, reasons and rows; those of a tag are words of the runner."""
    return _TAG_OR_TEXT.sub(lambda part: part[1] or "", mark)


def _outside(start: int, end: int, inner: list[tuple[int, int]]) -> Iterator[int]:
    at = start
    for low, high in sorted(inner):
        yield from range(at, low)
        at = max(at, high)
    yield from range(at, end)


def _holds(outer: Node, inner: Node) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


# --- tables: lists whose parts hold several values each, so that each part is a row -----------------------------------

_PLAIN_ARGUMENTS = frozenset({"value_arguments", "argument_list", "arguments", "token_tree"})
_LEAST_ROWS = 2


def _is_table(form: Form, node: Node) -> bool:
    """Tell whether a node is a list of rows."""
    if not pattern("node", "table").match(node.kind):
        return False
    if len(node.children) < _LEAST_ROWS and not (
        node.children and len(node.children[0].children) > 1 and _in_loop(node)
    ):
        return False
    if node.kind in _PLAIN_ARGUMENTS:
        before = form.tree.tokens[max(0, node.start - 2) : node.start]
        if not any(pattern("node", "lists").match(token.text) for token in before):
            return False
    if node.kind in {"object", "dictionary", "map_content", "hash", "tuple_expression"} and not _in_loop(node):
        return all(_values(form, part) > _LEAST_ROWS for part in node.children)
    return sum(_is_row(form, part) for part in node.children) * 2 > len(node.children) or _in_loop(node)


def _marked_rows(marks: str) -> list[str]:
    """Give the annotations and attributes that are a row each."""
    found = re.findall(r"\w+ \((?:[^()]|\([^()]*\))*\)", marks) if pattern("node", "row_mark").search(marks) else []
    return [mark for mark in found if pattern("node", "row_mark").match(mark)]


def _is_row(form: Form, node: Node) -> bool:
    values = _values(form, node)
    return values >= _LEAST_ROWS or (values > 0 and len(node.children) > 0 and node.end - node.start > 5)  # noqa: PLR2004


def _values(form: Form, node: Node) -> int:
    return sum(token.sort in _VALUES for token in form.tree.tokens[node.start : min(node.end, node.start + 40)])


def _in_loop(node: Node) -> bool:
    for at, above in enumerate(node.above()):
        if re.match(r"for|foreach|decorator|annotation|attribute", above.kind):
            return True
        if is_block(above.kind) or at > 3:  # noqa: PLR2004
            return False
    return False
