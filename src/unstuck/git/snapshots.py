"""Edge: Put a slot's whole state away before something destructive: files, index and the agent's own commits."""

import shutil
from collections.abc import Mapping, Sequence

from unstuck.git import staging
from unstuck.git.command import Git
from unstuck.git.returning import head_of
from unstuck.git.slots import Slot
from unstuck.ports import Snapshot


def take(slot: Slot, ref: str, identity: Mapping[str, str]) -> Snapshot | None:
    """Keep the slot's state under `ref`; None if it holds nothing but the commit it was prepared with.

    Like `git stash -u`: a commit of all files, whose parents are HEAD and a commit of the index.
    """
    prepared = slot.prepared()
    if not prepared.ready or prepared.base is None or not slot.path.is_dir():
        return None
    git, base = slot.git.using(**identity), prepared.base
    kept, base_tree = resolve(git, ref, base + "^{tree}")
    if kept is not None:
        return Snapshot(ref=ref, commit=kept)
    if base_tree is None:
        return None
    parents = _agents_own(slot, identity, ref, base, base_tree)
    staged = staging.stage(slot, base, prepared)
    if parents == (base,) and not staged.changes and not staged.nested:
        slot.staging.unlink()
        return None
    tree = _with_nested(slot, git, staged.nested) if staged.nested else git("write-tree")
    options = [part for parent in parents for part in ("-p", parent)]
    commit = git("commit-tree", tree, *options, "-m", f"snapshot {ref}")
    slot.staging.unlink()
    return Snapshot(ref=ref, commit=commit)


def resolve(git: Git, *names: str) -> tuple[str | None, ...]:
    """Return the object id of each name, None for what does not exist, in one command."""
    lines = git("cat-file", "--batch-check=%(objectname)", stdin="".join(f"{name}\n" for name in names)).split("\n")
    return tuple(None if line.endswith(" missing") else line for line in lines)


def _agents_own(slot: Slot, identity: Mapping[str, str], ref: str, base: str, base_tree: str) -> tuple[str, ...]:
    """Bring what the agent committed and staged; return the snapshot's parents: the base alone if there is nothing sound."""
    own = slot.own
    if not own.sound:
        return (base,)
    inside = own.inside.using(**identity)
    head = head_of(slot.path, slot.path) or base
    index_tree = _index_tree(slot, inside)
    if index_tree in {None, base_tree}:
        return (head,) if head == base or own.bring(head, base) else (base,)
    staged = inside.attempt("commit-tree", str(index_tree), "-p", head, "-m", f"index of {ref}")
    brought = staged.returncode == 0 and own.bring(staged.stdout.strip(), base)
    return (head, staged.stdout.strip()) if brought else (base,)


def _index_tree(slot: Slot, inside: Git) -> str | None:
    """Write the tree of the agent's own index; None if it is damaged or in the middle of a merge."""
    index = slot.path / ".git" / "index"
    if index.is_symlink() or not index.is_file():
        return None
    copy = slot.index.with_name(f"{slot.index.name}.agent")
    try:
        shutil.copy2(index, copy)
        done = inside.using(GIT_INDEX_FILE=str(copy)).attempt("write-tree")
    finally:
        copy.unlink(missing_ok=True)
    return done.stdout.strip() if done.returncode == 0 else None


def _with_nested(slot: Slot, git: Git, nested: Sequence[str]) -> str:
    """Write the tree with the files of repositories that the agent made inside the slot; git would only name them."""
    whole, part = (slot.index.with_name(f"{slot.index.name}.{name}") for name in ("whole", "part"))
    try:
        shutil.copy2(slot.index, whole)
        outside = git.using(GIT_INDEX_FILE=str(whole))
        for path in nested:
            folder = slot.path / path
            inside = git.using(GIT_WORK_TREE=str(folder), GIT_INDEX_FILE=str(part)).at(folder)
            inside.attempt("add", "-A", "--ignore-errors")
            outside("rm", "--cached", "--quiet", "--force", "--ignore-unmatch", "-r", "--", f":(top,literal){path}")
            outside("read-tree", f"--prefix={path}/", inside("write-tree"))
            part.unlink()
        return outside("write-tree")
    finally:
        for index in (whole, part):
            index.unlink(missing_ok=True)
