"""Read what a piece of JavaScript asserts: expect chains, node and chai assert, t.is and its like."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from unstuck.verify.tamper.script_form import Form, Span, form
from unstuck.verify.tamper.script_tokens import Script, arguments
from unstuck.verify.tamper.suite import DOUBTFUL, EXACT, NOTHING, PARTIAL, WEAK, Assertion

_MATCHERS = {  # what each demands, and how much that says
    "toBe": ("eq", EXACT), "toEqual": ("eq", EXACT), "toStrictEqual": ("eq", EXACT), "toHaveLength": ("eq", EXACT),
    "equal": ("eq", EXACT), "equals": ("eq", EXACT), "eql": ("eq", EXACT), "eq": ("eq", EXACT), "toHaveProperty": ("eq", EXACT),
    "lengthOf": ("eq", EXACT), "toBeNull": ("eq", EXACT), "toBeUndefined": ("eq", EXACT), "toBeNaN": ("eq", EXACT),
    "toMatchSnapshot": ("snapshot", PARTIAL), "toMatchInlineSnapshot": ("eq", EXACT), "toHaveBeenCalledWith": ("called", EXACT),
    "toHaveBeenLastCalledWith": ("called", EXACT), "toHaveBeenNthCalledWith": ("called", EXACT),
    "toHaveBeenCalledTimes": ("called", EXACT), "toHaveBeenCalledOnce": ("called", PARTIAL), "toHaveBeenCalled": ("called", WEAK),
    "toBeCalledWith": ("called", EXACT), "toBeCalledTimes": ("called", EXACT), "toBeCalled": ("called", WEAK),
    "toHaveReturnedWith": ("called", EXACT), "toBeCloseTo": ("eq", EXACT), "closeTo": ("eq", EXACT), "approximately": ("eq", EXACT),
    "toContain": ("like", PARTIAL), "toContainEqual": ("like", PARTIAL), "toMatch": ("like", PARTIAL),
    "toMatchObject": ("like", PARTIAL), "include": ("like", PARTIAL), "includes": ("like", PARTIAL), "contain": ("like", PARTIAL),
    "match": ("like", PARTIAL), "members": ("like", PARTIAL), "toBeGreaterThan": ("order", PARTIAL),
    "toBeGreaterThanOrEqual": ("order", PARTIAL), "toBeLessThan": ("order", PARTIAL), "toBeLessThanOrEqual": ("order", PARTIAL),
    "above": ("order", PARTIAL), "below": ("order", PARTIAL), "least": ("order", PARTIAL), "most": ("order", PARTIAL),
    "within": ("order", PARTIAL), "toThrow": ("raises", PARTIAL), "toThrowError": ("raises", PARTIAL), "throw": ("raises", PARTIAL),
    "throws": ("raises", PARTIAL), "rejectedWith": ("raises", PARTIAL), "toSatisfy": ("like", PARTIAL),
    "toBeTruthy": ("truthy", WEAK), "toBeFalsy": ("falsy", WEAK), "toBeDefined": ("ne", WEAK), "toBeInstanceOf": ("isinstance", WEAK),
    "toBeTypeOf": ("isinstance", WEAK), "ok": ("truthy", WEAK), "exist": ("ne", WEAK), "a": ("isinstance", WEAK),
    "an": ("isinstance", WEAK), "instanceOf": ("isinstance", WEAK), "property": ("like", PARTIAL),
    "toHaveResolved": ("called", WEAK), "toHaveReturned": ("called", WEAK), "calledWith": ("called", EXACT), "calledOnce": ("called", PARTIAL),
}  # fmt: skip
_IMPLIED = {
    "toBeNull": "null",
    "toBeUndefined": "undefined",
    "toBeNaN": "NaN",
    "null": "null",
    "undefined": "undefined",
    "true": "true",
    "false": "false",
}
_PROPERTIES = {"true": ("eq", EXACT), "false": ("eq", EXACT), "null": ("eq", EXACT), "undefined": ("eq", EXACT), "empty": ("eq", EXACT),
               "ok": ("truthy", WEAK), "exist": ("ne", WEAK), "calledOnce": ("called", PARTIAL), "called": ("called", WEAK)}  # fmt: skip
_FUNCTIONS = {
    "equal": ("eq", EXACT), "strictEqual": ("eq", EXACT), "deepEqual": ("eq", EXACT), "deepStrictEqual": ("eq", EXACT),
    "is": ("eq", EXACT), "same": ("eq", EXACT), "isTrue": ("eq", EXACT), "isFalse": ("eq", EXACT), "isNull": ("eq", EXACT),
    "isUndefined": ("eq", EXACT), "lengthOf": ("eq", EXACT), "sameMembers": ("like", PARTIAL), "snapshot": ("eq", EXACT),
    "partialDeepStrictEqual": ("like", PARTIAL), "match": ("like", PARTIAL), "include": ("like", PARTIAL), "like": ("like", PARTIAL),
    "throws": ("raises", PARTIAL), "rejects": ("raises", PARTIAL), "throwsAsync": ("raises", PARTIAL), "closeTo": ("eq", EXACT),
    "ok": ("truthy", WEAK), "notEqual": ("ne", WEAK), "notStrictEqual": ("ne", WEAK), "notDeepEqual": ("ne", WEAK),
    "notDeepStrictEqual": ("ne", WEAK), "doesNotThrow": ("quiet", WEAK), "doesNotReject": ("quiet", WEAK), "doesNotMatch": ("like", WEAK),
    "isDefined": ("ne", WEAK), "exists": ("ne", WEAK), "isOk": ("truthy", WEAK), "truthy": ("truthy", WEAK), "assert": ("truthy", WEAK),
    "true": ("eq", EXACT), "false": ("eq", EXACT), "not": ("ne", WEAK), "notThrows": ("quiet", WEAK), "fail": ("fail", PARTIAL),
    "isAbove": ("order", PARTIAL), "isAtLeast": ("order", PARTIAL), "isBelow": ("order", PARTIAL), "instanceOf": ("isinstance", WEAK),
    "calledOnce": ("called", PARTIAL), "called": ("called", WEAK), "calledWith": ("called", EXACT), "notCalled": ("called", EXACT),
    "calledOnceWithExactly": ("called", EXACT), "callCount": ("called", EXACT), "isNotNull": ("ne", WEAK), "typeOf": ("isinstance", WEAK), "ifError": ("quiet", WEAK),
}  # fmt: skip
_ANYTHING = frozenset({"anything"})
_ROUGH = frozenset({"any", "objectContaining", "arrayContaining", "stringContaining", "stringMatching", "closeTo"})

Known = Mapping[str, Span]


def assertion_at(script: Script, place: int, known: Known) -> tuple[Assertion, int] | None:
    """Read the assertion that begins at this token, and where it ends; None where none does."""
    word, before, after = script.text(place), script.text(place - 1), script.text(place + 1)
    if (
        word == "expect"
        and before != "."
        and (after == "(" or (after == "." and script.text(place + 2) in {"soft", "poll"}))
    ):
        return _expectation(script, place, known)
    if before == "." and (word == "should" or (word == "expect" and after == "(")):
        return _should(script, place, known)
    if word in {"assert", "t", "chai"} and (before not in {".", "function"} or script.text(place - 2) == "sinon"):
        return _assert_call(script, place, known)
    return None


def _expectation(script: Script, place: int, known: Known) -> tuple[Assertion, int] | None:
    opening = place + 1 if script.text(place + 1) == "(" else place + 3
    at = script.end(opening) + 1
    chain: list[str] = []
    while script.text(at) in {".", "?."}:
        word = script.text(at + 1)
        chain.append(word)
        at += 2
        if script.text(at) == "(":
            subject = (opening + 1, script.end(opening))
            return _matched(script, place, subject, chain, at, known), script.end(at) + 1
    if chain and chain[-1] in _PROPERTIES:
        return _matched(script, place, (opening + 1, script.end(opening)), chain, None, known), at
    if chain:
        return None
    bare = form(script, (opening + 1, script.end(opening)), known)
    return _made("bare", NOTHING, [bare], script, place, at), at


def _matched(
    script: Script, place: int, subject: Span, chain: list[str], opening: int | None, known: Known
) -> Assertion:
    matcher = chain[-1]
    table = _MATCHERS if opening is not None else _PROPERTIES
    relation, rank = table.get(matcher, ("call:" + matcher, EXACT))
    parts = [form(script, subject, known)]
    given = arguments(script, opening) if opening is not None else []
    if relation != "raises" and matcher not in {
        "toHaveBeenCalledWith",
        "toBeCalledWith",
        "toHaveProperty",
        "toHaveBeenNthCalledWith",
    }:
        given = given[:1] if matcher not in {"toBeCloseTo", "closeTo", "within"} else given[:2]
    parts += [form(script, span, known) for span in given]
    if matcher in _IMPLIED:
        parts.append(Form([(False, _IMPLIED[matcher])], {_IMPLIED[matcher]}))
    if matcher in {"toHaveLength", "lengthOf"}:
        parts[0].pieces += [(False, "."), (False, "<length>"), (True, "length")]
        parts[0].names.add("length")
        parts[0].blurs.add("length")
    if relation == "raises" and not given:
        rank = WEAK
    spied = parts[0].names & {"called", "calledOnce", "calledTwice", "calledWith", "calledOnceWithExactly"}
    if relation == "eq" and spied and parts[-1].key == "true":
        relation, rank, parts = "called", PARTIAL, parts[:1]
    if relation == "eq" and parts[-1].key in {"true", "false"} and len(parts) > 1:
        relation, rank, parts = _of_boolean(relation, rank, parts)
    if "not" in chain[:-1]:
        relation, rank = ("ne" if relation == "eq" else f"not {relation}"), (EXACT if relation == "called" else WEAK)
        if matcher in {"toBeDefined", "toBeNull", "toBeUndefined", "exist"}:
            relation, rank = ("eq", EXACT) if matcher == "toBeDefined" else ("ne", WEAK)
    if subject[1] - subject[0] == 1 and _is_error(script.text(subject[0])) and parts[-1].key in _NO_ERROR:
        relation, rank = "quiet", WEAK
    rank = min(rank, _limit(matcher, parts, script, given))
    if given and rank > DOUBTFUL and _spelled(script, subject) == _spelled(script, given[0]):
        rank = DOUBTFUL
    idle = ""
    if {"resolves", "rejects"} & set(chain) and script.text(place - 1) not in {"await", "return", "=>", "(", ",", "["}:
        rank, idle = NOTHING, "is not awaited"
    made = _made(relation, rank, parts, script, place, script.end(opening) if opening is not None else place + 6)
    if matcher in {"toBeCloseTo", "closeTo"}:
        made = replace(made, tolerance=_tolerance(parts))
    return replace(made, idle=idle, key=f"({idle}) {made.key}") if idle else made


def _is_error(name: str) -> bool:
    return name.lower() in {"err", "error", "e"}


_NO_ERROR = frozenset({"null", "undefined", "false"})


def _should(script: Script, place: int, known: Known) -> tuple[Assertion, int] | None:
    """Read what hangs on its subject: `x.should.equal(3)`, `cy.get(a).should('have.text', b)`, `request(app).get(a).expect(200)`."""
    at, chain = place + 1, []
    while script.text(at) == ".":
        chain.append(script.text(at + 1))
        at += 2
    matcher = chain[-1] if chain else script.text(place)
    relation, rank = (_MATCHERS if script.text(at) == "(" else _PROPERTIES).get(matcher, (f"call:{matcher}", EXACT))
    if "not" in chain:
        relation, rank = f"not {relation}", WEAK
    if matcher == "should" and script.tokens[min(at + 1, len(script.tokens) - 1)].value in {
        "exist",
        "be.visible",
        "not.exist",
    }:
        rank = WEAK
    end = script.end(at) if script.text(at) == "(" else at
    parts = [form(script, span, known) for span in (arguments(script, at) if script.text(at) == "(" else [])]
    return _made(relation, rank, parts or [Form()], script, place, end), end + 1


def _spelled(script: Script, span: Span) -> str:
    return " ".join(token.text for token in script.tokens[span[0] : span[1]])


def _limit(matcher: str, parts: list[Form], script: Script, given: list[Span]) -> int:
    """Say how much an assertion can mean at most, by what it compares with."""
    names = frozenset().union(*(part.names for part in parts[1:]))
    tokens = {script.text(at) for span in given for at in range(*span)}
    if "expect" in tokens and _ANYTHING & names:
        return NOTHING if all(part.key.count(".") <= 1 and not part.literals for part in parts[1:]) else PARTIAL
    if "expect" in tokens and _ROUGH & names:
        return WEAK if "any" in names and not parts[1].literals else PARTIAL
    if len(parts) > 1 and parts[0].key == parts[1].key and "_" not in parts[0].key.split():
        return DOUBTFUL if "(" in parts[0].key else NOTHING
    if parts and parts[0].pieces and all(_is_literal(piece) for piece in parts[0].pieces):
        return NOTHING
    if "||" in parts[0].key and any(truth in parts[0].key.split("||")[-1].split() for truth in ("true", "1")):
        return NOTHING
    if matcher == "toBeCloseTo" and len(parts) > 2 and _tolerance(parts) > 0.05:  # noqa: PLR2004 - value, digits
        return WEAK
    return EXACT


def _tolerance(parts: list[Form]) -> float:
    digits = parts[2].key.replace(" ", "") if len(parts) > 2 else "2"  # noqa: PLR2004 - value, digits
    try:
        return math.pow(10.0, -float(digits.replace("--", "-"))) / 2
    except (ValueError, OverflowError):
        return 0.005


def _is_literal(piece: tuple[bool, str]) -> bool:
    name, text = piece
    return not name and (
        text in {"true", "false", "null", "undefined", "-", "[", "]", "{", "}", ","} or text[:1] in "'\"0123456789"
    )


def _assert_call(script: Script, place: int, known: Known) -> tuple[Assertion, int] | None:
    at = place + 1
    chain: list[str] = []
    while script.text(at) in {".", "?."}:
        chain.append(script.text(at + 1))
        at += 2
    if script.text(at) != "(":
        return None
    word = script.text(place)
    if word in {"t", "chai"} and (
        not chain or chain[-1] not in _FUNCTIONS or (chain[0] != "assert" and len(chain) > 1)
    ):
        return None
    name = chain[-1] if chain else "assert"
    relation, rank = _FUNCTIONS.get(name, ("call:" + name, EXACT))
    given = arguments(script, at)
    wanted = (
        1
        if relation in {"truthy", "quiet"} or name in {"true", "false", "isTrue", "isFalse", "isNull", "isUndefined"}
        else 3
        if name == "closeTo"
        else 2
    )
    parts = [form(script, span, known) for span in given[:wanted]]
    implied = {
        "true": "true",
        "isTrue": "true",
        "false": "false",
        "isFalse": "false",
        "isNull": "null",
        "isUndefined": "undefined",
    }.get(name)
    if implied:
        parts.append(Form([(False, implied)], {implied}))
    if relation == "raises" and len(given) < 2:  # noqa: PLR2004 - subject, error
        rank = WEAK
    idle = ""
    if name == "rejects" and script.text(place - 1) not in {"await", "return", "=>", "(", ",", "["}:
        rank, idle = NOTHING, "is not awaited"
    if relation == "truthy" and parts:
        relation, rank = _truth(parts[0], rank)
    if parts:
        rank = min(rank, _limit(name, parts, script, given))
    if len(given) > 1 and rank > DOUBTFUL and _spelled(script, given[0]) == _spelled(script, given[1]):
        rank = DOUBTFUL
    made = _made(relation, rank, parts, script, place, script.end(at))
    return replace(made, idle=idle, key=f"({idle}) {made.key}") if idle else made, script.end(at) + 1


def _of_boolean(relation: str, rank: int, parts: list[Form]) -> tuple[str, int, list[Form]]:
    """`expect(a.includes(b)).toBe(true)` says what `expect(a).toContain(b)` says."""
    asked = parts[0].blurs & {"includes", "startsWith", "endsWith", "some"} or parts[0].names & {"has", "every", "test"}
    meaning, worth = ("like", PARTIAL) if asked else _truth(parts[0], rank)
    if meaning == "truthy" or not parts[0].pieces:
        return relation, rank, parts
    bare = replace(parts[0], blurs=parts[0].blurs - {"includes", "startsWith", "endsWith", "some"})
    if parts[-1].key == "true":
        return meaning, worth, [bare]
    return ("ne" if meaning == "eq" else f"not {meaning}"), WEAK, [bare]


def _truth(part: Form, rank: int) -> tuple[str, int]:
    """`assert(a === b)` says as much as `assert.equal(a, b)`."""
    texts = [text for _, text in part.pieces]
    if "||" in texts:
        return "or", NOTHING if texts[-1] in {"true", "1"} else DOUBTFUL
    for sign, meaning in (
        ("===", ("eq", EXACT)),
        ("==", ("eq", EXACT)),
        ("!==", ("ne", WEAK)),
        (">=", ("order", PARTIAL)),
        (">", ("order", PARTIAL)),
        ("<", ("order", PARTIAL)),
    ):
        if sign in texts:
            return meaning
    return "truthy", rank


def _made(relation: str, rank: int, parts: list[Form], script: Script, place: int, end: int) -> Assertion:
    pairs = [(part.key, part.skeleton) for part in parts]
    if relation == "eq":
        pairs.sort(key=lambda pair: pair[1])
    return Assertion(
        relation=relation,
        rank=rank,
        key=" ~ ".join([relation, *(key for key, _ in pairs)]),
        skeleton=" ~ ".join([relation, *(skeleton for _, skeleton in pairs)]),
        literals=frozenset().union(*(part.literals for part in parts)),
        names=frozenset().union(*(part.names for part in parts)),
        blurs=frozenset().union(*(part.blurs for part in parts)),
        line=script.tokens[place].line,
        text=" ".join(token.text for token in script.tokens[place : min(end + 1, place + 60)]),
    )


def iterate(script: Script, span: Span, known: Known) -> Iterator[tuple[int, Assertion]]:
    """Give every assertion in a span with the place where it begins."""
    place = span[0]
    while place < span[1]:
        found = assertion_at(script, place, known)
        if found is None:
            place += 1
            continue
        yield place, found[0]
        place = max(found[1], place + 1)
