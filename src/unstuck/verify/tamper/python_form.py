"""Write a Python expression in a form that survives renamed locals, extracted variables and reformatting."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

DEEPEST_INLINING = 5
MOST_PIECES = 1500
"""Variables that hold each other would otherwise make the form grow without bound."""

BLURS = frozenset({
    "sorted", "set", "frozenset", "round", "abs", "bool", "type", "len", "int", "str", "repr", "lower", "upper",
    "casefold", "strip", "split", "any", "keys", "isclose", "floor", "ceil", "trunc", "startswith", "endswith",
    "dropna", "Counter",
})  # fmt: skip


@dataclass(slots=True)
class Form:
    """An expression under the pen: its pieces, and what was met on the way."""

    known: Mapping[str, ast.expr]
    pieces: list[tuple[bool, str]] = field(default_factory=list)
    """Whether it is a name, and its text."""
    literals: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    blurs: set[str] = field(default_factory=set)

    @property
    def key(self) -> str:
        return " ".join(text for _, text in self.pieces)

    @property
    def shape(self) -> str:
        return " ".join("#" if text in self.literals else text for _, text in self.pieces)

    @property
    def skeleton(self) -> str:
        return " ".join("_" if name else text for name, text in self.pieces)


def form(node: ast.AST, known: Mapping[str, ast.expr]) -> Form:
    """Write out a node; names in `known` are replaced by what they stand for."""
    found = Form(known)
    _write(node, found, 0)
    return found


def _write(node: ast.AST, to: Form, depth: int) -> None:
    if len(to.pieces) > MOST_PIECES:
        return
    match node:
        case ast.Constant(value=value):
            to.literals.add(repr(value))
            to.pieces.append((False, repr(value)))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            to.literals.add(repr(-value))
            to.pieces.append((False, repr(-value)))
        case ast.Name(id=name):
            _write_name(name, to, depth)
        case ast.Attribute(value=value, attr=attr):
            if not (isinstance(value, ast.Name) and value.id == "self"):
                _write(value, to, depth)
            to.names.add(attr)
            to.pieces += [(False, "."), (True, attr)]
        case ast.Call(func=func, args=args, keywords=keywords):
            _write_called(func, to, depth)
            to.pieces.append((False, "("))
            for part in [*args, *sorted(keywords, key=lambda word: word.arg or "")]:
                _write(part, to, depth)
                to.pieces.append((False, ","))
            to.pieces.append((False, ")"))
        case ast.Assert(test=test):  # its message may say what it likes
            to.pieces.append((False, "assert"))
            _write(test, to, depth)
        case ast.keyword(arg=arg, value=value):
            to.pieces += [(True, arg or "**"), (False, "=")]
            _write(value, to, depth)
        case _:
            _write_parts(node, to, depth)


def _write_parts(node: ast.AST, to: Form, depth: int) -> None:
    to.pieces.append((False, type(node).__name__))
    for _, value in ast.iter_fields(node):
        if isinstance(value, ast.expr_context):
            continue
        if isinstance(value, ast.AST):
            _write(value, to, depth)
        elif isinstance(value, list):
            to.pieces.append((False, "["))
            for part in value:
                if isinstance(part, ast.AST):
                    _write(part, to, depth)
            to.pieces.append((False, "]"))


def _write_name(name: str, to: Form, depth: int) -> None:
    meant = to.known.get(name)
    if meant is not None and depth < DEEPEST_INLINING:
        _write(meant, to, depth + 1)
        return
    if name.isupper() and len(name) > 1:
        to.names.add(name)
        to.pieces.append((True, name))
    else:
        to.pieces.append((True, "_"))


def _write_called(func: ast.expr, to: Form, depth: int) -> None:
    if isinstance(func, ast.Name):
        to.names.add(func.id)
        to.pieces.append((True, func.id))
    else:
        _write(func, to, depth)
    last = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
    if last in BLURS:
        to.blurs.add(last)
        to.pieces.append((False, f"<{last}>"))


def dotted(node: ast.AST) -> str:
    """Give `a.b.c` for such a chain of names, and the chain's end where its beginning is an expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))


def single_assignments(statements: list[ast.stmt]) -> dict[str, ast.expr]:
    """Give the names that are assigned exactly once, outside loops, with what they stand for."""
    found: dict[str, ast.expr] = {}
    seen: set[str] = set()
    for node, looped in _assigned(statements, looped=False):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for name in ast.walk(target):
                if not isinstance(name, ast.Name):
                    continue
                plain = name is target and not looped and not isinstance(node, ast.AugAssign)
                if name.id in seen or not plain or node.value is None or isinstance(node.value, ast.Lambda):
                    found.pop(name.id, None)
                else:
                    found[name.id] = node.value
                seen.add(name.id)
    return found


def _assigned(
    statements: list[ast.stmt], *, looped: bool
) -> Iterator[tuple[ast.Assign | ast.AnnAssign | ast.AugAssign, bool]]:
    for node in statements:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            yield node, looped
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = looped or isinstance(node, ast.For | ast.While | ast.AsyncFor)
            for _, value in ast.iter_fields(node):
                if isinstance(value, list):
                    parts = [part for part in value if isinstance(part, ast.stmt)]
                    yield from _assigned(parts, looped=inner)
                    for handler in value:
                        if isinstance(handler, ast.ExceptHandler):
                            yield from _assigned(handler.body, looped=inner)
