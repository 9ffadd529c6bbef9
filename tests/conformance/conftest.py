"""A project, a scripted model and a real agent between them, driven through real `unstuck` processes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.conformance.agents import AGENTS
from tests.conformance.clis import Cli, pinned
from tests.conformance.scenarios import PATIENCE
from tests.conformance.server import ModelServer

from unstuck.process.leftovers import end_leftovers

SOURCE = Path(__file__).parents[2] / "src"
PROC = Path("/proc")
MARK = "CONFORMANCE_RUN"
"""Inherited by everything that a run starts, so that what is left of it can be found."""
SECONDS = 200
SETTINGS = """\
profile = "quick"

[profiles.quick]
like = "adaptive"

[profiles.quick.limits]
first_wait = 2
longest_wait = 4
reset_margin = 1

[limits]
first_output = 90
silence = {silence}
wall_clock = 150
drain = 5
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One repository with one plan, one agent and one model."""

    root: Path
    cli: Cli
    model: ModelServer
    env: Mapping[str, str]

    def unstuck(self, *arguments: str, seconds: int = SECONDS) -> Told:
        """Run a command to its end."""
        with self.start(*arguments) as process:
            try:
                out, err = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                err += f"\nIt did not end within {seconds} seconds.\n{self.story()}"
        return Told(code=process.returncode, out=out, err=err)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command and leave it running."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "unstuck", *arguments],
            cwd=self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
        )

    def run(self) -> Told:
        """Run the plan with the agent."""
        return self.unstuck(*self._run)

    def start_run(self) -> subprocess.Popen[str]:
        return self.start(*self._run)

    @property
    def _run(self) -> tuple[str, ...]:
        return "run", "tasks.md", "--agent", self.cli.name, "--json"

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the journal's events of a type, oldest first."""
        lines = [json.loads(line)["event"] for line in self.unstuck("log", "--json").out.splitlines()]
        return [event for event in lines if event["type"] == kind]

    def story(self) -> str:
        """Tell what happened, for whoever reads a failed test."""
        log = "\n".join(path.read_text(errors="replace")[-6000:] for path in self.root.glob(".unstuck/logs/task-*.log"))
        return f"{self.unstuck('show', '1.1').out}\n--- the agent\n{log}\n--- the model\n{self.model.answers}"

    def leftovers(self) -> list[str]:
        """Name the processes that a run has left behind."""
        return [" ".join(command) for command in marked(f"{MARK}={self.env[MARK]}")]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Return a function that sets up a site for an agent and a model."""
    made: list[Site] = []

    def make(agent: str, model: ModelServer, *, silence: int = PATIENCE, settings: str = "") -> Site:
        cli = pinned()[agent]
        home = tmp_path / "home"
        home.mkdir()
        root = _repository(tmp_path / "project", SETTINGS.format(silence=silence) + settings)
        env = {**_environment(cli, home), **AGENTS[agent].settle(home, model.url), **_only_loopback(model.url)}
        made.append(Site(root=root, cli=cli, model=model, env=env))
        return made[-1]

    yield make
    for one in made:
        end_leftovers(f"{MARK}={one.env[MARK]}")


def _repository(root: Path, settings: str) -> Path:
    root.mkdir()
    (root / "tasks.md").write_text(
        "# A plan\n\n- [ ] 1.1 Write a greeting\n  - **Verify**: `grep -q hello greeting.txt`\n"
    )
    (root / "unstuck.toml").write_text(settings)
    for command in (["init", "--quiet"], ["add", "-A"], ["commit", "--quiet", "-m", "Start"]):
        subprocess.run(["git", *command], cwd=root, check=True)
    return root


def _environment(cli: Cli, home: Path) -> dict[str, str]:
    """Return what a user's shell would have set, and nothing of the machine's."""
    return {
        "PATH": f"{cli.bin}:{os.environ['PATH']}",
        "HOME": str(home),
        "SHELL": "/bin/bash",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONPATH": str(SOURCE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_GLOBAL": os.environ["GIT_CONFIG_GLOBAL"],
        "GIT_CONFIG_NOSYSTEM": "1",
        MARK: uuid4().hex,
    }


def _only_loopback(url: str) -> dict[str, str]:
    """Send everything that would leave this machine to the model, which refuses it and remembers."""
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), url)
    everything = proxies | {"NO_PROXY": "127.0.0.1,localhost"}
    return everything | {name.lower(): value for name, value in everything.items()}


def marked(marker: str) -> Iterator[list[str]]:
    """Yield the command lines of all processes whose environment holds the marker."""
    for folder in PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            command = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:  # ended while we looked
            continue
        if marker.encode() in environment:
            yield [os.fsdecode(part) for part in command]
