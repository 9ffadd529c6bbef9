"""What people do to a run whose sessions are on workers: their words reach them, and every command finds the run."""

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.fleet.conftest import git
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.fleet.conftest import Town

LISTENER = """
import json, os, sys
def say(**line):
    print(json.dumps(line), flush=True)
say(type="system", subtype="init", session_id="s-1")
with open(os.environ["MET"] + "/heard", "a") as heard:
    for line in sys.stdin:
        text = str(json.loads(line))
        heard.write("hint" if "look in b" in text else "brief")
        heard.flush()
        if "look in b" in text:
            break
open(os.environ["UNSTUCK_TASK"][-1:].replace("1", "a").replace("2", "b"), "w").write("ab"[os.environ["UNSTUCK_TASK"] == "1.2"] + "\\n")
say(type="result", subtype="success", is_error=False, result="Done.", session_id="s-1", total_cost_usd=0.5)
"""


def ask(town: "Town", *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-P", "-m", "unstuck", *arguments],
        cwd=town.root,
        env=dict(town.env),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_hint_reaches_a_session_on_a_worker_and_a_skip_ends_one(town: "Town") -> None:
    listener = town.root.parent / "listener.py"
    listener.write_text(LISTENER)
    toml = town.root / "unstuck.toml"
    arguments = json.dumps([str(listener), "--json"])
    toml.write_text(
        toml.read_text().replace('agent = ["play"]', 'agent = ["talk"]\nparallel = 1').replace("parallel = 2\n", "")
        + f"[agents.talk]\nprogram = {json.dumps(sys.executable)}\narguments = {arguments}\n"
        'output = "claude"\nsteer = ["--input-format", "stream-json"]\n'
    )
    git(town.root, "commit", "--quiet", "-am", "Somebody who listens")
    git(town.root, "push", "--quiet", str(town.remote), "HEAD")
    worker = town.worker("--agents", "talk")
    run = town.supervisor()
    heard = town.met / "heard"
    wait_until(lambda: heard.exists() and heard.read_text() == "brief", "a session at work")
    wait_until(lambda: town.query("SELECT id FROM unstuck.jobs WHERE listens AND state = 'running'"), "it to listen")
    assert ask(town, "retry", "1.1", "--hint", "look in b").returncode == 0
    wait_until(lambda: heard.read_text() == "briefhintbrief", "the second task's session")
    assert ask(town, "skip", "1.2", "--because", "not now").returncode == 0
    assert town.ended(run) == 0, town.said()
    state = town.state()
    assert (state.tasks["1.1"].status, state.tasks["1.2"].status) == ("complete", "skipped")
    assert (len(state.tasks["1.1"].attempts), state.tasks["1.1"].attempts[0].sessions) == (1, 1)
    assert any("reached the running session" in note for note in state.tasks["1.1"].notes)
    worker.send_signal(signal.SIGTERM)
    assert town.ended(worker) == 0


def test_a_run_without_a_fitting_worker_says_so_and_ctrl_c_waits_for_nobody(town: "Town") -> None:
    toml = town.root / "unstuck.toml"
    toml.write_text(toml.read_text().replace("drain = 5", "drain = 3600") + 'labels = ["gpu"]\n')
    town.worker("--label", "arm")
    run = town.supervisor()
    said = "The work waits for a worker with play and gpu: there is none."
    wait_until(lambda: said in town.said(), "the run to say what it needs")
    assert "is ready" in town.said(), "one is there, and does not fit"
    run.send_signal(signal.SIGINT)
    assert town.ended(run) == 130, town.said()  # an hour before the drain time is over
    assert all(not task.charged for task in town.state().tasks.values())
    assert town.query("SELECT id FROM unstuck.jobs WHERE state IN ('queued', 'running')") == []


def test_every_command_that_looks_at_a_run_finds_it_in_the_store(town: "Town") -> None:
    town.worker("--slots", "2")
    assert town.ended(town.supervisor()) == 0, town.said()
    shown = {
        ("status",): "1.2",
        ("show", "1.1"): "session",
        ("diff", "1.1"): "+a",
        ("log",): "run ended",
        ("runs",): "tasks.md",
        ("report", "--html", "page.html"): "page.html",
        ("explain", "1.1"): "1.1",
        ("experience",): "agent play: 2 attempts landed",
        ("doctor",): "The store answers: 1 worker",
        ("replay", "--profile", "standard"): "",
        ("verify", "1.1"): "",
        ("prune", "--dry-run"): "",
        ("resume",): "",
    }
    wrong = []
    for arguments, part in shown.items():
        done = ask(town, *arguments)
        if done.returncode or part not in done.stdout + done.stderr:
            wrong.append((arguments, done.returncode, done.stdout[-600:], done.stderr[-600:]))
    assert wrong == [], wrong
    assert not (town.root / ".git" / "unstuck" / "journal.db").exists(), "no second journal beside the store"
    left = git(town.remote, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/unstuck/").split()
    assert left == ["@tip"], "what landed has no place of its own any more"
