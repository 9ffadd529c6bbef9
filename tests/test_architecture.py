"""The layer rules, as tests: who may import whom, and how long a module or function may be."""

import ast
from pathlib import Path

import pytest

from unstuck.decide.profile_files import profiles
from unstuck.diagnosis.kinds import KINDS, Kind

ROOT = Path(__file__).parents[1] / "src" / "unstuck"
MODULES = sorted(ROOT.rglob("*.py"))

SCRIPTS = {"process/shim.py", "agents/player.py"}
"""Run as a program of its own, so that nothing of the package is loaded around an agent."""


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


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
