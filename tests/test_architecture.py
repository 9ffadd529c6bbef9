"""The layer rules, as tests: who may import whom, and how long a module or function may be."""

import ast
from pathlib import Path

import pytest

from unstuck import api
from unstuck.adapters.policies import profiles
from unstuck.core.failure import KINDS, Kind

ROOT = Path(__file__).parents[1] / "src" / "unstuck"
MODULES = sorted(ROOT.rglob("*.py"))

ALLOWED = {
    "core": {"core"},
    "errors": set[str](),
    "ports": {"core", "ports"},
    "config": {"core"},
    "engine": {"core", "ports", "errors", "config", "engine"},
    "adapters": {"core", "ports", "errors", "config", "adapters"},
    "surfaces": {"core", "api", "judge", "surgery", "practice", "errors", "benches", "surfaces"},
    "benches": {"core", "api", "judge", "surgery", "adapters", "ports", "errors", "benches"},
    "api": {"api", "core", "ports", "errors", "config", "engine", "adapters", "run", "verifying", "judge"},
    "verifying": {"core", "ports", "errors", "config", "engine", "adapters", "judge"},
    "run": {"core", "ports", "errors", "config", "engine", "adapters", "judge", "practice"},
    "surgery": {"core", "ports", "errors", "adapters", "engine", "judge"},
    "practice": {"core", "errors", "adapters", "engine", "judge", "surgery"},
    "judge": {"core", "ports", "errors", "adapters"},
}
PURE = {
    "re", "json", "ast", "binascii", "tokenize", "tomllib", "io", "graphlib", "datetime", "dataclasses", "enum", "typing", "collections", "functools", "itertools", "math",
    "hashlib", "difflib", "unicodedata", "string", "shlex", "types", "importlib", "unstuck", "warnings",
}  # fmt: skip
SCRIPTS = {"adapters/shim.py", "adapters/agents/player.py"}
"""Run as a program of its own, so that nothing of the package is loaded around an agent."""


def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module or "")
    return names


def layer(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_keeps_to_its_layer(path: Path) -> None:
    ours = {part for used in imports(path) if used.startswith("unstuck.") for part in [used.split(".")[1]]}
    assert ours <= ALLOWED.get(layer(path), ours)


@pytest.mark.parametrize("path", sorted((ROOT / "core").rglob("*.py")), ids=name)
def test_the_core_does_no_io(path: Path) -> None:
    assert {used.split(".")[0] for used in imports(path)} <= PURE


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_fits_in_the_head(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 350


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_function_fits_on_a_screen(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < 60, f"{node.name} is too long"


@pytest.mark.parametrize("path", [path for path in MODULES if name(path) not in SCRIPTS], ids=name)
def test_a_module_does_no_work_at_import(path: Path) -> None:
    """Only definitions, constants and imports stand at the top; a constant may call a few pure constructors."""
    allowed = (
        ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.If,
    )  # fmt: skip
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        assert docstring or isinstance(node, allowed), f"line {node.lineno}"


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_has_its_facts_and_its_ladder(kind: Kind) -> None:
    assert KINDS[kind].means
    assert all(policy.ladder_of(kind) for policy in profiles().values())


def test_every_name_of_the_facade_is_found_in_its_part() -> None:
    named = sorted(name for names in api.PARTS.values() for name in names)
    assert named == sorted(api.__all__)
    assert all(getattr(api, name).__name__ == name for name in named)
