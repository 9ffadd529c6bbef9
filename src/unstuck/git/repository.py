"""The user's repository, the program's folders in it, and its changes during sessions."""

import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from unstuck.git.git_command import Git, displayable, report_write_errors
from unstuck.model.errors import BadUsage, Unavailable
from unstuck.model.landing import RUN_BRANCH_REFS

OLDEST_GIT = (2, 38)
REV_PARSE_ARGUMENTS = (
    *("--is-bare-repository", "--is-inside-git-dir", "--absolute-git-dir", "--git-common-dir", "--show-toplevel"),
    *("HEAD^{commit}", "--symbolic-full-name HEAD"),
)
"""One command prints these facts of a repository, in this order until it fails."""
SEPARATOR = "--next"
"""Git repeats an unknown option, so this ends each answer. A path may contain any character."""
UNSTUCK_FOLDER = ".unstuck"
DRAFT_PREFIX = f"{UNSTUCK_FOLDER}-tick-"
"""Name of a draft beside the user's file, until it replaces that file."""
SLOTS_FOLDER = "slots"
OWNER_FILE = "checkout"
"""A file beside the slots that names the checkout to which they belong."""
EXCLUDE_LINE = ".unstuck/"
EXCLUDE_VARIANTS = (".unstuck", ".unstuck/", "/.unstuck", "/.unstuck/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The author of commits."""

    name: str
    email: str

    def env(self, at: float | None = None) -> dict[str, str]:
        """Return git's variables for this author, and for this time if given."""
        date = {} if at is None else {"GIT_AUTHOR_DATE": f"@{int(at)} +0000", "GIT_COMMITTER_DATE": f"@{int(at)} +0000"}
        return {
            "GIT_AUTHOR_NAME": self.name,
            "GIT_AUTHOR_EMAIL": self.email,
            "GIT_COMMITTER_NAME": self.name,
            "GIT_COMMITTER_EMAIL": self.email,
        } | date


UNSTUCK_IDENTITY = Identity(name="unstuck", email="unstuck@localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Submodule:
    name: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """The user's checkout as it was when it was read."""

    root: Path
    """The top of the checkout."""
    git_dir: Path
    common_dir: Path
    """Shared by all worktrees. It differs from `git_dir` if the checkout is itself a linked worktree."""
    head: str
    branch: str | None
    """The full ref of HEAD, or None if it is detached."""

    @property
    def git(self) -> Git:
        return Git(self.root)

    @property
    def unstuck_folder(self) -> Path:
        """The folder with files that the user reads and edits. The journal can restore all of it."""
        return self.root / UNSTUCK_FOLDER

    @property
    def store(self) -> Path:
        """The folder with files that must not be lost. `git clean` does not reach it."""
        return self.common_dir / "unstuck"

    def exclude_unstuck_folder(self) -> None:
        """Exclude `.unstuck/` from the user's `git status`, unless it is excluded already."""
        path = self.common_dir / "info" / "exclude"
        with report_write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a+b") as file:
                file.seek(0)
                content = file.read()
                lines = {line.strip() for line in content.decode("utf-8", "replace").splitlines()}
                if lines.isdisjoint(EXCLUDE_VARIANTS):
                    newline = b"" if not content or content.endswith(b"\n") else b"\n"
                    file.write(newline + EXCLUDE_LINE.encode() + b"\n")

    def uncommitted(self) -> tuple[str, ...]:
        """Return the changed, staged and untracked files, which a run ignores because it starts from HEAD."""
        return tuple(entry[3:] for entry in self.git.names("status", "--porcelain=v1", "-z", "--no-renames"))

    def submodules(self) -> tuple[Submodule, ...]:
        return read_submodules(self.git, "--blob", "HEAD:.gitmodules")

    def lfs_files(self) -> tuple[str, ...]:
        """Return the files that git-lfs keeps outside of git. It is fast if no attributes mention git-lfs."""
        attributes = self.git.names("ls-files", "-z", "--", ".gitattributes", "*/.gitattributes")
        if not any(self._mentions_lfs(name) for name in attributes):
            return ()
        return self.git.names("ls-files", "-z", "--", ":(attr:filter=lfs)")

    def identity(self) -> Identity:
        """Return the user's git identity, or the one of unstuck if none is configured."""
        listing = self.git.attempt("config", "-z", "--get-regexp", r"^(user|author|committer)\.(name|email)$").stdout
        config = dict(entry.split("\n", 1) for entry in listing.split("\0") if "\n" in entry)
        name = os.environ.get("GIT_AUTHOR_NAME") or config.get("author.name") or config.get("user.name")
        email = os.environ.get("GIT_AUTHOR_EMAIL") or config.get("author.email") or config.get("user.email")
        return Identity(name=name, email=email) if name and email else UNSTUCK_IDENTITY

    def _mentions_lfs(self, name: str) -> bool:
        try:
            return b"filter=lfs" in (self.root / name).read_bytes()
        except OSError:
            return False


def find_repository(cwd: Path) -> Repository:
    """Return the repository around a folder, or raise why a run cannot work there."""
    git = Git(cwd)
    _check_version(git("version"))
    arguments = (part for line in REV_PARSE_ARGUMENTS for part in (*line.split(" "), SEPARATOR))
    done = git.attempt("rev-parse", "--path-format=absolute", *arguments)
    bare, inside_git_dir, git_dir, common_dir, root, head, branch, *_ = [
        *done.stdout.split(f"\n{SEPARATOR}\n"),
        *REV_PARSE_ARGUMENTS,
    ]
    if not done.stdout:
        raise _not_a_repository(cwd, done.stderr)
    if bare == "true":
        raise BadUsage(
            f"{cwd} is a bare repository; a run needs a checkout.",
            hint="Make one with `git worktree add ../checkout` and start there.",
        )
    if inside_git_dir == "true":
        raise BadUsage(f"{cwd} is inside a .git folder.", hint="Start in the checkout itself.")
    _check_not_a_slot(Path(root))
    if done.returncode != 0:
        raise Unavailable(
            f"The repository at {root} has no commits yet.",
            hint="Make a first one: git add -A && git commit -m 'Start'",
        )
    return Repository(
        root=Path(root),
        git_dir=Path(git_dir),
        common_dir=Path(common_dir),
        head=head,
        branch=branch if branch != "HEAD" else None,
    )


def slots_folder(repository: Repository, configured: str = "") -> Path:
    """Return the folder of this repository's slots, which lies outside of every checkout.

    It stays the same after the repository was moved. A copy of the repository gets another folder, since the inode of
    its git folder differs.
    """
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    id_file, inode = repository.store / "id", str(repository.common_dir.stat().st_ino)
    try:
        name, stored_inode = id_file.read_text().split()
    except (OSError, ValueError):
        name, stored_inode = "", ""
    if stored_inode != inode:
        name = f"{re.sub(r'[^a-zA-Z0-9_.-]+', '-', repository.root.name)[:40]}-{secrets.token_hex(4)}"
        with report_write_errors(id_file):
            id_file.parent.mkdir(parents=True, exist_ok=True)
            id_file.write_text(f"{name} {inode}\n")
    return (Path(configured).expanduser() if configured else Path(state) / "unstuck") / name / SLOTS_FOLDER


def read_submodules(git: Git, *source: str) -> tuple[Submodule, ...]:
    """Read the submodules named in a `.gitmodules`: `--blob REV:.gitmodules` or `--file PATH`."""
    listing = git.attempt("config", "-z", *source, "--get-regexp", r"^submodule\..*\.path$").stdout
    pairs = [entry.split("\n", 1) for entry in listing.split("\0") if "\n" in entry]
    return tuple(Submodule(name=key.removeprefix("submodule.").removesuffix(".path"), path=path) for key, path in pairs)


def _check_version(text: str) -> None:
    numbers = re.search(r"(\d+)\.(\d+)", text)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < OLDEST_GIT:
        raise Unavailable(f"{text} is too old.", hint="Install git 2.38 or newer.")


def _not_a_repository(cwd: Path, stderr: str) -> Unavailable:
    if "dubious ownership" in stderr:
        return Unavailable(
            f"git does not trust the repository at {cwd}, because it belongs to another user.",
            hint=f"If you do, run `git config --global --add safe.directory {cwd}`.",
        )
    if "not a git repository" in stderr:
        return Unavailable(
            f"{cwd} is not a git repository.", hint="Start in one, or make one with `git init` and a first commit."
        )
    return Unavailable(
        f"git cannot read the repository at {cwd}: {displayable(stderr.strip())}", hint="Repair it, then try again."
    )


def _check_not_a_slot(root: Path) -> None:
    for folder in root.parents:
        if folder.name == SLOTS_FOLDER and (folder / OWNER_FILE).is_file():
            checkout = (folder / OWNER_FILE).read_text(errors="surrogateescape").strip()
            raise BadUsage(f"{root} is one of unstuck's own slots.", hint=f"Start in your checkout: cd {checkout}")


MAX_LISTED_NAMES = 5
UNSTUCK_REFS = (RUN_BRANCH_REFS, "refs/unstuck/")
MISSING = "0"
HEAD_LOG, HOME_PREFIX = "logs/HEAD", "~/"
WATCHED_FILES = (
    *("config", "config.worktree", "logs/refs/stash"),
    *("info/attributes", "info/grafts", "objects/info/alternates"),
)
Stamp = tuple[int, ...]
REF_NOUNS = {"refs/heads/": "branch", "refs/tags/": "tag", "refs/remotes/": "remote branch"}
RESTORE_COMMANDS = {"refs/heads/": "git branch {name} {old}", "refs/tags/": "git tag {name} {old}"}
"""The commands that bring a deleted ref back."""


@dataclass(frozen=True, slots=True)
class RepositoryState:
    """The user's repository at one moment."""

    stamps: Mapping[str, Stamp]
    """Git's settings, hooks and logs, with their stamps."""
    refs_at: Mapping[str, Stamp]
    refs: Mapping[str, str]
    files: Mapping[str, tuple[object, ...]]
    """The files of `git status`, with its letters and the file's stamp."""
    head: str


class RepositoryChanges:
    """Changes in the user's repository around sessions. Parallel sessions share it, so each change is reported once."""

    def __init__(self, repository: Repository, left_out: Sequence[str] = ()) -> None:
        """Ignore the files in `left_out`, such as the plan."""
        self._repository = repository
        self._left_out = frozenset((*left_out, f"{UNSTUCK_FOLDER}/"))
        self._lock = Lock()
        self._last: RepositoryState | None = None
        self._index_at: Stamp = ()
        self._hidden: tuple[str, ...] = ()
        """Files that a flag in the user's index hides from `git status`."""

    def begin(self) -> None:
        """Read the state before the first session. Later changes are reported after the session that ends next."""
        with self._lock:
            self._last = self._last or self._look()

    def since_last_look(self) -> tuple[str, ...]:
        """Return a sentence for each change since the last call."""
        with self._lock:
            before, now = self._last, self._look()
            self._last = now
        return tuple(_differences(before, now)) if before is not None and before != now else ()

    def _look(self) -> RepositoryState:
        git, common = self._repository.git, self._repository.common_dir
        options = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignored=matching")
        listed = self._with_own_index(git).attempt("status", *options).stdout.split("\0")
        entries = [(entry[3:], entry[:2]) for entry in listed if entry] + [(path, "hidden") for path in self._hidden]
        refs_at = dict(_ref_files(common))
        same = self._last is not None and refs_at == self._last.refs_at
        return RepositoryState(
            stamps={**dict(_stamps(common)), HEAD_LOG: _stamp(self._repository.git_dir / HEAD_LOG)},
            refs_at=refs_at,
            refs=self._last.refs if self._last is not None and same else _refs(git),
            files={
                path: (letters, *_stamp(self._repository.root / path))
                for path, letters in entries
                if path not in self._left_out
                and not path.rpartition("/")[2].startswith(DRAFT_PREFIX)
                and not (letters == "!!" and path.endswith("/"))
            },
            head=_head(self._repository.git_dir),
        )

    def _with_own_index(self, git: Git) -> Git:
        """Return git with a copy of the user's index, in which it may store what it read of the files.

        Otherwise git would read every file of a checkout that is as young as its index in each call.
        """
        index, copy = self._repository.git_dir / "index", self._repository.store / "look.index"
        stamp = _stamp(index)
        if not stamp:
            return git
        try:
            if stamp != self._index_at or not copy.exists():
                shutil.copy2(index, copy)  # with its time stamp: git compares files against it
                self._index_at = stamp
                flagged = git.attempt("ls-files", "-v", "-z").stdout.split("\0")
                self._hidden = tuple(entry[2:] for entry in flagged if entry and not entry.startswith("H"))
        except OSError:
            return git
        return git.using(GIT_INDEX_FILE=str(copy), GIT_OPTIONAL_LOCKS="1").with_settings("core.splitIndex=false")


def _differences(before: RepositoryState, now: RepositoryState) -> Iterator[str]:
    if before.head != now.head:
        yield f"Your checkout went from {_describe_head(before.head)} to {_describe_head(now.head)}."
    for ref in _unlike(before.refs, now.refs):
        yield _moved(ref, before.refs.get(ref, MISSING), now.refs.get(ref, MISSING))
    stamped = _unlike(before.stamps, now.stamps)
    if own := [name for name in stamped if name.startswith(HOME_PREFIX)]:
        yield f"Changed in your home: {listed_names(own)}."
    parts = [name for name in stamped if name not in own]
    if parts and (parts != [HEAD_LOG] or before.refs == now.refs):  # every commit is logged there
        yield f"Changed in your repository's git folder: {listed_names(parts)}."
    if paths := _unlike(before.files, now.files):
        yield f"Changed in your checkout: {listed_names(paths)}. See `git status`."


def _unlike(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    return [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]


def _moved(ref: str, old: str, new: str) -> str:
    prefix = next((prefix for prefix in REF_NOUNS if ref.startswith(prefix)), "")
    name = displayable(ref.removeprefix(prefix))
    label = f"{REF_NOUNS.get(prefix, 'ref')} {name}"
    if old == MISSING:
        return f"New in your repository: {label} at {new[:12]}."
    if new != MISSING:
        return f"In your repository, {label} went from {old[:12]} to {new[:12]}."
    back = RESTORE_COMMANDS.get(prefix, "git update-ref " + displayable(ref) + " {old}").format(name=name, old=old)
    return f"In your repository, {label} is gone; it was at {old[:12]}. To bring it back: {back}"


def _refs(git: Git) -> dict[str, str]:
    lines = git.attempt("for-each-ref", "--format=%(objectname) %(refname)").stdout.splitlines()
    pairs = (line.split(" ", 1) for line in lines)
    return {name: value for value, name in pairs if not name.startswith(UNSTUCK_REFS)}


def _ref_files(common: Path) -> Iterator[tuple[str, Stamp]]:
    """Yield the stamps of all files that hold refs. If they are equal, no ref has moved."""
    for name in ("packed-refs", "reftable/tables.list"):
        yield name, _stamp(common / name)
    for folder, folders, files in os.walk(common / "refs"):
        place = f"{Path(folder).relative_to(common)}/"
        folders[:] = [name for name in folders if f"{place}{name}/" not in UNSTUCK_REFS]
        for name in files:
            yield f"{place}{name}", _stamp(Path(folder, name))


def _stamps(common: Path) -> Iterator[tuple[str, Stamp]]:
    for name in WATCHED_FILES:
        yield name, _stamp(common / name)
    for name in ("~/.gitconfig", "~/.config/git/config"):
        yield name, _stamp(Path(name).expanduser())
    for hook in sorted(common.glob("hooks/*")):
        yield f"hooks/{hook.name}", _stamp(hook)


def _stamp(path: Path) -> Stamp:
    try:
        facts = path.lstat()
    except OSError:
        return ()
    return facts.st_ctime_ns, facts.st_size, facts.st_mode, facts.st_ino  # the modification time can be forged


def _head(git_dir: Path) -> str:
    try:
        return (git_dir / "HEAD").read_text(errors="surrogateescape").strip()
    except OSError:
        return ""


def _describe_head(head: str) -> str:
    return (
        displayable(head.removeprefix("ref: ").removeprefix("refs/heads/")) if head.startswith("ref: ") else head[:12]
    )


def listed_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
    return ", ".join(displayable(name) for name in names[:MAX_LISTED_NAMES]) + more
