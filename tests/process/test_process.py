"""Real processes, good and bad, leave nothing behind, and how they ended is told as it was."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.waiting import wait_until

import unstuck
from unstuck.model.config import TimeLimits
from unstuck.model.outcome import Ended
from unstuck.process.command import Command
from unstuck.process.leftovers import RUNNING_SHIMS
from unstuck.process.processes import LocalProcesses

SOURCE = str(Path(unstuck.__file__).parents[1])
TOKEN = "ghp_" + "a1B2c3D4e5" * 4
SOON = 20.0

ESCAPE = """
import os, signal, sys, time
pid_file, then = sys.argv[1:]
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        with open(pid_file + ".new", "w") as file:
            file.write(str(os.getpid()))
        os.rename(pid_file + ".new", pid_file)
        os.execve("/bin/sleep", ["sleep", "300"], {})
    os._exit(0)
os.wait()
while not os.path.exists(pid_file):
    time.sleep(0.005)
print("escaped", flush=True)
if then == "stay":
    time.sleep(300)
"""
"""Starts a process that forked twice, has its own session, ignores SIGTERM and wiped its environment."""

FORK_BOMB = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("started", flush=True)
for _ in range(16):
    if os.fork() == 0:
        for _ in range(500):
            if os.fork() != 0:
                os._exit(0)
            os.setsid()
        os._exit(0)
time.sleep(300)
"""
"""Sixteen lines of processes: each opens a session, starts the next process and ends.

The lines are finite. Endless ones once used up all process ids of a busy machine.
"""


@dataclass
class StopAt:
    at: float | None = None

    def deadline(self) -> float | None:
        return self.at


def run(
    tmp_path: Path,
    *argv: str,
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
    limits: TimeLimits = TimeLimits(wall_clock=60),  # noqa: B008 - frozen
    stop: StopAt | None = None,
    seen: Callable[[str], None] | None = None,
    log: Path | None = None,
) -> Ended:
    command = Command(argv=argv, cwd=tmp_path, log=log or tmp_path / "log", stdin=stdin, env=env or {}, limits=limits)
    return LocalProcesses(grace=0.2).run(command, stop=stop or StopAt(), seen=seen)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


# --- how it ended ------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 3, 255])
def test_the_exit_code_is_told(tmp_path: Path, code: int) -> None:
    ended = run(tmp_path, "sh", "-c", f"echo out; echo err >&2; exit {code}")
    assert (ended.ending, ended.exit_code, ended.signal, ended.output_bytes) == ("exited", code, None, 8)
    assert sorted(ended.tail.splitlines()) == ["err", "out"]
    assert sorted((tmp_path / "log").read_text().splitlines()) == ["err", "out"]
    assert ended.ok == (code == 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV], ids=lambda number: number.name)
def test_a_signal_is_told(tmp_path: Path, number: int) -> None:
    ended = run(tmp_path, "sh", "-c", f"kill -{int(number)} $$")
    assert (ended.ending, ended.exit_code, ended.signal) == ("signalled", None, number)


@pytest.mark.parametrize(
    ("script", "limits", "ending"),
    [
        pytest.param("sleep 300", TimeLimits(first_output=0.3, silence=300), "first_output", id="first output"),
        pytest.param("echo hi; sleep 300", TimeLimits(first_output=300, silence=0.3), "silence", id="silence"),
        pytest.param("sleep 300", TimeLimits(silence=0.3), "silence", id="silent from the start"),
        pytest.param("yes", TimeLimits(silence=300, wall_clock=0.4), "wall_clock", id="wall clock"),
        pytest.param(
            "trap '' TERM; sleep 300; sleep 300", TimeLimits(wall_clock=0.3), "wall_clock", id="ignores SIGTERM"
        ),
        pytest.param("kill -STOP $$", TimeLimits(wall_clock=0.3), "wall_clock", id="stopped itself"),
        pytest.param("kill -STOP $PPID; sleep 300", TimeLimits(wall_clock=0.3), "wall_clock", id="stopped the shim"),
        pytest.param(
            "trap 'exit 0' TERM; sleep 300 & wait", TimeLimits(wall_clock=0.3), "wall_clock", id="exits when asked"
        ),
    ],
)
def test_a_limit_ends_the_command(tmp_path: Path, script: str, limits: TimeLimits, ending: str) -> None:
    """The other limits of a row are further off than the time that a test may take."""
    ended = run(tmp_path, "sh", "-c", script, limits=limits)
    assert (ended.ending, ended.exit_code, ended.signal) == (ending, None, None)
    assert ended.seconds >= 0.3


def test_processes_are_asked_before_they_are_killed(tmp_path: Path) -> None:
    script = "(trap 'echo child; exit' TERM; while :; do sleep 0.01; done) & trap 'echo parent; exit' TERM; wait"
    ended = run(tmp_path, "sh", "-c", script, limits=TimeLimits(wall_clock=0.5))
    assert {"child", "parent"} <= set(ended.tail.splitlines())


def test_a_command_that_ends_by_itself_keeps_its_exit_code_while_its_leftovers_run_into_the_limit(
    tmp_path: Path,
) -> None:
    command = Command(
        argv=("sh", "-c", "trap '' TERM; sleep 86400 & exit 7"),
        cwd=tmp_path,
        log=tmp_path / "log",
        limits=TimeLimits(wall_clock=1.0),
    )
    endless = 86400.0
    ended = LocalProcesses(grace=endless).run(command, stop=StopAt())
    assert (ended.ending, ended.exit_code) == ("exited", 7)


def test_a_stop_that_comes_while_the_command_runs_ends_it(tmp_path: Path) -> None:
    stop = StopAt()

    def seen(line: str) -> None:
        assert line == "ready"
        stop.at = time.monotonic()

    ended = run(tmp_path, "sh", "-c", "echo ready; exec sleep 300", stop=stop, seen=seen)
    assert ended.ending == "stopped"


def test_a_deadline_that_is_not_reached_changes_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, "true", stop=StopAt(time.monotonic() + 100)).ok


@pytest.mark.parametrize(
    ("argv", "code", "reason"),
    [
        pytest.param(
            ("no-such-program",), 127, "Could not start 'no-such-program': No such file or directory.", id="missing"
        ),
        pytest.param(("./plain",), 126, "Could not start './plain': Permission denied.", id="not executable"),
        pytest.param(("true", "x" * 3_000_000), 126, "Could not start 'true': Argument list too long.", id="too long"),
        pytest.param((), 126, "Could not start '': it is empty.", id="nothing"),
        pytest.param(("a\0b",), 126, "an argument or variable holds a zero byte", id="zero byte"),
    ],
)
def test_a_command_that_cannot_start_says_why(tmp_path: Path, argv: tuple[str, ...], code: int, reason: str) -> None:
    (tmp_path / "plain").touch(mode=0o644)
    ended = run(tmp_path, *argv)
    assert (ended.ending, ended.exit_code) == ("not_started", code)
    assert reason in ended.tail


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    ended = run(tmp_path / "gone", "true", log=tmp_path / "log")
    assert (ended.ending, ended.exit_code) == ("not_started", 127)
    assert ended.tail == f"Could not start 'true': No such file or directory: {tmp_path}/gone."


# --- what it gets ------------------------------------------------------------------------------------


def test_the_brief_arrives_byte_for_byte(tmp_path: Path) -> None:
    brief = os.urandom(5_000_000)
    assert run(tmp_path, "sh", "-c", "cat > brief", stdin=brief).ok
    assert (tmp_path / "brief").read_bytes() == brief


def test_a_long_brief_that_nobody_reads_blocks_nobody(tmp_path: Path) -> None:
    assert run(tmp_path, "true", stdin=b"x" * 5_000_000).ok


def test_without_a_brief_there_is_nothing_to_read(tmp_path: Path) -> None:
    assert run(tmp_path, "cat").output_bytes == 0


def test_arguments_and_environment_arrive_as_they_are(tmp_path: Path) -> None:
    script = 'test "$1" = "$(printf "\\377\\nx")" && test ${#2} = 100000 && test -z "$3" && test "$#$MINE" = "3a=b"'
    env = {"MINE": "a=b", "LC_ALL": "C"}
    assert run(tmp_path, "sh", "-c", script, "sh", "\udcff\nx", "x" * 100_000, "", env=env).ok


def test_the_command_inherits_no_descriptors_no_signals_and_no_session_of_ours(tmp_path: Path) -> None:
    code = (
        "import os; print(sorted(os.listdir('/proc/self/fd'), key=int)); print(os.getsid(0) == os.getpid());"
        "print([line.split()[1] for line in open('/proc/self/status') if line.startswith(('SigBlk', 'SigIgn'))]);"
        "print('UNSTUCK_SHIM' in os.environ)"
    )
    ended = run(
        tmp_path, "sh", "-c", f'ls /proc/self/fd | wc -l; exec {sys.executable} -c "{code}"', env={"UNSTUCK_SHIM": "1"}
    )
    # Python itself ignores SIGPIPE and SIGXFSZ, and so may whoever started the tests; listing takes a descriptor.
    plain = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert ended.tail.splitlines() == [
        "4",
        "['0', '1', '2', '3']",
        "True",
        plain[2],
        "False",
    ]


def test_the_program_is_looked_for_in_its_own_path(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\necho mine\n")
    (tmp_path / "tool").chmod(0o755)
    assert run(tmp_path, "tool", env={"PATH": str(tmp_path)}).tail == "mine\n"


# --- what is left ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("then", "ending"),
    [pytest.param("leave", "exited", id="normal end"), pytest.param("stay", "wall_clock", id="limit")],
)
def test_a_double_forked_child_is_gone_when_run_returns(tmp_path: Path, then: str, ending: str) -> None:
    limits = TimeLimits(wall_clock=60 if then == "leave" else 1.5)
    ended = run(tmp_path, sys.executable, "-c", ESCAPE, str(tmp_path / "pid"), then, limits=limits)
    assert (ended.ending, ended.tail) == (ending, "escaped\n")
    assert not alive(int((tmp_path / "pid").read_text()))


def test_everything_is_gone_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    supervisor = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
        "from unstuck.process.processes import LocalProcesses; from unstuck.process.command import Command\n"
        "class Never:\n    def deadline(self): return None\n"
        "LocalProcesses(grace=0.2).run(Command(argv=tuple(sys.argv[3:]), cwd=Path(sys.argv[2]),"
        " log=Path(sys.argv[2], 'log')), stop=Never())"
    )
    agent = [sys.executable, "-c", ESCAPE, str(tmp_path / "pid"), "stay"]
    with subprocess.Popen([sys.executable, "-c", supervisor, SOURCE, str(tmp_path), *agent]) as process:
        wait_until((tmp_path / "pid").exists)
        process.kill()
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not alive(pid))
    assert not alive(pid)


def test_a_stopped_descendant_is_gone_too(tmp_path: Path) -> None:
    script = "sh -c 'echo $$ > pid; kill -STOP $$' & until test -s pid; do :; done; cat pid"
    pid = int(run(tmp_path, "sh", "-c", script).tail)
    assert not alive(pid)


def test_processes_that_start_new_ones_all_the_time_come_to_an_end(tmp_path: Path) -> None:
    marker = f"UNSTUCK_RUN=bomb-{os.getpid()}"
    limits = TimeLimits(wall_clock=0.5)
    ended = run(tmp_path, sys.executable, "-c", FORK_BOMB, env={"UNSTUCK_RUN": f"bomb-{os.getpid()}"}, limits=limits)
    assert (ended.ending, ended.tail) == ("wall_clock", "started\n")
    assert LocalProcesses().end_leftovers(marker) == 0


@pytest.mark.parametrize("clean", [True, False], ids=["environment wiped", "environment kept"])
def test_run_returns_when_the_shim_is_killed(tmp_path: Path, clean: bool) -> None:
    wipe = "env -i " if clean else ""
    ended = run(
        tmp_path,
        "sh",
        "-c",
        f"{wipe}sh -c 'echo $$ > pid; exec sleep 8' & until test -s pid; do :; done; kill -9 $PPID; wait",
    )
    assert (ended.ending, ended.signal) == ("signalled", 9)
    assert not alive(int((tmp_path / "pid").read_text()))


STOPS = {
    "once, then it ends": ("kill -STOP $PPID", "exited"),
    "once, and a child stays": ("sh -c 'sleep 300' & kill -STOP $PPID", "exited"),
    "again and again": ("while :; do kill -STOP $PPID; done", "signalled"),
    "again and again, from elsewhere": (
        "env -i setsid sh -c 'while :; do kill -STOP $0; done' $PPID & wait",
        "signalled",
    ),
    "and then kills it": ("env -i setsid sleep 300 & kill -STOP $PPID; kill -9 $PPID; sleep 300", "signalled"),
}


@pytest.mark.parametrize("name", STOPS)
def test_a_shim_that_is_stopped_holds_nobody_up(tmp_path: Path, name: str) -> None:
    script, ending = STOPS[name]
    ended = run(tmp_path, "sh", "-c", script, limits=TimeLimits())
    assert ended.ending == ending
    working = [place for place in Path("/proc").glob("[0-9]*") if works_in(place, tmp_path)]
    assert working == []


def works_in(place: Path, folder: Path) -> bool:
    try:
        return (place / "cwd").readlink() == folder and alive(int(place.name))
    except OSError:
        return False


def test_what_a_foreign_daemon_was_asked_to_do_is_told(tmp_path: Path) -> None:
    """The tests stand in for the daemon: what they start is below them, and not below the supervisor that looks."""
    look = (
        "import sys; from pathlib import Path; from unstuck.process.processes import LocalProcesses\n"
        "print(*LocalProcesses().unrelated_processes(Path(sys.argv[1]), 0.0))"
    )
    with subprocess.Popen(["sleep", "300"], cwd=tmp_path) as asked:
        told = subprocess.run(
            [sys.executable, "-c", look, str(tmp_path)],
            env=os.environ | {"PYTHONPATH": SOURCE},
            capture_output=True,
            text=True,
            check=True,
        )
        assert alive(asked.pid)
        asked.kill()
    assert f"Process {asked.pid} (sleep 300) works in the slot" in told.stdout


def test_an_error_on_our_side_leaves_nothing_either(tmp_path: Path) -> None:
    def seen(line: str) -> None:
        raise RuntimeError(line)

    with pytest.raises(RuntimeError, match=r"\d+"):
        run(tmp_path, "sh", "-c", "echo $$ > pid; cat pid; exec sleep 300", seen=seen)
    assert not alive(int((tmp_path / "pid").read_text()))


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    run(tmp_path, "true", stdin=b"x" * 5_000_000)
    run(tmp_path, "no-such-program")
    run(tmp_path, "sleep", "300", limits=TimeLimits(wall_clock=0.1))
    run(tmp_path, "sh", "-c", "kill -9 $PPID")
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_leftovers_are_found_by_the_exact_entry_in_their_environment(tmp_path: Path) -> None:
    mark = f"{os.getpid()}-{tmp_path.name}"
    ours = [subprocess.Popen(["sleep", "300"], env={"UNSTUCK_RUN": mark}, start_new_session=True) for _ in range(3)]
    other = subprocess.Popen(["sleep", "300"], env={"UNSTUCK_RUN": mark + "0", "X": f"UNSTUCK_RUN={mark}"})
    try:
        wait_until(lambda: all(b"sleep" in Path(f"/proc/{one.pid}/cmdline").read_bytes() for one in (*ours, other)))
        assert LocalProcesses().end_leftovers(f"UNSTUCK_RUN={mark}") == 3
        assert not any(alive(one.pid) for one in ours)
        assert alive(other.pid)
        assert LocalProcesses().end_leftovers(f"UNSTUCK_RUN={mark}") == 0
    finally:
        for one in (*ours, other):
            one.kill()
            one.wait()


def test_a_shim_that_is_still_at_work_may_finish(tmp_path: Path) -> None:
    mark = f"{os.getpid()}-{tmp_path.name}"
    with subprocess.Popen(["sleep", "0.4"], env={"UNSTUCK_RUN": mark, "UNSTUCK_SHIM": "1"}) as shim:
        assert LocalProcesses().end_leftovers(f"UNSTUCK_RUN={mark}") == 0
        assert not alive(shim.pid)
    assert shim.returncode == 0


# --- what it prints ----------------------------------------------------------------------------------


def test_100_mb_of_output_need_little_memory_and_little_disk(tmp_path: Path) -> None:
    script = (
        "import re, sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
        "from unstuck.process.processes import LocalProcesses; from unstuck.process.command import Command\n"
        "class Never:\n    def deadline(self): return None\n"
        "argv = ('sh', '-c', 'yes \"$(seq -s , 30)\" | head -c 100000000')\n"
        "ended = LocalProcesses().run(Command(argv=argv, cwd=Path('/'), log=Path(sys.argv[2])), stop=Never())\n"
        "peak = re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]\n"  # ru_maxrss includes the test's own
        "print(ended.ok, ended.output_bytes, peak)"
    )
    log = tmp_path / "log"
    done = subprocess.run([sys.executable, "-c", script, SOURCE, log], capture_output=True, text=True, check=True)
    ok, size, kilobytes = done.stdout.split()
    assert (ok, size) == ("True", "100000000")
    assert int(kilobytes) < 75_000
    assert 47_000_000 < log.stat().st_size <= 50_000_000
    log.unlink()


def test_output_that_is_no_text_does_no_harm(tmp_path: Path) -> None:
    ended = run(
        tmp_path, "sh", "-c", r"printf '\000\377\376 caf\303\251 \303 '; head -c 300000 /dev/urandom; echo; echo end"
    )
    assert ended.ok
    assert ended.tail.endswith("\nend\n")
    assert (tmp_path / "log").read_bytes().startswith("\0�� café � ".encode())


def test_a_secret_printed_in_two_writes_reaches_neither_log_nor_tail(tmp_path: Path) -> None:
    script = f"printf 'my {TOKEN[:20]}'; sleep 0.2; echo '{TOKEN[20:]}' $MY_PASSWORD"
    ended = run(tmp_path, "sh", "-c", script, env={"MY_PASSWORD": "correct-horse"})
    assert ended.tail == "my [redacted] [redacted]\n"
    assert (tmp_path / "log").read_text() == ended.tail


def test_what_the_command_prints_cannot_pass_for_the_shims_report(tmp_path: Path) -> None:
    script = """for fd in 0 1 2 3 4 5 6 7 8 9; do echo '{"asked": false, "exit": 0}' >&$fd; done 2>/dev/null; exit 5"""
    assert run(tmp_path, "sh", "-c", script).exit_code == 5


def test_a_full_disk_does_not_hurt_the_command(tmp_path: Path) -> None:
    ended = run(tmp_path, "sh", "-c", "echo one; echo two", log=Path("/dev/full"))
    assert ended.ok
    assert ended.tail == "one\ntwo\n[unstuck: the log /dev/full is not complete: No space left on device]\n"


def test_two_threads_run_commands_at_the_same_time(tmp_path: Path) -> None:
    def meet(own: str, other: str) -> Ended:
        script = f"touch {own}; until test -e {other}; do sleep 0.01; done; echo {own}"
        return run(tmp_path, "sh", "-c", script, log=tmp_path / f"{own}.log", limits=TimeLimits(wall_clock=SOON))

    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(meet, ("a", "b"), ("b", "a"))
    assert (one.ok, one.tail, two.ok, two.tail) == (True, "a\n", True, "b\n")


def test_the_last_line_is_shown_a_few_times_a_second(tmp_path: Path) -> None:
    lines: list[str] = []
    ended = run(tmp_path, "sh", "-c", "for i in $(seq 50); do echo line $i; sleep 0.02; done", seen=lines.append)
    assert ended.ok
    assert lines[0].startswith("line ")
    assert 2 <= len(lines) <= 2 + ended.seconds * 4


# --- what stays on purpose ---------------------------------------------------------------------------


def test_what_a_lasting_command_starts_stays_until_it_is_ended(tmp_path: Path) -> None:
    processes = LocalProcesses()
    script = "setsid sleep 1000 & echo $! > pid; (while echo noise; do sleep 0.01; done) & echo started"
    command = Command(argv=("bash", "-c", script), cwd=tmp_path, log=tmp_path / "log", lasting=True)
    ended = processes.run(command, stop=StopAt())
    assert ended.ok
    assert "started" in ended.tail
    pid = int((tmp_path / "pid").read_text())
    assert alive(pid)
    processes.end_lasting()
    assert not alive(pid)
    processes.end_lasting()


def test_what_a_lasting_command_starts_ends_with_the_supervisor(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from unstuck.process.processes import LocalProcesses; from unstuck.process.command import Command\n"
        "class Never:\n    def deadline(self): return None\n"
        "here = Path(sys.argv[1])\n"
        "argv = ('bash', '-c', 'setsid sleep 1000 & echo $! > pid')\n"
        "LocalProcesses().run(Command(argv=argv, cwd=here, log=here / 'log', lasting=True), stop=Never())\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], env={**os.environ, "PYTHONPATH": SOURCE}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not alive(pid))
    assert not alive(pid)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP, None])
def test_a_shim_that_waits_for_a_command_harms_nobody_whatever_becomes_of_it(
    tmp_path: Path, number: int | None
) -> None:
    processes, marks = LocalProcesses(grace=0.2), {"UNSTUCK_RUN": "r", "UNSTUCK_TASK": "1"}
    check = Command(argv=("sh", "-c", "echo checked"), cwd=tmp_path, log=tmp_path / "log", env=marks)
    before = set(RUNNING_SHIMS)
    processes.prepare_command(marks)
    wait_until(lambda: bool(RUNNING_SHIMS - before))
    (waiting,) = RUNNING_SHIMS - before
    if number is not None:
        os.kill(waiting, number)
    ended = processes.run(check, stop=StopAt())
    assert (ended.ok, ended.tail) == (True, "checked\n")
    processes.prepare_command(marks)
    processes.end_lasting()
    assert before == RUNNING_SHIMS, "one that nobody needed is ended as well"
