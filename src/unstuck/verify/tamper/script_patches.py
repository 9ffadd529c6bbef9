"""Read what a JavaScript text replaces by stand-ins, and what it imports."""

from collections.abc import Iterator, Sequence

from unstuck.verify.tamper.script_tokens import Script, arguments
from unstuck.verify.tamper.suite import Patch

_MODULE = frozenset({"mock", "doMock", "unstable_mockModule", "module", "setMock"})
_OWNERS = frozenset({"jest", "vi", "mock", "td", "vitest"})
_METHOD = frozenset({"spyOn", "stub", "method", "replace", "replaceProperty"})


def patches_in(script: Script, places: Sequence[int], *, everywhere: bool = False) -> Iterator[Patch]:
    """Give every replacement at these places."""
    for at in places:
        word, owner = script.text(at), script.text(at - 2) if script.text(at - 1) == "." else ""
        if script.text(at + 1) == "(" and word in _MODULE and owner in _OWNERS:
            parts = arguments(script, at + 1)
            if parts and script.tokens[parts[0][0]].kind in {"str", "template"}:
                names = frozenset(_replaced(script, parts[1])) if len(parts) > 1 else frozenset()
                yield Patch(
                    target=script.tokens[parts[0][0]].value,
                    line=script.tokens[at].line,
                    everywhere=everywhere,
                    names=names,
                )
        elif script.text(at + 1) == "(" and word in _METHOD and owner:
            yield from _replaced_method(script, at, everywhere=everywhere)
        elif word == "=" and script.text(at - 2) == "." and _is_stand_in(script, at + 1):
            yield Patch(
                target=f"{script.text(at - 3)}.{script.text(at - 1)}",
                line=script.tokens[at].line,
                everywhere=everywhere,
            )


def imports_in(script: Script) -> Iterator[str]:
    """Give `specifier#name` for every import and require."""
    for at, token in enumerate(script.tokens):
        if token.text == "from" and at + 1 < len(script.tokens) and script.tokens[at + 1].kind == "str":
            start = next(
                (back for back in range(at, max(-1, at - 200), -1) if script.text(back) in {"import", "export"}), at
            )
            for name in _names(script, start + 1, at):
                yield f"{script.tokens[at + 1].value}#{name}"
        elif (
            token.text in {"require", "import"}
            and script.text(at + 1) == "("
            and at + 2 < len(script.tokens)
            and script.tokens[at + 2].kind == "str"
        ):
            start = next(
                (back for back in range(at, max(-1, at - 100), -1) if script.text(back) in {"const", "let", "var"}), at
            )
            for name in _names(script, start + 1, at):
                yield f"{script.tokens[at + 2].value}#{name}"


def _names(script: Script, start: int, end: int) -> Iterator[str]:
    for at in range(start, end):
        if script.tokens[at].kind == "id" and script.text(at) not in {"as", "type", "await", "from"}:
            yield script.text(at)


def _replaced(script: Script, factory: tuple[int, int]) -> Iterator[str]:
    """Name what a mock's factory gives; nothing when that cannot be seen, which means all of it."""
    for at in range(*factory):
        if script.text(at + 1) == ":" and script.text(at) != "__esModule":
            token = script.tokens[at]
            yield token.value or token.text


def _replaced_method(script: Script, at: int, *, everywhere: bool) -> Iterator[Patch]:
    parts = arguments(script, at + 1)
    if len(parts) < 2 or script.tokens[parts[1][0]].kind != "str":  # noqa: PLR2004 - owner, name
        return
    after = script.end(at + 1) + 1
    replaces = script.text(at) != "spyOn" or script.text(after + 1).startswith(("mock", "returns", "and", "callsFake"))
    if replaces:
        owner = "".join(script.text(one) for one in range(*parts[0]))
        target = f"{owner}.{script.tokens[parts[1][0]].value}"
        yield Patch(target=target, line=script.tokens[at].line, everywhere=everywhere)


def _is_stand_in(script: Script, at: int) -> bool:
    if script.text(at) in {"jest", "vi", "sinon", "mock"}:
        return script.text(at + 2) in {"fn", "stub", "fake"}
    closing = script.end(at) if script.text(at) == "(" else at
    return script.text(closing + 1) == "=>" or script.text(at) == "function"
