"""Reading trees: any file name, any content, a few git commands."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from unstuck.git import contents
from unstuck.git.contents import MAX_FILE_BYTES, parse_differences, raw_difference, tree_files
from unstuck.git.git_command import Git
from unstuck.model.changes import Change

ODD = ("-dash", "new\nline", "a:b", "über.py", os.fsdecode(b"caf\xe9.txt"), "'quote\".py")


@pytest.fixture
def git(tmp_path: Path) -> Git:
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    return Git(tmp_path)


def commit(git: Git, files: Mapping[str, bytes | None]) -> str:
    for name, content in files.items():
        if content is None:
            (git.cwd / name).unlink()
        else:
            (git.cwd / name).write_bytes(content)
    git("add", "-A")
    git.using(GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b")(
        "commit", "-q", "-m", "x"
    )
    return git("rev-parse", "HEAD")


def changes(git: Git, base: str, tree: str) -> tuple[Change, ...]:
    return contents.changes(git, tuple(parse_differences(raw_difference(git, base, tree))))


def test_every_change_comes_with_both_texts_whatever_its_name(git: Git) -> None:
    base = commit(git, {**dict.fromkeys(ODD, b"old\n"), "same": b"1"})
    tree = commit(git, {**dict.fromkeys(ODD[1:], b"new\r\n"), ODD[0]: None, "added": b"x"})
    found = {change.path: (change.old, change.new) for change in changes(git, base, tree)}
    assert found == {**dict.fromkeys(ODD[1:], ("old\n", "new\r\n")), ODD[0]: ("old\n", None), "added": (None, "x")}


def test_binary_and_huge_files_are_named_and_not_read(git: Git) -> None:
    base = commit(git, {"a": b"text"})
    tree = commit(git, {"a": b"\0\1", "b": b"x" * (MAX_FILE_BYTES + 1), "c": b"latin \xe9"})
    found = {change.path: (change.binary, change.new) for change in changes(git, base, tree)}
    assert found == {"a": (True, ""), "b": (True, ""), "c": (False, "latin \N{REPLACEMENT CHARACTER}")}


def test_a_link_and_a_mode_are_changes(git: Git) -> None:
    base = commit(git, {"a": b"x", "run": b"#!"})
    (git.cwd / "a").unlink()
    (git.cwd / "a").symlink_to("run")
    (git.cwd / "run").chmod(0o755)
    found = {change.path: (change.new, change.new_mode) for change in changes(git, base, commit(git, {}))}
    assert found == {"a": ("run", 0o120000), "run": ("#!", 0o100755)}


def test_all_files_of_a_tree_are_listed(git: Git) -> None:
    tree = commit(git, {"a": b"one", "b": b"\0"})
    assert set(tree_files(git, tree)) == {"a", "b"}
