"""A board that is served for a test, and a browser to look at it."""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True, slots=True)
class Served:
    """A board at work."""

    address: str
    """With the key in it."""
    process: "subprocess.Popen[str]"

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 0

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, *, method: str = "GET", body: Any = None, **headers: str) -> Answer:
        """Send one request as it is said, without any header of a browser's."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        text = json.dumps(body) if body is not None else None
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, text, named)
        got = connection.getresponse()
        answer = Answer(got.status, {name.lower(): value for name, value in got.getheaders()}, got.read().decode())
        connection.close()
        return answer

    def cookie(self) -> str:
        """Open the address that was printed, and return the cookie."""
        parts = urlsplit(self.address)
        return self.ask(f"{parts.path}?{parts.query}").headers["set-cookie"].partition(";")[0]

    def events(self, run: str = "", **headers: str) -> Iterator[tuple[str, str, Any]]:
        """Yield the run and its changes: the name of each event, its id and what it holds."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", f"/api/events?run={run}", headers={"cookie": self.cookie(), **named})
        got = connection.getresponse()
        assert got.status == 200
        fields: dict[str, str] = {}
        try:
            while True:
                line = got.readline().decode().rstrip("\r\n")
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif "data" in fields:
                    if "id" in fields:
                        yield fields["event"], fields["id"], json.loads(fields["data"])
                    fields = {}
        finally:
            got.close()
            connection.close()


@contextmanager
def served(root: Path, *arguments: str) -> Iterator[Served]:
    """Serve the runs of a repository."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "unstuck", "ui", *(arguments or ("--port", "0"))],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    with process:
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found is not None, line + process.stderr.read()
        try:
            yield Served(found[0], process)
        finally:
            process.send_signal(signal.SIGINT)


@contextmanager
def browser() -> Iterator["Browser"]:
    """Open Debian's Chromium; a machine without it skips the test and says so."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("chromium is not installed (Debian: apt install chromium)")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield opened
        opened.close()
