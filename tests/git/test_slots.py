"""Slots: made, reset, repaired after a crash, and never able to touch what is the user's."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.git.opening import workspace
from tests.waiting import wait_until

from unstuck.git.git_command import Git, git_processes, wait_for_git
from unstuck.git.untracked_files import UntrackedFiles
from unstuck.model.errors import CheckpointGone

ROOT = Path(__file__).parents[2]


def files(folder: Path) -> dict[str, bytes]:
    """Read every file below a folder that is not git's."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not {".git", ".unstuck"} & set(path.relative_to(folder).parts)
    }


def test_a_slot_holds_the_base_on_a_detached_head(scratch: Path) -> None:
    work = workspace(scratch)
    path = work.prepare(0, work.tip())
    assert path == work.path(0)
    assert not path.is_relative_to(scratch)
    assert files(path) == files(scratch)
    assert Git(path)("rev-parse", "HEAD") == work.tip()
    assert not Git(path).succeeds("symbolic-ref", "--quiet", "HEAD")
    assert Git(path)("status", "--porcelain") == ""


@pytest.mark.parametrize("ids", ["sha1", "sha256"])
def test_files_of_a_new_slot_are_older_than_their_index_and_every_change_is_seen(tmp_path: Path, ids: str) -> None:
    (tmp_path / "work").mkdir()
    git = Git(tmp_path / "work")
    git("init", "--quiet", f"--object-format={ids}")
    for name in ("a", "long/way/to/b", "-c"):
        (tmp_path / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "work" / name).write_text("old")
    (tmp_path / "work" / "link").symlink_to("a")
    git("add", "--all")
    git("commit", "--quiet", "--message=Begin")
    work = workspace(tmp_path / "work")
    path = work.prepare(0, work.tip())
    index = (path / ".git" / "index").stat()
    assert all(
        entry.lstat().st_mtime < int(index.st_mtime) for entry in (path / "a", path / "link", path / "long/way/to/b")
    )
    assert Git(path)("fsck", "--cache") == Git(path)("status", "--porcelain") == ""
    for name in ("a", "-c"):  # as long as before, in the same second, in place
        (path / name).write_text("new")
    assert set(work.changed_paths(work.tip(), work.write_tree(0, work.tip()).id)) == {"a", "-c"}


def test_a_slot_is_reset_but_ignored_files_stay_warm(scratch: Path) -> None:
    work = workspace(scratch)
    path = work.prepare(0, work.tip())
    (path / "a.txt").write_text("changed")
    (path / "src" / "b.py").unlink()
    (path / "new dir").mkdir()
    (path / "new dir" / "new\nname").write_text("x")
    (path / "cache.log").write_text("warm")
    work.prepare(0, work.tip())
    assert files(path) == files(scratch) | {"cache.log": b"warm"}


def test_the_files_of_a_tree_are_put_on_top_of_the_base(scratch: Path) -> None:
    work = workspace(scratch)
    base = work.tip()
    path = work.prepare(0, base)
    (path / "a.txt").unlink()
    (path / "new.py").write_text("new")
    (path / "forced.log").write_text("ignored, but tracked now")
    git = Git(path)
    apart = {"GIT_DIR": scratch / ".git", "GIT_WORK_TREE": path, "GIT_INDEX_FILE": scratch.parent / "index"}
    user = git.using(**{name: str(value) for name, value in apart.items()})
    user("add", "--force", "-A", ".")
    tree = user("write-tree")
    work.prepare(0, base)
    assert files(path) == files(scratch) | {"forced.log": b"ignored, but tracked now"}
    work.prepare(0, base, tree)
    assert files(path).keys() == {".gitignore", "src/b.py", "new.py", "forced.log"}
    assert git("rev-parse", "HEAD") == base
    assert work.write_tree(0, base).id == tree
    assert set(git("status", "--porcelain").splitlines()) == {" D a.txt", "?? new.py"}


def ours(slot: Path) -> Path:
    """Return where we keep our index of a slot: the objects that it borrows say whose it is."""
    return Path((slot / ".git/objects/info/alternates").read_text().splitlines()[0]).parent / "unstuck" / "slots"


def dirty(path: Path) -> None:
    (path / "a.txt").write_text("sly")


def hide_in_the_index(path: Path) -> None:
    dirty(path)
    Git(path)("update-index", "--assume-unchanged", "a.txt")
    Git(path)("update-index", "--skip-worktree", "src/b.py")
    (path / "src" / "b.py").write_text("sly")


def hide_with_ignore_files(path: Path) -> None:
    (path / ".gitignore").write_text("*\n")
    (path / "deep" / "er").mkdir(parents=True)
    (path / "deep" / ".gitignore").write_text("*.secret\n")
    (path / "deep" / "er" / ".gitignore").write_text("*.hidden\n")
    (path / "deep" / "er" / "x.secret").write_text("x")
    (path / "deep" / "er" / "x.hidden").write_text("x")


def leave_a_merge(path: Path) -> None:
    git = Git(path)
    git("checkout", "--quiet", "-b", "mine")
    dirty(path)
    git("commit", "--quiet", "-am", "mine")
    git("checkout", "--quiet", "-b", "other", "HEAD^")
    (path / "a.txt").write_text("other")
    git("commit", "--quiet", "-am", "other")
    assert not git.succeeds("merge", "mine")


def leave_a_rebase(path: Path) -> None:
    leave_a_merge(path)
    Git(path)("merge", "--abort")
    assert not Git(path).succeeds("rebase", "mine")


def nest_repositories(path: Path) -> None:
    for name in ("empty", "inner"):
        (path / name).mkdir()
        Git(path / name)("init", "--quiet")
    Git(path / "inner")("commit", "--quiet", "--allow-empty", "-m", "x")
    Git(path / "src")("init", "--quiet")


def break_the_index(path: Path) -> None:
    record = Path(Git(path)("rev-parse", "--absolute-git-dir"))
    (record / "index").write_bytes(b"nonsense")
    dirty(path)


def break_our_index(path: Path) -> None:
    (ours(path) / "w0.index").write_bytes(b"DIRC nonsense")
    dirty(path)


def lose_our_index(path: Path) -> None:
    (ours(path) / "w0.index").unlink()
    dirty(path)


def leave_locks(path: Path) -> None:
    record = Path(Git(path)("rev-parse", "--absolute-git-dir"))
    for lock in (record / "index.lock", record / "HEAD.lock", (ours(path) / "w0.index.lock")):
        lock.write_bytes(b"")
    dirty(path)


def remove_the_git_file(path: Path) -> None:
    shutil.rmtree(path / ".git")
    dirty(path)


def make_it_another_repository(path: Path) -> None:
    shutil.rmtree(path / ".git")
    Git(path)("init", "--quiet")
    Git(path)("commit", "--quiet", "--allow-empty", "-m", "mine")


def remove_the_folder(path: Path) -> None:
    shutil.rmtree(path)


def replace_a_folder_by_a_link(path: Path) -> None:
    shutil.rmtree(path / "src")
    (path / "src").symlink_to(ours(path).parents[2])


MISCHIEF: dict[str, Callable[[Path], None]] = {
    "index flags": hide_in_the_index,
    "ignore files": hide_with_ignore_files,
    "merge": leave_a_merge,
    "rebase": leave_a_rebase,
    "nested repositories": nest_repositories,
    "broken index": break_the_index,
    "our index broken": break_our_index,
    "our index lost": lose_our_index,
    "locks": leave_locks,
    "no .git": remove_the_git_file,
    "another repository": make_it_another_repository,
    "no folder": remove_the_folder,
    "link out of the folder": replace_a_folder_by_a_link,
}


@pytest.mark.parametrize("mischief", MISCHIEF.values(), ids=MISCHIEF.keys())
def test_whatever_an_agent_or_a_crash_left_the_next_task_starts_clean(
    scratch: Path, mischief: Callable[[Path], None]
) -> None:
    work = workspace(scratch)
    base = work.tip()
    path = work.prepare(0, base)
    user_files = files(scratch)
    mischief(path)
    work.prepare(0, base)
    assert files(path) == files(scratch) == user_files
    assert not (path / "src" / ".git").exists()
    assert Git(path)("rev-parse", "HEAD") == base
    assert "rebase" not in Git(path)("status")
    assert Git(path)("status", "--porcelain", "--ignored") == ""
    (path / "new").write_text("agent")
    Git(path)("add", "new")
    assert work.changed_paths(base, work.write_tree(0, base).id) == ("new",)


def test_what_we_keep_of_a_slot_may_be_removed_while_its_agent_works(scratch: Path) -> None:
    (scratch / "placed.txt").write_text("mine\n")
    work = workspace(scratch, UntrackedFiles(root=scratch, copy=("placed.txt",)))
    path = work.prepare(0, base := work.tip())
    (path / "new.py").write_text("work")
    shutil.rmtree(ours(path))
    assert work.changed_paths(base, work.write_tree(0, base).id) == ("new.py",)
    shutil.rmtree(ours(path))
    after_a_crash = workspace(scratch)
    kept = after_a_crash.snapshot(0, "1")
    assert kept is not None
    assert Git(scratch)("show", f"{kept.commit}:new.py") == "work"
    assert not (after_a_crash.prepare(0, base) / "new.py").exists()


def test_a_lock_is_left_alone_while_git_works_in_the_folder(scratch: Path) -> None:
    work = workspace(scratch)
    path = work.prepare(0, work.tip())
    lock = ours(path) / "w0.index.lock"
    lock.write_bytes(b"")
    with subprocess.Popen(
        ["git", "cat-file", "--batch"], cwd=path, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as busy:
        wait_until(lambda: bool(git_processes(path)), pause=GLANCE)
        with pytest.raises(Exception, match=str(busy.pid)):
            wait_for_git(path, timeout=0.05)
        assert lock.exists()
        busy.kill()
    work.prepare(0, work.tip())
    assert not lock.exists()


def test_a_missing_base_is_named(scratch: Path) -> None:
    work = workspace(scratch)
    with pytest.raises(CheckpointGone, match="1234567890" * 4):
        work.prepare(0, "1234567890" * 4)


def test_a_users_linked_slot_is_served_like_a_checkout(scratch: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    Git(scratch)("worktree", "add", "--quiet", str(linked))
    work = workspace(linked)
    path = work.prepare(0, work.tip())
    (path / "new").write_text("x")
    assert work.changed_paths(work.tip(), work.write_tree(0, work.tip()).id) == ("new",)
    assert Git(linked)("status", "--porcelain") == ""


def test_a_moved_repository_gets_new_slots(scratch: Path, tmp_path: Path) -> None:
    workspace(scratch).prepare(0, "HEAD")
    moved = scratch.rename(tmp_path / "moved")
    work = workspace(moved)
    path = work.prepare(0, work.tip())
    assert files(path) == files(moved)


def test_no_hook_of_the_users_runs(scratch: Path) -> None:
    for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-commit"):
        hook = scratch / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text('#!/bin/sh\ntouch "$(git rev-parse --git-common-dir)/hook-ran"\n')
        hook.chmod(0o755)
    work = workspace(scratch)
    path = work.prepare(0, work.tip())
    (path / "new").write_text("x")
    work.write_tree(0, work.tip())
    work.snapshot(0, "1")
    assert not (scratch / ".git" / "hook-ran").exists()


def test_what_was_placed_stays_and_never_lands(scratch: Path, tmp_path: Path) -> None:
    placed = ("node_modules", "odd [name]*", "pkg/.env")
    told: list[bool] = []

    def place(worktree: Path, fresh: bool) -> tuple[str, ...]:
        told.append(fresh)
        if fresh:
            (worktree / "node_modules").symlink_to(tmp_path)  # `node_modules/` in .gitignore does not match a link
            (worktree / "odd [name]*").mkdir()
            (worktree / "odd [name]*" / "x").write_text("x")
            (worktree / "pkg").mkdir()
            (worktree / "pkg" / ".env").write_text("secret")
        return placed

    work = workspace(scratch, place)
    base = work.tip()
    path = work.prepare(0, base)
    (path / "odd name").write_text("the agent's")
    (path / ".gitignore").write_text("!node_modules\n")
    assert work.changed_paths(base, work.write_tree(0, base).id) == (".gitignore", "odd name")
    snapshot = work.snapshot(0, "1")
    assert snapshot is not None
    assert work.changed_paths(base, snapshot.commit) == (".gitignore", "odd name")
    work.prepare(0, base)
    assert told == [True, False]
    assert files(path) == files(scratch) | {"odd [name]*/x": b"x", "pkg/.env": b"secret"}
    assert (path / "node_modules").is_symlink()
    assert work.write_tree(0, base).id == Git(scratch)("rev-parse", "HEAD^{tree}")


@pytest.fixture
def with_submodule(scratch: Path, tmp_path: Path) -> Path:
    for name, inner in (("leaf", None), ("library", "leaf")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "code.c").write_text(name)
        git = Git(tmp_path / name, settings=("protocol.file.allow=always",))
        git("init", "--quiet")
        if inner:
            git("submodule", "--quiet", "add", str(tmp_path / inner), inner)
        git("add", "-A")
        git("commit", "--quiet", "-m", name)
    user = Git(scratch, settings=("protocol.file.allow=always",))
    user("submodule", "--quiet", "add", "--name", "the lib", str(tmp_path / "library"), "vendor/library")
    user("submodule", "--quiet", "update", "--init", "--recursive")
    user("commit", "--quiet", "-m", "submodule")
    for name in ("leaf", "library"):
        shutil.rmtree(tmp_path / name)  # the network is gone
    return scratch


def test_submodules_are_filled_from_the_local_clone(
    with_submodule: Path, fingerprint: Callable[[Path], Mapping[str, object]]
) -> None:
    before = fingerprint(with_submodule)
    work = workspace(with_submodule)
    base = work.tip()
    path = work.prepare(0, base)
    assert (path / "vendor/library/code.c").read_text() == "library"
    assert (path / "vendor/library/leaf/code.c").read_text() == "leaf"
    assert work.write_tree(0, base) == work.write_tree(0, base)
    assert work.write_tree(0, base).notes == ()
    assert work.changed_paths(base, work.write_tree(0, base).id) == ()
    (path / "vendor/library/code.c").write_text("sly")
    (path / "vendor/library/new").write_text("sly")
    (path / "vendor/library/leaf/code.c").unlink()
    told = work.write_tree(0, base)
    assert work.changed_paths(base, told.id) == ()
    assert [note.partition(". ")[0] for note in told.notes] == [
        "What is edited in the submodule vendor/library never lands: new, code.c",
        "What is edited in the submodule vendor/library/leaf never lands: code.c",
    ]
    work.prepare(0, base)
    assert files(path / "vendor/library").keys() == {".gitmodules", "code.c", "leaf/code.c"}
    assert (path / "vendor/library/code.c").read_text() == "library"
    assert fingerprint(with_submodule) == before


def test_a_submodule_commit_that_only_the_slot_has_does_not_land(with_submodule: Path) -> None:
    work = workspace(with_submodule)
    base = work.tip()
    path = work.prepare(0, base)
    Git(path / "vendor/library")("commit", "--quiet", "--allow-empty", "-m", "mine")
    (path / "new").write_text("x")
    tree = work.write_tree(0, base)
    assert work.changed_paths(base, tree.id) == ("new",)
    assert "vendor/library" in tree.notes[0]
    assert len(tree.notes) == 1


def test_a_submodule_without_a_local_clone_is_named(with_submodule: Path) -> None:
    Git(with_submodule)("submodule", "--quiet", "deinit", "--force", "--all")
    shutil.rmtree(with_submodule / ".git" / "modules")
    work = workspace(with_submodule)
    path = work.prepare(0, work.tip())
    assert list((path / "vendor/library").iterdir()) == []
    tree = work.write_tree(0, work.tip())
    assert "vendor/library has no clone on this machine" in tree.notes[0]
    assert work.changed_paths(work.tip(), tree.id) == ()


def test_a_sparse_checkout_stays_sparse_and_loses_nothing(scratch: Path) -> None:
    Git(scratch)("sparse-checkout", "set", "src")
    work = workspace(scratch)
    base = work.tip()
    path = work.prepare(0, base)
    (path / "src" / "new").write_text("x")
    (path / "outside").mkdir()
    (path / "outside" / "new").write_text("x")
    assert work.changed_paths(base, work.write_tree(0, base).id) == ("outside/new", "src/new")


# --- SIGKILL ---------------------------------------------------------------------------------------

CHILD = """
import signal, sys
from pathlib import Path
from tests.git.opening import workspace
work = workspace(Path(sys.argv[1]))
for verb in sys.argv[2:]:
    if verb == "prepare":
        work.prepare(0, work.repository.head)
    elif verb == "tree":
        work.write_tree(0, work.repository.head)
    elif verb == "snapshot":
        work.snapshot(0, "killed")
signal.pause()
"""
"""It waits for the kill, which comes late where the last moment of a step is a short one."""


GLANCE = 0.0005
"""Seconds between two looks: short beside what is waited for, and long enough to leave the processor to it."""


def kill_when(root: Path, verb: str, seen: Callable[[], bool], *, group: bool = True) -> None:
    """Run a step in a process of its own and kill it, with or without its git, as soon as something is seen."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(root), verb],
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        start_new_session=True,
    )
    wait_until(lambda: seen() or child.poll() is not None, pause=GLANCE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL) if group else child.kill()
    assert child.wait() == -signal.SIGKILL, "the step failed before it could be killed"


LARGE = {f"d{number % 50}/f{number}.txt": f"{number} ".encode() * 20 for number in range(2000)}

MAKING: dict[str, Callable[[Path, Path], bool]] = {
    "the folder": lambda slot, _: slot.exists(),
    "the index is locked": lambda _, index: Path(f"{index}.lock").exists(),
    "the first file": lambda slot, _: (slot / "d0").exists(),
    "git goes on": lambda slot, _: (slot / "d1").exists(),
    "the middle": lambda slot, _: (slot / "d30").exists(),
    "its git folder": lambda slot, _: (slot / ".git").exists(),
}


@pytest.mark.parametrize("point", MAKING)
def test_a_kill_while_a_slot_is_made_is_repaired(large_scratch: Path, point: str) -> None:
    work = workspace(large_scratch)
    later = list(MAKING.values())[list(MAKING).index(point) :]  # a short moment may be missed
    slot, index = work.path(0), large_scratch / ".git/unstuck/slots/w0.index"
    kill_when(large_scratch, "prepare", lambda: any(seen(slot, index) for seen in later), group=point != "git goes on")
    assert work.snapshot(0, "resume") is None
    path = work.prepare(0, work.tip())
    assert files(path) == LARGE
    assert Git(path)("status", "--porcelain") == ""
    assert work.write_tree(0, work.tip()).id == Git(large_scratch)("rev-parse", "HEAD^{tree}")
    Git(large_scratch)("fsck", "--full", "--strict")


@pytest.mark.parametrize(
    ("verb", "group"), [("tree", True), ("snapshot", False)], ids=["tree", "snapshot, git goes on"]
)
def test_a_kill_while_files_are_added_loses_nothing(large_scratch: Path, verb: str, group: bool) -> None:
    work = workspace(large_scratch)
    base = work.tip()
    path = work.prepare(0, base)
    for name in sorted(files(path))[:600]:
        (path / name).write_text(f"{name} by the agent\n")
    changed = files(path)
    kill_when(large_scratch, verb, (ours(path) / "w0.index.lock").exists, group=group)
    snapshot = work.snapshot(0, "resume")
    assert snapshot is not None
    tree = work.write_tree(0, base).id
    assert Git(large_scratch)("rev-parse", snapshot.commit + "^{tree}") == tree
    assert work.prepare(0, base) == path
    assert files(path) == LARGE
    work.prepare(0, base, snapshot.commit)
    assert files(path) == changed
    Git(large_scratch)("fsck", "--full", "--strict")


def grown(path: Path) -> bool:
    """Whether the file is there and has some content; git may be rewriting it at this moment."""
    try:
        return path.stat().st_size > 10
    except FileNotFoundError:
        return False


def test_a_kill_in_the_middle_of_a_reset_is_repaired(large_scratch: Path) -> None:
    work = workspace(large_scratch)
    path = work.prepare(0, work.tip())
    for name in files(path):
        (path / name).write_text("agent\n")
    for number in range(500):
        (path / f"new{number}").write_text("agent\n")
    first = path / "d0" / "f0.txt"
    kill_when(large_scratch, "prepare", lambda: grown(first))
    work.prepare(0, work.tip())
    assert files(path) == LARGE
    Git(large_scratch)("fsck", "--full", "--strict")
