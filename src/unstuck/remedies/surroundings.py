"""What is known of the machine around a failed call, as values. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from unstuck.remedies.chain import NOTHING_GIVEN


class Place(NamedTuple):
    """The path that a failure is about, as it is on disk."""

    path: str
    exists: bool = False
    is_folder: bool = False
    inside: bool = False  # inside the workspace, links followed
    mine: bool = False  # we own it, so its mode is ours to change
    mode: str = ""  # what `chmod` is told to set it back, the nearest folder's if it does not exist
    read_only: bool = False  # no mode of it would help: its file system is read-only
    executable: bool = False
    interpreter: tuple[str, ...] = ()  # from its first line
    crlf: bool = False  # its lines end as on Windows
    parent: str = "."  # the nearest folder above it that exists
    missing_parents: bool = False
    names: tuple[str, ...] = ()  # what that folder holds
    twins: tuple[str, ...] = ()  # files elsewhere in the workspace whose names are like its own, nearest first
    renamed: str = ""  # what git says that it is called since


class Gone(NamedTuple):
    """A file that a commit took away."""

    old: str
    new: str = ""  # what it is called since; empty if it is called nothing
    commit: str = ""

    @property
    def told(self) -> str:
        return f"{f'renamed to {self.new}' if self.new else 'deleted'} in {self.commit}"


class Lock(NamedTuple):
    path: str
    exists: bool = True
    inside: bool = False
    held: bool = True  # somebody has it open, or a git command works there
    age: float = 0.0


class GitState(NamedTuple):
    operation: str = ""  # the half-done one: merge, rebase, cherry-pick, revert
    unmerged: tuple[str, ...] = ()
    changed: bool = False  # tracked files differ from HEAD


class Surroundings(NamedTuple):
    """Facts about the machine; what nobody looked at is unknown and stands in no way's way."""

    cwd: str = "."
    root: str = "."  # the workspace: nothing outside is ever deleted
    binaries: frozenset[str] | None = None  # programs on PATH; None if nobody looked
    elsewhere: Mapping[str, str] = NOTHING_GIVEN  # programs in the project's own folders, by name
    manager: str = ""
    superuser: bool = False
    root_names: frozenset[str] = frozenset()  # what the top of the workspace holds
    place: Place | None = None
    folders: Mapping[str, tuple[str, ...]] = NOTHING_GIVEN  # folders that the call names, with the files in them
    files: frozenset[str] = frozenset()  # words of the call that are files
    source: str = ""  # the text of the script or document that cannot be parsed
    parses: Mapping[str, frozenset[str]] = NOTHING_GIVEN  # shell → the texts that it can parse
    free_port: int | None = None
    full: str = ""  # the folder on the fullest of the disks that the call may have written to
    free_bytes: int | None = None  # there
    ours: tuple[tuple[str, int], ...] = ()  # what is ours to delete, exact paths with their sizes, largest first
    cached: tuple[str, ...] = ()  # files that an earlier download of the same name left
    local_packages: tuple[str, ...] = ()  # packages in folders of the project that hold the missing one
    gone: Gone | None = None  # the project's own file that was the missing module
    modules: frozenset[str] = frozenset()  # what a missing module may be a misspelling of
    usage: str = ""  # what the program says of its options, where one is unknown to it
    lock: Lock | None = None
    git: GitState | None = None

    def has(self, program: str) -> bool:
        return self.binaries is None or program in self.binaries
