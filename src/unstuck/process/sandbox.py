"""Run commands in a sandbox of bubblewrap, which hides the user's files.

Rules: the user's checkout, other slots, the journal, sockets and credentials are not in it. All else can be read. Only
the slot, a temporary folder and the paths that an agent's manifest or the user names can be written.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from unstuck.process.command import Command, Purpose
from unstuck.shipped import shipped_table

PROGRAM = "bwrap"
EMPTY_FOLDERS = ("/tmp", "/var/tmp", "/run")  # noqa: S108  # the real ones hold the sockets of daemons
TRIAL_SECONDS = 10
WAY_ON = (
    "Move the agent's program, or what `read` and `write` under [sandbox] name, out of the folders around the checkout; "
    'or set mode = "none" under [sandbox].'
)
VISIBLE_IN_RUN = (
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/run/current-system",
    "/run/wrappers",
)
"""Name resolution needs these, and some systems have their programs there."""


@cache
def sandbox_problem() -> str:
    """Return why there is no sandbox on this machine, or an empty text if there is one."""
    program = shutil.which(PROGRAM)
    if program is None:
        return "bubblewrap (bwrap) is not on PATH"
    trial = [program, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--", "true"]
    problem = _trial_problem(trial, os.environ)
    return f"bubblewrap does not work here: {problem}" if problem else ""


def _trial_problem(trial: Sequence[str], env: Mapping[str, str]) -> str:
    """Return why a command of bubblewrap that only tests a sandbox fails, or an empty text."""
    try:
        done = subprocess.run(
            trial, env=env, capture_output=True, text=True, errors="replace", check=False, timeout=TRIAL_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    return " ".join(done.stderr.split())[:200] or f"exit code {done.returncode}"


def sandboxed(command: Command, purpose: Purpose, sandbox: "Sandbox | None") -> Command:
    """Return the command as one that runs in the sandbox, where there is one."""
    return command if sandbox is None else sandbox.wrap(command, purpose)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """A sandbox of bubblewrap for the commands of one repository. It is made only where bubblewrap works."""

    purposes: frozenset[Purpose]
    """Commands of these purposes run in the sandbox."""
    only_named: bool
    """Sessions of agents whose manifest does not name the paths that they write run outside."""
    offline: frozenset[Purpose]
    """Commands of these purposes have no network."""
    root: Path
    common_dir: Path
    slots: Path
    linked: tuple[Path, ...]
    """Targets of the links that slots have into the user's checkout."""
    write: tuple[str, ...]
    """Paths that every command may write in addition."""
    read: tuple[Path, ...] = ()
    """Paths that are always visible."""

    def wrap(self, command: Command, purpose: Purpose) -> Command:
        """Return the command as one that runs in the sandbox, if its purpose needs one.

        A command in a slot sees only the objects of the repository. A command in the checkout sees no file of the
        program there.
        """
        if purpose not in self.purposes or (purpose == "session" and self.only_named and not command.writes):
            return command
        env = {**os.environ, **command.env}
        home, at_home = Path(env.get("HOME") or "/"), command.cwd.is_relative_to(self.root)
        whole = (self.root, self.common_dir, self.slots)
        hidden = [place for place in (self.common_dir / "unstuck", self.slots) if place.is_dir()] if at_home else whole
        hide = [part for place in hidden for part in ("--tmpfs", str(place))]
        flags = [
            *("--die-with-parent", "--unshare-ipc", "--unshare-uts", "--ro-bind", "/", "/", "--dev", "/dev"),
            *(("--bind", "/proc", "/proc") if command.lasting else ("--unshare-pid", "--proc", "/proc")),
            *(("--unshare-net",) if purpose in self.offline else ()),
            *_hide_home(home),
            *(() if at_home else hide),
            *self._readable(command, env),
            *_hide_credentials(home),
            *self._writable(command, env, home),
            *(hide if at_home else ()),  # the program's files are in the writable checkout
            *(part for place in hidden for part in ("--remount-ro", str(place))),  # files written there would be lost
            *(part for name in _hidden("variables") for part in ("--unsetenv", name)),
            *("--setenv", "TMPDIR", EMPTY_FOLDERS[0], "--chdir", str(command.cwd)),
        ]
        return replace(command, argv=(shutil.which(PROGRAM) or PROGRAM, *flags, "--", *command.argv))

    def start_problem(self, command: Command, purpose: Purpose) -> str:
        """Return why the command's sandbox does not start or hides its program, or an empty text.

        The command itself is not run.
        """
        wrapped = self.wrap(command, purpose)
        if wrapped is command:
            return ""
        arguments = wrapped.argv[: wrapped.argv.index("--")]
        env = {**os.environ, **command.env}
        if problem := _trial_problem((*arguments, "--", "true"), env):
            return problem
        program = command.argv[0]
        if shutil.which(program, path=env.get("PATH")) is None:
            return ""  # it is missing outside, too
        find_program = ("sh", "-c", 'command -v "$0" > /dev/null', program)
        return f"{program} cannot be seen in it" if _trial_problem((*arguments, "--", *find_program), env) else ""

    def _readable(self, command: Command, env: Mapping[str, str]) -> Iterator[str]:
        """Yield binds of hidden paths that are needed: shared objects, programs, the brief, link targets."""
        objects = [self.common_dir / "objects", *(self.common_dir / "modules").glob("**/objects")]
        hidden = (*map(Path, EMPTY_FOLDERS), self.root, self.slots)
        protected = (*hidden, self.common_dir, command.cwd)
        programs = _program_paths(command.argv[0], env, hidden, protected)
        folders = (*objects, *programs, *self.linked, *self.read)
        named = (Path(word) for word in (*command.argv, env.get("UNSTUCK_BRIEF", "")) if word.startswith("/"))
        files = (path for path in named if _is_below(path, hidden) and not _is_below(path, folders) and path.is_file())
        for path in (*folders, *files):
            yield from ("--ro-bind-try", str(path), str(path))

    def _writable(self, command: Command, env: Mapping[str, str], home: Path) -> Iterator[str]:
        yield from ("--bind", str(command.cwd), str(command.cwd))
        for name in (*command.writes, *self.write):
            path = _expand_variable(name, env)
            if not path:
                continue
            place = home / Path(path).expanduser()
            if name.endswith("/"):
                place.mkdir(parents=True, exist_ok=True)
            yield from ("--bind-try", str(place), str(place))


def _hide_home(home: Path) -> Iterator[str]:
    for place in EMPTY_FOLDERS:
        yield from ("--tmpfs", place)
    for place in VISIBLE_IN_RUN:
        yield from ("--ro-bind-try", place, place)
    if home != Path("/") and home.is_dir():
        yield from ("--tmpfs", str(home))
        for entry in sorted(home.iterdir()):
            if entry.name not in _hidden("files"):
                yield from _read_only(entry)


def _expand_variable(name: str, env: Mapping[str, str]) -> str:
    """Return the path, or the value of a variable that begins with a dollar sign."""
    return env.get(name[1:].rstrip("/"), "") if name.startswith("$") else name


def _program_paths(
    program: str, env: Mapping[str, str], hidden: tuple[Path, ...], protected: tuple[Path, ...]
) -> Iterator[Path]:
    """Yield the folders and files that show the programs which would be hidden.

    A folder that contains a protected one is never shown whole: it would cover what hides the protected one.
    """
    search_path = env.get("PATH", "")
    folders = dict.fromkeys(Path(folder) for folder in search_path.split(os.pathsep) if folder.startswith("/"))
    for folder in folders:
        if not _is_below(folder, hidden) or not os.access(folder, os.R_OK | os.X_OK):
            continue
        installation = _installation(folder, protected)
        yield from _executables(folder) if installation is None else (installation,)
    file = shutil.which(program, path=search_path)
    if file is None or not file.startswith("/"):
        return
    for place in (Path(file), Path(file).resolve()):  # a link leads to its installation
        if _is_below(place, hidden):
            yield _installation(place.parent, protected) or place


def _installation(folder: Path, protected: tuple[Path, ...]) -> Path | None:
    """Return the largest folder of an installation that can be shown whole: of a `bin` folder, its parent."""
    candidates = (folder.parent, folder) if folder.name in ("bin", ".bin") else (folder,)
    for candidate in candidates:
        if not any(place.is_relative_to(candidate) for place in protected):
            return candidate
    return None


def _executables(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [file for file in sorted(folder.iterdir()) if file.is_file() and os.access(file, os.X_OK)]


def _read_only(entry: Path) -> tuple[str, ...]:
    if entry.is_symlink():
        return ("--symlink", str(entry.readlink()), str(entry))
    return ("--ro-bind-try", str(entry), str(entry))


def _hide_credentials(home: Path) -> Iterator[str]:
    for name in _hidden("files"):
        path = home / name
        if "/" in name and path.exists():
            yield from ("--tmpfs", str(path)) if path.is_dir() else ("--ro-bind", "/dev/null", str(path))


def _hidden(what: Literal["files", "variables"]) -> list[str]:
    """Return the files or variables that the catalogue hides from every sandbox."""
    names: list[str] = shipped_table("secrets")["hidden"][what]
    return names


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
