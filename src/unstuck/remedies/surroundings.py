"""What is known about the machine around a failure. Values: an adapter looks, the ways only read."""

from collections.abc import Mapping
from typing import NamedTuple

from unstuck.remedies.chain import NOTHING_GIVEN


class Place(NamedTuple):
    """The path that a failure is about, as it is on disk."""

    path: str
    exists: bool = False
    is_folder: bool = False
    inside: bool = False
    """Inside the workspace, links followed."""
    mine: bool = False
    """We own it, so its mode is ours to change."""
    executable: bool = False
    interpreter: tuple[str, ...] = ()
    """From its first line."""
    crlf: bool = False
    """Its lines end as on Windows."""
    parent: str = "."
    """The nearest folder above it that exists."""
    missing_parents: bool = False
    names: tuple[str, ...] = ()
    """What that folder holds."""
    twins: tuple[str, ...] = ()
    """Files elsewhere in the workspace whose names are like its own, nearest first."""


class Lock(NamedTuple):
    path: str
    exists: bool = True
    inside: bool = False
    held: bool = True
    """Somebody has it open, or a git command works there."""
    age: float = 0.0


class GitState(NamedTuple):
    operation: str = ""
    """The half-done one: merge, rebase, cherry-pick, revert."""
    unmerged: tuple[str, ...] = ()
    changed: bool = False
    """Tracked files differ from HEAD."""


class Surroundings(NamedTuple):
    """Facts about the machine; what nobody looked at is unknown and stands in no way's way."""

    cwd: str = "."
    root: str = "."
    """The workspace: nothing outside is ever deleted."""
    binaries: frozenset[str] | None = None
    """Programs on PATH; None if nobody looked."""
    elsewhere: Mapping[str, str] = NOTHING_GIVEN
    """Programs in the project's own folders, by name."""
    manager: str = ""
    superuser: bool = False
    container: bool = False
    root_names: frozenset[str] = frozenset()
    """What the top of the workspace holds."""
    place: Place | None = None
    folders: Mapping[str, tuple[str, ...]] = NOTHING_GIVEN
    """Folders that the call names, with the files in them."""
    files: frozenset[str] = frozenset()
    """Words of the call that are files."""
    source: str = ""
    """The text of the script or document that cannot be parsed."""
    parses: Mapping[str, frozenset[str]] = NOTHING_GIVEN
    """Shell → the texts that it can parse."""
    free_port: int | None = None
    free_bytes: int | None = None
    ours: tuple[tuple[str, int], ...] = ()
    """What is ours to delete, exact paths with their sizes, largest first."""
    cached: tuple[str, ...] = ()
    """Files that an earlier download of the same name left."""
    local_packages: tuple[str, ...] = ()
    """Packages in folders of the project that hold the missing one."""
    lock: Lock | None = None
    git: GitState | None = None
    unreachable: frozenset[str] = frozenset()
    """Hosts that could not be connected to, where somebody tried."""

    def has(self, program: str) -> bool:
        return self.binaries is None or program in self.binaries
