"""What happens to machines of a fleet: a full disk, a worker that is asked to leave, supervisors that come back too late."""

import os
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.fleet.conftest import git, is_stopped
from tests.sampling import some
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fleet.conftest import Town


@pytest.mark.exhaustive
def test_a_worker_that_is_asked_to_leave_lets_its_session_end_first(town: "Town") -> None:
    leaving = town.worker(HOLD_AT="agent")
    run = town.supervisor()
    wait_until((town.met / "agent").exists, "a session at work")
    leaving.send_signal(signal.SIGTERM)
    wait_until(lambda: town.query("SELECT id FROM unstuck.workers WHERE state = 'draining'"), "the worker to drain")
    (town.met / "free").touch()
    assert town.ended(leaving) == 0, town.said()
    town.worker()
    assert town.ended(run) == 0, town.said()
    assert town.sound() == [], town.said()
    assert (town.met / "sessions").read_text().split() == ["session", "1", "session", "1"]


def test_a_worker_that_is_asked_twice_hands_its_session_back_at_nobodys_expense(town: "Town") -> None:
    leaving = town.worker(HOLD_AT="agent")
    run = town.supervisor()
    wait_until((town.met / "agent").exists, "a session at work")
    leaving.send_signal(signal.SIGTERM)
    wait_until(lambda: town.query("SELECT id FROM unstuck.workers WHERE state = 'draining'"), "the worker to drain")
    leaving.send_signal(signal.SIGTERM)
    assert town.ended(leaving) == 0, town.said()
    assert not town.orphans()
    town.worker()
    assert town.ended(run) == 0, town.said()
    assert town.sound() == [], town.said()
    task = town.state().tasks["1.1"]
    assert (len(task.attempts), task.attempts[0].sessions) == (1, 2), "the same attempt goes on"


@pytest.fixture
def small_disk(tmp_path: "Path") -> "Path":
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    disk = tmp_path / "small"
    disk.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    return disk


@pytest.mark.exhaustive
def test_a_worker_with_a_full_disk_says_so_and_another_one_does_its_work(town: "Town", small_disk: "Path") -> None:
    try:
        full = town.worker(XDG_STATE_HOME=str(small_disk))
        wait_until(lambda: "is ready" in town.said(), "the worker")
        with suppress(OSError), (small_disk / "ballast").open("wb", buffering=0) as ballast:
            while True:
                ballast.write(bytes(4096))
        run = town.supervisor()
        wait_until(lambda: "This worker rests" in town.said(), "the worker to meet its full disk")
        town.worker()
        assert town.ended(run) == 0, town.said()
        assert town.sound() == [], town.said()
        full.send_signal(signal.SIGTERM)
        assert town.ended(full) == 0, town.said()
    finally:
        town.end()
        subprocess.run(["umount", "--lazy", str(small_disk)], check=False)


@pytest.mark.parametrize("place", some(["before git push 2", "after git push 2"], kept=["before git push 2"]))
def test_a_frozen_supervisor_that_comes_back_moves_nothing(town: "Town", place: str) -> None:
    town.worker()
    zombie = town.supervisor(FREEZE_AT=place)
    wait_until((town.met / "supervisor push 2").exists, "the first landing")
    wait_until(lambda: is_stopped(zombie.pid), "the supervisor to freeze")
    # As if it were on another machine and silent for long: its process is alive, and would be believed.
    with town.connect() as connection:
        connection.execute("UPDATE unstuck.claims SET started = 'another process of this pid'")
    elsewhere = town.root.with_name("elsewhere")
    git(town.root.parent, "clone", "--quiet", str(town.remote), str(elsewhere))
    assert town.ended(town.supervisor(cwd=elsewhere)) == 0, town.said()
    refs = git(town.remote, "for-each-ref")
    (town.met / "thawed").touch()
    zombie.send_signal(signal.SIGCONT)
    assert town.ended(zombie) != 0, town.said()
    assert git(town.remote, "for-each-ref") == refs
    assert "nother supervisor" in town.said()
    assert town.sound() == [], town.said()


def test_a_remote_that_cannot_move_two_refs_at_once_still_gets_what_lands(town: "Town") -> None:
    git(town.remote, "config", "receive.advertiseAtomic", "false")
    town.worker()
    assert town.ended(town.supervisor()) == 0, town.said()
    assert town.sound() == [], town.said()
