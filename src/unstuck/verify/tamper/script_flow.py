"""Follow the blocks of a JavaScript function: where an assertion can fail, and where it only stands there."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from unstuck.verify.tamper.python_flow import AFTER_RETURN, EMPTY_LOOP, LEFT_EARLY, MAYBE, NEVER, SWALLOWED, UNCALLED
from unstuck.verify.tamper.script_form import Span
from unstuck.verify.tamper.script_tokens import Script, statement_end

UNAWAITED = "is not awaited"
LONGEST_CHAIN = 2_000
SOFT = frozenset({MAYBE, LEFT_EARLY})
_FAILS = frozenset({"throw", "expect", "assert", "fail", "done", "reject", "rejects"})
_ASSERTS = frozenset({"expect", "assert", "throw", "fail", "t"})


@dataclass(frozen=True, slots=True)
class Idle:
    """A stretch of tokens and why nothing in it can fail."""

    start: int
    end: int
    reason: str


def idle_stretches(script: Script, span: Span) -> list[Idle]:
    """Find the stretches of a function's body in which an assertion means nothing, or little."""
    found: list[Idle] = []
    uses = Counter(token.text for token in script.tokens[span[0] : span[1]])
    for place in range(*span):
        match script.text(place):
            case "if" if script.text(place + 1) == "(":
                found += _condition(script, place, span[1])
            case "try" if script.text(place + 1) == "{":
                found += _attempt(script, place, uses)
            case "return" | "throw":
                found += _after(script, place, span)
            case "for" | "while" if script.text(place + 1) == "(":
                found += _loop(script, place)
            case "function" | "=>":
                found += _inner_function(script, place, span, uses)
                found += _event(script, place)
            case "then" if script.text(place - 1) == ".":
                found += _promise(script, place, span)
            case "setTimeout" | "setImmediate" | "nextTick" | "queueMicrotask" | "requestAnimationFrame" if (
                script.text(place + 1) == "("
            ):
                inside = (place + 2, script.end(place + 1))
                if not _holds(script, inside, frozenset({"done", "resolve", "res"})):
                    found.append(Idle(*inside, UNAWAITED))
            case "[" if script.text(place + 1) == "]" and script.text(place + 3) in {"forEach", "map"}:
                found.append(Idle(place, script.end(place + 4), EMPTY_LOOP))
            case _:
                pass
    found += _done_elsewhere(script, span)
    return found


_EVENTS = re.compile(r"on(?:[A-Z]\w*)?|once|subscribe|addListener|addEventListener|listen")


def _event(script: Script, place: int) -> list[Idle]:
    """Find assertions that wait for an event which nothing makes the test wait for."""
    opening = script.opens.get(script.around[place], -1)
    if script.text(opening) != "(" or not _EVENTS.fullmatch(script.text(opening - 1)):
        return []
    body = _block(script, place + 1, script.around[place])
    waits = _holds(script, body, frozenset({"done", "resolve", "res", "reject", "end", "next"}))
    return [Idle(*body, MAYBE)] if _holds(script, body, _ASSERTS) and not waits else []


def _done_elsewhere(script: Script, span: Span) -> list[Idle]:
    """Find callbacks that assert, in a test that says it is done without waiting for them."""
    ends = [at for at in range(*span) if script.text(at) == "done" and script.text(at + 1) == "("]
    callbacks = [
        (at + 2, script.end(at + 1)) for at in range(*span) if script.text(at) == "=>" and script.text(at + 1) == "{"
    ]
    if not any(not any(start <= at < end for start, end in callbacks) for at in ends):
        return []
    return [
        Idle(*one, MAYBE)
        for one in callbacks
        if _holds(script, one, _ASSERTS) and not any(one[0] <= at < one[1] for at in ends)
    ]


def reasons(stretches: list[Idle], span: Span) -> list[str]:
    """Give for each token of a span the strongest reason that holds there; empty where none does."""
    painted = [""] * (span[1] - span[0])
    for one in stretches:
        for at in range(max(one.start, span[0]), min(one.end, span[1])):
            if not painted[at - span[0]] or painted[at - span[0]] in SOFT:
                painted[at - span[0]] = one.reason
    return painted


def _block(script: Script, at: int, limit: int) -> Span:
    """Give the statement or block that begins here."""
    if script.text(at) == "{":
        return at + 1, script.end(at)
    start = at + 1 if script.text(at) == "return" else at
    return at, statement_end(script, start, limit)


def _condition(script: Script, place: int, limit: int) -> list[Idle]:
    closing = script.end(place + 1)
    body = _block(script, closing + 1, limit)
    after = body[1] + 1 if script.text(closing + 1) == "{" or script.text(body[1]) == ";" else body[1]
    other = _block(script, after + 1, limit) if script.text(after) == "else" else (after, after)
    test = [script.text(at) for at in range(place + 2, closing)]
    if test in (["false"], ["0"], ["!", "true"]) or test[:2] == ["false", "&&"]:
        return [Idle(*body, NEVER)]
    if test in (["true"], ["1"]):
        return [Idle(*other, NEVER)]
    if not (_holds(script, body, _ASSERTS) and _holds(script, other, _ASSERTS)):
        found = [Idle(*body, MAYBE), Idle(*other, MAYBE)]
        if _holds(script, body, frozenset({"return", "skip"})) and not _holds(script, body, _ASSERTS):
            found.append(Idle(body[1], min(script.around[place], limit), LEFT_EARLY))
        return found
    return []


def _attempt(script: Script, place: int, counted: Mapping[str, int]) -> list[Idle]:
    body = (place + 2, script.end(place + 1))
    at = body[1] + 1
    if script.text(at) != "catch":
        return []
    opening = script.end(at + 1) + 1 if script.text(at + 1) == "(" else at + 1
    handler = (opening + 1, script.end(opening))
    if _holds(script, handler, _FAILS):
        sure = (
            _holds(script, body, frozenset({"fail", "throw", "unreachable"}))
            or "assertions" in counted
            or "hasAssertions" in counted
        )
        return [] if sure else [Idle(*handler, MAYBE)]
    return [Idle(*body, SWALLOWED)]


def _after(script: Script, place: int, span: Span) -> list[Idle]:
    """Give what follows a return in the same block; a return that ends its block changes nothing."""
    before = script.text(place - 1)
    if before in {")", "else", "=>"} and script.text(place - 1) != "":
        return []
    end = statement_end(script, place + 1, span[1])
    return [Idle(end, min(script.around[place], span[1]), AFTER_RETURN)]


def _loop(script: Script, place: int) -> list[Idle]:
    closing = script.end(place + 1)
    head = [script.text(at) for at in range(place + 2, closing)]
    if head[-2:] == ["[", "]"] or head in (["false"], ["0"]):
        return [Idle(*_block(script, closing + 1, len(script.tokens)), EMPTY_LOOP)]
    return []


def _inner_function(script: Script, place: int, span: Span, uses: Counter[str]) -> list[Idle]:
    if script.text(place) == "function":
        name = script.text(place + 1)
        opening = place + 2 if script.text(place + 2) == "(" else place + 1
        body = script.end(opening) + 1
    else:
        head = script.opens.get(place - 1, place - 1)
        head = head - 1 if script.text(head - 1) == "async" else head
        name = script.text(head - 2) if script.text(head - 1) == "=" else ""
        body = place + 1
    if not name or name == "(" or not name.isidentifier():
        return []
    return [Idle(*_block(script, body, span[1]), UNCALLED)] if uses[name] < 2 else []  # noqa: PLR2004 - once is its own name


def _promise(script: Script, place: int, span: Span) -> list[Idle]:
    opening = place + 1
    inside = (opening + 1, script.end(opening))
    start = place
    while start > max(span[0], place - LONGEST_CHAIN) and not (
        script.text(start - 1) in {";", "{", "}"} or _new_statement(script, start)
    ):
        start = script.opens.get(start - 1, start - 1)
    after = script.end(opening) + 1
    if script.text(after) == "." and script.text(after + 1) == "catch":
        handler = (after + 3, script.end(after + 2))
        if not _holds(script, handler, _FAILS):
            return [Idle(*inside, SWALLOWED)]
    if script.text(start) in {"await", "return", "const", "let", "yield"} or script.text(start - 1) in {"=>", "("}:
        return []
    return [Idle(*inside, UNAWAITED)] if not _holds(script, inside, frozenset({"done", "resolve"})) else []


def _new_statement(script: Script, at: int) -> bool:
    token, before = script.tokens[at], script.tokens[at - 1]
    goes_on = before.kind == "punc" and before.text not in {")", "]", "}"}
    return token.line > before.line and token.kind != "punc" and not goes_on


def _holds(script: Script, span: Span, words: frozenset[str]) -> bool:
    return any(script.text(at) in words for at in range(span[0], min(span[1], len(script.tokens))))
