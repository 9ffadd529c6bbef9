"""A run over workers in processes of their own: what they do arrives, and whatever happens to them costs nobody anything."""

import json
import signal
from typing import TYPE_CHECKING

from tests.fleet.conftest import git
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.fleet.conftest import Town


def test_a_killed_worker_costs_nobody_an_attempt_and_another_one_goes_on(town: "Town") -> None:
    first = town.worker(DIE_AT="agent")
    run = town.supervisor()
    assert town.ended(first) == -signal.SIGKILL
    secret = "hunter2-" + "q7Rt9x" * 3
    town.worker(WORKERS_TOKEN=secret)
    assert town.ended(run) == 0, town.said()
    assert town.sound() == [], town.said()
    assert git(town.root, "show", "HEAD:a", "HEAD:b") == "a\nb"
    assert "the worker died or left in the middle of the session" in town.said()
    assert "supervisor died" not in town.said()
    told = "".join(str(row) for row in town.query("SELECT body FROM unstuck.events"))
    assert "the token is" in told
    assert secret not in told, "a secret of the worker's own reached the store"


def test_a_frozen_worker_that_comes_back_changes_nothing(town: "Town") -> None:
    zombie = town.worker(FREEZE_AT="before git push 1")
    run = town.supervisor()
    wait_until((town.met / "worker push 1").exists, "the worker to be frozen")
    town.worker()
    assert town.ended(run) == 0, town.said()
    refs = git(town.remote, "for-each-ref")
    (town.met / "thawed").touch()
    zombie.send_signal(signal.SIGCONT)
    wait_until(lambda: "given up" in town.said() or "too late" in town.said(), "the zombie to learn what happened")
    zombie.send_signal(signal.SIGTERM)
    assert town.ended(zombie) == 0
    assert git(town.remote, "for-each-ref") == refs
    assert town.sound() == [], town.said()


def test_a_killed_supervisor_is_taken_over_from_another_clone(town: "Town") -> None:
    town.worker("--slots", "2", HOLD_AT="agent")
    first = town.supervisor()
    wait_until((town.met / "agent").exists, "a session at work that is half done")
    for (text,) in town.query("SELECT body FROM unstuck.jobs UNION ALL SELECT sheet FROM unstuck.runs"):
        json.loads(str(text))  # plain values, which no machine has to trust
    first.kill()
    assert town.ended(first) == -signal.SIGKILL
    elsewhere = town.root.with_name("elsewhere")
    git(town.root.parent, "clone", "--quiet", str(town.remote), str(elsewhere))
    second = town.supervisor(cwd=elsewhere)
    wait_until(lambda: "took the run over" in town.said().lower(), "the second supervisor")
    (town.met / "free").touch()
    assert town.ended(second) == 0, town.said()
    assert town.sound() == [], town.said()
    assert (town.met / "sessions").read_text().split() == ["session", "1", "session", "1"]
    assert [task.attempts[0].sessions for task in town.state().tasks.values()] == [1, 1], "a worker's session was ended"
