"""Remove the slots, branches and snapshots of finished runs that are clean, merged and unused."""

import re
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from unstuck.git import staging
from unstuck.git.git_command import Git, displayable, processes_inside
from unstuck.git.git_folder import head_commit, remove_path
from unstuck.git.repository import OWNER_FILE, SLOTS_FOLDER, Repository
from unstuck.git.shared_objects import BORROWED_REF, TIP_REF, SharedObjects
from unstuck.git.slots import Slot
from unstuck.git.staging import write_slot_tree
from unstuck.model.errors import GitFailed
from unstuck.model.landing import RUN_BRANCH_REFS, run_branch

SNAPSHOT_REFS = "refs/unstuck/snapshots/"
SLOT = re.compile(r"w(\d+)")
ABANDONED_SECONDS = 30 * 86400.0
"""Unused slots of a missing checkout are abandoned after this time. A moved checkout would have used them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneResult:
    """Sentences about what was or would be removed and kept."""

    removed: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    what: str
    keep_because: str | None
    ref: str = ""
    commit: str = ""
    slot: Slot | None = None
    folder: Path | None = None


def prune(
    repository: Repository,
    finished: Collection[str],
    slots: Path,
    *,
    left_out: tuple[str, ...] = (),
    dry_run: bool = False,
) -> PruneResult:
    """Remove slots, run branches and snapshots. `finished` names the runs that will not go on.

    No process may own a run meanwhile. `left_out` are the plan's files, which never land.
    """
    findings = [*_slots(repository, slots, left_out), *_refs(repository, finished)]
    pruned = _pruned(repository.git, findings, dry_run=dry_run)
    if not dry_run and not any(slots.glob("w*/")):
        repository.git("update-ref", "--stdin", stdin=f"delete {BORROWED_REF}\ndelete {TIP_REF}\n")
    return pruned


def prune_abandoned(repository: Repository, slots: Path, *, dry_run: bool = False) -> PruneResult:
    """Remove the slots of other repositories that no longer exist."""
    return _pruned(repository.git, _abandoned(slots), dry_run=dry_run)


def _pruned(git: Git, findings: Iterable[_Finding], *, dry_run: bool) -> PruneResult:
    removed, kept = [], []
    for finding in findings:
        if finding.keep_because is not None:
            kept.append(f"Kept {finding.what}: {finding.keep_because}.")
            continue
        if not dry_run:
            _remove(git, finding)
        removed.append(f"{'Would remove' if dry_run else 'Removed'} {finding.what}.")
    return PruneResult(removed=tuple(removed), kept=tuple(kept))


def _slots(repository: Repository, folder: Path, left_out: tuple[str, ...]) -> Iterator[_Finding]:
    shared = SharedObjects(repository)
    paths = (*folder.glob("w*"), *(repository.store / "slots").glob("w*"))
    numbers = {int(match[1]) for path in paths if (match := SLOT.fullmatch(path.name.partition(".")[0]))}
    for number in sorted(numbers):
        slot = Slot(shared=shared, folder=folder, number=number)
        reason = _reason_to_keep(slot, left_out) if slot.path.is_dir() else None
        yield _Finding(what=f"the slot {slot.path}", keep_because=reason, slot=slot)


def _reason_to_keep(slot: Slot, left_out: tuple[str, ...]) -> str | None:
    if pids := processes_inside(slot.path):
        return f"process {pids[0]} works in it"
    state = slot.state()
    if not state.ready or state.clean:
        return None
    base, git = state.base or slot.repository.head, slot.repository.git
    head = head_commit(slot.path, slot.path) or base
    try:
        staged = staging.stage(slot, base, state)
        trees = {slot.git("write-tree"), write_slot_tree(slot, base, left_out).id}
        saved = trees & _saved_trees(git) and _is_saved(git, head)
    except GitFailed as error:
        return f"git cannot read it ({error.message})"
    if staged.nested:
        return f"it holds a repository of its own, {staged.nested[0]}"
    if lost := [module.path for module in staged.edited if not _is_saved(git, module.commit)]:
        return f"it holds edits in the submodule {lost[0]}"
    return None if saved else "it holds work that is in no branch and no snapshot"


def _saved_trees(git: Git) -> frozenset[str]:
    return frozenset(git("log", "--all", "--format=%T").split())


def _is_saved(git: Git, commit: str) -> bool:
    held = git.attempt("for-each-ref", "--count=1", "--contains", commit, "refs/heads", "refs/tags", "refs/unstuck")
    return bool(held.stdout)  # git prints nothing about a commit that only the slot has


def _abandoned(slots: Path) -> Iterator[_Finding]:
    for owner in sorted(slots.parent.parent.glob(f"*/{SLOTS_FOLDER}/{OWNER_FILE}")):
        folder = owner.parent
        try:
            checkout = Path(owner.read_text(errors="surrogateescape").strip())
            used = max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
        except OSError:
            continue
        if folder == slots or (checkout / ".git").exists():
            continue
        moved = f"its checkout {displayable(str(checkout))} is gone, and may have been moved; if it was not: rm -rf {displayable(str(folder.parent))}"
        reason = moved if time.time() - used < ABANDONED_SECONDS else None
        yield _Finding(what=f"the slots in {displayable(str(folder))}", keep_because=reason, folder=folder.parent)


def _refs(repository: Repository, finished: Collection[str]) -> Iterator[_Finding]:
    git = repository.git
    listed = git("for-each-ref", "--format=%(refname) %(objectname) %(worktreepath)", RUN_BRANCH_REFS, SNAPSHOT_REFS)
    refs = [tuple(line.split(" ", 2)) for line in listed.splitlines()]
    unmerged: set[str] = set()
    for ref, commit, checkout in refs:
        if ref.startswith(RUN_BRANCH_REFS):
            run = ref.removeprefix(RUN_BRANCH_REFS)
            reason = _branch_is_needed(git, run, commit, checkout, finished)
            unmerged |= {run} if reason is not None else set()
            yield _Finding(what=f"the branch {run_branch(run)}", keep_because=reason, ref=ref, commit=commit)
    for ref, commit, _ in refs:
        if ref.startswith(SNAPSHOT_REFS):
            run = ref.removeprefix(SNAPSHOT_REFS).partition("/")[0]
            kept = "its run's branch is kept" if run in unmerged else None
            reason = kept if run in finished else "its run is not finished"
            what = f"the snapshot {ref.removeprefix(SNAPSHOT_REFS)}"
            yield _Finding(what=what, keep_because=reason, ref=ref, commit=commit)


def _branch_is_needed(git: Git, run: str, commit: str, checkout: str, finished: Collection[str]) -> str | None:
    if run not in finished:
        return "its run is not finished"
    if checkout:
        return f"it is checked out in {checkout}"
    merged = git("for-each-ref", "--contains", commit, "--format=%(refname)", "refs/heads").split("\n")
    if any(name and not name.startswith(RUN_BRANCH_REFS) for name in merged):
        return None
    # After a merge as a single commit, the user's branch has the run's tree, but not its commits.
    tree = git("rev-parse", f"{commit}^{{tree}}")
    if tree in git("log", "--format=%T", f"{commit}..HEAD").split():
        return None
    return f"its commits are not in a branch of yours (git merge {run_branch(run)}, or git branch -D {run_branch(run)})"


def _remove(git: Git, finding: _Finding) -> None:
    if finding.slot is not None:
        finding.slot.remove()
    elif finding.folder is not None:
        remove_path(finding.folder)
    else:
        git("update-ref", "-d", finding.ref, finding.commit)
