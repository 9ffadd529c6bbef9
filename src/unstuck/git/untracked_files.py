"""Copy or link the user's ignored and untracked files into a worktree."""

import fcntl
import glob
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from unstuck.git.git_command import Git, displayable
from unstuck.model.errors import NO_ROOM, BadUsage, CannotWrite

FICLONE = 0x40049409
"""The Linux request to share the blocks of another file."""

INCLUDE_FILE = ".worktreeinclude"
NEVER = frozenset({".git", ".unstuck"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedFiles:
    """The untracked files that are in the worktree now, and sentences about those left out."""

    paths: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UntrackedFiles:
    """The `[workspace]` rules of one repository. A call with a worktree returns the paths that it placed."""

    root: Path
    copy: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    """Commands that create what cannot be copied. The engine runs them."""

    def __post_init__(self) -> None:
        for pattern in (*self.copy, *self.link):
            _check(pattern)

    def __call__(self, worktree: Path, fresh: bool) -> tuple[str, ...]:  # noqa: ARG002, FBT001 - the workspace calls it so
        return self.place(worktree).paths

    def place(self, worktree: Path) -> PlacedFiles:
        """Place the missing files. Existing ones are not overwritten, so a used worktree keeps its warm caches."""
        if not self.copy and not self.link and not (self.root / INCLUDE_FILE).is_file():
            return PlacedFiles()
        links = self._matches(self.link)
        copies = [name for name in self._matches(self.copy) + self._included() if not is_within(name, links)]
        wanted = dict.fromkeys(links, True) | dict.fromkeys(_outermost(copies), False)
        tracked = _tracked(Git(worktree), wanted)
        paths, notes = [], []
        _remove_drafts(worktree)
        for name, linked in wanted.items():
            if any(is_within(path, [name]) for path in tracked):
                notes.append(f"{displayable(name)} was not placed: git carries it in this worktree.")
            elif os.path.lexists(worktree / name):
                paths.append(name)
            elif note := self._put(name, worktree, linked=linked):
                notes.append(note)
            else:
                paths.append(name)
        _remove_drafts(worktree)
        return PlacedFiles(paths=tuple(paths), notes=tuple(notes))

    def _put(self, name: str, worktree: Path, *, linked: bool) -> str | None:
        """Place one file or folder. Return the reason if that is not possible."""
        source, target = self.root / name, worktree / name
        for unsafe in unsafe_copies(self.root, [name], linked=linked):
            return displayable(f"{unsafe.message} {unsafe.suggestion}")
        try:
            if not linked and not _is_copyable(source.lstat().st_mode):
                return f"{displayable(name)} was not placed: it is neither a file nor a folder nor a link."
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.parent.resolve().is_relative_to(worktree.resolve()):
                return f"{displayable(name)} was not placed: its folder is a link that leaves the worktree."
            if linked:
                target.symlink_to(source)
            else:
                copy = _new_draft_folder(worktree) / "copy"
                _copy(source, copy, self.root)
                _relocate(copy, source, target)
                copy.rename(target)
        except OSError as error:
            if error.errno in NO_ROOM:
                raise CannotWrite(
                    f"{displayable(name)} cannot be copied into {worktree}: {error.strerror}.",
                    hint="Make room, or take it out of `copy` in `[workspace]`.",
                ) from error
            return f"{displayable(name)} was not placed: {error.strerror} ({displayable(str(error.filename))})."
        return None

    def _matches(self, patterns: Sequence[str]) -> list[str]:
        """Return the untracked paths in the user's checkout that match the patterns."""
        names = [name for pattern in patterns for name in _glob(self.root, "", Path(pattern).parts)]
        tracked = _tracked(Git(self.root), names)
        return _outermost(part for name in names for part in _untracked(self.root, name, tracked))

    def _included(self) -> list[str]:
        """Return the ignored files that match `.worktreeinclude`, which has the format of `.gitignore`."""
        if not (self.root / INCLUDE_FILE).is_file():
            return []
        git = Git(self.root)
        listed = git.names("ls-files", "-z", "--others", "--ignored", "--directory", f"--exclude-from={INCLUDE_FILE}")
        names = [name.rstrip("/") for name in listed if name.split("/")[0] not in NEVER]
        ignored = git.attempt("check-ignore", "-z", "--stdin", stdin="".join(f"{name}\0" for name in names)).stdout
        return [name for name in ignored.split("\0") if name]


def _check(pattern: str) -> None:
    parts = Path(pattern).parts
    if not parts or Path(pattern).is_absolute() or ".." in parts or parts[0] in NEVER or "\0" in pattern:
        raise BadUsage(
            f"`[workspace]` cannot place {displayable(pattern)!r}: it must name something inside the repository that is not git's or ours.",
            hint="In unstuck.toml, write paths as seen from the repository's root, such as `.env` or `packages/*/node_modules`.",
        )


def _glob(root: Path, base: str, parts: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths below `base` that match a pattern, without following links. Skip `.git` and `.unstuck`."""
    first, rest = parts[0], parts[1:]
    try:
        entries = sorted(os.scandir(root / base), key=lambda entry: entry.name)
    except OSError:
        return
    if first == "**":
        matches = set(_glob(root, base, rest or ("*",)))
        yield from sorted(matches)
        entries = [entry for entry in entries if _join(base, entry.name) not in matches]
    for entry in entries:
        name = _join(base, entry.name)
        if name in NEVER or not (first == "**" or fnmatchcase(entry.name, first)):
            continue
        if first != "**" and not rest:
            yield name
        elif entry.is_dir(follow_symlinks=False):
            yield from _glob(root, name, parts if first == "**" else rest)


def _join(base: str, name: str) -> str:
    return f"{base}/{name}" if base else name


def _tracked(git: Git, names: Iterable[str]) -> list[str]:
    """Return the tracked files at or below the names."""
    pathspecs = [f":(top,literal){name}" for name in names]
    return list(git.names("ls-files", "-z", "--", *pathspecs)) if pathspecs else []


def _untracked(root: Path, name: str, tracked: Sequence[str]) -> Iterator[str]:
    """Yield the parts of a path that hold no tracked files."""
    if name in tracked:
        return
    if not any(is_within(path, [name]) for path in tracked):
        yield name
        return
    for child in sorted(os.listdir(root / name)):  # noqa: PTH208 - names are wanted, not paths
        yield from _untracked(root, f"{name}/{child}", tracked)


def is_within(name: str, paths: Iterable[str]) -> bool:
    """Return whether a path is one of the paths or below one of them."""
    return any(name == path or name.startswith(path + "/") for path in paths)


def _outermost(names: Iterable[str]) -> list[str]:
    outermost: list[str] = []
    for name in sorted(set(names), key=lambda name: (name.count("/"), name)):
        if not is_within(name, outermost):
            outermost.append(name)
    return outermost


def _new_draft_folder(worktree: Path) -> Path:
    """Create a folder beside the worktree for a copy in progress. A crash then leaves no half copy in place."""
    return Path(tempfile.mkdtemp(prefix=f".{worktree.name}.placing-", dir=worktree.parent))


def _remove_drafts(worktree: Path) -> None:
    for draft in worktree.parent.glob(f".{glob.escape(worktree.name)}.placing-*"):
        shutil.rmtree(draft, ignore_errors=True)


def _is_copyable(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def _copy(source: Path, target: Path, root: Path) -> None:
    """Copy a file, link or folder with modes and times, without sockets, pipes and devices."""
    mode = source.lstat().st_mode
    if stat.S_ISLNK(mode):
        target.symlink_to(_link_text(source, root))
    elif stat.S_ISREG(mode):
        _clone(source, target)
    elif stat.S_ISDIR(mode):
        folders = []
        for folder, names, files in os.walk(source, onerror=_raise):
            copy = target / Path(folder).relative_to(source)
            copy.mkdir()
            folders.append((folder, copy))
            links = [name for name in names if Path(folder, name).is_symlink()]
            for name in (*links, *files):
                _copy(Path(folder, name), copy / name, root)
        for folder, copy in reversed(folders):
            shutil.copystat(folder, copy)


def _link_text(source: Path, root: Path) -> str:
    """Return the target text of a link. A relative link that leaves the repository becomes absolute."""
    text = os.readlink(source)  # noqa: PTH115 - as written, not as a path
    goal = os.path.normpath(source.parent / text)
    return text if Path(goal).is_relative_to(root) else goal


def _clone(source: Path, target: Path) -> None:
    with source.open("rb") as old, target.open("xb") as new:
        if not _share_blocks(old.fileno(), new.fileno()):
            shutil.copyfileobj(old, new, 1024 * 1024)
    shutil.copystat(source, target)


def _share_blocks(source: int, target: int) -> bool:
    """Copy by reference where the file system can (btrfs, XFS, bcachefs)."""
    try:
        fcntl.ioctl(target, FICLONE, source)
    except OSError:
        return False
    return True


def _relocate(copy: Path, source: Path, target: Path) -> None:
    """Make the scripts of a copied venv use the copy. They name their interpreter by its full path."""
    if not (copy / "pyvenv.cfg").is_file():
        return
    new = os.fsencode(target)
    for script in (copy / "bin").glob("*"):
        if script.is_symlink() or not script.is_file():
            continue
        content = script.read_bytes()
        changed = content
        for old in {os.fsencode(source.resolve()), os.fsencode(source)}:
            changed = changed.replace(old, new)
        if changed != content and b"\0" not in content:
            times = script.stat()
            script.write_bytes(changed)
            os.utime(script, ns=(times.st_atime_ns, times.st_mtime_ns))


def _raise(error: OSError) -> None:
    raise error


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsafeCopy:
    """A folder that would make a worktree use the user's checkout."""

    name: str
    message: str

    @property
    def suggestion(self) -> str:
        return "Make it anew instead, by a `setup` in `[workspace]`: `unstuck init --force` proposes one."


def unsafe_copies(root: Path, names: Sequence[str], *, linked: bool = False) -> tuple[UnsafeCopy, ...]:
    """Return the folders that are unsafe to copy, or to link if `linked`."""
    checked = [(_unsafe_venv(root, name), _unsafe_modules(root, name, linked=linked)) for name in names]
    return tuple(unsafe for pair in checked for unsafe in pair if unsafe)


def _unsafe_venv(root: Path, name: str) -> UnsafeCopy | None:
    """Find an editable install in a venv. It names the user's checkout by its full path."""
    venv = root / name
    if not (venv / "pyvenv.cfg").is_file():
        return None
    for packages in (*venv.glob("lib/python*/site-packages"), *venv.glob("Lib/site-packages")):
        for path in sorted(packages.iterdir()):
            if _leads_back(path, root, venv):
                return UnsafeCopy(
                    name=name,
                    message=f"{name} cannot be placed: {path.name} in it installs the project from {root}, so tests would import your checkout.",
                )
    return None


def _leads_back(path: Path, root: Path, venv: Path) -> bool:
    """Return whether a file of site-packages points into the checkout, outside of the venv."""
    if path.name.endswith((".pth", ".egg-link")):
        return any(_is_in_checkout(line.strip(), root, venv) for line in _text(path).splitlines())
    if path.name.startswith("__editable__"):
        return any(str(folder) in _text(path) for folder in {root, root.resolve()})
    if path.name.endswith(".dist-info"):
        return _is_editable(_text(path / "direct_url.json"), root, venv)
    return False


def _is_in_checkout(text: str, root: Path, venv: Path) -> bool:
    if not text.startswith("/"):
        return False
    goal = Path(os.path.realpath(text))
    return goal.is_relative_to(root.resolve()) and not goal.is_relative_to(venv.resolve())


def _is_editable(direct_url: str, root: Path, venv: Path) -> bool:
    try:
        origin = json.loads(direct_url)
        editable = origin["dir_info"]["editable"]
        return bool(editable) and _is_in_checkout(origin["url"].removeprefix("file://"), root, venv)
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _unsafe_modules(root: Path, name: str, *, linked: bool) -> UnsafeCopy | None:
    """Find workspace links to the project's own packages. A relative one is safe in a copy, but not in a link."""
    if Path(name).name != "node_modules":
        return None
    modules = root / name
    for link in _links(modules):
        text = os.readlink(link)  # noqa: PTH115 - as written, not as a path
        goal = Path(os.path.normpath(link.parent / text))
        if any(
            _leads_out(goal, folder, name, is_fixed=linked or text.startswith("/")) for folder in (root, root.resolve())
        ):
            return UnsafeCopy(
                name=name,
                message=f"{name} cannot be placed: {link.relative_to(modules)} in it is a link to {goal}, so code would load your checkout.",
            )
    return None


def _leads_out(goal: Path, root: Path, name: str, *, is_fixed: bool) -> bool:
    return is_fixed and goal.is_relative_to(root) and not goal.is_relative_to(root / name)


def _links(modules: Path) -> Iterator[Path]:
    for folder in (modules, *modules.glob("@*"), modules / ".pnpm" / "node_modules"):
        entries = sorted(folder.iterdir()) if folder.is_dir() else ()
        yield from (entry for entry in entries if entry.is_symlink())


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
