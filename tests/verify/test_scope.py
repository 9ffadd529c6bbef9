"""Claims are held against the facts of the tree."""

import pytest

from unstuck.verify.change import Change
from unstuck.verify.change_audit import claimed_files, missing_files, outside_scope

TOUCHED = (Change(path="src/a.py", old="", new="x = 1\n"), Change(path="docs/b.md", old=None, new="b\n"))


@pytest.mark.parametrize(
    ("declared", "outside"),
    [
        pytest.param(("src/a.py", "docs/b.md"), [], id="all are named"),
        pytest.param(("src/a.py",), ["docs/b.md"], id="one is not"),
        pytest.param(("src/",), ["docs/b.md"], id="a folder is named"),
        pytest.param(("**/*.md", "./src/a.py"), [], id="a pattern is named"),
        pytest.param((), [], id="no fence"),
    ],
)
def test_a_file_outside_the_tasks_files_is_told(declared: tuple[str, ...], outside: list[str]) -> None:
    found = outside_scope(TOUCHED, declared)
    assert [one.path for one in found] == outside
    assert {one.severity for one in found} <= {"warn"}


def test_policy_may_make_the_fence_reject() -> None:
    assert [one.severity for one in outside_scope(TOUCHED, ("src/a.py",), "reject")] == ["reject"]


def test_files_that_tools_write_need_not_be_named() -> None:
    locks = [
        Change(path=path, old="1", new="2")
        for path in ("uv.lock", "package-lock.json", "go.sum", "src/pkg/__init__.py")
    ]
    assert outside_scope(locks, ("src/a.py",)) == ()


@pytest.mark.parametrize(
    ("said", "paths"),
    [
        pytest.param("I created `src/shop/cart.py` and tests/test_cart.py.", ("src/shop/cart.py", "tests/test_cart.py"), id="a sentence"),
        pytest.param("Updated:\n- ./a.ts", (), id="a list below the word is not read"),
        pytest.param("Fixed by upgrading to 1.2.3, see https://example.org/a.html", (), id="versions and addresses"),
        pytest.param("Look at src/a.py for details.", (), id="mentioned, not claimed"),
        pytest.param("added src/a.py, modified src/a.py", ("src/a.py",), id="twice"),
    ],
)  # fmt: skip
def test_claimed_files_are_read_from_what_the_agent_says(said: str, paths: tuple[str, ...]) -> None:
    assert claimed_files(said) == paths


def test_a_claimed_file_that_does_not_exist_is_told() -> None:
    said = "I created src/new.py, updated src/a.py and wrote src/old.py."
    assert missing_files(said, {"src/a.py"}, gone={"src/old.py"}) == ("src/new.py",)


def test_a_bare_name_counts_when_some_folder_holds_it() -> None:
    assert missing_files("I created cart.py.", {"src/shop/cart.py"}) == ()
    assert missing_files("I created cart.py.", set()) == ("cart.py",)
