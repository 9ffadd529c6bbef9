"""Edge: The slot's own git folder: what it borrows, how its submodules are filled, and how an agent's commits come back.

Law: it borrows the user's objects and shares nothing that can be written. Of it nothing but objects is read by git, and
those only where their store is as we made it.
"""

import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from unstuck.git.contents import GITLINK, NO_MODE, AuthoredLine, TreeDifference
from unstuck.git.git_command import Git
from unstuck.git.git_folder import OWN_CONFIG, GitFolderTemplate
from unstuck.git.repository import Repository
from unstuck.git.submodules import FilledSubmodule
from unstuck.model.changes import Changes
from unstuck.model.landing import RUN_BRANCH_REFS

SLOT_REFS = "refs/unstuck/slots/"
"""Hold what a slot stands on, so that the user may collect garbage at any time."""
TIP_REF = f"{SLOT_REFS}tip"
"""Holds what the next slots will stand on, as of a landing: with all that slots stood on before it."""
BORROWED_REF = "refs/unstuck/borrowed"
"""Holds what slots see and the base does not: the user may delete a branch and collect garbage meanwhile."""


TAKEN_OVER = re.compile(
    r"(?:user|author|committer|filter|diff|merge|i18n)\..+"
    r"|core\.(?:safecrlf|filemode|symlinks|ignorecase|precomposeunicode|protecthfs|protectntfs|longpaths"
    r"|quotepath|whitespace|abbrev|commentchar|excludesfile|attributesfile|bigfilethreshold|sparsecheckout\w*)"
)
"""Of the repository's own settings those that say what files mean; nothing that runs by itself, and no address."""

REFS = ("refs/heads", "refs/remotes", "refs/tags")
LISTED = "--format=%(objectname) %(objecttype) %(*objecttype) %(refname)"
PEELED = "--format=%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)"
MOST_ROWS = 16


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
