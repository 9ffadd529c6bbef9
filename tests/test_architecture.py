"""The rules of the code base that a program can check; `lint-imports` checks which package may import which."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import unstuck
from unstuck.model.failure import KINDS, Kind
from unstuck.policy.profiles import profiles
from unstuck.shipped import shipped_table

SOURCE = Path(__file__).parents[1] / "src"
PACKAGE = SOURCE / "unstuck"
MODULES = {
    path: ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
    if "catalog" not in path.parts
}

MODULE_LIMIT = 226  # 200 at the end of issue 36
LINES_PER_MODULE = 400
LINES_PER_FUNCTION = 60
MODULES_PER_PACKAGE = 15

TOO_LONG = {
    "remedies/machine.py",
    "remedies/performing.py",
    "remedies/situation.py",
}
"""Modules over the limit; the list may only shrink."""

PURE_PACKAGES = ("model", "diagnosis", "policy", "plans")
READS_FILES = {"diagnosis/rule_files.py", "diagnosis/rulebook.py", "plans/plan_file.py"}
"""The modules of pure packages that read files."""
IO_MODULES = frozenset(
    {"os", "subprocess", "sqlite3", "socket", "threading", "time", "random", "shutil", "tempfile", "signal", "fcntl"}
)

PROGRAMS = {"process/shim.py", "agents/scripted_agent.py"}
"""Run as programs of their own: they do work when they are loaded."""
CALLED_BY_SCRIPTS = {"most_decisions_of_lineage", "compile_catalog", "table"}
"""Functions that only `scripts/` or users of the library call."""


def short(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def public_definitions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node


def test_there_are_at_most_200_modules() -> None:
    assert len([path for path in MODULES if path.name != "__init__.py"]) <= MODULE_LIMIT


def test_a_package_has_at_most_15_modules() -> None:
    counts = Counter(short(path.parent) for path in MODULES if path.name != "__init__.py")
    assert {package: count for package, count in counts.items() if count > MODULES_PER_PACKAGE} == {}


def test_a_module_has_at_most_400_lines() -> None:
    long = {short(path) for path in MODULES if len(path.read_text(encoding="utf-8").splitlines()) > LINES_PER_MODULE}
    assert long == TOO_LONG


def test_a_function_has_at_most_60_lines() -> None:
    long = [
        f"{short(path)}: {node.name}"
        for path, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno >= LINES_PER_FUNCTION
    ]
    assert long == []


def test_no_two_modules_have_the_same_name() -> None:
    names = Counter(path.name for path in MODULES if not path.name.startswith("__"))
    assert [name for name, count in names.items() if count > 1] == []


def test_pure_packages_import_no_module_that_does_io() -> None:
    offenders = [
        f"{short(path)} imports {name}"
        for path, tree in MODULES.items()
        if path.relative_to(PACKAGE).parts[0] in PURE_PACKAGES and short(path) not in READS_FILES
        for node in ast.walk(tree)
        for name in imported_modules(node)
        if name.split(".")[0] in IO_MODULES
    ]
    assert offenders == []


def imported_modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []


def test_a_module_does_no_work_at_import() -> None:
    """Only definitions, constants and imports stand at the top of a module."""
    allowed = (
        *(ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
        *(ast.Assign, ast.AnnAssign, ast.If),
    )
    offenders = [
        f"{short(path)}:{node.lineno}"
        for path, tree in MODULES.items()
        if short(path) not in PROGRAMS
        for node in tree.body
        if not isinstance(node, allowed) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    assert offenders == []


def test_every_failure_kind_has_facts_and_a_ladder_in_every_profile() -> None:
    assert set(KINDS) == set(Kind)
    assert [kind for kind in Kind for policy in profiles().values() if len(policy.ladder_of(kind)) == 0] == []


def test_every_public_function_and_class_is_used_outside_the_tests() -> None:
    words = Counter(word for path in MODULES for word in re.findall(r"\w+", path.read_text(encoding="utf-8")))
    words.update(name for names in shipped_table("chains")["filled_by"].values() for name in names.split())
    unused = {node.name for tree in MODULES.values() for node in public_definitions(tree) if words[node.name] == 1}
    assert unused - CALLED_BY_SCRIPTS == set()


def test_the_architecture_page_names_files_and_functions_that_exist() -> None:
    page = (SOURCE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    missing = []
    for name, symbols in re.findall(r"`([\w/]+/[\w.]+\.(?:py|toml|json))(?:: ([\w, ]+))?`", page):
        path = PACKAGE / name if not name.startswith("tests/") else SOURCE.parent / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if not path.exists() and "NAME" not in name:
            missing.append(name)
        missing += [f"{name}: {symbol}" for symbol in filter(None, symbols.split(", ")) if symbol not in text]
    assert missing == []


def test_no_package_hides_a_public_name() -> None:
    packages = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    modules = {path.stem for path in PACKAGE.glob("*.py")}
    assert set(unstuck.__all__) & (packages | modules) == set()
