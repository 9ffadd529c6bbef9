"""Find what keeps a Python test from running, or its failure from counting: marks, set-up, decorators."""

import ast
import re
from collections.abc import Iterable

from unstuck.verify.tamper.python_flow import drops, follow
from unstuck.verify.tamper.python_form import dotted

Function = ast.FunctionDef | ast.AsyncFunctionDef
SKIP = re.compile(r"(?:^|\.)(?:skip|skipif|skipIf|skipUnless|xfail|expectedFailure|importorskip|disabled?|ignore)\b")
_CONDITIONAL = re.compile(r"(?:^|\.)(?:skipif|skipIf|skipUnless)\(|xfail\((?!reason|strict|raises|\))")
SETUP = frozenset(
    {"setUp", "setUpClass", "setup_method", "setup_class", "setup", "asyncSetUp", "setUpModule", "setup_module"}
)


def skip_of_decorators(decorators: Iterable[ast.expr], known: dict[str, ast.expr]) -> tuple[str, bool]:
    """Find the decorator that skips a test, and whether it does so on a condition."""
    for decorator in decorators:
        meant = known.get(decorator.id, decorator) if isinstance(decorator, ast.Name) else decorator
        text = ast.unparse(meant)
        if SKIP.search(dotted(meant.func if isinstance(meant, ast.Call) else meant)):
            return text[:120], _CONDITIONAL.search(text) is not None
    return "", False


def skip_of_block(body: list[ast.stmt], known: dict[str, ast.expr]) -> tuple[str, bool]:
    """Find what skips every test of a module or class: a mark, a skip at its top, or one in its set-up."""
    for statement in body:
        if isinstance(statement, ast.Assign) and any(dotted(target) == "pytestmark" for target in statement.targets):
            marks = statement.value.elts if isinstance(statement.value, ast.List | ast.Tuple) else [statement.value]
            skip = skip_of_decorators(marks, known)
            if skip[0]:
                return skip
        elif isinstance(statement, Function) and (statement.name in SETUP or "autouse=True" in decorators(statement)):
            flow = follow(statement.body, {})
            if flow.skip:
                return flow.skip, flow.skip_is_conditional
        elif not isinstance(statement, Function | ast.ClassDef):
            flow = follow([statement], {})
            if flow.skip:
                return flow.skip, flow.skip_is_conditional
    return "", False


def skips_others(node: Function) -> str:
    """Say how a decorator skips what it decorates."""
    for part in ast.walk(node):
        if isinstance(part, ast.Return) and part.value is not None and not is_fixture(node):
            skip, _ = skip_of_decorators([part.value.func if isinstance(part.value, ast.Call) else part.value], {})
            if skip:
                return skip
    return ""


def swallows(node: Function) -> bool:
    """Tell whether a decorator calls what it decorates and drops its failures."""
    given = {arg.arg for arg in node.args.args}
    return any(
        isinstance(part, ast.Try) and any(drops(handler) for handler in part.handlers) and _calls_any(part.body, given)
        for inner in ast.walk(node)
        if isinstance(inner, Function) and inner is not node
        for part in inner.body
    )


def decorators(node: Function) -> str:
    """Give the decorators of a function as text."""
    return " ".join(ast.unparse(part) for part in node.decorator_list)


def is_fixture(node: Function) -> bool:
    """Tell whether a function is a fixture of pytest."""
    return any(last(part) == "fixture" for part in node.decorator_list)


def last(node: ast.expr) -> str:
    """Give the last name of a chain, or of what a call calls."""
    return dotted(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]


def _calls_any(body: list[ast.stmt], names: set[str]) -> bool:
    return any(
        isinstance(part, ast.Call) and dotted(part.func) in names for statement in body for part in ast.walk(statement)
    )
