"""What a person sees while a run works: a board on a terminal, plain lines elsewhere."""

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.project import Project

CODES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")
LONG = "A title that goes on and on until no terminal of an ordinary width could ever show it in one line"


@pytest.fixture
def busy(project: "Project") -> "Project":
    """Make a plan whose first task is done at once and whose second one takes for ever."""
    project.plan(
        ("1.1", "Make a", "test -f a.txt"), ("1.2", f"{LONG} 漢字", "test -f b.txt"), ("1.3", "Make c", "false")
    )
    project.script(
        _1_1=[[{"write": "a.txt"}]],
        _1_2=[[{"print": "\x1b[31mReading\x1b[0m the parser\x1b[2J"}, {"hang": True}]],
    )
    return project


def test_the_board_shows_tasks_a_bar_and_what_the_agent_last_did(busy: "Project", tmp_path: Path) -> None:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    with Screen.open(busy, tmp_path, columns=80, rows=20) as screen:
        shown = screen.wait_for("Reading the parser")
        lines = shown.splitlines()
        bar = next(line for line in lines if line.startswith("━"))
        assert "1/3" in bar
        assert any(re.match(r"✔ 1\.1 Make a +landed #1", line) for line in lines), shown
        row = next(at for at, line in enumerate(lines) if re.match(r"▶ 1\.2 A title.*… running #1 +\d+\.\d s", line))
        assert LONG[:50] in lines[row], "a title keeps what room there is"
        assert re.match(r" {6}scripted\S+ · Reading the parser", lines[row + 1]), shown
        assert re.search(r"run \S+ of tasks\.md", shown), shown
        assert any(re.match(r"· 1\.3 Make c +pending", line) for line in lines), shown
        assert "1.1: landed as" in shown
        assert all(len(line) <= 80 for line in lines)
        screen.press("C-c")
        screen.wait_for("nothing new starts")
        screen.press("C-c")
        ended = screen.wait_for("Go on with: unstuck resume")
        assert "━" not in ended, "the board goes away, the summary stays"
        assert re.search(r"‖ 1\.2  A title[^\n]*\n +interrupted, 1 attempt", ended), ended


@pytest.mark.parametrize(("columns", "rows"), [(30, 8), (60, 10)], ids=["tiny", "small"])
def test_a_small_terminal_gets_what_fits(busy: "Project", tmp_path: Path, columns: int, rows: int) -> None:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    with Screen.open(busy, tmp_path, columns=columns, rows=rows) as screen:
        lines = screen.wait_for("▶ 1.2 ").splitlines()
        (running,) = [line for line in lines if line.startswith("▶ 1.2 ")]
        assert len(running) <= columns
        assert any(line.startswith("━") for line in lines)
        screen.press("C-c")
        screen.press("C-c")


def test_a_board_of_a_thousand_tasks_shows_what_runs_and_counts_the_rest(project: "Project") -> None:
    project.plan(*((f"1.{number}", f"Task {number}", "test -f b.txt") for number in range(1, 1001)))
    project.script(_1_1=[[{"write": "b.txt"}]], _1_2=[[{"print": "thinking hard"}, {"hang": True}]])
    shown = on_terminal(project, until="thinking hard")
    assert "1/1000" in shown
    assert "… and " in shown
    assert "1.999" not in shown


def test_a_terminal_without_utf_8_gets_plain_signs(project: "Project") -> None:
    project.plan(("1.1", "Make a → b… 漢", "test -f a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]])
    with project.start("run", "tasks.md", "--agent", project.agent, PYTHONIOENCODING="latin-1") as process:
        result, _ = process.communicate(timeout=90)
    assert process.returncode == 0
    assert "+ 1.1  Make a -> b... \\u6f22  landed" in result
    project.script(_1_1=[[{"print": "hm"}, {"hang": True}]])
    assert project.unstuck("reset", "1.1").code == 0
    shown = on_terminal(project, "resume", until="hm", PYTHONIOENCODING="latin-1")
    assert "> 1.1 Make a -> b" in shown


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"NO_COLOR": "1", "TERM": "dumb"}], ids=["dumb", "no colour"])
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(busy: "Project", env: dict[str, str]) -> None:
    shown = on_terminal(busy, until="1.2: attempt 1", plain=True, **env)
    assert "\x1b[" not in shown


def test_without_a_terminal_progress_is_plain_lines_on_stderr(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[], [{"write": "a.txt"}]])
    result = project.run()
    assert result.code == 0, result
    assert "\x1b" not in result.out + result.err
    lines = result.err.splitlines()
    assert all(re.match(r"\d\d:\d\d:\d\d +\d+  \S", line) for line in lines), result.err
    assert [line for line in lines if "1.1: check_failed: A check fails: `test -f a.txt`" in line]
    assert [line for line in lines if "1.1: landed as " in line]
    assert "landed as" not in result.out
    assert result.out.startswith("Run ")


def test_a_board_attaches_to_a_run_and_tells_the_story_of_a_task_on_enter(half_done: "Project", tmp_path: Path) -> None:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    with Screen.open(half_done, tmp_path, "board", columns=90, rows=24) as screen:
        shown = screen.wait_for("enter its story")
        assert re.search(r"✔ 1\.1 Make a +landed #1", shown), shown
        assert re.search(r"✘ 1\.2 Make b +stuck #1", shown), shown
        screen.press("Enter")
        assert "fails: grep -q right b.txt" in screen.wait_for("Task 1.2: Make b (stuck)")
        screen.press("Escape")
        screen.wait_for("enter its story")
        screen.press("Up", "Enter")  # in one go, as a busy machine reads them
        screen.wait_for("Task 1.1: Make a (landed)")
        screen.press("q")
        screen.wait_for("What needs you:")


def test_a_board_without_a_terminal_is_lines_and_the_summary(half_done: "Project") -> None:
    result = half_done.ask("board")
    assert result.code == 0, result
    assert "1.1: landed as " in result.err
    assert "1 landed, 1 stuck of 2 tasks" in result.out
    assert half_done.ask("board", "--run", "nonsense").code == 64


def test_quiet_says_nothing_while_it_works(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]])
    result = project.run("--quiet")
    assert (result.code, result.err) == (0, "")
    assert "1 landed of 1 task " in result.out


# --- terminals ------------------------------------------------------------------------------------------


class Screen:
    """A terminal of tmux: what it shows is what a person would see."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    @classmethod
    @contextmanager
    def open(cls, project: "Project", folder: Path, *arguments: str, columns: int, rows: int) -> Iterator["Screen"]:
        screen = cls(folder / "tmux")
        asked = arguments or ("run", "tasks.md", "--agent", project.agent)
        command = [sys.executable, "-P", "-m", "unstuck", *asked]
        screen._tmux(
            "-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(project.root),
            *command, ";", "set-option", "remain-on-exit", "on",
        )  # fmt: skip
        try:
            yield screen
        finally:
            screen._tmux("kill-server")

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def wait_for(self, text: str) -> str:
        """Wait until the screen shows the text; return the whole screen."""
        wait_until(lambda: text in self._shown(), f"{text!r} on the screen", pause=0.05)
        return self._shown()

    def _shown(self) -> str:
        return self._tmux("capture-pane", "-p")

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), *arguments]
        env = os.environ  # without COLUMNS and LINES, which readline sets past Python as soon as pytest loads it
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


def on_terminal(project: "Project", *arguments: str, until: str, plain: bool = False, **env: str) -> str:
    """Run a command (the plan, if none is given) on a terminal of its own until a text appears; return what it wrote."""
    command = arguments or ("run", "tasks.md", "--agent", project.agent)
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "unstuck", *command],
        cwd=project.root,
        env=os.environ | {"TERM": "xterm"} | env,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    shown = ""
    deadline = time.monotonic() + 30
    try:
        while until not in CODES.sub("", shown):
            ready, _, _ = select.select([leader], [], [], max(deadline - time.monotonic(), 0))
            assert ready, f"{until!r} did not appear: {shown}"
            shown += os.read(leader, 65536).decode(errors="replace")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(leader)
    return shown if plain else CODES.sub("", shown)
