"""Write the files of a slot as git trees, for landing or as a snapshot."""

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from unstuck.git.contents import GITLINK, NO_MODE, TreeDifference, parse_differences, raw_difference, summarize_changes
from unstuck.git.git_command import Git, displayable
from unstuck.git.git_folder import head_commit
from unstuck.git.repository import UNSTUCK_FOLDER
from unstuck.git.shared_objects import SlotState, reproducible_commit
from unstuck.git.slots import Slot
from unstuck.git.submodules import FilledSubmodule, local_clone, tree_folders
from unstuck.git.untracked_files import is_within
from unstuck.model.changes import NEVER_LANDS, Changes
from unstuck.model.errors import CheckpointGone, GitFailed
from unstuck.model.landing import Snapshot, Tree

LINK = "120000"
UNREADABLE = re.compile(r"^error: unable to index file '(.*)'$", re.MULTILINE)
SUBMODULE_REF = "refs/unstuck/snapshots/{run}/submodule-{commit:.12}"
EDITED_NOTE = (
    "What is edited in the submodule {path} {never}: {files}. It is kept, and in your checkout this brings it back: "
    "git show --binary --format= {ref} | git -C {quoted} apply"
)
MAX_NAMED_FILES = 5


class EditedSubmodule(NamedTuple):
    """The changed files of a submodule, as a commit on top of their old form."""

    path: str
    files: tuple[str, ...]
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """The files of a slot as a tree, its changes, and the files that git could not add."""

    tree: str
    changes: tuple[TreeDifference, ...]
    summary: Changes | None = None
    """The changes by kind, or None if they are not complete."""
    nested: tuple[str, ...] = ()
    """Repositories that the agent made inside the slot."""
    unread: tuple[str, ...] = ()
    edited: tuple[EditedSubmodule, ...] = ()
    """Submodules with files that no commit of the user has."""


def stage(slot: Slot, base: str, state: SlotState, base_tree: str | None = None) -> Staged:
    """Put every tracked and every new file that is not ignored into the private index.

    Submodules are excluded: git would run in them with the agent's configuration.
    """
    slot.release_index()
    git = slot.git
    inner = [path for path in state.links if os.path.lexists(slot.path / path / ".git")]
    excluded = (*state.placed, *state.brought, *inner)
    empty: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    is_complete = slot.index.exists() and not slot.staging.exists()
    if slot.repository.common_dir.is_dir():  # the folder of the index may have been removed
        slot.staging.parent.mkdir(parents=True, exist_ok=True)
    slot.staging.touch()  # while it exists, the index may be incomplete or its objects unprotected
    if not is_complete or git.attempt("add", "-A", "--sparse", "--", *_all_but(excluded)).returncode != 0:
        empty, unread = _stage_from_scratch(slot, base, excluded)
    tree = git("write-tree")
    output = () if tree == base_tree else raw_difference(git, base, tree)
    differences = [*parse_differences(output)]
    nested = [change for change in differences if change.new_mode == GITLINK != change.old_mode]
    moved = [*_moved(slot, base, inner)] if inner else []
    undone = [replace(change, new_mode=change.old_mode, new=change.old) for change in nested]
    if undone or moved:
        tree = _tree_after(git, *(f"{change.new_mode} {change.new}\t{change.path}" for change in (*undone, *moved)))
    names = tuple(change.path for change in nested)
    changes = [change for change in differences if change.path not in names]
    return Staged(
        tree=tree,
        changes=(*changes, *moved),
        summary=None if undone or moved else summarize_changes(output),
        nested=(*names, *empty),
        unread=unread,
        edited=tuple(_edited(slot, state)),
    )


def write_slot_tree(slot: Slot, base: str, left_out: Sequence[str], run: str = "") -> Tree:
    """Return the tree that would land on `base`: the slot's files without `left_out`, placed files and repositories.

    Edits in submodules cannot land. They are kept under a ref of the run, if there is one.
    """
    try:
        return _write(slot, base, left_out, run)
    except (GitFailed, CheckpointGone):
        if not slot.staging.exists():
            raise
        return _write(slot, base, left_out, run)  # the user's garbage collection was faster than the ref


def _write(slot: Slot, base: str, left_out: Sequence[str], run: str) -> Tree:
    state = slot.state()
    if not state.ready or state.base is None:
        raise GitFailed(f"The slot {slot.path} was not prepared.", hint="Go on with `unstuck resume`.")
    staged = stage(slot, base, state, slot.shared.trees.get(base))
    notes = [*state.notes]
    notes += [_keep_edits(slot, edited, run) for edited in staged.edited]
    notes += [f"{displayable(name)} is a git repository of its own, which {NEVER_LANDS}." for name in staged.nested]
    notes += [f"{displayable(name)} could not be read, and so it {NEVER_LANDS}." for name in staged.unread]
    if (slot.path / UNSTUCK_FOLDER).exists() and not slot.git("ls-tree", base, UNSTUCK_FOLDER):
        notes.append(f"The agent wrote into {UNSTUCK_FOLDER}/; that was left out.")
    drop: list[TreeDifference] = []
    for change in staged.changes:
        if (
            is_within(change.path, (*state.placed, *state.brought, UNSTUCK_FOLDER))
            or f"{change.new_mode} {change.new} {change.path}" in state.bent
        ):
            drop.append(change)
        elif note := _reason_to_drop(slot, change, left_out):
            drop.append(change)
            notes.append(note)
    restored = [f"{change.old_mode} {change.old}\t{change.path}" for change in drop]
    tree = _tree_after(slot.git, *restored) if drop else staged.tree
    kept = [change for change in staged.changes if change not in drop]
    slot.shared.remember(base, tree, kept, None if drop else staged.summary)
    slot.keep_alive(tree)
    slot.staging.unlink()
    return Tree(id=tree, notes=tuple(notes))


def tree_with_paths(git: Git, folder: Path, base: str, tree: str, paths: Sequence[str]) -> str:
    """Write the tree of `base` with these paths as in `tree`. Paths that `tree` lacks are removed."""
    wanted = set(paths)
    entries = {}
    for entry in git.names("ls-tree", "-r", "-z", "--full-tree", tree):
        facts, _, path = entry.partition("\t")
        if path in wanted:
            mode, _, blob = facts.split(" ")
            entries[path] = f"{mode} {blob}"
    gone = [f"0 {'0' * len(tree)}\t{path}" for path in sorted(wanted - entries.keys())]
    return tree_with_entries(
        git, folder, base, [*gone, *(f"{facts}\t{path}" for path, facts in sorted(entries.items()))]
    )


def tree_with_entries(git: Git, folder: Path, base: str, entries: Sequence[str]) -> str:
    """Write the tree of `base` with other entries, each as `mode blob<tab>path`."""
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        index = git.using(GIT_INDEX_FILE=str(Path(inside) / "index"))
        index("read-tree", base)
        return _tree_after(index, *entries)


def _tree_after(git: Git, *entries: str) -> str:
    """Put these entries into the index and return its tree."""
    put_entries(git, entries)
    return git("write-tree")


def put_entries(git: Git, entries: Sequence[str]) -> None:
    """Put these entries into the index, each as `mode blob<tab>path`, or with a stage behind the blob."""
    git("update-index", "-z", "--replace", "--index-info", stdin="".join(f"{entry}\0" for entry in entries))


def _all_but(paths: Iterable[str]) -> tuple[str, ...]:
    return (":/", *(f":(exclude,top,literal){path}" for path in paths))


def _stage_from_scratch(slot: Slot, base: str, excluded: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Stage with a new index, without the files that git cannot add.

    Needed if the index is damaged, or the agent left special files. Return the repositories without a commit, and the
    files that git could not read.
    """
    slot.index.unlink(missing_ok=True)
    git = slot.git
    git("read-tree", base)
    entries = git.attempt("ls-files", "--others", "--exclude-standard", "-z").stdout.split("\0")
    repositories = [name.rstrip("/") for name in entries if name.endswith("/")]
    empty = tuple(name for name in repositories if head_commit(slot.path / name, slot.path) is None)
    links = [path for path in tree_folders(git, base)[1] if os.path.lexists(slot.path / path / ".git")]
    excluded = (*excluded, *empty, *links)
    done = git.attempt("add", "-A", "--sparse", "--ignore-errors", "--", *_all_but(excluded))
    attributes: tuple[str, ...] = ()
    if done.returncode not in {0, 1}:  # attributes of the agent may be wrong; those of the base apply
        attributes = git.names("ls-files", "-z", "-m", "-o", "--", ":(top,glob)**/.gitattributes")
        with _moved_away(slot, attributes):
            done = git.attempt("add", "-A", "--sparse", "--ignore-errors", "--", *_all_but((*excluded, *attributes)))
    if done.returncode not in {0, 1}:
        raise GitFailed(
            f"The files in {slot.path} cannot be read by git: {displayable(done.stderr.strip())}",
            hint="See whether the disk is full, then go on with `unstuck resume`.",
        )
    return empty, (*attributes, *UNREADABLE.findall(done.stderr))


@contextmanager
def _moved_away(slot: Slot, names: Sequence[str]) -> Iterator[None]:
    """Move files of the folder away while the context is active."""
    with tempfile.TemporaryDirectory(prefix=f".{slot.path.name}.", dir=slot.folder) as place:
        moved = [(slot.path / name, Path(place, str(number))) for number, name in enumerate(names)]
        for file, other in moved:
            file.rename(other)
        try:
            yield
        finally:
            for file, other in moved:
                other.rename(file)


def _moved(slot: Slot, base: str, links: Sequence[str]) -> Iterable[TreeDifference]:
    """Yield the submodules that the agent moved to another commit."""
    before = tree_folders(slot.git, base)[1]
    for path in links:
        now = head_commit(slot.path / path, slot.path)
        if now is not None and path in before and now != before[path]:
            yield TreeDifference(path=path, old_mode=GITLINK, new_mode=GITLINK, old=before[path], new=now)


def _reason_to_drop(slot: Slot, change: TreeDifference, left_out: Sequence[str]) -> str | None:
    name = displayable(change.path)
    if is_within(change.path, left_out):
        return f"The agent changed {name}; that was left out, because the plan belongs to its author."
    if change.path == ".gitmodules" and not _is_harmless(slot, change):
        return f"The agent's {name} names what git refuses; that was left out."
    if change.new_mode != GITLINK:
        return None
    clone = local_clone(slot.repository, change.path)
    if clone is not None and slot.repository.git.at(clone).succeeds("cat-file", "-e", change.new + "^{commit}"):
        return None
    return f"The submodule {name} was moved to {change.new[:12]}, a commit that only the slot has: that {NEVER_LANDS}."


def _edited(slot: Slot, state: SlotState) -> Iterator[EditedSubmodule]:
    """Write the agent's edits in submodules, committed there or not, as commits of the user's repository."""
    part = slot.index.with_name(f"{slot.index.name}.part")
    try:
        for module in state.filled:
            now = head_commit(slot.path / module.path, slot.path)
            index = module.entries
            if now not in {None, module.commit} and module.git(slot.path).succeeds(
                "cat-file", "-e", f"{now}^{{commit}}"
            ):
                index = str(part)  # that commit can land, so its files are no edits
                module.git(slot.path, index)("read-tree", str(now))
            names = [name for name in module.touched(slot.path, index) if f"{module.path}/{name}" not in state.brought]
            if names:
                yield _as_commit(slot, module, names, module.git(slot.path, index))
            part.unlink(missing_ok=True)
    finally:
        part.unlink(missing_ok=True)


def _as_commit(slot: Slot, module: FilledSubmodule, names: Sequence[str], inside: Git) -> EditedSubmodule:
    """Write only the changed files, in a commit of their old form and one of the new. The difference is a patch."""
    listing = "".join(f"{name}\0" for name in names)
    before = [entry for entry in inside.names("ls-files", "-z", "-s") if entry.partition("\t")[2] in {*names}]
    blobs = [entry.split(" ")[1] for entry in before if not entry.startswith(GITLINK)]
    if blobs:
        place = slot.repository.common_dir / "objects" / "pack" / "pack"
        inside("pack-objects", "--quiet", str(place), stdin="".join(f"{blob}\n" for blob in blobs))
    with tempfile.TemporaryDirectory(dir=slot.index.parent) as folder:
        env = {"GIT_WORK_TREE": str(slot.path / module.path), "GIT_INDEX_FILE": str(Path(folder, "index"))}
        git = slot.git.using(**env).at(slot.path / module.path)
        git("update-index", "-z", "--index-info", stdin="".join(f"{entry}\0" for entry in before))
        commit = reproducible_commit(git, git("write-tree"), (), f"{displayable(module.path)} as it was")
        git.attempt("update-index", "-z", "--add", "--remove", "--stdin", stdin=listing)
        commit = reproducible_commit(git, git("write-tree"), (commit,), f"Edits in {displayable(module.path)}")
    return EditedSubmodule(module.path, tuple(names), commit)


def _keep_edits(slot: Slot, edited: EditedSubmodule, run: str) -> str:
    """Keep the edits in a submodule under a ref and return a sentence about them."""
    ref = SUBMODULE_REF.format(run=run, commit=edited.commit)
    if run:
        slot.repository.git("update-ref", ref, edited.commit)
    more = f" and {len(edited.files) - MAX_NAMED_FILES} more" if len(edited.files) > MAX_NAMED_FILES else ""
    files = displayable(", ".join(edited.files[:MAX_NAMED_FILES])) + more
    return EDITED_NOTE.format(
        path=displayable(edited.path), quoted=shlex.quote(edited.path), never=NEVER_LANDS, ref=ref, files=files
    )


def _is_harmless(slot: Slot, change: TreeDifference) -> bool:
    """Return whether git accepts a `.gitmodules`: no link, no path outside of git's folder, no value like an option."""
    if change.new_mode == NO_MODE:
        return True
    listing = slot.git.attempt("config", "-z", "--blob", change.new, "--get-regexp", r"^submodule\.").stdout
    pairs = [entry.partition("\n") for entry in listing.split("\0") if entry]
    names = [key.removeprefix("submodule.").rpartition(".")[0] for key, _, _ in pairs]
    plain = all(".." not in name.split("/") and not name.startswith("-") for name in names)
    return change.new_mode != LINK and plain and not any(value.startswith("-") for _, _, value in pairs)


def take_snapshot(slot: Slot, ref: str, identity: Mapping[str, str]) -> Snapshot | None:
    """Keep the slot's state under `ref`, or return None if the slot has no changes.

    Like `git stash -u`: a commit of all files, whose parents are HEAD and a commit of the index.
    """
    state = slot.state()
    if not state.ready or not slot.path.is_dir():
        return None
    git, base = slot.git.using(**identity), state.base or slot.repository.head  # the stored state may be gone
    existing, base_tree = git.resolve(ref, base + "^{tree}")
    if existing is not None:
        return Snapshot(ref=ref, commit=existing)
    if base_tree is None:
        return None
    staged = stage(slot, base, state, base_tree)
    parents = _agent_commits(slot, identity, ref, base, base_tree)
    if parents == (base,) and not staged.changes and not staged.nested:
        slot.staging.unlink()
        return None
    tree = _with_nested(slot, git, staged.nested) if staged.nested else staged.tree
    options = [part for parent in parents for part in ("-p", parent)]
    commit = git("commit-tree", tree, *options, "-m", f"snapshot {ref}")
    slot.staging.unlink()
    return Snapshot(ref=ref, commit=commit)


def _agent_commits(slot: Slot, identity: Mapping[str, str], ref: str, base: str, base_tree: str) -> tuple[str, ...]:
    """Copy the agent's commits and index. Return the snapshot's parents, or the base alone if they are damaged."""
    own = slot.agent_objects
    if not own.is_intact:
        return (base,)
    inside = own.inside.using(**identity)
    head = head_commit(slot.path, slot.path) or base
    index_tree = _index_tree(slot, inside)
    if index_tree in {None, base_tree}:
        return (head,) if head == base or own.copy_to_user(head, base) else (base,)
    staged = inside.attempt("commit-tree", str(index_tree), "-p", head, "-m", f"index of {ref}")
    is_copied = staged.returncode == 0 and own.copy_to_user(staged.stdout.strip(), base)
    return (head, staged.stdout.strip()) if is_copied else (base,)


def _index_tree(slot: Slot, inside: Git) -> str | None:
    """Write the tree of the agent's own index. Return None if it is damaged or has conflicts."""
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
    """Write the tree with the files of nested repositories. Git alone would store only their commit."""
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
