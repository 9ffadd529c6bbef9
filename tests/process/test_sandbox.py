"""What a command in a sandbox of bubblewrap can reach: its slot, its own temporary folder, and nothing of the user's."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from unstuck.model.config import TimeLimits
from unstuck.process.command import Command
from unstuck.process.processes import LocalProcesses
from unstuck.process.sandbox import Sandbox, sandbox_problem

pytestmark = pytest.mark.skipif(bool(sandbox_problem()), reason=sandbox_problem() or "there is a sandbox")

Say = Callable[..., str]


class Never:
    def deadline(self) -> float | None:
        return None


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Make a user's home with credentials, an agent's own folder, a checkout and two slots."""
    made = tmp_path / "home"
    files = {
        ".ssh/id": "key", ".aws/credentials": "key", ".config/gh/hosts.yml": "key", ".config/tool.toml": "x", ".netrc": "key",
        ".agent/login": "mine", "project/a.txt": "a", "project/.git/objects/pack/p": "o", "project/.git/unstuck/journal.db": "j",
        "project/node_modules/m.js": "m", "state/w0/a.txt": "a", "state/w1/a.txt": "other", "notes.txt": "n",
    }  # fmt: skip
    for name, text in files.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    return made


@pytest.fixture
def say(home: Path, tmp_path: Path) -> Say:
    """Return what a shell says in the sandbox of slot w0."""

    def run(script: str, *, offline: bool = False, lasting: bool = False) -> str:
        project = home / "project"
        sandbox = Sandbox(
            purposes=frozenset({"session"}),
            only_named=True,
            offline=frozenset({"session"}) if offline else frozenset(),
            root=project,
            common_dir=project / ".git",
            slots=home / "state",
            linked=(project / "node_modules",),
            write=("more/",),
        )
        command = Command(
            argv=("bash", "-c", f"exec 2>&1; {script}"),
            cwd=home / "state" / "w0",
            log=tmp_path / "log",
            env={"HOME": str(home), "H": str(home), "SSH_AUTH_SOCK": str(tmp_path / "agent")},
            limits=TimeLimits(wall_clock=60),
            writes=(".agent/", ".fresh/", "$NOT_SET"),
            lasting=lasting,
        )
        processes = LocalProcesses(grace=0.2)
        ended = processes.run(sandbox.wrap(command, "session"), stop=Never())
        processes.end_lasting()
        return ended.tail

    return run


THERE = (
    "$H/.config/tool.toml",
    "$H/.agent/login",
    "$H/notes.txt",
    "$H/project/.git/objects/pack/p",
    "$H/project/node_modules/m.js",
    "$H/state/w0/a.txt",
)
NOT_THERE = (
    "$H/.ssh", "$H/.aws", "$H/.netrc", "$H/.config/gh/hosts.yml", "$H/project/a.txt", "$H/project/.git/unstuck",
    "$H/project/.git/config", "$H/state/w1", "$SSH_AUTH_SOCK",
)  # fmt: skip
WRITABLE = ("$H/state/w0/new", "$H/.agent/new", "$H/.fresh/new", "$H/more/new", "$TMPDIR/new", "/tmp/new")
NOT_WRITABLE = (
    "$H/notes.txt", "$H/.config/tool.toml", "$H/project/.git/objects/pack/p", "$H/project/node_modules/m.js", "/etc/new", "/usr/new", "$H/project/new",
    "$H/project/.git/new", "$H/state/new",
)  # fmt: skip


def test_a_sandbox_shows_what_is_needed_and_hides_what_is_the_users(say: Say) -> None:
    script = "".join(f'test -e "{path}" && echo "{path}" there || echo no;' for path in (*THERE, *NOT_THERE))
    lines = say(script).splitlines()
    assert [line.endswith(" there") for line in lines] == [True] * len(THERE) + [False] * len(NOT_THERE), lines


def test_only_the_slot_and_what_is_named_can_be_written(say: Say, home: Path) -> None:
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    script = "".join(f'(echo x > "{path}") && echo yes || echo no;' for path in (*WRITABLE, *NOT_WRITABLE))
    lines = [line for line in say(script).splitlines() if line in ("yes", "no")]
    assert lines == ["yes"] * len(WRITABLE) + ["no"] * len(NOT_WRITABLE)
    after = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    new = sorted(str(path.relative_to(home)) for path in after.keys() - before.keys())
    assert new == [".agent/new", ".fresh/new", "more/new", "state/w0/new"]
    assert {path: after.get(path) for path in before} == before


def test_nothing_outlives_a_sandbox_and_nobody_outside_is_seen(say: Say) -> None:
    told = say(f"env -i setsid sleep 300 & ls -d /proc/[0-9]* | wc -l; kill -9 {os.getpid()}; echo ended")
    assert told.splitlines()[-1] == "ended"
    assert int(told.split()[0]) < 10


def test_what_lasts_stays_in_its_sandbox(say: Say) -> None:
    assert say("sleep 300 & echo > a.txt && test ! -e $H/.ssh && echo fine", lasting=True) == "fine\n"


def test_the_network_is_off_where_that_is_asked_for(say: Say) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = f"(: < /dev/tcp/127.0.0.1/{server.getsockname()[1]}) && echo connected"
        assert say(script) == "connected\n"
        assert "connected" not in say(script, offline=True)
