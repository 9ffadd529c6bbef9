"""Edge: Undo what a crash of ours left half done in the user's checkout: our locks, and files that are provably ours."""

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from unstuck.errors import CannotWrite
from unstuck.git import locks as git_locks
from unstuck.git.command import Git
from unstuck.git.repository import Repository

FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")


@contextlib.contextmanager
def intent(repository: Repository, head: str, target: str) -> Iterator[None]:
    """Note what is about to happen in the user's checkout; the note outlives a crash and nothing else."""
    note = _note(repository)
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps({"head": head, "target": target}))
    except OSError as error:
        raise CannotWrite(
            f"{note} cannot be written: {error.strerror}.", hint="Make room and go on with `unstuck resume`."
        ) from error
    yield
    note.unlink(missing_ok=True)


def undo(git: Git, repository: Repository) -> None:
    """Put the checkout back to where it was before a merge of ours that was cut short; do nothing if none was."""
    note = _note(repository)
    try:
        noted, since = json.loads(note.read_text()), note.stat().st_mtime
        head, target = str(noted["head"]), str(noted["target"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    git_locks.await_quiet(repository.root, ours=True)  # the merge may have outlived its supervisor
    git_dir, branch = repository.git_dir, repository.common_dir / f"{repository.branch}.lock"
    for lock in (git_dir / "index.lock", git_dir / "HEAD.lock", git_dir / "ORIG_HEAD.lock", branch):
        with contextlib.suppress(FileNotFoundError):
            if lock.stat().st_mtime >= since:
                git_locks.release_abandoned(lock)
    if git("rev-parse", "HEAD") == head:
        _put_back(git, repository.root, head, target)
    note.unlink(missing_ok=True)


def touched(git: Git, head: str, target: str) -> dict[str, str]:
    """Return the paths in which two commits differ, each with git's letter for how."""
    fields = git(
        "diff-tree", "-r", "-z", "--name-status", "--no-renames", "--ignore-submodules=none", head, target
    ).split("\0")
    return dict(zip(fields[1::2], fields[::2], strict=False))


def _put_back(git: Git, root: Path, head: str, target: str) -> None:
    """Give back the old content to every touched file that holds nothing but what we wrote."""
    changed = {
        path: kind
        for path, kind in touched(git, head, target).items()
        if _is_ours(git, root / path, f"{target}:{path}")
    }
    added = [path for path, kind in changed.items() if kind == "A"]
    others = [path for path, kind in changed.items() if kind != "A"]
    if added:
        git("rm", "--cached", "--force", "--quiet", "--ignore-unmatch", *FROM_STDIN, stdin=_listed(added))
        for path in added:
            (root / path).unlink(missing_ok=True)
    if others:
        git("checkout", "--quiet", *FROM_STDIN, head, stdin=_listed(others))


def _is_ours(git: Git, place: Path, blob: str) -> bool:
    """Tell whether a file is missing, or holds the merged content or the beginning of it."""
    if place.parent.resolve() != place.parent:
        return False
    try:
        content = os.fsencode(place.readlink()) if place.is_symlink() else place.read_bytes()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    merged = git.attempt("cat-file", "--filters", blob)
    return merged.returncode == 0 and merged.stdout.encode("utf-8", "surrogateescape").startswith(content)


def _listed(paths: Sequence[str]) -> str:
    return "".join(f":(top,literal){path}\0" for path in paths)


def _note(repository: Repository) -> Path:
    return repository.store / "homecoming.json"
