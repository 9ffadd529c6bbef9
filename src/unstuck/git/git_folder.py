"""The git folder of a slot, which the agent can write.

Rules: it shares the user's objects and nothing that can be written. Git reads only objects from it, and only if its
object store is unchanged.
"""

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from unstuck.git.git_command import Git

COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


REF = re.compile(r"ref: (refs/[\w./+@-]+)")


MAX_FILE_BYTES_READ = 10_000_000
"""Larger files of a git folder are ignored."""


def head_commit(folder: Path, top: Path) -> str | None:
    """Return the commit of HEAD, read as text without git, or None if that is not possible."""
    git_dir = _git_dir(folder, top)
    head = _text(git_dir / "HEAD") if git_dir else ""
    ref = REF.fullmatch(head)
    if ref is not None and git_dir is not None and ".." not in ref[1]:
        packed = (
            line.split(" ") for line in _text(git_dir / "packed-refs").splitlines() if line.endswith(f" {ref[1]}")
        )
        head = _text(git_dir / ref[1]) or next((fields[0] for fields in packed), "")
    return head if COMMIT_ID.fullmatch(head) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotObjects:
    """The objects that an agent added in its slot."""

    git: Git
    """Git on the user's repository."""
    objects: Path
    alternates: str
    """The original list of shared object folders. A changed one would let git read from any folder."""

    @property
    def is_intact(self) -> bool:
        """Return whether the agent left the object store as it was made."""
        has_no_links = self.objects.is_dir() and not self.objects.is_symlink() and not self.objects.parent.is_symlink()
        alternates = self.objects / "info" / "alternates"
        has_no_links = has_no_links and not (self.objects / "info").is_symlink()
        return has_no_links and _text(alternates) == self.alternates.strip()

    @property
    def inside(self) -> Git:
        """Git that reads and writes the slot's objects, with the user's configuration."""
        folders = (f'"{line}"' for line in self.alternates.splitlines())
        return self.git.using(
            GIT_OBJECT_DIRECTORY=str(self.objects),
            GIT_ALTERNATE_OBJECT_DIRECTORIES=":".join(folders),
            GIT_NO_REPLACE_OBJECTS="1",
        )

    def copy_to_user(self, commit: str, base: str) -> bool:
        """Copy a commit and its objects beyond `base`. Copy nothing if an object is broken or missing."""
        packed = self.inside.attempt("pack-objects", "--revs", "--stdout", "--quiet", stdin=f"{commit}\n^{base}\n")
        if packed.returncode != 0:
            return False
        return self.git.attempt("index-pack", "--stdin", "--strict", "--fix-thin", stdin=packed.stdout).returncode == 0


def _git_dir(folder: Path, top: Path) -> Path | None:
    """Return a repository's git folder if it lies inside the slot. A `.git` file may name it."""
    git_dir = folder / ".git"
    if git_dir.is_symlink():
        return None
    if git_dir.is_file():
        git_dir = folder / _text(git_dir).removeprefix("gitdir: ")
    return git_dir if git_dir.is_dir() and git_dir.resolve().is_relative_to(top.resolve()) else None


def _text(path: Path) -> str:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_FILE_BYTES_READ:
            return ""
        return path.read_text("utf-8", "surrogateescape").strip()
    except OSError:
        return ""


NO_PUSH = "push-is-refused-here-because-the-supervisor-lands-what-its-checks-pass"
"""Git prints `transport '…' not allowed`, so the name of the transport is the message."""


OWN_CONFIG = f"""\
[core]
	bare = false
	logAllRefUpdates = true
[protocol]
	allow = never
[url "{NO_PUSH}::"]
	pushInsteadOf = ""
[push]
	default = nothing
[credential]
	helper =
[submodule]
	active = .
[gc]
	auto = 0
"""
"""It stops pushes and fetches by mistake. An agent can override it with `-c`."""


COPIED = ("info/exclude", "info/attributes", "info/sparse-checkout", "shallow")


SHA256 = 64


REPLACED = ("HEAD", "index")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitFolderTemplate:
    """The content of the git folder of every slot."""

    refs: str
    """Branches and tags in the form of `packed-refs`."""
    config: str
    stores: tuple[Path, ...]
    """The object folders that slots share."""

    @property
    def alternates(self) -> str:
        return "".join(f"{store}\n" for store in self.stores)


def write_git_folder(git_dir: Path, source: Path, head: str, template: GitFolderTemplate) -> None:
    """Replace a git folder by a new one. Local files such as `info/exclude` come from `source`."""
    form = "\tobjectFormat = sha256\n" if len(head) == SHA256 else ""
    version = f"[core]\n\trepositoryformatversion = {1 if form else 0}\n[extensions]\n{form}"
    texts = {
        "objects/info/alternates": template.alternates,
        "config": version + template.config,
        "packed-refs": template.refs,
    }
    files = {name: text.encode("utf-8", "surrogateescape") for name, text in texts.items()}
    files |= {name: (source / name).read_bytes() for name in COPIED if (source / name).is_file()}
    if not _is_unchanged(git_dir, files):
        remove_path(git_dir)
        for folder in ("objects/info", "refs/heads", "info", "hooks"):
            (git_dir / folder).mkdir(parents=True)
        for name, content in files.items():
            (git_dir / name).write_bytes(content)
    (git_dir / "HEAD").unlink(missing_ok=True)  # it could be a hard link to a file of the user
    (git_dir / "HEAD").write_text(f"{head}\n")


def _is_unchanged(git_dir: Path, files: Mapping[str, bytes]) -> bool:
    """Return whether a git folder is unchanged, apart from HEAD and index, which are replaced anyway."""
    count, top = 0, str(git_dir)
    for folder, folders, names in os.walk(top):  # as text: paths would take longer than git itself
        if os.path.islink(folder) or any(os.path.islink(f"{folder}/{name}") or name in REPLACED for name in folders):  # noqa: PTH114
            return False
        for path in (f"{folder}/{name}" for name in names):
            name = path[len(top) + 1 :]
            if name not in REPLACED and (name not in files or not _has_content(path, files[name])):
                return False
            count += name in files
    return count == len(files)


def _has_content(path: str, content: bytes) -> bool:
    facts = os.lstat(path)
    return stat.S_ISREG(facts.st_mode) and facts.st_size == len(content) and Path(path).read_bytes() == content


def remove_path(path: Path) -> None:
    """Remove a file or a folder, even a read-only one. Follow no link."""
    if path.is_symlink() or not path.is_dir():  # opening a pipe would block
        path.unlink(missing_ok=True)
    else:
        try:
            shutil.rmtree(path, onerror=_open_and_retry)
        except RecursionError:  # thousands of nested folders
            subprocess.run(["rm", "-rf", "--", str(path)], stdout=subprocess.DEVNULL, check=False)


def _open_and_retry(_function: object, name: str, _error: object) -> None:
    """Remove a path without write permission. Module caches and some agents' folders are read-only."""
    path = Path(name)
    path.parent.chmod(path.parent.stat().st_mode | stat.S_IRWXU)
    if path.is_dir() and not path.is_symlink():
        path.chmod(path.stat().st_mode | stat.S_IRWXU)
        shutil.rmtree(path, onerror=_open_and_retry if any(path.iterdir()) else None)
    else:
        path.unlink(missing_ok=True)
