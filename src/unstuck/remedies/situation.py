"""One failed call with all that a strategy may know: the failure, the call, the tools, the machine, the wishes of the user."""

import re
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from unstuck.diagnosis import Kind
from unstuck.remedies.call_words import download_target, loud, plain_words, program
from unstuck.remedies.caller_tools import shell_like
from unstuck.remedies.chain import NOTHING_GIVEN, Catalog, Risk, TaskType
from unstuck.remedies.step import Deed, Expects, Script, Shell, Step, Tools, Use


class Place(NamedTuple):
    """The path that a failure is about, as it is on disk."""

    path: str
    exists: bool = False
    is_folder: bool = False
    inside: bool = False
    """Inside the workspace, links followed."""
    mine: bool = False
    """We own it, so its mode is ours to change."""
    mode: str = ""
    """What `chmod` is told to set it back, the nearest folder's if it does not exist."""
    read_only: bool = False
    """No mode of it would help: its file system is read-only."""
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


LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
SCRIPT_ARGUMENTS = ("script", "command", "cmd", "commandLine", "command_line", "CommandLine", "shell_command", "input")
PATH_KEYS = (
    "file",
    "path",
    "dir",
    "file_path",
    "filePath",
    "filename",
    "directory",
    "folder",
    "target",
    "dir_path",
    "absolute_path",
)
"""What tools call the argument that is a path."""


class Preferences(NamedTuple):
    """What the user allows, and would rather have."""

    allow: Risk = "safe"
    """The gravest risk that may be run without asking."""
    never: tuple[str, ...] = ()
    """Strategies that are never proposed."""
    never_sudo: bool = False
    never_install: bool = False
    prefer_mirrors: bool = False
    mirrors: Mapping[str, str] = NOTHING_GIVEN
    allowed_hosts: tuple[str, ...] = ()
    """Empty: any."""
    allowed_folders: tuple[str, ...] = ()
    """Where remedies may write besides the workspace."""
    sandbox: str = ".unstuck/sandbox"
    longest_wait: float = 900.0
    timeout: float = 120.0
    """Seconds for one step."""

    def may_reach(self, host: str) -> bool:
        name = host.rsplit(":", 1)[0] if host.rsplit(":", 1)[-1].isdigit() else host
        return not self.allowed_hosts or name in LOOPBACK or bool({host, name}.intersection(self.allowed_hosts))


class Call(NamedTuple):
    """What failed, as it was called."""

    tool: str = ""
    args: Mapping[str, Any] = NOTHING_GIVEN
    command: str = ""
    schema: Mapping[str, Any] | None = None
    """The JSON schema of the tool's arguments."""

    @property
    def line(self) -> str:
        """The command line, where the call is one."""
        if self.command:
            return self.command
        given = [self.args[name] for name in SCRIPT_ARGUMENTS if name in self.args]
        own = list((self.schema or {}).get("properties", {}))
        given += [self.args[own[0]]] if shell_like(self.tool) and len(own) == 1 and own[0] in self.args else []
        return next(filter(None, map(_line, given)), "")

    @property
    def words(self) -> tuple[str, ...] | None:
        return plain_words(self.line) if self.line else None

    @property
    def program(self) -> str:
        """What was called, by a name that may be kept: the program of a command, else the tool."""
        name = program(self.words) if self.line else self.tool
        return name if re.fullmatch(r"[\w.+:-]{1,60}", name) else ""


class Situation(NamedTuple):
    kind: Kind
    tools: Tools
    catalog: Catalog
    message: str = ""
    text: str = ""
    """The output of the call."""
    names: Mapping[str, str] = NOTHING_GIVEN
    where: tuple[tuple[str, int | None], ...] = ()
    call: Call = Call()
    around: Surroundings = Surroundings()
    preferences: Preferences = Preferences()
    task_type: TaskType = ""
    reset: float | None = None
    """Seconds until a stated limit ends."""

    def table(self, name: str) -> Mapping[str, Any]:
        table: Mapping[str, Any] = self.catalog.tables.get(name, {})
        return table

    @property
    def is_command(self) -> bool:
        """Whether a shell ran the call, rather than a tool of the caller's with arguments of its own."""
        return bool(self.call.line) and (not self.call.tool or self.tools.is_shell(self.call.tool))

    def again(
        self,
        action: str,
        expected: str = "The call succeeds",
        *,
        words: tuple[str, ...] | None = None,
        script: str | None = None,
        args: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        expects: Expects = Expects(),  # noqa: B008  # a frozen value
    ) -> Step:
        """Return the call once more: with other words, another script or other arguments where they are given."""
        deed: Deed
        if words is None and script is None and (args is not None or not self.is_command):
            deed = Use(tool=self.call.tool, args=dict(self.call.args if args is None else args))
            return Step(action=action, deed=deed, expected=expected, again=True, expects=expects)
        words = words or (self.call.words if script is None else None)
        if words is not None:
            words = loud(words)
            expects = promised(words, expects)
            deed = Shell(argv=words, timeout=timeout, env=env or {})
            risk: Risk = "safe" if self.repeatable(words) else "caution"
        else:
            text = self.call.line if script is None else script
            deed = (
                Shell(argv=("bash", "-c", text), env=env, timeout=timeout)
                if env
                else Script(text=text, timeout=timeout)
            )
            risk = "caution"
        return Step(action=action, deed=deed, expected=expected, risk=risk, again=True, expects=expects)

    def call_words(self) -> tuple[str, ...] | None:
        """Return the call as arguments: its own words, or a shell that reads it; None if it is no command."""
        if not self.is_command:
            return None
        return loud(self.call.words) if self.call.words else ("bash", "-c", self.call.line)

    def repeatable(self, words: tuple[str, ...]) -> bool:
        """Whether these words may be run again without asking: they only read, or were made to be repeated."""
        table, program = self.table("repeatable"), words[0].rsplit("/", 1)[-1]
        if program in {"sh", "bash"}:
            return False
        forbidden = table.get("unless", {}).get(program, ())
        if any(word.split("=")[0] in forbidden or _bundled(word, forbidden) for word in words[1:]):
            return False
        starts = (" ".join((program, *words[1:2])), " ".join((program, *words[1:3])))
        return program in table.get("programs", ()) or any(start in table.get("calls", ()) for start in starts)


def promised(words: tuple[str, ...], expects: Expects = Expects()) -> Expects:  # noqa: B008  # a frozen value
    """Return what must hold after a call: the file that a download writes is there, and is what its name says."""
    target = download_target(words)
    return expects._replace(exists=(*expects.exists, target), sound=(*expects.sound, target)) if target else expects


def _line(value: Any) -> str:
    """Return a command line that is given as one, or as a list of words."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple) or not value or not all(isinstance(word, str) for word in value):
        return ""
    wrapped = len(value) == 3 and program(tuple(value)) in {"sh", "bash", "zsh"} and value[1] in {"-c", "-lc"}  # noqa: PLR2004
    return str(value[2]) if wrapped else shlex.join(value)


def _bundled(word: str, options: tuple[str, ...]) -> bool:
    """Whether a bundle of short options, as in `-sXPOST`, holds one of these."""
    letters = {option[1:] for option in options if not option.startswith("--") and option[2:] == ""}
    return word.startswith("-") and not word.startswith("--") and not letters.isdisjoint(word[1:])
