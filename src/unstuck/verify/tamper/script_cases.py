"""Read the tests of a JavaScript or TypeScript text: jest, vitest, mocha, node:test, and what they lean on."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from unstuck.verify.tamper.python_flow import AFTER_RETURN, EMPTY_LOOP, NEVER, UNCALLED
from unstuck.verify.tamper.script_aids import aids, bound_names, calls_at, flat, with_reason
from unstuck.verify.tamper.script_assertions import iterate
from unstuck.verify.tamper.script_flow import SOFT, idle_stretches, reasons
from unstuck.verify.tamper.script_form import Span, form, single_assignments
from unstuck.verify.tamper.script_patches import imports_in, patches_in
from unstuck.verify.tamper.script_tokens import Script, arguments, cut, statement_end
from unstuck.verify.tamper.suite import Case, Suite

_TESTS = frozenset({"it", "test", "specify", "xit", "xtest", "fit", "ftest"})
_GROUPS = frozenset({"describe", "context", "suite", "xdescribe", "fdescribe", "xcontext"})
_MODIFIERS = frozenset({
    "skip", "only", "todo", "each", "concurrent", "failing", "fails", "skipIf", "runIf", "sequential", "if", "for", "serial", "describe", "test", "it", "parallel", "fixme", "fail",
})  # fmt: skip
_OFF = frozenset({"skip", "todo", "failing", "fails", "fixme", "fail"})


@dataclass(frozen=True, slots=True)
class _Head:
    """One call of `it`, `test` or `describe`."""

    place: int
    group: bool
    name: str
    words: tuple[str, ...]
    table: int | None
    opening: int
    body: Span | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """One `describe`, and what holds for all tests in it."""

    end: int = 0
    name: str = ""
    skip: str = ""
    conditional: bool = False
    focused: bool = False
    rows: tuple[frozenset[str], ...] | None = None
    open_rows: bool = False


def read_script(path: str, text: str) -> Suite:
    """Turn a text into a suite."""
    script = cut(text)
    heads = list(_heads(script))
    outside = _outside(script, heads)
    known = single_assignments(script, (0, len(script.tokens)))
    around_tests = list(aids(script, path, outside, known))
    called = Counter(
        token.text for at, token in enumerate(script.tokens) if token.kind == "id" and script.text(at + 1) == "("
    )
    return Suite(
        path=path,
        cases=(*_cases(script, path, heads, known), *around_tests),
        patches=tuple(patches_in(script, outside, everywhere=True)),
        defined=frozenset(aid.name for aid in around_tests),
        bound=frozenset(bound_names(script)),
        called=frozenset(called),
        prepared=frozenset(calls_at(script, outside)),
        stand_ins=sum(called[name] for name in ("fn", "stub", "mock", "createMock", "fake")),
        constants=tuple(
            (name, frozenset(form(script, span, {}).literals)) for name, span in known.items() if name.isupper()
        ),
        imports=frozenset(imports_in(script)),
    )


def _cases(script: Script, path: str, heads: list[_Head], known: dict[str, Span]) -> Iterator[Case]:
    setup = frozenset().union(*(form(script, span, known).literals for span in _setup(script)))
    everything = (0, len(script.tokens))
    around = reasons(idle_stretches(script, everything), everything)
    groups = [_Group(end=len(script.tokens) + 1)]
    for head in heads:
        while groups[-1].end <= head.place:
            groups.pop()
        outer = groups[-1]
        if head.group:
            groups.append(_group(script, head, known, outer))
            continue
        case = _case(script, path, head, known, around[head.place])
        if case.rows is None and (outer.rows is not None or outer.open_rows):
            case = replace(case, rows=outer.rows, open_rows=outer.open_rows)
        skip, conditional = _skip(script, head)
        if not skip and outer.skip:
            skip, conditional = outer.skip, outer.conditional
        yield replace(
            case,
            scope=outer.name,
            skip=skip or case.skip,
            skip_is_conditional=conditional if skip else case.skip_is_conditional,
            literals=case.literals.union(setup, *(outer.rows or ())),
            focused=_is_focused(script, head) or outer.focused,
        )


def _group(script: Script, head: _Head, known: dict[str, Span], outer: _Group) -> _Group:
    skip, conditional = _skip(script, head)
    rows, unseen = outer.rows, outer.open_rows
    if "each" in head.words:
        rows, unseen, none_left = _rows(script, head, known)
        if none_left and not skip:
            skip, conditional = "no case is left to run", False
    return _Group(
        end=script.end(head.opening),
        name=f"{outer.name} > {head.name}".strip(" >"),
        skip=outer.skip or skip,
        conditional=outer.conditional if outer.skip else conditional,
        focused=outer.focused or _is_focused(script, head),
        rows=rows,
        open_rows=unseen,
    )


def _is_focused(script: Script, head: _Head) -> bool:
    return "only" in head.words or script.text(head.place) in {"fit", "fdescribe", "ftest"}


def _heads(script: Script) -> Iterator[_Head]:
    aliases = _aliases(script)
    for place, token in enumerate(script.tokens):
        if token.text in aliases and script.text(place + 1) == "(":
            yield _head(script, place, aliases[token.text], None, place + 1)
        if token.kind != "id" or token.text not in _TESTS | _GROUPS:
            continue
        before, after = script.text(place - 1), script.text(place + 1)
        mentioned = before in {".", "function", "const", "let", "import", ","} or (
            before == "{" and after not in {"(", "."}
        )
        if mentioned and not (before == "." and script.text(place - 2) in {"t", "Deno", "QUnit", "tap", "bun"}):
            continue
        at = place + 1
        words: list[str] = []
        table: int | None = None
        while True:
            if script.text(at) == "." and script.text(at + 1) in _MODIFIERS:
                words.append(script.text(at + 1))
                at += 2
            elif (
                words
                and words[-1] in {"each", "skipIf", "runIf", "if", "for"}
                and table is None
                and script.text(at)[:1] in {"(", "`"}
            ):
                table = at
                at = script.end(at) + 1 if script.text(at) == "(" else at + 1
            else:
                break
        if script.text(at) == ")" and script.text(at + 1) == "(":  # (slow ? describe : describe.skip)(...)
            at += 1
        if script.text(at) == "(":
            yield _head(script, place, tuple(words), table, at)


def _aliases(script: Script) -> dict[str, tuple[str, ...]]:
    """Find other names for skipped tests: `const later = it.skip`, `const onLinux = linux ? describe : describe.skip`."""
    found: dict[str, tuple[str, ...]] = {}
    for at, token in enumerate(script.tokens):
        if token.text not in {"const", "let", "var"} or script.text(at + 2) != "=":
            continue
        end = statement_end(script, at + 3, min(len(script.tokens), at + 60))
        words = [script.text(one) for one in range(at + 3, end)]
        if "=>" not in words and set(words) & (_TESTS | _GROUPS) and set(words) & {"skip", "skipIf", "runIf", "todo"}:
            group = ("describe",) if set(words) & _GROUPS else ()
            sure = not set(words) & {"?", "&&", "||", "skipIf", "runIf"}
            found[script.text(at + 1)] = (*group, "skip" if sure else "skipIf")
    return found


def _head(script: Script, place: int, words: tuple[str, ...], table: int | None, opening: int) -> _Head:
    parts = arguments(script, opening)
    first = script.tokens[parts[0][0]] if parts else None
    name = first.value if first is not None and first.kind in {"str", "template"} else ""
    group = script.text(place) in _GROUPS or "describe" in words
    body: Span | None = None
    for start, end in reversed(parts):
        arrow = next((at for at in flat(script, start, end) if script.text(at) == "=>"), None)
        if arrow is not None:
            body = (arrow + 2, script.end(arrow + 1)) if script.text(arrow + 1) == "{" else (arrow + 1, end)
            break
        if "function" in {script.text(start), script.text(start + 1)}:
            at = next((at for at in flat(script, start, end) if script.text(at) == "{"), start)
            body = (at + 1, script.end(at))
            break
    return _Head(place, group, name, words, table, opening, body)


def _skip(script: Script, head: _Head) -> tuple[str, bool]:
    word = script.text(head.place)
    if word.startswith("x"):
        return word, False
    for modifier in head.words:
        if modifier in _OFF:
            return f"{word}.{modifier}", False
        if modifier in {"skipIf", "runIf", "if"}:
            test = script.text(head.table + 1) if head.table is not None else ""
            return f"{word}.{modifier}", test not in {"true", "false"}
    for start, _ in arguments(script, head.opening)[1:]:
        if script.text(start) != "{":
            continue
        for key, value in arguments_of_object(script, start):
            if key in {"skip", "todo"} and script.text(value[0]) != "false":
                return f"{key}: {script.text(value[0])}", script.tokens[value[0]].kind == "id" and script.text(
                    value[0]
                ) != "true"
    if head.body is None and not head.group and not _names_function(script, head):
        return "no body", False
    return "", False


def _names_function(script: Script, head: _Head) -> bool:
    return len(arguments(script, head.opening)) > 1 and bool(head.name)


def arguments_of_object(script: Script, opening: int) -> Iterator[tuple[str, Span]]:
    """Give the keys of an object literal, each with the span of its value."""
    for start, end in arguments(script, opening):
        token = script.tokens[start]
        if start + 1 < end and script.text(start + 1) == ":":
            yield token.value or token.text, (start + 2, end)
        elif end - start == 1 and token.kind == "id":
            yield token.text, (start, end)


def _case(script: Script, path: str, head: _Head, known: dict[str, Span], outer: str) -> Case:
    body = head.body or (head.opening, head.opening)
    mine = {**known, **single_assignments(script, body)}
    why = reasons(idle_stretches(script, body), body)
    found = [with_reason(one, why[place - body[0]]) for place, one in iterate(script, body, mine)]
    live = [at for at in range(*body) if not why[at - body[0]] or why[at - body[0]] in SOFT]
    whole = form(script, body, mine)
    skip, conditional = _skip_inside(script, live, {at for at in live if why[at - body[0]]})
    rows, unseen, none_left = _rows(script, head, mine)
    hidden = f"it {outer}" if outer in {NEVER, UNCALLED, AFTER_RETURN, EMPTY_LOOP} else ""
    if outer in SOFT and not skip:
        skip, conditional = outer, True
    return Case(
        kind="test",
        name=head.name,
        scope="",
        path=path,
        line=script.tokens[head.place].line,
        assertions=tuple(found),
        body=whole.key,
        shape=whole.shape,
        literals=frozenset(whole.literals).union(*(rows or ())),
        calls=frozenset(calls_at(script, live)),
        rows=rows,
        open_rows=unseen,
        looped=any(script.text(at) in {"forEach", "for", "map"} for at in live),
        hidden=hidden,
        skip="no case is left to run" if none_left else skip,
        skip_is_conditional=conditional and not none_left,
        retries=next(
            (script.text(at) for at in range(head.opening, body[1]) if script.text(at) in {"retry", "retries"}), ""
        ),
        patches=tuple(patches_in(script, list(range(*body)))),
    )


def _skip_inside(script: Script, live: list[int], doubtful: set[int]) -> tuple[str, bool]:
    for at in live:
        if (
            script.text(at) in {"skip", "todo"}
            and script.text(at - 1) == "."
            and script.text(at - 2) in {"t", "this", "ctx", "context"}
        ):
            return f"{script.text(at - 2)}.{script.text(at)}()", at in doubtful
        playwright = script.text(at) in {"skip", "fixme", "fail"} and script.text(at - 2) == "test"
        if playwright and script.text(at + 1) == "(" and script.tokens[at + 2].kind != "str":
            return f"test.{script.text(at)}()", at in doubtful or script.text(at + 2) not in {")", "true"}
        if script.text(at) == "pending" and script.text(at + 1) == "(" and script.text(at - 1) != ".":
            return "pending()", at in doubtful
    return "", False


def _rows(script: Script, head: _Head, known: dict[str, Span]) -> tuple[tuple[frozenset[str], ...] | None, bool, bool]:
    """Give the cases of `each`, or of the loop around the test; whether they are out of sight; whether none is left."""
    source: int | None = None
    if head.table is not None and {"each", "for"} & set(head.words):
        if script.text(head.table).startswith("`"):
            lines = script.tokens[head.table].value.strip().splitlines()[1:]
            rows = tuple(
                frozenset(form(cut(line), (0, len(cut(line).tokens)), {}).literals) for line in lines if line.strip()
            )
            return rows, False, not rows
        source = head.table + 1
    else:
        source = _loop_source(script, head.place)
        if source is None:
            return None, False, False
    narrowed = script.text(source + 1) == "." and script.text(source + 2) in {"filter", "slice", "splice"}
    while script.tokens[source].kind == "id" and script.text(source) in known and script.text(source + 1) != "(":
        step = known[script.text(source)][0]
        if step == source:
            break
        known = {name: span for name, span in known.items() if name != script.text(source)}
        source = step
    if script.text(source) != "[":
        return (), True, False
    rows = tuple(frozenset(form(script, span, known).literals) for span in arguments(script, source))
    return rows[:-1] if narrowed else rows, False, not rows  # at least one is gone


def _loop_source(script: Script, place: int) -> int | None:
    """Find what the innermost loop around a test goes through: `for (... of X)` or `X.forEach(`."""
    for at in range(place - 1, max(-1, place - 60), -1):
        if script.text(at) == "of" and any(script.text(back) == "for" for back in range(max(0, at - 20), at)):
            return at + 1
        if script.text(at) == "forEach" and script.end(at + 1) > place:
            before = at - 2
            if script.text(before) == "]":
                return script.opens.get(before)
            return before
        if script.text(at) in {"it", "test", "describe", "beforeEach"}:
            return None
    return None


def _outside(script: Script, heads: list[_Head]) -> list[int]:
    """Give the places that belong to no test; those of set-up functions do not belong to one either."""
    inside = bytearray(len(script.tokens) + 1)
    for head in heads:
        if not head.group and head.body is not None:
            for at in range(*head.body):
                inside[at] = 1
    return [at for at in range(len(script.tokens)) if not inside[at]]


def _setup(script: Script) -> Iterator[Span]:
    """Give what runs before each test."""
    for at, token in enumerate(script.tokens):
        if re.fullmatch(r"before(?:Each|All)?|setup", token.text) and script.text(at + 1) == "(":
            yield at + 1, script.end(at + 1)
