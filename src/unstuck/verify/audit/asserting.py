"""Read one assertion: what it is about, what it expects, and how much it says by its words, the same in every language."""

import re

from unstuck.verify.audit.flow import is_block, is_guarded, why_idle
from unstuck.verify.audit.forms import Form
from unstuck.verify.audit.grammars import Grammar
from unstuck.verify.audit.suite import EXACT, NOTHING, PARTIAL, WEAK, Assertion
from unstuck.verify.audit.trees import Node

_FAIL = re.compile(
    r"^(?:fail(?:ure|now)?|flunk|XCTFail|FAIL|ADD_FAILURE\w*|panic|unreachable|abort|Error|Errorf|Fatal|Fatalf|Fail|FailNow|throw|raise|BOOST_FAIL|BOOST_ERROR|fatalError)$"
)
_NO_CODE = re.compile(
    r"attribute_(?:item|list)$|(?:future_)?import|use_(?:decl|as|list)|using_directive|namespace_use|package_"
)
"""Marks and imports: they name what asserts and assert nothing."""
_COUNTS = re.compile(r"expect \. (?:assertions|hasAssertions)|plan \(")
"""How many assertions there are says nothing about what they say."""
_MATCHING = frozenset({"to", "not_to", "to_not", "should", "should_not"})
"""Words of Ruby behind which a matcher stands without parentheses."""
_ALWAYS = re.compile(r"(?:\|\||\bor\b) (?:true|1)\b|(?:true|1) (?:\|\||\bor\b)")
LONGEST_TEXT = 240


def statement_of(node: Node) -> Node:
    """Give the statement that a node is part of."""
    while node.parent is not None and not is_block(node.parent.kind):
        node = node.parent
    return node


def is_claim(grammar: Grammar, form: Form, at: int) -> bool:
    """Tell whether a token is the name of something that asserts."""
    token = form.tree.tokens[at]
    if token.sort == "op":
        return token.text in {"assert", "throw", "raise"}
    if token.sort != "id" or any(_NO_CODE.match(above.kind) for above in token.node.above()[:4]):
        return False
    if token.text in {"panic", "unreachable"} and not {*(one.text for one in form.tree.tokens[at + 1 : at + 2])} & {
        "!",
        "(",
    }:
        return False  # a module of that name
    receiver = form.receivers[at]
    if receiver and grammar.told.search(f"{receiver}.{token.text}"):
        return True
    if not grammar.asserts.search(token.text) or (token.node.role in {"name", "key"} and not _is_call_name(token.node)):
        return False
    return form.called[at] or token.text.startswith(("should", "must", "wont"))


def _is_call_name(node: Node) -> bool:
    parent = node.parent
    return parent is not None and any(
        word in parent.kind for word in ("call", "invocation", "member", "generic", "scoped", "navigation")
    )


def claim_of(grammar: Grammar, form: Form, at: int, top: Node) -> tuple[Node, Assertion] | None:
    """Read the assertion whose name stands at a token, with the node that it is."""
    token = form.tree.tokens[at]
    statement = statement_of(token.node)
    if _COUNTS.match(" ".join(one.text for one in form.tree.tokens[at : at + 3])):
        return None
    fails = _FAIL.match(token.text) is not None
    if fails:
        branch = _branch(statement, top)
        if branch is not None:
            return branch, _branched(form, branch, statement, top)
        if token.text in {"throw", "raise"}:
            return None
    start, end = _span(statement)
    relation, rank = ("fail", PARTIAL) if fails else _rank(form, at, end)
    if not fails and relation != "call" and _is_void(grammar, form, start, end):
        rank = NOTHING
    return statement, _assertion(form, statement, (start, end), relation, rank, top)


def _assertion(form: Form, node: Node, span: tuple[int, int], relation: str, rank: int, top: Node) -> Assertion:
    start, end = span
    idle = why_idle(form, node)
    fails = relation == "fail"  # what is said of a failure is no expectation
    key = relation if fails else form.key(start, end)
    names = form.names(start, end)
    return Assertion(
        key=f"({idle}) {key}" if idle else key,
        rank=NOTHING if idle else rank,
        relation=relation,
        names=frozenset(name for name in names if not _is_jargon(name)),
        values=() if fails else form.values(start, end),
        blurs=names & BLURS,
        line=form.tree.tokens[start].line if start < len(form.tree.tokens) else node.line,
        text=" ".join(token.text for token in form.tree.tokens[start : min(end, start + 80)])[:LONGEST_TEXT],
        idle=idle,
        guarded=is_guarded(node, top),
    )


def _branch(statement: Node, top: Node) -> Node | None:
    """Give the condition on which a failure is called out; none where it always is."""
    for node in statement.above():
        if node is top:
            return None
        if re.match(r"if|unless|elif|elsif|guard|conditional|when_entry|expression_case|switch_case", node.kind):
            return node
        if re.match(r"for|while|do_stat|function|method|func_lit|arrow|lambda", node.kind):
            return None
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
    bare = [word for word in form.words[branch.start : end] if word not in {"if", "(", ")", "{", "unless"}]
    if "nil" in words and rank == EXACT and not {*form.values(branch.start, end)} - {"nil"}:
        rank = PARTIAL  # "no error" says less than "this value"
    if not any(form.tree.tokens[at].sort == "id" for at in range(branch.start, end)) and bare:
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


def _rank(form: Form, start: int, end: int) -> tuple[str, int]:
    outer: list[str] = []
    inner: list[str] = []
    depth = 0
    for at in range(start, end):
        text = form.tree.tokens[at].text
        if text in {"(", "[", "{"}:
            depth += 1
        elif text in {")", "]", "}"}:
            depth -= 1
        elif form.tree.tokens[at].sort in {"id", "op", "truth"} and (
            form.called[at] or form.tree.tokens[at].sort != "id" or form.tree.tokens[at - 1].text in _MATCHING
        ):
            (outer if depth <= 0 else inner if depth == 1 else []).append(text)
    return judge_words(outer, inner)


def _is_void(grammar: Grammar, form: Form, start: int, end: int) -> bool:
    """Tell whether an assertion can never fail: it compares constants, or a thing with itself."""
    tokens = form.tree.tokens[start:end]
    if _ALWAYS.search(form.key(start, end)):
        return True
    free = [
        token
        for token in tokens
        if token.sort == "id" and not _is_jargon(token.text) and not grammar.asserts.search(token.text)
    ]
    free = [
        token
        for token in free
        if token.text not in {"t", "self", "this", "Assert", "assert", "XCTest", "pytest", "testing"}
    ]
    constant = any(token.sort in {"num", "str", "truth"} for token in tokens)
    if not free and constant and len(tokens) < 40:  # noqa: PLR2004
        return all(word.lower() in PURE for token in tokens if token.sort == "id" for word in WORDS.findall(token.text))
    return _same_sides(form, start, end)


def _same_sides(form: Form, start: int, end: int) -> bool:
    text = " ".join(token.text for token in form.tree.tokens[start : min(end, start + 60)])
    found = re.search(
        r"(?i)equals?\w* \( (?:t , )?(?P<one>[^,()]+) , (?P<two>[^,()]+) \)|expect \( (?P<three>[^()]+) \) \. \w+ \( (?P<four>[^()]+) \)|assert ! ?\( (?P<five>\S+) == (?P<six>\S+) \)|^assert (?P<seven>[\w.]+) == (?P<eight>[\w.]+)$|_EQ \( (?P<nine>[^,()]+) , (?P<ten>[^,()]+) \)|assert_eq ! \( (?P<eleven>[^,()]+) , (?P<twelve>[^,()]+) \)",
        text,
    )
    sides = [one.strip() for one in found.groups() if one] if found else []
    return len(sides) == 2 and sides[0] == sides[1]  # noqa: PLR2004


_JARGON = re.compile(
    r"^(?:[Aa]ssert\w*|ASSERT\w*|EXPECT\w*|[Ee]xpect\w*|REQUIRE\w*|CHECK\w*|BOOST\w*|XCT\w+|to|not|toBe\w*|toEqual|toStrictEqual|toThrow\w*|toHave\w*|toMatch\w*|toContain\w*|eq|eql|be|is\w*Equal\w*|isNotNull|isNull"
    r"|isTrue|isFalse|That|Equal\w*|NotEqual\w*|True|False|Null|NotNull|Nil|NotNil|NoError|Be|Should|should\w*|must_\w+|wont_\w+|refute\w*|verify|require|Fatalf?|Errorf?|Fail|FailNow|ok|notOk|strictEqual|deepEqual|deepStrictEqual|equal|Is|EqualTo|it|raises|throws|rejects|resolves|and|with|Throws\w*|and_\w+|Some|Ok|None|Err)$"
)


def _is_jargon(name: str) -> bool:
    return _JARGON.match(name) is not None


WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NOT = _set("not no ne neq refute wont isnt unequal nor never differs different doesnt doesn")
_NEGATIONS = _set("not not_to to_not Not NotTo ToNot refute never isNot should_not shouldNot wont notTo toNot")
_EQUAL = _set("equal equals eq same eql identical streq")
_SAME = _EQUAL | _set(
    "is be strict deep deeply exactly snapshot null nil none empty zero strcaseeq compare instanceof json xml called received returned blank shouldbe seq error err times"
)
_RAISES = _set("raise raises raised throw throws thrown panic panics rejects rejected fails warns exception")
_LIKE = _set(
    "contain contains containing include includes match matches like start starts startswith end ends endswith prefix suffix greater less more above below close almost near within"
    " approx delta instance isinstance kind type between subset issubset any property key member respond in gt lt ge le gte lte regexp regex size length count than all every"
    " some approximately float double many least most superset fullmatch search"
)
_TRUE = _set("true truthy ok defined present exist exists false falsy falsey pass succeed nothing undefined succeeds")
_VOID = _set("null nil none empty undefined defined throw throws raise raises error zero blank err false")
_PLAIN = _set(
    "assert refute debug_assert prop_assert static_assert ck_assert g_assert ASSERT EXPECT REQUIRE CHECK VERIFY QVERIFY BOOST_TEST BOOST_CHECK BOOST_REQUIRE STATIC_REQUIRE XCTAssert"
)
"""Assertions of one condition: what they say stands in its operators."""
_BARE = _PLAIN | _set("Assert assertThat expect Expect require to That assert_that should t verify")
_OPERATORS = {
    **dict.fromkeys(("==", "===", "is", "eq"), EXACT),
    **dict.fromkeys(("!=", "!==", "is not"), WEAK),
    **dict.fromkeys(("<", ">", "<=", ">=", "in", "=~", "~=", "instanceof", "not in"), PARTIAL),
}
PURE = _set(
    "assert asserts expect equal equals eq ne same true false not null nil none to be is that ok truthy falsy strict strictly deep are xct xctassert boost check require t self this"
    " testing defined refute should must test empty zero and eql"
)
"""Words of assertions that compare what they are given, and look at nothing else."""
BLURS = _set(
    "sorted sort round lower upper toLowerCase toUpperCase strip trim len length size count Count set Set abs int floor ceil type bool Boolean any startswith startsWith slice substring"
    " anything objectContaining arrayContaining stringContaining ANY isinstance is_a keys approx Any AnyOf anyOf casefold uniq normalize"
)
"""Calls that throw some of a value away."""


def judge_words(outer: list[str], inner: list[str]) -> tuple[str, int]:
    """Judge by the words of an assertion: those of its own name first, then those of what it is given."""
    names = [text for text in outer if text[:1].isalpha()]
    negated = sum(name in _NEGATIONS for name in names) % 2 == 1
    plain = bool(names) and names[0] in _PLAIN and len(outer) > 0
    signs = [text for text in (*outer, *inner) if text in _OPERATORS]
    if signs and plain:
        rank = max(_OPERATORS[sign] for sign in signs)
        return {EXACT: "eq", PARTIAL: "like", WEAK: "ne"}[rank], WEAK if negated else rank
    found = [judged for name in names if (judged := _judge_name(name, negated=negated)) is not None]
    strong = [one for one in found if one[0] not in {"truthy", "falsy"}]
    if plain and any(one[0] == "like" for one in strong):
        return "like", PARTIAL
    if plain:
        return ("falsy", PARTIAL) if negated else ("truthy", WEAK)
    if strong:
        return max(strong, key=lambda one: one[1])
    if signs:
        rank = max(_OPERATORS[sign] for sign in signs)
        return {EXACT: "eq", PARTIAL: "like", WEAK: "ne"}[rank], WEAK if negated else rank
    if any(name.endswith("That") or name in {"assert_that", "to", "Expect"} for name in names):
        denied = any(name in _NEGATIONS for name in inner)
        within = [judged for name in inner if (judged := _judge_name(name, negated=denied)) is not None]
        if within:
            return max(within, key=lambda one: one[1])
    if found:
        return found[0]
    return ("truthy", WEAK) if all(name in _BARE for name in names) else ("call", EXACT)


def _judge_name(name: str, *, negated: bool) -> tuple[str, int] | None:
    words = {word.lower() for word in WORDS.findall(name)}
    denied = (sum(word in _NOT for word in words) % 2 == 1 and name not in _NEGATIONS) ^ negated
    if words & _RAISES:
        return ("quiet", WEAK) if denied else ("raises", EXACT)
    if words & _LIKE:
        return "like", PARTIAL
    if words & _SAME and not (words & _TRUE and not words & _EQUAL):
        if denied:
            return ("void", PARTIAL) if words & {"error", "err"} else ("ne", WEAK)
        return ("eq", EXACT) if words & _EQUAL or not words & _VOID else ("void", EXACT)
    if words & _TRUE:
        # Few values are empty or false, and nearly all are not.
        return ("falsy", PARTIAL) if bool(words & {"false", "falsy", "falsey"}) ^ denied else ("truthy", WEAK)
    return None
