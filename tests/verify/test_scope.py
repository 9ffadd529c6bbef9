"""What a change touches is held against the Files of its task."""

import pytest

from unstuck.model.changes import Change
from unstuck.verify.examining import outside_scope

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
    assert outside_scope(locks, ("src/a.py",)) == []
