"""Read what a Python text replaces by stand-ins: mock.patch, monkeypatch, plain assignment, sys.modules."""

import ast
from collections.abc import Iterable, Iterator

from unstuck.verify.tamper.python_form import dotted
from unstuck.verify.tamper.suite import Patch

_SETTERS = frozenset({"setattr", "delattr"})


def patches_in(nodes: Iterable[ast.AST], *, everywhere: bool = False) -> Iterator[Patch]:
    """Give every replacement inside these nodes."""
    seen: set[int] = set()
    for root in nodes:
        for node in ast.walk(root):
            if id(node) in seen:
                continue
            seen.add(id(node))
            for target in _targets(node):
                yield Patch(target=target, line=getattr(node, "lineno", 1), everywhere=everywhere)


def _targets(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call):
        yield from _of_call(node)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and dotted(target.value).endswith("modules"):
                yield from _text(target.slice)
            elif (
                isinstance(target, ast.Attribute)
                and _is_stand_in(node.value)
                and not dotted(target).startswith("self.")
            ):
                yield dotted(target)


def _of_call(call: ast.Call) -> Iterator[str]:
    name = dotted(call.func)
    parts = name.split(".")
    if any(word.arg == "wraps" for word in call.keywords):
        return
    if (parts[-1] == "object" and "patch" in parts) or parts[-1] in _SETTERS:
        yield from _of_owner(call.args)
    elif parts[-1] == "patch":
        yield from _text(call.args[0]) if call.args else ()
    elif parts[-1] == "multiple" and "patch" in parts and call.args:
        owner = next(_text(call.args[0]), dotted(call.args[0]))
        yield from (f"{owner}.{word.arg}" for word in call.keywords if word.arg)
    elif name.endswith("modules.update") and call.args and isinstance(call.args[0], ast.Dict):
        for key in call.args[0].keys:
            yield from _text(key) if key is not None else ()
    elif parts[-1] in {"setitem", "dict"} and call.args and dotted(call.args[0]).endswith("sys.modules"):
        for arg in call.args[1:2]:
            yield from _text(arg)
            if isinstance(arg, ast.Dict):
                for key in arg.keys:
                    yield from _text(key) if key is not None else ()


def _of_owner(args: list[ast.expr]) -> Iterator[str]:
    if len(args) >= 2 and isinstance(args[1], ast.Constant) and isinstance(args[1].value, str):  # noqa: PLR2004 - owner, name
        owner = next(_text(args[0]), dotted(args[0]))
        yield f"{owner}.{args[1].value}"
    elif args:
        yield from _text(args[0])


def _text(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))


def _is_stand_in(value: ast.expr) -> bool:
    if isinstance(value, ast.Lambda | ast.Name):
        return True
    return isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in {
        "Mock", "MagicMock", "AsyncMock", "SimpleNamespace", "create_autospec", "ModuleType", "partial",
    }  # fmt: skip
