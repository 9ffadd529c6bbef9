import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from unstuck.git.command import Git
from unstuck.git.watch import Watches


@dataclass(frozen=True)
class Place:
    """The user's repository, with one of our worktrees in it."""

    root: Path
    worktree: Path
    watches: Watches

    def user(self, *args: str) -> str:
        return _git(self.root, *args)

    def agent(self, *args: str) -> str:
        return _git(self.worktree, *args)

    def agent_commits(self, text: str = "agent") -> str:
        return _commit(self.worktree, text)

    def at(self, ref: str) -> str:
        return self.user("rev-parse", "--verify", ref)

    def has(self, ref: str) -> bool:
        return bool(self.user("for-each-ref", ref))

    def stash(self) -> list[str]:
        return self.user("stash", "list", "--format=%gs").splitlines()

    def kept(self) -> list[str]:
        return self.user("for-each-ref", "--format=%(objectname)", "refs/unstuck/foreign/r1").splitlines()

    def looks(self) -> str:
        """All that a user sees of their repository, reflogs of git aside."""
        files = [path for path in sorted((self.root / ".git" / "hooks").iterdir()) if path.is_file()]
        config = (self.root / ".git" / "config").read_text()
        exclude = (self.root / ".git" / "info" / "exclude").read_text()
        hooks = [(path.name, path.read_bytes(), path.stat().st_mode) for path in files]
        refs = self.user("for-each-ref", "refs/heads", "refs/tags", "refs/stash", "refs/notes", "refs/replace")
        stash = self.user("stash", "list", "--format=%H %gs")
        status = self.user("status", "--porcelain", "--branch")
        return repr((refs, stash, status, config, exclude, hooks))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("template")
    _git(root, "init", "-q", "-b", "main")
    _git(root, "config", "user.name", "User")
    _git(root, "config", "user.email", "user@example.org")
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "hooks").mkdir(exist_ok=True)
    (root / ".git" / "info" / "exclude").write_text("/.unstuck/\n")
    _commit(root, "one")
    _commit(root, "two")
    _git(root, "branch", "feature", "HEAD~1")
    _git(root, "config", "branch.feature.remote", "origin")
    _git(root, "tag", "v1")
    _git(root, "tag", "-a", "-m", "note", "v2")
    for name in ("first", "second", "third"):
        (root / "file").write_text(name)
        _git(root, "stash", "push", "-q", "-m", name)
    return root


@pytest.fixture
def place(template: Path, tmp_path: Path) -> Place:
    root = tmp_path / "a repo"
    shutil.copytree(template, root)
    worktree = root / ".unstuck" / "worktrees" / "1"
    _git(root, "worktree", "add", "-q", "--detach", str(worktree))
    return Place(root, worktree, Watches(Git(root), "r1"))


def test_commits_on_the_worktrees_own_head_are_nobodys_business(place: Place) -> None:
    watch = place.watches.begin()
    before = place.looks()
    place.agent_commits()
    assert watch.restore() == ()
    assert place.looks() == before
    assert place.kept() == []


AGENT_DEEDS: dict[str, Callable[[Place], object]] = {
    "moves the branch the user is on": lambda p: p.agent("update-ref", "refs/heads/main", p.agent_commits()),
    "moves the user's branch back": lambda p: p.agent("update-ref", "refs/heads/main", "HEAD~1"),
    "forces another branch": lambda p: p.agent("branch", "-f", "feature", p.agent_commits()),
    "commits on another branch": lambda p: (p.agent("checkout", "-q", "feature"), p.agent_commits()),
    "resets another branch": lambda p: (p.agent("checkout", "-q", "feature"), p.agent("reset", "-q", "--hard", "main")),
    "deletes a branch": lambda p: p.agent("branch", "-q", "-D", "feature"),
    "deletes the user's branch": lambda p: p.agent("update-ref", "-d", "refs/heads/main"),
    "makes a branch": lambda p: p.agent("checkout", "-q", "-b", "mine"),
    "makes a branch and commits": lambda p: (p.agent("checkout", "-q", "-b", "mine/too"), p.agent_commits()),
    "makes a branch in the place of one": lambda p: (
        p.agent("branch", "-q", "-D", "feature"),
        p.agent("checkout", "-q", "-b", "feature/more"),
    ),
    "deletes tags": lambda p: p.agent("tag", "-d", "v1", "v2"),
    "moves a tag": lambda p: p.agent("tag", "-f", "v1", p.agent_commits()),
    "moves an annotated tag": lambda p: p.agent("tag", "-f", "-a", "-m", "x", "v2", p.agent_commits()),
    "makes a tag": lambda p: p.agent("tag", "v9", p.agent_commits()),
    "stashes": lambda p: ((p.worktree / "file").write_text("x"), p.agent("stash", "push", "-q")),
    "stashes on a branch": lambda p: (
        p.agent("checkout", "-q", "feature"),
        (p.worktree / "file").write_text("x"),
        p.agent("stash", "push", "-q", "-m", "mine"),
    ),
    "pops the user's stash": lambda p: p.agent("stash", "pop", "-q"),
    "drops the middle of the stash": lambda p: p.agent("stash", "drop", "-q", "stash@{1}"),
    "drops the oldest of the stash": lambda p: p.agent("stash", "drop", "-q", "stash@{2}"),
    "clears the stash": lambda p: p.agent("stash", "clear"),
    "swaps the stash": lambda p: (
        p.agent("stash", "clear"),
        (p.worktree / "file").write_text("x"),
        p.agent("stash", "push", "-q"),
    ),
    "sets a config value": lambda p: p.agent("config", "user.name", "Evil"),
    "points hooks elsewhere": lambda p: p.agent("config", "core.hooksPath", ".husky"),
    "breaks the config": lambda p: (p.root / ".git" / "config").write_text("[core\nbroken"),
    "removes the config": lambda p: (p.root / ".git" / "config").unlink(),
    "installs a hook": lambda p: _install_hook(p, "post-checkout"),
    "installs a hook with an odd name": lambda p: _install_hook(p, "odd\nname\udcff"),
    "removes and rewrites excludes": lambda p: (p.root / ".git" / "info" / "exclude").write_text("*.secret\n"),
    "removes the excludes": lambda p: (p.root / ".git" / "info" / "exclude").unlink(),
}


@pytest.mark.parametrize("deed", AGENT_DEEDS.values(), ids=AGENT_DEEDS.keys())
def test_what_an_agent_does_to_the_users_repository_is_put_back(place: Place, deed: Callable[[Place], object]) -> None:
    before = place.looks()
    watch = place.watches.begin()
    deed(place)
    said = watch.restore()
    assert place.looks() == before
    assert said
    assert all(line.endswith((".", "}")) or "If that was you: cp " in line for line in said), said
    assert place.user("fsck", "--no-dangling") == ""
    assert place.watches.begin().restore() == ()


def test_the_agents_commit_is_kept_when_its_branch_is_put_back(place: Place) -> None:
    watch = place.watches.begin()
    old = place.at("main")
    commit = place.agent_commits()
    place.agent("update-ref", "refs/heads/main", commit)
    (said,) = watch.restore()
    assert said == (
        f"The agent moved branch main from {old[:7]} to {commit[:7]}; it was put back, "
        "the agent's commit is kept at refs/unstuck/foreign/r1/1/heads/main."
    )
    assert place.at("refs/unstuck/foreign/r1/1/heads/main") == commit


def test_a_worktree_on_a_branch_that_is_put_back_keeps_its_commit_and_files(place: Place) -> None:
    watch = place.watches.begin()
    place.agent("checkout", "-q", "-b", "mine")
    commit = place.agent_commits("new words")
    watch.restore()
    assert place.agent("rev-parse", "HEAD") == commit
    assert place.agent("status", "--porcelain") == ""
    assert (place.worktree / "file").read_text() == "new words"


def test_the_agents_stash_entry_is_kept_with_its_files(place: Place) -> None:
    watch = place.watches.begin()
    (place.worktree / "file").write_text("half done")
    place.agent("stash", "push", "-q")
    watch.restore()
    (kept,) = place.kept()
    assert place.user("show", f"{kept}:file") == "half done"


def test_a_hook_of_the_agents_is_kept_as_a_file(place: Place) -> None:
    watch = place.watches.begin()
    _install_hook(place, "pre-commit")
    (said,) = watch.restore()
    copy = place.root / ".unstuck" / "foreign" / "r1" / "1" / "hooks" / "pre-commit"
    assert copy.read_text() == "#!/bin/sh\nexit 1\n"
    assert ".unstuck/foreign/r1/1/hooks/pre-commit" in said


def test_copies_of_two_sessions_stand_side_by_side(place: Place) -> None:
    for text in ("first try", "second try"):
        watch = place.watches.begin()
        place.agent("update-ref", "refs/heads/main", place.agent_commits(text))
        watch.restore()
    assert len(set(place.kept())) == 2


def test_a_branch_that_comes_back_has_its_settings_again(place: Place) -> None:
    watch = place.watches.begin()
    place.agent("branch", "-q", "-D", "feature")
    assert "feature" not in place.user("config", "--list")
    watch.restore()
    assert place.user("config", "branch.feature.remote") == "origin"


USER_DEEDS: dict[str, Callable[[Place], object]] = {
    "commits": lambda p: _commit(p.root, "mine"),
    "amends": lambda p: p.user("commit", "-q", "--amend", "-m", "better"),
    "resets": lambda p: p.user("reset", "-q", "--hard", "HEAD~1"),
    "makes a branch": lambda p: p.user("branch", "mine"),
    "goes to a new branch and commits": lambda p: (p.user("checkout", "-q", "-b", "mine"), _commit(p.root, "mine")),
    "goes to another branch": lambda p: p.user("checkout", "-q", "feature"),
    "merges and deletes a branch": lambda p: (
        p.user("checkout", "-q", "feature"),
        _commit(p.root, "mine"),
        p.user("checkout", "-q", "main"),
        p.user("merge", "-q", "-s", "ours", "--no-edit", "feature"),
        p.user("branch", "-q", "-D", "feature"),
    ),
    "renames the branch they are on": lambda p: p.user("branch", "-m", "main", "trunk"),
    "renames another branch": lambda p: p.user("branch", "-m", "feature", "other"),
    "rebases another branch": lambda p: (
        p.user("checkout", "-q", "feature"),
        p.user("commit", "-q", "--allow-empty", "-m", "x"),
        p.user("rebase", "-q", "main"),
        p.user("checkout", "-q", "main"),
    ),
    "forces another branch": lambda p: p.user("branch", "-f", "feature", "main"),
    "makes tags": lambda p: (p.user("tag", "v8"), p.user("tag", "-a", "-m", "x", "v9")),
    "moves a tag": lambda p: p.user("tag", "-f", "v1", "HEAD~1"),
    "stashes": lambda p: ((p.root / "file").write_text("x"), p.user("stash", "push", "-q")),
    "stashes with words": lambda p: ((p.root / "file").write_text("x"), p.user("stash", "push", "-q", "-m", "mine")),
    "stashes and pops": lambda p: (
        (p.root / "file").write_text("x"),
        p.user("stash", "push", "-q"),
        p.user("stash", "pop", "-q"),
    ),
    "stashes on no branch": lambda p: (
        p.user("checkout", "-q", "--detach"),
        (p.root / "file").write_text("x"),
        p.user("stash", "push", "-q"),
    ),
    "tracks a branch": lambda p: p.user("config", "branch.main.remote", "origin"),
    "works in a worktree of their own": lambda p: (
        p.user("worktree", "add", "-q", "-b", "side", str(p.root.parent / "side")),
        _commit(p.root.parent / "side", "mine"),
    ),
}


@pytest.mark.parametrize("deed", USER_DEEDS.values(), ids=USER_DEEDS.keys())
def test_what_the_user_does_meanwhile_is_left_alone(place: Place, deed: Callable[[Place], object]) -> None:
    watch = place.watches.begin()
    place.agent_commits()
    deed(place)
    after = place.looks()
    watch.restore()
    assert place.looks() == after
    assert place.kept() == []


def test_a_commit_of_the_users_is_not_even_mentioned(place: Place) -> None:
    watch = place.watches.begin()
    _commit(place.root, "mine")
    assert watch.restore() == ()


def test_a_branch_that_the_user_moved_stays_when_the_agent_goes_there_too(place: Place) -> None:
    watch = place.watches.begin()
    place.user("checkout", "-q", "feature")
    mine = _commit(place.root, "mine")
    place.user("checkout", "-q", "main")
    place.agent("checkout", "-q", "feature")
    assert watch.restore() == ()
    assert place.at("feature") == mine


def test_a_branch_that_nobody_can_be_named_for_is_left_and_told(place: Place) -> None:
    watch = place.watches.begin()
    old, new = place.at("feature"), place.at("main")
    place.agent("branch", "-f", "feature", "main")
    (said,) = watch.restore()
    assert place.at("feature") == new
    assert f"git update-ref refs/heads/feature {old} {new}" in said


def test_a_user_without_reflogs_loses_nothing(place: Place) -> None:
    place.user("config", "core.logAllRefUpdates", "false")
    shutil.rmtree(place.root / ".git" / "logs" / "refs" / "heads")
    (place.root / ".git" / "logs" / "HEAD").unlink()
    watch = place.watches.begin()
    mine = _commit(place.root, "mine")
    place.agent_commits()
    (said,) = watch.restore()
    assert place.at("main") == mine
    assert "was left as it is" in said


def test_a_users_tool_that_writes_no_reflog_is_left_and_told(place: Place) -> None:
    watch = place.watches.begin()
    commit = place.user("commit-tree", "-p", "HEAD", "-m", "by an odd tool", "HEAD^{tree}")
    (place.root / ".git" / "refs" / "heads" / "main").write_text(f"{commit}\n")
    (said,) = watch.restore()
    assert place.at("main") == commit
    assert "was left as it is" in said


def test_a_run_inside_a_linked_worktree_of_the_users_knows_its_own(place: Place) -> None:
    side = place.root.parent / "side"
    place.user("worktree", "add", "-q", "-b", "side", str(side))
    ours = side / ".unstuck" / "worktrees" / "1"
    _git(side, "worktree", "add", "-q", "--detach", str(ours))
    watch = Watches(Git(side), "r2").begin()
    mine, main = _commit(side, "mine"), _commit(place.root, "mine too")
    _git(ours, "update-ref", "refs/heads/feature", _commit(ours, "agent"))
    feature = place.at("main~2")
    (said,) = watch.restore()
    assert (place.at("side"), place.at("main"), place.at("feature")) == (mine, main, feature)
    assert "feature" in said


def test_a_checkout_that_goes_to_another_branch_is_told(place: Place) -> None:
    watch = place.watches.begin()
    place.user("checkout", "-q", "feature")
    (said,) = watch.restore()
    assert said.endswith("went from main to feature during the session; it was left as it is.")


def test_the_users_commit_stays_while_the_agents_deeds_are_undone(place: Place) -> None:
    watch = place.watches.begin()
    mine = _commit(place.root, "mine")
    (place.root / "file").write_text("users")
    place.user("stash", "push", "-q", "-m", "users")
    place.agent("tag", "-d", "v1")
    (place.worktree / "file").write_text("agents")
    place.agent("stash", "push", "-q")
    place.agent("stash", "drop", "-q", "stash@{2}")
    place.agent("update-ref", "refs/heads/main", place.agent_commits())
    watch.restore()
    assert place.at("main") == mine
    assert place.has("refs/tags/v1")
    assert place.stash() == ["On main: users", "On main: third", "On main: second", "On main: first"]
    assert place.user("status", "--porcelain") == ""


def test_tracking_that_the_user_set_survives_when_the_config_is_put_back(place: Place) -> None:
    watch = place.watches.begin()
    place.user("config", "branch.main.merge", "refs/heads/main")
    place.agent("config", "user.name", "Evil")
    (said,) = watch.restore()
    assert place.user("config", "branch.main.merge") == "refs/heads/main"
    assert place.user("config", "user.name") == "User"
    assert "config" in said


def test_a_stash_entry_that_is_taken_again_is_kept_and_not_forced_on_the_user(place: Place) -> None:
    entry = place.at("stash@{0}")
    said: tuple[str, ...] = ()
    for _ in range(2):
        watch = place.watches.begin()
        place.user("stash", "drop", "-q")
        said = watch.restore()
    assert place.stash() == ["On main: second", "On main: first"]
    assert place.kept() == [entry]
    assert "once more" in said[0]


def test_a_branch_that_is_deleted_again_is_kept_and_not_forced_on_the_user(place: Place) -> None:
    at = place.at("feature")
    for _ in range(2):
        watch = place.watches.begin()
        place.user("branch", "-q", "-D", "feature")
        watch.restore()
    assert not place.has("refs/heads/feature")
    assert place.kept() == [at]


def test_sessions_side_by_side_do_not_bring_back_what_the_other_restored(place: Place) -> None:
    before = place.looks()
    first = place.watches.begin()
    place.agent("config", "user.name", "Evil")
    place.agent("update-ref", "refs/heads/main", place.agent_commits())
    place.agent("stash", "clear")
    second = place.watches.begin()
    assert first.restore()
    assert place.looks() == before
    assert second.restore() == ()
    assert place.looks() == before


def test_a_later_deed_is_seen_by_the_session_that_is_still_open(place: Place) -> None:
    first, second = place.watches.begin(), place.watches.begin()
    commit = place.agent_commits()
    first.restore()
    before = place.looks()
    place.agent("branch", "-f", "feature", commit)
    second.restore()
    assert place.looks() == before


def test_restoring_twice_is_harmless(place: Place) -> None:
    watch = place.watches.begin()
    place.agent("tag", "-d", "v1")
    assert watch.restore()
    assert watch.restore() == ()


def test_many_sessions_may_end_at_once(place: Place) -> None:
    before = place.looks()
    watches = [place.watches.begin() for _ in range(6)]
    place.agent("update-ref", "refs/heads/main", place.agent_commits())
    place.agent("stash", "clear")
    threads = [threading.Thread(target=watch.restore) for watch in watches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert place.looks() == before


def test_our_own_refs_are_not_watched(place: Place) -> None:
    watch = place.watches.begin()
    place.agent("update-ref", "refs/heads/unstuck/r1", place.agent_commits())
    place.agent("update-ref", "refs/unstuck/snapshots/r1/1", "HEAD")
    assert watch.restore() == ()
    assert place.has("refs/heads/unstuck/r1")


def test_a_linked_hooks_folder_is_the_users_own(place: Place) -> None:
    hooks = place.root / ".git" / "hooks"
    for path in hooks.iterdir():
        path.unlink()
    hooks.rmdir()
    (place.root / "githooks").mkdir()
    hooks.symlink_to("../githooks")
    watch = place.watches.begin()
    (place.root / "githooks" / "pre-commit").write_text("mine")
    assert watch.restore() == ()
    assert (place.root / "githooks" / "pre-commit").read_text() == "mine"


def test_a_config_that_git_is_writing_is_left_and_told(place: Place) -> None:
    watch = place.watches.begin()
    place.agent("config", "user.name", "Evil")
    lock = place.root / ".git" / "config.lock"
    lock.touch()
    (said,) = watch.restore()
    assert "could not be put back" in said
    assert lock.exists()
    assert sorted(path.name for path in lock.parent.glob("config*")) == ["config", "config.lock"]


def test_a_quiet_session_costs_two_git_processes(place: Place, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    watches = Watches(Git(place.root, env={"GIT_TRACE2_EVENT": str(trace)}), "r2")
    trace.write_text("")
    watches.begin().restore()
    assert trace.read_text().count('"event":"start"') == 2


def _install_hook(place: Place, name: str) -> None:
    path = Path(place.agent("rev-parse", "--path-format=absolute", "--git-common-dir"), "hooks", name)
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)


def _commit(cwd: Path, text: str) -> str:
    (cwd / "file").write_text(text)
    _git(cwd, "add", "file")
    _git(cwd, "commit", "-q", "-m", text)
    return _git(cwd, "rev-parse", "HEAD")


def _git(cwd: Path, *args: str) -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_EDITOR": "true"}
    done = subprocess.run(["git", *args], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (args, done.stderr)
    return done.stdout.strip()
