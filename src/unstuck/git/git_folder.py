"""unstuck.git.git_folder."""

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


LARGEST = 10_000_000
"""Bytes of a git folder's file that are looked at."""


def head_commit(folder: Path, top: Path) -> str | None:
    """Return the commit that the repository in a folder stands on, read as text; None where that is not plain to see."""
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
    """The objects that a slot has for itself."""

    git: Git
    """Git on the user's repository."""
    objects: Path
    alternates: str
    """What we wrote there: who changed it would let us read from anywhere."""

    @property
    def sound(self) -> bool:
        plain = self.objects.is_dir() and not self.objects.is_symlink() and not self.objects.parent.is_symlink()
        lenders = self.objects / "info" / "alternates"
        return plain and not (self.objects / "info").is_symlink() and _text(lenders) == self.alternates.strip()

    @property
    def inside(self) -> Git:
        """Git that reads and writes the slot's objects, by the user's configuration."""
        lenders = (f'"{line}"' for line in self.alternates.splitlines())
        return self.git.using(
            GIT_OBJECT_DIRECTORY=str(self.objects),
            GIT_ALTERNATE_OBJECT_DIRECTORIES=":".join(lenders),
            GIT_NO_REPLACE_OBJECTS="1",
        )

    def bring(self, commit: str, base: str) -> bool:
        """Copy a commit and what it needs beyond `base`; refuse all of it if anything is broken or missing."""
        packed = self.inside.attempt("pack-objects", "--revs", "--stdout", "--quiet", stdin=f"{commit}\n^{base}\n")
        if packed.returncode != 0:
            return False
        return self.git.attempt("index-pack", "--stdin", "--strict", "--fix-thin", stdin=packed.stdout).returncode == 0


def _git_dir(folder: Path, top: Path) -> Path | None:
    """Return a repository's git folder if it lies inside the slot, be it through a `.git` file."""
    place = folder / ".git"
    if place.is_symlink():
        return None
    if place.is_file():
        place = folder / _text(place).removeprefix("gitdir: ")
    return place if place.is_dir() and place.resolve().is_relative_to(top.resolve()) else None


def _text(path: Path) -> str:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST:
            return ""
        return path.read_text("utf-8", "surrogateescape").strip()
    except OSError:
        return ""


NO_PUSH = "push-is-refused-here-because-the-supervisor-lands-what-its-checks-pass"
"""Git says `transport '…' not allowed`, so the name of the transport is the sentence."""


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
"""No way out: neither to the user's repository nor to any other. An agent that means to can override it with `-c`."""


COPIED = ("info/exclude", "info/attributes", "info/sparse-checkout", "shallow")


SHA256 = 64


REPLACED = ("HEAD", "index")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitFolderTemplate:
    """What every slot of a run is furnished with."""

    refs: str
    """Branches and tags in the form of `packed-refs`."""
    config: str
    stores: tuple[Path, ...]
    """Where the objects are."""

    @property
    def alternates(self) -> str:
        return "".join(f"{store}\n" for store in self.stores)


def write_git_folder(git_dir: Path, source: Path, head: str, borrowed: GitFolderTemplate) -> None:
    """Put a new git folder in the place of whatever is there; `source` is the git folder whose local files count."""
    form = "\tobjectFormat = sha256\n" if len(head) == SHA256 else ""
    version = f"[core]\n\trepositoryformatversion = {1 if form else 0}\n[extensions]\n{form}"
    texts = {
        "objects/info/alternates": borrowed.alternates,
        "config": version + borrowed.config,
        "packed-refs": borrowed.refs,
    }
    files = {name: text.encode("utf-8", "surrogateescape") for name, text in texts.items()}
    files |= {name: (source / name).read_bytes() for name in COPIED if (source / name).is_file()}
    if not _holds(git_dir, files):
        remove_path(git_dir)
        for folder in ("objects/info", "refs/heads", "info", "hooks"):
            (git_dir / folder).mkdir(parents=True)
        for name, content in files.items():
            (git_dir / name).write_bytes(content)
    (git_dir / "HEAD").unlink(missing_ok=True)  # it could be another name of a file of the user's
    (git_dir / "HEAD").write_text(f"{head}\n")


def _holds(git_dir: Path, files: Mapping[str, bytes]) -> bool:
    """Tell whether a git folder is as we made it, but for HEAD and index, which are put anew anyway."""
    found, top = 0, str(git_dir)
    for folder, folders, names in os.walk(top):  # as text: paths would take longer than git itself
        if os.path.islink(folder) or any(os.path.islink(f"{folder}/{name}") or name in REPLACED for name in folders):  # noqa: PTH114
            return False
        for path in (f"{folder}/{name}" for name in names):
            name = path[len(top) + 1 :]
            if name not in REPLACED and (name not in files or not _is(path, files[name])):
                return False
            found += name in files
    return found == len(files)


def _is(path: str, content: bytes) -> bool:
    facts = os.lstat(path)
    return stat.S_ISREG(facts.st_mode) and facts.st_size == len(content) and Path(path).read_bytes() == content


def remove_path(path: Path) -> None:
    """Remove a file or a folder, read-only folders and all; follow no link."""
    if path.is_symlink() or not path.is_dir():  # a pipe must not be opened
        path.unlink(missing_ok=True)
    else:
        try:
            shutil.rmtree(path, onerror=_open_and_retry)
        except RecursionError:  # folders in folders, thousands of them
            subprocess.run(["rm", "-rf", "--", str(path)], stdout=subprocess.DEVNULL, check=False)


def _open_and_retry(_function: object, name: str, _error: object) -> None:
    """Remove what a missing permission protects: module caches are read-only, and an agent may lock itself out."""
    path = Path(name)
    path.parent.chmod(path.parent.stat().st_mode | stat.S_IRWXU)
    if path.is_dir() and not path.is_symlink():
        path.chmod(path.stat().st_mode | stat.S_IRWXU)
        shutil.rmtree(path, onerror=_open_and_retry if any(path.iterdir()) else None)
    else:
        path.unlink(missing_ok=True)
