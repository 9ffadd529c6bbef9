"""Faults that concern every task are one fault: found once, told once, and paid for once."""

import os
import shlex
import shutil
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.project import LIMITS
from tests.sampling import some

from unstuck.app.inspect import look
from unstuck.app.open_run import open_run
from unstuck.testing import FakeClock

if TYPE_CHECKING:
    from tests.project import Project

TEN = tuple((f"1.{number}", f"Make {number}", f"test -f {number}.txt") for number in range(1, 11))
TEN_AT_ONCE = tuple((f"{head} [P]", title, check) for head, title, check in TEN)
REFUSES = """import os, pathlib, sys
with pathlib.Path({calls!r}).open("a") as file:
    print(os.environ.get("UNSTUCK_TASK"), *sys.argv[1:], file=file)
if "--version" in sys.argv:
    print("agent 1.2.3")
elif "--bad" in sys.argv:
    print({words!r}, file=sys.stderr)
    print("Run with --help for the options.", file=sys.stderr, flush=True)
    os.kill(os.getpid(), -{code}) if {code} < 0 else sys.exit({code})
"""
UNKNOWN_FLAG = "error: unknown option '--bad'"


def refusing(project: "Project", code: int = 1, words: str = UNKNOWN_FLAG) -> tuple[str, Path]:
    """Write an agent that knows no flag `--bad`; return its command line and the list of its calls."""
    calls = project.root.parent / "calls.txt"
    program = project.root.parent / "agent.py"
    program.write_text(REFUSES.format(calls=str(calls), code=code, words=words))
    return shlex.join([sys.executable, str(program), "--bad"]), calls


def state_of(project: "Project") -> Any:
    return look(project.root).state


def sessions(project: "Project") -> int:
    """Count the sessions of all tasks."""
    return sum(attempt.sessions for task in state_of(project).tasks.values() for attempt in task.attempts)


@pytest.mark.parametrize("profile", ["adaptive", "standard", "max-retries", "fix-tasks"])
def test_a_broken_agent_command_is_found_before_a_second_task_pays(project: "Project", profile: str) -> None:
    project.plan(*TEN)
    agent, calls = refusing(project)
    result = project.unstuck("run", "tasks.md", "--agent", agent, "--profile", profile)
    assert result.code == 3, result
    called = calls.read_text().splitlines()
    assert [line.split()[0] for line in called if "--version" not in line] == ["1.1", "probe"], "one session, one probe"
    assert "unknown option '--bad'" in result.out, "the agent's own words"
    assert "\n  Error: agent_missing\n" in result.out, "and ours: the word that the log and the story have"
    state = state_of(project)
    assert "unknown option '--bad'" in state.halted
    assert [name for name, task in state.tasks.items() if task.question] == ["1.1"], "one question"
    assert sessions(project) == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (UNKNOWN_FLAG, 0),
        ("API Error (404): model x-9 does not exist", 0),
        ("malloc(): corrupted top size", -11),
        ("ModuleNotFoundError: No module named 'aider'", 1),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'rate limit.json'", 1),
        ("ImportError: cannot import name 'RateLimitError' from 'openai'", 1),
        ("AttributeError: module 'openai' has no attribute 'APITimeoutError'", 1),
        ("Error: Cannot find module './connection refused.js'", 1),
        ("./agent.sh: line 3: 77 Terminated model-cli", 143),
    ],
    ids=["flag", "model", "crash", "module", "file", "name", "attribute", "node", "terminated"],
)
def test_an_agent_that_refuses_and_ends_well_or_crashes_is_as_broken(project: "Project", words: str, code: int) -> None:
    project.plan(*TEN[:3])
    agent, calls = refusing(project, code, words)
    result = project.unstuck("run", "tasks.md", "--agent", agent)
    assert result.code == 3, result
    assert [line.split()[0] for line in calls.read_text().splitlines() if "--version" not in line] == ["1.1", "probe"]
    assert words in state_of(project).halted
    assert sessions(project) == 1


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        ("Error: 429 rate limit exceeded. You have hit your usage limit. Try again in 3 hours.", 1, "rate_limited"),
        ("You've reached your usage limit. Try again in 3 hours.", 0, "rate_limited"),
        ("Error: API Error: 500 internal server error", 0, "provider_overloaded"),
        ("Error: Your credit balance is too low", 1, "billing"),
        ("Error: Invalid API key. Please run /login", 1, "auth_failed"),
        ("You are not logged in. Run `agent login`.", 0, "auth_failed"),
    ],
    ids=["limit", "limit-well", "server-well", "billing", "key", "login-well"],
)
def test_a_provider_that_turns_a_command_away_is_no_broken_agent_and_no_claim(
    project: "Project", words: str, code: int, kind: str
) -> None:
    project.plan(*TEN[:2])
    agent, calls = refusing(project, code, words)
    result = project.unstuck("run", "tasks.md", "--agent", agent, "--quota", "exit")
    person = kind in {"auth_failed", "billing"}
    assert result.code == (3 if person else 75), result
    failure = state_of(project).tasks["1.1"].current.failure
    assert failure.kind == kind
    assert words.removeprefix("Error: ").removeprefix("API Error: ") in failure.summary
    assert ("is not logged in" in result.out) is (kind == "auth_failed")
    assert calls.read_text().splitlines() == ["1.1 --bad"], "no probe, and no second task pays"


def test_a_limit_that_is_told_before_the_agent_falls_over_it_is_still_a_limit(project: "Project") -> None:
    project.plan(*TEN[:2])
    crash = "AttributeError: 'str' object has no attribute 'body'"
    agent, _ = refusing(project, 1, f"openai.RateLimitError: 429. Try again in 3 hours.\n{crash}")
    result = project.unstuck("run", "tasks.md", "--agent", agent, "--quota", "exit")
    assert result.code == 75, result
    assert state_of(project).tasks["1.1"].current.failure.kind == "rate_limited"


def test_the_code_that_a_traceback_shows_is_no_word_of_a_provider(project: "Project") -> None:
    project.plan(*TEN[:2])
    crash = "Traceback (most recent call last):\n    from openai import RateLimitError\nImportError: cannot import name 'RateLimitError'"
    agent, _ = refusing(project, 1, crash)
    result = project.unstuck("run", "tasks.md", "--agent", agent, "--quota", "exit")
    assert result.code == 3, result
    assert "ImportError: cannot import name" in state_of(project).halted


def test_what_an_agent_says_of_its_work_is_no_word_of_its_provider(project: "Project") -> None:
    project.plan(("1.1", "Make a", "true"))
    project.script(_1_1=[[{"print": "The login page is there: please log in to see its rate limit and quota."}]])
    project.run("--quota", "exit")
    assert state_of(project).tasks["1.1"].attempts[0].outcome.claim == "done"


def test_tasks_side_by_side_learn_of_a_broken_agent_from_the_first(project: "Project") -> None:
    project.plan(*TEN_AT_ONCE)
    agent, calls = refusing(project)
    result = project.unstuck("run", "tasks.md", "--agent", agent, "--parallel", "3")
    assert result.code == 3, result
    assert sum(line.startswith("probe --bad") for line in calls.read_text().splitlines()) == 1
    assert len([task for task in state_of(project).tasks.values() if task.question]) == 1
    assert sessions(project) <= 3

    program = project.root.parent / "agent.py"
    program.write_text('import os, pathlib\npathlib.Path(os.environ["UNSTUCK_TASK"][2:] + ".txt").touch()\n')
    result = project.unstuck("resume")
    assert result.code == 0, result
    assert sum(subject.startswith("Make ") for subject in project.commits()) == 10, "repaired, and every task once"


def test_an_agent_that_neither_says_nor_does_anything_is_one_fault(project: "Project") -> None:
    project.plan(*TEN[:4])
    result = project.unstuck("run", "tasks.md", "--agent", "true")
    assert result.code == 3, result
    assert "one problem" in state_of(project).halted
    assert "true said nothing, and changed nothing" in " ".join(result.out.split())
    assert sessions(project) == 7, "the third task meets it once"


def test_another_agent_takes_over_from_a_broken_one(project: "Project") -> None:
    project.plan(*TEN[:3])
    agent, calls = refusing(project)
    project.script(**{f"_1_{number}": [[{"write": f"{number}.txt"}]] for number in (1, 2, 3)})
    result = project.unstuck("run", "tasks.md", "--agent", agent, "--agent", project.agent)
    assert result.code == 0, result
    assert sum("--version" not in line for line in calls.read_text().splitlines()) == 2
    assert sessions(project) == 4


def test_a_session_that_fails_at_once_for_its_task_alone_is_no_fault_of_the_agent(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[{"exit": 1}], [{"write": "a.txt"}]])
    result = project.run()
    assert result.code == 0, result
    assert any("is asked for one word" in note for note in state_of(project).notes)


# --- what nobody can repair by trying again --------------------------------------------------------------

PROFILES = ("adaptive", "standard", "max-retries", "fix-tasks", "single-retry")
GOES_ON = {"adaptive", "standard"}
"""Profiles in which a stuck task does not halt the run."""


@pytest.mark.parametrize("profile", PROFILES)
def test_what_a_check_has_not_is_asked_for_after_one_session(project: "Project", profile: str) -> None:
    project.plan(
        ("1.1 [P]", "Make a", "no-such-command-here a.txt"),
        ("1.2 [P]", "Make b", "python3 -c 'import no_such_package_here'"),
        ("1.3", "Make c", "test -f c.txt"),
    )
    project.script(_1_1=[[{"write": "a.txt"}]], _1_2=[[{"write": "b.txt"}]], _1_3=[[{"write": "c.txt"}]])
    result = project.run("--profile", profile, "--parallel", "2")
    assert result.code == 3, result
    tasks = state_of(project).tasks
    assert {name: sum(one.sessions for one in tasks[name].attempts) for name in ("1.1", "1.2")} == {"1.1": 1, "1.2": 1}
    assert all(tasks[name].question for name in ("1.1", "1.2"))
    assert (tasks["1.3"].status == "complete") is (profile in GOES_ON), "a task that does not need it goes on"


def test_once_a_person_has_brought_what_a_check_had_not_the_work_that_is_there_lands(
    project: "Project", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "bin" / "no-such-command-here"
    tool.parent.mkdir()
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    project.plan(("1.1", "Make a", "no-such-command-here a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]])
    assert project.run().code == 3
    tool.write_text("#!/bin/sh\ntest -f $1\n")
    tool.chmod(0o755)
    result = project.unstuck("resume")
    assert (result.code, sessions(project)) == (0, 1), result


def test_what_the_work_itself_asks_for_is_the_agents_to_leave_out(project: "Project") -> None:
    project.plan(("1.1", "Make a", "python3 a.py"))
    project.script(
        _1_1=[[{"write": "a.py", "text": "import no_such_package_here\n"}], [{"write": "a.py", "text": "print(1)\n"}]]
    )
    result = project.run()
    assert result.code == 0, result


def test_a_set_up_that_fails_halts_before_anybody_pays(project: "Project") -> None:
    project.plan(*TEN[:3])
    project.settings(f"{LIMITS}[workspace]\nsetup = [\"sh -c 'echo no registry today; exit 3'\"]\n")
    result = project.run()
    assert result.code == 3, result
    state = state_of(project)
    assert sessions(project) == 0
    assert "A set-up command of the worktree fails" in state.halted
    assert [name for name, task in state.tasks.items() if task.question] == ["1.1"]


@pytest.mark.parametrize(
    ("says", "asks"),
    [
        ("bash: no-such-linter: command not found", "Please install no-such-linter"),
        ("Error: DATABASE_URL is not set", "Please set DATABASE_URL"),
        ("fatal: Authentication failed for 'https://example.invalid/x.git'", "Please log in to example.invalid"),
    ],
)
def test_a_gate_that_cannot_run_halts_before_anybody_pays_and_is_not_excused_for_it(
    project: "Project", says: str, asks: str
) -> None:
    project.plan(*TEN[:2])
    project.file("gate.py", f"import sys\nsys.exit({says!r})\n")
    project.settings(f'{LIMITS}[checks]\nlint = "python3 gate.py"\n')
    result = project.run()
    assert result.code == 3, result
    assert sessions(project) == 0
    assert says in state_of(project).halted
    assert asks in " ".join(result.out.split())


def test_what_a_gate_cannot_begin_without_may_be_a_task_of_the_plan(project: "Project") -> None:
    project.settings(f'{LIMITS}[checks]\nlint = "no-such-linter ."\n')
    project.plan(("1.1", "Write the script no-such-linter", "test -f a.txt"), name="next.md")
    project.script(_1_1=[[{"write": "a.txt"}]])
    assert project.run(plan="next.md").code == 3
    assert sessions(project) == 1, "what a task brings is looked at after it"


# --- what a check meets on its way ---------------------------------------------------------------------------

OUTAGE = """import pathlib, sys
count = pathlib.Path({count!r})
runs = int(count.read_text()) if count.exists() else 0
count.write_text(str(runs + 1))
if runs < {until}:
    sys.exit({says!r})
"""
NETWORK = "curl: (6) Could not resolve host: registry.example.invalid"
FULL = "OSError: [Errno 28] No space left on device"


def outage(project: "Project", says: str, until: int) -> Path:
    """Commit a check that meets trouble for so many runs."""
    count = project.root.parent / "runs"
    project.file("check.py", OUTAGE.format(count=str(count), until=until, says=says))
    return count


def ran(project: "Project", *arguments: str) -> Any:
    clock = FakeClock(1_800_000_000.0)
    run = open_run(project.root / "tasks.md", agents=[project.agent, *arguments], cwd=project.root, clock=clock)
    return run.go(), clock.time - 1_800_000_000.0


def test_an_agent_that_the_machine_cannot_start_just_now_is_started_again(project: "Project") -> None:
    agent = project.root.parent / "agent"
    agent.write_text("#!/bin/sh\necho hello > a.txt\n")
    agent.chmod(0o755)
    project.plan(("1.1", "Make a", "test -f a.txt"))
    with agent.open("a") as busy:  # the kernel starts nothing that somebody still writes: "Text file busy"

        class Patient(FakeClock):
            def wait(self, seconds: float) -> None:
                busy.close()
                super().wait(seconds)

        clock = Patient(1_800_000_000.0)
        run = open_run(project.root / "tasks.md", agents=[str(agent)], cwd=project.root, clock=clock)
        result = run.go()
    assert result.exit_code == 0, result
    assert [len(task.attempts) for task in state_of(project).tasks.values()] == [1], "nobody pays for it"


@pytest.mark.parametrize("says", [NETWORK, FULL], ids=["network", "disk"])
def test_trouble_that_a_check_meets_is_waited_out_without_a_session_while_others_go_on(
    project: "Project", says: str
) -> None:
    outage(project, says, 4)
    project.plan(
        ("1.1", "Make a", "python3 check.py"), ("1.2", "Make b", "test -f b.txt"), ("1.3", "Make c", "test -f c.txt")
    )
    project.script(_1_1=[[{"write": "a.txt"}]], _1_2=[[{"write": "b.txt"}]], _1_3=[[{"write": "c.txt"}]])
    result, seconds = ran(project)
    assert result.exit_code == 0, result
    assert sessions(project) == 3, "a check is run again, not an agent"
    landed = [subject for subject in reversed(project.commits()) if subject.startswith("Make")]
    assert landed == ["Make b", "Make c", "Make a"], "what waits holds back only what depends on it"
    assert "then tries again" in project.ask("log").out
    assert seconds < 600


def test_trouble_that_a_gate_meets_before_any_work_is_waited_out_before_anybody_pays(project: "Project") -> None:
    outage(project, NETWORK, 3)
    project.settings(f'{LIMITS}[checks]\nlint = "python3 check.py"\n')
    project.plan(TEN[0])
    project.script(_1_1=[[{"write": "1.txt"}]])
    result, seconds = ran(project)
    assert (result.exit_code, sessions(project)) == (0, 1), result
    assert 5 < seconds < 600


def test_a_check_whose_network_stays_away_is_a_question_within_minutes(project: "Project") -> None:
    outage(project, NETWORK, 1000)
    project.plan(("1.1", "Make a", "python3 check.py"), ("1.2", "Make b", "test -f b.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]], _1_2=[[{"write": "b.txt"}]])
    result, seconds = ran(project)
    assert result.exit_code == 3, result
    tasks = state_of(project).tasks
    assert (tasks["1.1"].status, tasks["1.2"].status) == ("stuck", "complete")
    assert sessions(project) == 2
    assert 60 < seconds < 1200


def test_a_task_that_depends_on_a_waiting_one_waits_with_it(project: "Project") -> None:
    outage(project, NETWORK, 2)
    plan = project.plan(("1.1", "Make a", "python3 check.py"), ("1.2", "Make b", "test -f a.txt"))
    project.file(plan.name, plan.read_text() + "  - **Depends**: 1.1\n")
    project.script(_1_1=[[{"write": "a.txt"}]], _1_2=[[{"write": "b.txt"}]])
    result, _ = ran(project)
    assert result.exit_code == 0, result
    assert [subject for subject in reversed(project.commits()) if subject.startswith("Make")] == ["Make a", "Make b"]
    assert sessions(project) == 2


ASKS = {
    "python": ("check.py", "import socket\nsocket.create_connection(('127.0.0.1', PORT))\n", "python3 check.py"),
    "unittest": (
        "test_it.py",
        (
            "import pathlib, socket, unittest\n\n\nclass T(unittest.TestCase):\n"
            "    def test_work(self):\n        self.assertTrue(pathlib.Path('a.txt').exists())\n\n"
            "    def test_server(self):\n        socket.create_connection(('127.0.0.1', PORT)).close()\n"
        ),
        "python3 -m unittest test_it",
    ),
    "node": ("check.js", "require('net').connect(PORT, '127.0.0.1', process.exit)\n", "node check.js"),
    "node --test": (
        "it.test.js",
        "require('node:test')('asks', (_, done) => { require('net').connect(PORT, '127.0.0.1', () => process.exit()).on('error', done) })\n",
        "node --test",
    ),
}


@pytest.mark.parametrize("how", some(ASKS, kept=("python", "node --test")))
def test_a_server_that_the_base_misses_as_well_is_waited_for_and_asked_about_after_one_session(
    project: "Project", how: str
) -> None:
    name, text, check = ASKS[how]
    if shutil.which(check.split()[0]) is None:
        pytest.skip(f"needs {check.split()[0]}")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))  # nobody listens: whoever asks is refused
        project.file(name, text.replace("PORT", str(server.getsockname()[1])))
        project.plan(("1.1", "Make a", check), ("1.2", "Make b", "test -f b.txt"))
        project.script(_1_1=[[{"write": "a.txt"}]], _1_2=[[{"write": "b.txt"}]])
        result, _ = ran(project)
        assert result.exit_code == 3, result
        assert sessions(project) == 2
        failure = state_of(project).tasks["1.1"].current.failure
        assert failure.kind == "network_error", failure
        assert "Please check the connection to" in project.ask("status").out
        server.listen()
        told = project.unstuck("resume")
    assert told.code == 0, told
    assert sessions(project) == 2, "the work was there: only the check is run again"


def test_what_a_person_says_about_a_server_reaches_the_agent_unless_the_checks_pass_without_it(
    project: "Project",
) -> None:
    name, text, check = ASKS["python"]
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        project.file(name, text.replace("PORT", str(server.getsockname()[1])))
        project.plan(("1.1", "Make a", f"test -f b.txt || {check}"))
        project.script(_1_1=[[{"write": "a.txt"}], [{"write": "b.txt"}]])
        result, _ = ran(project)
        assert (result.exit_code, sessions(project)) == (3, 1), result
        assert project.ask("answer", "1.1", "Do it without the server.").code == 0
        told = project.unstuck("resume")
    assert (told.code, sessions(project)) == (0, 2), told
    assert {"a.txt", "b.txt"} <= {*project.git("ls-files").splitlines()}, "it goes on from the work that was there"


def test_work_that_waits_for_its_checks_is_put_on_what_a_person_commits_meanwhile(project: "Project") -> None:
    ask = "import pathlib, socket\nsocket.create_connection(('127.0.0.1', int(pathlib.Path('port').read_text())))\n"
    project.file("check.py", ask)
    with socket.socket() as deaf, socket.create_server(("127.0.0.1", 0)) as server:
        deaf.bind(("127.0.0.1", 0))
        project.file("port", str(deaf.getsockname()[1]))
        project.plan(("1.1", "Make a", "python3 check.py"))
        project.script(_1_1=[[{"write": "a.txt"}]])
        result, _ = ran(project)
        assert (result.exit_code, sessions(project)) == (3, 1), result
        project.file("port", str(server.getsockname()[1]))
        told = project.unstuck("resume")
    assert (told.code, sessions(project)) == (0, 1), told
    assert "a.txt" in project.git("ls-files")


REFUSED = "ConnectionRefusedError: [Errno 111] connect to 127.0.0.1 port 5432: Connection refused"


def test_a_database_is_no_agents_to_start_though_its_tests_are_new(project: "Project") -> None:
    project.plan(("1.1", "Keep the users", "python3 -m unittest test_users"))
    test = f"import unittest\n\n\nclass T(unittest.TestCase):\n    def test(self):\n        raise ConnectionRefusedError({REFUSED[24:]!r})\n"
    project.script(_1_1=[[{"write": "test_users.py", "text": test}]])
    result, _ = ran(project)
    assert (result.exit_code, sessions(project)) == (3, 1), result


STARTS = """import runpy, socket
try:
    made = runpy.run_path("server.py")
except FileNotFoundError:
    made = {{"port": {}}}
socket.create_connection(("127.0.0.1", made["port"])).close()
"""
SERVES = "import socket\nserver = socket.socket()\nserver.bind(('127.0.0.1', 0))\n{}port = server.getsockname()[1]\n"


@pytest.mark.parametrize(
    ("title", "before"),
    [("Write the server", None), ("Tidy it", SERVES.format("server.listen()\n"))],
    ids=["to be written", "broken by the work"],
)
def test_a_server_that_the_work_brings_is_the_agents_to_repair(
    project: "Project", title: str, before: str | None
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        project.file("check.py", STARTS.format(nobody.getsockname()[1]))
        if before:
            project.file("server.py", before)
        project.plan(("1.1", title, "python3 check.py"))
        deaf, right = SERVES.format(""), SERVES.format("server.listen(5)\n")
        project.script(_1_1=[[{"write": "server.py", "text": deaf}], [{"write": "server.py", "text": right}]])
        result = project.run()
    assert result.code == 0, result
    assert sessions(project) == 2


# --- a healthy HEAD ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("healthy", "landed"), [(True, True), (False, False)], ids=["healthy", "sick"])
def test_profile_standard_rolls_back_to_a_healthy_head_before_anything_landed(
    project: "Project", healthy: bool, landed: bool
) -> None:
    project.file("gate.py", "import pathlib, sys\nsys.exit(0 if pathlib.Path('ok').exists() else 'FAILED x.py::a')\n")
    if healthy:
        project.file("ok", "")
    project.settings(f'{LIMITS}[checks]\ntest = "python3 gate.py"\n')
    project.plan(("1.1", "Make a", "python3 a.py"))
    broken, right = "def f(:\n", "print(1)\n"
    project.script(_1_1=[[{"write": "a.py", "text": broken}], [{"write": "a.py", "text": right}]])
    result = project.run("--profile", "standard")
    assert (result.code == 0) is landed, result
    decided = [one.decision.action.type for one in state_of(project).tasks["1.1"].attempts]
    assert decided[0] == ("rollback" if healthy else "escalate")
    assert "0 of them different" in project.ask("replay", "--profile", "standard").out
