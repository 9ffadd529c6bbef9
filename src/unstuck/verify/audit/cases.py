"""Read the tests of one text by its grammar: a suite of cases, each with what it asserts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from unstuck.verify.audit.asserting import claim_of, is_claim, statement_of
from unstuck.verify.audit.flow import FUNCTION, LAMBDA, SWALLOWED, is_block, is_guard, is_silent
from unstuck.verify.audit.forms import Form, form_of
from unstuck.verify.audit.grammars import (
    ALWAYS_CONDITIONAL,
    FOCUS,
    RETRY,
    SKIP_BLOCK,
    SKIP_CALL,
    SKIP_CONDITION,
    SKIP_MARK,
    SKIP_OPTION,
    Grammar,
    grammar_of,
)
from unstuck.verify.audit.suite import NOTHING, PARTIAL, WEAK, Assertion, Case, Suite
from unstuck.verify.audit.tables import is_table, marked_rows
from unstuck.verify.audit.trees import LONGEST, Node, Tree, parse

_CLASS = re.compile(r"^(?:class|module|mod_item|impl_item|struct|namespace|object|interface|trait)")
_MARK = re.compile(r"^(?:modifiers|attribute\w*|annotation|marker_annotation|decorator)$")
_MARK_BEFORE = re.compile(r"^(?:attribute_item|decorator|annotation|unary_operator)$")
_CALL = re.compile(r"call|invocation")
_STRING = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_NOWHERE = re.compile(r"(?i)ignore|\bif 0|false|any\(\)|skip|never")
"""Conditions on which a whole file is built nowhere."""
_RAISES = re.compile(
    r"should_panic(?: \([^)]*\))?|expected = [\w. ]+|ExpectedException \([^)]*\)|@expectedException \S+"
)
"""Marks that assert that a test fails in a certain way."""


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
    guards: int = 0
    calls: list[Assertion] = field(default_factory=list)
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
        shut = grammar.shut.findall(text)
        self.shut = "; ".join(" ".join(line.split()) for line in shut)

    def cases(self) -> Iterator[Case]:
        self._find_cases()
        self._read_tokens()
        self._read_tables()
        local = {one.name for one in self.open if one.kind == "aid"}
        self._read_calls(local)
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
            elif _CLASS.match(node.kind):
                below = f"{scope} {self._name(node)}".strip()
            elif (group := self._group(node)) is not None:
                below = f"{scope} {group}".strip()
            todo += [(child, owner, below) for child in reversed(node.children) if id(child) not in self.owner]
        self.open.sort(key=lambda one: one.node.start)

    def _case_at(self, node: Node, owner: _Open, scope: str) -> _Open | None:
        defined = node.children[-1] if node.kind == "decorated_definition" and node.children else node
        if FUNCTION.match(defined.kind) and (
            defined is not node or node.parent is None or node.parent.kind != "decorated_definition"
        ):
            name = self._name(defined)
            marks = self._marks(defined)
            if self.grammar.language == "Python" and not self._is_collected(defined):
                return None if owner is not self.whole else _Open("aid", name, scope, node, marks)
            is_test = (self.by_name and bool(self.grammar.tests.search(name))) or bool(self.grammar.marks.search(marks))
            if not is_test and (owner is not self.whole or not name):
                return None
            return _Open("test" if is_test else "aid", name, scope, node, marks)
        if not _CALL.search(node.kind) or not node.children:
            return None
        callee = self._callee(node)
        if not callee or not self.grammar.blocks.search(callee):
            return None
        body = self._block(node)
        if body is None:
            if SKIP_BLOCK.search(callee) or self.grammar.language == "Elixir":
                return _Open("test", self._title(node), scope, node, self._marks(node), callee)
            return None
        return _Open(
            "test", self._title(node), scope, node if body.start < node.end else body, self._marks(node), callee
        )

    def _is_collected(self, node: Node) -> bool:
        """Tell whether a runner of Python would look here: not in a function, nor in a class that is no test class."""
        for above in node.above():
            if FUNCTION.match(above.kind):
                return False
            if above.kind == "class_definition":
                head = " ".join(
                    self.tree.text(part) for part in above.children if part.role in {"name", "superclasses"}
                )
                return re.search(
                    r"[Tt]est|Case|Mixin|Base", head
                ) is not None and "__test__ = False" not in self.tree.text(above)
        return True

    def _group(self, node: Node) -> str | None:
        if not _CALL.search(node.kind) or not node.children:
            return None
        callee = self._callee(node)
        return (
            self._title(node)
            if callee and self.grammar.groups.search(callee) and self._block(node) is not None
            else None
        )

    def _callee(self, node: Node) -> str:
        """Give the dotted name of what is called, without the arguments of calls on the way."""
        words: list[str] = []
        depth = 0
        head = node.children[0]
        while _CALL.search(head.kind) and head.children and self.grammar.language != "Ruby":
            head = head.children[0]
        end = (
            head.end
            if self.grammar.language != "Ruby"
            else next((part.end for part in node.children if part.role == "method"), head.end)
        )
        for token in self.tree.tokens[node.start : min(end, node.start + 12)]:
            if token.text in {"(", "["}:
                depth += 1
            elif token.text in {")", "]"}:
                depth -= 1
            elif depth == 0 and (token.sort in {"id", "str"} or token.text == "."):
                words.append(token.text)
        return "".join(words)

    def _block(self, node: Node) -> Node | None:
        """Give the block that a call holds, or that stands right behind it as behind a C++ macro."""
        todo = list(node.children)
        for _ in range(3):
            for part in todo:
                if LAMBDA.match(part.kind):
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
        """Give the name of a test that is a call: its first argument."""
        block = self._block(node)
        start = next((part.start for part in node.children if "argument" in part.kind), node.children[0].end)
        if (
            "call" in node.children[0].kind and node.children[0].end > start
        ):  # the arguments of `it.each(...)(...)` come last
            start = (
                node.children[0].end
                if node.end > node.children[0].end and self.grammar.language != "Kotlin"
                else node.start
            )
        end = block.start if block is not None and start < block.start < node.end else node.end
        words = [token.text for token in self.tree.tokens[start : min(end, start + 12)]]
        if words[:1] == ["("]:
            words = words[1:]
        if not words:
            words = [self._callee(node)]
        return (
            words[0].strip("'\"`")
            if words[0][:1] in "'\"`" and words[1:2] in ([","], [")"], [])
            else " ".join(words).rstrip(" ,")
        )

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
        while holder.parent is not None and holder.parent.kind in {
            "decorated_definition",
            "expression_statement",
            "export_statement",
        }:
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
        token = self.tree.tokens[at]
        receiver = self.form.receivers[at]
        if not SKIP_CALL.search(f"{receiver}.{token.text}" if receiver else token.text):
            return
        owner = self._owner_of(token.node)
        statement = statement_of(token.node)
        if owner.skip or owner.kind != "test" or _holds(statement, owner.node):
            return
        inside = [node for node in statement.above() if node.start >= owner.node.start and node is not owner.node]
        conditional = any(
            re.match(r"(?:if|unless|when|elif|try|catch|except|for|while|conditional)", node.kind)
            for node in (statement, *inside)
        )
        before = self.tree.tokens[statement.start].text
        if (
            re.search(r"^(?:import|from|use)\b", before)
            or "definition" in statement.kind
            or "declaration" in statement.kind
        ):
            return
        owner.skip = self.tree.text(statement)[:120]
        constant = re.search(r"(?i)assum\w+ \( (?:false|true)", owner.skip) is not None
        owner.sometimes = conditional or (bool(ALWAYS_CONDITIONAL.search(token.text)) and not constant)

    def _read_tables(self) -> None:
        """Find the rows of tables: the parts of a list that hold several values each, and marks that hold a row."""
        todo = [self.tree.root]
        while todo:
            node = todo.pop()
            owner = self._owner_of(node)
            if is_table(self.form, node) and id(statement_of(node)) not in owner.statements:
                owner.rows += [self.form.key(part.start, part.end) for part in node.children]
                continue
            todo += reversed(node.children)
        for one in self.open:
            one.rows += marked_rows(one.marks)

    def _read_calls(self, local: set[str]) -> None:
        """Take calls of the text's own functions for assertions; in a test without any, every call."""
        for at, token in enumerate(self.tree.tokens):
            if token.sort != "id" or not self.form.called[at]:
                continue
            owner = self._owner_of(token.node)
            if owner.kind == "aid":
                continue
            statement = statement_of(token.node)
            if id(statement) in owner.statements or _holds(statement, owner.node) or not _is_plain_call(statement):
                continue
            known = token.text in local and self.form.receivers[at] in {
                "",
                "self",
                "this",
                "$this",
                "Self",
                "s",
                "suite",
            }
            if not known and owner is self.whole:
                continue
            owner.statements.add(id(statement))
            start, end = statement.start, min(statement.end, statement.start + 400)
            (owner.found if known else owner.calls).append(
                Assertion(
                    key=self.form.key(start, end), rank=WEAK, relation="run", names=self.form.names(start, end),
                    values=self.form.values(start, end), line=token.line, text=self.tree.text(statement)[:200],
                )
            )  # fmt: skip

    def _closed(self, one: _Open) -> Case:
        """Make the case, with what its groups and the whole text say about whether it runs."""
        places = list(_outside(one.node.start, one.node.end, one.inner))
        words = [self.form.words[at] for at in places if self.form.words[at]]
        skip, sometimes = (one.skip, one.sometimes) if one.kind == "test" else ("", False)
        marks, callees = [one.marks], [(one.callee, self._head(one))]
        for node in one.node.above():
            if _CLASS.match(node.kind) or FUNCTION.match(node.kind):
                marks.append(self._marks(node))
            elif _CALL.search(node.kind) and node.children and self.grammar.groups.search(self._callee(node)):
                callees.append((self._callee(node), self.tree.text(node)[:120].partition(" do ")[0].partition("=>")[0]))
                marks.append(self._marks(node))
        never = [above for above in one.node.above() if above.kind.startswith("preproc_if") and self._is_never(above)]
        if never and not skip:
            skip, sometimes = "#if 0", False
        for mark in marks:
            found = SKIP_MARK.search(mark)
            if found and not skip:
                skip, sometimes = mark[:120], SKIP_CONDITION.search(mark) is not None
        for callee, head in callees:
            if not skip and callee and (SKIP_BLOCK.search(callee) or SKIP_OPTION.search(head)):
                skip = callee if SKIP_BLOCK.search(callee) else head[:120]
                sometimes = "If" in callee
        if self.shut and not skip and one.kind == "test":
            skip, sometimes = self.shut[:120], _NOWHERE.search(self.shut) is None
        if re.search(r"\bDISABLED_", one.name):
            skip, sometimes = "DISABLED_", False
        raised = _RAISES.search(one.marks) if one.kind == "test" else None
        if raised:
            one.found.append(
                Assertion(key=raised[0], rank=PARTIAL, relation="raises", line=one.node.line, text=raised[0])
            )
        if one.recovers or (one.outer is not None and one.outer.recovers):
            one.found = [
                replace(claim, rank=NOTHING, idle=SWALLOWED, key=f"({SWALLOWED}) {claim.key}") for claim in one.found
            ]
        guards = sum(is_guard(self.form, part) for body in self._bodies(one.node) for part in body.children)
        assertions = tuple(one.found or (one.calls if one.kind == "test" else ()))
        return Case(
            kind=one.kind, name=one.name, scope=one.scope, path=self.path, line=one.node.line,
            assertions=assertions, rows=tuple(one.rows), body=" ".join(words),
            literals=frozenset(self.form.words[at] for at in places if self.tree.tokens[at].sort in {"str", "num", "truth"}),
            names=frozenset(self.form.words[at] for at in places if self.form.called[at]),
            skip=skip, sometimes=sometimes, guards=guards,
            focused=any(bool(callee) and FOCUS.search(f"{callee} {_STRING.sub('', head)}") is not None for callee, head in callees),
            retried=RETRY.search(one.marks) is not None,
        )  # fmt: skip

    def _is_never(self, node: Node) -> bool:
        condition = next((part for part in node.children if part.role == "condition"), None)
        return condition is not None and self.tree.text(condition).lower() in {"0", "false", "never"}

    def _head(self, one: _Open) -> str:
        text = " ".join(
            token.text for token in self.tree.tokens[one.node.start : min(one.node.end, one.node.start + 30)]
        )
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


def _outside(start: int, end: int, inner: list[tuple[int, int]]) -> Iterator[int]:
    at = start
    for low, high in sorted(inner):
        yield from range(at, low)
        at = max(at, high)
    yield from range(at, end)


def _holds(outer: Node, inner: Node) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _is_plain_call(statement: Node) -> bool:
    node = statement
    while node.children and node.kind in {"expression_statement", "await_expression", "try_expression"}:
        node = node.children[-1]
    return _CALL.search(node.kind) is not None
