"""Edge: The slot's own git folder: what it borrows, how its submodules are filled, and how an agent's commits come back.

Law: it borrows the user's objects and shares nothing that can be written. Of it nothing but objects is read by git, and
those only where their store is as we made it.
"""

import hashlib
import os
import re
import shutil
import stat
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from unstuck.git.contents import GITLINK, NO_MODE, AuthoredLine, TreeDifference
from unstuck.git.git_command import Git, displayable
from unstuck.git.repository import Repository, Submodule, read_submodules
from unstuck.model.changes import Changes
from unstuck.model.landing import RUN_BRANCH_REFS

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


SLOT_REFS = "refs/unstuck/slots/"
"""Hold what a slot stands on, so that the user may collect garbage at any time."""
TIP_REF = f"{SLOT_REFS}tip"
"""Holds what the next slots will stand on, as of a landing: with all that slots stood on before it."""
BORROWED_REF = "refs/unstuck/borrowed"
"""Holds what slots see and the base does not: the user may delete a branch and collect garbage meanwhile."""

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

TAKEN_OVER = re.compile(
    r"(?:user|author|committer|filter|diff|merge|i18n)\..+"
    r"|core\.(?:safecrlf|filemode|symlinks|ignorecase|precomposeunicode|protecthfs|protectntfs|longpaths"
    r"|quotepath|whitespace|abbrev|commentchar|excludesfile|attributesfile|bigfilethreshold|sparsecheckout\w*)"
)
"""Of the repository's own settings those that say what files mean; nothing that runs by itself, and no address."""

COPIED = ("info/exclude", "info/attributes", "info/sparse-checkout", "shallow")
REFS = ("refs/heads", "refs/remotes", "refs/tags")
LISTED = "--format=%(objectname) %(objecttype) %(*objecttype) %(refname)"
PEELED = "--format=%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)"
SHA256 = 64
MOST_ROWS = 16
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


class SharedObjects:
    """Lends a repository to slots. What it lends is read once in a run, and held until the slots are pruned."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self._settings = tuple(_settings(repository.git))
        self._lock = threading.Lock()
        self._borrowed: GitFolderTemplate | None = None
        self.folders: dict[str, tuple[list[str], dict[str, str]]] = {}
        """What `submodules.folders` said of trees: tasks begin where others ended."""
        self.trees: dict[str, str] = {}
        """The trees of commits."""
        self.held: dict[str, str] = {}
        """What slots hold at the moment, by the names of their refs."""
        self.free: set[str] = set()
        """Names of such refs whose tree has landed: the next tree of the same slot takes one over."""
        self.merged: dict[str, str] = {}
        """Of which tree another one was made by merging it onto a newer tip."""
        self.below_tip: set[str] = set()
        """What the last landing came from: what holds it holds that."""
        self.rows: dict[tuple[str, str], tuple[tuple[TreeDifference, ...], Changes | None]] = {}
        """Where a base and a tree that was made of it differ, and how: the last few, as they were staged."""

        self.prepared: dict[int, SlotState] = {}
        """What slots were last prepared for."""
        self.authors: dict[str, tuple[str, tuple[AuthoredLine, ...]]] = {}
        """Who wrote the lines of files at which commit: the last few that were asked for."""

    def remember(self, base: str, tree: str, rows: Sequence[TreeDifference], listed: Changes | None) -> None:
        """Keep what staging knows of a tree, so that git is not asked again: where it differs, and its folders."""
        self.rows[base, tree] = tuple(rows), listed
        for forgotten in list(self.rows)[:-MOST_ROWS]:
            self.rows.pop(forgotten, None)
        known = self.folders.get(self.trees.get(base, base))
        if known is None or any(row.new_mode == NO_MODE or GITLINK in (row.old_mode, row.new_mode) for row in rows):
            return
        parents = {str(parent) for row in rows for parent in PurePosixPath(row.path).parents} - {"."}
        self.folders[tree] = ([*known[0], *sorted(parents - set(known[0]))], known[1])

    def landed(self, commit: str, base: str, tree: str) -> None:
        """Know that the tip holds a landing: what held its tree, and what that was merged from, holds the next one's."""
        if self.held.get(TIP_REF) != base:
            self.below_tip.clear()
        self.below_tip |= {base, tree}
        self.held[TIP_REF] = commit
        while tree:
            self.free |= {name for name, held in self.held.items() if held == tree}
            tree = self.merged.pop(tree, "")
        for name in self.free & self.held.keys():
            del self.held[name]

    def borrowed(self) -> GitFolderTemplate:
        with self._lock:
            self._borrowed = self._borrowed or self._lend()
            return self._borrowed

    @property
    def line_ends(self) -> tuple[str, ...]:
        """Settings for slots: what the repository says of line ends holds there, what a person likes does not.

        An agent writes LF; a checkout with CRLF would make its right work red.
        """
        likes = [value for _, key, value in self._settings if key == "core.autocrlf"]
        return ("core.eol=lf", *(["core.autocrlf=input"] if likes[-1:] == ["true"] else []))

    @property
    def tags(self) -> Path:
        """An object store of ours for annotated tags, which no commit could hold."""
        return self.repository.store / "tags"

    def _lend(self) -> GitFolderTemplate:
        repository = self.repository
        rows = list(_refs(repository.git))
        if any(commit != repository.head for commit, _, _ in rows):
            self._hold()
        annotated = [tag for tag, kind, _ in rows if kind == "tag"]
        if annotated:
            (self.tags / "pack").mkdir(parents=True, exist_ok=True)
            listed = "".join(f"{tag}\n" for tag in annotated)
            repository.git("pack-objects", "--quiet", str(self.tags / "pack" / "pack"), stdin=listed)
        objects = repository.common_dir / "objects"
        return GitFolderTemplate(
            refs="# pack-refs with: sorted \n" + "".join(f"{commit} {name}\n" for commit, _, name in rows),
            config=OWN_CONFIG + "".join(self._config()),
            stores=(objects, self.tags) if annotated else (objects,),
        )

    def _config(self) -> Iterator[str]:
        for scope, key, value in self._settings:
            if scope in {"local", "worktree"} and TAKEN_OVER.fullmatch(key):
                yield _setting(key.split("."), value)
        for line in self.line_ends:
            name, _, value = line.partition("=")
            yield _setting(name.split("."), value)

    def _hold(self) -> None:
        """Hold every commit that the base does not reach, with one commit that has them for parents."""
        git, head = self.repository.git, self.repository.head
        beyond = git("for-each-ref", f"--no-merged={head}", PEELED, *REFS).split()
        parents = sorted({commit for commit in beyond if commit})
        if not parents:
            return
        tree = git("rev-parse", f"{head}^{{tree}}")
        git("update-ref", BORROWED_REF, reproducible_commit(git, tree, parents, "What slots borrow"))


def reproducible_commit(git: Git, tree: str, parents: Sequence[str], message: str) -> str:
    """Write a commit that is the same whoever writes it, and whenever."""
    lines = [f"tree {tree}", *(f"parent {commit}" for commit in parents)]
    lines += [f"{role} unstuck <unstuck@localhost> 0 +0000" for role in ("author", "committer")]
    return git("hash-object", "-t", "commit", "-w", "--stdin", stdin="\n".join([*lines, "", f"{message}\n"]))


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


def _refs(git: Git) -> Iterator[tuple[str, str, str]]:
    for line in git("for-each-ref", LISTED, *REFS).splitlines():
        commit, kind, peeled, name = line.split(" ", 3)
        if (peeled or kind) == "commit" and not name.startswith(RUN_BRANCH_REFS):
            yield commit, kind, name


def _settings(git: Git) -> Iterator[tuple[str, str, str]]:
    """Yield the scope, the name and the value of every setting, the one that counts last."""
    fields = git.attempt("config", "--list", "--show-scope", "-z").stdout.split("\0")
    for scope, entry in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = entry.partition("\n")
        yield scope, key, value


def _setting(key: Sequence[str], value: str) -> str:
    section = f'[{key[0]} "{_escaped(".".join(key[1:-1]))}"]' if len(key) > 2 else f"[{key[0]}]"  # noqa: PLR2004  # section, subsection, name
    return f'{section}\n\t{key[-1]} = "{_escaped(value)}"\n'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


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


class FilledSubmodule(NamedTuple):
    """A submodule that was given its files."""

    path: str
    """In the slot."""
    commit: str
    source: str
    """The git directory of the user's clone of it."""
    entries: str
    """Its index of ours."""

    def git(self, slot: Path, index: str = "") -> Git:
        """Git on its files with the user's clone, whatever became of their own `.git`."""
        inside = slot / self.path
        env = {"GIT_DIR": self.source, "GIT_WORK_TREE": str(inside), "GIT_INDEX_FILE": index or self.entries}
        return Git(inside, env=env)

    def touched(self, slot: Path, index: str = "") -> tuple[str, ...]:
        """List its files that are not as the index has them, and new ones; git runs in no submodule for that."""
        if not (slot / self.path).is_dir() or not any((slot / self.path).iterdir()):
            return ()
        return tuple(dict.fromkeys(self.git(slot, index).names("ls-files", "-z", "-m", "-o", "--exclude-standard")))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotState:
    """What a slot was last prepared for, as kept beside our index."""

    base: str | None = None
    placed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    """Ignored files that the set-up made: they stay in a clean slot."""
    brought: tuple[str, ...] = ()
    """Files that the set-up made and git does not ignore: they stay as well, and are nobody's work."""
    bent: tuple[str, ...] = ()
    """Files of the tree in the form that the set-up gave them, `mode object path`: nobody's work while they are in it."""
    links: tuple[str, ...] = ()
    """The submodules."""
    filled: tuple[FilledSubmodule, ...] = ()
    """Those that have their files, and those in them."""
    clean: bool = False
    """Made from a tree for checking it: it holds nobody's work."""
    ready: bool = True
    """False while `prepare` works: whatever the folder holds then was put away before."""


def fill_submodules(
    slot: Path, links: dict[str, str], repository: Repository, index: Path
) -> tuple[tuple[FilledSubmodule, ...], tuple[str, ...]]:
    """Give each submodule the commit that the slot asks for; return them, and a sentence for each that stays empty."""
    filled: list[FilledSubmodule] = []
    notes = tuple(
        _fill(FilledSubmodule(str(slot), "", "", str(index)), links, _places(repository), repository.root, filled)
    )
    return tuple(one._replace(path=os.path.relpath(one.path, slot)) for one in filled), notes


def local_clone(repository: Repository, path: str) -> Path | None:
    """Return the git directory of the user's own clone of the submodule at this path."""
    found = [submodule for submodule in repository.submodules() if submodule.path == path]
    return _local(found[0], _places(repository), repository.root) if found else None


def tree_folders(git: Git, tree: str) -> tuple[list[str], dict[str, str]]:
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
        source = _local(submodule, places, checkout)
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
