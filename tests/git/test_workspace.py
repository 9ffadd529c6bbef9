"""The git side of a run: what would land, what is put away, and commits that land exactly once."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.git.opening import workspace

from unstuck.git.git_command import Git
from unstuck.git.protocols import Workspace
from unstuck.git.repository import find_repository
from unstuck.git.untracked_files import UntrackedFiles
from unstuck.git.workspace import GitWorkspace
from unstuck.model.errors import CheckpointGone, GitFailed
from unstuck.model.landing import Conflict, Landing

ODD_NAMES = [
    b"new\nline",
    b"carriage\rreturn",
    b" spaces ",
    b"caf\xc3\xa9",
    b"latin\xe9",
    b'"quoted"',
    b"-dash",
    b"*glob?[x]",
    b":(top)x",
]


def landing(
    tree: str, base: str, message: str = "Add it\n\nUnstuck-Task: 1.1\n", at: float = 1_800_000_000.5
) -> Landing:
    return Landing(tree=tree, base=base, message=message, at=at)


def tree_with(work: GitWorkspace, slot: int, base: str, **files: str) -> str:
    path = work.prepare(slot, base)
    for name, text in files.items():
        (path / name).write_text(text)
    return work.write_tree(slot, base).id


def test_it_is_a_workspace(scratch: Path) -> None:
    work: Workspace = workspace(scratch)
    assert work.tip()


# --- what would land ---------------------------------------------------------------------------------


def test_a_copy_of_what_the_user_has_removed_meanwhile_never_lands(scratch: Path) -> None:
    (scratch / "notes.txt").write_text("mine\n")
    work = replace(workspace(scratch), place=UntrackedFiles(root=scratch, copy=("notes.txt",)))
    base = work.tip()
    assert (work.prepare(0, base) / "notes.txt").exists()
    (scratch / "notes.txt").unlink()
    assert tree_with(work, 0, base) == Git(scratch)("rev-parse", f"{base}^{{tree}}")


def test_the_tree_holds_changes_additions_and_deletions_but_nothing_ignored(scratch: Path) -> None:
    work = workspace(scratch)
    base = work.tip()
    path = work.prepare(0, base)
    (path / "a.txt").unlink()
    (path / "src" / "b.py").chmod(0o755)
    (path / "new").mkdir()
    (path / "new" / "link").symlink_to("../src")
    (path / "debug.log").write_text("ignored")
    tree = work.write_tree(0, base)
    assert work.changed_paths(base, tree.id) == ("a.txt", "new/link", "src/b.py")
    assert tree.notes == ()


def test_an_untouched_worktree_gives_the_tree_of_its_base(scratch: Path) -> None:
    work = workspace(scratch)
    work.prepare(0, work.tip())
    assert work.write_tree(0, work.tip()).id == Git(scratch)("rev-parse", "HEAD^{tree}")


def test_unusual_file_names_land_as_they_are(scratch: Path) -> None:
    work = workspace(scratch)
    base = work.tip()
    path = work.prepare(0, base)
    for name in ODD_NAMES:
        Path(os.fsdecode(os.fsencode(path) + b"/" + name)).write_bytes(name)
    tree = work.write_tree(0, base)
    assert set(work.changed_paths(base, tree.id)) == {os.fsdecode(name) for name in ODD_NAMES}
    commit = work.land(landing(tree.id, base))
    assert commit is not None
    work.prepare(0, base)
    assert {entry.name for entry in path.iterdir()} == {".git", ".gitignore", "a.txt", "src"}
    work.prepare(0, commit)
    assert {os.fsencode(entry.name) for entry in path.iterdir()} >= set(ODD_NAMES)


def test_the_agents_own_commits_and_index_tricks_are_folded_in(scratch: Path) -> None:
    work = workspace(scratch)
    base = work.tip()
    path = work.prepare(0, base)
    git = Git(path)
    (path / "committed").write_text("x")
    git("add", "-A")
    git("commit", "--quiet", "-m", "mine")
    git("checkout", "--quiet", "-b", "elsewhere")
    (path / "a.txt").write_text("hidden")
    git("update-index", "--assume-unchanged", "a.txt")
    (path / "src" / "b.py").write_text("hidden")
    git("update-index", "--skip-worktree", "src/b.py")
    assert work.changed_paths(base, work.write_tree(0, base).id) == ("a.txt", "committed", "src/b.py")


def test_the_plan_its_companions_and_our_folder_stay_as_in_the_base(scratch: Path) -> None:
    (scratch / "tasks.md").write_text("- [ ] 1.1\n")
    (scratch / ".unstuck").mkdir()
    (scratch / ".unstuck" / "committed").write_text("by mistake")
    Git(scratch)("add", "--force", "-A")
    Git(scratch)("commit", "--quiet", "-m", "plan")
    work = workspace(scratch, left_out=("tasks.md", "spec/.progress.md"))
    base = work.tip()
    path = work.prepare(0, base)
    (path / "tasks.md").write_text("- [x] 1.1\n")
    (path / "spec").mkdir()
    (path / "spec" / ".progress.md").write_text("done")
    (path / ".unstuck" / "committed").unlink()
    (path / "work").write_text("x")
    tree = work.write_tree(0, base)
    assert work.changed_paths(base, tree.id) == ("work",)
    assert [note.split(";")[0] for note in tree.notes] == [
        "The agent changed spec/.progress.md",
        "The agent changed tasks.md",
    ]
    (path / "tasks.md").unlink()
    assert work.changed_paths(base, work.write_tree(0, base).id) == ("work",)


def test_repositories_inside_the_worktree_are_left_out_and_named_but_kept_in_a_snapshot(scratch: Path) -> None:
    work = workspace(scratch)
    base = work.tip()
    path = work.prepare(0, base)
    for name in ("app", "empty"):
        (path / name).mkdir()
        Git(path / name)("init", "--quiet")
        (path / name / "code").write_text(name)
    Git(path / "app")("add", "-A")
    Git(path / "app")("commit", "--quiet", "-m", "generated")
    (path / "work").write_text("x")
    tree = work.write_tree(0, base)
    assert work.changed_paths(base, tree.id) == ("work",)
    assert {note.split(" ")[0] for note in tree.notes} == {"app", "empty"}
    assert work.write_tree(0, base) == tree
    snapshot = work.snapshot(0, "1")
    assert snapshot is not None
    assert work.changed_paths(base, snapshot.commit) == ("app/code", "empty/code", "work")
    assert work.write_tree(0, base) == tree


def test_a_tree_is_right_on_another_base_than_the_prepared_one(scratch: Path) -> None:
    (scratch / "tasks.md").write_text("old")
    Git(scratch)("add", "-A")
    Git(scratch)("commit", "--quiet", "-m", "plan")
    work = workspace(scratch, left_out=("tasks.md",))
    base = work.tip()
    (scratch / "tasks.md").write_text("new")
    Git(scratch)("commit", "--quiet", "-am", "the plan moves on")
    moved = Git(scratch)("rev-parse", "HEAD")
    path = work.prepare(0, base)
    (path / "work").write_text("x")
    assert work.changed_paths(base, work.write_tree(0, base).id) == ("work",)
    assert work.changed_paths(moved, work.write_tree(0, moved).id) == ("work",)


def test_a_tracked_file_turned_into_something_git_cannot_hold_is_named(scratch: Path) -> None:
    work = workspace(scratch)
    base = work.tip()
    path = work.prepare(0, base)
    (path / "a.txt").unlink()
    os.mkfifo(path / "a.txt")
    os.mkfifo(path / "pipe")
    (path / "work").write_text("x")
    tree = work.write_tree(0, base)
    assert "work" in work.changed_paths(base, tree.id)
    assert "pipe" not in work.changed_paths(base, tree.id)


def test_a_worktree_that_was_never_prepared_has_no_tree(scratch: Path) -> None:
    with pytest.raises(GitFailed, match="not prepared"):
        workspace(scratch).write_tree(0, "HEAD")


# --- snapshots ---------------------------------------------------------------------------------------


def test_a_snapshot_holds_files_index_and_the_agents_commits(scratch: Path) -> None:
    work = workspace(scratch, left_out=("tasks.md",))
    base = work.tip()
    path = work.prepare(0, base)
    git = Git(path)
    (path / "committed").write_text("x")
    git("add", "-A")
    git("commit", "--quiet", "-m", "mine")
    agents_commit = git("rev-parse", "HEAD")
    (path / "staged").write_text("staged")
    git("add", "staged")
    (path / "staged").write_text("changed again")
    (path / "untracked").write_text("x")
    (path / "tasks.md").write_text("the plan, too")
    (path / "x.log").write_text("ignored")
    snapshot = work.snapshot(0, "17")
    assert snapshot is not None
    assert snapshot.ref == "refs/unstuck/snapshots/r1/17"
    user = Git(scratch)
    assert user("rev-parse", snapshot.ref) == snapshot.commit
    assert work.changed_paths(base, snapshot.commit) == ("committed", "staged", "tasks.md", "untracked")
    assert user("rev-parse", f"{snapshot.commit}^1") == agents_commit
    assert user("show", f"{snapshot.commit}^2:staged") == "staged"
    assert user("show", f"{snapshot.commit}:staged") == "changed again"


def test_a_snapshot_of_a_name_is_taken_once(scratch: Path) -> None:
    work = workspace(scratch)
    path = work.prepare(0, work.tip())
    (path / "new").write_text("x")
    first = work.snapshot(0, "1")
    (path / "newer").write_text("x")
    assert work.snapshot(0, "1") == first
    assert work.snapshot(0, "2") != first


def test_nothing_to_save_is_no_snapshot(scratch: Path) -> None:
    work = workspace(scratch)
    assert work.snapshot(0, "none yet") is None
    path = work.prepare(0, work.tip())
    (path / "x.log").write_text("ignored")
    assert work.snapshot(0, "untouched") is None
    assert Git(scratch)("for-each-ref", "refs/unstuck/snapshots") == ""


@pytest.mark.parametrize("where", ["commit", "index"])
def test_work_that_is_not_in_the_files_is_saved_too(scratch: Path, where: str) -> None:
    work = workspace(scratch)
    path = work.prepare(0, work.tip())
    (path / "gone").write_text("x")
    Git(path)("add", "gone")
    if where == "commit":
        Git(path)("commit", "--quiet", "-m", "mine")
        Git(path)("rm", "--quiet", "--cached", "gone")
    (path / "gone").unlink()
    snapshot = work.snapshot(0, "1")
    assert snapshot is not None
    parent = {"commit": "^1", "index": "^2"}[where]
    assert Git(scratch)("show", f"{snapshot.commit}{parent}:gone") == "x"


def test_a_snapshot_is_taken_in_the_middle_of_a_merge_and_without_a_git_file(scratch: Path) -> None:
    work = workspace(scratch)
    path = work.prepare(0, work.tip())
    git = Git(path)
    for name in ("one", "two"):
        git("checkout", "--quiet", "-b", name, work.tip())
        (path / "a.txt").write_text(name)
        git("commit", "--quiet", "-am", name)
    assert not git.succeeds("merge", "one")
    merging = work.snapshot(0, "merging")
    shutil.rmtree(path / ".git")
    lost = work.snapshot(0, "no-git-file")
    assert merging is not None
    assert lost is not None
    assert "<<<<<<<" in Git(scratch)("show", f"{merging.commit}:a.txt")
    assert work.changed_paths(merging.commit, lost.commit) == ()


def test_a_snapshot_can_be_worked_on_again(scratch: Path) -> None:
    work = workspace(scratch)
    base = work.tip()
    path = work.prepare(0, base)
    (path / "new").write_text("x")
    (path / "a.txt").unlink()
    snapshot = work.snapshot(0, "1")
    assert snapshot is not None
    work.prepare(0, base)
    assert (path / "a.txt").exists()
    work.prepare(0, base, snapshot.commit)
    assert (path / "new").read_text() == "x"
    assert not (path / "a.txt").exists()


def test_a_commit_is_kept_alive_under_a_name(scratch: Path) -> None:
    work = workspace(scratch)
    assert work.keep_commit("5", work.tip()) == work.keep_commit("5", work.tip())
    with pytest.raises(GitFailed, match="snapshots/r1/5"):
        work.keep_commit("5", Git(scratch)("rev-parse", "HEAD^"))


# --- landing -----------------------------------------------------------------------------------------


def test_a_landing_is_one_commit_with_our_text_time_and_the_users_name(scratch: Path) -> None:
    work = workspace(scratch)
    base = work.tip()
    what = landing(tree_with(work, 0, base, new="x"), base)
    commit = work.land(what)
    assert commit == work.tip() != base
    shown = Git(scratch)("show", "--no-patch", "--format=%P|%an <%ae>|%cn|%at %ct|%T|%B", str(commit))
    assert shown == f"{base}|Ada <ada@example.org>|Ada|1800000000 1800000000|{what.tree}|{what.message}"


def test_without_a_configured_identity_the_commit_is_ours(scratch: Path, own_git_configuration: Path) -> None:
    (own_git_configuration / ".gitconfig").write_text("[user]\nuseConfigOnly = true\n")
    work = workspace(scratch)
    assert (work.identity.name, work.identity.email) == ("unstuck", "unstuck@localhost")
    commit = work.land(landing(tree_with(work, 0, work.tip(), new="x"), work.tip()))
    assert Git(scratch)("show", "--no-patch", "--format=%an <%ae>", str(commit)) == "unstuck <unstuck@localhost>"


def test_landing_twice_adds_nothing(scratch: Path) -> None:
    work = workspace(scratch)
    base = work.tip()
    first = landing(tree_with(work, 0, base, one="1"), base)
    commit = work.land(first)
    assert workspace(scratch).land(first) == commit == work.tip()
    second = work.land(landing(tree_with(work, 0, str(commit), two="2"), str(commit)))
    assert work.land(first) == commit
    assert work.tip() == second
    assert Git(scratch)("rev-list", "--count", f"{base}..{second}") == "2"


def test_nothing_to_commit_lands_without_a_commit(scratch: Path) -> None:
    work = workspace(scratch)
    base = work.tip()
    work.prepare(0, base)
    assert work.land(landing(work.write_tree(0, base).id, base)) == base == work.tip()


def test_of_two_landings_on_one_base_one_wins_and_the_other_can_be_merged(scratch: Path) -> None:
    work = workspace(scratch)
    base = work.tip()
    landings = [landing(tree_with(work, slot, base, **{f"new{slot}": "x"}), base) for slot in range(4)]
    spaces = [workspace(scratch) for _ in landings]
    with ThreadPoolExecutor() as pool:
        results = list(pool.map(lambda pair: pair[0].land(pair[1]), zip(spaces, landings, strict=True)))
    assert len([commit for commit in results if commit is not None]) == 1
    for what, result in zip(landings, results, strict=True):
        if result is None:
            tip = work.tip()
            merged = work.merge(what, tip)
            assert isinstance(merged, str)
            assert work.land(landing(merged, tip)) == work.tip()
    assert set(work.changed_paths(base, work.tip())) == {"new0", "new1", "new2", "new3"}
    assert Git(scratch)("rev-list", "--count", f"{base}..{work.tip()}") == "4"


def test_a_tree_is_held_until_it_has_landed_and_its_name_serves_the_next_one(scratch: Path) -> None:
    work = workspace(scratch)
    base = work.tip()
    waits = tree_with(work, 0, base, waits="for a person")
    for number in range(4):
        first, second = (
            landing(tree_with(work, slot, work.tip(), **{f"{number}.{slot}": "x"}), work.tip()) for slot in (0, 1)
        )
        work.land(first)
        assert work.land(second) is None
        merged = str(work.merge(second, work.tip()))
        work.prepare(2, work.tip(), merged)
        assert work.land(landing(merged, work.tip())) == work.tip()
    git = Git(scratch)
    held = git("for-each-ref", "--format=%(refname)", "refs/unstuck/slots").splitlines()
    git("gc", "--quiet", "--prune=now")
    assert len(held) <= len(("waits", "tip")) + 2 * 3
    assert workspace(scratch).merge(landing(waits, base), work.tip())
    assert "missing" not in git("fsck", "--full")


def test_conflicting_work_is_named_file_by_file(scratch: Path) -> None:
    work = workspace(scratch)
    base = work.tip()
    first = landing(tree_with(work, 0, base, **{"a.txt": "one", "odd\nname": "1"}), base)
    second = landing(tree_with(work, 0, base, **{"a.txt": "two", "odd\nname": "2"}), base)
    tip = work.land(first)
    assert tip is not None
    assert work.merge(second, tip) == Conflict(files=("a.txt", "odd\nname"))
    assert work.land(second) is None


def test_a_file_where_the_other_work_has_a_folder_is_named_as_it_is_called(scratch: Path) -> None:
    work = workspace(scratch)
    base = work.tip()
    tip = work.land(landing(tree_with(work, 0, base, new="a file"), base))
    path = work.prepare(0, base)
    (path / "new").mkdir()
    (path / "new" / "inside").write_text("a folder")
    assert tip is not None
    assert work.merge(landing(work.write_tree(0, base).id, base), tip) == Conflict(files=("new",))


def test_a_signed_landing_is_known_again_though_signatures_differ(scratch: Path, own_git_configuration: Path) -> None:
    signer = own_git_configuration / "sign"
    signer.write_text(
        f"#!{sys.executable}\nimport os, sys\nsys.stdin.read()\nprint('[GNUPG:] SIG_CREATED ', file=sys.stderr)\n"
        "print('-----BEGIN PGP SIGNATURE-----\\n\\n' + os.urandom(8).hex() + '\\n-----END PGP SIGNATURE-----')\n"
    )
    signer.chmod(0o755)
    Git(scratch)("config", "gpg.program", str(signer))
    work = workspace(scratch, sign=True)
    base = work.tip()
    what = landing(tree_with(work, 0, base, new="x"), base)
    commit = work.land(what)
    assert commit is not None
    assert "BEGIN PGP SIGNATURE" in Git(scratch)("cat-file", "commit", commit)
    assert work.land(what) == commit == work.tip()
    assert work.land(landing(what.tree, base, message="another")) is None


def test_signing_is_off_unless_asked_for(scratch: Path) -> None:
    Git(scratch)("config", "gpg.program", "/bin/false")
    Git(scratch)("config", "commit.gpgSign", "true")
    work = workspace(scratch)
    assert work.land(landing(tree_with(work, 0, work.tip(), new="x"), work.tip())) == work.tip()


def test_the_branch_is_opened_once_and_moved_by_compare_and_swap(scratch: Path) -> None:
    work = workspace(scratch)
    old = Git(scratch)("rev-parse", "HEAD^")
    head = work.tip()
    work.open_branch(old)
    assert work.tip() == head
    work.move_branch(old, expected=head)
    work.move_branch(old, expected=head)
    assert work.tip() == old
    with pytest.raises(GitFailed, match="cannot be moved"):
        work.move_branch(head, expected=head + "0" if len(head) < 40 else "1" * 40)


def test_a_branch_called_unstuck_is_in_the_way_and_said_so(scratch: Path) -> None:
    Git(scratch)("branch", "unstuck")
    with pytest.raises(GitFailed, match="called `unstuck`"):
        workspace(scratch)


def test_a_deleted_run_branch_is_named(scratch: Path) -> None:
    work = workspace(scratch)
    Git(scratch)("branch", "--quiet", "-D", "unstuck/r1")
    with pytest.raises(CheckpointGone, match="unstuck/r1"):
        work.tip()


@pytest.mark.parametrize("made", [0, 2**32], ids=["long ago", "before the clock was set back"])
def test_a_ref_lock_left_by_a_crash_does_not_stop_a_landing(scratch: Path, made: int) -> None:
    work = workspace(scratch)
    what = landing(tree_with(work, 0, work.tip(), new="x"), work.tip())
    lock = scratch / ".git" / "refs" / "heads" / "unstuck" / "r1.lock"
    lock.write_bytes(b"")
    os.utime(lock, (made, made))
    assert work.land(what) == work.tip() != what.base


def test_a_ref_lock_that_somebody_holds_is_respected(scratch: Path) -> None:
    work = workspace(scratch)
    what = landing(tree_with(work, 0, work.tip(), new="x"), work.tip())
    lock = scratch / ".git" / "refs" / "heads" / "unstuck" / "r1.lock"
    with lock.open("wb"):
        os.utime(lock, (0, 0))
        with pytest.raises(GitFailed, match="cannot be written"):
            work.land(what)
        assert lock.exists()


def test_who_wrote_a_line_is_the_same_whether_the_file_was_looked_at_before_or_not(scratch: Path) -> None:
    work = workspace(scratch)
    start, seen = work.tip(), []
    for text in ("1\n2\n3\n", "1\nnew\n3\n", "0\n1\nnew\n3\n", None, "new\n3\n", "new\n3\n1\n"):
        base = start if text is None else work.tip()  # a rollback: what was looked at is no longer in the history
        work.move_branch(base, expected=work.tip())
        tip = str(work.land(landing(tree_with(work, 0, base, **{"x.txt": text or "3\nnew\n"}), base)))
        seen.append((work.line_authors("x.txt", tip, start), workspace(scratch).line_authors("x.txt", tip, start)))
    assert all(known == anew for known, anew in seen)
    assert [len({commit for commit, _ in known}) for known, _ in seen] == [1, 2, 3, 1, 2, 3]


def test_new_commits_of_the_users_are_brought_in(scratch: Path) -> None:
    work = workspace(scratch)
    base = work.tip()
    (scratch / "theirs").write_text("x")
    Git(scratch)("add", "theirs")
    Git(scratch)("commit", "--quiet", "-m", "by hand")
    theirs = Git(scratch)("rev-parse", "HEAD")
    landed = work.land(landing(tree_with(work, 0, base, ours="x"), base))
    merged = work.merge_user_commit(theirs, message="Merge main", at=0)
    assert merged == work.tip() != landed
    assert work.merge_user_commit(theirs, message="Merge main", at=0) == merged
    assert work.changed_paths(base, work.tip()) == ("ours", "theirs")


def test_a_conflict_with_the_users_commits_moves_nothing(scratch: Path) -> None:
    work = workspace(scratch)
    base = work.tip()
    (scratch / "a.txt").write_text("theirs")
    Git(scratch)("commit", "--quiet", "-am", "by hand")
    landed = work.land(landing(tree_with(work, 0, base, **{"a.txt": "ours"}), base))
    assert work.merge_user_commit(Git(scratch)("rev-parse", "HEAD"), message="m", at=0) == Conflict(files=("a.txt",))
    assert work.tip() == landed


# --- the whole ---------------------------------------------------------------------------------------


def make_dirty(root: Path) -> None:
    git = Git(root)
    (root / "a.txt").write_text("stashed\n")
    git("stash", "push", "--quiet")
    (root / "a.txt").write_text("staged\n")
    git("add", "a.txt")
    (root / "a.txt").write_text("staged, then changed\n")
    (root / "src" / "b.py").unlink()
    (root / "untracked\nfile").write_text("x")
    (root / "x.log").write_text("ignored")


def test_a_dirty_checkout_is_byte_identical_after_a_whole_flow(
    scratch: Path, fingerprint: Callable[[Path], Mapping[str, object]]
) -> None:
    make_dirty(scratch)
    find_repository(scratch).exclude_unstuck_folder()
    before = fingerprint(scratch)
    work = workspace(scratch)
    base = work.tip()
    for slot in range(2):
        path = work.prepare(slot, base)
        (path / f"new{slot}").write_text("x")
        (path / "a.txt").write_text("agent")
        work.snapshot(slot, f"{slot}")
        tree = work.write_tree(slot, base).id
        if work.land(landing(tree, base)) is None:
            work.merge(landing(tree, base), work.tip())
        work.prepare(slot, base, tree)
    assert fingerprint(scratch) == before
    assert "missing" not in Git(scratch)("fsck", "--full", "--strict")


def test_a_task_costs_few_git_commands(scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = workspace(scratch)
    base = work.tip()
    path = work.prepare(0, base)
    trace = tmp_path / "trace"

    def cost(step: Callable[[], object]) -> int:
        trace.write_bytes(b"")
        monkeypatch.setenv("GIT_TRACE2_EVENT", str(trace))
        step()
        monkeypatch.delenv("GIT_TRACE2_EVENT")
        events = [json.loads(line) for line in trace.read_text().splitlines()]
        return len([event for event in events if event["event"] == "start" and "/" not in event["sid"]])

    costs = [cost(lambda: work.prepare(0, base)), cost(lambda: work.snapshot(0, "none"))]
    (path / "new").write_text("x")
    costs += [cost(lambda: work.write_tree(0, base)), cost(lambda: work.snapshot(0, "some"))]
    what = landing(work.write_tree(0, base).id, base)
    costs += [cost(lambda: work.land(what)), cost(lambda: work.land(what))]
    costs += [cost(lambda: work.prepare(0, base, what.tree)), cost(lambda: work.prepare(1, base))]
    assert costs == [2, 4, 4, 7, 3, 2, 4, 1]


def test_a_git_hook_that_starts_us_does_not_lead_us_astray(scratch: Path, tmp_path: Path) -> None:
    work = workspace(scratch)
    base = work.tip()
    code = "import sys; from pathlib import Path; from unstuck.git.repository import find_repository; print(find_repository(Path(sys.argv[1])).root)"
    env = os.environ | {
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
        "GIT_DIR": str(tmp_path),
        "GIT_INDEX_FILE": "x",
    }
    done = subprocess.run(
        [sys.executable, "-c", code, str(scratch)], env=env, capture_output=True, text=True, check=True
    )
    assert (done.stdout.strip(), work.tip()) == (str(scratch), base)
