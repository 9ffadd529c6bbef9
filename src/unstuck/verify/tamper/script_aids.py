"""Read what stands around JavaScript tests: the functions that they lean on, and the names that they bind."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from unstuck.verify.tamper.script_assertions import iterate
from unstuck.verify.tamper.script_flow import SOFT, idle_stretches, reasons
from unstuck.verify.tamper.script_form import Span, form, single_assignments
from unstuck.verify.tamper.script_tokens import Script, statement_end
from unstuck.verify.tamper.suite import DOUBTFUL, NOTHING, Assertion, Case


def aids(script: Script, path: str, outside: Sequence[int], known: dict[str, Span]) -> Iterator[Case]:
    """Read the functions that stand outside tests: tests may lean on them."""
    for at in outside:
        found = _function_at(script, at)
        if found is None:
            continue
        name, span = found
        mine = {**known, **single_assignments(script, span)}
        whole = form(script, span, mine)
        why = reasons(idle_stretches(script, span), span)
        yield Case(
            kind="aid",
            name=name,
            scope="",
            path=path,
            line=script.tokens[at].line,
            body=whole.key,
            shape=whole.shape,
            assertions=tuple(with_reason(one, why[place - span[0]]) for place, one in iterate(script, span, mine)),
            literals=frozenset(whole.literals | form(script, _parameters(script, at), known).literals),
            calls=frozenset(calls_at(script, list(range(*span)))),
        )


def _function_at(script: Script, at: int) -> tuple[str, Span] | None:
    """Give the name and body of the function whose `function` or `=>` stands here."""
    if script.text(at) == "function" and script.text(at + 1).isidentifier():
        start = next((one for one in flat(script, at, len(script.tokens)) if script.text(one) == "{"), None)
        return (script.text(at + 1), (start + 1, script.end(start))) if start is not None else None
    name = _arrow_name(script, at) if script.text(at) == "=>" else ""
    if not name:
        return None
    if script.text(at + 1) == "{":
        return name, (at + 2, script.end(at + 1))
    return name, (at + 1, statement_end(script, at + 1, len(script.tokens)))


def _parameters(script: Script, at: int) -> Span:
    """Give the parameters, whose defaults are values too, of the function whose `function` or `=>` stands here."""
    if script.text(at) == "function":
        return at + 2, script.end(at + 2)
    return (script.opens.get(at - 1, at), at) if script.text(at - 1) == ")" else (at, at)


def bound_names(script: Script) -> Iterator[str]:
    """Name what is declared outside all brackets, other than by an import or a require."""
    for at in flat(script, 0, len(script.tokens)):
        declared = script.text(at) in {"const", "let", "var"} and script.text(at + 2) == "="
        if declared and script.text(at + 3) in {"require", "await"}:
            continue
        if declared or script.text(at) in {"function", "class"}:
            yield script.text(at + 1)


def with_reason(found: Assertion, idle: str) -> Assertion:
    """Make an assertion worth what it is where it stands."""
    if not idle:
        return found
    rank = min(found.rank, DOUBTFUL) if idle in SOFT else NOTHING
    return replace(found, rank=rank, idle=idle, key=f"({idle}) {found.key}")


def calls_at(script: Script, live: list[int]) -> Iterator[str]:
    """Name what is called at these places."""
    for at in live:
        if script.text(at)[:1].isupper() and script.text(at - 1) == "<":
            yield script.text(at)  # <Cart /> calls Cart
        elif script.tokens[at].kind == "id" and script.text(at + 1) == "(":
            yield script.text(at)
            if script.text(at - 1) == "." and script.tokens[at - 2].kind == "id":
                yield script.text(at - 2)


def flat(script: Script, start: int, end: int) -> Iterator[int]:
    """Walk over tokens without going into brackets."""
    while start < end:
        yield start
        start = script.closes.get(start, start) + 1


def _arrow_name(script: Script, arrow: int) -> str:
    head = script.opens.get(arrow - 1, arrow - 1)
    if script.text(head - 1) == "async":
        head -= 1
    return script.text(head - 2) if script.text(head - 1) == "=" else ""
