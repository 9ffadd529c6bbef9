"""Finding the user's repository, and the sentences for where a run cannot work."""

import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from tests.git.opening import workspace

from unstuck.app.journal_location import begin_anew, journal_path
from unstuck.git import repository
from unstuck.git.git_command import Git
from unstuck.git.repository import Identity, find_repository, slots_folder
from unstuck.journal.sqlite import SqliteJournal
from unstuck.model.errors import BadUsage, Unavailable
from unstuck.plans.plan_file import open_plan
from unstuck.shipped import shipped


def test_a_checkout_is_found_from_a_folder_inside_it(scratch: Path) -> None:
    found = find_repository(scratch / "src")
    assert found.root == scratch
    assert found.git_dir == found.common_dir == scratch / ".git"
    assert found.head == Git(scratch)("rev-parse", "HEAD")
    assert found.branch == "refs/heads/main"


def test_a_detached_head_has_no_branch(scratch: Path) -> None:
    Git(scratch)("checkout", "--quiet", "--detach")
    assert find_repository(scratch).branch is None


def test_a_linked_worktree_of_the_users_is_a_checkout(scratch: Path, tmp_path: Path) -> None:
    Git(scratch)("worktree", "add", "--quiet", str(tmp_path / "linked"))
    found = find_repository(tmp_path / "linked")
    assert (found.root, found.common_dir) == (tmp_path / "linked", scratch / ".git")
    assert found.git_dir == scratch / ".git" / "worktrees" / "linked"
    assert found.branch == "refs/heads/linked"


def test_a_folder_without_a_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="not a git repository") as caught:
        find_repository(tmp_path)
    assert "git init" in caught.value.hint


def test_a_bare_repository_is_refused(tmp_path: Path) -> None:
    Git(tmp_path)("init", "--quiet", "--bare", "bare.git")
    with pytest.raises(BadUsage, match="bare"):
        find_repository(tmp_path / "bare.git")


def test_the_inside_of_a_git_folder_is_refused(scratch: Path) -> None:
    with pytest.raises(BadUsage, match=r"inside a \.git folder"):
        find_repository(scratch / ".git")


def test_a_repository_without_commits_is_refused(tmp_path: Path) -> None:
    Git(tmp_path)("init", "--quiet", "empty")
    with pytest.raises(Unavailable, match="no commits yet"):
        find_repository(tmp_path / "empty")


def test_our_own_slots_and_repositories_inside_of_them_are_refused(scratch: Path) -> None:
    work = workspace(scratch)
    slot = work.prepare(0, work.tip())
    Git(slot)("init", "--quiet", "inner")
    for folder in (slot / "src", slot / "inner"):
        with pytest.raises(BadUsage, match="own slots") as caught:
            find_repository(folder)
        assert str(scratch) in caught.value.hint


def test_slots_stay_with_a_repository_that_is_moved_and_not_with_its_copy(scratch: Path, tmp_path: Path) -> None:
    before = slots_folder(find_repository(scratch))
    copy = shutil.copytree(scratch, tmp_path / "copy", symlinks=True)
    moved = scratch.rename(tmp_path / "moved")
    assert slots_folder(find_repository(moved)) == before
    assert slots_folder(find_repository(copy)) != before
    assert slots_folder(find_repository(moved), "~/elsewhere").is_relative_to(Path.home() / "elsewhere")


@pytest.mark.parametrize("text", ["git version 2.37.9", "git version 1.9.1 (Apple Git-1)", "git"])
def test_an_old_git_is_refused(text: str) -> None:
    with pytest.raises(Unavailable, match="too old"):
        repository._check_version(text)


@pytest.mark.parametrize("text", ["git version 2.38.0", "git version 2.38.rc1", "git version 3.0.1.windows.2"])
def test_a_new_git_is_taken(text: str) -> None:
    repository._check_version(text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, b".unstuck/\n"),
        (b"", b".unstuck/\n"),
        (b"*.tmp", b"*.tmp\n.unstuck/\n"),
        (b"# c\n*.tmp\n", b"# c\n*.tmp\n.unstuck/\n"),
        (b"/.unstuck\n*.tmp", b"/.unstuck\n*.tmp"),
        (b"\xff\xfe\n", b"\xff\xfe\n.unstuck/\n"),
    ],
    ids=["no file", "empty", "no last newline", "ordinary", "there already", "not text"],
)
def test_our_folder_is_excluded_once(scratch: Path, before: bytes | None, after: bytes) -> None:
    exclude = scratch / ".git" / "info" / "exclude"
    exclude.unlink()
    exclude.parent.rmdir()
    if before is not None:
        exclude.parent.mkdir()
        exclude.write_bytes(before)
    found = find_repository(scratch)
    found.exclude_unstuck_folder()
    found.exclude_unstuck_folder()
    assert exclude.read_bytes() == after


def test_uncommitted_files_are_listed_whatever_their_names(scratch: Path) -> None:
    (scratch / "a.txt").write_text("changed\n")
    (scratch / "new\nline\r.txt").write_text("x")
    (scratch / "staged file").write_text("x")
    Git(scratch)("add", "staged file")
    assert sorted(find_repository(scratch).uncommitted()) == ["a.txt", "new\nline\r.txt", "staged file"]


def test_a_clean_checkout_has_nothing_uncommitted(scratch: Path) -> None:
    assert find_repository(scratch).uncommitted() == ()


def test_lfs_files_are_named(scratch: Path) -> None:
    assert find_repository(scratch).lfs_files() == ()
    (scratch / ".gitattributes").write_text("*.psd filter=lfs diff=lfs -text\n")
    (scratch / "a b.psd").write_text("version https://git-lfs.github.com/spec/v1\n")
    Git(scratch)("add", "-A")
    assert find_repository(scratch).lfs_files() == ("a b.psd",)


def test_submodules_are_named(scratch: Path, tmp_path: Path) -> None:
    assert find_repository(scratch).submodules() == ()
    library = tmp_path / "library"
    library.mkdir()
    git = Git(library)
    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "-m", "x")
    user = Git(scratch, settings=("protocol.file.allow=always",))
    user("submodule", "--quiet", "add", "--name", "lib", str(library), "vendor/library")
    user("commit", "--quiet", "-m", "submodule")
    assert [(entry.name, entry.path) for entry in find_repository(scratch).submodules()] == [("lib", "vendor/library")]


def test_commits_carry_the_users_name_or_else_ours(scratch: Path, own_git_configuration: Path) -> None:
    assert find_repository(scratch).identity() == Identity(name="Ada", email="ada@example.org")
    (own_git_configuration / ".gitconfig").write_text("")
    assert find_repository(scratch).identity() == Identity(name="unstuck", email="unstuck@localhost")


def test_looking_at_a_repository_changes_nothing_in_it(scratch: Path) -> None:
    subprocess.run(["touch", "-d", "2001-01-01", "a.txt"], cwd=scratch, check=True)
    before = (scratch / ".git" / "index").read_bytes()
    find_repository(scratch).uncommitted()
    assert (scratch / ".git" / "index").read_bytes() == before


def test_state_set_aside_again_within_a_second_is_kept_apart(scratch: Path) -> None:
    plan_file = open_plan(written(scratch / "tasks.md", "- [ ] 1.1 A\n"))
    ours, store = find_repository(scratch).unstuck_folder, find_repository(scratch).store
    ours.mkdir()
    for number in range(3):
        written(ours / "config.json", str(number))
        begin_anew(find_repository(scratch), plan_file, plan_file.read(), "tasks.md")
    assert sorted(path.read_text() for path in (store / "old").glob("*/config.json")) == ["0", "1", "2"]


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize("known", [1, 2, 3])
def test_a_journal_that_an_older_unstuck_left_is_taken_over(scratch: Path, known: int) -> None:
    ours = find_repository(scratch).unstuck_folder
    (ours / "logs").mkdir(parents=True)
    (ours / "logs" / "task-1.1.log").write_text("said\n")
    scripts = re.split(r"^-- Format .*\n", shipped("journal.sql"), flags=re.MULTILINE)[1 : known + 1]
    with closing(sqlite3.connect(ours / "journal.db")) as old:
        old.executescript("".join(scripts))
        old.execute("INSERT INTO events (run, at, body) VALUES ('r', 1.0, '{}')")
        old.commit()
    path = journal_path(find_repository(scratch))
    assert path == find_repository(scratch).store / "journal.db"
    assert (path.with_name("logs") / "task-1.1.log").read_text() == "said\n"
    with closing(SqliteJournal(path)) as journal:
        assert journal.runs() == ("r",)
        assert list(journal.requests(0)) == []
