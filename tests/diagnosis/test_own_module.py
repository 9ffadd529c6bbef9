"""A module that the task has to write is the agent's work; a package that is not installed is the machine's."""

import pytest

from unstuck.diagnosis.own_module import is_own_module

FILES = ("src/parser.py", "web/src/lib/format.ts", "internal/store/store.go")
PATHS = ("README.md", "src/shop/__init__.py", "src/shop/cart.py", "app/main.py", "tests/helpers.py", "packages/core/src/money.ts",
         "node_modules/lodash/index.js", "docs/requests.md", "vendor/yaml/yaml.py", "scripts/release.py")  # fmt: skip

OURS = ("parser", "src.parser", "lib/format", "./utils", "../db", "crate::lexer", "@/components/button", "shop", "shop.prices",
        "helpers", "tests.factories", "app.views", "money", "scripts.build", "example.com/x/internal/store", "'shop.cart'")  # fmt: skip
THEIRS = (
    "requests",
    "yaml",
    "lodash",
    "react",
    "@types/jest",
    "numpy.linalg",
    "github.com/pkg/errors",
    "pydantic",
    "",
    "express",
)


@pytest.mark.parametrize(("names", "own"), [(OURS, True), (THEIRS, False)], ids=["ours", "theirs"])
def test_a_missing_module_is_the_projects_where_its_files_or_paths_say_so(names: tuple[str, ...], *, own: bool) -> None:
    assert [name for name in names if is_own_module(name, FILES, PATHS) is not own] == []
