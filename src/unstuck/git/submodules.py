"""Edge: Fill the submodules of a slot from clones on this machine, never from the network."""

import hashlib
import shutil
from pathlib import Path, PurePosixPath

from unstuck.git.command import Git, shown
from unstuck.git.furnishing import OWN_CONFIG, Borrowed, furnish, remove
from unstuck.git.repository import Repository, Submodule, read_submodules


def fill(slot: Path, links: dict[str, str], repository: Repository, index: Path) -> tuple[str, ...]:
    """Give each submodule the commit that the slot asks for; return a sentence for each that stays empty."""
    return _fill(slot, links, _places(repository), repository.root, index)


def local_clone(repository: Repository, path: str) -> Path | None:
    """Return the git directory of the user's own clone of the submodule at this path."""
    found = [submodule for submodule in repository.submodules() if submodule.path == path]
    return _local(found[0], _places(repository), repository.root) if found else None


def folders(git: Git, tree: str) -> tuple[list[str], dict[str, str]]:
    """List the folders of a tree, and its submodules with their commits."""
    plain, links = [], {}
    for entry in git("ls-tree", "-r", "-d", "-z", "--full-tree", tree).split("\0"):
        facts, _, path = entry.partition("\t")
        if " commit " in facts:
            links[path] = facts.split(" ")[2]
        elif path:
            plain.append(path)
    return plain, links


def _places(repository: Repository) -> tuple[Path, ...]:
    return (repository.git_dir / "modules", repository.common_dir / "modules")


def _fill(
    folder: Path, links: dict[str, str], places: tuple[Path, ...], checkout: Path, index: Path
) -> tuple[str, ...]:
    if not links or not (folder / ".gitmodules").is_file():
        return ()
    notes: list[str] = []
    for submodule in read_submodules(Git(checkout), "--file", str(folder / ".gitmodules")):
        if submodule.path not in links:
            continue
        source = _local(submodule, places, checkout)
        if source is None:
            notes.append(
                f"The submodule {shown(submodule.path)} has no clone on this machine, so its folder stays empty."
            )
            continue
        own = index.with_name(
            f"{index.name}.{hashlib.sha256(submodule.path.encode(errors='replace')).hexdigest()[:12]}"
        )
        inside = folder / submodule.path
        reason = _check_out(inside, source, links[submodule.path], own)
        if reason:
            notes.append(f"The submodule {shown(submodule.path)} could not be filled from {source}: {reason}.")
            continue
        inner = folders(Git(inside, env={"GIT_DIR": str(source)}), links[submodule.path])[1]
        notes.extend(_fill(inside, inner, (source / "modules",), checkout / submodule.path, own))
    return tuple(notes)


def _local(submodule: Submodule, places: tuple[Path, ...], checkout: Path) -> Path | None:
    if not (_is_plain(submodule.name) and _is_plain(submodule.path)):
        return None
    clones = (*(place / submodule.name for place in places), checkout / submodule.path / ".git")
    return next((clone for clone in clones if (clone / "HEAD").is_file()), None)


def _is_plain(name: str) -> bool:
    """Tell whether a name from `.gitmodules` stays below the folder it is joined to."""
    return not (name.startswith("/") or "\n" in name or ".." in PurePosixPath(name).parts)


def _check_out(inside: Path, source: Path, commit: str, index: Path) -> str:
    """Make a submodule's folder hold a commit, with a git folder of its own; return why that failed, if so."""
    if inside.is_symlink() or not inside.is_dir():
        remove(inside)
        inside.mkdir(parents=True)
    env = {"GIT_DIR": str(source), "GIT_WORK_TREE": str(inside), "GIT_INDEX_FILE": str(index)}
    git = Git(inside, env=env)
    for arguments in (("read-tree", "--reset", "-u", commit), ("clean", "-ffd")):
        done = git.attempt(*arguments)
        if done.returncode != 0:
            index.unlink(missing_ok=True)
            return shown(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "git gave no reason")
    furnish(inside / ".git", source, commit, Borrowed(refs="", config=OWN_CONFIG, stores=(source / "objects",)))
    shutil.copy2(index, inside / ".git" / "index")
    return ""
