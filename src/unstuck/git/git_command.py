"""Run git commands without hooks, prompts, editors, signing, a shell or a locale.

It also waits for git commands that outlived a supervisor, and removes the locks of killed ones.
"""

import contextlib
import os
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from unstuck.model.errors import GitFailed, Unavailable, unwritable

QUIET_CONFIG = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
    "submodule.recurse=false",
)
"""Set for every command, instead of the user's own configuration."""

GIT_VARIABLES = (
    *("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_PREFIX"),
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
    *("GIT_GRAFT_FILE", "GIT_SHALLOW_FILE", "GIT_REPLACE_REF_BASE"),
    *("GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"),
    *("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"),
)
"""Variables that would make a command use another repository, as inside a git hook, or change its meaning."""

FIXED_VARIABLES = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_ASKPASS": "true",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C.UTF-8",
    "LANGUAGE": "C",
}


@dataclass(frozen=True, slots=True)
class Git:
    """Git in one folder. Text in and out is UTF-8 with surrogate escapes, so any file name survives."""

    cwd: Path
    sign: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    """Configuration as `name=value`. It overrides the user's and the quiet one."""

    def __call__(self, *args: str, stdin: str | None = None) -> str:
        """Run a command that must succeed. Return its output without the last newline."""
        done = self.attempt(*args, stdin=stdin)
        if done.returncode != 0:
            raise GitFailed(
                f"git {displayable(' '.join(args)[:200])} failed in {self.cwd} (exit {done.returncode}): {displayable(done.stderr.strip() or done.stdout.strip())}",
                hint="See what git says with `unstuck doctor`; nothing of yours was changed.",
            )
        return done.stdout.removesuffix("\n")

    def attempt(self, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command that may fail."""
        # Bytes, because text mode would turn a carriage return in a file name into a newline.
        content = stdin.encode("utf-8", "surrogateescape") if stdin is not None else None
        is_in_slot = "GIT_WORK_TREE" in self.env  # an agent may have put a pipe there
        timeout = PIPE_CHECK_SECONDS if is_in_slot else None
        source = subprocess.DEVNULL if content is None else subprocess.PIPE
        with self._started(*args, stdin=source, stderr=subprocess.PIPE) as process:
            printed = None
            while printed is None:
                try:
                    printed = process.communicate(content, timeout=timeout)
                except subprocess.TimeoutExpired:
                    content = None
                    _remove_blocking_pipes(self.cwd)
            out, err = (stream.decode("utf-8", "surrogateescape") for stream in printed)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    @contextmanager
    def streaming(self, *args: str, stdin: str) -> Iterator[IO[bytes]]:
        """Run a command and yield its output as a stream, for callers that read only a part."""
        with TemporaryFile() as source:  # a pipe could fill up on both sides
            source.write(stdin.encode("utf-8", "surrogateescape"))
            source.seek(0)
            with self._started(*args, stdin=source.fileno(), stderr=subprocess.DEVNULL) as process:
                assert process.stdout is not None
                yield process.stdout

    def _started(self, *args: str, stdin: int, stderr: int) -> "subprocess.Popen[bytes]":
        settings = [*QUIET_CONFIG, f"commit.gpgSign={str(self.sign).lower()}", *self.settings]
        options = [part for setting in settings for part in ("-c", setting)]
        environment = {name: value for name, value in os.environ.items() if name not in GIT_VARIABLES}
        try:
            return subprocess.Popen(
                ["git", *options, *args],
                cwd=self.cwd,
                env=environment | FIXED_VARIABLES | dict(self.env),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        except FileNotFoundError as error:
            if not self.cwd.is_dir():
                raise GitFailed(f"The folder {self.cwd} is gone.", hint="Go on with `unstuck resume`.") from error
            raise Unavailable("git is not on PATH.", hint="Install git 2.38 or newer.") from error
        except OSError as error:
            raise GitFailed(
                f"git could not be started in {self.cwd}: {error.strerror}.",
                hint="See whether there are too many processes, then go on with `unstuck resume`.",
            ) from error

    def succeeds(self, *args: str) -> bool:
        return self.attempt(*args).returncode == 0

    def names(self, *args: str) -> tuple[str, ...]:
        """Run a command that prints NUL-separated names (give it `-z`)."""
        return tuple(name for name in self(*args).split("\0") if name)

    def resolve(self, *names: str) -> tuple[str | None, ...]:
        """Return the object id of each name, or None if it is missing, in one command."""
        lines = self("cat-file", "--batch-check=%(objectname)", stdin="".join(f"{name}\n" for name in names)).split(
            "\n"
        )
        return tuple(None if line.endswith(" missing") else line for line in lines)

    def at(self, cwd: Path) -> "Git":
        return replace(self, cwd=cwd)

    def using(self, **env: str) -> "Git":
        return replace(self, env={**self.env, **env})

    def with_settings(self, *settings: str) -> "Git":
        return replace(self, settings=(*self.settings, *settings))


def displayable(text: str) -> str:
    """Return a file name or a message of git as text that any terminal, journal or report accepts."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


@contextmanager
def report_write_errors(path: Path) -> Iterator[None]:
    """Raise an error with a hint if the file cannot be written."""
    try:
        yield
    except OSError as error:
        raise unwritable(path, error) from error


PIPE_CHECK_SECONDS = 1.0
"""After this time git may be waiting for a named pipe of an agent."""
READ_BY_GIT = frozenset({".gitignore", ".gitattributes", ".gitmodules"})


def _remove_blocking_pipes(slot: Path) -> None:
    """Remove named pipes in the place of files that git reads. A waiting git reads an empty file."""
    for folder, _, names in os.walk(slot):
        for path in (f"{folder}/{name}" for name in names if name in READ_BY_GIT):
            with contextlib.suppress(OSError):  # no process reads from this pipe
                if stat.S_ISFIFO(os.lstat(path).st_mode):
                    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                    Path(path).unlink()


PROC = Path("/proc")
GIT_TIMEOUT_SECONDS = 30.0
"""Time for a git command that outlived a crash to end."""

STALE_LOCK_SECONDS = 2.0
"""Git holds a ref's lock for milliseconds. An older one that no process has open has no owner."""

STALE_LOCK_SECONDS_WITHOUT_PROC = 60.0
"""The same where the open files of processes cannot be seen."""


def wait_for_git(folder: Path, timeout: float = GIT_TIMEOUT_SECONDS, *, only_own: bool = False) -> None:
    """Return when no git command works inside the folder any more. Only the caller may start one there.

    With `only_own`, only the commands of a supervisor count, and the user may run git there.
    """
    deadline = time.monotonic() + timeout
    while pids := [pid for pid in git_processes(folder) if not only_own or _has_quiet_config(pid)]:
        if time.monotonic() > deadline:
            raise GitFailed(
                f"git still runs in {folder} (process {', '.join(map(str, pids))}).",
                hint=f"Wait for it or end it with `kill {pids[0]}`, then go on with `unstuck resume`.",
            )
        time.sleep(0.01)


def remove_stale_lock(lock: Path) -> bool:
    """Remove a ref's lock if it is old and no process has it open. Return whether it is gone."""
    _await_age(lock, STALE_LOCK_SECONDS if PROC.is_dir() else STALE_LOCK_SECONDS_WITHOUT_PROC)
    if lock.exists() and not is_file_open(lock):
        lock.unlink(missing_ok=True)
    return not lock.exists()


def git_processes(folder: Path) -> tuple[int, ...]:
    """List the running git commands whose working folder is this one or inside it."""
    top = os.fsencode(folder.resolve())
    return tuple(pid for pid in _processes() if _proc_file(pid, "comm").startswith(b"git") and _works_inside(pid, top))


def processes_inside(folder: Path) -> tuple[int, ...]:
    """List the running processes of any kind whose working folder is this one or inside it."""
    top = os.fsencode(folder.resolve())
    return tuple(pid for pid in _processes() if _works_inside(pid, top))


def _processes() -> Iterator[int]:
    with contextlib.suppress(OSError):
        for name in os.listdir(PROC):  # noqa: PTH208  a scan of every process: bare names are three times faster
            if name.isdigit():
                yield int(name)


def _proc_file(pid: int, name: str) -> bytes:
    """Return a file of /proc about a process, or nothing if the process is gone."""
    with contextlib.suppress(OSError):
        return (PROC / str(pid) / name).read_bytes()
    return b""


def _has_quiet_config(pid: int) -> bool:
    arguments = _proc_file(pid, "cmdline").split(b"\0")
    return all(setting.encode() in arguments for setting in QUIET_CONFIG)


def _works_inside(pid: int, top: bytes) -> bool:
    try:
        cwd = os.readlink(b"/proc/%d/cwd" % pid)  # noqa: PTH115  as above, and a name may be any bytes
    except OSError:
        return False
    return cwd == top or cwd.startswith(top + b"/")


def is_file_open(path: Path) -> bool:
    wanted = str(path.resolve())
    for pid in _processes():
        with contextlib.suppress(OSError):
            if any(os.path.realpath(entry) == wanted for entry in (PROC / str(pid) / "fd").iterdir()):
                return True
    return False


def _await_age(lock: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds  # after the clock was set back, a lock may seem to be from the future
    with contextlib.suppress(FileNotFoundError):
        while time.time() - lock.stat().st_mtime < seconds and time.monotonic() < deadline:
            time.sleep(0.05)
