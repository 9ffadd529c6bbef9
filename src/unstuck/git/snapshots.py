"""Put a worktree's whole state away before something destructive: files, index and the agent's own commits."""

import shutil
from collections.abc import Mapping, Sequence

from unstuck.git import staging
from unstuck.git.command import Git
from unstuck.git.worktrees import Worktree
from unstuck.ports import Snapshot


def take(worktree: Worktree, ref: str, identity: Mapping[str, str]) -> Snapshot | None:
    """Keep the worktree's state under `ref`; None if it holds nothing but the commit it was prepared with.

    Like `git stash -u`: a commit of all files, whose parents are HEAD and a commit of the index.
    """
    prepared = worktree.prepared()
    if not prepared.ready or not worktree.path.is_dir():
        return None
    git = worktree.git.using(**identity)
    base = prepared.base or "HEAD"
    kept, head, base_commit, base_tree = resolve(git, ref, "HEAD", base, base + "^{tree}")
    if kept is not None:
        return Snapshot(ref=ref, commit=kept)
    if base_commit is None or base_tree is None:
        return None
    head = head if head is not None and worktree.record() is not None else base_commit
    staged = staging.stage(worktree, base_commit, prepared.placed)
    index_tree = _index_tree(worktree, git)
    if head == base_commit and not staged.changes and not staged.nested and index_tree in {None, base_tree}:
        return None
    tree = _with_nested(worktree, git, staged.nested) if staged.nested else git("write-tree")
    parents = ["-p", head]
    if index_tree is not None:
        parents += ["-p", git("commit-tree", index_tree, "-p", head, "-m", f"index of {ref}")]
    return Snapshot(ref=ref, commit=git("commit-tree", tree, *parents, "-m", f"snapshot {ref}"))


def resolve(git: Git, *names: str) -> tuple[str | None, ...]:
    """Return the object id of each name, None for what does not exist, in one command."""
    lines = git("cat-file", "--batch-check=%(objectname)", stdin="".join(f"{name}\n" for name in names)).split("\n")
    return tuple(None if line.endswith(" missing") else line for line in lines)


def _index_tree(worktree: Worktree, git: Git) -> str | None:
    """Write the tree of the agent's own index; None if it is damaged or in the middle of a merge."""
    record = worktree.record()
    if record is None or not (record / "index").is_file():
        return None
    copy = worktree.index.with_suffix(".agent")
    try:
        shutil.copy2(record / "index", copy)
        done = git.using(GIT_INDEX_FILE=str(copy)).attempt("write-tree")
    finally:
        copy.unlink(missing_ok=True)
    return done.stdout.strip() if done.returncode == 0 else None


def _with_nested(worktree: Worktree, git: Git, nested: Sequence[str]) -> str:
    """Write the tree with the files of repositories that the agent made inside the worktree; git would only name them."""
    whole, part = worktree.index.with_suffix(".whole"), worktree.index.with_suffix(".part")
    try:
        shutil.copy2(worktree.index, whole)
        outside = git.using(GIT_INDEX_FILE=str(whole))
        for path in nested:
            folder = worktree.path / path
            inside = git.using(GIT_WORK_TREE=str(folder), GIT_INDEX_FILE=str(part)).at(folder)
            inside.attempt("add", "-A", "--ignore-errors")
            outside("rm", "--cached", "--quiet", "--force", "--ignore-unmatch", "--", f":(top,literal){path}")
            outside("read-tree", f"--prefix={path}/", inside("write-tree"))
            part.unlink()
        return outside("write-tree")
    finally:
        for index in (whole, part):
            index.unlink(missing_ok=True)
