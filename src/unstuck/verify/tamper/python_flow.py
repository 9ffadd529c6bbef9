"""Follow a Python test from statement to statement: which assertions can fail, and which only stand there."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from unstuck.verify.tamper.python_assertions import Known, assertions
from unstuck.verify.tamper.python_form import dotted, form
from unstuck.verify.tamper.suite import DOUBTFUL, NOTHING, Assertion

AFTER_RETURN = "stands after a return"
NEVER = "stands under a condition that never holds"
MAYBE = "stands under a condition"
LEFT_EARLY = "may be left out by a return above it"
SWALLOWED = "has its failure caught and dropped"
UNCALLED = "stands in a function that nobody calls"
EMPTY_LOOP = "stands in a loop over nothing"

_SOFT = frozenset({MAYBE, LEFT_EARLY})
_CATCH_ALL = frozenset({"AssertionError", "Exception", "BaseException", ""})
_SKIPS = frozenset({"skip", "skipTest", "xfail", "importorskip", "SkipTest", "exit", "_exit"})


@dataclass(slots=True)
class Flow:
    """What was met in one function."""

    known: Known
    assertions: list[Assertion] = field(default_factory=list)
    calls: set[str] = field(default_factory=set)
    rows: list[frozenset[str]] = field(default_factory=list)
    looped: bool = False
    skip: str = ""
    skip_is_conditional: bool = False


def follow(body: list[ast.stmt], known: Known) -> Flow:
    """Read the body of one function."""
    flow = Flow(known)
    used = {node.id for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name)}
    _block(body, flow, "", used)
    return flow


def _block(body: list[ast.stmt], flow: Flow, idle: str, used: set[str]) -> None:
    for statement in body:
        if not idle or idle in _SOFT:
            flow.calls |= _calls(statement)
            _note_skip(statement, flow, conditional=bool(idle))
        for found in assertions(statement, flow.known):
            flow.assertions.append(_with(found, idle))
        if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break) or _leaves(statement):
            idle = idle or (LEFT_EARLY if idle == MAYBE else AFTER_RETURN)
            continue
        idle = _inside(statement, flow, idle, used) or idle


def _inside(statement: ast.stmt, flow: Flow, idle: str, used: set[str]) -> str:
    """Read what stands inside a statement; return why what follows it may not run."""
    match statement:
        case ast.If(test=test, body=body, orelse=orelse):
            return _condition(test, body, orelse, flow, idle, used)
        case ast.For(iter=source, body=body) | ast.AsyncFor(iter=source, body=body):
            elements = _elements(source, flow.known)
            flow.looped = True
            flow.rows += [frozenset(form(part, flow.known).literals) for part in elements or []]
            _block(body, flow, idle or (EMPTY_LOOP if elements == [] else ""), used)
        case ast.While(test=test, body=body):
            _block(body, flow, idle or (NEVER if _never(test) else ""), used)
        case ast.Try():
            lost = any(drops(handler) for handler in statement.handlers) or any(
                isinstance(part, ast.Return) for part in statement.finalbody
            )
            _block(statement.body, flow, idle or (SWALLOWED if lost else ""), used)
            for handler in statement.handlers:
                _block(handler.body, flow, idle or MAYBE, used)
            _block([*statement.orelse, *statement.finalbody], flow, idle, used)
        case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
            lost = any(_suppresses(item.context_expr) for item in items)
            _block(body, flow, idle or (SWALLOWED if lost else ""), used)
        case ast.FunctionDef(name=name, body=body) | ast.AsyncFunctionDef(name=name, body=body):
            _block(body, flow, idle or ("" if name in used or statement.decorator_list else UNCALLED), used)
        case ast.ClassDef(body=body):
            _block(body, flow, idle, used)
        case _:
            pass
    return ""


def _condition(
    test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt], flow: Flow, idle: str, used: set[str]
) -> str:
    if _never(test):
        _block(body, flow, idle or NEVER, used)
        _block(orelse, flow, idle, used)
        return ""
    if isinstance(test, ast.Constant):
        _block(body, flow, idle, used)
        return AFTER_RETURN if any(isinstance(part, ast.Return) for part in body) else ""
    both = _asserts(body, flow.known) and _asserts(orelse, flow.known)
    _block(body, flow, idle or ("" if both else MAYBE), used)
    _block(orelse, flow, idle or ("" if both else MAYBE), used)
    leaves = any(isinstance(part, ast.Return) or _leaves(part) for part in [*body[-1:], *orelse[-1:]])
    return LEFT_EARLY if leaves and not _asserts(body, flow.known) else ""


def _asserts(body: list[ast.stmt], known: Known) -> bool:
    return any(
        isinstance(node, ast.Raise) or (isinstance(node, ast.stmt) and any(assertions(node, known)))
        for statement in body
        for node in ast.walk(statement)
    )


def _with(found: Assertion, idle: str) -> Assertion:
    if not idle:
        return found
    rank = min(found.rank, DOUBTFUL) if idle in _SOFT else NOTHING
    return replace(found, rank=rank, idle=idle, key=f"({idle}) {found.key}")


def _note_skip(statement: ast.stmt, flow: Flow, *, conditional: bool) -> None:
    if _leaves(statement) and not (flow.skip and not flow.skip_is_conditional):
        text = ast.unparse(statement)[:120]
        flow.skip, flow.skip_is_conditional = text, conditional or "importorskip" in text


def _leaves(statement: ast.stmt) -> bool:
    """Tell whether a statement skips the test or ends the run."""
    match statement:
        case (
            ast.Expr(value=ast.Call(func=func)) | ast.Raise(exc=ast.Call(func=func)) | ast.Raise(exc=ast.Name() as func)
        ):
            pass
        case ast.Assign(value=ast.Call(func=func)):
            return dotted(func).endswith("importorskip")
        case _:
            return False
    name = dotted(func)
    if name.endswith(("add_marker", "applymarker")):
        return "xfail" in ast.unparse(statement) or "skip" in ast.unparse(statement)
    return name.rpartition(".")[2] in _SKIPS and name.partition(".")[0] in {
        "pytest", "unittest", "self", "sys", "os", "skip", "xfail", "SkipTest", "importorskip", "skipTest", "exit",
    }  # fmt: skip


def drops(handler: ast.ExceptHandler) -> bool:
    """Tell whether a handler lets the failure of an assertion go by."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    if not any(kind is None or dotted(kind).rpartition(".")[2] in _CATCH_ALL for kind in kinds):
        return False
    for node in (inner for statement in handler.body for inner in ast.walk(statement)):
        if isinstance(node, ast.Raise) and not _leaves(node):
            return False
        if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "fail":
            return False
        if isinstance(node, ast.stmt) and any(found.rank > NOTHING for found in assertions(node, {})):
            return False
    return True


def _suppresses(context: ast.expr) -> bool:
    if not isinstance(context, ast.Call):
        return False
    name = dotted(context.func).rpartition(".")[2]
    kinds = {dotted(kind).rpartition(".")[2] for arg in context.args for kind in _alternatives(arg)}
    if name == "suppress":
        return bool(kinds & _CATCH_ALL)
    return name in {"raises", "assertRaises"} and bool(kinds & {"AssertionError"})


def _alternatives(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _never(test: ast.expr) -> bool:
    if isinstance(test, ast.Constant):
        return not test.value
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_never(value) for value in test.values)
    return isinstance(test, ast.Name | ast.Attribute) and dotted(test).endswith("TYPE_CHECKING")


def _elements(source: ast.expr, known: Known) -> list[ast.expr] | None:
    if isinstance(source, ast.Name):
        source = known.get(source.id, source)
    if isinstance(source, ast.List | ast.Tuple | ast.Set):
        return source.elts
    if isinstance(source, ast.Subscript) and isinstance(source.slice, ast.Slice):
        return _sliced(_elements(source.value, known), source.slice)
    if isinstance(source, ast.ListComp | ast.GeneratorExp) and source.generators[0].ifs:
        return _but_one(_elements(source.generators[0].iter, known))
    if isinstance(source, ast.Call) and dotted(source.func) == "filter" and len(source.args) > 1:
        return _but_one(_elements(source.args[1], known))
    if isinstance(source, ast.Dict):
        return [ast.Tuple(elts=[key or value, value]) for key, value in zip(source.keys, source.values, strict=True)]
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and source.func.attr == "items":
        return _elements(source.func.value, known)
    if (
        isinstance(source, ast.Call)
        and dotted(source.func) in {"enumerate", "sorted", "list", "tuple", "iter"}
        and source.args
    ):
        return _elements(source.args[0], known)
    return None


def _but_one(elements: list[ast.expr] | None) -> list[ast.expr] | None:
    """Of cases that are filtered, at least one is gone."""
    return None if elements is None else elements[:-1]


def _sliced(elements: list[ast.expr] | None, part: ast.Slice) -> list[ast.expr] | None:
    bounds = [getattr(bound, "value", None) for bound in (part.lower, part.upper)]
    if elements is None or not all(bound is None or isinstance(bound, int) for bound in bounds):
        return None
    return elements[slice(*bounds)]


def rows_of(source: ast.expr, known: Known) -> Iterator[ast.expr] | None:
    """Give the cases that a parametrised test goes through, or None where they cannot be seen."""
    found = _elements(source, known)
    return None if found is None else iter(found)


def _calls(statement: ast.stmt) -> set[str]:
    """Name what a statement calls itself, not what stands in the blocks inside it."""
    found: set[str] = set()
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Call):
            found.add(dotted(node.func).rpartition(".")[2])
        todo += [part for part in ast.iter_child_nodes(node) if not isinstance(part, ast.stmt | ast.ExceptHandler)]
    return found - {""}
