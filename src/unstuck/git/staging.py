"""Write a worktree's files as a git tree, through the private index."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unstuck.errors import GitFailed
from unstuck.git import submodules
from unstuck.git.command import Git, shown
from unstuck.git.repository import OURS
from unstuck.git.worktrees import Worktree
from unstuck.ports import Tree

GITLINK = "160000"
GONE = "000000"
UNREAD = re.compile(r"^error: unable to index file '(.*)'$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One path in which the index differs from the base."""

    path: str
    old_mode: str
    new_mode: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """The difference between the base and the files, and what git could not take in."""

    changes: tuple[Change, ...]
    nested: tuple[str, ...] = ()
    """Repositories of their own inside the worktree."""
    unread: tuple[str, ...] = ()


def stage(worktree: Worktree, base: str, placed: Sequence[str]) -> Staged:
    """Put every tracked and every new file that is not ignored into the private index."""
    worktree.release_index()
    git = worktree.git
    empty: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    if not worktree.index.exists() or git.attempt("add", "-A", "--sparse", "--", *_all_but(placed)).returncode != 0:
        empty, unread = _stage_from_scratch(worktree, base, placed)
    raw = git("diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", "--ignore-submodules=none", base)
    changes = tuple(_changes(raw))
    nested = [change.path for change in changes if change.new_mode == GITLINK != change.old_mode]
    return Staged(changes=changes, nested=(*nested, *empty), unread=unread)


def write(worktree: Worktree, base: str, left_out: Sequence[str]) -> Tree:
    """Write exactly what would land on `base`: the folder's files without `left_out`, placed things and nested repositories."""
    prepared = worktree.prepared()
    if not prepared.ready or prepared.base is None:
        raise GitFailed(f"The worktree {worktree.path} was not prepared.", hint="Go on with `unstuck resume`.")
    staged = stage(worktree, base, prepared.placed)
    notes = [*prepared.notes]
    notes += [f"{shown(name)} is a git repository of its own and was left out." for name in staged.nested]
    notes += [f"{shown(name)} could not be read and was left out." for name in staged.unread]
    if (worktree.path / OURS).exists() and not worktree.git("ls-tree", base, OURS):
        notes.append(f"The agent wrote into {OURS}/; that was left out.")
    drop: list[Change] = []
    for change in staged.changes:
        if change.path in staged.nested or _is_within(change.path, (*prepared.placed, OURS)):
            drop.append(change)
        elif note := _reason_to_drop(worktree, change, left_out):
            drop.append(change)
            notes.append(note)
    git = worktree.git
    if drop:
        restored = "".join(f"{change.old_mode} {change.old}\t{change.path}\0" for change in drop)
        git("update-index", "-z", "--replace", "--index-info", stdin=restored)
    return Tree(id=git("write-tree"), notes=tuple(notes))


def _all_but(paths: Iterable[str]) -> tuple[str, ...]:
    return (":/", *(f":(exclude,top,literal){path}" for path in paths))


def _stage_from_scratch(
    worktree: Worktree, base: str, placed: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Stage with a new index, around what git cannot add: the index was damaged, or the agent left something odd.

    Return the repositories without a commit, and the files that could not be read.
    """
    worktree.index.unlink(missing_ok=True)
    git = worktree.git
    git("read-tree", base)
    listed = git.attempt("ls-files", "--others", "--exclude-standard", "-z").stdout.split("\0")
    repositories = [name.rstrip("/") for name in listed if name.endswith("/")]
    empty = tuple(
        name for name in repositories if not Git(worktree.path / name).succeeds("rev-parse", "--verify", "HEAD")
    )
    done = git.attempt("add", "-A", "--sparse", "--ignore-errors", "--", *_all_but((*placed, *empty)))
    if done.returncode not in {0, 1}:
        raise GitFailed(
            f"The files in {worktree.path} cannot be read by git: {shown(done.stderr.strip())}",
            hint="See whether the disk is full, then go on with `unstuck resume`.",
        )
    return empty, tuple(UNREAD.findall(done.stderr))


def _changes(raw: str) -> Iterable[Change]:
    fields = raw.split("\0")
    for facts, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old, new, _ = facts.removeprefix(":").split(" ")
        yield Change(path=path, old_mode=old_mode if old_mode != GONE else "0", new_mode=new_mode, old=old, new=new)


def _is_within(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(place + "/") for place in places)


def _reason_to_drop(worktree: Worktree, change: Change, left_out: Sequence[str]) -> str | None:
    name = shown(change.path)
    if _is_within(change.path, left_out):
        return f"The agent changed {name}; that was left out, because the plan belongs to its author."
    if change.new_mode != GITLINK:
        return None
    clone = submodules.local_clone(worktree.repository, change.path)
    if clone is not None and worktree.repository.git.at(clone).succeeds("cat-file", "-e", change.new + "^{commit}"):
        return None
    return (
        f"The submodule {name} was moved to {change.new[:12]}, a commit that only the worktree has; that was left out."
    )
