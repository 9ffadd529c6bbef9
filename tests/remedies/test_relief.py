"""Remedies between two attempts: what is safe is done in the worktree, the rest is told."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from unstuck.app.remedy_runs import Relief
from unstuck.model.failure import Failure, Kind
from unstuck.remedies.chain import Expects, MakeFolder, Remove, Shell, Step, WriteFile
from unstuck.remedies.lessons_file import read_lessons
from unstuck.remedies.machine import lessons_path
from unstuck.remedies.performing import LocalToolbox


@pytest.fixture
def worktree(scratch: Path) -> Path:
    path = scratch / ".unstuck" / "worktrees" / "w0"
    subprocess.run(["git", "worktree", "add", "-q", "--detach", str(path)], cwd=scratch, check=True)
    return path


def step(operation: Shell | WriteFile | MakeFolder | Remove, **expects: tuple[str, ...]) -> Step:
    return Step(action="Do it", operation=operation, expected="It is done", expects=Expects(**expects))  # type: ignore[arg-type]  # names of lists


def test_a_lock_that_a_dead_git_left_in_the_worktree_is_removed(scratch: Path, worktree: Path) -> None:
    lock = scratch / ".git" / "worktrees" / "w0" / "index.lock"
    lock.touch()
    os.utime(lock, (time.time() - 600,) * 2)
    failure = Failure(
        kind=Kind.RESOURCE_BUSY, summary="a lock", detail=f"fatal: Unable to create '{lock}': File exists.\n"
    )
    done = Relief(scratch).relieve(failure, "git add -A", worktree)
    assert [sentence.split(":")[0] for sentence in done] == ["Remedy remove_stale_lock"]
    assert not lock.exists()
    assert Relief(scratch).relieve(failure, "git add -A", worktree) == (), "doing it again finds nothing to do"


def test_a_lock_of_the_users_own_checkout_is_left_alone(scratch: Path, worktree: Path) -> None:
    lock = scratch / ".git" / "index.lock"
    lock.touch()
    os.utime(lock, (time.time() - 600,) * 2)
    failure = Failure(
        kind=Kind.RESOURCE_BUSY, summary="a lock", detail=f"fatal: Unable to create '{lock}': File exists.\n"
    )
    assert Relief(scratch).relieve(failure, "git add -A", worktree) == ()
    assert lock.exists()


def test_a_full_disk_costs_caches_of_the_worktree_and_nothing_of_anybody_elses(scratch: Path, worktree: Path) -> None:
    for folder in (scratch, worktree):
        (folder / ".pytest_cache").mkdir()
        (folder / ".pytest_cache" / "blob").write_bytes(b"x" * 5000)
        (folder / "notes.tmp").write_text("mine")
    (worktree / "__pycache__").symlink_to(scratch / "src")
    failure = Failure(kind=Kind.DISK_FULL, summary="full", detail="OSError: [Errno 28] No space left on device\n")
    assert Relief(scratch).relieve(failure, "make test", worktree)
    assert not (worktree / ".pytest_cache").exists()
    assert (scratch / ".pytest_cache" / "blob").exists()
    assert (worktree / "notes.tmp").exists()
    assert (scratch / "src" / "b.py").exists(), "links are not followed"


def test_a_cache_that_git_tracks_is_not_ours(scratch: Path) -> None:
    (scratch / ".ruff_cache").mkdir()
    (scratch / ".ruff_cache" / "kept").write_bytes(b"x" * 5000)
    subprocess.run(["git", "add", "-f", ".ruff_cache"], cwd=scratch, check=True)
    failure = Failure(kind=Kind.DISK_FULL, summary="full", detail="No space left on device\n")
    assert Relief(scratch).relieve(failure, "make", scratch) == ()
    assert (scratch / ".ruff_cache" / "kept").exists()


def test_what_a_check_would_see_is_advice_and_never_done(scratch: Path, worktree: Path) -> None:
    text = "cp: cannot create regular file 'out/b.txt': No such file or directory\n"
    failure = Failure(kind=Kind.CHECK_FAILED, summary="A check fails", detail=text)
    assert Relief(scratch).relieve(failure, "cp a.txt out/b.txt", worktree) == ()
    assert not (worktree / "out").exists()
    assert any("mkdir -p -- out" in line for line in Relief(scratch).advise(failure, "cp a.txt out/b.txt", worktree))


def test_a_brief_holds_nothing_that_nobody_allowed(scratch: Path, worktree: Path) -> None:
    failure = Failure(kind=Kind.COMMAND_NOT_FOUND, summary="jq is missing", detail="bash: zzjq: command not found\n")
    (worktree / "x").write_text("x")
    offenders = [
        line
        for line in Relief(scratch).advise(failure, "zzjq . x", worktree)
        if "(privileged)" in line or "apt-get" in line
    ]
    assert offenders == []


def test_a_run_learns_from_the_attempt_after_a_remedy(scratch: Path, worktree: Path) -> None:
    lock = scratch / ".git" / "worktrees" / "w0" / "index.lock"
    failure = Failure(
        kind=Kind.RESOURCE_BUSY, summary="a lock", detail=f"fatal: Unable to create '{lock}': File exists.\n"
    )
    relief = Relief(scratch)
    for _ in range(2):
        lock.touch()
        os.utime(lock, (time.time() - 600,) * 2)
        assert relief.relieve(failure, "git add -A", worktree)
    relief.passed(worktree)
    (counts,) = read_lessons(lessons_path(scratch)).counts.values()
    assert (counts.tries, counts.successes) == (2, 1), "the lock came back once, and once it did not"


def test_failing_tests_have_no_ways_out_of_this_kind(scratch: Path, worktree: Path) -> None:
    failure = Failure(
        kind=Kind.TEST_FAILED, summary="1 failed", detail="FAILED tests/test_a.py::test_x - assert 1 == 2\n"
    )
    assert Relief(scratch).advise(failure, "pytest", worktree) == ()


# --- the toolbox ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["../outside.txt", "/etc/hostname", ".", "..", ".git", "link/x", ""], ids=repr)
def test_nothing_outside_the_workspace_is_ever_deleted(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    (root / ".git").mkdir(parents=True)
    (tmp_path / "outside.txt").write_text("x")
    (tmp_path / "x").write_text("x")
    (root / "link").symlink_to(tmp_path)
    toolbox = LocalToolbox(cwd=root, root=root)
    assert not toolbox.use(step(Remove(paths=(path,)))).ok
    assert (tmp_path / "outside.txt").exists()
    assert (tmp_path / "x").exists()
    assert (root / ".git").exists()


def test_what_a_failed_way_wrote_is_taken_back(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("before")
    (tmp_path / "old.txt").chmod(0o640)
    toolbox = LocalToolbox(cwd=tmp_path, root=tmp_path)
    assert toolbox.use(step(WriteFile(path="old.txt", content="after"))).ok
    assert (tmp_path / "old.txt").stat().st_mode & 0o777 == 0o640
    assert toolbox.use(step(WriteFile(path="new/deep.txt", content="x"))).ok
    assert toolbox.use(step(MakeFolder(path="made/too"))).ok
    toolbox.settle(keep=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.txt"]
    assert (tmp_path / "old.txt").read_text() == "before"


@pytest.mark.parametrize(
    ("operation", "expects", "why"),
    [
        (Shell(argv=("true",)), {"exists": ("nowhere",)}, "nowhere does not exist"),
        (Shell(argv=("false",)), {}, "exit code 1"),
        (Shell(argv=("sleep", "60"), timeout=0.2), {}, "did not end within 0.2 seconds"),
        (Shell(argv=("no-such-program-here",)), {}, "not"),
    ],
    ids=["promise", "exit", "hang", "missing"],
)
def test_a_step_that_does_not_keep_its_promise_has_failed(
    tmp_path: Path, operation: Shell, expects: dict[str, tuple[str, ...]], why: str
) -> None:
    done = LocalToolbox(cwd=tmp_path, root=tmp_path).use(step(operation, **expects))
    assert not done.ok
    assert why in done.because
