"""Bringing a run home: the user's branch moves only where nothing of theirs can be lost."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import pytest
from tests.git.opening import workspace
from tests.waiting import wait_until

from unstuck.git.git_command import Git
from unstuck.git.merge_back import MergeBack
from unstuck.git.pruning import prune
from unstuck.git.repository import find_repository, slots_folder
from unstuck.model.landing import AlreadyMerged, FastForward, Landing, Merge, MergePlan, NotPossible

SOURCE = Path(__file__).parents[2] / "src"
MESSAGE = "Land 1.1\n\n# not a comment\n\nUnstuck-Task: 1.1\n"


class Run:
    """A run that has landed some files, and its way home."""

    def __init__(self, root: Path, mode: Literal["auto", "single"] = "auto") -> None:
        repository = find_repository(root)
        self.git = Git(root)
        self.root = root
        self.work = workspace(root)
        self.home = MergeBack(repository=repository, run="r1", identity=repository.identity(), mode=mode)

    def land(self, files: Mapping[str, str | None]) -> str:
        base = self.work.tip()
        path = self.work.prepare(0, base)
        for name, text in files.items():
            if text is None:
                (path / name).unlink()
            else:
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                (path / name).write_text(text)
        commit = self.work.land(
            Landing(tree=self.work.write_tree(0, base).id, base=base, message=MESSAGE, at=1_800_000_000)
        )
        assert commit is not None
        return commit

    def plan(self) -> MergePlan:
        return self.home.plan_merge(message="Bring run r1 home\n", at=1_800_000_001)

    def user_commits(self, name: str, text: str) -> str:
        (self.root / name).write_text(text)
        self.git("add", name)
        self.git("commit", "--quiet", "--only", "-m", "by hand", "--", name)
        return self.git("rev-parse", "HEAD")


def committed(run: Run, paths: list[str], message: str) -> str | NotPossible | None:
    """Commit a tick in each of these files."""
    ticked = b"- [x] 1.1\n"
    return run.home.commit_plan(paths, lambda given: dict.fromkeys(given, ticked), message=message, at=1_800_000_001)


def make_dirty_elsewhere(run: Run) -> None:
    """Change, stage, stash and leave lying about files that the run has nothing to do with."""
    (run.root / "src" / "b.py").write_text("stashed\n")
    run.git("stash", "push", "--quiet")
    (run.root / "src" / "b.py").write_text("staged\n")
    run.git("add", "src/b.py")
    (run.root / "src" / "b.py").write_text("staged and changed\n")
    (run.root / "staged new").write_text("x")
    run.git("add", "staged new")
    (run.root / "untracked\nfile").write_text("x")


def test_an_unmoved_branch_is_fast_forwarded(scratch: Path) -> None:
    run = Run(scratch)
    tip = run.land({"a.txt": "changed", "new/file": "x", "src/b.py": None})
    assert run.plan() == FastForward(commit=tip)
    assert run.home.apply_merge(tip) == AlreadyMerged(commit=tip)
    assert run.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert run.git("rev-parse", "HEAD") == tip
    assert run.git("status", "--porcelain") == ""
    assert (scratch / "new" / "file").read_text() == "x"
    assert run.plan() == AlreadyMerged(commit=tip) == run.home.apply_merge(tip)


def test_unrelated_dirt_survives_a_fast_forward_byte_for_byte(
    scratch: Path, fingerprint: Callable[[Path], Mapping[str, object]]
) -> None:
    run = Run(scratch)
    tip = run.land({"a.txt": "changed"})
    make_dirty_elsewhere(run)
    run.git("config", "merge.autoStash", "true")
    run.git("config", "branch.main.mergeOptions", "--no-ff")
    before = fingerprint(scratch)
    staged = run.git("ls-files", "--stage", "src/b.py", "staged new")
    assert run.plan() == FastForward(commit=tip)
    run.home.apply_merge(tip)
    after = fingerprint(scratch)
    assert {key: after[key] for key in ("status", "stash", "config", "HEAD")} == {
        key: before[key] for key in ("status", "stash", "config", "HEAD")
    }
    assert run.git("ls-files", "--stage", "src/b.py", "staged new") == staged
    files_before, files_after = before["files"], after["files"]
    assert isinstance(files_before, dict)
    assert isinstance(files_after, dict)
    assert {name for name in files_after if files_after[name] != files_before.get(name)} == {
        os.fsencode(scratch / "a.txt")
    }


def make_a_folder(root: Path) -> None:
    (root / "new").mkdir()
    (root / "new" / "mine").write_text("x")


IN_THE_WAY: dict[str, tuple[dict[str, str | None], Callable[[Path], object], str]] = {
    "changed": ({"a.txt": "run"}, lambda root: (root / "a.txt").write_text("mine"), "a.txt"),
    "staged": (
        {"a.txt": "run"},
        lambda root: (
            (root / "a.txt").write_text("mine"),
            Git(root)("add", "a.txt"),
            (root / "a.txt").write_text("a\n"),
        ),
        "a.txt",
    ),
    "deleted": ({"a.txt": "run"}, lambda root: (root / "a.txt").unlink(), "a.txt"),
    "untracked": ({"new": "run"}, lambda root: (root / "new").write_text("mine"), "new"),
    "untracked with the same content": ({"new": "run"}, lambda root: (root / "new").write_text("run"), "new"),
    "a folder there": ({"new": "run"}, make_a_folder, "new/mine"),
    "a file above": ({"new/file": "run"}, lambda root: (root / "new").write_text("mine"), "new"),
    "a link above": ({"new/file": "run"}, lambda root: (root / "new").symlink_to("src"), "new"),
    "a dangling link": ({"new": "run"}, lambda root: (root / "new").symlink_to("nowhere"), "new"),
    "removed by the run, changed by the user": (
        {"a.txt": None},
        lambda root: (root / "a.txt").write_text("mine"),
        "a.txt",
    ),
}


@pytest.mark.parametrize(("landed", "dirt", "named"), IN_THE_WAY.values(), ids=IN_THE_WAY.keys())
def test_a_file_of_the_users_in_the_way_is_a_refusal_that_touches_nothing(
    scratch: Path,
    fingerprint: Callable[[Path], Mapping[str, object]],
    landed: dict[str, str | None],
    dirt: Callable[[Path], object],
    named: str,
) -> None:
    run = Run(scratch)
    tip = run.land(landed)
    dirt(scratch)
    before = fingerprint(scratch)
    for answer in (run.plan(), run.home.apply_merge(tip)):
        assert isinstance(answer, NotPossible)
        assert answer.files == (named,)
        assert named in answer.reason
        assert "first." in answer.reason
    assert fingerprint(scratch) == before
    answer = run.plan()
    assert isinstance(answer, NotPossible)
    if "does not track" in answer.reason:
        assert answer.command == "git merge unstuck/r1"
    else:
        subprocess.run(answer.command, shell=True, cwd=scratch, check=True, capture_output=True)
        assert run.git("rev-parse", "HEAD") == tip


def test_an_ignored_file_of_the_users_is_not_overwritten(scratch: Path) -> None:
    run = Run(scratch)
    tip = run.land({".gitignore": "", "settings.log": "run"})
    (scratch / "settings.log").write_text("mine, and ignored")
    assert isinstance(run.plan(), NotPossible)
    assert isinstance(run.home.apply_merge(tip), NotPossible)
    assert (scratch / "settings.log").read_text() == "mine, and ignored"


def test_a_moved_branch_is_merged_once_the_caller_has_seen_the_tree(scratch: Path) -> None:
    run = Run(scratch)
    tip = run.land({"new": "run"})
    theirs = run.user_commits("theirs", "x")
    plan = run.plan()
    assert isinstance(plan, Merge)
    assert run.git("rev-parse", "HEAD") == theirs
    assert run.plan() == plan
    assert run.git("show", "--no-patch", "--format=%P", plan.commit) == f"{theirs} {tip}"
    assert run.git("ls-tree", "--name-only", plan.tree).splitlines() == [".gitignore", "a.txt", "new", "src", "theirs"]
    assert run.home.apply_merge(plan.commit) == AlreadyMerged(commit=plan.commit)
    assert (scratch / "new").read_text() == "run"
    assert isinstance(run.plan(), AlreadyMerged)


def test_a_conflict_names_the_files_and_the_command(
    scratch: Path, fingerprint: Callable[[Path], Mapping[str, object]]
) -> None:
    run = Run(scratch)
    run.land({"a.txt": "run"})
    run.user_commits("a.txt", "mine")
    before = fingerprint(scratch)
    plan = run.plan()
    assert isinstance(plan, NotPossible)
    assert (plan.files, plan.command) == (("a.txt",), "git merge unstuck/r1")
    assert fingerprint(scratch) == before


def test_a_commit_between_plan_and_merge_is_a_refusal(scratch: Path) -> None:
    run = Run(scratch)
    tip = run.land({"new": "run"})
    assert isinstance(run.plan(), FastForward)
    theirs = run.user_commits("theirs", "x")
    answer = run.home.apply_merge(tip)
    assert isinstance(answer, NotPossible)
    assert run.git("rev-parse", "HEAD") == theirs
    assert not (scratch / "new").exists()


def switch_away(git: Git) -> None:
    git("switch", "--quiet", "-c", "other")


def detach(git: Git) -> None:
    git("checkout", "--quiet", "--detach")


def delete_the_branch(git: Git) -> None:
    switch_away(git)
    git("branch", "--quiet", "-D", "main")


def begin_a_merge(git: Git) -> None:
    git("checkout", "--quiet", "-b", "side")
    git("commit", "--quiet", "--allow-empty", "-m", "side")
    git("checkout", "--quiet", "main")
    git("merge", "--quiet", "--no-ff", "--no-commit", "side")


MEANWHILE: dict[str, tuple[Callable[[Git], None], str, str]] = {
    "switched": (switch_away, "now on other", "git switch main && git merge unstuck/r1"),
    "detached": (detach, "detached HEAD", "git switch main && git merge unstuck/r1"),
    "deleted": (delete_the_branch, "main no longer exists", "git switch -c main unstuck/r1"),
    "merging": (begin_a_merge, "in the middle of a merge", "git merge unstuck/r1"),
}


@pytest.mark.parametrize(("act", "reason", "command"), MEANWHILE.values(), ids=MEANWHILE.keys())
def test_what_the_user_did_meanwhile_is_a_reason(
    scratch: Path, act: Callable[[Git], None], reason: str, command: str
) -> None:
    run = Run(scratch)
    tip = run.land({"new": "x"})
    act(run.git)
    for answer in (run.plan(), run.home.apply_merge(tip), committed(run, ["a.txt"], "plan")):
        assert isinstance(answer, NotPossible)
        assert reason in answer.reason
        assert answer.command == command
    assert not (scratch / "new").exists()


def test_a_run_that_began_detached_has_no_branch_to_move(scratch: Path) -> None:
    Git(scratch)("checkout", "--quiet", "--detach")
    run = Run(scratch)
    run.land({"new": "x"})
    plan = run.plan()
    assert isinstance(plan, NotPossible)
    assert "detached" in plan.reason


@pytest.mark.parametrize("moved", [False, True], ids=["unmoved", "moved"])
def test_a_single_commit_has_the_same_files(scratch: Path, moved: bool) -> None:
    run = Run(scratch, mode="single")
    run.land({"one": "1"})
    run.land({"two": "2"})
    head = run.user_commits("theirs", "x") if moved else run.git("rev-parse", "HEAD")
    plan = run.plan()
    assert isinstance(plan, Merge if moved else FastForward)
    run.home.apply_merge(plan.commit)
    assert run.git("show", "--no-patch", "--format=%P|%s") == f"{head}|Bring run r1 home"
    assert (scratch / "one").exists()
    assert (scratch / "two").exists()
    assert isinstance(run.plan(), AlreadyMerged)


# --- message-only ----------------------------------------------------------------------------------


def test_the_script_makes_the_very_same_commits(
    scratch: Path, fingerprint: Callable[[Path], Mapping[str, object]]
) -> None:
    run = Run(scratch)
    run.land({"one": "1"})
    tip = run.land({"two": "2"})
    before = fingerprint(scratch)
    script = run.home.write_script()
    assert script == scratch / ".unstuck" / "commits.sh"
    assert fingerprint(scratch) == before
    for _ in range(2):
        subprocess.run([str(script)], cwd=scratch / "src", check=True, capture_output=True)
        assert run.git("rev-parse", "HEAD") == tip


def test_the_script_makes_the_commits_on_a_branch_that_moved(scratch: Path) -> None:
    run = Run(scratch)
    run.land({"one": "1"})
    run.land({"two": "2"})
    run.user_commits("theirs", "x")
    run.git("config", "commit.cleanup", "strip")
    subprocess.run([str(run.home.write_script())], cwd=scratch, check=True, capture_output=True)
    assert run.git("log", "-2", "--format=%B").count(MESSAGE) == 2
    assert run.git("status", "--porcelain") == ""


# --- the plan's own commit ---------------------------------------------------------------------------


def test_the_plan_is_committed_and_nothing_else(scratch: Path) -> None:
    run = Run(scratch)
    make_dirty_elsewhere(run)
    hook = scratch / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    (scratch / "a.txt").write_text("- [x] 1.1\n")
    status = run.git("status", "--porcelain", "src", "staged new", "untracked\nfile")
    commit = committed(run, ["a.txt", "untracked\nfile", "nowhere"], "Tick 1.1\n\n# kept\n")
    assert commit == run.git("rev-parse", "HEAD")
    assert run.git("show", "--format=%an|%B", "--name-only") == "Ada|Tick 1.1\n\n# kept\n\n\na.txt"
    assert run.git("status", "--porcelain") == status
    assert committed(run, ["a.txt"], "again") is None


def test_a_plan_whose_commit_git_refuses_is_left_as_it_was(scratch: Path) -> None:
    run = Run(scratch)
    head = run.git("rev-parse", "HEAD")
    (scratch / ".git" / "index.lock").touch()
    answer = committed(run, ["a.txt"], "plan")
    assert isinstance(answer, NotPossible)
    assert "could not be committed" in answer.reason
    assert run.git("rev-parse", "HEAD") == head


# --- crashes -----------------------------------------------------------------------------------------

CHILD = """
import sys
from pathlib import Path
from unstuck.git.merge_back import MergeBack
from unstuck.git.repository import find_repository, slots_folder
repository = find_repository(Path(sys.argv[1]))
MergeBack(repository=repository, run="r1", identity=repository.identity()).apply_merge(sys.argv[2])
"""


@pytest.mark.parametrize("point", ["a.txt", "new0", "new5", "new9"])
def test_a_kill_in_the_middle_of_the_merge_is_undone_and_repeated(scratch: Path, tmp_path: Path, point: str) -> None:
    run = Run(scratch)
    tip = run.land({f"new{number}": "x" * 5000 for number in range(10)} | {"a.txt": "changed", "src/b.py": None})
    (scratch / "mine").write_text("untracked")
    (scratch / ".gitignore").write_text("*.log\nmine too\n")
    hang, hangs = tmp_path / "hang", tmp_path / "hangs"
    (scratch / ".git" / "info" / "attributes").write_text(f"{point} filter=slow\n")
    run.git("config", "filter.slow.smudge", f"if test -e {hang}; then touch {hangs}; sleep 100; fi; cat")
    hang.touch()
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(scratch), tip],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        start_new_session=True,
    )
    wait_until(lambda: hangs.exists() or child.poll() is not None, "a filter that hangs")
    assert child.poll() is None
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    hang.unlink()
    assert (scratch / ".git" / "index.lock").exists()
    assert run.plan() == FastForward(commit=tip)
    assert run.home.apply_merge(tip) == AlreadyMerged(commit=tip)
    assert sorted(run.git("status", "--porcelain").splitlines()) == [" M .gitignore", "?? mine"]
    assert (scratch / "new9").read_text() == "x" * 5000
    run.git("fsck", "--full", "--strict")


def test_an_edit_made_after_a_crash_is_kept(scratch: Path) -> None:
    run = Run(scratch)
    tip = run.land({"a.txt": "run", "new": "run"})
    (scratch / ".git" / "unstuck" / "homecoming.json").write_text(
        f'{{"head": "{run.git("rev-parse", "HEAD")}", "target": "{tip}"}}'
    )
    (scratch / "a.txt").write_text("mine")
    (scratch / "new").write_text("ru")
    plan = run.plan()
    assert isinstance(plan, NotPossible)
    assert plan.files == ("a.txt",)
    assert (scratch / "a.txt").read_text() == "mine"


# --- prune -------------------------------------------------------------------------------------------


def test_prune_removes_what_is_clean_merged_and_unused(scratch: Path) -> None:
    run = Run(scratch)
    run.work.prepare(0, run.work.tip())
    (run.work.path(0) / "wip").write_text("x")
    run.work.snapshot(0, "7")
    tip = run.land({"new": "x"})
    run.home.apply_merge(tip)
    would = prune(find_repository(scratch), {"r1"}, slots_folder(find_repository(scratch)), dry_run=True)
    assert [line.removeprefix("Would remove ") for line in would.removed] == [
        f"the slot {run.work.path(0)}.",
        "the branch unstuck/r1.",
        "the snapshot r1/7.",
    ]
    assert run.work.tip() == tip
    done = prune(find_repository(scratch), {"r1"}, slots_folder(find_repository(scratch)))
    assert len(done.removed) == 3
    assert done.kept == ()
    assert run.git("for-each-ref", "refs/unstuck", "refs/heads/unstuck") == ""
    assert not run.work.path(0).exists()
    assert prune(find_repository(scratch), {"r1"}, slots_folder(find_repository(scratch))).removed == ()


def test_prune_keeps_what_is_unmerged_unfinished_dirty_or_in_use_and_says_why(scratch: Path) -> None:
    run = Run(scratch)
    run.land({"new": "x"})
    (run.work.path(0) / "unsaved").write_text("x")
    busy = run.work.prepare(1, run.work.tip())
    run.work.keep_commit("1", run.work.tip())
    run.git("branch", "unstuck/r2")
    with subprocess.Popen(["cat"], cwd=busy, stdin=subprocess.PIPE) as process:
        result = prune(find_repository(scratch), {"r1"}, slots_folder(find_repository(scratch)))
        process.kill()
    assert result.removed == ()
    reasons = dict(line.removeprefix("Kept the ").split(": ", 1) for line in result.kept)
    assert "in no branch and no snapshot" in reasons[f"slot {run.work.path(0)}"]
    assert str(process.pid) in reasons[f"slot {run.work.path(1)}"]
    assert "git merge unstuck/r1" in reasons["branch unstuck/r1"]
    assert reasons["branch unstuck/r2"] == "its run is not finished."
    assert reasons["snapshot r1/1"] == "its run's branch is kept."
    assert (run.work.path(0) / "unsaved").exists()


def test_prune_keeps_an_agents_own_commits(scratch: Path) -> None:
    run = Run(scratch)
    path = run.work.prepare(0, run.work.tip())
    Git(path)("commit", "--quiet", "--allow-empty", "-m", "mine")
    assert prune(find_repository(scratch), {"r1"}, slots_folder(find_repository(scratch))).removed == (
        "Removed the branch unstuck/r1.",
    )


def test_prune_knows_a_run_that_came_home_as_one_commit(scratch: Path) -> None:
    run = Run(scratch, mode="single")
    run.land({"one": "1"})
    run.land({"two": "2"})
    plan = run.plan()
    assert isinstance(plan, FastForward)
    run.home.apply_merge(plan.commit)
    run.user_commits("later", "x")
    assert (
        "Removed the branch unstuck/r1."
        in prune(find_repository(scratch), {"r1"}, slots_folder(find_repository(scratch))).removed
    )
