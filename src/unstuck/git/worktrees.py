"""One worktree per slot: make it, repair it, reset it, and keep a private index that no agent can tamper with.

Law: the agent's own index, HEAD and `.git` file decide nothing. Our commands name the folder, git's record
of it and the index themselves, so whatever an agent does to those is undone by the next `prepare`.
"""

import contextlib
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from unstuck.errors import CannotWrite, CheckpointGone, GitFailed
from unstuck.git import locks as git_locks
from unstuck.git import submodules
from unstuck.git.command import Git, shown
from unstuck.git.removal import remove
from unstuck.git.repository import Repository

Place = Callable[[Path, bool], tuple[str, ...]]
"""Puts into a worktree what git does not carry; told whether the folder is fresh; returns the paths it placed."""

DURABLE = ("core.fsync=committed,reference", "core.fsyncMethod=batch")
"""The journal survives a power cut, so what it names must, too."""

PRIVATE_INDEX = (
    *DURABLE,
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "core.ignoreStat=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.safecrlf=false",
    "index.sparse=false",
    "add.ignoreErrors=false",
    "advice.addEmbeddedRepo=false",
)
"""What could make git believe a changed file unchanged, or refuse a file that an agent wrote."""

HALF_DONE = (
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "SQUASH_MSG",
    "AUTO_MERGE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
    "BISECT_START",
    "BISECT_TERMS",
    "BISECT_NAMES",
    "BISECT_EXPECTED_REV",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
)
"""What an agent's unfinished merge, rebase, cherry-pick or bisect leaves in git's record of the worktree."""

_ADDING = threading.Lock()
"""Held while a worktree is added: git reads the records of all others then, and fails at one that is half written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What a worktree was last prepared for, as kept beside it."""

    base: str | None = None
    placed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    """Ignored files that the set-up made: they stay in a clean worktree."""
    clean: bool = False
    """Made from a tree for checking it: it holds nobody's work."""
    ready: bool = True
    """False while `prepare` works: whatever the folder holds then was put away before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worktree:
    """A slot's folder, git's record of it, and our index beside it."""

    repository: Repository
    slot: int

    @property
    def path(self) -> Path:
        return self.repository.ours / "worktrees" / f"w{self.slot}"

    @property
    def index(self) -> Path:
        return self.path.with_name(f"w{self.slot}.index")

    @property
    def git(self) -> Git:
        """Git on this folder with our private index, whatever became of the folder's own `.git`."""
        git_dir = self.record() or self.repository.git_dir
        env = {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(self.path), "GIT_INDEX_FILE": str(self.index)}
        return Git(self.path, env=env, settings=PRIVATE_INDEX)

    def record(self) -> Path | None:
        """Return the folder in which git keeps this worktree's HEAD and index."""
        return next(self._records(), None)

    def prepared(self) -> Prepared:
        try:
            saved = json.loads(self._note.read_text())
            lists = {name: tuple(saved.get(name, ())) for name in ("placed", "notes", "made")}
            return Prepared(**{**saved, **lists})
        except (OSError, ValueError, KeyError, TypeError):
            return Prepared()

    def prepare(self, base: str, tree: str | None, place: Place, *, clean: bool = False) -> None:
        """Make the folder hold `base`, with `tree`'s files on top when given; a clean one holds little else."""
        git_locks.await_quiet(self.path)
        before = self.prepared()
        self._save(replace(before, base=base, notes=(), ready=False))
        fresh = self._reset_or_remake(base, (*before.placed, *before.made), clean=clean)
        if tree is not None:
            self.git("read-tree", "--reset", "-u", tree)
            if clean:
                self._show_index()
        notes = submodules.fill(self.path, self.repository)
        made = () if fresh else before.made
        placed = place(self.path, fresh)
        self._forget(before.placed, placed)
        self._save(Prepared(base=base, placed=placed, notes=notes, made=made, clean=clean))

    def _forget(self, before: Sequence[str], placed: Sequence[str]) -> None:
        """Remove what is placed no longer: its original is gone, and the copy would land as the agent's work."""
        gone = set(before) - set(placed)
        there = (*placed, *self.git.names("ls-files", "-z")) if gone else ()
        for path in (path for path in gone if not any(f"{one}/".startswith(f"{path}/") for one in there)):
            if (self.path / path).parent.resolve().is_relative_to(self.path.resolve()):
                remove(self.path / path)

    def settle(self) -> None:
        """Remember the ignored files that are there now."""
        there = self.git.names("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
        self._save(replace(self.prepared(), made=tuple(name.rstrip("/") for name in there)))

    def put(self, tree: str, paths: Sequence[str]) -> None:
        """Give these paths the form that they have in `tree`; what it has not is removed."""
        git, top = self.git.using(GIT_LITERAL_PATHSPECS="1"), self.path.resolve()
        there = set(paths) & set(git.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree))
        for path in set(paths) - there:
            if (self.path / path).parent.resolve().is_relative_to(top):  # a link could lead to the user's own files
                remove(self.path / path)
        if there:
            named = "".join(f"{path}\0" for path in sorted(there))
            git("checkout", "--force", tree, "--pathspec-from-file=-", "--pathspec-file-nul", stdin=named)

    def release_index(self) -> None:
        git_locks.release(Path(f"{self.index}.lock"), folder=self.path)

    def remove(self) -> None:
        """Remove the folder, git's record of it and what we keep beside it; repeatable at any point."""
        self._remove_folder()
        self._note.unlink(missing_ok=True)

    @property
    def _note(self) -> Path:
        return self.path.with_name(f"w{self.slot}.json")

    @property
    def _ready(self) -> Path:
        """The engine's stamp: the set-up commands are done in this folder."""
        return self.path.with_name(f"w{self.slot}.ready")

    def _reset_or_remake(self, base: str, spared: tuple[str, ...], *, clean: bool) -> bool:
        """Reset the worktree, or make it anew if that cannot be done; return whether it is a new one."""
        if self._healthy():
            if self._reset(base, spared, clean=clean) is None:
                return False
            self.index.unlink(missing_ok=True)
            if self._reset(base, spared, clean=clean) is None:
                return False
        self._remake(base)
        failed = self._reset(base, (), clean=clean)
        if failed is not None:
            raise GitFailed(
                f"The worktree {self.path} cannot be filled with {base}: {failed}",
                hint="See whether the disk is full, then go on with `unstuck resume`.",
            )
        return True

    def _healthy(self) -> bool:
        record = self.record()
        try:
            return (
                record is not None
                and (record / "HEAD").is_file()
                and (record / "commondir").is_file()
                and not _is_initializing(record)
                and _points_to(self.path / ".git", record)
            )
        except OSError:
            return False

    def _reset(self, base: str, spared: tuple[str, ...], *, clean: bool) -> str | None:
        """Make the folder and the agent's index hold `base`; return git's reason if that failed."""
        record = self.record()
        assert record is not None
        for name in HALF_DONE:
            remove(record / name)
        for lock in (Path(f"{self.index}.lock"), record / "index.lock", record / "HEAD.lock"):
            git_locks.release(lock, folder=self.path)
        git = self.git
        done = git.attempt("checkout", "--quiet", "--force", "--detach", base)
        if done.returncode == 0:
            done = _clean(git, spared, ignored=clean)
        if done.returncode != 0:
            return shown(done.stderr.strip())
        self._remove_inner_repositories(git, base)
        self._show_index()
        return None

    def _show_index(self) -> None:
        """Give the folder's own git our index: an agent, or a check, starts with a plain one."""
        record = self.record()
        assert record is not None
        copy = record / "index.unstuck"
        shutil.copy2(self.index, copy)  # with its time stamp: git compares files against it
        copy.replace(record / "index")

    def _remove_inner_repositories(self, git: Git, base: str) -> None:
        """Undo a `git init` in a folder that `base` has: `git clean` does not look for it there.

        Runs when the folders are those of `base` again; a link left by an agent could lead to the user's own `.git`.
        """
        top = self.path.resolve()
        for entry in git("ls-tree", "-r", "-d", "-z", base).split("\0"):
            facts, _, folder = entry.partition("\t")
            inner = top / folder / ".git"
            if " tree " in facts and os.path.lexists(inner) and inner.parent.resolve() == inner.parent:
                remove(inner)

    def _remake(self, base: str) -> None:
        repository = self.repository
        self._save(Prepared(base=base, ready=False))
        try:
            self._remove_folder()
            self.path.mkdir(parents=True)
        except OSError as error:
            raise CannotWrite(
                f"The worktree {self.path} cannot be made anew: {error}.",
                hint=f"Remove it by hand (sudo rm -rf {self.path}), then go on with `unstuck resume`.",
            ) from error
        # Run inside the folder, so that after a crash `await_quiet` sees a command that is still at work.
        git = Git(self.path, env={"GIT_DIR": str(repository.git_dir)}, settings=("worktree.useRelativePaths=false",))
        with _ADDING:
            for broken in self._broken():
                remove(broken)
            done = git.attempt("worktree", "add", "--force", "--detach", "--no-checkout", str(self.path), base)
        if done.returncode != 0:
            if not repository.git.succeeds("cat-file", "-e", base + "^{commit}"):
                raise CheckpointGone(
                    f"The commit {base} no longer exists.", hint="See what is left with `unstuck log`."
                )
            raise GitFailed(
                f"git worktree add failed for {self.path}: {shown(done.stderr.strip())}",
                hint="See what is wrong with `unstuck doctor`.",
            )

    def _remove_folder(self) -> None:
        self._ready.unlink(missing_ok=True)  # first: what was set up goes with the folder
        for record in (*self._records(), *self._half_made()):
            remove(record)
        remove(self.path)
        for beside in (self.index, Path(f"{self.index}.lock")):
            beside.unlink(missing_ok=True)

    def _save(self, prepared: Prepared) -> None:
        try:
            self._note.parent.mkdir(parents=True, exist_ok=True)
            temporary = self._note.with_suffix(".tmp")
            temporary.write_text(json.dumps(asdict(prepared)))
            temporary.replace(self._note)
        except OSError as error:
            raise CannotWrite(
                f"{self._note} cannot be written: {error.strerror}.", hint="Make room and go on with `unstuck resume`."
            ) from error

    def _records(self) -> Iterator[Path]:
        """Yield git's records that name this folder; a crash or a copied repository can leave several."""
        ours = self.path.parent.resolve() / self.path.name / ".git"
        for record in sorted((self.repository.common_dir / "worktrees").glob("*")):
            with contextlib.suppress(OSError):
                if not record.is_symlink() and _read_path(record / "gitdir", "") == ours:
                    yield record

    def _broken(self) -> Iterator[Path]:
        """Yield the records of our folders that a killed git left empty: with one of them git adds no worktree at all."""
        ours = self.path.parent.resolve()
        for record in (self.repository.common_dir / "worktrees").glob("w*"):
            with contextlib.suppress(OSError):
                if (record / "commondir").stat().st_size == 0 and _read_path(record / "gitdir", "").is_relative_to(
                    ours
                ):
                    yield record

    def _half_made(self) -> Iterator[Path]:
        record = self.repository.common_dir / "worktrees" / self.path.name
        if record.is_dir() and not (record / "gitdir").exists():
            yield record


def _clean(git: Git, spared: tuple[str, ...], *, ignored: bool) -> subprocess.CompletedProcess[str]:
    """Remove untracked files; ignored ones only where asked: those are warm caches."""
    options = ["-ffdx" if ignored else "-ffd", *(part for path in spared for part in ("-e", "/" + _as_pattern(path)))]
    done = git.attempt("clean", *options)
    # What an agent's own new .gitignore hid can be seen only after that file is gone.
    while done.returncode == 0 and ".gitignore" in done.stdout:
        done = git.attempt("clean", *options)
    return done


def _is_initializing(record: Path) -> bool:
    lock = record / "locked"
    return lock.exists() and lock.read_bytes().startswith(b"initializing")


def _points_to(git_file: Path, record: Path) -> bool:
    return (
        git_file.is_file()
        and not git_file.is_symlink()
        and _read_path(git_file, "gitdir: ").resolve() == record.resolve()
    )


def _read_path(file: Path, prefix: str) -> Path:
    text = os.fsdecode(file.read_bytes()).removesuffix("\n").removeprefix(prefix)
    return Path(os.path.normpath(file.parent / text))


def _as_pattern(path: str) -> str:
    return "".join(f"\\{letter}" if letter in "\\*?[ " else letter for letter in path)
