"""Read the tests of a Python text: pytest functions and classes, unittest cases, and what they lean on."""

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from unstuck.verify.tamper.change import LONGEST
from unstuck.verify.tamper.python_flow import follow, rows_of
from unstuck.verify.tamper.python_form import dotted, form, single_assignments
from unstuck.verify.tamper.python_patches import patches_in
from unstuck.verify.tamper.python_skips import (
    SETUP,
    SKIP,
    Function,
    decorators,
    is_fixture,
    last,
    skip_of_block,
    skip_of_decorators,
    skips_others,
    swallows,
)
from unstuck.verify.tamper.suite import Case, Patch, Suite

_PATCHES = re.compile(
    r"patch|setattr|delattr|sys\.modules|lambda|Mock|SimpleNamespace|ModuleType|partial|\w\.\w+ = \w+$", re.MULTILINE
)
_RETRY = re.compile(r"(?:^|\.)(?:flaky|retry|rerun|repeat_until|retries)\b")


def parse(text: str) -> ast.Module | None:
    """Parse a text; None where that cannot be done."""
    if len(text) > LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in the user's text is not our business
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a test stands: the class around it, and what holds for all tests in there."""

    path: str
    name: str
    hidden: str
    skip: str
    conditional: bool
    known: dict[str, ast.expr]
    literals: frozenset[str] = frozenset()
    unittest: bool = False
    requests: frozenset[str] = frozenset()
    patches: bool = True
    """Whether the text holds anything that looks like a replacement."""


def read_python(path: str, text: str, tree: ast.Module) -> Suite:
    """Turn a parsed text into a suite."""
    known = single_assignments(tree.body)
    skip, conditional = skip_of_block(tree.body, known)
    scope = _Scope(
        path=path, name="", hidden="", skip=skip, conditional=conditional, known=known,
        literals=_setup_literals(tree.body, known), patches=_PATCHES.search(text) is not None,
    )  # fmt: skip
    cases = tuple(_cases(tree.body, scope))
    nodes = list(ast.walk(tree))
    patches: tuple[Patch, ...] = ()
    if _PATCHES.search(text):
        patches = (*patches_in(_outside_functions(tree.body), everywhere=True), *_fixture_patches(nodes))
    called = Counter(last(node) for node in nodes if isinstance(node, ast.Call))
    return Suite(
        path=path,
        cases=cases,
        patches=patches,
        defined=frozenset(node.name for node in nodes if isinstance(node, Function)),
        called=frozenset(called),
        prepared=frozenset().union(
            *(case.calls for case in cases if case.name in SETUP),
            (
                last(part)
                for top in _outside_functions(tree.body)
                for part in ast.walk(top)
                if isinstance(part, ast.Call)
            ),
        ),
        stand_ins=sum(
            called[name] for name in ("Mock", "MagicMock", "AsyncMock", "create_autospec", "SimpleNamespace")
        ),
        bound=frozenset(name for statement in tree.body for name in _binds(statement)),
        constants=tuple((name, frozenset(form(node, {}).literals)) for name, node in known.items()),
        imports=frozenset(_imports(nodes)),
    )


def _cases(body: list[ast.stmt], scope: _Scope) -> Iterator[Case]:
    last = {name: place for place, statement in enumerate(body) for name in _binds(statement)}
    replaced = {name for statement in body for name in _replaced_elsewhere(statement)}
    for place, statement in enumerate(body):
        hidden = scope.hidden
        if any(last[name] > place for name in _binds(statement)):
            hidden = hidden or "a later definition of the same name hides it"
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if f"{scope.name}.{statement.name}".strip(".") in replaced:
                    hidden = hidden or "it is replaced further down"
                yield _case(statement, scope, hidden)
            case ast.ClassDef():
                yield from _cases(statement.body, _class_scope(statement, scope, hidden))
            case ast.If(body=inner, orelse=orelse):
                never = isinstance(statement.test, ast.Constant) and not statement.test.value
                shut = "a condition that never holds" if never else ""
                yield from _cases(inner, _under(scope, shut or hidden, ast.unparse(statement.test)))
                yield from _cases(orelse, scope)
            case ast.Try(body=inner):
                yield from _cases(inner, scope)
            case _:
                pass


def _under(scope: _Scope, hidden: str, test: str) -> _Scope:
    condition = scope.skip or ("" if hidden else f"if {test}")
    return replace(scope, hidden=hidden, skip=condition, conditional=True)


def _class_scope(node: ast.ClassDef, scope: _Scope, hidden: str) -> _Scope:
    bases = " ".join(dotted(base) for base in node.bases)
    unittest = re.search(r"Test|Case|Base|Spec", bases) is not None
    shut = any(
        isinstance(part, ast.Assign)
        and any(dotted(target) == "__test__" for target in part.targets)
        and isinstance(part.value, ast.Constant)
        and not part.value.value
        for part in node.body
    )
    if shut:
        hidden = hidden or "__test__ is False"
    elif not unittest and not node.name.startswith("Test"):
        hidden = hidden or f"the class {node.name} is not collected"
    elif not unittest and any(isinstance(part, ast.FunctionDef) and part.name == "__init__" for part in node.body):
        hidden = hidden or f"the class {node.name} has a constructor"
    known = scope.known | single_assignments(node.body)
    skip, conditional = skip_of_block(node.body, known)
    own, own_conditional = skip_of_decorators(node.decorator_list, known)
    return replace(
        scope,
        name=f"{scope.name}.{node.name}".strip("."),
        hidden=hidden,
        skip=scope.skip or own or skip,
        conditional=scope.conditional if scope.skip else own_conditional if own else conditional,
        known=known,
        literals=scope.literals | _setup_literals(node.body, known),
        unittest=unittest,
        requests=scope.requests | _used_fixtures(node),
    )


def _case(node: Function, scope: _Scope, hidden: str) -> Case:
    known = scope.known | single_assignments(node.body)
    flow = follow(node.body, known)
    body = [form(statement, known) for statement in _without_docstring(node.body)]
    rows, open_rows, no_rows = _rows(node, known)
    skip, conditional = skip_of_decorators(node.decorator_list, known)
    if no_rows:
        skip, conditional = skip or no_rows, False
    if not skip and scope.skip:
        skip, conditional = scope.skip, scope.conditional
    if not skip and flow.skip:
        skip, conditional = flow.skip, flow.skip_is_conditional
    is_test = node.name.startswith("test") and not is_fixture(node)
    arguments = {arg.arg for arg in [*node.args.args, *node.args.kwonlyargs]} - {"self", "cls"}
    named = {last(decorator) for decorator in node.decorator_list} | _used_fixtures(node)
    defaults = [part for part in [*node.args.defaults, *node.args.kw_defaults] if part is not None]
    decorators = [form(part, known).literals for part in [*node.decorator_list, *defaults]]
    return Case(
        kind="test" if is_test else "aid",
        name=node.name,
        scope=scope.name,
        path=scope.path,
        line=node.lineno,
        assertions=tuple(flow.assertions),
        body=" ; ".join(part.key for part in body),
        shape=" ; ".join(part.shape for part in body),
        literals=frozenset().union(scope.literals, _keywords(node), *decorators, *(part.literals for part in body)),
        calls=frozenset(flow.calls),
        requests=frozenset(arguments | named) | scope.requests,
        rows=(*(rows or []), *flow.rows) if rows is not None or flow.rows else None,
        open_rows=open_rows,
        looped=flow.looped,
        hidden=(hidden or _never_run(node)) if is_test else "",
        skip=skip or ("" if is_test else skips_others(node)),
        skip_is_conditional=conditional,
        swallows=not is_test and swallows(node),
        retries=next((ast.unparse(part) for part in node.decorator_list if _RETRY.search(ast.unparse(part))), ""),
        patches=tuple(patches_in([node])) if scope.patches else (),
    )


def _keywords(node: Function) -> frozenset[str]:
    """Give the names that values are handed over under: `check(reply, name="Ada")` may assert `reply["name"]`."""
    return frozenset(repr(part.arg) for part in ast.walk(node) if isinstance(part, ast.keyword) and part.arg)


def _never_run(node: Function) -> str:
    inner = [part for part in ast.walk(node) if part is not node]
    if isinstance(node, ast.AsyncFunctionDef):
        awaits = any(isinstance(part, ast.Await | ast.AsyncWith | ast.AsyncFor) for part in inner)
        if not awaits:
            return "it became async although it awaits nothing, so nobody runs its body"
        return ""
    generator = any(isinstance(part, ast.Yield | ast.YieldFrom) for part in inner)
    if generator and not node.decorator_list and not any(isinstance(part, Function | ast.Lambda) for part in inner):
        return "it became a generator, so its body never runs"
    return ""


def _rows(node: Function, known: dict[str, ast.expr]) -> tuple[list[frozenset[str]] | None, bool, str]:
    found: list[frozenset[str]] | None = None
    unseen = False
    for decorator in node.decorator_list:
        name = dotted(decorator.func).rpartition(".")[2] if isinstance(decorator, ast.Call) else ""
        if name not in {"parametrize", "expand", "parameterized", "data", "ddt", "named_data"}:
            continue
        assert isinstance(decorator, ast.Call)
        words = {word.arg: word.value for word in decorator.keywords}
        source = words.get("argvalues") or (decorator.args[-1] if decorator.args else None)
        if name == "parametrize" and len(decorator.args) > 1:
            source = decorator.args[1]
        elements = None if source is None else rows_of(source, known)
        if elements is None:
            found, unseen = found or [], True
            continue
        live = [part for part in elements if not SKIP.search(_marks(part))]
        if not live:
            return [], False, "no case is left to run"
        found = (found or []) + [frozenset(form(_values(part), known).literals) for part in live]
    return found, unseen, ""


def _values(row: ast.expr) -> ast.expr:
    """Of `pytest.param(1, 2, id="x")` only the values are a case."""
    if isinstance(row, ast.Call) and last(row) in {"param", "case"}:
        return ast.Tuple(elts=row.args)
    return row


def _marks(row: ast.expr) -> str:
    if not isinstance(row, ast.Call):
        return ""
    return " ".join(ast.unparse(word.value) for word in row.keywords if word.arg == "marks")


def _setup_literals(body: list[ast.stmt], known: dict[str, ast.expr]) -> frozenset[str]:
    wanted = [
        part for part in body if isinstance(part, Function) and (part.name in SETUP or "autouse" in decorators(part))
    ]
    return frozenset().union(*(form(part, known).literals for part in wanted))


def _outside_functions(body: list[ast.stmt]) -> Iterator[ast.AST]:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield from statement.decorator_list
        if isinstance(statement, ast.ClassDef | ast.If | ast.Try | ast.With):
            yield from _outside_functions(statement.body)
        elif not isinstance(statement, Function):
            yield statement


def _fixture_patches(nodes: Iterable[ast.AST]) -> Iterator[Patch]:
    for node in nodes:
        if isinstance(node, Function) and (
            node.name in SETUP or "autouse=True" in decorators(node) or node.name.startswith("pytest_")
        ):
            yield from patches_in([node], everywhere=True)


def _used_fixtures(node: Function | ast.ClassDef) -> set[str]:
    return {
        str(arg.value)
        for part in node.decorator_list
        if isinstance(part, ast.Call) and last(part) == "usefixtures"
        for arg in part.args
        if isinstance(arg, ast.Constant)
    }


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    return body[1:] if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) else body


def _binds(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
        case _:
            return set()


def _replaced_elsewhere(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            yield from (dotted(target) for target in targets if isinstance(target, ast.Attribute))
        case ast.Expr(
            value=ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[owner, ast.Constant(value=name), *_])
        ):
            yield f"{dotted(owner)}.{name!s}"
        case _:
            return


def _imports(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module or ''}.{alias.name}" for alias in node.names)
