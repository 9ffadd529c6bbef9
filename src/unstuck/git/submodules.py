"""Fill the submodules of a slot from the user's own clones."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from unstuck.git.git_command import Git, displayable
from unstuck.git.git_folder import OWN_CONFIG, GitFolderTemplate, remove_path, write_git_folder
from unstuck.git.repository import Repository, Submodule, read_submodules


class FilledSubmodule(NamedTuple):
    """A submodule with its files in a slot."""

    path: str
    """Path in the slot."""
    commit: str
    source: str
    """The git folder of the user's clone."""
    entries: str
    """The private index of its files."""

    def git(self, slot: Path, index: str = "") -> Git:
        """Return git on its files with the user's clone. It ignores the `.git` in the slot."""
        inside = slot / self.path
        env = {"GIT_DIR": self.source, "GIT_WORK_TREE": str(inside), "GIT_INDEX_FILE": index or self.entries}
        return Git(inside, env=env)

    def touched(self, slot: Path, index: str = "") -> tuple[str, ...]:
        """Return its changed and new files. Git enters no submodule for that."""
        if not (slot / self.path).is_dir() or not any((slot / self.path).iterdir()):
            return ()
        return tuple(dict.fromkeys(self.git(slot, index).names("ls-files", "-z", "-m", "-o", "--exclude-standard")))


def fill_submodules(
    slot: Path, links: dict[str, str], repository: Repository, index: Path
) -> tuple[tuple[FilledSubmodule, ...], tuple[str, ...]]:
    """Check out each submodule of the slot. Return them, and a sentence for each that stays empty."""
    filled: list[FilledSubmodule] = []
    notes = tuple(
        _fill(
            FilledSubmodule(str(slot), "", "", str(index)), links, _module_folders(repository), repository.root, filled
        )
    )
    return tuple(module._replace(path=os.path.relpath(module.path, slot)) for module in filled), notes


def local_clone(repository: Repository, path: str) -> Path | None:
    """Return the git folder of the user's own clone of the submodule at this path."""
    submodules = [submodule for submodule in repository.submodules() if submodule.path == path]
    return _find_clone(submodules[0], _module_folders(repository), repository.root) if submodules else None


def tree_folders(git: Git, tree: str) -> tuple[list[str], dict[str, str]]:
    """Return the folders of a tree, and its submodules with their commits."""
    plain, links = [], {}
    for entry in git("ls-tree", "-r", "-d", "-z", "--full-tree", tree).split("\0"):
        facts, _, path = entry.partition("\t")
        if " commit " in facts:
            links[path] = facts.split(" ")[2]
        elif path:
            plain.append(path)
    return plain, links


def _module_folders(repository: Repository) -> tuple[Path, ...]:
    return (repository.git_dir / "modules", repository.common_dir / "modules")


def _fill(
    outer: FilledSubmodule,
    links: dict[str, str],
    places: tuple[Path, ...],
    checkout: Path,
    filled: list[FilledSubmodule],
) -> Iterator[str]:
    folder, index = Path(outer.path), Path(outer.entries)
    if not links or not (folder / ".gitmodules").is_file():
        return
    for submodule in read_submodules(Git(checkout), "--file", str(folder / ".gitmodules")):
        if submodule.path not in links:
            continue
        source = _find_clone(submodule, places, checkout)
        if source is None:
            yield f"The submodule {displayable(submodule.path)} has no clone on this machine, so its folder stays empty."
            continue
        own = index.with_name(
            f"{index.name}.{hashlib.sha256(submodule.path.encode(errors='replace')).hexdigest()[:12]}"
        )
        inside = folder / submodule.path
        reason = _check_out(inside, source, links[submodule.path], own)
        if reason:
            yield f"The submodule {displayable(submodule.path)} could not be filled from {source}: {reason}."
            continue
        filled.append(FilledSubmodule(str(inside), links[submodule.path], str(source), str(own)))
        inner = tree_folders(Git(inside, env={"GIT_DIR": str(source)}), links[submodule.path])[1]
        yield from _fill(filled[-1], inner, (source / "modules",), checkout / submodule.path, filled)


def _find_clone(submodule: Submodule, places: tuple[Path, ...], checkout: Path) -> Path | None:
    if not (_is_safe_name(submodule.name) and _is_safe_name(submodule.path)):
        return None
    clones = (*(place / submodule.name for place in places), checkout / submodule.path / ".git")
    return next((clone for clone in clones if (clone / "HEAD").is_file()), None)


def _is_safe_name(name: str) -> bool:
    """Return whether a name from `.gitmodules` stays below its folder."""
    return not (name.startswith("/") or "\n" in name or ".." in PurePosixPath(name).parts)


def _check_out(inside: Path, source: Path, commit: str, index: Path) -> str:
    """Check out a commit in a submodule's folder, with its own git folder. Return why that failed."""
    if inside.is_symlink() or not inside.is_dir():
        remove_path(inside)
        inside.mkdir(parents=True)
    env = {"GIT_DIR": str(source), "GIT_WORK_TREE": str(inside), "GIT_INDEX_FILE": str(index)}
    git = Git(inside, env=env)
    for arguments in (("read-tree", "--reset", "-u", commit), ("clean", "-ffd")):
        done = git.attempt(*arguments)
        if done.returncode != 0:
            index.unlink(missing_ok=True)
            return displayable(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "git gave no reason")
    write_git_folder(
        inside / ".git", source, commit, GitFolderTemplate(refs="", config=OWN_CONFIG, stores=(source / "objects",))
    )
    shutil.copy2(index, inside / ".git" / "index")
    return ""
