"""Read one assertion: what it is about, what it expects, how much it says by its words, and whether it can fail where it stands."""

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from unstuck.verify.audit.grammars import CALLS, Form, Grammar, Node, is_callee
from unstuck.verify.change import known, pattern

EXACT, PARTIAL, WEAK, NOTHING = 3, 2, 1, 0
"""How much an assertion says: this value; a value like this; some value; nothing."""
LONGEST_TEXT = 240
LONGEST_SIDE = 40
_SIDES = re.compile(r"binary|comparison|infix|equality")
_GIVEN = re.compile(r"argument|token_tree")
_SIGNS = frozenset({"==", "===", "!=", "!==", "<", ">", "<=", ">=", "is", "in", "=", "+", "-", "&&", "||", "and", "or"})
NEVER_REACHED = "is never reached"
SWALLOWED = "can fail without anybody hearing of it"
_COUNTS = re.compile(r"expect \. (?:assertions|hasAssertions)|plan \(")
"""How many assertions there are says nothing about what they say."""
_MATCHING = frozenset({"to", "not_to", "to_not", "should", "should_not"})
"""Words of Ruby behind which a matcher stands without parentheses."""
_ALWAYS = re.compile(r"(?:\|\||\bor\b) (?:true|1)\b|(?:true|1) (?:\|\||\bor\b)")
_FAILS = re.compile(r"(?:\w+ (?:\.|::|->) )*assert(?:_?[Tt]rue)? !? ?\(? ?(?:false|0)(?: [,)]|$)")
"""What never holds is a way to fail, and no way to pass."""
_FAILURE = re.compile(r"(?:Assert|Expect|Check|Verif|Fail)\w*(?:Error|Exception)$")
"""The name of what is raised, which asserts nothing itself."""
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_OPERATORS = {
    **dict.fromkeys(("==", "===", "is", "eq"), EXACT),
    **dict.fromkeys(("!=", "!==", "is not"), WEAK),
    **dict.fromkeys(("<", ">", "<=", ">=", "in", "=~", "~=", "instanceof", "not in"), PARTIAL),
}


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

    @property
    def literals(self) -> frozenset[str]:
        return frozenset(self.values)


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(known()["word"][name].split())


def is_claim(grammar: Grammar, form: Form, at: int) -> bool:
    """Tell whether a token is the name of something that asserts."""
    token = form.tree.tokens[at]
    if token.sort == "op":
        return token.text in {"assert", "throw", "raise"}
    if token.sort != "id" or any(pattern("node", "no_code").match(above.kind) for above in token.node.above()[:4]):
        return False
    after = form.tree.tokens[at + 1].text if at + 1 < len(form.tree.tokens) else ""
    if token.text in {"panic", "unreachable"} and after not in {"!", "("}:
        return False  # a module of that name
    receiver = form.receivers[at]
    looked_up = bool(receiver) and after not in CALLS and not is_callee(token.node)  # `task.checks` calls nothing
    if receiver and not looked_up and grammar.told.search(f"{receiver}.{token.text}"):
        return True
    if _FAILURE.match(token.text) or not grammar.asserts.search(token.text):
        return False
    return (form.called[at] and not looked_up) or token.text.startswith(("should", "must", "wont"))


def claim_of(grammar: Grammar, form: Form, at: int, top: Node) -> tuple[Node, Assertion] | None:
    """Read the assertion whose name stands at a token, with the node that it is."""
    token = form.tree.tokens[at]
    statement = statement_of(token.node)
    if _COUNTS.match(" ".join(one.text for one in form.tree.tokens[at : at + 3])):
        return None
    fails = pattern("node", "fail").match(token.text) is not None
    if fails:
        branch = _branch(statement, top)
        if branch is not None:
            return branch, _branched(form, branch, statement, top)
        if token.text in {"throw", "raise"}:
            return None
    start, end = _span(statement)
    relation, rank = ("fail", PARTIAL) if fails else _rank(form, at, end)
    if (
        not fails
        and relation != "call"
        and (
            _is_void(grammar, form, start, end)
            or (rank == EXACT and _compares_with_itself(form, statement, start, end))
        )
    ):
        rank = NOTHING
    return statement, _assertion(form, statement, (start, end), relation, rank, top)


def _assertion(form: Form, node: Node, span: tuple[int, int], relation: str, rank: int, top: Node) -> Assertion:
    start, end = span
    idle = _why_idle(form, node)
    fails = relation == "fail"  # what is said of a failure is no expectation
    key = relation if fails else form.key(start, end)
    names = form.names(start, end)
    return Assertion(
        key=key if rank > NOTHING and not idle else f"({idle or 'says nothing'}) {key}",
        rank=NOTHING if idle else rank,
        relation=relation,
        names=frozenset(name for name in names if not _is_jargon(name)),
        values=() if fails else form.values(start, end),
        blurs=names & _words("blurs"),
        line=form.tree.tokens[start].line if start < len(form.tree.tokens) else node.line,
        text=form.text(start, min(end, start + 80))[:LONGEST_TEXT],
        idle=idle,
        guarded=_is_guarded(form, node, top),
    )


def _branch(statement: Node, top: Node) -> Node | None:
    """Give the condition on which a failure is called out; none where it always is."""
    for node in statement.above():
        if node is top or re.match(r"for|while|do_stat|function|method|func_lit|arrow|lambda", node.kind):
            return None
        if re.match(r"if|unless|elif|elsif|guard|conditional|when_entry|expression_case|switch_case", node.kind):
            return node
    return None


def _branched(form: Form, branch: Node, statement: Node, top: Node) -> Assertion:
    """Read `if got != want { fail }`: it asserts the opposite of its condition."""
    body = next(
        (part for part in branch.children if part.start <= statement.start < part.end and part.role != "condition"),
        None,
    )
    end = body.start if body is not None and body.start > branch.start else branch.end
    words = set(form.words[branch.start : end])
    rank = EXACT if words & {"!=", "!==", "!"} else PARTIAL
    if "nil" in words and rank == EXACT and not {*form.values(branch.start, end)} - {"nil"}:
        rank = PARTIAL  # "no error" says less than "this value"
    if words - {"if", "(", ")", "{", "unless"} and not any(
        form.tree.tokens[at].sort == "id" for at in range(branch.start, end)
    ):
        rank = NOTHING
    return _assertion(form, branch, (branch.start, end), "if", rank, top)


def _span(statement: Node) -> tuple[int, int]:
    """Give the tokens of an assertion: without its message, and without a block that is long."""
    start, end = statement.start, statement.end
    if statement.kind == "assert_statement" and len(statement.children) > 1:
        end = statement.children[0].end
    if statement.kind == "with_statement" and statement.children:
        body = next((part for part in statement.children if part.role == "body"), None)
        end = body.end if body is not None and body.end - body.start < 60 else statement.children[0].end  # noqa: PLR2004
    return start, min(end, start + 600)


def _is_void(grammar: Grammar, form: Form, start: int, end: int) -> bool:
    """Tell whether an assertion can never fail: it compares constants, or a thing with itself."""
    tokens = form.tree.tokens[start:end]
    if _FAILS.match(form.key(start, end)):
        return False
    if _ALWAYS.search(form.key(start, end)):
        return True
    names = [token.text for token in tokens if token.sort == "id"]
    neutral = {"t", "self", "this", "Assert", "assert", "XCTest", "pytest", "testing"}
    free = [name for name in names if not (_is_jargon(name) or grammar.asserts.search(name) or name in neutral)]
    constant = any(token.sort in {"num", "str", "truth"} for token in tokens)
    if free or not constant or len(tokens) >= 40:  # noqa: PLR2004
        return False
    return all(word.lower() in _words("pure") for name in names for word in _WORDS.findall(name))


def _compares_with_itself(form: Form, statement: Node, start: int, end: int) -> bool:
    """Tell whether both sides of an assertion are the same: of an operator, of a call's arguments, or of what follows it."""
    given: list[str] = []
    todo = [statement]
    while todo:
        node = todo.pop()
        if node.start >= end or node.end - node.start > LONGEST_SIDE * 2:
            continue
        sides = [_side(form, part) for part in node.children[:4] if part.start >= start and part.end <= end]
        if _SIDES.search(node.kind) and len(sides) > 1 and sides[0] and sides[0] in sides[1:3]:
            return not _SIGNS.intersection(form.words[node.start : node.end]) - {"==", "===", "="}
        if node.kind == "token_tree":  # the arguments of a macro are only tokens
            sides = [
                one if re.search(r"[a-z]", one) else ""
                for one in form.text(node.start + 1, node.end - 1).split(" , ")[:2]
            ]
        if _GIVEN.search(node.kind) and len(sides) == 1 and node.children and _goes_on(form, node.children[0]):
            todo.append(node.children[0])
        elif _GIVEN.search(node.kind):
            if _is_twice(sides):
                return True
            given.append(sides[0] if len(sides) == 1 else "")
        elif node.kind != "assignment":
            todo += reversed(node.children)
    return _is_twice(given)


def _goes_on(form: Form, node: Node) -> bool:
    """Tell whether the one thing that a call is given is a comparison, or a word that compares."""
    return _SIDES.search(node.kind) is not None or _is_jargon(form.tree.tokens[node.start].text)


def _is_twice(sides: list[str]) -> bool:
    return any(one and one == two for one, two in pairwise(sides))


def _side(form: Form, node: Node) -> str:
    """Give one side of a comparison, if something is computed in it."""
    tokens = form.tree.tokens[node.start : node.end]
    found = any(token.sort == "id" for token in tokens) and len(tokens) < LONGEST_SIDE
    return "".join(token.text for token in tokens) if found else ""


def _is_jargon(name: str) -> bool:
    return pattern("word", "jargon").match(name) is not None


def _rank(form: Form, start: int, end: int) -> tuple[str, int]:
    """Judge by the words of an assertion: those of its own name first, then those of what it is given."""
    outer: list[str] = []
    inner: list[str] = []
    within = ""
    for at in range(start, end):
        text, sort = form.tree.tokens[at].text, form.tree.tokens[at].sort
        if text in {"(", "[", "{"}:
            within += text
        elif text in {")", "]", "}"}:
            within = within[:-1]
        elif sort in {"op", "truth"} or (
            sort == "id" and (form.called[at] or form.tree.tokens[at - 1].text in _MATCHING)
        ):
            (outer if not within else inner if within in {"(", "{"} else []).append(text)
    return _judge_words(outer, inner)


def _judge_words(outer: list[str], inner: list[str]) -> tuple[str, int]:
    names = [text for text in outer if text[:1].isalpha()]
    negated = sum(name in _words("negations") for name in names) % 2 == 1
    plain = bool(names) and names[0] in _words("plain")
    signs = [_OPERATORS[text] for text in (*outer, *inner) if text in _OPERATORS]
    by_sign = (
        ({EXACT: "eq", PARTIAL: "like", WEAK: "ne"}[max(signs)], WEAK if negated else max(signs)) if signs else None
    )
    if plain and by_sign is not None:
        return by_sign
    judged = [one for name in names if (one := _judge_name(name, negated=negated)) is not None]
    strong = [one for one in judged if one[0] not in {"truthy", "falsy"}]
    if plain:
        like = any(one[0] == "like" for one in strong)
        return ("like", PARTIAL) if like else ("falsy", PARTIAL) if negated else ("truthy", WEAK)
    if strong:
        return max(strong, key=lambda one: one[1])
    if by_sign is not None:
        return by_sign
    if any(name.endswith("That") or name in {"assert_that", "to", "Expect"} for name in names):
        denied = any(name in _words("negations") for name in inner)
        within = [one for name in inner if (one := _judge_name(name, negated=denied)) is not None]
        if within:
            return max(within, key=lambda one: one[1])
    if judged:
        return judged[0]
    return ("truthy", WEAK) if all(name in _words("bare") for name in names) else ("call", EXACT)


def _judge_name(name: str, *, negated: bool) -> tuple[str, int] | None:
    words = {word.lower() for word in _WORDS.findall(name)}
    denied = (sum(word in _words("not") for word in words) % 2 == 1 and name not in _words("negations")) ^ negated
    if words & _words("raises"):
        return ("quiet", WEAK) if denied else ("raises", EXACT)
    if words & _words("like"):
        return "like", PARTIAL
    equal = words & _words("equal")
    if equal or (words & _words("same") and not words & _words("true")):
        if denied:
            return ("void", PARTIAL) if words & {"error", "err"} else ("ne", WEAK)
        return ("eq", EXACT) if equal or not words & _words("void") else ("void", EXACT)
    if words & _words("true"):
        # Few values are empty or false, and nearly all are not.
        return ("falsy", PARTIAL) if bool(words & {"false", "falsy", "falsey"}) ^ denied else ("truthy", WEAK)
    return None


# --- whether a place can be reached, and whether a failure there is heard ---------------------------------------------

_EXIT = re.compile(r"^(?:return|throw|raise|break|continue|next|control_transfer|jump|exit)")
_CONDITIONAL = re.compile(r"^(?:if|while|elsif|unless|elif|guard|preproc_if|conditional)")
_LOOP = re.compile(r"for|while|call|invocation|loop")
_HANDLER = re.compile(r"^(?:catch|except|rescue)")
_AFTER = re.compile(r"^(?:else|finally|ensure|after)")
_FALSY = frozenset({"false", "0", "nil", "null", "none", "''", "undefined"})
_LEAVING = (["return"], ["next"], ["return", "nil"], ["return", "Ok"], ["return", "None"])


@cache
def is_block(kind: str) -> bool:
    """Tell whether nodes of this kind hold statements."""
    return pattern("node", "block").search(kind) is not None


def statement_of(node: Node) -> Node:
    """Give the statement that a node is part of."""
    while node.parent is not None and not is_block(node.parent.kind):
        node = node.parent
    return node


def is_guard(form: Form, node: Node) -> bool:
    """Tell whether a statement does nothing but leave its test on a condition."""
    node = _inmost(node)
    if not _CONDITIONAL.match(node.kind):
        return False
    parts = [part for part in node.children if part.role in {"consequence", "body"} or is_block(part.kind)]
    body = (parts or node.children or [node])[-1]
    words = [token.text for token in form.tree.tokens[body.start : body.end]]
    leaves = [word for word in words if word not in {"{", "}", ";", "then", "end", ":", "(", ")"}]
    return leaves in _LEAVING and all(token.text != "else" for token in form.tree.tokens[node.start : node.end])


def is_silent(form: Form, node: Node) -> bool:
    """Tell whether code neither fails, nor passes a failure on."""
    words = (token.text for token in form.tree.tokens[node.start : node.end] if token.sort != "str")
    return pattern("node", "loud").search(" ".join(words)) is None


def _why_idle(form: Form, node: Node) -> str:
    """Say why an assertion can no longer fail; nothing where it can."""
    child = node
    for above in node.above():
        if is_block(above.kind) and _after_exit(above, child):
            return NEVER_REACHED
        if (_CONDITIONAL.match(_kind(form, above)) and _shut(form, above, child)) or _is_empty_loop(form, above, child):
            return NEVER_REACHED
        if above.handlers is None:
            above.handlers = [part for part in above.children if _HANDLER.match(part.kind)]
        inside = not _HANDLER.match(child.kind) and not _AFTER.match(child.kind)
        if (inside and any(_swallows(form, part) for part in above.handlers)) or _drops(form, above):
            return SWALLOWED
        child = above
    return ""


def _is_guarded(form: Form, node: Node, top: Node) -> bool:
    """Tell whether a place is reached on a condition only, and nothing is asserted where it is not."""
    for above in node.above():
        if above is top:
            return False
        if _CONDITIONAL.match(above.kind):
            other = [
                part for part in above.children if part.role != "condition" and not part.start <= node.start < part.end
            ]
            return not any(is_block(part.kind) and not is_silent(form, part) for part in other)
    return False


def _inmost(node: Node) -> Node:
    while node.kind in {"expression_statement", "statement"} and len(node.children) == 1:
        node = node.children[0]
    return node


def _kind(form: Form, node: Node) -> str:
    """Give the kind of a node; where everything is a call, as in Elixir, the name of what is called."""
    if node.kind == "call" and node.end > node.start and form.tree.tokens[node.start].text in {"if", "unless"}:
        return form.tree.tokens[node.start].text
    return node.kind


def _after_exit(block: Node, child: Node) -> bool:
    """Tell whether a statement of the block leaves it, whatever happens, before this one."""
    if block.left < 0:
        exits = (
            part.start
            for part in block.children
            if _EXIT.match(_inmost(part).kind) and not _inmost(part).kind.endswith("modifier")
        )
        block.left = next(exits, block.end)
    return child.start > block.left


def _shut(form: Form, node: Node, child: Node) -> bool:
    """Tell whether a branch belongs to a condition that is a plain constant and never holds."""
    condition = next((part for part in node.children if part.role == "condition"), None)
    if condition is None:
        condition = next((part for part in node.children if part.kind != "identifier" or part.role != "target"), None)
    if condition is None or child is condition:
        return False
    words = form.words[condition.start : condition.end]
    sorts = {token.sort for token in form.tree.tokens[condition.start : condition.end]}
    bare = [word for word in words if word and word not in {"(", ")", "not", "!", ":"}]
    if len(bare) == 3 and sorts <= {"num", "str", "op"}:  # noqa: PLR2004
        return (bare[0] == bare[2]) != (bare[1] in {"==", "===", "is"})
    if len(bare) != 1 or not sorts <= {"truth", "num", "str", "op"}:
        return False
    negated = ("!" in words) ^ ("not" in words) ^ _kind(form, node).startswith("unless")
    holds = (bare[0].lower() not in _FALSY) ^ negated
    otherwise = child.role == "alternative" or child.kind.startswith(("else", "preproc_else"))
    return holds if otherwise else not holds


def _is_empty_loop(form: Form, node: Node, child: Node) -> bool:
    """Tell whether a loop goes through nothing, as its head says."""
    if not _LOOP.search(node.kind):
        return False
    inner = next((part for part in child.children if is_block(part.kind)), child)
    head = form.text(node.start, min(inner.start if inner.start > node.start else node.end, node.start + 24))
    return pattern("node", "empty_loop").search(head) is not None


def _swallows(form: Form, handler: Node) -> bool:
    body = next((part for part in reversed(handler.children) if is_block(part.kind)), None)
    if body is not None and not is_silent(form, body):
        return False
    head = form.tree.tokens[handler.start : body.start if body is not None else handler.end]
    kinds = {token.text for token in head if token.sort == "id" and token.text[:1].isupper()}
    return not kinds or any(pattern("node", "broad").match(kind) for kind in kinds)


def _drops(form: Form, node: Node) -> bool:
    """Tell whether a call runs its block but drops what fails in it."""
    if node.kind != "with_statement" and "call" not in node.kind and "invocation" not in node.kind:
        return False
    head = node.children[0] if node.children else node
    words = {token.text for token in form.tree.tokens[head.start : min(head.end, head.start + 12)]}
    return bool(words & {"catch_unwind", "runCatching", "suppress", "assertDoesNotThrowAny"})
