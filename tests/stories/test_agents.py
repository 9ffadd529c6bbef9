"""Real agents, played: quotas waited for over a crash, sessions resumed, agents that go down and come back."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import wait_until

from unstuck.app.inspect import look
from unstuck.app.open_run import open_run
from unstuck.app.services import Watcher
from unstuck.journal.run_state import RunState
from unstuck.model.event import Acted, Entry, Options
from unstuck.testing import FakeClock

if TYPE_CHECKING:
    from tests.project import Project

PLAYER = Path(__file__).with_name("played_agent.py")
INIT = {"type": "system", "subtype": "init", "session_id": "s-1"}
DONE = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "Done.",
    "session_id": "s-1",
    "total_cost_usd": 0.5,
}
HOURS = 3600.0


def refused(status: int, words: str) -> dict[str, Any]:
    return {
        "type": "result",
        "subtype": "success",
        "is_error": True,
        "api_error_status": status,
        "result": words,
        "session_id": "s-1",
    }


@dataclass(frozen=True, slots=True)
class Cast:
    """Agents that print what Claude Code prints."""

    project: "Project"

    def agent(self, name: str, *sessions: dict[str, Any]) -> None:
        """Add an agent to the configuration; each call of it plays the next session."""
        play = self.project.root.parent / f"{name}.json"
        play.write_text(json.dumps(sessions))
        path = self.project.root / "unstuck.toml"
        quoted = [json.dumps(str(part)) for part in (PLAYER, play, "--json")]
        path.write_text(
            path.read_text()
            + f"\n[agents.{name}]\nprogram = {json.dumps(sys.executable)}\narguments = [{', '.join(quoted)}]\n"
            + 'permission = ["--yes"]\nresume = ["--resume", "{session}"]\noutput = "claude"\ncapabilities = ["cost"]\n'
        )
        self.project.git("commit", "--quiet", "-am", f"Add {name}")

    def calls(self, name: str) -> list[dict[str, Any]]:
        path = self.project.root.parent / f"{name}.calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def cast(project: "Project") -> Cast:
    return Cast(project)


DYING = """
import os, signal, sys, time
from unstuck.app.open_run import open_run
from unstuck.testing import FakeClock

class Doomed(FakeClock):
    def wait(self, seconds):
        os.kill(os.getpid(), signal.SIGKILL)

open_run("tasks.md", agents=["mine"], clock=Doomed(time=time.time())).go()
"""


def test_a_quota_is_waited_for_over_a_sigkill_and_the_same_session_goes_on(cast: Cast) -> None:
    project, resets = cast.project, int(time.time() + 3 * HOURS)
    project.plan(("1.1", "Make a", "test -f a.txt"))
    limit = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": resets}}
    cast.agent(
        "mine",
        {"lines": [INIT, limit, refused(429, "You've hit your limit")], "files": {"half.txt": "half\n"}, "exit": 1},
        {"lines": [INIT, DONE], "files": {"a.txt": "whole\n"}},
    )
    killed = subprocess.run([sys.executable, "-P", "-c", DYING], cwd=project.root, capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr.decode()
    before = look(project.root).state.tasks["1.1"]
    assert before.status == "waiting"
    assert before.wait_until is not None
    assert resets < before.wait_until < resets + 120, "a margin, and not more"
    assert before.charged == 0

    clock = FakeClock(time=time.time())
    summary = open_run(project.root / "tasks.md", clock=clock, cwd=project.root).go()
    assert summary.exit_code == 0, summary
    assert clock.time >= before.wait_until
    first, second = cast.calls("mine")
    assert "--resume" not in first["argv"]
    assert second["argv"][-2:] == ["--resume", "s-1"], "the same session"
    assert "go on where you stopped" in second["stdin"]
    task = look(project.root).state.tasks["1.1"]
    assert (len(task.attempts), task.charged, task.commit is not None) == (1, 0, True)
    assert project.git("show", "HEAD:half.txt") == "half", "what was done before the limit is kept"


PLAYED = """
import sys, time
from unstuck.cli import run_cli
from unstuck.process.clock import SystemClock

began, passed, jump = time.time(), 0.0, float(sys.argv[1])

def wait(_clock, seconds):
    global passed
    passed += seconds

SystemClock.wait = wait
time.clock_gettime = lambda _clock: 1000.0 + passed
time.time = lambda: began + passed + (jump if passed > 30 else 0.0)
print(run_cli(["run", "tasks.md", "--agent", "mine", "--max-time", "2h"]), passed)
"""
"""The machine's clocks, played: only waiting takes time, and after half a minute of it somebody sets the clock."""


@pytest.mark.parametrize("jump", [-5 * HOURS, 48 * HOURS], ids=["back", "forward"])
def test_a_clock_that_is_set_while_a_quota_is_waited_for_changes_neither_the_wait_nor_the_time_limit(
    cast: Cast, jump: int
) -> None:
    project, resets = cast.project, int(time.time() + 600)
    project.plan(("1.1", "Make a", "test -f a.txt"))
    limit = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": resets}}
    cast.agent(
        "mine",
        {"lines": [INIT, limit, refused(429, "You've hit your limit")], "exit": 1},
        {"lines": [INIT, DONE], "files": {"a.txt": "whole\n"}},
    )
    argv = [sys.executable, "-P", "-c", PLAYED, str(jump)]
    done = subprocess.run(argv, cwd=project.root, capture_output=True, text=True, check=False)
    code, passed = done.stdout.splitlines()[-1].split()
    assert code == "0", done
    assert 570 < float(passed) < 800, "until the limit ends, and a margin"
    entries = look(project.root).entries
    assert [one.at for one in entries] == sorted(one.at for one in entries), "the journal's times only go on"


def test_a_quota_ends_the_run_with_75_where_the_user_said_exit(cast: Cast) -> None:
    project, resets = cast.project, int(time.time() + 3 * HOURS)
    project.plan(("1.1", "Make a", "test -f a.txt"), ("1.2", "Make b", "test -f b.txt"))
    limit = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": resets}}
    cast.agent(
        "mine",
        {"lines": [INIT, limit, refused(429, "You've hit your limit")], "exit": 1},
        {"lines": [INIT, DONE], "files": {"a.txt": "a\n", "b.txt": "b\n"}},
    )
    result = project.ask("run", "tasks.md", "--agent", "mine", "--quota", "exit", "--json")
    assert result.code == 75, result
    assert (result.json["exit"], result.json["tasks"]["1.1"]["attempts"]) == (75, 1)
    assert result.json["tasks"]["1.1"]["status"] == "waiting"
    assert result.json["resume_at"] is not None
    assert "works without asking: --yes" in result.err
    again = project.ask("resume", "--json")
    assert again.code == 75, "too early"
    assert len(cast.calls("mine")) == 1
    later = open_run(project.root / "tasks.md", clock=FakeClock(time=resets + 200.0), cwd=project.root).go()
    assert later.exit_code == 0, later
    assert [row.attempts for row in later.rows] == [1, 1]


def test_what_an_agent_says_in_its_event_stream_becomes_fix_tasks_and_asked_for_tasks(cast: Cast) -> None:
    """Its words stand escaped on one line of JSON; they are read all the same."""
    project = cast.project
    project.plan(("1.1", "Make a", "test -f a.txt"))
    fields = (
        "\n  - **Do**: it\n  - **Files**: b\n  - **Done when**: it is\n  - **Verify**: `x`\n  - **Commit**: feat: b"
    )
    request = {
        "type": "ADD_FOLLOWUP",
        "originalTaskId": "1.1",
        "reasoning": "so",
        "proposedTasks": [f"- [ ] 9 Later{fields}"],
    }
    failed = "I tried.\n\nTask 1.1: Make a FAILED\n- Error: File not found: a.txt\n- Attempted fix: Looked for it"
    asked = f"Done.\n\nTASK_MODIFICATION_REQUEST\n{json.dumps(request)}\n\nTASK_COMPLETE"
    cast.agent(
        "mine",
        {"lines": [INIT, DONE | {"result": failed}], "files": {"half.txt": "half\n"}},
        {"lines": [INIT, DONE], "files": {"a.txt": "a\n"}},
        {"lines": [INIT, DONE | {"result": asked}]},
        {"lines": [INIT, DONE], "files": {"b.txt": "b\n"}},
    )  # fmt: skip
    result = project.ask("run", "tasks.md", "--agent", "mine", "--recovery-mode", "--quiet")
    assert result.code == 0, result
    assert [call["task"] for call in cast.calls("mine")] == ["1.1", "1.1.1", "1.1", "1.1.2"]
    plan = (project.root / "tasks.md").read_text()
    assert "- [x] 1.1.1 [FIX 1.1] Fix: File not found: a.txt\n" in plan
    assert "    1. Analyze the failure: Looked for it\n" in plan
    assert "- [x] 1.1.2 Later\n" in plan


def test_the_next_agent_takes_over_while_one_is_down_and_it_is_tried_again_after_its_rest(cast: Cast) -> None:
    project, clock = cast.project, FakeClock(time=time.time())
    project.plan(*((f"1.{n}", f"Make {n}", f"test -f {n}.txt") for n in (1, 2, 3)))
    every = {f"{n}.txt": "x\n" for n in (1, 2, 3)}
    cast.agent(
        "first", {"lines": [INIT, refused(401, "Invalid API key")], "exit": 1}, {"lines": [INIT, DONE], "files": every}
    )
    cast.agent(
        "second", {"lines": [INIT, DONE], "files": {"1.txt": "x\n"}}, {"lines": [INIT, DONE], "files": {"2.txt": "x\n"}}
    )

    def rest(entry: Entry, _state: RunState) -> None:
        """Let the time of a rest pass once the second task has landed."""
        if isinstance(entry.event, Acted) and entry.event.task == "1.2" and entry.event.commit:
            clock.time += 1000.0

    watcher = Watcher(entry=rest)
    summary = open_run(
        project.root / "tasks.md", agents=["first", "second"], clock=clock, cwd=project.root, watcher=watcher
    ).go()
    assert summary.exit_code == 0, summary
    state = look(project.root).state
    assert {name: [one.agent for one in task.attempts] for name, task in state.tasks.items()} == {
        "1.1": ["first", "second"],
        "1.2": ["second"],
        "1.3": ["first"],
    }
    assert [task.charged for task in state.tasks.values()] == [0, 0, 0]
    notes = "\n".join(summary.notes)
    assert "first is set to rest" in notes
    assert "second takes task 1.1 over" in notes
    assert "first has rested and is tried again with task 1.3" in notes
    result = cast.calls("second")[0]["stdin"]
    assert "Invalid API key" in result, "the next agent is told what happened to the last one"


def test_a_full_context_goes_on_in_a_new_session_with_a_hand_over(cast: Cast) -> None:
    project = cast.project
    project.plan(("1.1", "Make a", "test -f a.txt"))
    full = {"lines": [INIT, refused(400, "Prompt is too long")], "files": {"half.txt": "half\n"}, "exit": 1}
    cast.agent("mine", full, {"lines": [INIT, DONE], "files": {"a.txt": "a\n"}})
    result = project.ask("run", "tasks.md", "--agent", "mine", "--json")
    assert result.code == 0, result
    second = cast.calls("mine")[1]
    assert "--resume" not in second["argv"], "the old session is full"
    assert "half.txt" in second["stdin"]
    assert result.json["tasks"]["1.1"]["attempts"] == 1


def test_a_session_that_is_gone_is_begun_anew_at_no_charge(cast: Cast) -> None:
    project = cast.project
    project.plan(("1.1", "Make a", "test -f a.txt"))
    gone = {
        "type": "result",
        "subtype": "error_during_execution",
        "is_error": True,
        "errors": ["No conversation found with session ID: s-1"],
        "session_id": "x",
    }
    cast.agent(
        "mine",
        {"lines": [INIT, refused(529, "Overloaded")], "exit": 1},
        {"lines": [gone], "exit": 1},
        {"lines": [INIT, DONE], "files": {"a.txt": "a\n"}},
    )
    summary = open_run(
        project.root / "tasks.md", agents=["mine"], clock=FakeClock(time=time.time()), cwd=project.root
    ).go()
    assert summary.exit_code == 0, summary
    assert ["--resume" in call["argv"] for call in cast.calls("mine")] == [False, True, False]
    assert look(project.root).state.tasks["1.1"].charged == 0


def test_an_exit_code_of_0_does_not_hide_a_providers_error(cast: Cast) -> None:
    project = cast.project
    project.plan(("1.1", "Make a", "test -f a.txt"))
    cast.agent(
        "mine",
        {"lines": [INIT, refused(429, "Too many requests")]},
        {"lines": [INIT, DONE], "files": {"a.txt": "a\n"}},
    )
    summary = open_run(
        project.root / "tasks.md", agents=["mine"], clock=FakeClock(time=time.time()), cwd=project.root
    ).go()
    assert summary.exit_code == 0, summary
    assert summary.rows[0].attempts == 1


def test_a_task_has_the_agent_that_the_plan_names(cast: Cast) -> None:
    project = cast.project
    project.file(
        "tasks.md",
        "- [ ] 1.1 Make a\n  - **Agent**: `second`\n  - **Verify**: `test -f a.txt`\n"
        "- [ ] 1.2 Make b\n  - **Agent**: rm -rf /\n  - **Verify**: `test -f b.txt`\n",
    )
    cast.agent("first", {"lines": [INIT, DONE], "files": {"b.txt": "b\n"}})
    cast.agent("second", {"lines": [INIT, DONE], "files": {"a.txt": "a\n"}})
    result = project.ask("run", "tasks.md", "--agent", "first")
    assert result.code == 0, result
    state = look(project.root).state
    assert {name: task.attempts[0].agent for name, task in state.tasks.items()} == {"1.1": "second", "1.2": "first"}


def test_stored_agents_are_kept_when_a_run_goes_on(cast: Cast) -> None:
    project = cast.project
    project.plan(("1.1", "Make a", "test -f a.txt"))
    cast.agent(
        "mine", {"lines": [INIT, refused(401, "no")], "exit": 1}, {"lines": [INIT, DONE], "files": {"a.txt": "a\n"}}
    )
    assert project.ask("run", "tasks.md", "--agent", "mine").code == 3
    assert project.ask("run", "tasks.md").code == 0
    assert len(cast.calls("mine")) == 2
    assert Options(agents=()).quota == "wait"


def test_a_run_whose_agent_was_given_a_secret_goes_on_only_with_the_whole_command(
    project: "Project", tmp_path: Path
) -> None:
    key = "sk-proj-Zx8Kq1Lm2Np3Rs4Tu5Vw6Xy7"
    agent = tmp_path / "agent.sh"
    agent.write_text(f'#!/bin/sh\n[ -e {tmp_path}/may ] && [ "$1" = --key={key} ] && touch a.txt\n')
    agent.chmod(0o755)
    project.plan(("1.1", "Make a", "test -f a.txt"))
    result = project.unstuck("run", "tasks.md", "--agent", f"{agent} --key={key}", "--max-attempts", "1")
    assert result.code == 3, result
    (tmp_path / "may").touch()
    result = project.unstuck("resume")
    assert result.code == 64, result
    assert key not in result.err
    assert "unstuck run tasks.md --agent 'COMMAND'" in result.err, result
    run = project.ask("status", "--json").json["run"]
    assert project.unstuck("run", "tasks.md", "--agent", f"{agent} --key={key}").code == 0
    assert project.ask("status", "--json").json["run"] == run
    assert (project.root / "a.txt").exists()


def test_the_known_agents_are_listed_with_what_was_found(cast: Cast) -> None:
    cast.agent("mine", {})
    result = cast.project.ask("agents", "--json").json
    names = {one["name"]: one for one in result["agents"]}
    assert {"claude", "codex", "gemini", "opencode", "mini", "mine"} <= set(names)
    assert names["mine"]["found"] is True
    assert names["mine"]["version"] is not None, "Python says its version"
    assert "mine" in cast.project.ask("agents").out


def test_a_recorded_session_is_read_by_the_command(cast: Cast, tmp_path: Path) -> None:
    record = tmp_path / "out.jsonl"
    record.write_text("\n".join(json.dumps(line) for line in (INIT, refused(529, "Overloaded"))))
    result = cast.project.ask("agents", "read", "claude", str(record), "--exit-code", "-9", "--json")
    assert result.code == 0, result
    assert (result.json["end"], result.json["session_id"], result.json["claim"]) == ("overloaded", "s-1", "none")
    assert "end: overloaded" in cast.project.ask("agents", "read", "claude", str(record)).out
    unknown = cast.project.ask("agents", "read", "nobody", str(record))
    assert (unknown.code, "no known agent 'nobody'" in unknown.err) == (64, True)


def test_a_hint_reaches_the_session_while_it_works(cast: Cast) -> None:
    project = cast.project
    project.plan(("1.1", "Make a", "test -f a.txt"))
    cast.agent("mine", {"lines": [INIT], "listens": "look in b", "then": {"a.txt": "a\n"}, "last": [DONE]})
    toml = project.root / "unstuck.toml"
    toml.write_text(toml.read_text() + 'steer = ["--input-format", "stream-json"]\n')
    project.git("commit", "--quiet", "-am", "Let it listen")
    with project.start("run", "tasks.md", "--agent", "mine", LISTENS="1") as running:
        wait_until(lambda: any("heard" in call for call in cast.calls("mine")), "a session that listens")
        assert project.ask("retry", "1.1", "--hint", "look in b").code == 0
        out, err = running.communicate(timeout=60)
    assert running.returncode == 0, f"{out}\n{err}"
    heard = [call["heard"] for call in cast.calls("mine") if "heard" in call]
    assert heard[0].startswith("# Task 1.1")
    assert heard[1] == "look in b"
    task = look(project.root).state.tasks["1.1"]
    assert (len(task.attempts), task.attempts[0].sessions) == (1, 1), "the session was not ended for it"
    assert any("reached the running session" in note for note in task.notes)


def test_an_agent_is_checked_with_one_small_task_in_a_scratch_repository(cast: Cast) -> None:
    cast.agent("good", {"lines": [INIT, DONE], "files": {"hello.txt": "hello\n"}})
    cast.agent("idle", {"lines": [INIT, refused(401, "Invalid API key")], "exit": 1})
    result = cast.project.ask("agents", "check", "good", "--json")
    assert result.code == 0, result
    assert (result.json["landed"], result.json["end"], result.json["cost_usd"]) == (True, "done_claimed", 0.5)
    assert not cast.project.home.exists(), "nothing of it is left here"
    idle = cast.project.ask("agents", "check", "idle")
    assert idle.code == 1
    assert "idle does not work without a sandbox: auth_failed" in idle.out
    assert "Invalid API key" in idle.out
