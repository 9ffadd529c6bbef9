"""Edge: One folder per slot: a clone that borrows the user's objects, made, reset and written through an index of ours.

Law: the slot's own `.git` decides nothing. Our commands name the user's repository, the folder and a private index
themselves, and every `prepare` puts a new git folder into the place of what the agent made of the old one.
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
from unstuck.model.errors import CannotWrite, CheckpointGone, GitFailed

PlaceFiles = Callable[[Path, bool], tuple[str, ...]]
"""Puts into a slot what git does not carry; told whether the folder is fresh; returns the paths it placed."""

MOST_ROUNDS = 100
"""Files that hide each other, one below the other; more is a process that makes them anew all the time."""

DURABLE = ("core.fsync=committed,reference", "core.fsyncMethod=batch")
"""The journal survives a power cut, so what it names must, too."""

PRIVATE_INDEX = (
    *DURABLE,
    *("core.ignoreStat=false", "core.trustctime=true", "core.checkStat=default", "core.untrackedCache=false"),
    *("core.splitIndex=false", "index.sparse=false", "index.version=2", "core.safecrlf=false"),
    *("checkout.workers=0", "add.ignoreErrors=false", "advice.addEmbeddedRepo=false"),
)
"""What could make git believe a changed file unchanged, or refuse a file that an agent wrote; and as many processors as there are."""

FACTS, SHA1 = 40, 20
"""Bytes of what an index says of a file, up to its object id; and of that id, where it is not the longer one."""
EXTENDED = 0x40  # the flag of an entry that has two more bytes of flags


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A slot's folder, and our index of it, which lies where the folder's paths do not lead."""

    shared: SharedObjects
    folder: Path
    """Where the slots are."""
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
        """Exists while the folder's files are taken in; one that is left over says that the index is half done."""
        return self.index.with_suffix(".staging")

    @cached_property
    def git(self) -> Git:
        """Git on this folder with the user's repository and our index, whatever became of the folder's own `.git`."""
        env = {"GIT_DIR": self.repository.git_dir, "GIT_WORK_TREE": self.path, "GIT_INDEX_FILE": self.index}
        return Git(
            self.path,
            env={name: str(path) for name, path in env.items()},
            settings=(*PRIVATE_INDEX, *self.shared.line_ends),
        )

    @property
    def own(self) -> SlotObjects:
        """The objects that the agent made, for `git` with its private index."""
        objects = self.path / ".git" / "objects"
        return SlotObjects(git=self.git, objects=objects, alternates=self.shared.borrowed().alternates)

    def prepared(self) -> SlotState:
        """Return what was kept of it; somebody may remove the file while an agent works, so we remember it as well."""
        known = self.shared.prepared.get(self.number, SlotState())
        with suppress(OSError, ValueError, TypeError, AttributeError):
            saved = json.loads(self._note.read_text())
            lists = {name: tuple(value) for name, value in saved.items() if isinstance(value, list)}
            known = SlotState(
                **{**saved, **lists, "filled": tuple(FilledSubmodule(*one) for one in saved.get("filled", ()))}
            )
        return replace(known, ready=not self._preparing.exists())

    def prepare(self, base: str, tree: str | None, place: PlaceFiles, *, clean: bool = False) -> None:
        """Make the folder hold `base`, with `tree`'s files on top when given; a clean one holds little else."""
        before = self.prepared()
        if not before.ready or self._lock.exists():
            wait_for_git(self.path)  # a git command of ours may have outlived its supervisor
        self.hold(tree, base)
        self._begin()
        wanted = tree if tree is not None and clean else base
        plain, links = self._folders(wanted)
        fresh = self._reset_or_remake(wanted, plain, (*before.placed, *before.made, *before.brought), clean=clean)
        write_git_folder(self.path / ".git", self.repository.common_dir, base, self.shared.borrowed())
        self._show_index()
        if wanted != (tree or base):
            self.git("read-tree", "--reset", "-u", tree or base)
            links = self._folders(tree or base)[1]
        filled, notes = fill_submodules(self.path, links, self.repository, self.index)
        placed = place(self.path, fresh)
        self._forget(before.placed, placed)
        kept = SlotState() if fresh else before
        about = SlotState(base=base, placed=placed, notes=notes, links=tuple(links), filled=filled, clean=clean)
        self._save(replace(about, made=kept.made, brought=kept.brought))
        self._preparing.unlink(missing_ok=True)

    def hold(self, tree: str | None, base: str | None = None) -> None:
        """Hold what this slot stands on in the user's repository: its base, and each tree until it has landed.

        Names are used again, not deleted: for that git would lock the file of all the user's refs.
        """
        shared, own = self.shared, f"{SLOT_REFS}w{self.number}/"
        free = next((ref for ref in shared.free if ref.startswith(own)), f"{own}{secrets.token_hex(8)}")
        held, wanted = {*shared.held.values()}, ((f"{own}base", base), (free, tree))
        refs = {ref: one for ref, one in wanted if one and one not in held and one not in shared.below_tip}
        if not refs:
            return
        lines = [f"update {ref} {one}\n" for ref, one in refs.items()]
        done = self.repository.git.with_settings(*DURABLE).attempt("update-ref", "--stdin", stdin="".join(lines))
        if done.returncode == 0:
            shared.held.update(refs)
            shared.free -= refs.keys()
            return
        for name, there in zip(refs.values(), self.repository.git.resolve(*refs.values()), strict=True):
            if there is None:
                raise CheckpointGone(
                    f"The commit {name} no longer exists.", hint="See what is left with `unstuck log`."
                )
        raise GitFailed(
            f"What slot {self.number} stands on cannot be held: {displayable(done.stderr.strip())}",
            hint="See whether the repository can be written, then go on with `unstuck resume`.",
        )

    def remember_setup(self, before: Sequence[str], altered: Sequence[str]) -> None:
        """Remember what the set-up made: ignored files, others but for those that lay about `before`, and `altered` ones."""
        there = self.git.names("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
        prepared = self.prepared()
        new = [name for name in self.untracked_files() if name not in before]
        new += [f"{one.path}/{name}" for one in prepared.filled for name in one.touched(self.path)]
        brought = tuple(dict.fromkeys((*prepared.brought, *new)))
        made = tuple(name.rstrip("/") for name in there)
        self._save(replace(prepared, made=made, brought=brought, bent=tuple(map(self._form, altered))))

    def _form(self, path: str) -> str:
        """Return the form of a file as git would keep it."""
        file = self.path / path
        if file.is_symlink() or not file.is_file():
            return ""
        mode = "100755" if file.stat().st_mode & 0o100 else "100644"
        return f"{mode} {self.git('hash-object', '--path', path, '--', str(file))} {path}"

    def untracked_files(self) -> tuple[str, ...]:
        """List what lies about untracked and not ignored; a folder of nothing else is one name."""
        names = self.git.names("ls-files", "-z", "--others", "--exclude-standard", "--directory")
        placed = self.prepared().placed
        return tuple(name.rstrip("/") for name in names if name.rstrip("/") not in placed)

    def altered_files(self) -> tuple[str, ...]:
        """List the files of the prepared tree that the folder holds in another form, or no more; placed ones aside.

        Submodules are left alone: git would run in them, by settings that a check may have written.
        """
        plain = ("--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=all")
        git = self.git.with_settings("diff.autoRefreshIndex=true", "diff.orderFile=/dev/null")
        names = git.names("diff", "-z", "--name-only", *plain)
        placed = self.prepared().placed
        return tuple(name for name in names if not any(f"{name}/".startswith(f"{one}/") for one in placed))

    def release_index(self) -> None:
        """Remove the lock that a killed git of ours left, once none works here any more."""
        if self._lock.exists():
            wait_for_git(self.path)
            self._lock.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder, what we keep of it and what it holds in the user's repository; repeatable at any point."""
        self._remove_folder()
        self._note.unlink(missing_ok=True)
        self._preparing.unlink(missing_ok=True)
        held = self.repository.git("for-each-ref", "--format=delete %(refname)", f"{SLOT_REFS}w{self.number}/")
        self.repository.git("update-ref", "--stdin", stdin=f"{held}\n" if held else "")

    @cached_property
    def _note(self) -> Path:
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
        """A git folder of ours with a HEAD of its own; all else in it is the user's."""
        return self.index.with_suffix(".head")

    def _reset_or_remake(self, tree: str, folders: Sequence[str], spared: tuple[str, ...], *, clean: bool) -> bool:
        """Reset the folder, or make it anew if that cannot be done; return whether it is a new one."""
        if self.path.is_dir() and not self.path.is_symlink() and self._note.exists():
            self._remove_unseen(folders, spared)
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
        """Make the folder and our index hold a tree; return git's reason if that failed."""
        self.release_index()
        self.staging.unlink(missing_ok=True)
        remove_path(self.path / UNSTUCK_FOLDER)  # git does not see it, and one agent's would be the next one's
        git, used = self.git, self.index.exists() or any(self.path.iterdir())
        checked_out = used and not clean and self._check_out(tree)
        done = checked_out or git.attempt("read-tree", "--reset", "-u", tree)
        if done.returncode == 0 and used:
            done, removed = _clean(git, spared, ignored=clean)
            if done.returncode == 0 and ".gitattributes" in removed:  # what was just written went by an agent's word
                self.index.unlink(missing_ok=True)
                done = git.attempt("read-tree", "--reset", "-u", tree)
        elif done.returncode == 0:
            with suppress(OSError):  # it only saves time
                _set_back(self.index, self.path, len(self.repository.head) // 2)
        return displayable(done.stderr.strip()) if done.returncode != 0 else None

    def _check_out(self, commit: str) -> subprocess.CompletedProcess[str] | None:
        """Reset as `git checkout` does, which alone looks at many files at once, with a HEAD of ours; None if it cannot."""
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
        known, tree = self.shared.folders, self.shared.trees.get(tree, tree)
        known[tree] = known.get(tree) or tree_folders(self.repository.git, tree)
        return known[tree]

    def _show_index(self) -> None:
        """Give the folder's own git our index: an agent, or a check, starts with a plain one."""
        shown_index = self.path / ".git" / "index"
        shown_index.unlink(missing_ok=True)
        shutil.copy2(self.index, shown_index)  # with its time stamp: git compares files against it

    def _remove_unseen(self, folders: Sequence[str], spared: Sequence[str]) -> None:
        """Remove from folders of the tree what git passes over: repositories, pipes, sockets, devices, other names of files.

        Whoever made one of these changed its folder. A link in the place of a folder could lead to the user's own `.git`.
        """
        top, since = str(self.path.resolve()), self._note.stat().st_mtime
        for folder in (top, *(f"{top}/{name}" for name in folders)):  # text: there may be thousands
            with suppress(OSError):  # gone, no folder, or locked: git says so
                if os.stat(folder).st_ctime < since or os.path.realpath(folder) != folder:  # noqa: PTH116  # as above
                    continue
                for entry in os.scandir(folder):
                    inner = entry.name == ".git" and folder != top
                    if (inner or _is_odd(entry)) and entry.path[len(top) + 1 :] not in spared:
                        remove_path(Path(entry.path))

    def _forget(self, before: Sequence[str], placed: Sequence[str]) -> None:
        """Remove what is placed no longer: its original is gone, and the copy would land as the agent's work."""
        gone = set(before) - set(placed)
        there = (*placed, *self.git.names("ls-files", "-z")) if gone else ()
        for path in (path for path in gone if not any(f"{one}/".startswith(f"{path}/") for one in there)):
            if (self.path / path).parent.resolve().is_relative_to(self.path.resolve()):
                remove_path(self.path / path)

    def _remake(self) -> None:
        try:
            self._remove_folder()
            self.path.mkdir(parents=True)
            # Where a slot has lost its own git folder, git must not climb to a repository around the slots.
            beside = {".git": "gitdir: this-slot-has-no-git-folder-any-more", OWNER_FILE: str(self.repository.root)}
            for name, text in beside.items():
                remove_path(self.folder / name)  # it could be a link to a file of the user's
                (self.folder / name).write_text(f"{text}\n", errors="surrogateescape")
        except OSError as error:
            stays = os.path.lexists(self.path)
            remove_it = f"Remove it by hand (sudo rm -rf {self.path})"
            elsewhere = "Make the folder of the slots writable, or name another as `slots` in [workspace]"
            raise CannotWrite(
                f"The slot {self.path} cannot be made{' anew' if stays else ''}: {error}.",
                hint=f"{remove_it if stays else elsewhere}, then go on with `unstuck resume`.",
            ) from error

    def _remove_folder(self) -> None:
        self.path.with_suffix(".ready").unlink(missing_ok=True)  # first: what was set up goes with the folder
        remove_path(self.path)
        remove_path(self._head)
        for beside in (self.staging, *self.index.parent.glob(f"{self.index.name}*")):
            beside.unlink(missing_ok=True)

    def _begin(self) -> None:
        with report_write_errors(self._note):
            self._note.parent.mkdir(parents=True, exist_ok=True)
            self._preparing.touch()

    def _save(self, prepared: SlotState) -> None:
        self.shared.prepared[self.number] = prepared
        with report_write_errors(self._note):
            temporary = self._note.with_suffix(".tmp")
            temporary.write_text(json.dumps(asdict(prepared)))
            if self._preparing.exists():  # without the old one a rename is quick: nothing is written at once
                self._note.unlink(missing_ok=True)
            temporary.replace(self._note)


def _clean(git: Git, spared: tuple[str, ...], *, ignored: bool) -> tuple[subprocess.CompletedProcess[str], str]:
    """Remove untracked files, and say which; ignored ones only where asked: those are warm caches."""
    options = ["-ffdx" if ignored else "-ffd", *(part for path in spared for part in ("-e", "/" + _as_pattern(path)))]
    done = git.attempt("clean", *options)
    removed = done.stdout
    # What an agent's own new .gitignore hid can be seen only after that file is gone.
    for _ in range(MOST_ROUNDS):
        if done.returncode != 0 or ".gitignore" not in done.stdout:
            break
        done = git.attempt("clean", *options)
        removed += done.stdout
    return done, removed


def _is_odd(entry: os.DirEntry[str]) -> bool:
    """Tell whether a file is none, or has another name elsewhere: who writes the one writes the other."""
    return not (
        entry.is_symlink() or entry.is_dir() or (entry.is_file() and entry.stat(follow_symlinks=False).st_nlink == 1)
    )


def _set_back(index: Path, folder: Path, id_size: int) -> None:
    """Set the times of files that are as young as their index back by a second, in the folder and in the index.

    Git compares whole seconds. It would read each of these files again in every command.
    """
    noted, second = bytearray(index.read_bytes()), int(index.stat().st_mtime)
    place, top = 12, os.open(folder, os.O_RDONLY)
    try:
        for _ in range(int.from_bytes(noted[8:12], "big")):
            flags = place + FACTS + id_size
            name = flags + (4 if noted[flags] & EXTENDED else 2)
            end = noted.index(0, name)
            seconds, rest = struct.unpack_from(">II", noted, place + 8)
            if seconds >= second:
                path, older = bytes(noted[name:end]), (seconds - 1) * 10**9 + rest
                os.utime(path, ns=(older, older), dir_fd=top, follow_symlinks=False)
                changed = os.stat(path, dir_fd=top, follow_symlinks=False).st_ctime_ns
                struct.pack_into(">III", noted, place, *divmod(changed, 10**9), seconds - 1)
            place += (end - place + 8) & ~7
    finally:
        os.close(top)
    noted[-id_size:] = hashlib.new("sha1" if id_size == SHA1 else "sha256", noted[:-id_size]).digest()
    with index.open("r+b") as file:  # in place: there may be no room for another one
        file.write(noted)


def _as_pattern(path: str) -> str:
    return "".join(f"\\{letter}" if letter in "\\*?[ " else letter for letter in path)
