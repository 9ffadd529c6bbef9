"""Read one assertion: what it is about, what it expects, how much it says by its words, and whether it can fail where it stands."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from operator import itemgetter

from unstuck.verify.audit.grammars import (
    CALLS,
    VALUES,
    Grammar,
    Node,
    Token,
    is_callee,
    is_kind,
    key_of,
    names_of,
    text_of,
    values_of,
    words,
)
from unstuck.verify.change import known, pattern

EXACT, PARTIAL, WEAK, NOTHING = 3, 2, 1, 0
"""How much an assertion says: this value; a value like this; some value; nothing."""
NEVER_REACHED = "is never reached"
SWALLOWED = "can fail without anybody hearing of it"
LONGEST_TEXT = 240
LONGEST_SIDE = 40
COMPARED = 2
LONGEST_CLAIM = 600
SHORT_BODY = 60
"""Tokens of a block that still belongs to what is asserted of it."""
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """One assertion in a form that survives renamed locals, another layout and another style."""

    key: str
    """Its tokens without local names and layout, with the reason why it cannot fail in front, if there is one."""
    rank: int
    relation: str
    names: frozenset[str] = frozenset()
    """What it calls or looks at, without the words of the test framework."""
    values: tuple[str, ...] = ()
    """Its literals, in their order."""
    blurs: frozenset[str] = frozenset()
    """Calls that throw some of the compared value away, such as `sorted` or `len`."""
    line: int = 1
    text: str = ""
    idle: str = ""
    """Why it can no longer fail; empty where it can."""
    guarded: bool = False
    """It is reached on a condition only."""
    expects: tuple[Token, ...] = field(default=(), compare=False)
    """The literals and the plain names that it compares with, where it says that something is exactly this."""

    @property
    def literals(self) -> frozenset[str]:
        return frozenset(self.values)


def _is(name: str, text: str) -> bool:
    return pattern("claim", name).search(text) is not None


def is_claim(grammar: Grammar, tokens: Sequence[Token], at: int) -> bool:
    """Tell whether a token is the name of something that asserts."""
    token = tokens[at]
    if token.sort == "op":
        return token.text in {"assert", "throw", "raise"}
    if token.sort != "id" or any(is_kind("no_code", above.kind) for above in islice(token.node.above(), 4)):
        return False
    after = tokens[at + 1].text if at + 1 < len(tokens) else ""
    if token.text in {"panic", "unreachable"} and after not in {"!", "("}:
        return False  # a module of that name
    looked_up = token.receiver and after not in CALLS and not is_callee(token.node)  # `task.checks` calls nothing
    if token.receiver and not looked_up and grammar.fits("told", f"{token.receiver}.{token.text}"):
        return True
    if _is("raised", token.text) or not grammar.fits("asserts", token.text):
        return False
    return (token.called and not looked_up) or token.text.startswith(("should", "must", "wont"))


def claim_of(grammar: Grammar, tokens: Sequence[Token], at: int, top: Node) -> tuple[Node, Assertion] | None:
    """Read the assertion whose name stands at a token, with the node that it is."""
    word, statement = tokens[at].text, statement_of(tokens[at].node)
    if _is("counts", text_of(tokens[at : at + 3])):
        return None
    fails = _is("fail", word)
    branch = _branch(statement, top) if fails else None
    if branch is not None:
        return branch, _branched(branch, statement)
    if word in {"throw", "raise"}:
        return None
    said, place = _said(statement), at - statement.start
    relation, rank = ("fail", PARTIAL) if fails else _rank(said[place:])
    twice = rank == EXACT and _is("same_twice", text_of(said)) and not _is("passes_on", text_of(said))
    if relation not in {"fail", "call"} and (twice or _is_constant(grammar, said)):
        rank = NOTHING
    return statement, _assertion(statement, said, relation, rank)


def _assertion(node: Node, said: Sequence[Token], relation: str, rank: int) -> Assertion:
    idle = node.idle
    fails = relation == "fail"  # what is said of a failure is no expectation
    key = relation if fails else key_of(said)
    names = names_of(said)
    return Assertion(
        key=key if rank > NOTHING and not idle else f"({idle or 'says nothing'}) {key}",
        rank=NOTHING if idle else rank,
        relation=relation,
        names=frozenset(name for name in names if not _is("jargon", name)),
        values=() if fails else values_of(said),
        blurs=names & words("blurs"),
        line=said[0].line if said else node.line,
        text=text_of(said[:80])[:LONGEST_TEXT],
        idle=idle,
        guarded=node.guarded,
        expects=tuple(_expected(said)) if rank == EXACT and relation in {"eq", "if"} and not idle else (),
    )


def _expected(said: Sequence[Token]) -> Iterator[Token]:
    """Yield the literals and names of an assertion that neither a call of the product is given, nor anything is looked up by.

    A text behind two that are compared is what is said of a failure.
    """
    within: list[bool] = []
    given: list[str] = []
    place = 0
    for before, token in pairwise((None, *said)):
        if token is None:
            continue
        if len(within) == 1:
            given.append(token.text)
            place += token.text == "," and given != ["t", ","]
        if token.text in _OPENING:
            name = before if before is None or before.text != "!" else said[said.index(before) - 1]
            calls = name is not None and (name.sort == "id" or name.text in {")", "]"})
            within.append(not calls or name is None or _is("jargon", name.text))
        elif token.text in _CLOSING:
            within = within[:-1]
        elif token.sort == "str" and len(within) == 1 and place >= COMPARED:
            continue
        elif (token.sort in VALUES or (token.sort == "id" and not token.called)) and all(within):
            yield token


def _branch(statement: Node, top: Node) -> Node | None:
    """Give the condition on which a failure is called out; none where it always is."""
    for node in statement.above():
        if node is top or is_kind("repeats", node.kind):
            return None
        if is_kind("branches", node.kind):
            return node
    return None


def _branched(branch: Node, statement: Node) -> Assertion:
    """Read `if got != want { fail }`: it asserts the opposite of its condition."""
    holders = (part for part in branch.children if part.start <= statement.start < part.end)
    body = next((part for part in holders if part.role != "condition"), branch)
    said = branch.all[branch.start : body.start if body.start > branch.start else branch.end]
    spoken = {token.word for token in said}
    rank = EXACT if spoken & {"!=", "!==", "!"} else PARTIAL
    if "nil" in spoken and not {*values_of(said)} - {"nil"}:
        rank = PARTIAL  # "no error" says less than "this value"
    if spoken - {"if", "(", ")", "{", "unless"} and not any(token.sort == "id" for token in said):
        rank = NOTHING
    return _assertion(branch, said, "if", rank)


def _said(statement: Node) -> list[Token]:
    """Give the tokens of an assertion: without its message, and without a block that is long."""
    end = statement.end
    if statement.kind == "assert_statement" and len(statement.children) > 1:
        end = statement.children[0].end
    if statement.kind == "with_statement" and statement.children:
        body = statement.part("body")
        end = body.end if body is not None and body.end - body.start < SHORT_BODY else statement.children[0].end
    return statement.all[statement.start : min(end, statement.start + LONGEST_CLAIM)]


def _is_constant(grammar: Grammar, said: Sequence[Token]) -> bool:
    """Tell whether an assertion can never fail because it is about nothing but constants."""
    key = key_of(said)
    if _is("never_holds", key) or _is("always_holds", key):  # what never holds is a way to fail, and no way to pass
        return not _is("never_holds", key)
    names = [token.text for token in said if token.sort == "id"]
    own = (_is("jargon", name) or _is("neutral", name) or grammar.fits("asserts", name) for name in names)
    constants = any(token.sort in VALUES for token in said) or "[ ]" in key or "{ }" in key
    if len(said) >= LONGEST_SIDE or not constants or not all(own):
        return False
    return all(word.lower() in words("pure") for name in names for word in pattern("claim", "words").findall(name))


# --- how much an assertion says: by the words of its own name first, then by those of what it is given ----------------


def _rank(said: Sequence[Token]) -> tuple[str, int]:
    """Give the relation that an assertion speaks of, and how much that says."""
    outer: list[str] = []
    inner: list[str] = []
    within = ""
    before = ""
    for token in said:
        if token.text in _OPENING:
            within += token.text
        elif token.text in _CLOSING:
            within = within[:-1]
        elif token.sort in {"op", "truth"} or (token.sort == "id" and (token.called or before in words("matching"))):
            (outer if not within else inner if within in {"(", "{"} else []).append(token.text)
        before = token.text
    names = [text for text in outer if text[:1].isalpha()]
    negated = sum(name in words("negations") for name in names) % 2 == 1
    signs = [known()["operator"].get(text) for text in (*outer, *inner)]
    by_sign = max((tuple(sign) for sign in signs if sign), key=itemgetter(1), default=None)
    if by_sign is not None and negated:
        by_sign = by_sign[0], WEAK
    judged = _judged(names, negated=negated)
    strong = [one for one in judged if one[0] not in {"truthy", "falsy"}]
    if names and names[0] in words("plain"):
        like = ("like", PARTIAL) if any(one[0] == "like" for one in strong) else None
        return by_sign or like or (("falsy", PARTIAL) if negated else ("truthy", WEAK))
    if strong:
        return max(strong, key=itemgetter(1))
    if by_sign is not None:
        return by_sign
    if any(name.endswith("That") or name in {"assert_that", "to", "Expect"} for name in names):
        matched = _judged(inner, negated=any(name in words("negations") for name in inner))
        judged = sorted(matched, key=itemgetter(1))[-1:] or judged
    bare = all(name in words("bare") for name in names)
    return judged[0] if judged else ("truthy", WEAK) if bare else ("call", EXACT)


def _judged(names: Sequence[str], *, negated: bool) -> list[tuple[str, int]]:
    """Give the relations that names assert by their words, each by the first row of the catalogue that fits."""
    judged: list[tuple[str, int]] = []
    for name in names:
        spoken = {word.lower() for word in pattern("claim", "words").findall(name)}
        denied = (len(spoken & words("not")) % 2 == 1 and name not in words("negations")) ^ negated
        fitting = (row for row in known()["relation"] if not spoken.isdisjoint(row["words"]))
        rows = (row for row in fitting if spoken.isdisjoint(row.get("unless", ())))
        judged += [tuple(row["denied" if denied else "says"]) for row in islice(rows, 1)]
    return judged


# --- whether a place can be reached, and whether a failure there is heard ---------------------------------------------


def statement_of(node: Node) -> Node:
    """Give the statement that a node is part of."""
    while node.parent is not None and not is_kind("block", node.parent.kind):
        node = node.parent
    return node


def _is_guard(node: Node) -> bool:
    """Tell whether a statement does nothing but leave its test on a condition."""
    node = _inmost(node)
    if not is_kind("conditional", node.kind):
        return False
    parts = [part for part in node.children if part.role in {"consequence", "body"} or is_kind("block", part.kind)]
    body = (parts or node.children or [node])[-1]
    does = " ".join(token.text for token in body.tokens[:12] if not _is("empty_word", token.text))
    return _is("leaves", does) and all(token.text != "else" for token in node.tokens)


def is_silent(node: Node) -> bool:
    """Tell whether code neither fails, nor passes a failure on."""
    return not _is("loud", text_of([token for token in node.tokens[:LONGEST_CLAIM] if token.sort != "str"]))


def mark_places(root: Node) -> None:
    """Say of every node why an assertion there can never fail, if it cannot, and whether it is reached on a condition only.

    What holds of a node holds of all below it.
    """
    todo = [root]
    while todo:
        node = todo.pop()
        block, conditional = is_kind("block", node.kind), is_kind("conditional", node.kind)
        unheard = _drops(node) or any(_swallows(part) for part in node.children if is_kind("catch", part.kind))
        left, guarded = False, node.guarded
        for child in node.children:
            if node.idle or left or _is_shut(node, child) or _is_empty_loop(node, child):
                child.idle = node.idle or NEVER_REACHED
            elif unheard and not is_kind("caught", child.kind):
                child.idle = SWALLOWED
            child.guarded = guarded or (conditional and _is_alone(child))
            left = left or (block and is_kind("exit", _inmost(child).kind))
            guarded = guarded or (block and _is_guard(child))
        todo += node.children


def _is_alone(branch: Node) -> bool:
    """Tell whether nothing is asserted where another branch than this is taken."""
    others = branch.parent.children if branch.parent is not None else []
    return not any(
        is_kind("block", part.kind) and not is_silent(part)
        for part in others
        if part is not branch and part.role != "condition"
    )


def _inmost(node: Node) -> Node:
    while node.kind in {"expression_statement", "statement"} and len(node.children) == 1:
        node = node.children[0]
    return node


def _kind(node: Node) -> str:
    """Give the kind of a node; where everything is a call, as in Elixir, the name of what is called."""
    first = node.all[node.start].text if node.kind == "call" and node.end > node.start else ""
    return first if first in {"if", "unless"} else node.kind


def _is_shut(node: Node, child: Node) -> bool:
    """Tell whether a branch belongs to a condition that is a plain constant and never holds."""
    if not is_kind("conditional", _kind(node)):
        return False
    first = next((part for part in node.children if part.role != "target"), child)
    condition = node.part("condition") or first
    read = [token.word for token in condition.tokens]
    if child is condition or any(token.sort == "id" for token in condition.tokens):
        return False
    match [word for word in read if not _is("empty_word", word)]:
        case [one]:
            holds = one.lower() not in words("falsy")
        case [one, sign, other]:
            holds = (one == other) == (sign in {"==", "===", "is"})
        case _:
            return False
    negated = ("!" in read) ^ ("not" in read) ^ _kind(node).startswith("unless")
    otherwise = child.role == "alternative" or child.kind.startswith(("else", "preproc_else"))
    return (holds ^ negated) == otherwise


def _is_empty_loop(node: Node, child: Node) -> bool:
    """Tell whether a loop goes through nothing, as its head says."""
    if not is_kind("loop", node.kind):
        return False
    inner = next((part for part in child.children if is_kind("block", part.kind)), child)
    head = node.all[node.start : min(inner.start if inner.start > node.start else node.end, node.start + 24)]
    return _is("empty_loop", text_of(head))


def _swallows(handler: Node) -> bool:
    if handler.kind == "defer_statement":
        return any(token.text == "recover" for token in handler.tokens) and is_silent(handler)
    body = next((part for part in reversed(handler.children) if is_kind("block", part.kind)), None)
    head = handler.all[handler.start : body.start if body is not None else handler.end]
    kinds = {token.text for token in head if token.sort == "id" and token.text[:1].isupper()}
    return (body is None or is_silent(body)) and (not kinds or any(_is("broad", kind) for kind in kinds))


def _drops(node: Node) -> bool:
    """Tell whether a call runs its block but drops what fails in it."""
    head = node.children[0] if node.children else node
    return is_kind("runs", node.kind) and any(_is("unheard", token.text) for token in head.tokens[:12])
