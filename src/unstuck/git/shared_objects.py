"""Share the objects of the user's repository with slots."""

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
"""These refs protect the commits of slots from the user's garbage collection."""
TIP_REF = f"{SLOT_REFS}tip"
"""Protects the last landed commit, and with it all earlier ones."""
BORROWED_REF = "refs/unstuck/borrowed"
"""Protects the commits that slots share and the base does not contain. The user may delete their branches."""


COPIED_SETTINGS = re.compile(
    r"(?:user|author|committer|filter|diff|merge|i18n)\..+"
    r"|core\.(?:safecrlf|filemode|symlinks|ignorecase|precomposeunicode|protecthfs|protectntfs|longpaths"
    r"|quotepath|whitespace|abbrev|commentchar|excludesfile|attributesfile|bigfilethreshold|sparsecheckout\w*)"
)
"""The settings of the repository that decide how files are read. No command and no address is among them."""

REFS = ("refs/heads", "refs/remotes", "refs/tags")
REF_FORMAT = "--format=%(objectname) %(objecttype) %(*objecttype) %(refname)"
COMMIT_FORMAT = "--format=%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)"
MAX_CACHED_DIFFERENCES = 16


class SharedObjects:
    """The user's objects that all slots of a run share, with caches about them. Refs protect the objects."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self._settings = tuple(_settings(repository.git))
        self._lock = threading.Lock()
        self._template: GitFolderTemplate | None = None
        self.folders: dict[str, tuple[list[str], dict[str, str]]] = {}
        """Folders and submodules of trees. A task often begins with the tree of another one."""
        self.trees: dict[str, str] = {}
        """The trees of commits."""
        self.protected: dict[str, str] = {}
        """The commits and trees that refs of slots protect now."""
        self.free_refs: set[str] = set()
        """Names of refs whose tree has landed. The next tree of the same slot uses one again."""
        self.merged_from: dict[str, str] = {}
        """The tree from which a merged tree was made."""
        self.in_tip: set[str] = set()
        """Commits and trees that the last landing contains, so its ref protects them, too."""
        self.differences: dict[tuple[str, str], tuple[tuple[TreeDifference, ...], Changes | None]] = {}
        """Differences between a base and a tree, for the last few trees that were staged."""

        self.states: dict[int, SlotState] = {}
        """The state of each slot."""
        self.authors: dict[str, tuple[str, tuple[AuthoredLine, ...]]] = {}
        """The authors of the lines of files at a commit, for the last few requests."""

    def remember(self, base: str, tree: str, rows: Sequence[TreeDifference], listed: Changes | None) -> None:
        """Store the differences and folders of a staged tree, so that git need not read them again."""
        self.differences[base, tree] = tuple(rows), listed
        for oldest in list(self.differences)[:-MAX_CACHED_DIFFERENCES]:
            self.differences.pop(oldest, None)
        base_folders = self.folders.get(self.trees.get(base, base))
        if base_folders is None or any(
            row.new_mode == NO_MODE or GITLINK in (row.old_mode, row.new_mode) for row in rows
        ):
            return
        parents = {str(parent) for row in rows for parent in PurePosixPath(row.path).parents} - {"."}
        folders, submodules = base_folders
        self.folders[tree] = ([*folders, *sorted(parents - set(folders))], submodules)

    def landed(self, commit: str, base: str, tree: str) -> None:
        """Record that the tip contains a landing, so that the refs of its trees are free."""
        if self.protected.get(TIP_REF) != base:
            self.in_tip.clear()
        self.in_tip |= {base, tree}
        self.protected[TIP_REF] = commit
        while tree:
            self.free_refs |= {name for name, held in self.protected.items() if held == tree}
            tree = self.merged_from.pop(tree, "")
        for name in self.free_refs & self.protected.keys():
            del self.protected[name]

    def git_folder_template(self) -> GitFolderTemplate:
        with self._lock:
            self._template = self._template or self._make_template()
            return self._template

    @property
    def line_ends(self) -> tuple[str, ...]:
        """Settings of line ends in slots: those of the repository apply, the user's preference does not.

        An agent writes LF. In a checkout with CRLF, checks of correct work could fail.
        """
        preferences = [value for _, key, value in self._settings if key == "core.autocrlf"]
        return ("core.eol=lf", *(["core.autocrlf=input"] if preferences[-1:] == ["true"] else []))

    @property
    def tags(self) -> Path:
        """A separate object store for annotated tags, which a commit cannot protect."""
        return self.repository.store / "tags"

    def _make_template(self) -> GitFolderTemplate:
        repository = self.repository
        rows = list(_refs(repository.git))
        if any(commit != repository.head for commit, _, _ in rows):
            self._protect_commits()
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
            if scope in {"local", "worktree"} and COPIED_SETTINGS.fullmatch(key):
                yield _setting(key.split("."), value)
        for line in self.line_ends:
            name, _, value = line.partition("=")
            yield _setting(name.split("."), value)

    def _protect_commits(self) -> None:
        """Protect every commit that the base does not contain, by one commit with all of them as parents."""
        git, head = self.repository.git, self.repository.head
        beyond = git("for-each-ref", f"--no-merged={head}", COMMIT_FORMAT, *REFS).split()
        parents = sorted({commit for commit in beyond if commit})
        if not parents:
            return
        tree = git("rev-parse", f"{head}^{{tree}}")
        git("update-ref", BORROWED_REF, reproducible_commit(git, tree, parents, "What slots borrow"))


def reproducible_commit(git: Git, tree: str, parents: Sequence[str], message: str) -> str:
    """Write a commit whose id depends only on these arguments."""
    lines = [f"tree {tree}", *(f"parent {commit}" for commit in parents)]
    lines += [f"{role} unstuck <unstuck@localhost> 0 +0000" for role in ("author", "committer")]
    return git("hash-object", "-t", "commit", "-w", "--stdin", stdin="\n".join([*lines, "", f"{message}\n"]))


def _refs(git: Git) -> Iterator[tuple[str, str, str]]:
    for line in git("for-each-ref", REF_FORMAT, *REFS).splitlines():
        commit, kind, peeled, name = line.split(" ", 3)
        if (peeled or kind) == "commit" and not name.startswith(RUN_BRANCH_REFS):
            yield commit, kind, name


def _settings(git: Git) -> Iterator[tuple[str, str, str]]:
    """Yield the scope, name and value of every setting. The last one applies."""
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
    """The state of a slot, as stored beside its private index."""

    base: str | None = None
    placed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    """Ignored files that the set-up made. They stay in a clean slot."""
    brought: tuple[str, ...] = ()
    """Files that the set-up made and git does not ignore. They stay, but never land."""
    bent: tuple[str, ...] = ()
    """Files that the set-up changed, as `mode object path`. They do not land in that form."""
    links: tuple[str, ...] = ()
    """The submodules."""
    filled: tuple[FilledSubmodule, ...] = ()
    """The submodules that have their files, with nested ones."""
    clean: bool = False
    """The slot was made to check a tree, and holds no work."""
    ready: bool = True
    """False while `prepare` works. A snapshot was taken before."""
