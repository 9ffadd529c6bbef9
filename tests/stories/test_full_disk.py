"""A disk that is full or read-only: told in words with what to do, and nothing is lost once it can be written again."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.project import Project, make_project

from unstuck.app.inspect import look

if TYPE_CHECKING:
    from tests.fork_server import ForkServer

FILL = "with open('big.tmp', 'wb', 0) as file:\n    for _ in range(2000):\n        file.write(bytes(4096))\n"
"""Eight megabytes: more than there is, and less than there will be."""


@pytest.fixture
def cramped(tmp_path: Path, fork_server: "ForkServer", monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """Make a project that is with all of its slots on a small disk."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    monkeypatch.setenv("XDG_STATE_HOME", str(disk / "state"))
    try:
        made = make_project(disk / "project", fork_server)
        made.file(".gitignore", "*.tmp\n")
        yield made
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def leave_room(project: Project, kilobytes: int) -> Path:
    """Fill the disk up to this."""
    filler, disk = project.root.parent / "filler", os.statvfs(project.root)
    filler.write_bytes(bytes(disk.f_bavail * disk.f_bsize - kilobytes * 1024))
    return filler


def landed(project: Project) -> list[str]:
    return sorted(subject for subject in project.commits() if subject.startswith("Make"))


def sessions(project: Project) -> int:
    tasks = look(project.root).state.tasks.values()
    return sum(attempt.sessions for task in tasks for attempt in task.attempts)


@pytest.mark.parametrize(
    "kilobytes",
    [
        pytest.param(room, marks=() if room in (4, 68, 200, 420) else pytest.mark.exhaustive)
        for room in (0, *range(4, 800, 16), 200)
    ],
)
def test_our_own_writes_may_fail_anywhere(cramped: Project, kilobytes: int) -> None:
    cramped.plan(*((f"1.{number}", f"Make {number}", f"test -f {number}.txt") for number in (1, 2)))
    cramped.script(_1_1=[[{"write": "1.txt"}]], _1_2=[[{"write": "2.txt"}]])
    filler = leave_room(cramped, kilobytes)
    result = cramped.run()
    assert "Traceback" not in result.err, result
    filler.unlink()
    if result.code != 0:
        assert result.code == 1, result
        assert "No space left" in result.err or "disk is full" in result.err or "disk I/O error" in result.err, result
        assert "Hint: Make room" in result.err, result
        result = cramped.unstuck("resume") if "`unstuck resume`" in result.err else cramped.run()
    assert result.code == 0, result
    assert landed(cramped) == ["Make 1", "Make 2"], result
    assert cramped.git("fsck", "--no-dangling") == ""


@pytest.mark.parametrize(
    ("check", "steps"),
    [("python3 fill.py && test -f a.txt", []), ("test -f a.txt", [{"run": "python3 fill.py"}])],
    ids=["check", "session"],
)
def test_a_check_or_a_session_that_fills_the_disk_is_told_and_paid_for_once(
    cramped: Project, check: str, steps: list[dict[str, str]]
) -> None:
    cramped.file("fill.py", FILL)
    cramped.plan(("1.1", "Make a", check), ("1.2", "Make b", "test -f b.txt"))
    cramped.script(_1_1=[[{"write": "a.txt"}, *steps]], _1_2=[[{"write": "b.txt"}]])
    filler = leave_room(cramped, 3000)
    result = cramped.run()
    assert result.code == 1, result
    assert "Traceback" not in result.err, result
    assert "disk is full" in result.err, result
    assert "Hint: Make room" in result.err, result
    assert "`unstuck resume`" in result.err, result
    filler.unlink()
    result = cramped.unstuck("resume")
    assert result.code == 0, result
    assert landed(cramped) == ["Make a", "Make b"], result
    assert sessions(cramped) == 2


@pytest.mark.parametrize("fault", ["full", "read-only"])
def test_a_command_without_a_run_names_itself_as_the_way_on(
    cramped: Project, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = cramped.root.parent / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    cramped.plan(("1.1", "Make a", "test -f a.txt"))
    cramped.plan(("1.1", "Make a", "test -f a.txt"), ("1.1", "Make b", "test -f b.txt"), name="twice.md")
    (cramped.root / "unstuck.toml").unlink()
    if fault == "full":
        leave_room(cramped, 0)
    else:
        subprocess.run(["mount", "-o", "remount,ro", str(cramped.root.parent)], check=True)
    commands = (
        ("init",),
        ("draft", "Make a thing", "-o", "new.md", "--agent", cramped.agent),
        ("plan", "twice.md", "--repair", "--agent", cramped.agent),
        ("install", "claude"),
        ("verify",),
        ("go", "Make a", "--agent", cramped.agent),
        ("run", "tasks.md", "--agent", cramped.agent),
    )
    for command in commands:
        result = cramped.ask(*command)
        assert result.code == 1, (command, result)
        assert "Traceback" not in result.err, (command, result)
        assert "unstuck resume" not in result.err, (command, result)
        assert f"`unstuck {command[0]}`" in result.err or "try again" in result.err, (command, result)
        assert ("Make room" if fault == "full" else "writable") in result.err, (command, result)
