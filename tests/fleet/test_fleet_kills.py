"""The kill matrix of a fleet: any member dies, freezes or is cut off anywhere; then the run ends as if nothing had happened.

Real processes, git and Postgres. Every row ends with every task landed once, nobody charged, sound repositories, no job
and no process left.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from benchmarks.postgres_server import NoPostgres, Server
from tests.fleet.conftest import git, is_stopped, make_store, make_town, relayed
from tests.sampling import some
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.fleet.conftest import Town
    from tests.fork_server import ForkServer

ATTEMPT = ("attempt_started", "session_started", "session_ended", "verified", "classified", "decided", "acted")
APPENDS = (
    "run_started run 1",
    *(f"{event} {task} 1" for task in ("1.1", "1.2") for event in ATTEMPT),
    "brought_home run 1",
    "run_ended run 1",
)
"""Every append of an undisturbed run; a test below compares this with a real one."""
TRANSFERS = ("fetch 1", "push 1", "fetch 2", "push 2", "fetch 3", "push 3")
WORKERS_TRANSFERS = ("push 1", "fetch 1", "push 2")
"""The first task begins with a commit that a fresh clone has."""
IN_COMMANDS = ("agent", "late-agent", "second-agent", "check")

SUPERVISOR = [f"{when} append {append}" for append in APPENDS for when in ("before", "after")] + [
    f"{when} git {transfer}" for transfer in TRANSFERS for when in ("before", "after")
]
WORKER = [*IN_COMMANDS, *(f"{when} git {transfer}" for transfer in WORKERS_TRANSFERS for when in ("before", "after"))]
FROZEN = [
    "agent",
    "check",
    "late-agent",
    "before git push 1",
    "after git push 1",
    "before git fetch 1",
    "after git push 2",
]
IN_MAKE_TEST = {
    "before append session_ended 1.1 1",
    "after append verified 1.1 1",
    "before append acted 1.1 1",
    "after git push 2",
    "after git fetch 2",
    "agent",
}
"""A place that both a supervisor and a worker reach counts for each: a dozen rows."""


def rows(places: list[str]) -> list[object]:
    """Return the rows of a table; all but a few are for `make exhaustive`."""
    return some(places, kept=IN_MAKE_TEST)


def test_the_matrix_has_at_least_sixty_points() -> None:
    assert len({*SUPERVISOR}) + len({*WORKER}) + len({*FROZEN}) >= 60


@pytest.mark.exhaustive
def test_the_matrix_names_every_append_of_an_undisturbed_run(town: "Town") -> None:
    town.worker()
    assert town.ended(town.supervisor()) == 0, town.said()
    journal = town.journal()
    entries = tuple(journal.read(journal.runs()[-1]))
    journal.close()
    seen = [f"{entry.event.type} {getattr(entry.event, 'task', None) or 'run'} 1" for entry in entries]
    assert sorted(seen) == sorted(APPENDS)
    assert town.sound() == []
    transfers = {path.name.partition(" ")[2] for path in town.met.glob("supervisor *")}
    assert {name for name in transfers if not name.startswith("ls-remote")} == set(TRANSFERS)


@pytest.mark.parametrize("place", rows(SUPERVISOR))
def test_a_supervisor_dies_and_the_next_one_ends_its_run(wide_town: "Town", place: str) -> None:
    wide_town.worker()
    wide_town.worker()
    doomed = wide_town.start("tests.fleet.doomed", wide_town.url, env={"ROLE": "supervisor", "DIE_AT": place})
    assert wide_town.ended(doomed) == -signal.SIGKILL, f"{place!r} was never reached\n{wide_town.said()}"
    assert wide_town.ended(wide_town.supervisor()) == 0, wide_town.said()
    assert wide_town.sound() == [], wide_town.said()


@pytest.mark.parametrize("place", rows(WORKER))
def test_a_worker_dies_and_another_one_does_its_work(wide_town: "Town", place: str) -> None:
    doomed = wide_town.worker(DIE_AT=place)
    run = wide_town.supervisor()
    assert wide_town.ended(doomed) == -signal.SIGKILL, f"{place!r} was never reached\n{wide_town.said()}"
    wide_town.worker()
    assert wide_town.ended(run) == 0, wide_town.said()
    assert wide_town.sound() == [], wide_town.said()


@pytest.mark.parametrize("place", rows(FROZEN))
def test_a_worker_freezes_until_its_work_is_done_by_another_one(wide_town: "Town", place: str) -> None:
    zombie = wide_town.worker(FREEZE_AT=place)
    run = wide_town.supervisor()
    wait_until(lambda: is_stopped(zombie.pid), f"the worker to freeze at {place!r}")
    wide_town.worker()
    assert wide_town.ended(run) == 0, wide_town.said()
    before = git(wide_town.remote, "for-each-ref")
    (wide_town.met / "thawed").touch()
    zombie.send_signal(signal.SIGCONT)
    zombie.send_signal(signal.SIGTERM)
    assert wide_town.ended(zombie) == 0, wide_town.said()
    assert git(wide_town.remote, "for-each-ref") == before
    assert wide_town.sound() == [], wide_town.said()


@pytest.mark.exhaustive
def test_a_remote_that_is_down_for_a_while_loses_nothing(town: "Town") -> None:
    town.worker(HOLD_AT="agent")
    run = town.supervisor()
    wait_until((town.met / "agent").exists, "a session at work")
    (town.met / "cut-off").touch()
    (town.met / "free").touch()
    wait_until((town.met / "worker push 2").exists, "the worker to try again")
    (town.met / "cut-off").unlink()
    assert town.ended(run) == 0, town.said()
    assert town.sound() == [], town.said()


@pytest.mark.exhaustive
def test_a_restart_of_postgres_ends_no_session_and_no_run(tmp_path: Path, fleet_server: "ForkServer") -> None:
    try:
        server = Server.make()
    except NoPostgres as error:
        pytest.skip(f"no Postgres can be run here: {error}")
    server.start()
    town = make_town(tmp_path, make_store(server), fleet_server)
    try:
        town.worker(HOLD_AT="agent")
        run = town.supervisor()
        wait_until((town.met / "agent").exists, "a session at work")
        server.stop()
        server.start()
        (town.met / "free").touch()
        assert town.ended(run) == 0, town.said()
        assert town.sound() == [], town.said()
        assert (town.met / "sessions").read_text().split() == ["session", "1", "session", "1"]
    finally:
        town.end()
        server.remove()


@contextlib.contextmanager
def behind_relay(town: "Town", host: str = "127.0.0.1") -> "Iterator[tuple[subprocess.Popen[str], str]]":
    """Put a relay between workers and Postgres; return it and the store's address as it is behind it."""
    port = re.search(r":(\d+)/", town.url)
    assert port is not None
    with relayed(int(port[1]), host) as (relay, new):
        yield relay, town.url.replace(f"127.0.0.1:{port[1]}", f"{host}:{new}")


@pytest.mark.exhaustive
def test_a_worker_that_hears_nothing_of_postgres_ends_its_session_by_itself(town: "Town") -> None:
    with behind_relay(town) as (relay, behind):
        cut_off = town.worker("--store", behind, HOLD_AT="agent")
        run = town.supervisor()
        wait_until((town.met / "agent").exists, "a session at work")
        relay.send_signal(signal.SIGSTOP)
        town.worker()
        assert town.ended(run) == 0, town.said()
        wait_until(lambda: not town.orphans(), "the end of the session that nobody waits for")
        relay.send_signal(signal.SIGCONT)
        cut_off.send_signal(signal.SIGTERM)
        assert town.ended(cut_off) == 0, town.said()
    assert town.sound() == [], town.said()


@pytest.mark.exhaustive
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="network namespaces need root and `ip`")
def test_a_worker_in_a_network_of_its_own_is_cut_off(town: "Town") -> None:
    name = f"u{os.getpid() % 100000}"
    net = f"10.213.{os.getpid() % 250}"
    steps = (
        f"ip netns add {name}", f"ip link add {name}h type veth peer name {name}n netns {name}",
        f"ip addr add {net}.1/30 dev {name}h", f"ip link set {name}h up",
        f"ip netns exec {name} ip addr add {net}.2/30 dev {name}n", f"ip netns exec {name} ip link set {name}n up",
    )  # fmt: skip
    try:
        for step in steps:
            done = subprocess.run(step.split(), capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"no network namespace can be made here: {done.stderr.strip()}")
        with behind_relay(town, f"{net}.1") as (_, behind):
            cut_off = town.worker("--store", behind, HOLD_AT="agent", IN_NETWORK=name)
            run = town.supervisor()
            wait_until((town.met / "agent").exists, "a session at work")
            subprocess.run(["ip", "link", "set", f"{name}h", "down"], check=True)
            town.worker()
            assert town.ended(run) == 0, town.said()
            wait_until(lambda: not town.orphans(), "the end of the session that nobody waits for")
            subprocess.run(["ip", "link", "set", f"{name}h", "up"], check=True)
            cut_off.send_signal(signal.SIGTERM)
            assert town.ended(cut_off) == 0, town.said()
        assert town.sound() == [], town.said()
    finally:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "delete", f"{name}h"], capture_output=True, check=False)
