"""The command line as scripts use it: shapes of JSON, streams, exit codes, help."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import wait_until

import unstuck
from unstuck.cli.command_table import COMMANDS
from unstuck.cli.terminal_text import span

if TYPE_CHECKING:
    from tests.project import Project

A = ("1.1", "Make a", "test -f a.txt")
MAKE_A = {"write": "a.txt", "text": "a\n"}
CONTRACT = [
    "demo", "init", "doctor", "plan", "run", "resume", "status", "show", "log", "stop", "retry", "skip", "reset",
    "answer", "diagnose", "agents", "report", "explain", "replay", "policy", "accept", "rollback", "undo", "prune", "bench",
    "verify", "remedy", "experience", "install", "uninstall", "hook", "mcp", "diff", "runs",
    "approve", "go", "draft", "pr", "board", "ui", "docs", "config", "completion", "worker", "fleet",
]  # fmt: skip


# --- JSON ----------------------------------------------------------------------------------------------


def test_run_json_has_the_contracts_shape(project: "Project") -> None:
    project.plan(A)
    project.script(_1_1=[[MAKE_A]])
    result = project.run("--json")
    commit = project.git("rev-parse", "main~1")
    run = result.json["run"]
    assert result.json == {
        "schema": 1,
        "run": run,
        "exit": 0,
        "resume_at": None,
        "tasks": {"1.1": {"status": "complete", "attempts": 1, "commit": commit, "cost_usd": None}},
    }
    again = project.run("--json")
    assert again.json == {"schema": 1, "run": None, "exit": 0, "resume_at": None, "tasks": {}}


def test_every_look_has_json_with_a_schema(half_done: "Project") -> None:
    status = half_done.ask("status", "--json").json
    assert (status["schema"], status["owner"], status["exit"]) == (1, None, 3)
    assert status["tasks"]["1.1"]["status"] == "complete"
    assert status["tasks"]["1.2"] == {
        "title": "Make b",
        "status": "stuck",
        "attempts": 1,
        "commit": None,
        "cost_usd": None,
        "why": status["tasks"]["1.2"]["why"],
        "fixes": None,
        "fix_tasks": [],
        "agent": half_done.agent,
        "seconds": status["tasks"]["1.2"]["seconds"],
        "changes": "",
        "waits_on": "",
        "wait_until": None,
    }
    shown = half_done.ask("show", "1.2", "--json").json
    assert (shown["schema"], shown["phase_id"], shown["status"]) == (1, "1.2", "failed")
    assert shown["error"]["attempt_1"]["type"] == "unknown"
    assert shown["attempts"][0]["kind"] == "check_failed"
    plan = half_done.ask("plan", "tasks.md", "--json").json
    assert (plan["schema"], plan["valid"], plan["batches"]) == (1, True, [["1.1", "1.2"]])
    assert [task["done"] for task in plan["tasks"]] == [True, False]
    doctor = half_done.ask("doctor", "--json").json
    assert doctor["schema"] == 1
    assert {"about", "grade", "says", "remedy"} == set(doctor["findings"][0])
    result = {one["about"]: one["says"] for one in doctor["findings"]}
    assert result["git"].startswith("git version ")
    assert re.fullmatch(r"Left by runs: slots \d, branches 1, snapshots 1\.", result["leftovers"]), result


def test_the_time_of_an_ended_run_stands_still(half_done: "Project") -> None:
    entries = [json.loads(line) for line in half_done.ask("log", "--json").out.splitlines()]
    took = entries[-1]["at"] - entries[0]["at"]
    assert f" of 2 tasks in {span(took)}. " in half_done.ask("status").out


def test_log_json_is_one_object_per_line(half_done: "Project") -> None:
    entries = [json.loads(line) for line in half_done.ask("log", "--json").out.splitlines()]
    assert {entry["schema"] for entry in entries} == {1}
    assert [entry["seq"] for entry in entries] == sorted({entry["seq"] for entry in entries})
    assert entries[0]["event"]["type"] == "run_started"
    assert entries[-1]["event"]["type"] == "run_ended"


def test_an_invalid_plan_is_an_object_too(project: "Project") -> None:
    project.file("tasks.md", "- [ ] 1.1 One\n- [ ] 1.1 Two\n")
    result = project.ask("plan", "tasks.md", "--json")
    assert result.code == 64
    assert result.json["valid"] is False
    assert [problem["line"] for problem in result.json["problems"]] == [2]
    assert "used twice" in result.err


def test_the_files_on_disk_have_the_contracts_names(half_done: "Project") -> None:
    for name in (
        "phases/phase-1.1.json", "attempt_history.json", "build_commits.json", "config.json",
        "logs/execution.log", "logs/task-1.2.log", "reports/1.2.md",
    ):  # fmt: skip
        assert (half_done.home / name).exists(), name
    assert half_done.git("status", "--porcelain", "--ignored").splitlines() == [" M tasks.md", "!! .unstuck/"]
    history = json.loads((half_done.home / "attempt_history.json").read_text())
    assert history["subtasks"]["1.1"]["status"] == "completed"
    assert history["stuck_subtasks"][0]["subtask_id"] == "1.2"


# --- streams -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["run", "-h"], ["log", "--help"]], ids=" ".join)
def test_help_is_a_result_and_goes_to_stdout(project: "Project", arguments: list[str]) -> None:
    result = project.ask(*arguments)
    assert result.code == 0
    assert "unstuck" in result.out
    assert result.err == ""


def test_help_names_every_command_of_the_contract_and_each_explains_itself(project: "Project") -> None:
    assert set(COMMANDS) == set(CONTRACT)
    for name in COMMANDS:
        result = project.ask(name, "--help")
        assert result.code == 0, result
        assert "Usage: unstuck " + name in result.out
        assert re.search(rf"Examples?:\n(?s:.*)unstuck {name}\b", result.out), result
    top = project.ask("--help").out
    assert all(f"  {name} " in top for name in COMMANDS)


def test_colours_go_to_terminals_only(half_done: "Project") -> None:
    for command in (["status"], ["show", "1.2"], ["log"], ["doctor"]):
        assert "\x1b" not in half_done.ask(*command).out


@pytest.mark.parametrize(("value", "coloured"), [("1", False), ("", True)], ids=["NO_COLOR", "unset or empty"])
def test_no_color_is_respected_on_a_terminal(half_done: "Project", value: str, *, coloured: bool) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-P", "-m", "unstuck", "status"]
    subprocess.run(command, cwd=half_done.root, env=os.environ | {"NO_COLOR": value}, stdout=theirs, check=True)
    result = os.read(ours, 1 << 16)
    os.close(theirs)
    os.close(ours)
    assert b"Make a" in result
    assert (b"\x1b[32m" in result) is coloured


def test_a_reader_that_goes_away_is_no_error(half_done: "Project") -> None:
    """As in `unstuck log | head -1`."""
    with half_done.start("log") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        err = process.stderr.read()
    assert process.returncode in (0, 141)
    assert err == ""


def test_the_story_of_a_task_tells_what_was_seen_decided_and_what_to_type(half_done: "Project") -> None:
    story = half_done.ask("show", "1.2").out
    for words in (
        "✘ Task 1.2: Make b (stuck)",
        "the agent ended with exit code 0, without a word",
        "fails: grep -q right b.txt",
        "decided to ask a person",
        "unstuck retry 1.2 --hint",
        "unstuck accept 1.2 --because",
        "unstuck skip 1.2",
    ):
        assert words in story, story


def test_the_output_of_a_check_cannot_steer_the_terminal(project: "Project") -> None:
    project.plan(("1.1", "Make \x1b[2Ja", "printf '\\033[31mred\\033[0m\\033]0;title\\007 text\\n'; test -f a.txt"))
    result = project.run("--max-attempts", "1")
    assert result.code == 3, result
    looks = [project.ask(*command).out for command in (["show", "1.1"], ["log"], ["status"], ["plan", "tasks.md"])]
    assert "red text" in looks[0]
    assert "\x1b" not in result.out + result.err + "".join(looks)


# --- while a run works ---------------------------------------------------------------------------------


def test_log_and_status_follow_what_happens_and_end_with_the_run(project: "Project") -> None:
    project.plan(A)
    gate = project.root.parent / "go"
    project.script(_1_1=[[{"run": f"sh -c 'until test -f {gate}; do sleep 0.05; done'"}, MAKE_A]])
    with project.start("run", "tasks.md", "--agent", project.agent) as running:
        wait_until((project.home / "briefs" / "1.1-1-1.md").exists, "the first brief")
        with project.start("log", "-f") as follower, project.start("status", "--watch", "--json") as watcher:
            assert follower.stdout is not None
            assert watcher.stdout is not None
            assert json.loads(watcher.stdout.readline())["tasks"]["1.1"]["status"] == "running"
            first = follower.stdout.readline()
            assert "started at" in first
            status = project.ask("status", "--json").json
            assert status["owner"]["pid"] == running.pid
            assert status["tasks"]["1.1"]["status"] == "running"
            gate.touch()
            rest = follower.stdout.read()
            last = json.loads(watcher.stdout.read().splitlines()[-1])
        running.communicate(timeout=60)
    assert (follower.returncode, watcher.returncode) == (0, 0)
    assert (last["owner"], last["exit"], last["tasks"]["1.1"]["status"]) == (None, 0, "complete")
    assert "landed as" in rest
    assert rest.splitlines()[-1].endswith("run ended: Every task landed or was settled by a person.")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_lets_the_session_finish_and_names_the_way_on(project: "Project", number: int, code: int) -> None:
    project.plan(A, ("1.2", "Make c", "test -f c.txt"))
    gate = project.root.parent / "go"
    project.script(
        _1_1=[[{"run": f"sh -c 'until test -f {gate}; do sleep 0.05; done'"}, MAKE_A]], _1_2=[[{"write": "c.txt"}]]
    )
    with project.start("run", "tasks.md", "--agent", project.agent) as running:
        wait_until((project.home / "briefs" / "1.1-1-1.md").exists, "the first brief")
        running.send_signal(number)
        assert running.stderr is not None
        while "Stopping: nothing new starts" not in (line := running.stderr.readline()):
            assert line, "it ended without a word"
        gate.touch()
        out, _ = running.communicate(timeout=60)
    assert running.returncode == code, out
    assert "unstuck resume" in out
    assert project.status() == {"1.1": "complete", "1.2": "pending"}
    assert project.unstuck("resume").code == 0


# --- the rest of the commands --------------------------------------------------------------------------


def test_init_writes_a_configuration_that_a_run_can_use(project: "Project") -> None:
    project.git("rm", "-q", "unstuck.toml")
    result = project.unstuck("init")
    assert result.code == 0, result
    assert (project.root / "unstuck.toml").read_text().strip() == result.out.strip()
    assert project.ask("doctor").code in (0, 69)
    again = project.ask("init")
    assert again.code == 64, again
    assert "--force" in again.err


def test_the_library_runs_a_plan_in_five_lines(project: "Project") -> None:
    project.plan(A)
    project.script(_1_1=[[MAKE_A]])
    code = (
        "import sys, unstuck\n"
        "assert not {'pydantic', 'click', 'rich'} & set(sys.modules)\n"
        f"summary = unstuck.open_run('tasks.md', agents=[{project.agent!r}]).go()\n"
        "print(summary.exit_code, [(row.id, row.status) for row in summary.rows])\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=project.root, capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout == "0 [('1.1', 'complete')]\n"


def test_the_version_is_the_packages(project: "Project") -> None:
    result = project.unstuck("--version")
    assert result.out == f"unstuck, version {unstuck.__version__}\n"


def test_a_plain_command_is_an_agent_with_the_brief_on_stdin_and_in_a_file(project: "Project") -> None:
    project.plan(A)
    agent = project.root.parent / "agent.sh"
    agent.write_text(
        'cat > a.txt; cmp a.txt "$3" && cmp a.txt "$UNSTUCK_BRIEF"\n'
        'test "$1 $2 $4" = "1.1 1 $PWD" && test "$UNSTUCK_TASK $UNSTUCK_ATTEMPT" = "1.1 1" && test -n "$UNSTUCK_RUN"\n'
    )
    result = project.unstuck("run", "tasks.md", "--agent", f"sh -e {agent} {{task}} {{attempt}} {{brief}} {{worktree}}")
    assert result.code == 0, result
    assert "# Task 1.1: Make a" in (project.root / "a.txt").read_text()


def test_an_agent_may_be_named_by_a_path_from_where_the_user_is_though_git_does_not_carry_it(
    project: "Project",
) -> None:
    project.plan(A)
    agent = project.file("mine/agent.sh", "#!/bin/sh\necho made > a.txt\n", commit=False)
    agent.chmod(0o755)
    result = project.unstuck("run", "../tasks.md", "--agent", "./agent.sh", cwd=agent.parent)
    assert result.code == 0, result
    assert (project.root / "a.txt").read_text() == "made\n"


def test_a_run_that_goes_on_says_which_new_options_it_does_not_take(project: "Project") -> None:
    project.plan(("1.1", "Make a", "false"))
    assert project.run("--max-attempts", "1", "--quota", "exit").code == 3
    result = project.run("--max-attempts", "1", "--quota", "wait", "--recovery-mode", "--parallel", "4")
    assert "Not taken, because this run goes on as it began: --recovery-mode, --quota." in result.err


def test_a_demo_leaves_nothing_but_what_is_to_be_kept(project: "Project", tmp_path: Path) -> None:
    state, kept = tmp_path / "state", tmp_path / "kept"
    result = project.unstuck("demo", "--keep", str(kept), XDG_STATE_HOME=str(state), TMPDIR=str(tmp_path))
    assert result.code == 0, result
    assert str(kept) in result.out
    assert not state.exists(), "no slots, and no lessons from scripted failures"
    assert not [*tmp_path.glob("unstuck-demo-*")]
    assert project.ask("show", "1.1", cwd=kept).code == 0


def test_a_demo_is_not_kept_where_a_file_is(project: "Project") -> None:
    for place in ("readme.txt", "readme.txt/demo"):
        result = project.ask("demo", "--keep", place)
        assert (result.code, "Traceback" in result.err) == (64, False), result


def test_a_benchmark_that_is_not_there_is_answered_with_those_that_are(project: "Project") -> None:
    result = project.ask("bench", "naught")
    assert result.code == 64
    assert "There is no benchmark 'naught'. There are: overhead, " in result.err


def test_a_second_agent_takes_over_where_the_first_one_fails(project: "Project") -> None:
    project.plan(A)
    result = project.unstuck("run", "tasks.md", "--agent", "sh -c 'exit 7'", "--agent", "touch a.txt", "--json")
    assert result.code == 0, result
    agents: list[Any] = [attempt["agent"] for attempt in project.ask("show", "1.1", "--json").json["attempts"]]
    assert agents[0] == "sh -c 'exit 7'"
    assert agents[-1] == "touch a.txt"


def test_a_plan_is_read_without_loading_a_run(project: "Project") -> None:
    project.file("tasks.md", "- [ ] 1.1 Do it\n  - **Verify**: `test -f x`\n")
    code = (
        "import sys; from unstuck.cli import run_cli; run_cli(['plan', 'tasks.md', '--json']);"
        "print([name for name in sys.modules if name.startswith(('unstuck.engine.', 'unstuck.verify.', 'unstuck.journal.'))])"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=project.root, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"
