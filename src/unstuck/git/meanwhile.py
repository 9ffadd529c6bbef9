"""Edge: Say what changed in the user's repository and checkout while a session ran; who did it is nobody's guess."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from unstuck.git.command import Git, shown
from unstuck.git.repository import OURS, Repository

SHOWN = 5
OUR_REFS = ("refs/heads/unstuck/", "refs/unstuck/")
GONE = "0"
HISTORY = "logs/HEAD"
Stamp = tuple[int, ...]
NOUNS = {"refs/heads/": "branch", "refs/tags/": "tag", "refs/remotes/": "remote branch"}
BACK = {"refs/heads/": "git branch {name} {old}", "refs/tags/": "git tag {name} {old}"}
"""How a person brings back what is gone."""


@dataclass(frozen=True, slots=True)
class Look:
    """The user's repository at one moment."""

    stamps: Mapping[str, Stamp]
    """Git's own files, as far as they decide anything."""
    refs_at: Mapping[str, Stamp]
    refs: Mapping[str, str]
    files: Mapping[str, tuple[object, ...]]
    """What `git status` lists, with its letters and the file's stamp."""
    head: str


class Meanwhile:
    """Looks at the user's repository around sessions. Those side by side share it: each change is told once."""

    def __init__(self, repository: Repository, left_out: Sequence[str] = ()) -> None:
        """Take the repository and our own files in it, such as the plan."""
        self._repository = repository
        self._left_out = frozenset((*left_out, f"{OURS}/"))
        self._lock = Lock()
        self._last: Look | None = None
        self._index_at: Stamp = ()

    def begin(self) -> None:
        """Look, unless that was done before: what happens between two sessions is told after the second."""
        with self._lock:
            self._last = self._last or self._look()

    def told(self) -> tuple[str, ...]:
        """Say what changed since the last look."""
        with self._lock:
            before, now = self._last, self._look()
            self._last = now
        return tuple(_differences(before, now)) if before is not None and before != now else ()

    def _look(self) -> Look:
        git, common = self._repository.git, self._repository.common_dir
        listed = (
            self._with_own_index(git)
            .attempt("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignored=matching")
            .stdout
        )
        entries = (entry for entry in listed.split("\0") if entry)
        refs_at = dict(_ref_files(common))
        same = self._last is not None and refs_at == self._last.refs_at
        return Look(
            stamps={**dict(_stamps(common)), HISTORY: _stamp(self._repository.git_dir / HISTORY)},
            refs_at=refs_at,
            refs=self._last.refs if self._last is not None and same else _refs(git),
            files={
                path: (entry[:2], *_stamp(self._repository.root / path))
                for entry in entries
                if (path := entry[3:]) not in self._left_out and not (entry[:2] == "!!" and path.endswith("/"))
            },
            head=_head(self._repository.git_dir),
        )

    def _with_own_index(self, git: Git) -> Git:
        """Give git a copy of the user's index to remember in what it saw of the files.

        Of a checkout that was made in the same second as its index, git reads every file until it may write that down.
        """
        index, copy = self._repository.git_dir / "index", self._repository.store / "look.index"
        stamp = _stamp(index)
        if not stamp:
            return git
        try:
            if stamp != self._index_at or not copy.exists():
                shutil.copy2(index, copy)  # with its time stamp: git compares files against it
                self._index_at = stamp
        except OSError:
            return git
        return git.using(GIT_INDEX_FILE=str(copy), GIT_OPTIONAL_LOCKS="1").with_settings("core.splitIndex=false")


def _differences(before: Look, now: Look) -> Iterator[str]:
    if before.head != now.head:
        yield f"Your checkout went from {_place(before.head)} to {_place(now.head)}."
    for ref in _unlike(before.refs, now.refs):
        yield _moved(ref, before.refs.get(ref, GONE), now.refs.get(ref, GONE))
    parts = _unlike(before.stamps, now.stamps)
    if parts and (parts != [HISTORY] or before.refs == now.refs):  # every commit is written down there
        yield f"Changed in your repository's git folder: {_listed(parts)}."
    if paths := _unlike(before.files, now.files):
        yield f"Changed in your checkout: {_listed(paths)}. See `git status`."


def _unlike(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    return [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]


def _moved(ref: str, old: str, new: str) -> str:
    prefix = next((prefix for prefix in NOUNS if ref.startswith(prefix)), "")
    name = shown(ref.removeprefix(prefix))
    label = f"{NOUNS.get(prefix, 'ref')} {name}"
    if old == GONE:
        return f"New in your repository: {label} at {new[:12]}."
    if new != GONE:
        return f"In your repository, {label} went from {old[:12]} to {new[:12]}."
    back = BACK.get(prefix, "git update-ref " + shown(ref) + " {old}").format(name=name, old=old)
    return f"In your repository, {label} is gone; it was at {old[:12]}. To bring it back: {back}"


def _refs(git: Git) -> dict[str, str]:
    lines = git.attempt("for-each-ref", "--format=%(objectname) %(refname)").stdout.splitlines()
    pairs = (line.split(" ", 1) for line in lines)
    return {name: value for value, name in pairs if not name.startswith(OUR_REFS)}


def _ref_files(common: Path) -> Iterator[tuple[str, Stamp]]:
    """Yield what tells that no ref has moved, without asking git."""
    for name in ("packed-refs", "reftable/tables.list"):
        yield name, _stamp(common / name)
    for folder, folders, files in os.walk(common / "refs"):
        place = f"{Path(folder).relative_to(common)}/"
        folders[:] = [name for name in folders if f"{place}{name}/" not in OUR_REFS]
        for name in files:
            yield f"{place}{name}", _stamp(Path(folder, name))


def _stamps(common: Path) -> Iterator[tuple[str, Stamp]]:
    parts = (
        "config",
        "config.worktree",
        "logs/refs/stash",
        "info/attributes",
        "info/grafts",
        "objects/info/alternates",
    )
    for name in parts:
        yield name, _stamp(common / name)
    for hook in sorted(common.glob("hooks/*")):
        yield f"hooks/{hook.name}", _stamp(hook)


def _stamp(path: Path) -> Stamp:
    try:
        facts = path.lstat()
    except OSError:
        return ()
    return facts.st_mtime_ns, facts.st_size, facts.st_mode, facts.st_ino


def _head(git_dir: Path) -> str:
    try:
        return (git_dir / "HEAD").read_text(errors="surrogateescape").strip()
    except OSError:
        return ""


def _place(head: str) -> str:
    return shown(head.removeprefix("ref: ").removeprefix("refs/heads/")) if head.startswith("ref: ") else head[:12]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(shown(name) for name in names[:SHOWN]) + more
