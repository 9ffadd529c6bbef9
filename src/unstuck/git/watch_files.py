"""Remember and put back the files that all worktrees share with the user's repository: config, hooks, info/."""

import os
import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from unstuck.git.command import Git, shown

CONFIGS = ("config", "config.worktree")
SINGLE = (*CONFIGS, "info/exclude", "info/attributes", "info/grafts", "shallow")
HOOKS = "hooks"

ONLY_TOLD = frozenset({"shallow"})
"""Not put back: a fetch of the user's writes it, and without its new lines their history would have holes."""


@dataclass(frozen=True, slots=True)
class Shared:
    """One file (mode and bytes) or symbolic link (mode None) in the shared git folder."""

    mode: int | None
    content: bytes


class Foreign:
    """Where a copy is kept of what an agent had made: commits as refs, files under `.unstuck/`. Numbered per restore."""

    def __init__(self, git: Git, run: str) -> None:
        self._git = git
        self._run = run

    @cached_property
    def number(self) -> int:
        prefix = f"refs/unstuck/foreign/{self._run}/"
        refs = self._git.attempt("for-each-ref", "--format=%(refname)", prefix).stdout.splitlines()
        folders = [path.name for path in self._base.iterdir()] if self._base.is_dir() else []
        taken = [ref.removeprefix(prefix).split("/")[0] for ref in refs] + folders
        return 1 + max((int(name) for name in taken if name.isdecimal()), default=0)

    def keep_commit(self, name: str, commit: str) -> str:
        ref = f"refs/unstuck/foreign/{self._run}/{self.number}/{name}"
        self._git("update-ref", ref, commit)
        return ref

    def keep_file(self, name: str, shared: Shared) -> str:
        """Keep a copy; return its path as seen from the repository's root."""
        path = self._base / str(self.number) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        _create(path, shared)
        return shown(str(path.relative_to(self._git.cwd)))

    @property
    def _base(self) -> Path:
        return self._git.cwd / ".unstuck" / "foreign" / self._run


def look_at_files(common: Path) -> dict[str, Shared]:
    """Read everything that is watched in the shared git folder."""
    names = list(SINGLE)
    hooks = common / HOOKS
    if hooks.is_symlink():
        # What a linked hooks folder holds are the user's own files; only the link is watched.
        names.append(HOOKS)
    else:
        for folder, folders, files in os.walk(hooks):
            links = [name for name in folders if Path(folder, name).is_symlink()]
            names += [os.path.relpath(Path(folder, name), common) for name in (*links, *files)]
    found = ((name, _read(common / name)) for name in sorted(names))
    return {name: shared for name, shared in found if shared is not None}


def put_back_files(git: Git, common: Path, before: Mapping[str, Shared], foreign: Foreign) -> list[str]:
    """Put back what differs from `before`; return a sentence for each."""
    now = look_at_files(common)
    said = []
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name), now.get(name)
        wanted = old if old == new else _wanted(git, common, name, old, new)
        if wanted == new:
            continue
        if name in ONLY_TOLD:
            said.append(f"The file {common / name} changed during the session and was left as it is.")
            continue
        try:
            said.append(_put_back(common, name, new, wanted, foreign))
        except OSError as error:
            said.append(
                f"The file {shown(str(common / name))} changed during the session and could not be put back: {error.strerror}. "
                "Look at it before you run git."
            )
    return said


def settings(git: Git, config: Shared | None) -> dict[str, list[str]]:
    """Read a config file's settings; empty when git cannot read it."""
    if config is None:
        return {}
    # Away from the repository: a broken config there would stop this command too.
    listed = git.at(Path("/")).attempt("config", "--file", "-", "-z", "--list", stdin=_decoded(config.content))
    found: dict[str, list[str]] = {}
    for setting in listed.stdout.split("\0")[:-1] if listed.returncode == 0 else ():
        key, _, value = setting.partition("\n")
        found.setdefault(key, []).append(value)
    return found


def _wanted(git: Git, common: Path, name: str, old: Shared | None, new: Shared | None) -> Shared | None:
    """Work out what the file should hold: what it held, with what was certainly not the agent's doing."""
    if name in CONFIGS and old is not None and new is not None:
        return _with_tracking(git, common, old, new)
    return old


def _with_tracking(git: Git, common: Path, old: Shared, new: Shared) -> Shared:
    """Keep new `branch.*` settings: the user's push, checkout and branch commands write these as they go."""
    was, now = settings(git, old), settings(git, new)
    changed = [key for key in {**was, **now} if key.startswith("branch.") and was.get(key) != now.get(key)]
    if not changed or not now:
        return old
    if {key: value for key, value in was.items() if key not in changed} == {
        key: value for key, value in now.items() if key not in changed
    }:
        return Shared(old.mode, new.content)
    draft = common / f"config.unstuck-{os.getpid()}"
    try:
        _create(draft, old)
        for key in changed:
            if key in was:
                git("config", "--file", str(draft), "--unset-all", key)
            for value in now.get(key, ()):
                git("config", "--file", str(draft), "--add", key, value)
        return Shared(old.mode, draft.read_bytes())
    finally:
        draft.unlink(missing_ok=True)


def _put_back(common: Path, name: str, new: Shared | None, wanted: Shared | None, foreign: Foreign) -> str:
    path = common / name
    label = shown(f"The hook {Path(name).name}" if name.startswith(HOOKS) else f"The file {path}")
    if new is None:
        _replace(path, wanted, expected=new)
        return f"{label} was removed during the session; it was put back."
    copy = foreign.keep_file(name, new)
    _replace(path, wanted, expected=new)
    again = f"If that was you: cp {shlex.quote(copy)} {shlex.quote(shown(str(path)))}"
    if wanted is None:
        return f"{label} appeared during the session; it was taken away, a copy is {copy}. {again}"
    return f"{label} changed during the session; it was put back, a copy of the change is {copy}. {again}"


def _replace(path: Path, wanted: Shared | None, *, expected: Shared | None) -> None:
    """Put `wanted` in place unless someone changed the file since; git's own lock file keeps git away meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.unstuck-{os.getpid()}")
    lock = path.with_name(f"{path.name}.lock")
    _create(draft, wanted or Shared(0o600, b""))
    try:
        os.link(draft, lock, follow_symlinks=False)
        try:
            if _read(path) != expected:
                raise OSError(0, "it was changed again meanwhile")
            if wanted is None:
                path.unlink()
            else:
                lock.replace(path)
        finally:
            lock.unlink(missing_ok=True)
    finally:
        draft.unlink(missing_ok=True)


def _create(path: Path, shared: Shared) -> None:
    path.unlink(missing_ok=True)
    if shared.mode is None:
        path.symlink_to(os.fsdecode(shared.content))
        return
    with path.open("xb") as file:
        file.write(shared.content)
        file.flush()
        os.fsync(file.fileno())
    path.chmod(shared.mode)


def _read(path: Path) -> Shared | None:
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return Shared(None, os.fsencode(path.readlink()))
        return Shared(stat.S_IMODE(status.st_mode), path.read_bytes()) if stat.S_ISREG(status.st_mode) else None
    except OSError:
        return None


def _decoded(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")
