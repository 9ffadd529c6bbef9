"""Fill the submodules of a worktree from clones on this machine, never from the network."""

from pathlib import Path, PurePosixPath

from unstuck.git.command import Git, shown
from unstuck.git.repository import Repository, Submodule, read_submodules


def fill(worktree: Path, repository: Repository) -> tuple[str, ...]:
    """Give each submodule the commit that the worktree asks for; return a sentence for each that stays empty."""
    return _fill(worktree, (repository.git_dir / "modules", repository.common_dir / "modules"), repository.root)


def local_clone(repository: Repository, path: str) -> Path | None:
    """Return the git directory of the user's own clone of the submodule at this path."""
    places = (repository.git_dir / "modules", repository.common_dir / "modules")
    found = [submodule for submodule in repository.submodules() if submodule.path == path]
    return _local(found[0], places, repository.root) if found else None


def _fill(worktree: Path, places: tuple[Path, ...], checkout: Path) -> tuple[str, ...]:
    if not (worktree / ".gitmodules").is_file():
        return ()
    notes: list[str] = []
    for submodule in read_submodules(Git(worktree), "--file", ".gitmodules"):
        source = _local(submodule, places, checkout)
        if source is None:
            notes.append(
                f"The submodule {shown(submodule.path)} has no clone on this machine, so its folder stays empty."
            )
            continue
        notes.extend(_update(worktree, submodule, source))
        notes.extend(_fill(worktree / submodule.path, (source / "modules",), checkout / submodule.path))
    return tuple(notes)


def _local(submodule: Submodule, places: tuple[Path, ...], checkout: Path) -> Path | None:
    if not (_is_plain(submodule.name) and _is_plain(submodule.path)):
        return None
    clones = (*(place / submodule.name for place in places), checkout / submodule.path / ".git")
    return next((clone for clone in clones if (clone / "HEAD").is_file()), None)


def _is_plain(name: str) -> bool:
    """Tell whether a name from `.gitmodules` stays below the folder it is joined to, and in one setting of git's."""
    return not (name.startswith("/") or "=" in name or "\n" in name or ".." in PurePosixPath(name).parts)


def _update(worktree: Path, submodule: Submodule, source: Path) -> tuple[str, ...]:
    # Given on the command line, none of these is written into the user's own configuration.
    git = Git(worktree).with_settings(
        "protocol.file.allow=always",
        f"submodule.{submodule.name}.url={source}",
        f"submodule.{submodule.name}.active=true",
        f"submodule.{submodule.name}.update=checkout",
    )
    done = git.attempt(
        "submodule", "update", "--init", "--force", "--no-fetch", "--checkout", "--", f":(literal){submodule.path}"
    )
    if done.returncode != 0:
        reason = shown(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "git gave no reason")
        return (f"The submodule {shown(submodule.path)} could not be filled from {source}: {reason}.",)
    inside = worktree.resolve() / submodule.path
    if (inside / ".git").is_file() and inside.resolve() == inside:
        Git(inside).attempt("clean", "-ffd")
    return ()
