"""Edge: Put a command into a sandbox of bubblewrap: it sees the machine read-only, and of the user's things only what it needs.

Law: the user's checkout, other slots, the journal, sockets and credentials are not there. What is there can be read; only
the slot, a temporary folder of its own and what an agent's manifest or the user names can be written.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from unstuck.process.command import Command, Purpose
from unstuck.shipped import shipped_table

PROGRAM = "bwrap"
OWN = ("/tmp", "/var/tmp", "/run")  # noqa: S108  # empty ones of its own: sockets of daemons are in the real ones
STILL_THERE = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/run/current-system", "/run/wrappers")
"""What of `/run` names are looked up with, and where some systems have their programs."""


@cache
def sandbox_problem() -> str:
    """Say why there is no sandbox on this machine; empty if there is one."""
    program = shutil.which(PROGRAM)
    if program is None:
        return "bubblewrap (bwrap) is not on PATH"
    trial = [program, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--", "true"]
    try:
        done = subprocess.run(trial, capture_output=True, text=True, errors="replace", check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap cannot be started: {error}"
    said = " ".join(done.stderr.split())[:200]
    return "" if done.returncode == 0 else f"bubblewrap does not work here: {said or done.returncode}"


def sandboxed(command: Command, purpose: Purpose, sandbox: "Sandbox | None") -> Command:
    """Return the command as one that runs in the sandbox, where there is one."""
    return command if sandbox is None else sandbox.wrap(command, purpose)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """A sandbox of bubblewrap for the commands of one repository. It is made only where bubblewrap works."""

    purposes: frozenset[Purpose]
    """What is put into a sandbox."""
    only_named: bool
    """Leave a session alone whose agent does not say what it writes."""
    offline: frozenset[Purpose]
    """What has no network."""
    root: Path
    common_dir: Path
    slots: Path
    linked: tuple[Path, ...]
    """What slots have as links into the user's checkout."""
    write: tuple[str, ...]
    """What may be written besides, by everything in a sandbox."""
    read: tuple[Path, ...] = ()
    """What is there all the same, wherever it lies."""

    def wrap(self, command: Command, purpose: Purpose) -> Command:
        """Return the command as one that runs in the sandbox, where its purpose has one.

        A slot sees nothing of the repository but objects; what works in the checkout itself sees nothing of ours in it.
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
            *_nothing_of_the_users(home),
            *(() if at_home else hide),
            *self._to_read(command, env),
            *_without_credentials(home),
            *self._to_write(command, env, home),
            *(hide if at_home else ()),  # what is ours lies in what such a command may write
            *(part for place in hidden for part in ("--remount-ro", str(place))),  # what is written there would be lost
            *(part for name in _hidden("variables") for part in ("--unsetenv", name)),
            *("--setenv", "TMPDIR", OWN[0], "--chdir", str(command.cwd)),
        ]
        return replace(command, argv=(shutil.which(PROGRAM) or PROGRAM, *flags, "--", *command.argv))

    def _to_read(self, command: Command, env: Mapping[str, str]) -> Iterator[str]:
        """List what would be hidden and is needed: borrowed objects, programs, the brief, what slots have as links."""
        objects = [self.common_dir / "objects", *(self.common_dir / "modules").glob("**/objects")]
        hidden = (*map(Path, OWN), self.root, self.slots)
        folders = (*objects, *_programs(command.argv[0], env, hidden), *self.linked, *self.read)
        named = (Path(word) for word in (*command.argv, env.get("UNSTUCK_BRIEF", "")) if word.startswith("/"))
        files = (path for path in named if _is_below(path, hidden) and not _is_below(path, folders) and path.is_file())
        for path in (*folders, *files):
            yield from ("--ro-bind-try", str(path), str(path))

    def _to_write(self, command: Command, env: Mapping[str, str], home: Path) -> Iterator[str]:
        yield from ("--bind", str(command.cwd), str(command.cwd))
        for name in (*command.writes, *self.write):
            if not (filled := _filled(name, env)):
                continue
            place = home / Path(filled).expanduser()
            if name.endswith("/"):
                place.mkdir(parents=True, exist_ok=True)
            yield from ("--bind-try", str(place), str(place))


def _nothing_of_the_users(home: Path) -> Iterator[str]:
    for place in OWN:
        yield from ("--tmpfs", place)
    for place in STILL_THERE:
        yield from ("--ro-bind-try", place, place)
    if home != Path("/") and home.is_dir():
        yield from ("--tmpfs", str(home))
        for entry in sorted(home.iterdir()):
            if entry.name not in _hidden("files"):
                yield from _as_it_is(entry)


def _filled(name: str, env: Mapping[str, str]) -> str:
    """Return a name as a path; one that begins with a dollar sign is the variable's value, or nothing."""
    return env.get(name[1:].rstrip("/"), "") if name.startswith("$") else name


def _programs(program: str, env: Mapping[str, str], hidden: tuple[Path, ...]) -> Iterator[Path]:
    """Yield folders of programs that would be hidden; a program's libraries are beside its `bin`."""
    folders = [Path(folder) for folder in env.get("PATH", "").split(os.pathsep) if folder.startswith("/")]
    if program.startswith("/"):
        folders.append(Path(program).parent)
    for folder in dict.fromkeys(folders):
        if _is_below(folder, hidden) and folder.is_dir():
            whole = folder.name in ("bin", ".bin") and folder.parent not in hidden
            yield folder.parent if whole else folder


def _as_it_is(entry: Path) -> tuple[str, ...]:
    if entry.is_symlink():
        return ("--symlink", str(entry.readlink()), str(entry))
    return ("--ro-bind-try", str(entry), str(entry))


def _without_credentials(home: Path) -> Iterator[str]:
    for name in _hidden("files"):
        path = home / name
        if "/" in name and path.exists():
            yield from ("--tmpfs", str(path)) if path.is_dir() else ("--ro-bind", "/dev/null", str(path))


def _hidden(what: Literal["files", "variables"]) -> list[str]:
    """Return what the catalogue says that nobody in a sandbox should see."""
    found: list[str] = shipped_table("secrets")["hidden"][what]
    return found


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
