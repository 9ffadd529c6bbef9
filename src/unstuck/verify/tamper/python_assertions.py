"""Read what a Python statement asserts: plain asserts, unittest methods, pytest.raises, mocks."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from unstuck.verify.tamper.python_form import Form, dotted, form
from unstuck.verify.tamper.suite import DOUBTFUL, EXACT, NOTHING, PARTIAL, WEAK, Assertion

Known = Mapping[str, ast.expr]

WIDE_RELATIVE, WIDE_ABSOLUTE = 1e-2, 0.05
"""A tolerance above these says little about the value."""


def assertions(node: ast.stmt, known: Known) -> Iterator[Assertion]:
    """Give the assertions that this statement itself makes, not those of statements inside it."""
    match node:
        case ast.Assert(test=test):
            yield from judge(test, known, node)
        case ast.Expr(value=ast.Call() as call) | ast.Expr(value=ast.Await(value=ast.Call() as call)):
            yield from _called(call, known, node)
        case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
            for item in items:
                if isinstance(item.context_expr, ast.Call) and _is_raises(item.context_expr):
                    yield _raises(item.context_expr, body, known, node)
        case ast.Raise(exc=exc) if exc is not None and "AssertionError" in dotted(_callee(exc)):
            yield _plain("fail", PARTIAL, [exc], known, node)
        case _:
            return


def judge(test: ast.expr, known: Known, at: ast.stmt) -> Iterator[Assertion]:
    """Say what an asserted expression demands."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from judge(value, known, at)
        case ast.BoolOp(values=values):
            empty = any(_always_true(value) for value in values)
            yield _plain("or", NOTHING if empty else DOUBTFUL, values, known, at)
        case ast.UnaryOp(op=ast.Not(), operand=ast.Compare(ops=[op]) as inner) if type(op) in _OPPOSITES:
            turned = ast.Compare(left=inner.left, ops=[_OPPOSITES[type(op)]()], comparators=inner.comparators)
            yield from judge(turned, known, at)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield _plain("falsy", NOTHING if isinstance(operand, ast.Constant) else WEAK, [operand], known, at)
        case ast.Compare(
            left=ast.Tuple(elts=[_, *_] as some), ops=[ast.Eq()], comparators=[ast.Tuple(elts=others)]
        ) if len(some) == len(others):
            for one, other in zip(some, others, strict=True):
                yield _compared(ast.Eq(), one, other, known, at)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield _compared(op, left, right, known, at)
        case ast.Compare():
            yield _plain("order", PARTIAL, [test], known, at)
        case ast.Call():
            yield _truth_of_call(test, known, at)
        case _:
            yield _plain("truthy", NOTHING if _always_true(test) else WEAK, [test], known, at)


_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


def _compared(op: ast.cmpop, left: ast.expr, right: ast.expr, known: Known, at: ast.stmt) -> Assertion:
    if isinstance(op, ast.Eq) and any(isinstance(side, ast.Constant) and side.value is True for side in (left, right)):
        return next(
            judge(left if isinstance(right, ast.Constant) else right, known, at)
        )  # `== True` is no more than truth
    if (
        isinstance(op, ast.Eq)
        and isinstance(left, ast.Call)
        and dotted(left.func) == "len"
        and _is_zero(right)
        and left.args
    ):
        return next(judge(ast.UnaryOp(op=ast.Not(), operand=left.args[0]), known, at))  # an empty thing is falsy
    one, two = form(left, known), form(right, known)
    # Two plain names look alike in this form; only what is spelled out can be compared.
    same = ast.dump(left) == ast.dump(right) or (one.key == two.key and "_" not in one.key.split())
    if isinstance(op, ast.Eq | ast.Is):
        if same:
            rank = DOUBTFUL if one.names and not isinstance(left, ast.Name) else NOTHING
        elif _constant(left) and _constant(right):
            rank = NOTHING
        else:
            rank = _equality_rank(left, right, one, two)
        return _sides("eq", rank, one, two, at, tolerance=max(_tolerance(left, known), _tolerance(right, known)))
    if isinstance(op, ast.NotEq | ast.IsNot):
        return _sides("ne", WEAK, one, two, at)
    if isinstance(op, ast.In | ast.NotIn):
        return _sides(type(op).__name__, PARTIAL if isinstance(op, ast.In) else WEAK, one, two, at, ordered=True)
    empty = isinstance(op, ast.GtE) and "len" in one.names and two.key == "0"
    return _sides(type(op).__name__, NOTHING if empty else PARTIAL, one, two, at, ordered=True)


def _equality_rank(left: ast.expr, right: ast.expr, one: Form, two: Form) -> int:
    if {"ANY", "Anything"} & {dotted(left).rpartition(".")[2], dotted(right).rpartition(".")[2]}:
        return NOTHING
    if "ANY" in one.names | two.names:
        return PARTIAL
    for side in (left, right):
        if isinstance(side, ast.Call) and dotted(side.func).rpartition(".")[2] == "approx" and _is_wide(side):
            return WEAK
    return EXACT


def _is_wide(call: ast.Call) -> bool:
    values = {word.arg: _number(word.value) for word in call.keywords}
    positional = [_number(part) for part in call.args[1:3]]
    relative = values.get("rel") or (positional[0] if positional else None)
    absolute = values.get("abs") or (positional[1] if len(positional) > 1 else None)
    expected = abs(_number(call.args[0]) or 1.0) if call.args else 1.0
    return (relative or 0.0) > WIDE_RELATIVE or (absolute or 0.0) > max(WIDE_ABSOLUTE, WIDE_RELATIVE * expected)


def _tolerance(side: ast.expr, known: Known) -> float:
    if isinstance(side, ast.Name):
        side = known.get(side.id, side)
    if not isinstance(side, ast.Call) or dotted(side.func).rpartition(".")[2] not in {"approx", "isclose", "allclose"}:
        return 0.0
    words = [
        _number(word.value) or 0.0
        for word in side.keywords
        if word.arg in {"rel", "abs", "rel_tol", "abs_tol", "rtol", "atol"}
    ]
    return max([1e-6, *words, *[_number(part) or 0.0 for part in side.args[1:3]]])


def _truth_of_call(call: ast.Call, known: Known, at: ast.stmt) -> Assertion:
    name = dotted(call.func).rpartition(".")[2]
    if name == "isinstance":
        kind = call.args[1] if len(call.args) > 1 else None
        return _plain(
            "isinstance", NOTHING if kind is not None and dotted(kind) == "object" else WEAK, [call], known, at
        )
    if name in {"array_equal", "equals", "array_equiv"}:
        return _plain("eq", EXACT, [call], known, at)
    if name in {"isclose", "allclose"}:
        return _plain("eq", EXACT if _tolerance(call, known) <= WIDE_RELATIVE else WEAK, [call], known, at)
    if name in {"startswith", "endswith", "match", "search", "fullmatch", "all", "any", "issubset", "issuperset"}:
        return _plain("like", PARTIAL, [call], known, at)
    if name in {"bool", "callable", "hasattr"}:
        return _plain("truthy", DOUBTFUL if name != "bool" else WEAK, [call], known, at)
    return _plain("truthy", WEAK, [call], known, at)


def _called(call: ast.Call, known: Known, at: ast.stmt) -> Iterator[Assertion]:
    name = _camel(dotted(call.func).rpartition(".")[2])
    args = call.args
    if name in {"assertTrue", "assert_"} and args:
        yield from judge(args[0], known, at)
    elif name == "assertFalse" and args:
        yield from judge(ast.UnaryOp(op=ast.Not(), operand=args[0]), known, at)
    elif name in {"assertIsNone", "assertIsNotNone"} and args:
        op = ast.Is() if name == "assertIsNone" else ast.IsNot()
        yield from judge(ast.Compare(left=args[0], ops=[op], comparators=[ast.Constant(value=None)]), known, at)
    elif name in _COMPARING and len(args) > 1:
        yield _compared(_COMPARING[name](), args[0], args[1], known, at)
    elif re.fullmatch(r"assert\w*Equals?", name) and len(args) > 1 and "Not" not in name and "Count" not in name:
        yield _almost(call, known, at) if "Almost" in name else _compared(ast.Eq(), args[0], args[1], known, at)
    elif name == "assertIsInstance" and len(args) > 1:
        yield _plain(
            "isinstance", WEAK, [ast.Call(func=ast.Name(id="isinstance"), args=args[:2], keywords=[])], known, at
        )
    elif _is_raises(call):
        if len(args) > 1 or any(word.arg == "callable" for word in call.keywords):
            subject = (
                ast.Expr(value=ast.Call(func=args[1], args=args[2:], keywords=call.keywords)) if len(args) > 1 else at
            )
            yield _raises(ast.Call(func=call.func, args=args[:1], keywords=[]), [subject], known, at)
    elif name in _MOCK:
        yield _plain(name, _MOCK[name], [call], known, at)
    elif name == "fail":
        yield _plain("fail", PARTIAL, [], known, at)
    elif name in _OTHER:
        relation, rank = _OTHER[name]
        yield _plain(relation, rank, [call], known, at)
    elif _is_fluent(call.func):
        rank = WEAK if re.search(r"not_none|truthy|is_true$|not_null|is_instance|exists", name) else EXACT
        yield _plain("call", rank, [call], known, at)
    elif re.match(r"_?assert(?:_|[A-Z])", name):
        yield _plain("eq" if re.search(r"equal|close", name) else "call", EXACT, [call], known, at)


def _is_fluent(node: ast.expr) -> bool:
    """Tell whether a call hangs on `assert_that(x)` or its like."""
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
        if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in {"assert_that", "expect", "ensure"}:
            return True
    return False


def _camel(name: str) -> str:
    """Give the name that unittest has for an assertion of nose."""
    return _NOSE.sub(lambda part: part[1].upper(), name) if name in _OF_NOSE else name


_NOSE = re.compile(r"_(\w)")
_OF_NOSE = frozenset({
    "assert_true", "assert_false", "assert_equal", "assert_equals", "assert_not_equal", "assert_in", "assert_not_in", "assert_is",
    "assert_is_not", "assert_is_none", "assert_is_not_none", "assert_is_instance", "assert_raises", "assert_greater", "assert_less",
})  # fmt: skip
_COMPARING: dict[str, type[ast.cmpop]] = {
    "assertIs": ast.Is, "assertIsNot": ast.IsNot, "assertNotEqual": ast.NotEq, "assertNotEquals": ast.NotEq,
    "assertIn": ast.In, "assertNotIn": ast.NotIn, "assertGreater": ast.Gt, "assertGreaterEqual": ast.GtE,
    "assertLess": ast.Lt, "assertLessEqual": ast.LtE,
}  # fmt: skip
_MOCK = {
    "assert_called_once_with": EXACT, "assert_called_with": EXACT, "assert_has_calls": EXACT, "assert_not_called": EXACT,
    "assert_awaited_once_with": EXACT, "assert_awaited_with": EXACT, "assert_any_call": PARTIAL,
    "assert_called_once": PARTIAL, "assert_awaited_once": PARTIAL, "assert_called": WEAK, "assert_awaited": WEAK,
}  # fmt: skip
_OTHER = {
    "assertCountEqual": ("eq", PARTIAL), "assertItemsEqual": ("eq", PARTIAL), "assertRegex": ("like", PARTIAL),
    "assertNotRegex": ("like", WEAK), "assertNotIsInstance": ("isinstance", WEAK),
    "assertContains": ("In", PARTIAL), "assertNotContains": ("NotIn", WEAK), "assertTemplateUsed": ("like", PARTIAL),
    "assertDictContainsSubset": ("like", PARTIAL), "assertNotAlmostEqual": ("ne", WEAK),
}  # fmt: skip


def _almost(call: ast.Call, known: Known, at: ast.stmt) -> Assertion:
    words = {word.arg: _number(word.value) for word in call.keywords}
    places = words.get("places", _number(call.args[2]) if len(call.args) > 2 else 7.0)  # noqa: PLR2004 - first, second, places
    delta = words.get("delta")
    width = delta if delta is not None else 10.0 ** -(places if places is not None else 7.0)
    one, two = form(call.args[0], known), form(call.args[1], known)
    expected = max((abs(_number(arg) or 0.0) for arg in call.args[:2]), default=0.0)
    rank = WEAK if width > max(WIDE_ABSOLUTE, WIDE_RELATIVE * expected) else EXACT
    return _sides("eq", rank, one, two, at, tolerance=width)


def _is_raises(call: ast.Call) -> bool:
    return _camel(dotted(call.func).rpartition(".")[2]) in {
        "raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns", "assertWarnsRegex", "assertLogs", "deprecated_call",
    }  # fmt: skip


def _raises(call: ast.Call, body: list[ast.stmt], known: Known, at: ast.stmt) -> Assertion:
    kinds = call.args[0].elts if call.args and isinstance(call.args[0], ast.Tuple) else call.args[:1]
    names = sorted(dotted(kind).rpartition(".")[2] for kind in kinds)
    pattern = [word.value for word in call.keywords if word.arg in {"match", "expected_regex"}] + call.args[1:2]
    wide = not names or bool({"Exception", "BaseException", "Warning"} & set(names)) or len(names) > 1
    loose = any(isinstance(part, ast.Constant) and part.value in {"", ".*", ".", ".+"} for part in pattern)
    rank = (PARTIAL if pattern and not loose else WEAK) if wide else (EXACT if pattern and not loose else PARTIAL)
    if all(isinstance(part, ast.Raise) for part in body):
        rank = NOTHING
    found = _plain("raises", rank, [*pattern, *body], known, at)
    kind = "|".join(names)
    return Assertion(
        relation="raises", rank=rank, key=f"raises {kind} {found.key}", skeleton=f"raises {kind} {found.skeleton}",
        literals=found.literals | {f"raises:{name}" for name in names}, names=found.names | set(names),
        line=found.line, text=found.text,
    )  # fmt: skip


def _sides(
    relation: str, rank: int, one: Form, two: Form, at: ast.stmt, *, ordered: bool = False, tolerance: float = 0.0
) -> Assertion:
    pairs = [(one.key, one.skeleton), (two.key, two.skeleton)]
    if not ordered:
        pairs.sort(key=lambda pair: pair[1])
    return Assertion(
        relation=relation, rank=rank, key=f"{relation} {pairs[0][0]} ~ {pairs[1][0]}",
        skeleton=f"{relation} {pairs[0][1]} ~ {pairs[1][1]}", literals=frozenset(one.literals | two.literals),
        names=frozenset(one.names | two.names), blurs=frozenset(one.blurs | two.blurs), tolerance=tolerance,
        line=getattr(at, "lineno", 1), text=_text(at),
    )  # fmt: skip


def _plain(relation: str, rank: int, parts: Sequence[ast.AST], known: Known, at: ast.stmt) -> Assertion:
    forms = [form(part, known) for part in parts]
    return Assertion(
        relation=relation, rank=rank, key=" ".join([relation, *(one.key for one in forms)]),
        skeleton=" ".join([relation, *(one.skeleton for one in forms)]),
        literals=frozenset().union(*(one.literals for one in forms)),
        names=frozenset().union(*(one.names for one in forms)),
        blurs=frozenset().union(*(one.blurs for one in forms)), line=getattr(at, "lineno", 1), text=_text(at),
    )  # fmt: skip


def _text(at: ast.stmt) -> str:
    if isinstance(at, ast.With | ast.AsyncWith):
        return "with " + ", ".join(ast.unparse(item) for item in at.items)
    return ast.unparse(at)[:200]


def _callee(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _always_true(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return bool(value)
        case ast.Tuple(elts=elts) | ast.List(elts=elts) | ast.Set(elts=elts):
            return bool(elts)
        case ast.Lambda() | ast.JoinedStr():
            return True
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(_always_true(value) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=ast.Constant(value=value)):
            return not value
        case _:
            return False


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0 and node.value is not False


def _constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _number(node: ast.expr) -> float | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return float(value) if isinstance(value, int | float) else None
