"""Edge: Find the user's repository, say what is wrong with it, and where our own things of it lie."""

import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from unstuck.errors import BadUsage, CannotWrite, Unavailable
from unstuck.git.command import Git, shown

OLDEST_GIT = (2, 38)
ASKED = (
    *("--is-bare-repository", "--is-inside-git-dir", "--absolute-git-dir", "--git-common-dir", "--show-toplevel"),
    *("HEAD^{commit}", "--symbolic-full-name HEAD"),
)
"""What one command says of a repository, in this order until it fails."""
NEXT = "--next"
"""Git repeats what it does not know, so this ends each answer: a path may hold any character."""
OURS = ".unstuck"
SLOTS = "slots"
OWNER = "checkout"
"""Beside the slots: a file that says whose they are."""
EXCLUDE_LINE = ".unstuck/"
EXCLUDED_ALREADY = (".unstuck", ".unstuck/", "/.unstuck", "/.unstuck/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whose name stands on our commits."""

    name: str
    email: str

    def env(self, at: float | None = None) -> dict[str, str]:
        """Return git's variables for this person, and for this second when given."""
        date = {} if at is None else {"GIT_AUTHOR_DATE": f"@{int(at)} +0000", "GIT_COMMITTER_DATE": f"@{int(at)} +0000"}
        return {
            "GIT_AUTHOR_NAME": self.name,
            "GIT_AUTHOR_EMAIL": self.email,
            "GIT_COMMITTER_NAME": self.name,
            "GIT_COMMITTER_EMAIL": self.email,
        } | date


NOBODY = Identity(name="unstuck", email="unstuck@localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Submodule:
    name: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """The user's checkout as it was when we looked."""

    root: Path
    """The top of the checkout."""
    git_dir: Path
    common_dir: Path
    """Shared by all worktrees; differs from `git_dir` when the checkout is itself a linked worktree."""
    head: str
    branch: str | None
    """The full ref that HEAD stands on; None when it is detached."""

    @property
    def git(self) -> Git:
        return Git(self.root)

    @property
    def ours(self) -> Path:
        """The folder of what people read and edit; all of it can be made anew from the journal."""
        return self.root / OURS

    @property
    def store(self) -> Path:
        """The folder of what must not be lost: out of reach of `git clean`, and moved along with the repository."""
        return self.common_dir / "unstuck"

    def exclude_ours(self) -> None:
        """Keep `.unstuck/` out of the user's `git status`, once, without touching what else is excluded."""
        path = self.common_dir / "info" / "exclude"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a+b") as file:
                file.seek(0)
                content = file.read()
                lines = {line.strip() for line in content.decode("utf-8", "replace").splitlines()}
                if lines.isdisjoint(EXCLUDED_ALREADY):
                    newline = b"" if not content or content.endswith(b"\n") else b"\n"
                    file.write(newline + EXCLUDE_LINE.encode() + b"\n")
        except OSError as error:
            raise CannotWrite(
                f"{path} cannot be written: {error.strerror}.", hint="Make it writable and try again."
            ) from error

    def uncommitted(self) -> tuple[str, ...]:
        """List what a run will not see, because it starts from HEAD: changed, staged and untracked files."""
        return tuple(entry[3:] for entry in self.git.names("status", "--porcelain=v1", "-z", "--no-renames"))

    def submodules(self) -> tuple[Submodule, ...]:
        return read_submodules(self.git, "--blob", "HEAD:.gitmodules")

    def lfs_files(self) -> tuple[str, ...]:
        """List the files that git-lfs keeps outside of git; cheap when no attributes mention it."""
        attributes = self.git.names("ls-files", "-z", "--", ".gitattributes", "*/.gitattributes")
        if not any(self._mentions_lfs(name) for name in attributes):
            return ()
        return self.git.names("ls-files", "-z", "--", ":(attr:filter=lfs)")

    def identity(self) -> Identity:
        """Return the user's git identity, or ours where none is configured."""
        found = self.git.attempt("config", "-z", "--get-regexp", r"^(user|author|committer)\.(name|email)$").stdout
        config = dict(entry.split("\n", 1) for entry in found.split("\0") if "\n" in entry)
        name = os.environ.get("GIT_AUTHOR_NAME") or config.get("author.name") or config.get("user.name")
        email = os.environ.get("GIT_AUTHOR_EMAIL") or config.get("author.email") or config.get("user.email")
        return Identity(name=name, email=email) if name and email else NOBODY

    def _mentions_lfs(self, name: str) -> bool:
        try:
            return b"filter=lfs" in (self.root / name).read_bytes()
        except OSError:
            return False


def find(cwd: Path) -> Repository:
    """Return the repository around a folder, or say why a run cannot work there."""
    git = Git(cwd)
    _check_version(git("version"))
    asked = (part for line in ASKED for part in (*line.split(" "), NEXT))
    found = git.attempt("rev-parse", "--path-format=absolute", *asked)
    bare, inside_git_dir, git_dir, common_dir, root, head, branch, *_ = [*found.stdout.split(f"\n{NEXT}\n"), *ASKED]
    if not found.stdout:
        raise _not_a_repository(cwd, found.stderr)
    if bare == "true":
        raise BadUsage(
            f"{cwd} is a bare repository; a run needs a checkout.",
            hint="Make one with `git worktree add ../checkout` and start there.",
        )
    if inside_git_dir == "true":
        raise BadUsage(f"{cwd} is inside a .git folder.", hint="Start in the checkout itself.")
    _check_not_ours(Path(root))
    if found.returncode != 0:
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
    """Return the folder that this repository's slots are in: away from every checkout, and the same after it was moved.

    A copy of a repository gets another one: git's folder is known by its place on the disk.
    """
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    known, here = repository.store / "id", str(repository.common_dir.stat().st_ino)
    try:
        name, there = known.read_text().split()
    except (OSError, ValueError):
        name, there = "", ""
    if there != here:
        name = f"{re.sub(r'[^a-zA-Z0-9_.-]+', '-', repository.root.name)[:40]}-{secrets.token_hex(4)}"
        try:
            known.parent.mkdir(parents=True, exist_ok=True)
            known.write_text(f"{name} {here}\n")
        except OSError as error:
            raise CannotWrite(
                f"{known} cannot be written: {error.strerror}.", hint="Make it writable and try again."
            ) from error
    return (Path(configured).expanduser() if configured else Path(state) / "unstuck") / name / SLOTS


def read_submodules(git: Git, *source: str) -> tuple[Submodule, ...]:
    """Read the submodules named in a `.gitmodules`: `--blob REV:.gitmodules` or `--file PATH`."""
    found = git.attempt("config", "-z", *source, "--get-regexp", r"^submodule\..*\.path$").stdout
    pairs = [entry.split("\n", 1) for entry in found.split("\0") if "\n" in entry]
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
        f"git cannot read the repository at {cwd}: {shown(stderr.strip())}", hint="Repair it, then try again."
    )


def _check_not_ours(root: Path) -> None:
    for folder in root.parents:
        if folder.name == SLOTS and (folder / OWNER).is_file():
            checkout = (folder / OWNER).read_text(errors="surrogateescape").strip()
            raise BadUsage(f"{root} is one of unstuck's own slots.", hint=f"Start in your checkout: cd {checkout}")
