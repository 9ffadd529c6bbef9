"""Read the tests of one text by its grammar: the cases that it holds, each with what it asserts and whether it runs at all."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Literal

from unstuck.model.verdict import Remark, Severity
from unstuck.verify.audit.asserting import PARTIAL, Assertion, claim_of, is_claim, mark_places, statement_of
from unstuck.verify.audit.grammars import (
    VALUES,
    Grammar,
    Node,
    Token,
    grammar_of,
    is_kind,
    key_of,
    names_of,
    parse,
    text_of,
    values_of,
)
from unstuck.verify.change import found, pattern

LONGEST_SKIP = 120
LEAST_ROWS = 2
LONG_ROW = 5
"""Tokens from which on a part of a list with one value in it is still a row."""
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
"""Names, reasons and rows: none of them says that a test does not run."""

Kind = Literal["test", "aid", "file"]


@dataclass(slots=True, eq=False)
class Case:
    """One test, a function that asserts or holds rows on behalf of tests, or what stands outside of all of them.

    It is filled in while its text is read, and stays as it is then.
    """

    kind: Kind
    path: str
    line: int = 1
    name: str = ""
    scope: str = ""
    marks: str = ""
    """Its annotations, attributes and decorators."""
    call: tuple[str, str] = ("", "")
    """What is called to make it a test, and what that is told before its block."""
    assertions: list[Assertion] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    """The rows of the tables that it goes through."""
    tokens: list[Token] = field(default_factory=list)
    cells: list[tuple[Token, ...]] = field(default_factory=list)
    """The values of each of these rows."""
    body: str = ""
    """All of it without local names and layout."""
    literals: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    skip: str = ""
    """The words that keep it from running; empty where it runs."""
    sometimes: bool = False
    """It is skipped on a condition only."""
    focused: bool = False
    retried: bool = False

    @property
    def off(self) -> bool:
        return bool(self.skip) and not self.sometimes

    def remark(self, rule: str, says: str, evidence: str = "", severity: Severity | None = None) -> Remark:
        """Make a remark about it; {} in what is said is its name."""
        return found(rule, self.path, self.line, says.replace("{}", self.name or self.path), evidence, severity)


def read_tests(path: str, text: str) -> list[Case] | str:
    """Read all tests of a text, or say why that cannot be done."""
    grammar = grammar_of(path)
    if grammar is None:
        return "there is no reader for this language"
    try:
        root = parse(grammar, text)
    except ImportError:
        return f"the grammar of {grammar.language} is not installed"
    if root is None:
        return f"it is not {grammar.language} that can be parsed"
    mark_places(root)
    return list(_Reader(path, text, grammar, root).cases())


class _Reader:
    """One pass over a tree: which case each token belongs to, and what it says there."""

    def __init__(self, path: str, text: str, grammar: Grammar, root: Node) -> None:
        self.path, self.grammar, self.root = path, grammar, root
        self.whole = Case("file", path)
        self.places: list[tuple[Case, Node]] = [(self.whole, root)]
        self.owner: dict[int, tuple[Case, Node]] = {id(root): self.places[0]}
        self.tokens: dict[Case, list[Token]] = defaultdict(list)
        """Those of each case that belong to no case within it."""
        self.claimed: set[tuple[Case, Node]] = set()
        """What each asserts, by the statements that do it."""
        self.lines = text.splitlines()
        shuts = (statement_of(token.node) for token in root.all if token.text == "__test__")
        self.untested = {node for shut in shuts if shut.text == "__test__ = False" for node in islice(shut.above(), 2)}
        """The classes that say so of themselves, with their blocks."""
        self.by_name = grammar.fits("named_in", text)
        shut = grammar.looks.get("shut")
        self.shut = "; ".join(" ".join(line.split()) for line in re.findall(shut, text)) if shut else ""

    def cases(self) -> Iterator[Case]:
        self._find_cases()
        for at, token in enumerate(self.root.all):
            self._read_token(at, token)
        self._read_tables()
        self.places.sort(key=lambda place: place[1].start)
        last = {(case.scope, case.name): case for case, _ in self.places} if self.grammar.language == "Python" else {}
        for case, node in self.places:
            self._close(case, node)
            replaced = case.kind == "test" and last.get((case.scope, case.name), case) is not case
            if not replaced and (case is not self.whole or case.assertions or case.rows):
                yield case

    def _find_cases(self) -> None:
        """Find every test and every function beside them, outermost first."""
        todo = [(self.root, self.places[0], "")]
        while todo:
            node, owner, scope = todo.pop()
            if id(node) in self.owner and node is not self.root:
                continue  # a body that stands beside its head
            opened = self._case_at(node, owner[0], scope)
            if opened is not None:
                self.places.append(opened)
                owner = opened
                case, place = opened
                scope = f"{scope} {case.name}".strip() if case.kind == "test" else scope
                if place is not node:
                    todo += [(child, opened, scope) for child in reversed(place.children)]
                    self.owner[id(place)] = opened
            elif is_kind("class", node.kind):
                scope = f"{scope} {_name(node)}".strip()
            elif self._groups(self._callee(node)) and self._block(node) is not None:
                scope = f"{scope} {self._heading(node)[1]}".strip()
            self.owner[id(node)] = owner
            todo += [(child, owner, scope) for child in reversed(node.children)]

    def _case_at(self, node: Node, owner: Case, scope: str) -> tuple[Case, Node] | None:
        """Give the case that begins at a node, with the node that is all of it."""
        defined = node.children[-1] if node.kind == "decorated_definition" and node.children else node
        if is_kind("function", defined.kind) and (node.parent is None or node.parent.kind != "decorated_definition"):
            name, marks = _name(defined), self._marks(defined)
            by_name = self.by_name and self.grammar.fits("tests", name)
            test = (by_name or self.grammar.fits("marks", marks)) and self._is_collected(defined)
            if not test and (not name or owner is not self.whole):
                return None
            return Case("test" if test else "aid", self.path, node.line, name, scope, marks), node
        callee = self._callee(node)
        if not callee or not self.by_name or not self.grammar.fits("blocks", callee):
            return None
        body = self._block(node)
        if body is None and not pattern("run", "skip_block").search(callee) and self.grammar.language != "Elixir":
            return None
        place = node if body is None or body.start < node.end else body
        head, name = self._heading(node)
        return Case("test", self.path, place.line, name, scope, self._marks(node), (callee, head)), place

    def _is_collected(self, node: Node) -> bool:
        """Tell whether a runner of Python would look here: not in a function, nor in a class that is no test class."""
        for above in node.above() if self.grammar.language == "Python" else ():
            if is_kind("function", above.kind):
                return False
            if above.kind == "class_definition":
                head = " ".join(part.text for part in above.children if part.role in {"name", "superclasses"})
                return re.search(r"[Tt]est|Case|Mixin|Base", head) is not None and above not in self.untested
        return True

    def _groups(self, callee: str) -> bool:
        return callee != "" and self.grammar.fits("groups", callee)

    def _callee(self, node: Node) -> str:
        """Give the dotted name of what is called, without the arguments of calls on the way; nothing where nothing is."""
        if not is_kind("call", node.kind) or not node.children:
            return ""
        head = node.part("method") if self.grammar.language == "Ruby" else None
        if head is None:
            head = node.children[0]
            while is_kind("call", head.kind) and head.children:
                head = head.children[0]
        words: list[str] = []
        depth = 0
        for token in node.all[node.start : min(head.end, node.start + 12)]:
            depth += (token.text in {"(", "["}) - (token.text in {")", "]"})
            if depth == 0 and (token.sort in {"id", "str"} or token.text == "."):
                words.append(token.text)
        return "".join(words)

    def _block(self, node: Node) -> Node | None:
        """Give the block that a call holds, or that stands right behind it as behind a C++ macro."""
        todo = node.children
        for _ in range(3):
            block = next((part for part in todo if is_kind("lambda", part.kind)), None)
            if block is not None:
                return block
            held = (part for part in todo if part.role != "function" and not is_kind("call", part.kind))
            todo = [inner for part in held for inner in part.children]
        if self.grammar.language != "C++":
            return None
        statement = statement_of(node)
        after = _beside(statement, 1)
        return after if after is not None and after.kind == "compound_statement" else None

    def _heading(self, node: Node) -> tuple[str, str]:
        """Give what a call says before its block, and its name in that: the first text that it is given, or all."""
        block = self._block(node)
        end = block.start if block is not None and block.start < node.end else node.end
        given = next((part.start for part in node.children[1:] if "argument" in part.kind), node.start)
        tokens = node.all[given : min(end if end > given else node.end, given + 12)]
        text = next((token.text for token in tokens if token.sort == "str"), "")
        head = text_of(node.all[node.start : min(end, node.start + 30)])
        return head, text.strip("'\"`") or text_of(tokens).strip("( ,")

    def _marks(self, node: Node) -> str:
        """Give the annotations, attributes and remarks that a definition carries."""
        holder = node
        texts = [child.text for child in node.children if is_kind("mark", child.kind)]
        while holder.parent is not None and is_kind("holder", holder.parent.kind):
            holder = holder.parent
            texts += [child.text for child in holder.children if is_kind("mark", child.kind)]
        before = _beside(holder, -1)
        while before is not None and is_kind("mark_before", before.kind):
            texts.append(before.text)
            before = _beside(before, -1)
        if self.grammar.language == "PHP":
            remark = takewhile(
                lambda line: line.lstrip().startswith(("*", "/*")), reversed(self.lines[: node.line - 1])
            )
            texts += pattern("run", "remark").findall("\n".join(remark))
        return " ".join(text for text in texts if text)

    def _read_token(self, at: int, token: Token) -> None:
        """Find what a token asserts, or that it ends its test without a verdict."""
        case, place = self.owner.get(id(token.node), self.places[0])
        self.tokens[case].append(token)
        if token.called:
            self._skipped(token, case, place)
        if token.sort in {"id", "op"} and is_claim(self.grammar, self.root.all, at):
            node, assertion = claim_of(self.grammar, self.root.all, at, place) or (place, None)
            if assertion is not None and node is not place and (case, node) not in self.claimed:
                self.claimed.add((case, node))
                case.assertions.append(assertion)

    def _skipped(self, token: Token, case: Case, place: Node) -> None:
        """Find a call that ends a test without a verdict."""
        called = f"{token.receiver}.{token.text}" if token.receiver else token.text
        if case.skip or not pattern("run", "skip_call").search(called):
            return
        statement = statement_of(token.node)
        if statement.holds(place) or pattern("run", "no_call").match(f"{statement.kind} {statement.text}"):
            return
        inside = [node for node in statement.above() if place.holds(node) and node is not place]
        case.skip = statement.text[:LONGEST_SKIP]
        case.sometimes = any(is_kind("maybe", node.kind) for node in (statement, *inside)) or (
            pattern("run", "always_conditional").search(f"{token.text} {case.skip}") is not None
        )

    def _read_tables(self) -> None:
        """Find the rows of tables: the parts of a list that hold several values each, and marks that hold a row."""
        todo = [self.root]
        while todo:
            node = todo.pop()
            case, _ = self.owner[id(node)]
            if _is_table(node) and (case, statement_of(node)) not in self.claimed:
                rows = [part for part in node.children if case.kind == "test" or _is_row(part)]
                case.rows += [key_of(part.tokens) for part in rows]
                case.cells += [one for part in rows if (one := tuple(x for x in part.tokens if x.sort in VALUES))]
            else:
                todo += reversed(node.children)
        for case, _ in self.places:
            case.rows += [mark[0] for mark in pattern("node", "row_mark").finditer(case.marks)]

    def _close(self, case: Case, place: Node) -> None:
        """Say of a case what all of its tokens do, and its marks, its groups and the whole text of whether it runs."""
        case.tokens = tokens = self.tokens[case]
        case.body, case.literals, case.names = key_of(tokens), frozenset(values_of(tokens)), names_of(tokens)
        around = [node for node in place.above() if self._groups(self._callee(node))]
        calls = [case.call, *((self._callee(node), self._heading(node)[0]) for node in around)]
        case.focused = any(pattern("run", "focus").search(f"{name} {_QUOTED.sub('', head)}") for name, head in calls)
        case.retried = pattern("run", "retry").search(_QUOTED.sub("", case.marks)) is not None
        if case.kind == "test":
            case.skip, case.sometimes = self._why_skipped(case, place, calls)
            words = (raised[0] for raised in pattern("node", "raises").finditer(case.marks))
            case.assertions += [
                Assertion(key=word, rank=PARTIAL, relation="raises", line=case.line, text=word) for word in words
            ]

    def _why_skipped(self, case: Case, place: Node, calls: Sequence[tuple[str, str]]) -> tuple[str, bool]:
        """Say what keeps a test from running, and whether on a condition only: its own words, its marks, its groups, its text."""
        if re.search(r"\bDISABLED_", case.name):
            return "DISABLED_", False
        if case.skip:
            return case.skip, case.sometimes
        above = list(place.above())
        never = (node.part("condition") for node in above if node.kind.startswith("preproc_if"))
        if any(node is not None and node.text.lower() in {"0", "false", "never"} for node in never):
            return "#if 0", False
        holders = (node for node in above if is_kind("named", node.kind) or self._groups(self._callee(node)))
        for mark in (case.marks, *map(self._marks, holders)):
            words = _QUOTED.sub("", mark)
            if pattern("run", "skip_mark").search(words):
                return mark[:LONGEST_SKIP], pattern("run", "skip_condition").search(words) is not None
        for name, head in calls:
            if pattern("run", "skip_block").search(name) or pattern("run", "skip_option").search(head):
                return head[:LONGEST_SKIP], "If" in name
        return self.shut[:LONGEST_SKIP], pattern("run", "nowhere").search(self.shut) is None


def _name(node: Node) -> str:
    part = node.part("name", "declarator")
    text = part.text if part is not None else ""
    return text.lstrip("*& ")[:200] if part is not None and part.role == "declarator" else text.strip("`")


def _beside(node: Node, step: int) -> Node | None:
    """Give the node that stands so many places behind another, or before it."""
    beside = node.parent.children if node.parent is not None else [node]
    place = next(at for at, child in enumerate(beside) if child is node) + step
    return beside[place] if 0 <= place < len(beside) else None


# --- tables: lists whose parts hold several values each, so that each part is a row -----------------------------------


def _is_table(node: Node) -> bool:
    """Tell whether a node is a list of rows."""
    if not is_kind("table", node.kind) or not node.children:
        return False
    looped = _in_loop(node)
    if len(node.children) < LEAST_ROWS and not (looped and len(node.children[0].children) > 1):
        return False
    before = node.all[max(0, node.start - 2) : node.start]
    if is_kind("arguments", node.kind) and not any(pattern("node", "lists").match(token.text) for token in before):
        return False
    if is_kind("pairs", node.kind) and not looped:
        return all(_values(part) > LEAST_ROWS for part in node.children)
    return looped or sum(_is_row(part) for part in node.children) * 2 > len(node.children)


def _is_row(node: Node) -> bool:
    values = _values(node)
    return values >= LEAST_ROWS or (values > 0 and len(node.children) > 0 and node.end - node.start > LONG_ROW)


def _values(node: Node) -> int:
    return sum(token.sort in VALUES for token in node.tokens[:40])


def _in_loop(node: Node) -> bool:
    for above in islice(node.above(), 5):
        if is_kind("goes_through", above.kind) or is_kind("block", above.kind):
            return is_kind("goes_through", above.kind)
    return False
