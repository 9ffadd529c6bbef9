"""Measure what being watched costs a run: one run, in which blocks of tasks are watched by many pages and others by none."""

import json
import os
import re
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.report import BenchBroken, Report, Target
from unstuck.app.inspect import Follower
from unstuck.model.event import Acted, AttemptStarted

CLIENTS, TASKS, BLOCK, SECONDS = 50, 48, 6, 0.4
RATIO = 1.05
PATIENCE = 600.0


def measure(
    *, clients: int = CLIENTS, tasks: int = TASKS, seconds: float = SECONDS, say: Callable[[str], None] = print
) -> Report:
    """Run tasks one after the other; compare those during which pages listened with those during which none did."""
    say(f"Running {tasks} tasks of {seconds:g} s; every other block of {BLOCK} is watched by {clients} pages ...")
    with tempfile.TemporaryDirectory(prefix="unstuck-bench-") as scratch:
        root = Path(scratch) / "project"
        _make(root, tasks, seconds)
        with _served(root) as address, _listening(address, clients) as crowd:
            times = _timed(root, tasks, crowd)
            heard = crowd.heard
    if not heard or min(heard) == 0:
        raise BenchBroken("A page heard nothing while tasks landed.", hint="See whether `unstuck ui` works here.")
    alone, watched = (statistics.median(times[one]) for one in (False, True))
    lines = (
        f"  {clients} pages, {sum(heard)} events heard",
        f"  {1000 * alone:7.0f} ms  a task that nobody watches, the middle of {len(times[False])}",
        f"  {1000 * watched:7.0f} ms  a task that all of them watch, the middle of {len(times[True])}",
    )
    return Report(
        figures={"clients": clients, "alone_s": alone, "watched_s": watched, "events": sum(heard)},
        lines=lines,
        targets=(Target(name="watched / alone", value=watched / alone, at_most=RATIO),),
    )


def _timed(root: Path, tasks: int, crowd: "Crowd") -> dict[bool, list[float]]:
    """Start the run, let the crowd come and go with its blocks, and return how long the tasks took, watched or not."""
    agent = f"scripted:{root.parent / 'agent.json'}"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("UNSTUCK_")}
    command = [sys.executable, "-P", "-m", "unstuck", "run", "tasks.md", "--agent", agent, "--quiet"]
    began: dict[str, float] = {}
    times: dict[bool, list[float]] = {False: [], True: []}
    with subprocess.Popen(command, cwd=root, env=inherited, stdout=subprocess.PIPE, text=True) as run:
        follower, seen, place = Follower(root), 0, 0
        deadline = time.monotonic() + PATIENCE
        while place < tasks and time.monotonic() < deadline and (run.poll() is None or place):
            for entry in follower.news(follower.runs()[-1], seen) if follower.runs() else ():
                seen = entry.seq
                if isinstance(entry.event, AttemptStarted):
                    began[entry.event.task] = entry.at
                elif isinstance(entry.event, Acted):
                    block, at = divmod(place, BLOCK)
                    if at:  # during the first of a block the crowd is still coming or going
                        times[bool(block % 2)].append(entry.at - began[entry.event.task])
                    place += 1
                    crowd.listen(wanted=bool(place // BLOCK % 2))
            time.sleep(0.02)
        follower.close()
        run.communicate(timeout=60)
    if run.returncode != 0 or place < tasks:
        raise BenchBroken(f"{place} of {tasks} tasks landed.", hint="See whether `unstuck demo` works here.")
    return times


def _make(root: Path, tasks: int, seconds: float) -> None:
    names = [f"1.{number}" for number in range(1, tasks + 1)]
    plan = "".join(f"- [ ] {name} Write {name}\n  - **Verify**: `test -f f{name}.txt`\n" for name in names)
    root.mkdir()
    (root / "tasks.md").write_text(f"# Bench\n\n{plan}", encoding="utf-8")
    steps = {name: [{"steps": [{"sleep": seconds}, {"write": f"f{name}.txt", "text": name}]}] for name in names}
    (root.parent / "agent.json").write_text(json.dumps({"task": steps}), encoding="utf-8")
    for arguments in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "tasks.md"),
        ("-c", "user.name=Bench", "-c", "user.email=bench@localhost", "commit", "--quiet", "-m", "Start"),
    ):
        subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)


@contextmanager
def _served(root: Path) -> Iterator[str]:
    command = [sys.executable, "-P", "-m", "unstuck", "ui", "--port", "0"]
    with subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True) as board:
        assert board.stderr is not None
        found = re.search(r"http://\S+", board.stderr.readline())
        if found is None:
            raise BenchBroken("The board did not start.", hint="Install it: pip install 'unstuck[ui]'")
        try:
            yield found[0]
        finally:
            board.send_signal(signal.SIGINT)


@dataclass
class Crowd:
    """Pages that listen to the stream while they are wanted."""

    address: str
    size: int
    heard: list[int] = field(default_factory=list)
    _wanted: bool = False
    _left: bool = False

    def listen(self, *, wanted: bool) -> None:
        self._wanted = wanted

    def leave(self) -> None:
        self._left = True

    def work(self) -> None:
        """Connect and disconnect as wanted, and count the events that each page hears."""
        with selectors.DefaultSelector() as selector:
            self.heard = [0] * self.size
            cookie = self._cookie()
            while not self._left:
                connected = selector.get_map()
                if self._wanted and not connected:
                    for number in range(self.size):
                        selector.register(self._connected(cookie), selectors.EVENT_READ, number)
                elif not self._wanted and connected:
                    self._disconnect(selector)
                for key, _ in selector.select(0.05) if selector.get_map() else ():
                    assert isinstance(key.fileobj, socket.socket)
                    self.heard[key.data] += key.fileobj.recv(1 << 16).count(b"id: ")
                if not self._wanted:
                    time.sleep(0.05)
            self._disconnect(selector)

    def _disconnect(self, selector: selectors.BaseSelector) -> None:
        for key in list(selector.get_map().values()):
            selector.unregister(key.fileobj)
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()

    def _cookie(self) -> str:
        parts = urlsplit(self.address)
        with self._asked(f"{parts.path}?{parts.query}", "connection: close") as page:
            answer = b"".join(iter(lambda: page.recv(1 << 16), b"")).decode()
        return str(re.findall(r"(?i)set-cookie: ([^;]+)", answer)[0])

    def _connected(self, cookie: str) -> socket.socket:
        return self._asked("/api/events", f"cookie: {cookie}")

    def _asked(self, path: str, header: str) -> socket.socket:
        parts = urlsplit(self.address)
        page = socket.create_connection((parts.hostname or "", parts.port or 0))
        page.sendall(f"GET {path} HTTP/1.1\r\nhost: {parts.netloc}\r\n{header}\r\n\r\n".encode())
        return page


@contextmanager
def _listening(address: str, clients: int) -> Iterator[Crowd]:
    crowd = Crowd(address, clients)
    thread = threading.Thread(target=crowd.work)
    thread.start()
    try:
        yield crowd
    finally:
        crowd.leave()
        thread.join()
