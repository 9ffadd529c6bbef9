"""The laws of the house, as tests. What they measure is in `tests/house.py`; `lint-imports` checks which room may import which."""

import ast
import re
from collections import Counter

from tests.house import (
    GROUND,
    MODULES,
    ROOT,
    SCRIPTS,
    Module,
    callers,
    edges_without_the_word,
    up_to_date,
    words_without_an_edge,
)

from unstuck.model.failure import KINDS, Kind
from unstuck.policy.profiles import profiles

MOST_MODULES, MOST_LINES, LONGEST_FUNCTION = 20, 500, 60
RIDDLES = {"bench", "benches", "deed", "deeds", "desk", "practice", "standing", "surgery", "ways"}
"""Names that the code had, and that told nobody what they name."""
ROOTS = ("compose", "cli", "hook", "library", "mcp", "web")
"""Where edges are put together: the composition root, and the faces on it."""
LIBRARY = {"most_decisions_of_lineage", "compile_catalog", "table"}
"""Called by the scripts that compile the catalogue and write the pages of the reference, or by a library's user."""


def test_a_module_is_pure_unless_it_says_that_it_is_an_edge() -> None:
    assert edges_without_the_word() == []


def test_a_module_that_says_that_it_is_an_edge_is_one() -> None:
    assert words_without_an_edge() == []


def test_edges_of_different_rooms_meet_only_through_ports_and_on_the_ground() -> None:
    """An edge stands on the ground (processes, git) and on its own room; what else it needs is handed to it."""
    offenders = [
        f"{module.name} → {used.name}"
        for module in MODULES.values()
        if module.is_edge and module.room not in ROOTS and module.name != "unstuck.testing"
        for used in module.uses
        if used.is_edge and used.room not in {module.room, "", *GROUND} and (module.room, used.room) not in SAME_STAGE
    ]
    assert offenders == []


SAME_STAGE = {("line", "verify"), ("fleet", "line"), ("fleet", "verify"), ("files", "journal")}
"""Verification is a stage of the line, with a room of its own; both are handed a kit. A fleet does what the line does, on
another machine; and the store of a repository is a journal in its place."""


def test_a_folder_a_module_and_a_function_fit_in_the_head() -> None:
    offenders = []
    folders = Counter(module.path.parent for module in MODULES.values() if module.path.name != "__init__.py")
    offenders += [f"{folder.name}: {count} modules" for folder, count in folders.items() if count > MOST_MODULES]
    for module in MODULES.values():
        if (lines := len(module.text.splitlines())) > MOST_LINES:
            offenders.append(f"{module.name}: {lines} lines")
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > LONGEST_FUNCTION:
                    offenders.append(f"{module.name}.{node.name}: {length} lines")
    assert offenders == []


def test_no_two_modules_have_the_same_name() -> None:
    names = Counter(module.path.name for module in MODULES.values() if not module.path.name.startswith("__"))
    assert [name for name, count in names.items() if count > 1] == []


def test_names_say_what_a_thing_is_to_someone_who_has_not_read_it() -> None:
    told = {
        (module.name, word)
        for module in MODULES.values()
        for node in module.nodes
        for name in (
            getattr(node, "id", ""),
            getattr(node, "name", ""),
            getattr(node, "arg", ""),
            getattr(node, "attr", ""),
        )
        for word in RIDDLES.intersection(re.findall(r"[a-z]+", re.sub(r"(?<!^)(?=[A-Z])", "_", name or "").lower()))
    }
    assert told - {("unstuck.cli.reference_commands", "bench")} == set(), "the command's own name is the exception"


def test_a_module_does_no_work_at_import() -> None:
    """Only definitions, constants and imports stand at the top; a constant may call a few pure constructors."""
    allowed = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.If)  # fmt: skip
    offenders = [
        f"{module.name}:{node.lineno}"
        for module in MODULES.values()
        if module.name not in SCRIPTS
        for node in module.tree.body
        if not isinstance(node, allowed) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    assert offenders == []


def test_every_kind_has_its_facts_and_its_ladder() -> None:
    assert set(KINDS) == set(Kind)
    assert [kind for kind in Kind for policy in profiles().values() if len(policy.ladder_of(kind)) == 0] == []


def test_every_capability_has_a_caller_outside_the_tests() -> None:
    assert [name for name in callers() if name not in LIBRARY] == []


def test_the_page_about_the_architecture_has_the_figures_of_today() -> None:
    """Make them anew with: python scripts/write_architecture.py."""
    page = (ROOT.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert page == up_to_date(page)


def test_the_measure_itself_sees_an_edge() -> None:
    """A check of the check: a module that opens a file is found, one that only names a path is not."""
    opening = Module.of("unstuck.x.opening", "def read(path):\n    return path.read_text()\n")
    naming = Module.of("unstuck.x.naming", "from pathlib import PurePath\n\nHERE = PurePath('a')\n")
    assert (opening.touches, naming.touches) == ({".read_text"}, set())
