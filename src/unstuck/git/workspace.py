"""The git side of one run: slots, trees, snapshots and the run's branch."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

from unstuck.git import contents
from unstuck.git.contents import (
    AuthoredLine,
    TreeDifference,
    line_authors,
    parse_differences,
    raw_difference,
    summarize_changes,
    tree_files,
)
from unstuck.git.git_command import Git, displayable, remove_stale_lock
from unstuck.git.git_folder import COMMIT_ID
from unstuck.git.repository import Identity, Repository, RepositoryChanges
from unstuck.git.shared_objects import MAX_CACHED_DIFFERENCES, TIP_REF, SharedObjects
from unstuck.git.slots import DURABLE, PlaceFiles, Slot
from unstuck.git.staging import take_snapshot, tree_with_paths, write_slot_tree
from unstuck.model.changes import Change, Changes, Touch
from unstuck.model.errors import CheckpointGone, GitFailed, UnstuckError
from unstuck.model.landing import Conflict, Landing, Snapshot, Tree, run_branch

MUST_NOT_EXIST = ""
"""The old value of a ref that does not exist yet, for git's compare-and-swap."""


def place_no_files(_slot: Path, _fresh: bool) -> tuple[str, ...]:  # noqa: FBT001  the shape of Place
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GitWorkspace:
    """A workspace on real git. Threads may share it, with one slot each."""

    run: str
    identity: Identity
    slots: Path
    """The folder of the slots, outside of the user's checkout."""
    shared: SharedObjects
    repository_changes: RepositoryChanges
    sign: bool = False
    left_out: tuple[str, ...] = ()
    """The plan's files, relative to the root. They never land."""
    place: PlaceFiles = place_no_files
    _writers: "dict[int, _TreeWriter]" = field(default_factory=dict)
    """Threads that write the trees of sessions that have ended, by slot."""
    _landing_commits: dict[Landing, str] = field(default_factory=dict)
    """The commits of landings that must be merged first, since the branch has moved."""

    @property
    def repository(self) -> Repository:
        return self.shared.repository

    @property
    def branch(self) -> str:
        return f"refs/heads/{run_branch(self.run)}"

    def open_branch(self, base: str) -> bool:
        if self._set_ref(self.branch, base, MUST_NOT_EXIST) is None:
            return True
        if self._resolve(self.branch) is not None:
            return False
        if self._resolve(base) is None:
            raise CheckpointGone(
                f"The branch {run_branch(self.run)} is gone, and so is the commit {base} at which it stood.",
                hint="Look for it with `git fsck --lost-found`, or begin anew with `unstuck run PLAN --fresh`.",
            )
        if self._resolve("refs/heads/unstuck") is not None:
            raise GitFailed(
                f"The branch {run_branch(self.run)} cannot be made, because a branch is called `unstuck`.",
                hint="Rename it with `git branch -m unstuck something-else` and try again.",
            )
        raise GitFailed(
            f"The branch {run_branch(self.run)} cannot be made at {base}.",
            hint="See whether the repository can be written, then try again.",
        )

    def tip(self) -> str:
        tip = self._tip_from_file() or self._resolve(self.branch)
        if tip is None:
            raise CheckpointGone(
                f"The branch {run_branch(self.run)} is gone.",
                hint="If it was deleted by hand, `unstuck resume` makes it again where it stood.",
            )
        return tip

    def path(self, slot: int) -> Path:
        return self._folder(slot).path

    def has_slot(self, slot: int) -> bool:
        return self.path(slot).is_dir()  # with or without the `.git` that an agent may have removed

    def prepare(self, slot: int, base: str, tree: str | None = None, *, clean: bool = False) -> Path:
        self._slot(slot).prepare(base, tree, self.place, clean=clean)
        return self.path(slot)

    def remember_setup(self, slot: int, before: Sequence[str], altered: Sequence[str]) -> None:
        self._slot(slot).remember_setup(before, altered)

    def untracked_files(self, slot: int) -> tuple[str, ...]:
        return self._slot(slot).untracked_files()

    def altered_files(self, slot: int) -> tuple[str, ...]:
        return self._slot(slot).altered_files()

    def tree_with_paths(self, base: str, tree: str, paths: Sequence[str]) -> str:
        return tree_with_paths(self._git, self.repository.store, base, tree, paths)

    def write_tree(self, slot: int, base: str) -> Tree:
        writer = self._writers.get(slot)
        idle_slot = self._slot(slot)
        tree = writer.tree if writer is not None and writer.base == base else None
        return tree or write_slot_tree(idle_slot, base, self.left_out, self.run)

    def snapshot(self, slot: int, name: str) -> Snapshot | None:
        ref = self._snapshot_ref(name)
        snapshot = take_snapshot(self._slot(slot), ref, self.identity.env())
        if snapshot is None:
            return None
        try:
            return self.keep_commit(name, snapshot.commit)
        except GitFailed:
            # A git command that outlived its supervisor may have kept the same work a moment ago.
            if (kept := self._resolve(ref)) is None:
                raise
            return Snapshot(ref=ref, commit=kept)

    def keep_commit(self, name: str, commit: str) -> Snapshot:
        ref = self._snapshot_ref(name)
        failed = self._set_ref(ref, commit, MUST_NOT_EXIST)
        if failed is not None and self._resolve(ref) != commit:
            raise GitFailed(
                f"The snapshot {ref} cannot be kept: {failed}",
                hint="Nothing was removed; try again with `unstuck resume`.",
            )
        return Snapshot(ref=ref, commit=commit)

    def changed_paths(self, base: str, tree: str) -> tuple[str, ...]:
        return tuple(row.path for row in self._rows(base, tree))

    def changes(self, base: str, tree: str) -> tuple[Change, ...]:
        return contents.changes(self._git, self._rows(base, tree))

    def summarize_changes(self, base: str, tree: str) -> Changes:
        _, summary = self.shared.differences.get((base, tree), (None, None))
        return summary or summarize_changes(raw_difference(self._git, base, tree))

    def touches(self, base: str, tree: str, files: Sequence[str]) -> tuple[Touch, ...]:
        return contents.touches(self._git, base, tree, files)

    def line_authors(self, path: str, commit: str, since: str) -> tuple[AuthoredLine, ...]:
        """Return the lines of a file with the commits after `since` that added them.

        Only commits after the last call are read, since the history of a file may be as long as the plan.
        """
        last_commit, old_lines = self.shared.authors.pop(path, (since, ()))
        lines = old_lines if last_commit == commit else line_authors(self._git, path, commit, last_commit, old_lines)
        lines = line_authors(self._git, path, commit, since) or () if lines is None else lines
        self.shared.authors[path] = commit, lines
        for oldest in list(self.shared.authors)[:-MAX_CACHED_DIFFERENCES]:
            self.shared.authors.pop(oldest, None)
        return tuple(line for line in lines if line[0])

    def tree_of(self, commit: str) -> str:
        trees = self.shared.trees
        tree = trees.get(commit) or self._resolve(commit + "^{tree}")
        if tree is None:
            raise CheckpointGone(f"The commit {commit} no longer exists.", hint="See what is left with `unstuck log`.")
        if commit != tree and COMMIT_ID.fullmatch(commit):  # a branch name may mean another commit later
            trees[commit] = tree
        return tree

    def tree_files(self, tree: str) -> tuple[str, ...]:
        return tree_files(self._git, tree)

    def merge(self, landing: Landing, tip: str) -> str | Conflict:
        merged = merge_trees(self._git, tip, self._landing_commits.pop(landing, "") or self._commit(landing))
        if isinstance(merged, str):
            self.shared.merged_from[merged] = landing.tree
        return merged

    def land(self, landing: Landing) -> str | None:
        if landing.tree == self.tree_of(landing.base):
            return landing.base
        tip = self._tip_from_file() or self._resolve(self.branch)  # a commit that cannot land is not signed
        if tip == landing.base:
            commit = self._commit(landing, sign=self.sign)
            failed = self._set_ref(self.branch, commit, landing.base, tree=landing.tree)
            if failed is None:
                self.shared.trees[commit] = landing.tree
                return commit
            tip = self._resolve(self.branch)
            if tip == landing.base:
                raise GitFailed(
                    f"The branch {run_branch(self.run)} cannot be written: {failed}",
                    hint="Go on with `unstuck resume`.",
                )
        return None if tip is None else self._landed_before(landing, tip)

    def merge_user_commit(self, commit: str, *, message: str, at: float) -> str | Conflict:
        """Merge a commit of the user into the run's branch and return the new tip. Ignore an unrelated history."""
        tip = self.tip()
        if self._git.succeeds("merge-base", "--is-ancestor", commit, tip) or not self._git.succeeds(
            "merge-base", commit, tip
        ):
            return tip
        if not self._git.succeeds("merge-base", "--is-ancestor", tip, commit):
            tree = merge_trees(self._git, tip, commit)
            if isinstance(tree, Conflict):
                return tree
            commit = make_commit(
                self._git, self.identity, tree=tree, parents=(tip, commit), message=message, at=at, sign=self.sign
            )
        self.move_branch(commit, expected=tip)
        return commit

    def history(self, commit: str, base: str) -> tuple[str, ...]:
        listed = self._git.attempt("rev-list", f"{base}..{commit}", "--").stdout.split()
        return (*listed, base)

    def move_branch(self, commit: str, *, expected: str) -> None:
        failed = self._set_ref(self.branch, commit, expected)
        if failed is not None and self._resolve(self.branch) != commit:
            raise GitFailed(
                f"The branch {run_branch(self.run)} cannot be moved to {commit}: {failed}",
                hint="Go on with `unstuck resume`.",
            )

    def note_repository_state(self) -> None:
        self.repository_changes.begin()

    def finish_session(self, slot: int, base: str) -> tuple[str, ...]:
        """Start to write the slot's tree, and return sentences about changes in the user's repository."""
        self._writers[slot] = _TreeWriter(self._slot(slot), base, self.left_out, self.run)
        return self.repository_changes.since_last_look()

    @property
    def _git(self) -> Git:
        return Git(self.repository.root, env=self.identity.env(), settings=DURABLE)

    def _folder(self, slot: int) -> Slot:
        return Slot(shared=self.shared, folder=self.slots, number=slot)

    def _slot(self, slot: int) -> Slot:
        """Return a slot in which no thread runs git."""
        if (writer := self._writers.pop(slot, None)) is not None:
            writer.join()
        return self._folder(slot)

    def _rows(self, base: str, tree: str) -> tuple[TreeDifference, ...]:
        rows, _ = self.shared.differences.get((base, tree), (None, None))
        return tuple(parse_differences(raw_difference(self._git, base, tree))) if rows is None else rows

    def _snapshot_ref(self, name: str) -> str:
        return f"refs/unstuck/snapshots/{self.run}/{name}"

    def _tip_from_file(self) -> str | None:
        """Return the branch's commit from its file, or None if git stores the branch elsewhere."""
        try:
            commit = (self.repository.common_dir / self.branch).read_text("ascii").strip()
        except (OSError, ValueError):
            return None
        return commit if COMMIT_ID.fullmatch(commit) else None

    def _resolve(self, name: str) -> str | None:
        return self._git.resolve(name)[0]

    def _commit(self, landing: Landing, *, sign: bool = False) -> str:
        """Write the landing's commit. Unsigned, the same landing always gives the same commit."""
        return make_commit(
            self._git,
            self.identity,
            tree=landing.tree,
            parents=(landing.base,),
            message=landing.message,
            at=landing.at,
            sign=sign,
        )

    def _landed_before(self, landing: Landing, tip: str) -> str | None:
        if not self.sign:
            commit = self._commit(landing)
            if self._git.succeeds("merge-base", "--is-ancestor", commit, tip):
                return commit
            self._landing_commits[landing] = commit
            return None
        # Two signatures of one text differ, so a signed commit is recognized by its parent, tree and message.
        wanted = [landing.base, landing.tree, landing.message.strip()]
        listed = self._git.attempt("log", "-z", "--format=%H%n%P%n%T%n%B", f"{landing.base}..{tip}").stdout
        for entry in listed.split("\0"):
            commit, *facts = entry.strip().split("\n", 3)
            if facts == wanted:
                return commit
        return None

    def _set_ref(self, ref: str, new: str, old: str, *, tree: str = "") -> str | None:
        """Compare-and-swap a ref and return git's reason if that fails. With `tree`, also move the tip ref for slots."""
        lock = self.repository.common_dir / f"{ref}.lock"
        if tree:
            lines = f"update {ref} {new} {old}\nupdate {TIP_REF} {new}\n"
            both = self._git.attempt("update-ref", "--stdin", stdin=lines)
            if both.returncode == 0:
                self.shared.landed(new, old, tree)
                return None
            if ref in both.stderr and not lock.exists():
                return displayable(both.stderr.strip())
        done = self._git.attempt("update-ref", ref, new, old)
        if done.returncode != 0 and lock.exists() and remove_stale_lock(lock):
            done = self._git.attempt("update-ref", ref, new, old)
        return None if done.returncode == 0 else displayable(done.stderr.strip())


class _TreeWriter(Thread):
    """A thread that writes the tree of a slot whose session has ended."""

    def __init__(self, slot: Slot, base: str, left_out: tuple[str, ...], run: str) -> None:
        super().__init__(daemon=True)
        self._slot, self.base, self._left_out, self._run = slot, base, left_out, run
        self.tree: Tree | None = None
        self.start()

    def run(self) -> None:
        with suppress(UnstuckError, OSError):  # the caller that needs the tree tries again and gets the error
            self.tree = write_slot_tree(self._slot, self.base, self._left_out, self._run)


def make_commit(
    git: Git, identity: Identity, *, tree: str, parents: tuple[str, ...], message: str, at: float, sign: bool = False
) -> str:
    """Write a commit object and nothing else."""
    options = [part for parent in parents for part in ("-p", parent)] + (["-S"] if sign else [])
    writer = git.using(**identity.env(at)).with_settings("i18n.commitEncoding=UTF-8")
    return writer("commit-tree", tree, *options, "-F", "-", stdin=message)


def merge_trees(git: Git, ours: str, theirs: str) -> str | Conflict:
    """Merge two commits without touching any file. Return the merged tree or the conflict."""
    done = git.attempt("merge-tree", "--write-tree", "--name-only", "-z", "--no-messages", ours, theirs)
    if done.returncode not in {0, 1}:
        raise GitFailed(
            f"git cannot merge {theirs} onto {ours}: {displayable(done.stderr.strip())}",
            hint="See what is wrong with `unstuck doctor`.",
        )
    tree, *files = done.stdout.split("\0")
    if done.returncode == 0:
        return tree
    # A file where the other side has a folder gets the name x~<commit> from git.
    names = (name.partition(f"~{ours}")[0].partition(f"~{theirs}")[0] for name in files if name)
    return Conflict(files=tuple(dict.fromkeys(names)))
