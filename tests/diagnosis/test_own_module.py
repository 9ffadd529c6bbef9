"""A module that the task has to write is the agent's work; a package that is not installed is the machine's."""

import pytest

from unstuck.diagnosis.missing import is_own_module, is_unwritten

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


SAID_OF_OURS = (
    ("acceptance 1.4: No module named 'discount'", "discount.py"),
    ("Cannot find module '#lib/discount' from 'test/a.test.js'", "lib/discount.js"),
    ("main.go:4:2: package example.com/shop/discount is not in std (/usr/lib/go)", "discount/discount.go"),
    ("Caused by: java.lang.ClassNotFoundException: com.acme.Discount", "src/main/java/com/acme/Discount.java"),
    ("Can't locate Shop/Discount.pm in @INC", "lib/Shop/Discount.pm"),
    ("/bin/sh: 1: discount: not found", "bin/discount"),
)
SAID_OF_THEIRS = (
    ("acceptance 1.4: No module named 'discount'", "package.py"),
    ("error: a package was not found: 'left-pad'", "package.json"),
    ("/bin/sh: 1: jq: not found", "line.py"),
)


@pytest.mark.parametrize(("said", "own"), [(SAID_OF_OURS, True), (SAID_OF_THEIRS, False)], ids=["ours", "theirs"])
def test_a_line_that_names_a_file_still_to_be_written_is_about_the_work(
    said: tuple[tuple[str, str], ...], *, own: bool
) -> None:
    assert [line for line, file in said if is_unwritten(line, [file], ()) is not own] == []
    assert [line for line, file in said if is_unwritten(line, [file], {file})] == []
