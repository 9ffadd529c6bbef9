"""Auto-Claude's boxes, each as a story on real git: what was seen, what was done about it, and that nothing was lost."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import pytest
from tests.project import LIMITS

from unstuck.app.inspect import look
from unstuck.app.open_run import open_run
from unstuck.journal.run_state import RunState
from unstuck.model.failure import KINDS
from unstuck.testing import FakeClock

if TYPE_CHECKING:
    from tests.project import Project, Step

PYTHON_BUILD = "python3 -m py_compile app.py"
BROKEN: "Step" = {"write": "app.py", "text": "def broken(:\n"}
SOUND: "Step" = {"write": "app.py", "text": "def sound():\n    return 1\n"}
RIGHT: "Step" = {"write": "a.txt", "text": "right\n"}
OUT_OF_CONTEXT: "Step" = {"error": "API Error: 400 prompt is too long: 210000 tokens > 200000 maximum"}
STANDARD = ("--profile", "standard")


def state_of(project: "Project") -> RunState:
    return look(project.root).state


def brief_of(project: "Project", name: str) -> str:
    return (project.home / "briefs" / f"{name}.md").read_text()


def actions(project: "Project", task: str = "1.1") -> list[str]:
    attempts = state_of(project).tasks[task].attempts
    return [attempt.decision.action.type for attempt in attempts if attempt.decision]


@pytest.mark.parametrize("profile", ["standard", "adaptive"])
def test_a_broken_build_is_rolled_back_and_nothing_is_lost(project: "Project", profile: str) -> None:
    project.file("app.py", SOUND["text"])
    project.plan(("1.1", "First", "test -f first.txt"), ("1.2", "Extend the app", PYTHON_BUILD + " && test -f b.txt"))
    broken = [BROKEN, {"write": "new.txt", "text": "untracked work\n"}]
    project.script(_1_1=[[{"write": "first.txt"}]], _1_2=[broken, [SOUND, {"write": "b.txt"}]])
    result = project.run("--profile", profile)
    assert result.code == 0, result
    assert actions(project, "1.2") == ["rollback", "accept"]
    kept = state_of(project).tasks["1.2"].attempts[0].snapshot
    assert project.git("show", f"{kept}:new.txt") == "untracked work"
    assert "def broken(:" in project.git("show", f"{kept}:app.py")
    assert not (project.root / "new.txt").exists(), "the second attempt began at the checkpoint"
    assert str(kept) in brief_of(project, "1.2-2-1"), "the next attempt is told where the old work is"


def test_a_broken_build_without_a_green_commit_is_a_persons_under_standard(project: "Project") -> None:
    project.settings(f"{LIMITS}[checks]\ntest = \"sh -c 'echo FAILED tests/x.py::a; exit 1'\"\n")
    project.plan(("1.1", "Write the app", PYTHON_BUILD))
    project.script(_1_1=[[BROKEN]])
    result = project.run(*STANDARD)
    assert result.code == 3, result
    assert actions(project) == ["escalate"]


def test_endless_breaking_ends_after_two_rollbacks_with_a_person(project: "Project") -> None:
    project.plan(("1.1", "First", "test -f first.txt"), ("1.2", "Write the app", PYTHON_BUILD))
    attempts = [[{"write": "app.py", "text": f"def {name}(:\n"}, {"print": f"APPROACH: {name}"}] for name in "abcde"]
    project.script(_1_1=[[{"write": "first.txt"}]], _1_2=attempts)
    assert project.run(*STANDARD).code == 3
    assert actions(project, "1.2") == ["rollback", "rollback", "escalate"]


SIMILAR = ("Using async await for fetch", "Using async/await with try-catch", "Using async await pattern")
DIFFERENT = ("Rewrite the parser", "Use a callback", "Cache the answer")


@pytest.mark.parametrize(
    ("approaches", "circular"), [(SIMILAR, True), (DIFFERENT, False)], ids=["similar", "different"]
)
def test_a_circle_is_stopped_at_the_third_similar_try_and_not_before(
    project: "Project", approaches: tuple[str, ...], circular: bool
) -> None:
    project.plan(("1.1", "Fetch", "grep -q right a.txt"))
    tries = [
        [{"write": "a.txt", "text": f"{approach}\n"}, {"print": f"APPROACH: {approach}"}] for approach in approaches
    ]
    project.script(_1_1=[*tries, [RIGHT]])
    result = project.run()
    task = state_of(project).tasks["1.1"]
    assert (result.code, len(task.attempts)) == ((3, 3) if circular else (0, 4)), result
    last = task.attempts[2]
    assert last.failure is not None
    assert last.failure.kind == "check_failed", "a circle overrides the action, never the kind"
    assert (last.decision is not None and last.decision.rung.startswith("circular_fix")) is circular


@pytest.mark.parametrize("profile", ["standard", "adaptive"])
def test_a_spent_context_goes_on_in_a_new_session_with_a_hand_over_and_charges_nothing(
    project: "Project", profile: str
) -> None:
    project.plan(("1.1", "Make two files", "test -f one.txt && test -f two.txt"))
    first = [{"write": "one.txt", "text": "half\n"}, OUT_OF_CONTEXT, {"exit": 1}]
    project.script(_1_1=[{"sessions": [first, [{"write": "two.txt"}]]}])
    result = project.run("--profile", profile)
    assert result.code == 0, result
    task = state_of(project).tasks["1.1"]
    assert (len(task.attempts), task.charged, task.current.sessions) == (1, 0, 2)
    handed = brief_of(project, "1.1-1-2").partition("## Hand-over")[2]
    assert "This is session 2 of attempt 1" in handed
    assert "one.txt" in handed
    assert "Checks that do not pass yet" in handed
    assert project.git("log", "-1", "--format=%s", "HEAD~1") == "Make two files", "no unverified commit on the branch"


def test_a_context_that_is_always_spent_ends_with_a_person(project: "Project") -> None:
    project.plan(("1.1", "Make two files", "test -f two.txt"))
    project.script(_1_1=[[OUT_OF_CONTEXT, {"exit": 1}]])
    assert project.run(*STANDARD).code == 3
    task = state_of(project).tasks["1.1"]
    assert (task.current.sessions, task.charged) == (5, 0)


def test_an_unknown_failure_is_tried_once_more_and_then_a_person_is_asked(project: "Project") -> None:
    project.plan(("1.1", "Do it", "test -f never.txt"))
    strange = {"error": "the moon is in the wrong house"}
    project.script(_1_1=[[strange, {"exit": 9}], [{"write": "other.txt"}, strange, {"exit": 9}]])
    assert project.run(*STANDARD).code == 3
    kinds = [attempt.failure.kind for attempt in state_of(project).tasks["1.1"].attempts if attempt.failure]
    assert ({KINDS[kind].type for kind in kinds}, actions(project)) == ({"UNKNOWN"}, ["retry", "escalate"])


def test_verification_gets_three_attempts_and_then_a_person(project: "Project") -> None:
    project.plan(("1.1", "Do it", "python3 test_it.py"), ("1.2", "Independent", "test -f b.txt"))
    tries = [
        [
            {
                "write": "test_it.py",
                "text": f"value = {number}\nassert value == 200, f'Expected 200 but got {{value}}'\n",
            },
            {"print": f"APPROACH: {word}"},
        ]
        for number, word in ((404, "routing"), (500, "caching"), (301, "headers"), (200, "never reached"))
    ]
    project.script(_1_1=tries, _1_2=[[{"write": "b.txt"}]])
    assert project.run(*STANDARD).code == 3
    assert actions(project) == ["retry", "retry", "escalate"]
    assert project.status() == {"1.1": "stuck", "1.2": "complete"}, "what is independent goes on"


# --- waiting for a quota -------------------------------------------------------------------------------

QUOTA = "Claude AI usage limit reached|{at}"
DIES_WAITING = """
    import os, signal, sys
    from unstuck.app.open_run import open_run
    from unstuck.testing import FakeClock

    class Doomed(FakeClock):
        def wait(self, seconds):
            os.kill(os.getpid(), signal.SIGKILL)

    open_run("tasks.md", agents=[sys.argv[1]], clock=Doomed(float(sys.argv[2]))).go()
"""


def test_a_quota_is_waited_for_over_the_supervisors_death_and_charges_nothing(project: "Project") -> None:
    now = float(int(time.time()))
    reset = now + 5 * 3600
    project.plan(("1.1", "Make a", "grep -q right a.txt"))
    limited: list[Step] = [{"write": "half.txt"}, {"print": QUOTA.format(at=int(reset))}, {"exit": 1}]
    project.script(_1_1=[{"sessions": [limited, [RIGHT]]}])
    died = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(DIES_WAITING), project.agent, str(now)],
        cwd=project.root,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    waiting = state_of(project).tasks["1.1"]
    assert waiting.status == "waiting"
    assert waiting.wait_until is not None
    assert reset <= waiting.wait_until <= reset + 120
    clock = FakeClock(now + 60)
    result = open_run(project.root / "tasks.md", agents=[project.agent], cwd=project.root, clock=clock).go()
    assert result.exit_code == 0, result
    assert waiting.wait_until <= clock.now() < waiting.wait_until + 60, "it went on at the time that was decided on"
    task = state_of(project).tasks["1.1"]
    assert (len(task.attempts), task.charged, task.current.sessions) == (1, 0, 2)
    assert project.git("ls-tree", "--name-only", "HEAD", "half.txt") == "half.txt", "its work was still there"


# --- what came before ------------------------------------------------------------------------------------

PREDECESSOR = {
    "subtasks": {
        "1.1": {
            "attempts": [
                {
                    "session": 1,
                    "timestamp": "2026-01-24T10:00:00Z",
                    "approach": "Using async/await pattern",
                    "success": False,
                    "error": "Test failed: expected 200 got 404",
                },
                {
                    "session": 1,
                    "timestamp": "2026-01-24T10:15:00Z",
                    "approach": "Using callback pattern",
                    "success": False,
                    "error": "Test failed: expected 200 got 500",
                },
            ],
            "status": "failed",
        }
    },
    "stuck_subtasks": [],
}
HINTS = """\
Previous attempts: 2

Attempt 1: Using async/await pattern - FAILED
  Error: Test failed: expected 200 got 404

Attempt 2: Using callback pattern - FAILED
  Error: Test failed: expected 200 got 500
"""


@pytest.mark.parametrize("place", [".unstuck", "memory", "."])
def test_a_predecessors_attempts_are_told_and_kept_and_use_up_no_budget(project: "Project", place: str) -> None:
    folder = project.root / place
    folder.mkdir(exist_ok=True)
    (folder / "attempt_history.json").write_text(json.dumps(PREDECESSOR))
    project.plan(("1.1", "Make a", "grep -q right a.txt"))
    project.script(_1_1=[[{"print": "APPROACH: another library"}, RIGHT]])
    result = project.run("--max-attempts", "1")
    assert result.code == 0, result
    brief = brief_of(project, "1.1-1-1")
    assert HINTS in brief
    assert "IMPORTANT: Try a DIFFERENT approach than previous attempts" in brief
    history = json.loads((project.home / "attempt_history.json").read_text())
    attempts = history["subtasks"]["1.1"]["attempts"]
    assert attempts[:2] == PREDECESSOR["subtasks"]["1.1"]["attempts"]  # type: ignore[index]  # a plain table
    assert attempts[2] == attempts[2] | {"approach": "another library", "success": True, "error": None}


def test_good_commits_are_kept_in_order_and_survive_a_reopened_journal(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"), ("1.2", "Make b", "test -f b.txt"))
    project.script(_1_1=[[RIGHT]], _1_2=[[{"write": "b.txt"}]])
    assert project.run().code == 0
    commits = json.loads((project.home / "build_commits.json").read_text())
    landed = [state_of(project).tasks[name].commit for name in ("1.1", "1.2")]
    assert [commit["hash"] for commit in commits["commits"]] == landed
    assert commits["last_good_commit"] == landed[-1]


# --- a person ------------------------------------------------------------------------------------------

REPORT = """\
## Stuck Subtask: 1.1

### Summary
{summary}

### Attempts Made
1. Attempt 1: routing - {error}

### Error Details
```text
{detail}
```

### Files Involved
- a.txt (changed by the agent)

### Recommended Actions
- [ ] Review error logs
- [ ] Check external dependencies
- [ ] Consider alternative approach
"""


def test_the_report_is_auto_claudes_and_adds_the_question_and_the_ways_on(project: "Project") -> None:
    project.plan(("1.1", "Do it", "echo the check says no; false"))
    project.script(_1_1=[[{"write": "a.txt"}, {"print": "APPROACH: routing"}]])
    assert project.run("--max-attempts", "1", *STANDARD).code == 3
    text = project.ask("report", "1.1").out
    failure = state_of(project).tasks["1.1"].attempts[0].failure
    assert failure is not None
    head, _, rest = text.partition("\n### Question\n")
    assert failure.error == "the check says no, from `echo the check says no; false`"
    expected = REPORT.format(summary=failure.summary, error=failure.error, detail=failure.detail.strip())
    assert head.replace(f"One attempt was made, none passed. Last: {failure.summary}", failure.summary) == expected
    for part in ("unstuck answer 1.1", "unstuck retry 1.1 --hint", "unstuck accept 1.1 --because", "unstuck skip 1.1"):
        assert part in rest
    assert ".unstuck/logs/task-1.1.log" in rest
    assert (project.home / "reports" / "1.1.md").read_text() == text.rstrip("\n") + "\n"


def test_one_cause_in_many_tasks_is_asked_once(project: "Project") -> None:
    project.plan(("1.1", "Think", ""), ("1.2", "Think more", ""), ("1.3", "Make a", "grep -q right a.txt"))
    project.script(_1_1=[[{"write": "x"}]], _1_2=[[{"write": "y"}]], _1_3=[[{"write": "a.txt"}]])
    assert project.run("--max-attempts", "1").code == 3
    report = project.ask("report").out
    assert report.count("Nothing could check the work: is it right as it is?") == 2
    assert "One cause, 2 tasks: 1.1, 1.2." in report
    assert report.count("## Stuck Subtask:") == 2


def test_a_pause_file_stops_the_run_and_shows_its_text(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[RIGHT]])
    project.home.mkdir(exist_ok=True)
    (project.home / "PAUSE").write_text("not before Monday\n")
    result = project.run()
    assert (result.code, project.status()["1.1"]) == (3, "pending"), result
    assert "not before Monday" in result.out
    (project.home / "PAUSE").unlink()
    assert project.unstuck("resume").code == 0
