"""What people, other processes and full disks do to a run: a clear message each time, and nothing lost."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

from unstuck.compat.run_files import Projections
from unstuck.engine.recorder import Recorder
from unstuck.journal.run_state import RunState
from unstuck.model.action import Accept, Escalate
from unstuck.model.event import Acted, AttemptStarted, Noted, Options, RunResumed, RunStarted, SessionEnded, Verb
from unstuck.plans.plan_file import OpenPlan, runnable_in
from unstuck.process.caller import machine_and_boot, process_start
from unstuck.redaction.redactor import redactor
from unstuck.testing import MemoryJournal

if TYPE_CHECKING:
    from tests.engine.conftest import World

PLAN = """\
- [ ] 1.1 Write a
  - **Verify**: `test -f a`
  - **Commit**: `feat: write a`
- [ ] 1.2 Write b
  - **Verify**: `test -f b`
  - **Commit**: `feat: write b`
"""
SCRIPT = """\
[[task."1.1"]]
steps = [{ write = "half", text = "half" }, { start = "sleep 1000" }, { run = "hold" }, { write = "a", text = "a" }]
[[task."1.2"]]
steps = [{ write = "b", text = "b" }]
"""
CONFIG = """\
agent = ["actor"]
[agents.actor]
script = "agent.toml"
[limits]
drain = {drain}
"""
ENDLESS = 600
"""A drain time that no test waits for."""


@pytest.fixture
def held(world: "World") -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Return a function that starts a run and comes back when its first agent is in the middle of its work."""
    started: list[subprocess.Popen[str]] = []

    def start(*, drain: float = ENDLESS) -> "subprocess.Popen[str]":
        world.commit({"tasks.md": PLAN, "agent.toml": SCRIPT, "unstuck.toml": CONFIG.format(drain=drain)})
        started.append(world.start("run", "tasks.md", "--commit", "message-only"))
        world.await_held()
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


# --- asked to stop -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGTERM, 143, id="SIGTERM"),
        pytest.param(signal.SIGINT, 130, id="Ctrl-C"),
        pytest.param(signal.SIGHUP, 129, id="a closed terminal"),
    ],
)
def test_a_signal_ends_the_session_after_the_drain_time_and_keeps_its_work(
    world: "World", held: Callable[..., "subprocess.Popen[str]"], number: signal.Signals, code: int
) -> None:
    run = held(drain=0.3)
    run.send_signal(number)
    _, err = run.communicate()
    assert run.returncode == code, err
    assert "Stopping: nothing new starts" in err
    check_stopped(world)
    if number == signal.SIGINT:  # the others leave the same behind, and going on does not know who stopped it
        check_finishes(world)


def test_a_session_that_ends_within_the_drain_time_lands_and_nothing_new_starts(
    world: "World", held: Callable[..., "subprocess.Popen[str]"]
) -> None:
    run = held()
    run.send_signal(signal.SIGTERM)
    await_line(run.stderr, "Stopping")
    world.let_go()
    run.communicate()
    assert run.returncode == 143
    state = world.state()
    assert (state.tasks["1.1"].status, state.tasks["1.2"].status) == ("complete", "pending")
    assert world.owner() is None
    check_finishes(world)


def test_a_run_that_is_stopped_in_its_last_task_says_that_resume_brings_the_work_home(
    world: "World", held: Callable[..., "subprocess.Popen[str]"]
) -> None:
    run = held()
    assert world.unstuck("skip", "1.2", "--because", "not now").returncode == 0
    run.send_signal(signal.SIGTERM)
    await_line(run.stderr, "running sessions get")
    world.let_go()
    out, _ = run.communicate()
    assert run.returncode == 143, out
    assert "Interrupted. Every task landed; `unstuck resume` brings the work home." in out
    assert out.count("unstuck resume") == 1, out
    assert "finished" not in world.unstuck("runs").stdout
    assert "make them yours with" in world.unstuck("resume").stdout


def test_the_second_ctrl_c_ends_everything_at_once(
    world: "World", held: Callable[..., "subprocess.Popen[str]"]
) -> None:
    run = held()
    run.send_signal(signal.SIGINT)
    await_line(run.stderr, "nothing new starts")
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=ENDLESS / 20)
    assert run.returncode == 130, err
    assert "ending everything now" in err
    check_stopped(world)
    check_finishes(world)


def test_the_second_ctrl_c_ends_an_agent_that_ignores_sigterm(world: "World") -> None:
    stubborn = """\
trap '' TERM INT HUP
case "$UNSTUCK_TASK" in
1.1) printf half > half; hold && printf a > a ;;
1.2) printf b > b ;;
esac
"""
    config = CONFIG.format(drain=ENDLESS).replace('script = "agent.toml"', 'command = "sh stubborn.sh"')
    world.commit({"tasks.md": PLAN, "stubborn.sh": stubborn, "unstuck.toml": config})
    run = world.start("run", "tasks.md", "--commit", "message-only")
    world.await_held()
    run.send_signal(signal.SIGINT)
    await_line(run.stderr, "nothing new starts")
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=ENDLESS / 20)
    assert run.returncode == 130, err
    check_stopped(world)
    check_finishes(world)


def test_stop_from_another_process_ends_the_run_with_exit_code_3(
    world: "World", held: Callable[..., "subprocess.Popen[str]"]
) -> None:
    run = held(drain=0.3)
    asked = world.unstuck("stop")
    assert asked.returncode == 0
    assert f"pid {run.pid}" in asked.stdout
    run.communicate()
    assert run.returncode == 3
    check_stopped(world)
    check_finishes(world)


def test_work_that_no_check_holds_up_is_kept_when_its_session_is_stopped(world: "World") -> None:
    world.commit({"tasks.md": "- [ ] 1.1 Write a\n", "agent.toml": SCRIPT, "unstuck.toml": CONFIG.format(drain=0.3)})
    run = world.start("run", "tasks.md")
    world.await_held()
    run.send_signal(signal.SIGTERM)
    run.communicate()
    assert run.returncode == 143
    check_stopped(world)


def test_a_check_that_is_stopped_is_run_again(world: "World") -> None:
    held_check = PLAN.replace("`test -f a`", "`hold && test -f a`")
    script = SCRIPT.replace('{ run = "hold" }, ', "")
    world.commit({"tasks.md": held_check, "agent.toml": script, "unstuck.toml": CONFIG.format(drain=0.3)})
    run = world.start("run", "tasks.md", "--commit", "message-only")
    world.await_held()
    run.send_signal(signal.SIGTERM)
    run.communicate()
    assert run.returncode == 143
    assert world.processes() == ()
    assert isinstance(world.state().tasks["1.1"].last, SessionEnded)
    check_finishes(world)


def test_a_worktree_that_had_to_be_made_anew_is_set_up_again(world: "World") -> None:
    plan = PLAN.replace("`test -f b`", "`test -f b -a -f prepared/here`")
    script = SCRIPT.replace('{ run = "hold" }', '{ run = "rm -r .git prepared" }')
    config = '[workspace]\nsetup = ["mkdir prepared && touch prepared/here"]\n' + CONFIG.format(drain=ENDLESS)
    config = config.replace('agent = ["actor"]\n', "")
    world.commit({"tasks.md": plan, "agent.toml": script, "unstuck.toml": f'agent = ["actor"]\n{config}'})
    world.commit({".gitignore": "prepared\n"})
    done = world.unstuck("run", "tasks.md", "--commit", "message-only")
    assert done.returncode == 0, done.stderr
    assert [len(task.attempts) for task in world.state().tasks.values()] == [1, 1]


# --- two at once -------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("run", "tasks.md"), ("resume",)], ids=["run", "resume"])
def test_a_second_supervisor_is_refused_and_told_who_works_here(
    world: "World", held: Callable[..., "subprocess.Popen[str]"], command: tuple[str, ...]
) -> None:
    run = held()
    second = world.unstuck(*command)
    assert second.returncode == 69
    assert f"pid {run.pid} " in second.stderr
    assert re.search(r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", second.stderr)
    world.let_go()
    run.communicate()
    assert run.returncode == 0


@pytest.mark.parametrize(
    ("started", "machine", "code"),
    [
        pytest.param("1", None, 0, id="a-reused-pid-is-no-owner"),
        pytest.param(None, None, 69, id="a-living-process-is"),
        pytest.param("1", "elsewhere/boot", 69, id="so-is-a-recent-heartbeat-on-another-machine"),
    ],
)
def test_a_claim_holds_as_long_as_its_owner_lives(
    world: "World",
    held: Callable[..., "subprocess.Popen[str]"],
    started: str | None,
    machine: str | None,
    code: int,
) -> None:
    run = held()
    run.kill()
    run.communicate()
    me, now = os.getpid(), time.time()
    change_claim(world, pid=me, started=started or process_start(me), host=machine or machine_and_boot(), heartbeat=now)
    world.let_go()
    assert world.unstuck("resume").returncode == code
    assert world.owner() == (None if code == 0 else me)


def test_a_supervisor_whose_claim_was_taken_stops_and_ends_its_processes(
    world: "World", held: Callable[..., "subprocess.Popen[str]"]
) -> None:
    run = held()
    change_claim(world, token="somebody else's")
    world.let_go()
    _, err = run.communicate()
    assert run.returncode == 1
    assert "Another supervisor took run" in err
    assert world.processes() == ()
    assert not any(isinstance(entry.event, SessionEnded) for entry in world.entries())


@pytest.mark.parametrize("command", [("run", "tasks.md"), ("resume",)], ids=["run", "resume"])
def test_a_run_inside_an_agent_of_ours_is_refused(
    world: "World", held: Callable[..., "subprocess.Popen[str]"], command: tuple[str, ...]
) -> None:
    run = held()
    inside = world.unstuck(*command, env={"UNSTUCK_RUN": "20260101-abcdef"})
    assert inside.returncode == 69
    assert "session of run 20260101-abcdef" in inside.stderr
    world.let_go()
    run.communicate()
    assert run.returncode == 0


# --- disks -------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk() -> Iterator[Callable[[Path], None]]:
    """Return a function that puts a disk of three megabytes in the place of a folder."""
    mounted: list[Path] = []

    def mount(folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
        mounted.append(folder)

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("where", ["ours", "the-whole-repository"])
def test_a_full_disk_is_told_and_loses_nothing(
    world: "World",
    held: Callable[..., "subprocess.Popen[str]"],
    small_disk: Callable[[Path], None],
    where: str,
) -> None:
    put_on(small_disk, world.root / ".unstuck" if where == "ours" else world.root)
    run = held()
    filler = world.root / ".unstuck" / "filler"
    fill(filler)
    before = world.entries()
    world.let_go()
    _, err = run.communicate()
    assert run.returncode == 1
    assert "full" in err or "No space left" in err
    assert "Hint: " in err
    assert "unstuck resume" in err
    assert world.processes() == ()
    filler.unlink()
    assert world.entries()[: len(before)] == before
    check_finishes(world)
    assert world.fsck() == ""


def test_a_read_only_folder_of_ours_is_told_and_a_run_goes_on_when_it_can_be_written_again(
    world: "World", held: Callable[..., "subprocess.Popen[str]"], small_disk: Callable[[Path], None]
) -> None:
    put_on(small_disk, world.root / ".unstuck")
    run = held(drain=0.3)
    run.send_signal(signal.SIGTERM)
    run.communicate()
    remount(world.root / ".unstuck", "ro")
    for command in (("run", "tasks.md"), ("resume",)):
        refused = world.unstuck(*command)
        assert refused.returncode == 1, refused.stderr
        assert str(world.root / ".unstuck") in refused.stderr
        assert "writable" in refused.stderr
        assert "Traceback" not in refused.stderr
    remount(world.root / ".unstuck", "rw")
    check_finishes(world)


# --- a damaged journal -------------------------------------------------------------------------------


def garbage_in_the_middle(content: bytes) -> bytes:
    return content[:4096] + b"garbage!" * ((len(content) - 8192) // 8) + content[-4096:]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(garbage_in_the_middle, id="garbage-in-the-middle"),
        pytest.param(lambda content: content[: len(content) // 2 - 100], id="cut-off"),
        pytest.param(lambda _: b"This is not a database, but it is long enough to be one.\n" * 99, id="another-file"),
        pytest.param(lambda _: b"", id="emptied"),
    ],
)
def test_a_damaged_journal_is_set_aside_by_name_and_never_silently_replaced(
    world: "World", held: Callable[..., "subprocess.Popen[str]"], damage: Callable[[bytes], bytes]
) -> None:
    run = held(drain=0.3)
    run.send_signal(signal.SIGTERM)
    run.communicate()
    journal = world.root / ".git" / "unstuck" / "journal.db"
    damaged = damage(journal.read_bytes())
    journal.write_bytes(damaged)

    looked = world.unstuck("status")
    assert looked.returncode == 1
    assert "damaged" in looked.stderr
    assert journal.read_bytes() == damaged

    refused = world.unstuck("run", "tasks.md")
    (copy,) = journal.parent.glob("journal.db.damaged-*")
    assert refused.returncode == 1
    assert str(copy) in refused.stderr
    assert copy.read_bytes() == damaged
    assert not journal.exists()

    world.let_go()
    again = world.unstuck("run", "tasks.md", "--commit", "message-only")
    assert again.returncode == 0, again.stderr
    assert len(world.runs()) == 1
    assert [task.status for task in world.state().tasks.values()] == ["complete", "complete"]


# --- files that people read --------------------------------------------------------------------------


class PowerCut(BaseException):
    """Ends a write in the middle."""


class BusyPlan(OpenPlan):
    """A plan during whose ticking something else happens. All other files but `config.json` are written before."""

    def __init__(self, folder: Path) -> None:
        super().__init__((folder / "tasks.md",), "tasks.md", runnable=runnable_in(folder))
        self.path.write_text("- [ ] 1.1 Write a\n")
        self.meanwhile: Callable[[], object] = lambda: None

    def mark(self, statuses: Mapping[str, str]) -> bool:
        changed = super().mark(statuses)
        self.meanwhile()
        return changed


@dataclass(frozen=True, slots=True)
class Office:
    """A journal and the files that are made from it."""

    plan: BusyPlan
    journal: MemoryJournal
    record: Recorder
    projections: Projections

    def write(self) -> None:
        self.projections.write(*self.record.take_changed())

    def edits(self) -> list[tuple[Verb, str, str]]:
        return list(self.projections.edits("r", tuple(self.journal.read("r"))))


@pytest.fixture
def office(tmp_path: Path) -> Office:
    plan, journal = BusyPlan(tmp_path), MemoryJournal()
    record = Recorder(journal, RunState(), redactor({}))
    projections = Projections(home=tmp_path / ".unstuck", store=tmp_path / "store", plan=plan, told=record.note)
    options, tasks = Options(agents=("actor",)), plan.read().tasks
    record.record(
        RunStarted(
            run="r", plan="tasks.md", format="tasks.md", base="b", branch=None, options=options, tasks=tuple(tasks)
        )
    )
    record.record(AttemptStarted(task="1.1", attempt=1, agent="actor", base="b", slot=0))
    return Office(plan, journal, record, projections)


def test_a_task_that_lands_while_files_are_written_was_not_edited_by_hand(office: Office) -> None:
    office.plan.meanwhile = lambda: office.record.record(Acted(task="1.1", action=Accept(), commit="c"))
    office.write()
    assert office.edits() == []


def test_a_write_that_was_cut_short_is_not_an_edit(office: Office) -> None:
    office.record.record(Acted(task="1.1", action=Escalate(question="What now?")))
    office.write()
    office.record.record(RunResumed(epoch=True, tip="b"))

    def cut() -> None:
        raise PowerCut

    office.plan.meanwhile = cut
    with pytest.raises(PowerCut):
        office.write()
    assert office.edits() == []


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("pending", [("reset", "1.1", "its status was set to pending by hand")]),
        ("completed", [("skip", "1.1", "its status was set to completed by hand")]),
        ("failed", []),
        ("odd", []),
    ],
)
@pytest.mark.parametrize("config", ["there", "gone"])
def test_a_status_that_a_person_changes_is_an_edit(
    office: Office, status: str, expected: list[tuple[str, str, str]], config: str
) -> None:
    office.record.record(Acted(task="1.1", action=Escalate(question="What now?")))
    office.write()
    file = office.projections.home / "phases" / "phase-1.1.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "status": status}))
    if config == "gone":
        (office.projections.home / "config.json").unlink()
    assert office.edits() == expected
    assert any("set to odd by hand" in str(entry.event) for entry in office.journal.read("r")) is (status == "odd")


# --- what the tests above have in common ---------------------------------------------------------------


def check_stopped(world: "World") -> None:
    """Check that the session was ended, its work put away, the claim given up, and nothing new begun."""
    events = [entry.event for entry in world.entries()]
    assert [event.outcome.ended.ending for event in events if isinstance(event, SessionEnded)] == ["stopped"]
    assert [event.task for event in events if isinstance(event, AttemptStarted)] == ["1.1"]
    assert world.owner() is None
    assert world.processes() == ()
    (note,) = (event.text for event in events if isinstance(event, Noted) and "kept at" in event.text)
    assert world.git("show", f"{note.split()[-1].rstrip('.')}:half") == "half"


def check_finishes(world: "World") -> None:
    """Check that the run goes on to its end, with each task landed once and no attempt charged for our own stop."""
    world.let_go()
    done = world.unstuck("resume")
    assert done.returncode == 0, done.stderr
    state = world.state()
    assert {name: (task.status, len(task.attempts), task.charged) for name, task in state.tasks.items()} == {
        "1.1": ("complete", 1, 0),
        "1.2": ("complete", 1, 0),
    }
    assert state.started is not None
    subjects = world.git("log", "--format=%s", f"{state.started.base}..unstuck/{state.started.run}").splitlines()
    assert sorted(subjects) == ["feat: write a", "feat: write b"]
    assert world.processes() == ()


def await_line(stream: IO[str] | None, part: str) -> None:
    assert stream is not None
    assert any(part in line for line in stream), f"{part!r} was never said"


def change_claim(world: "World", **columns: object) -> None:
    with sqlite3.connect(world.root / ".git" / "unstuck" / "journal.db") as connection:
        for name, value in columns.items():
            assert connection.execute(f"UPDATE claim SET {name} = ?", (value,)).rowcount == 1
    connection.close()


def put_on(small_disk: Callable[[Path], None], folder: Path) -> None:
    """Put a folder, with whatever is in it, on a disk of its own."""
    kept = folder.with_name("kept")
    if folder.exists():
        folder.rename(kept)
    small_disk(folder)
    if kept.exists():
        shutil.copytree(kept, folder, symlinks=True, dirs_exist_ok=True)


def fill(filler: Path) -> None:
    """Write until nothing more fits."""
    with filler.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while file.write(b"\0" * size) == size:
                    pass
            except OSError:
                continue


def remount(folder: Path, mode: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{mode}", str(folder)], check=True)
