"""The folder of one slot: a clone that shares the user's objects, with a private index.

Rule: the slot's own `.git` decides nothing. Each command names the user's repository, the folder and the private index.
Every `prepare` replaces the git folder that the agent may have changed.
"""

import hashlib
import json
import os
import secrets
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

from unstuck.git.git_command import Git, displayable, report_write_errors, wait_for_git
from unstuck.git.git_folder import SlotObjects, remove_path, write_git_folder
from unstuck.git.repository import OWNER_FILE, UNSTUCK_FOLDER, Repository
from unstuck.git.shared_objects import SLOT_REFS, SharedObjects, SlotState
from unstuck.git.submodules import FilledSubmodule, fill_submodules, tree_folders
from unstuck.git.untracked_files import is_within
from unstuck.model.errors import CannotWrite, CheckpointGone, GitFailed

PlaceFiles = Callable[[Path, bool], tuple[str, ...]]
"""Puts untracked files into a slot, with a flag for a fresh folder. Returns the paths that it placed."""

MAX_CLEAN_ROUNDS = 100
"""Each round can show files that a removed `.gitignore` hid. After more, a process keeps creating them."""

DURABLE = ("core.fsync=committed,reference", "core.fsyncMethod=batch")
"""The journal survives a power cut, so the objects that it names must, too."""

PRIVATE_INDEX = (
    *DURABLE,
    *("core.ignoreStat=false", "core.trustctime=true", "core.checkStat=default", "core.untrackedCache=false"),
    *("core.splitIndex=false", "index.sparse=false", "index.version=2", "core.safecrlf=false"),
    *("checkout.workers=0", "add.ignoreErrors=false", "advice.addEmbeddedRepo=false"),
)
"""Otherwise git could treat a changed file as unchanged, or refuse a file that an agent wrote. It uses all processors."""

ENTRY_FIELDS_BYTES = 40
"""Length of an index entry before the object id."""
SHA1_BYTES = 20
EXTENDED_FLAG = 0x40  # such an entry has two more bytes of flags


@dataclass(frozen=True, kw_only=True)
class Slot:
    """One slot: its folder, and its private index outside of that folder."""

    shared: SharedObjects
    folder: Path
    """The folder that contains all slots."""
    number: int

    @property
    def repository(self) -> Repository:
        return self.shared.repository

    @cached_property
    def path(self) -> Path:
        return self.folder / f"w{self.number}"

    @cached_property
    def index(self) -> Path:
        return self.repository.store / "slots" / f"w{self.number}.index"

    @cached_property
    def staging(self) -> Path:
        """A file that exists while the index is written. If it is left over, the index is incomplete."""
        return self.index.with_suffix(".staging")

    @cached_property
    def git(self) -> Git:
        """Git on this folder with the user's repository and the private index. It ignores the folder's own `.git`."""
        env = {"GIT_DIR": self.repository.git_dir, "GIT_WORK_TREE": self.path, "GIT_INDEX_FILE": self.index}
        return Git(
            self.path,
            env={name: str(path) for name, path in env.items()},
            settings=(*PRIVATE_INDEX, *self.shared.line_ends),
        )

    @property
    def agent_objects(self) -> SlotObjects:
        """The objects that the agent made."""
        objects = self.path / ".git" / "objects"
        return SlotObjects(git=self.git, objects=objects, alternates=self.shared.git_folder_template().alternates)

    def state(self) -> SlotState:
        """Return the stored state. The file may be removed while an agent works, so a copy is in memory."""
        state = self.shared.states.get(self.number, SlotState())
        with suppress(OSError, ValueError, TypeError, AttributeError):
            saved = json.loads(self._state_file.read_text())
            lists = {name: tuple(value) for name, value in saved.items() if isinstance(value, list)}
            state = SlotState(
                **{**saved, **lists, "filled": tuple(FilledSubmodule(*fields) for fields in saved.get("filled", ()))}
            )
        return replace(state, ready=not self._preparing.exists())

    def prepare(self, base: str, tree: str | None, place: PlaceFiles, *, clean: bool = False) -> None:
        """Make the folder hold `base`, with the files of `tree` on top if given. A clean one has few other files."""
        before = self.state()
        if not before.ready or self._lock.exists():
            wait_for_git(self.path)  # a git command may have outlived its supervisor
        self.keep_alive(tree, base)
        self._begin()
        wanted = tree if tree is not None and clean else base
        plain, links = self._folders(wanted)
        fresh = self._reset_or_remake(wanted, plain, (*before.placed, *before.made, *before.brought), clean=clean)
        write_git_folder(self.path / ".git", self.repository.common_dir, base, self.shared.git_folder_template())
        self._copy_index()
        if wanted != (tree or base):
            self.git("read-tree", "--reset", "-u", tree or base)
            links = self._folders(tree or base)[1]
        filled, notes = fill_submodules(self.path, links, self.repository, self.index)
        placed = place(self.path, fresh)
        self._remove_unplaced(before.placed, placed)
        kept = SlotState() if fresh else before
        about = SlotState(base=base, placed=placed, notes=notes, links=tuple(links), filled=filled, clean=clean)
        self._save(replace(about, made=kept.made, brought=kept.brought))
        self._preparing.unlink(missing_ok=True)

    def keep_alive(self, tree: str | None, base: str | None = None) -> None:
        """Protect the base and the trees of this slot from git's garbage collection by refs, until they have landed.

        Refs are used again instead of deleted: to delete one, git would lock the file of all the user's refs.
        """
        shared, prefix = self.shared, f"{SLOT_REFS}w{self.number}/"
        free = next((ref for ref in shared.free_refs if ref.startswith(prefix)), f"{prefix}{secrets.token_hex(8)}")
        held, wanted = {*shared.protected.values()}, ((f"{prefix}base", base), (free, tree))
        refs = {ref: name for ref, name in wanted if name and name not in held and name not in shared.in_tip}
        if not refs:
            return
        lines = [f"update {ref} {name}\n" for ref, name in refs.items()]
        done = self.repository.git.with_settings(*DURABLE).attempt("update-ref", "--stdin", stdin="".join(lines))
        if done.returncode == 0:
            shared.protected.update(refs)
            shared.free_refs -= refs.keys()
            return
        for name, existing in zip(refs.values(), self.repository.git.resolve(*refs.values()), strict=True):
            if existing is None:
                raise CheckpointGone(
                    f"The commit {name} no longer exists.", hint="See what is left with `unstuck log`."
                )
        raise GitFailed(
            f"What slot {self.number} stands on cannot be held: {displayable(done.stderr.strip())}",
            hint="See whether the repository can be written, then go on with `unstuck resume`.",
        )

    def remember_setup(self, before: Sequence[str], altered: Sequence[str]) -> None:
        """Record the files that the set-up made: ignored ones, other untracked ones that are not in `before`, and `altered` ones."""
        ignored = self.git.names("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
        state = self.state()
        new = [name for name in self.untracked_files() if name not in before]
        for module in state.filled:
            new += [f"{module.path}/{name}" for name in module.touched(self.path)]
        brought = tuple(dict.fromkeys((*state.brought, *new)))
        made = tuple(name.rstrip("/") for name in ignored)
        self._save(replace(state, made=made, brought=brought, bent=tuple(map(self._index_entry, altered))))

    def _index_entry(self, path: str) -> str:
        """Return mode, object id and path of a file as git would store it."""
        file = self.path / path
        if file.is_symlink() or not file.is_file():
            return ""
        mode = "100755" if file.stat().st_mode & 0o100 else "100644"
        return f"{mode} {self.git('hash-object', '--path', path, '--', str(file))} {path}"

    def untracked_files(self) -> tuple[str, ...]:
        """Return the untracked files that are not ignored. A folder with only such files is one name."""
        names = self.git.names("ls-files", "-z", "--others", "--exclude-standard", "--directory")
        placed = self.state().placed
        return tuple(name.rstrip("/") for name in names if name.rstrip("/") not in placed)

    def altered_files(self) -> tuple[str, ...]:
        """Return the files of the prepared tree that are changed or missing in the folder, without placed files.

        Submodules are left out: git would run in them with settings that a check may have written.
        """
        plain = ("--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=all")
        git = self.git.with_settings("diff.autoRefreshIndex=true", "diff.orderFile=/dev/null")
        names = git.names("diff", "-z", "--name-only", *plain)
        placed = self.state().placed
        return tuple(name for name in names if not is_within(name, placed))

    def release_index(self) -> None:
        """Remove the lock of a killed git command, after all git commands here have ended."""
        if self._lock.exists():
            wait_for_git(self.path)
            self._lock.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder, its state and its refs in the user's repository. It may be repeated after a crash."""
        self._remove_folder()
        self._state_file.unlink(missing_ok=True)
        self._preparing.unlink(missing_ok=True)
        held = self.repository.git("for-each-ref", "--format=delete %(refname)", f"{SLOT_REFS}w{self.number}/")
        self.repository.git("update-ref", "--stdin", stdin=f"{held}\n" if held else "")

    @cached_property
    def _state_file(self) -> Path:
        return self.index.with_suffix(".json")

    @cached_property
    def _preparing(self) -> Path:
        """Exists while `prepare` works."""
        return self.index.with_suffix(".preparing")

    @cached_property
    def _lock(self) -> Path:
        return Path(f"{self.index}.lock")

    @cached_property
    def _head(self) -> Path:
        """A git folder with its own HEAD. Everything else in it is the user's."""
        return self.index.with_suffix(".head")

    def _reset_or_remake(self, tree: str, folders: Sequence[str], spared: tuple[str, ...], *, clean: bool) -> bool:
        """Reset the folder, or replace it if that fails. Return whether it is a new one."""
        if self.path.is_dir() and not self.path.is_symlink() and self._state_file.exists():
            self._remove_files_hidden_from_git(folders, spared)
            if self._reset(tree, spared, clean=clean) is None:
                return False
            self.index.unlink(missing_ok=True)
            if self._reset(tree, spared, clean=clean) is None:
                return False
        self._remake()
        failed = self._reset(tree, (), clean=clean)
        if failed is not None:
            raise GitFailed(
                f"The slot {self.path} cannot be filled with {tree}: {failed}",
                hint="See whether the disk is full, then go on with `unstuck resume`.",
            )
        return True

    def _reset(self, tree: str, spared: tuple[str, ...], *, clean: bool) -> str | None:
        """Make the folder and the private index hold a tree. Return git's reason if that fails."""
        self.release_index()
        self.staging.unlink(missing_ok=True)
        remove_path(self.path / UNSTUCK_FOLDER)  # git ignores it, so the next agent would see it
        git, used = self.git, self.index.exists() or any(self.path.iterdir())
        checked_out = used and not clean and self._check_out(tree)
        done = checked_out or git.attempt("read-tree", "--reset", "-u", tree)
        if done.returncode == 0 and used:
            done, removed = _clean(git, spared, ignored=clean)
            if done.returncode == 0 and ".gitattributes" in removed:  # the checkout followed the agent's attributes
                self.index.unlink(missing_ok=True)
                done = git.attempt("read-tree", "--reset", "-u", tree)
        elif done.returncode == 0:
            with suppress(OSError):  # this only saves time
                _set_back_times(self.index, self.path, len(self.repository.head) // 2)
        return displayable(done.stderr.strip()) if done.returncode != 0 else None

    def _check_out(self, commit: str) -> subprocess.CompletedProcess[str] | None:
        """Reset with `git checkout`, which reads files in parallel. Return None if that fails."""
        if not (self._head / "commondir").exists():
            remove_path(self._head)
            self._head.mkdir()
            for name in ("info", "config.worktree"):  # a sparse checkout stays one
                (self._head / name).symlink_to(self.repository.git_dir / name)
            (self._head / "HEAD").write_text(f"{commit}\n")
            (self._head / "commondir").write_text(f"{self.repository.common_dir}\n", errors="surrogateescape")
        git = self.git.using(GIT_DIR=str(self._head)).with_settings("core.logAllRefUpdates=false", "core.fsync=none")
        done = git.attempt("checkout", "--quiet", "--force", "--detach", commit)
        if done.returncode != 0:
            remove_path(self._head)
        return done if done.returncode == 0 else None

    def _folders(self, tree: str) -> tuple[list[str], dict[str, str]]:
        cache, tree = self.shared.folders, self.shared.trees.get(tree, tree)
        cache[tree] = cache.get(tree) or tree_folders(self.repository.git, tree)
        return cache[tree]

    def _copy_index(self) -> None:
        """Copy the private index to the folder's own git, for the agent or the check."""
        visible_index = self.path / ".git" / "index"
        visible_index.unlink(missing_ok=True)
        shutil.copy2(self.index, visible_index)  # with its time stamp: git compares files against it

    def _remove_files_hidden_from_git(self, folders: Sequence[str], spared: Sequence[str]) -> None:
        """Remove files that git does not report: nested repositories, pipes, sockets, devices and hard links.

        Creating one of these changed the time of its folder. A link in the place of a folder could lead to the user's
        own `.git`.
        """
        top, since = str(self.path.resolve()), self._state_file.stat().st_mtime
        for folder in (top, *(f"{top}/{name}" for name in folders)):  # text: there may be thousands
            with suppress(OSError):  # if it is gone, no folder or locked, git reports it
                if os.stat(folder).st_ctime < since or os.path.realpath(folder) != folder:  # noqa: PTH116  # as above
                    continue
                for entry in os.scandir(folder):
                    inner = entry.name == ".git" and folder != top
                    if (inner or _is_special(entry)) and entry.path[len(top) + 1 :] not in spared:
                        remove_path(Path(entry.path))

    def _remove_unplaced(self, before: Sequence[str], placed: Sequence[str]) -> None:
        """Remove copies whose original is gone. They would land as the agent's work."""
        gone = set(before) - set(placed)
        existing = (*placed, *self.git.names("ls-files", "-z")) if gone else ()
        for path in gone:
            if any(f"{name}/".startswith(f"{path}/") for name in existing):
                continue
            if (self.path / path).parent.resolve().is_relative_to(self.path.resolve()):
                remove_path(self.path / path)

    def _remake(self) -> None:
        try:
            self._remove_folder()
            self.path.mkdir(parents=True)
            # If a slot has lost its git folder, git must not use a repository around the slots.
            texts = {".git": "gitdir: this-slot-has-no-git-folder-any-more", OWNER_FILE: str(self.repository.root)}
            for name, text in texts.items():
                remove_path(self.folder / name)  # it could be a link to a file of the user's
                (self.folder / name).write_text(f"{text}\n", errors="surrogateescape")
        except OSError as error:
            still_exists = os.path.lexists(self.path)
            remove_it = f"Remove it by hand (sudo rm -rf {self.path})"
            elsewhere = "Make the folder of the slots writable, or name another as `slots` in [workspace]"
            raise CannotWrite(
                f"The slot {self.path} cannot be made{' anew' if still_exists else ''}: {error}.",
                hint=f"{remove_it if still_exists else elsewhere}, then go on with `unstuck resume`.",
            ) from error

    def _remove_folder(self) -> None:
        self.path.with_suffix(".ready").unlink(missing_ok=True)  # first, because the set-up is gone with the folder
        remove_path(self.path)
        remove_path(self._head)
        for file in (self.staging, *self.index.parent.glob(f"{self.index.name}*")):
            file.unlink(missing_ok=True)

    def _begin(self) -> None:
        with report_write_errors(self._state_file):
            self._state_file.parent.mkdir(parents=True, exist_ok=True)
            self._preparing.touch()

    def _save(self, state: SlotState) -> None:
        self.shared.states[self.number] = state
        with report_write_errors(self._state_file):
            temporary = self._state_file.with_suffix(".tmp")
            temporary.write_text(json.dumps(asdict(state)))
            if self._preparing.exists():  # a rename onto a missing file is faster
                self._state_file.unlink(missing_ok=True)
            temporary.replace(self._state_file)


def _clean(git: Git, spared: tuple[str, ...], *, ignored: bool) -> tuple[subprocess.CompletedProcess[str], str]:
    """Remove untracked files and return which. Ignored ones are warm caches and go only if `ignored`."""
    options = ["-ffdx" if ignored else "-ffd", *(part for path in spared for part in ("-e", "/" + _as_pattern(path)))]
    done = git.attempt("clean", *options)
    removed = done.stdout
    # Files that a new .gitignore of the agent hid become visible after it is removed.
    for _ in range(MAX_CLEAN_ROUNDS):
        if done.returncode != 0 or ".gitignore" not in done.stdout:
            break
        done = git.attempt("clean", *options)
        removed += done.stdout
    return done, removed


def _is_special(entry: os.DirEntry[str]) -> bool:
    """Return whether this is a special file, or has a hard link, through which another file could change."""
    return not (
        entry.is_symlink() or entry.is_dir() or (entry.is_file() and entry.stat(follow_symlinks=False).st_nlink == 1)
    )


def _set_back_times(index: Path, folder: Path, id_size: int) -> None:
    """Set back the times of files that are as young as their index, by a second, in both.

    Git compares whole seconds. It would read each of these files again in every command.
    """
    data, second = bytearray(index.read_bytes()), int(index.stat().st_mtime)
    entry, top = 12, os.open(folder, os.O_RDONLY)
    try:
        for _ in range(int.from_bytes(data[8:12], "big")):
            flags = entry + ENTRY_FIELDS_BYTES + id_size
            name = flags + (4 if data[flags] & EXTENDED_FLAG else 2)
            end = data.index(0, name)
            seconds, rest = struct.unpack_from(">II", data, entry + 8)
            if seconds >= second:
                path, older = bytes(data[name:end]), (seconds - 1) * 10**9 + rest
                os.utime(path, ns=(older, older), dir_fd=top, follow_symlinks=False)
                changed = os.stat(path, dir_fd=top, follow_symlinks=False).st_ctime_ns
                struct.pack_into(">III", data, entry, *divmod(changed, 10**9), seconds - 1)
            entry += (end - entry + 8) & ~7
    finally:
        os.close(top)
    data[-id_size:] = hashlib.new("sha1" if id_size == SHA1_BYTES else "sha256", data[:-id_size]).digest()
    with index.open("r+b") as file:  # in place: there may be no room for another one
        file.write(data)


def _as_pattern(path: str) -> str:
    return "".join(f"\\{letter}" if letter in "\\*?[ " else letter for letter in path)
