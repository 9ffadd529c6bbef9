"""A user's project with a plan and a scripted agent, driven through real `unstuck` processes."""

import contextlib
import io
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.copies import Files, copied, taken
from tests.fork_server import ForkServer

from unstuck.cli import run_cli
from unstuck.git.repository import find_repository, slots_folder

Step = Mapping[str, Any]
SOURCE = Path(__file__).parents[1] / "src"
LIMITS = "[limits]\nfirst_output = 20\nsilence = 20\nwall_clock = 40\ndrain = 5\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The object that stdout consists of."""
        return json.loads(self.out)

    def __str__(self) -> str:
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


@dataclass(frozen=True, slots=True)
class Project:
    """A repository of a user's."""

    root: Path
    fork_server: ForkServer = field(repr=False)

    @property
    def home(self) -> Path:
        return self.root / ".unstuck"

    @property
    def store(self) -> Path:
        return self.root / ".git" / "unstuck"

    @property
    def slots(self) -> list[Path]:
        return sorted(path for path in slots_folder(find_repository(self.root)).glob("w*") if path.is_dir())

    @property
    def agent(self) -> str:
        """The scripted agent, as an argument of `--agent`."""
        return f"scripted:{self.root.parent / 'agent.json'}"

    def plan(self, *tasks: tuple[str, str, str], name: str = "tasks.md", commit: bool = True) -> Path:
        """Write a plan of (id and markers, title, check) and commit it."""
        blocks = [
            f"- [ ] {head} {title}\n" + (f"  - **Verify**: `{check}`\n" if check else "")
            for head, title, check in tasks
        ]
        return self.file(name, "# A plan\n\n" + "\n".join(blocks), commit=commit)

    def script(self, **tasks: Sequence[Sequence[Step] | Mapping[str, Sequence[Sequence[Step]]]]) -> None:
        """Write what the agent does: for each task (`_1_2` is 1.2) its attempts, each a list of steps, or its sessions."""
        parts = {
            name.removeprefix("_").replace("_", "."): [
                steps if isinstance(steps, Mapping) else {"steps": steps} for steps in attempts
            ]
            for name, attempts in tasks.items()
        }
        (self.root.parent / "agent.json").write_text(json.dumps({"task": parts}))

    def settings(self, text: str) -> None:
        """Commit an unstuck.toml."""
        self.file("unstuck.toml", text)

    def file(self, name: str, text: str, *, commit: bool = True) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if commit:
            self.git("add", "--", name)
            self.git("commit", "--quiet", "-m", f"Write {name}")
        return path

    def git(self, *arguments: str) -> str:
        return git(self.root, *arguments)

    def commits(self, revisions: str = "HEAD") -> list[str]:
        """List subjects, newest first."""
        return self.git("log", "--format=%s", revisions).splitlines()

    def ask(self, *arguments: str, cwd: Path | None = None) -> CommandResult:
        """Run a command in this process: the same code as `unstuck`, without the time that Python takes to start."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.chdir(cwd or self.root), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run_cli(arguments)
        return CommandResult(code=code, out=out.getvalue(), err=err.getvalue())

    def unstuck(self, *arguments: str, cwd: Path | None = None, **env: str) -> CommandResult:
        """Run a command to its end, in a process of its own that has loaded its modules before."""
        done = self.fork_server.run(arguments, cwd=cwd or self.root, env={**os.environ, **env})
        return CommandResult(code=done.returncode, out=done.stdout, err=done.stderr)

    def start(self, *arguments: str, cwd: Path | None = None, **env: str) -> subprocess.Popen[str]:
        """Start a command as a shell does, and leave it running."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "unstuck", *arguments],
            cwd=cwd or self.root,
            env=os.environ | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="surrogateescape",
        )

    def run(self, *arguments: str, plan: str = "tasks.md", **env: str) -> CommandResult:
        """Run the plan with the scripted agent."""
        return self.unstuck("run", plan, "--agent", self.agent, *arguments, cwd=self.root, **env)

    def status(self) -> dict[str, str]:
        """Return where every task stands."""
        return {name: task["status"] for name, task in self.ask("status", "--json").json["tasks"].items()}

    def stored_bytes(self) -> Iterator[tuple[Path, bytes]]:
        """Yield every file of ours, slots aside."""
        for path in (path for folder in (self.home, self.store) for path in folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield path, path.read_bytes()


@pytest.fixture(autouse=True)
def outside_of_any_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tests themselves be run by an agent of ours, and print the same everywhere."""
    for name in [name for name in os.environ if name.startswith("UNSTUCK_")] + ["NO_COLOR", "FORCE_COLOR", "COLUMNS"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # of our checks: they need none of what we develop with


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    opened = ForkServer()
    yield opened
    opened.close()


@pytest.fixture
def project(tmp_path: Path, fork_server: ForkServer) -> Project:
    """Make a repository with one commit on `main`, short limits, and an agent that does nothing."""
    return make_project(tmp_path / "project", fork_server)


@pytest.fixture(scope="module")
def half_done(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Project:
    """Run a plan whose second task gets stuck. Made once: look at it, change nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.setenv("PYTHONPATH", str(SOURCE))
        patch.delenv("UNSTUCK_RUN", raising=False)
        made = make_project(tmp_path_factory.mktemp("half-done") / "project", fork_server)
        made.plan(("1.1", "Make a", "test -f a.txt"), ("1.2", "Make b", "grep -q right b.txt"))
        made.script(_1_1=[[{"write": "a.txt"}]], _1_2=[[{"write": "b.txt", "text": "wrong\n"}]])
        result = made.run("--max-attempts", "1")
    assert result.code == 3, result
    return made


def make_project(root: Path, fork_server: ForkServer) -> Project:
    made = Project(root, fork_server)
    copied(_first_commit(), root)
    made.script()
    return made


@cache
def _first_commit() -> Files:
    """Make the repository that every project begins with; hundreds of tests begin with a copy."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        git(root, "init", "--quiet", "-b", "main")
        git(root, "config", "user.name", "Ada")
        git(root, "config", "user.email", "ada@example.org")
        (root / "readme.txt").write_text("a project\n")
        (root / ".gitignore").write_text("*.log\nnode_modules/\n.venv/\n__pycache__/\n")
        (root / "unstuck.toml").write_text(LIMITS)
        git(root, "add", "-A")
        git(root, "commit", "--quiet", "-m", "Start")
        return taken(root)


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)
    assert done.returncode == 0, f"git {shlex.join(arguments)}: {os.fsdecode(done.stderr)}"
    return os.fsdecode(done.stdout).rstrip("\n")
