"""Find in a Python text what is suspicious in itself: exits, runner hooks, overridden asserts, equality, test detection."""

import ast
import re
from collections.abc import Iterator

from unstuck.verify.tamper.change import Role
from unstuck.verify.tamper.python_flow import follow
from unstuck.verify.tamper.python_form import dotted

Note = tuple[str, int, str]
"""Rule, line, text."""

_EXITS = frozenset({"sys.exit", "os._exit", "exit", "quit", "pytest.exit", "_exit"})
_HOOKS = frozenset({
    "pytest_collection_modifyitems", "pytest_ignore_collect", "pytest_runtest_makereport", "pytest_sessionfinish",
    "pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_protocol", "pytest_pyfunc_call", "pytest_itemcollected",
    "pytest_pycollect_makeitem", "pytest_report_teststatus", "pytest_deselected", "pytest_collect_file", "pytest_terminal_summary",
    "pytest_runtest_logreport", "pytest_exception_interact", "pytest_assertrepr_compare", "pytest_cmdline_main", "pytest_runtestloop",
    "pytest_unconfigure", "load_tests",
})  # fmt: skip
_ALWAYS = frozenset({"pytest_ignore_collect", "pytest_pyfunc_call", "pytest_runtest_protocol", "pytest_runtestloop"})
_MEDDLES = re.compile(
    r"skip|xfail|deselect|items\[:\]|items\.(?:clear|remove|pop)|del items|return True|os\._exit|force_result|TestSuite\(\)"
    r"|\.(?:outcome|longrepr|excinfo|exitstatus|testsfailed|wasxfailed)\s*=(?!=)|setattr\(\w+, '(?:outcome|exitstatus|longrepr)'"
)
"""What a hook does that changes the outcome; one that only looks at it is welcome."""
_COMPARISONS = frozenset(
    {"__eq__", "__contains__", "__bool__", "__ge__", "__le__", "__gt__", "__lt__", "__instancecheck__"}
)
_DETECTS = frozenset(
    {"PYTEST_CURRENT_TEST", "PYTEST_VERSION", "PYTEST_XDIST_WORKER", "UNITTEST", "RUNNING_TESTS", "TESTING"}
)
MOST_WORDS = 12


def python_notes(tree: ast.Module, role: Role) -> Iterator[Note]:
    """Give every suspicious thing; the caller tells which of them are new."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _function(node, role)
            case ast.Assign():
                yield from _assignment(node, role)
            case ast.ClassDef() if role in {"test", "support"} and node.name != "AssertionError":
                yield from _test_class(node)
            case ast.ClassDef(name="AssertionError"):
                yield "assertions-overridden", node.lineno, "class AssertionError"
            case (
                ast.If(test=test)
                | ast.IfExp(test=test)
                | ast.While(test=test)
                | ast.Assign(value=test)
                | ast.Return(value=ast.expr() as test)
            ) if role == "product":
                yield from _detection(test)
            case _:
                pass
    yield from _exits(tree, role)


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, role: Role) -> Iterator[Note]:
    text = ast.unparse(node)
    if node.name in _HOOKS and role != "product" and (node.name in _ALWAYS or _MEDDLES.search(text)):
        yield "collection-hooked", node.lineno, node.name
    if role == "support" and any("fixture" in ast.unparse(part) for part in node.decorator_list):
        flow = follow(node.body, {})
        everyone = any("autouse=True" in ast.unparse(part) for part in node.decorator_list)
        if flow.skip and (everyone or not flow.skip_is_conditional):
            yield "collection-hooked", node.lineno, f"{node.name}: {flow.skip}"
    if node.name in _COMPARISONS and _always_true(node.body):
        yield "equality-overridden", node.lineno, node.name
    if (
        node.name == "__ne__"
        and len(node.body) == 1
        and isinstance(node.body[0], ast.Return)
        and _is(node.body[0].value, value=False)
    ):
        yield "equality-overridden", node.lineno, node.name


def _test_class(node: ast.ClassDef) -> Iterator[Note]:
    """Find methods that redefine what a failing assertion, or a run, means."""
    for part in node.body:
        if not isinstance(part, ast.FunctionDef) or "super()" in ast.unparse(part):
            continue
        if part.name in _UNITTEST and not any(isinstance(inner, ast.Raise | ast.Assert) for inner in ast.walk(part)):
            yield "assertions-overridden", part.lineno, part.name
        elif part.name in {"run", "__call__", "debug", "_callTestMethod"} and any(
            "TestCase" in dotted(base) for base in node.bases
        ):
            yield "collection-hooked", part.lineno, part.name


_UNITTEST = frozenset({
    "assertEqual", "assertTrue", "assertFalse", "assertRaises", "assertIn", "assertIs", "assertIsNone", "assertIsNotNone", "fail",
    "assertNotEqual", "assertListEqual", "assertDictEqual", "assertAlmostEqual", "assertGreater", "assertLess", "assertRegex",
})  # fmt: skip


def _always_true(body: list[ast.stmt]) -> bool:
    returns = [part for statement in body for part in ast.walk(statement) if isinstance(part, ast.Return)]
    return bool(returns) and all(_is(part.value, value=True) for part in returns)


def _is(node: ast.expr | None, *, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _assignment(node: ast.Assign, role: Role) -> Iterator[Note]:
    for target in node.targets:
        name = dotted(target)
        last = name.rpartition(".")[2]
        if name in {"collect_ignore", "collect_ignore_glob"} and role in {"support", "test"}:
            yield "collection-hooked", node.lineno, ast.unparse(node)
        elif (
            last.startswith(
                (
                    "assertE",
                    "assertT",
                    "assertF",
                    "assertI",
                    "assertR",
                    "assertA",
                    "assertD",
                    "assertL",
                    "assertN",
                    "assert_called",
                    "failureException",
                )
            )
            or last == "AssertionError"
            or name.startswith("builtins.")
        ):
            yield "assertions-overridden", node.lineno, name
        elif last in _COMPARISONS and isinstance(node.value, ast.Lambda) and _is(node.value.body, value=True):
            yield "equality-overridden", node.lineno, name
        elif name in {"session.exitstatus", "report.outcome", "rep.outcome", "session.testsfailed"}:
            yield "collection-hooked", node.lineno, name
        elif name in {"pytest.raises", "pytest.approx", "pytest.fail"}:
            yield "assertions-overridden", node.lineno, name


def _detection(node: ast.expr) -> Iterator[Note]:
    words = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    if len(words) > MOST_WORDS:  # a table of words asks nothing
        return
    chains = {dotted(part) for part in ast.walk(node) if isinstance(part, ast.Attribute | ast.Name)}
    tools = {"pytest", "unittest", "_pytest", "nose"}
    named = bool(words & _DETECTS) or any(chain.endswith("_called_from_test") for chain in chains)
    loaded = "sys.modules" in chains and bool(words & tools)
    started = "sys.argv" in chains and any(word in tools | {"test"} for word in words)
    stack = any(chain.endswith(("inspect.stack", "_getframe", "extract_stack")) for chain in chains) and any(
        "test" in word for word in words
    )
    if named or loaded or started or stack:
        yield "test-detected", node.lineno, ast.unparse(node)[:200]


def _exits(tree: ast.Module, role: Role) -> Iterator[Note]:
    is_program = _is_program(tree)
    for statement, place in _statements(tree.body, "module"):
        for call in _calls_of(statement):
            name = dotted(call.func)
            if name not in _EXITS or not _succeeds(call, name):
                continue
            text = ast.unparse(call)
            if place == "program":
                continue
            if role in {"test", "support"} or place == "module":
                yield "early-exit", call.lineno, text
            elif place == "function" and (name in {"os._exit", "_exit", "pytest.exit"} or not is_program):
                yield "possible-early-exit", call.lineno, text


def _succeeds(call: ast.Call, name: str) -> bool:
    if name == "pytest.exit":
        return True
    codes = [*call.args, *(word.value for word in call.keywords)]
    return not codes or any(isinstance(code, ast.Constant) and code.value in {0, None} for code in codes)


def _is_program(tree: ast.Module) -> bool:
    """Tell whether this is a command line, which may well end with success; a library may not."""
    imported = {
        alias.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    imported |= {(node.module or "").partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    guarded = any(isinstance(node, ast.If) and "__main__" in ast.unparse(node.test) for node in tree.body)
    main = any(isinstance(node, ast.FunctionDef) and node.name in {"main", "cli", "run_cli"} for node in tree.body)
    return bool(imported & {"argparse", "click", "typer", "optparse", "docopt", "fire", "signal"}) or guarded or main


def _statements(body: list[ast.stmt], place: str) -> Iterator[tuple[ast.stmt, str]]:
    """Give every statement with where it stands: on the module, in a function, or in the program's own part."""
    for statement in body:
        yield statement, place
        inner = place
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = "function"
        elif isinstance(statement, ast.With) and "SystemExit" in ast.unparse(statement.items[0]):
            inner = "program"  # a test of an exit
        elif isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test):
            inner = "program"
        for _, value in ast.iter_fields(statement):
            if isinstance(value, list):
                yield from _statements([part for part in value if isinstance(part, ast.stmt)], inner)
                for handler in value:
                    if isinstance(handler, ast.ExceptHandler | ast.match_case):
                        yield from _statements(handler.body, inner)


def _calls_of(statement: ast.stmt) -> Iterator[ast.Call]:
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Call):
            yield node
        todo += [
            part
            for part in ast.iter_child_nodes(node)
            if not isinstance(part, ast.stmt | ast.ExceptHandler | ast.match_case)
        ]
