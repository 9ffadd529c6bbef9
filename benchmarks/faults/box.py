"""The box: a workspace that can really be broken, with servers, a PATH and a home of its own, and a world outside of it."""

import hashlib
import http.server
import os
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from unstuck.remedies.chain import Risk

BASICS = (
    "bash sh dash env ls cat cp mv rm mkdir rmdir touch tar gzip find xargs grep sed tr head tail wc sort seq sleep date dirname basename "
    "tee nohup test printf mktemp chmod stat timeout true false cut curl wget git ln readlink"
)


class CannotBreak(Exception):
    """This machine does not let us break it in that way; the message says why."""


Answer = tuple[int, Mapping[str, str], bytes]
Page = Callable[[str, int], Answer | None]
"""Path and number of the request → status, headers and body; None breaks the connection off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One broken thing: the call that fails, and how to see from outside that it is whole again."""

    name: str
    category: str
    """The chain that should take care of it."""
    healed: Callable[[], bool] = lambda: True
    prints: str = ""
    """What the remedy that works must have printed."""
    command: str = ""
    tool: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, Any] | None = None
    lent: Mapping[str, Callable[[Mapping[str, Any]], tuple[bool, str]]] = field(default_factory=dict)
    """Tools: arguments → whether it went well, and what it says."""
    alone: bool = False
    """The caller has no other tools than those."""
    env: Mapping[str, str] = field(default_factory=dict)
    limit: float = 20.0
    """Seconds for the call that fails."""
    intact: Callable[[], bool] = lambda: True
    """Whether what must not be touched inside the workspace is as it was."""
    pause: float = 0.0
    """Seconds that the world wants between two calls, whoever makes them."""
    once: bool = False
    """A second success is impossible because the first one had its effect, so `healed` alone confirms it."""
    needs_person: bool = False
    """Nobody but a person can help; to recover by ourselves would be a mistake."""
    mirrors: Mapping[str, str] = field(default_factory=dict)
    allow: Risk = "caution"


@dataclass(slots=True)
class Box:
    """A workspace and everything around it."""

    base: Path
    stack: ExitStack

    @property
    def work(self) -> Path:
        return self.base / "work"

    def write(self, name: str, text: str = "", *, mode: int = 0o644) -> Path:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    def script(self, name: str, text: str) -> Path:
        return self.write(name, f"#!/bin/bash\n{text}\n", mode=0o755)

    def has(self, name: str, text: str = "") -> bool:
        """Whether a file of the workspace exists and holds a text."""
        with suppress(OSError):
            return text in (self.work / name).read_text(encoding="utf-8", errors="replace")
        return False

    def path_with(self, *, without: tuple[str, ...] = (), also: tuple[str, ...] = ("python3",)) -> dict[str, str]:
        """Return a PATH with the basic programs only, some of them left out."""
        folder = self.base / "bin"
        folder.mkdir(exist_ok=True)
        for name in (*BASICS.split(), *also):
            found = sys.executable if name == "python3" else shutil.which(name)
            if found and name not in without and not (folder / name).exists():
                (folder / name).symlink_to(found)
        return {"PATH": str(folder)}

    def git(self, *arguments: str) -> str:
        env = {**os.environ, "HOME": str(self.base / "home"), "GIT_CONFIG_NOSYSTEM": "1"}
        name = ("-c", "user.name=Box", "-c", "user.email=box@localhost")
        done = subprocess.run(
            ["git", *name, *arguments], cwd=self.work, env=env, capture_output=True, text=True, check=False
        )
        return done.stdout

    def repository(self) -> None:
        self.git("init", "-q", "-b", "main")
        self.write("a.txt", "one\n")
        self.git("add", "-A")
        self.git("commit", "-qm", "First")

    def serve(self, page: Page, *, port: int = 0, after: float = 0.0) -> int:
        """Answer on a loopback port from now on, or from a little later on; return the port."""
        if port == 0:
            port = _free_port()
        counts: dict[str, int] = {}

        class Pages(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                counts[self.path] = counts.get(self.path, 0) + 1
                answer = page(self.path, counts[self.path])
                if answer is None:
                    self.close_connection = True
                    with suppress(OSError):
                        self.connection.close()
                    return
                status, headers, body = answer
                self.send_response(status)
                for key, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET  # noqa: N815  # the name that the server looks for

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """Let clients give up in peace."""

        def start() -> None:
            server = Server(("127.0.0.1", port), Pages)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.stack.callback(server.server_close)
            self.stack.callback(server.shutdown)

        if after:
            timer = threading.Timer(after, start)
            timer.start()
            self.stack.callback(timer.join)
        else:
            start()
        return port

    def mount(self, name: str, *, size: str = "1m") -> Path:
        """Mount a small file system inside the workspace; only a superuser can."""
        folder = self.work / name
        folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() != 0:
            raise CannotBreak("only a superuser can mount a small file system")
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "unstuck-box", str(folder)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise CannotBreak(f"mounting is refused: {done.stderr.strip()}")
        self.stack.callback(subprocess.run, ["umount", "-l", str(folder)], check=False, capture_output=True)
        return folder

    def read_only(self, name: str) -> Path:
        """Make a folder that nobody can write to, the superuser included."""
        folder = self.work / name
        if os.geteuid() != 0:
            folder.mkdir(parents=True)
            folder.chmod(0o555)
            self.stack.callback(folder.chmod, 0o755)
            return folder
        self.mount(name)
        done = subprocess.run(["mount", "-o", "remount,ro", str(folder)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise CannotBreak(f"mounting read-only is refused: {done.stderr.strip()}")
        return folder


@contextmanager
def open_box(base: Path) -> Iterator[Box]:
    """Make an empty box, and take everything down again."""
    for name in ("work", "home", "outside"):
        (base / name).mkdir(parents=True)
    (base / "outside" / "precious.tmp").write_text("not ours\n")
    (base / "outside" / "notes").mkdir()
    (base / "outside" / "notes" / "diary.md").write_text("not ours either\n")
    with ExitStack() as stack:
        yield Box(base, stack)


def fingerprint(base: Path) -> str:
    """Return what everything outside of the workspace comes to."""
    digest = hashlib.sha256()
    for top in ("outside", "home"):
        for path in sorted((base / top).rglob("*")):
            digest.update(str(path.relative_to(base)).encode(errors="surrogateescape"))
            digest.update(path.read_bytes() if path.is_file() else b"folder")
    return digest.hexdigest()


def tarball(top: str) -> bytes:
    """Return a repository's tarball, as a server would make it."""
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        content = b"# A repository\n"
        member = tarfile.TarInfo(f"{top}/README.md")
        member.size = len(content)
        archive.addfile(member, BytesIO(content))
    return buffer.getvalue()


def _free_port() -> int:
    import socket  # noqa: PLC0415  # only for servers

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
