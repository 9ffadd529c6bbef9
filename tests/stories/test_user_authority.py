"""Who speaks for a person: a person, and neither a session nor whoever writes into the journal's tables."""

import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.project import SOURCE, Project, Step

SPEAKING = (
    *(
        "accept 1.1 --because x",
        "skip 1.1",
        "retry 1.1 --hint x",
        "answer 1.1 x",
        "reset 1.1",
        "undo",
        "stop",
        "approve",
    ),
    *("run tasks.md", "run --fresh tasks.md", "resume"),
)


ASKING = """
import os, sys
import unstuck.cli.inspect_commands, unstuck.cli.request_commands, unstuck.cli.run_commands, unstuck.app.inspect, unstuck.app.open_run
from unstuck.cli import run_cli
os.chdir(sys.argv[1])
children = []
for words in sys.argv[2:]:
    children.append(os.fork())
    if not children[-1]:
        os.setsid()
        code = run_cli(words.split())
        with open("../told.log", "a") as log:
            log.write(f"ended with {code}\\n")
        os._exit(0)
for child in children:
    os.waitpid(child, 0)
"""
"""Commands in sessions of their own that load Python's modules only once."""


def speaks(project: Project) -> Step:
    """Ask as an agent that hides what it is: without our environment, from sessions of its own, all at once."""
    program = project.root.parent / "asking.py"
    program.write_text(ASKING)
    hidden = ["env", "-i", f"PATH={os.environ['PATH']}", f"PYTHONPATH={SOURCE}", "setsid", "--wait", sys.executable]
    return {"run": shlex.join([*hidden, str(program), str(project.root), *SPEAKING])}


def red(project: Project, *steps: Step) -> None:
    """Let the one task of a plan do these steps, and then something that its check refuses."""
    project.plan(("1.1", "Make a", "grep -q right a.txt"))
    project.script(_1_1=[[{"write": "a.txt", "text": "wrong\n"}, *steps]])


def test_what_a_session_asks_for_in_a_persons_name_is_refused_recorded_and_told(project: Project) -> None:
    red(project, speaks(project))
    result = project.run("--max-attempts", "1")
    assert result.code == 3, result
    assert project.status() == {"1.1": "stuck"}
    assert (project.root.parent / "told.log").read_text() == "ended with 64\n" * len(SPEAKING)
    refused = [line for line in project.ask("log").out.splitlines() if "only a person can" in line]
    for words in SPEAKING:
        verb = words.split(maxsplit=1)[0].replace("resume", "run")
        assert any(f"`unstuck {verb}" in line and "inside of task 1.1 of run " in line for line in refused), verb
    assert "only a person can" in result.out + result.err


def test_a_run_that_a_session_begins_elsewhere_is_the_sessions_own(project: Project, tmp_path: Path) -> None:
    """Otherwise no agent could work on unstuck itself, or on what is built on it."""
    inner = tmp_path / "inner"
    script = f"""
    unset UNSTUCK_RUN UNSTUCK_TASK; git init -q -b main {inner}; cd {inner}
    git config user.name Ada; git config user.email ada@example.org
    printf -- '- [ ] 1.1 Make a\\n  - **Verify**: `false`\\n' > tasks.md; echo '{{}}' > agent.json; git add .; git commit -qm x
    {sys.executable} -m unstuck run tasks.md --agent scripted:{inner}/agent.json --max-attempts 1
    {sys.executable} -m unstuck skip 1.1 && echo skipped > {tmp_path}/told.log
    """
    red(project, {"run": shlex.join(["bash", "-c", script])})
    project.run("--max-attempts", "1")
    assert (tmp_path / "told.log").read_text() == "skipped\n"


FORGED = """
import os, sqlite3, sys, time, uuid
store, run, person = sys.argv[1:]
token = uuid.uuid4().hex
os.makedirs(f"{store}/asking", exist_ok=True)
held = open(f"{store}/asking/{token}", "x")
rows = [(os.getpid(), token), (int(person), token), (int(person), "../../HEAD"), (0, "")]
with sqlite3.connect(f"{store}/journal.db") as journal:
    for pid, token in rows:
        journal.execute(
            "INSERT INTO requests (run, at, verb, task, text, who, place, pid, token) VALUES (?, 0, 'accept', '1.1', 'x', 'ada', 'here', ?, ?)",
            (run, pid, token),
        )
deadline = time.monotonic() + 20
while os.path.exists(held.name) and time.monotonic() < deadline:
    time.sleep(0.02)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to look at parents by")
def test_a_row_that_a_session_writes_in_a_persons_name_is_refused_without_any_sandbox(project: Project) -> None:
    program = project.root.parent / "forge.py"
    program.write_text(FORGED)
    forge = f'"{sys.executable}" -I "{program}" "{project.store}" "$UNSTUCK_RUN" {os.getpid()}'
    red(project, {"run": shlex.join(["env", "-u", "UNSTUCK_TASK", "bash", "-c", forge])})
    result = project.run("--max-attempts", "1")
    assert (result.code, project.status()) == (3, {"1.1": "stuck"}), result
    log = project.ask("log").out
    assert log.count("`unstuck accept 1.1` was found in the journal and a session stands by it") == 2, log
    assert log.count("`unstuck accept 1.1` was found in the journal and nobody stands by it") == 6, log
    assert (project.root / ".git" / "HEAD").exists()


def test_a_journal_of_an_older_format_takes_every_word_that_there_is_now(half_done: Project, tmp_path: Path) -> None:
    copy = Project(tmp_path / "project", half_done.fork_server)
    shutil.copytree(half_done.root, copy.root, symlinks=True)
    with closing(sqlite3.connect(copy.store / "journal.db")) as journal:
        (text,) = journal.execute("SELECT sql FROM sqlite_master WHERE name = 'requests_are_readable'").fetchone()
        older = text.replace(", 'approve'", "").replace(
            " OR typeof(NEW.pid) <> 'integer' OR typeof(NEW.token) <> 'text'", ""
        )
        journal.executescript(
            f"DROP TRIGGER requests_are_readable; ALTER TABLE requests DROP COLUMN pid; ALTER TABLE requests DROP COLUMN token;"
            f"{older.replace('NEW.pid', 'NEW.id').replace('NEW.token', 'NEW.text')}; PRAGMA user_version = 2"
        )
    result = copy.ask("approve")  # the journal takes it, and the run answers
    assert "Nothing waits for an approval." in result.err, result


ROWS = {
    "an old row": "INSERT INTO requests (run, at, verb, task, text) VALUES (:run, 0, 'accept', '1.1', 'x')",
    "a verb that is none": "INSERT INTO requests (run, at, verb, text, who, place) VALUES (:run, 0, 'land', 'x', 'a', 'b')",
    "bytes": "INSERT INTO requests (run, at, verb, text, who, place) VALUES (:run, 0, 'stop', x'ff', 'a', 'b')",
    "a time that is none": "INSERT INTO requests (run, at, verb, text, who, place) VALUES (:run, 'x', 'stop', '', 'a', 'b')",
    "another row": "UPDATE requests SET verb = 'accept'",
    "an event of bytes": "INSERT INTO events (run, at, body) VALUES (:run, 0, x'ff')",
}


def test_the_journals_tables_take_only_what_they_are_for(half_done: Project, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.write_bytes((half_done.store / "journal.db").read_bytes())
    with closing(sqlite3.connect(path)) as journal:
        journal.execute(
            "INSERT INTO requests (run, at, verb, text, who, place) VALUES ('r', 0, 'stop', '', 'ada', 'here')"
        )
        taken = []
        for name, row in ROWS.items():
            with suppress(sqlite3.IntegrityError):
                journal.execute(row, {"run": "r"})
                taken.append(name)
    assert not taken


GARBAGE = (
    ("no such verb", None, "x"),
    (b"\xff", None, b"\xff"),
    ("stop", b"\xff", ""),
    ("undo", None, "the last one"),
    ("undo", None, "99999999999999999999"),
    ("rollback", None, "--output=/dev/null"),
    ("retry", None, "x"),
    ("accept", "9.9\x1b]0;x\x07", "x"),
    ("skip", "", ""),
)


def test_rows_that_nobody_of_ours_wrote_give_no_traceback_and_do_nothing(project: Project) -> None:
    red(project)
    assert project.run("--max-attempts", "1").code == 3
    run = project.ask("status", "--json").json["run"]
    with closing(sqlite3.connect(project.store / "journal.db")) as journal:
        journal.execute("DROP TRIGGER requests_are_readable")
        for verb, task, text in GARBAGE:
            journal.execute(
                "INSERT INTO requests (run, at, verb, task, text) VALUES (?, 'soon', ?, ?, ?)", (run, verb, task, text)
            )
        journal.commit()
    result = project.ask("retry", "1.1")
    assert result.code == 0, result
    assert "Traceback" not in result.err
    assert project.status() == {"1.1": "pending"}
    log = project.ask("log")
    assert log.out.count("refused") >= len(GARBAGE)
    assert "\x1b" not in log.out


def test_accept_shows_what_it_accepts(project: Project) -> None:
    red(project)
    project.run("--max-attempts", "1")
    result = project.ask("accept", "1.1", "--because", "it is right as it is")
    assert result.code == 0, result
    for part in ("The work of task 1.1", "a.txt | 1 +", "not green: grep -q right a.txt"):
        assert part in result.out, part
    entry = next(line for line in project.ask("log", "--json").out.splitlines() if '"verb":"accept"' in line)
    for part in ('"who":"', f'"place":"{project.root} on ', '"at":1', '"inside":""', '"shown":"'):
        assert part in entry, part
    result = project.unstuck("resume")
    assert result.code == 0, result
    for text in (
        result.out,
        *(project.ask(*words).out for words in (("status",), ("show", "1.1"), ("explain", "1.1"))),
    ):
        assert "accepted by a person (it is right as it is), 1 check red" in text
        assert "recovered from" not in text
        assert "all checks pass" not in text


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to look at parents by")
def test_a_person_who_is_below_no_shim_is_a_person() -> None:
    code = "from unstuck.process.caller import calling_session; print(calling_session())"
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"
