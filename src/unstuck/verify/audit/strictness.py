"""How much an assertion says, judged by its words: the same in every language and framework."""

import re

from unstuck.verify.audit.suite import EXACT, PARTIAL, WEAK

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
