"""What happens to a user who is wrong, or whose repository is odd: words, an exit code, and nothing started."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.waiting import wait_until

from unstuck.model.plan import Plan, Task, plan_problems

if TYPE_CHECKING:
    from tests.project import CommandResult, Project

A = ("1.1", "Make a", "test -f a.txt")
MAKE_A = {"write": "a.txt", "text": "a\n"}


def expect_error(result: "CommandResult", code: int, *says: str) -> None:
    """The command failed as it should: with this code, in words, with a way on, and without a traceback."""
    assert result.code == code, result
    for words in says:
        assert words in result.err, result
    assert "Traceback" not in result.err, result
    assert result.out == "", result


def expect_nothing_started(project: "Project") -> None:
    assert project.git("for-each-ref", "refs/heads/unstuck", "refs/unstuck") == ""
    assert project.git("worktree", "list", "--porcelain").count("worktree ") == 1
    journal = project.store / "journal.db"
    if journal.exists():
        assert "There is no run" in project.ask("status").err


# --- the plan ------------------------------------------------------------------------------------------


PLANS = {
    "duplicate ids": (b"- [ ] 1.1 One\n- [ ] 1.1 Two\n", ["line 2", "1.1 is used twice", "line 1 has it first"]),
    "ids that differ in case": (b"- [ ] V1 One\n- [ ] v1 Two\n", ["line 2", "used twice"]),
    "an id that is too long": (b"- [ ] 1." + b"1" * 80 + b" One\n", ["line 1", "cannot be used"]),
    "a task without a title": (b"- [ ]  \n", ["line 1", "has no title"]),
    "no task at all": (b"# Nothing to do\n", ["without a task line"]),
    "an empty file": (b"", ["empty"]),
    "a binary file": (b"\x00\x01\x02- [ ] 1.1 One\n\xff\xfe", []),
    "every problem at once": (
        b"- [ ] 1.1 One\n- [ ] 1.1 Two\n- [ ]\n* [ ] 1.3 Three\n",
        ["line 2", "line 3", "line 4"],
    ),
    "boxes of other tools, by ids of the plan's own": (
        b"- [ ] T1: one\n- [-] T4: cancelled\n- [~] T5: in progress\n",
        ["line 2: '- [-] T4: cancelled' looks like a task", "line 3"],
    ),
    "an indented task that is part of none": (
        b"# Phase 1\n  - [ ] 1.1 One\n    - **Verify**: `test -f a`\n\n# Phase 2\n- [ ] 2.1 Two\n",
        ["line 2: '- [ ] 1.1 One' looks like a task", "at column 0"],
    ),
    "a box that Kiro does not know": (b"- [ ] 1. A\n  - [!] 1.1 b\n  - [ ] 1.2 c\n  - _Requirements: 1_\n", ["line 2"]),
    "a circle besides a double id": (
        b"- [ ] 1.1 A\n  - **Depends**: 1.2\n- [ ] 1.2 B\n  - **Depends**: 1.1\n- [ ] 1.1 C\n",
        ["line 5: The task id 1.1 is used twice", "in a circle: 1.2"],
    ),
}


@pytest.mark.parametrize(("content", "says"), PLANS.values(), ids=PLANS.keys())
@pytest.mark.parametrize("command", ["plan", "run"])
def test_an_invalid_plan_is_told_line_by_line(
    project: "Project", command: str, content: bytes, says: list[str]
) -> None:
    (project.root / "plan.md").write_bytes(content)
    result = project.ask(command, "plan.md")
    expect_error(result, 64, "plan.md", "Hint: ", *says)
    assert b"\0" not in content or "--repair" not in result.err, "no agent mends what is no text"
    expect_nothing_started(project)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- [ ] T1: one\n- [-] no longer wanted\n", "line 2: '- [-] no longer wanted' is not read as a task."),
        ("- [ ] T1: one\n- [DONE] T2: two\n", "line 2: '- [DONE] T2: two' is not read as a task."),
        ("# P\n\n\t- [ ] 1.1 One\n\n- [ ] 1.2 Two\n", "line 3: '- [ ] 1.1 One' is not read as a task."),
        ("- [ ] 1.1 One\n\nAnd then:\n  - [ ] the other\n", "line 4: '- [ ] the other' is not read as a task."),
        ("- [ ] a\n  - [ ] b\n  - [!] c\n", "line 3: '- [!] c' is not read as a task."),
        ("- [ ] T1: one\n- [ ] T2: two\n  - **After**: T1, T5\n", "line 3: Task T2: the field 'After' names tasks"),
    ],
)
def test_nothing_that_may_be_meant_for_a_task_is_dropped_without_a_word(
    project: "Project", text: str, says: str
) -> None:
    project.file("plan.md", text)
    result = project.ask("plan", "plan.md")
    assert result.code == 0, result
    assert says in result.out, result


def test_an_id_that_is_a_path_never_becomes_one(project: "Project") -> None:
    project.file("tasks.md", "- [ ] ../../x Escape\n  - **Verify**: `test -f a.txt`\n")
    project.script(t1=[[MAKE_A]])
    result = project.run()
    assert result.code == 0, result
    assert not (project.root.parent / "x").exists()
    written = {path.relative_to(project.root.parent).parts[0] for path in project.root.parent.rglob("*")}
    assert written <= {"project", "agent.json"}


def test_tasks_in_a_circle_are_named(project: "Project") -> None:
    circle = (Task(id="a", title="A", depends_on=("b",), line=3), Task(id="b", title="B", depends_on=("a",), line=4))
    (problem,) = plan_problems(Plan(path="p", format="f", tasks=circle))
    assert re.search(r"in a circle: (a → b → a|b → a → b)", problem.message)
    assert problem.line == 3
    assert problem.hint


def test_a_plan_of_a_thousand_tasks_is_read_and_begun(project: "Project") -> None:
    count = 1_000
    lines = [
        f"- [ ] {number // 100 + 1}.{number % 100} Task {number}\n  - **Verify**: `test -f a.txt`\n"
        for number in range(count)
    ]
    project.file("tasks.md", "".join(lines))
    result = project.ask("plan", "tasks.md")
    assert result.code == 0, result.err
    assert f"{count} tasks" in result.out
    gate = project.root.parent / "begun"
    project.script(_1_0=[[{"write": str(gate)}, {"hang": True}]])
    with project.start("run", "tasks.md", "--agent", project.agent) as running:
        wait_until(lambda: gate.exists() or running.poll() is not None, "the first session")
        largest = int(re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{running.pid}/status").read_text())[1])  # type: ignore[index]
        running.terminate()
        running.terminate()
        running.communicate(timeout=60)
    assert gate.exists()
    assert largest < 85_000, "kilobytes, of which 53,000 without a plan"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("missing.md", "There is no plan missing.md."),
        ("empty-folder", "The folder empty-folder has no tasks.md."),
        ("pipe", "is no file"),
        ("x" * 300, "Cannot read the plan"),
    ],
    ids=["missing", "folder", "pipe", "long name"],
)
def test_a_plan_that_is_not_there_is_told(project: "Project", name: str, says: str) -> None:
    (project.root / "empty-folder").mkdir()
    os.mkfifo(project.root / "pipe")
    expect_error(project.ask("run", name), 64, says, "Hint: ")
    expect_nothing_started(project)


@pytest.mark.parametrize(
    ("name", "says"), [("tasks.md", "it is read-only"), ("", "its folder is read-only")], ids=["file", "folder"]
)
def test_a_plan_that_cannot_be_ticked_is_refused_before_an_agent_works(
    project: "Project", name: str, says: str
) -> None:
    project.file("specs/tasks.md", "- [ ] 1.1 A\n  - **Verify**: `test -f a.txt`\n")
    project.script(_1_1=[[{"write": "a.txt"}]])
    path = project.root / "specs" / name
    path.chmod(path.stat().st_mode & ~0o222)
    try:
        result = project.ask("run", "specs", "--agent", project.agent)
    finally:
        path.chmod(path.stat().st_mode | 0o200)
    assert (result.code, result.out) == (1, "")
    assert f"Cannot write specs/tasks.md: {says}." in result.err
    assert "then try again." in result.err
    assert not (project.home / "briefs").exists()


def test_where_no_journal_can_be_there_is_no_run_to_go_on_with(project: "Project") -> None:
    project.store.write_text("in the way")
    expect_error(project.ask("init", "--force"), 1, "journal.db cannot be used", "then `unstuck init`.")


def test_a_format_that_does_not_exist_is_told(project: "Project") -> None:
    project.plan(A)
    expect_error(project.ask("run", "tasks.md", "--format", "word"), 64, "'word'", "tasks.md")


# --- the repository ------------------------------------------------------------------------------------


def test_outside_of_a_repository_the_user_is_sent_into_one(project: "Project", tmp_path: Path) -> None:
    plan = project.plan(A)
    empty = tmp_path / "empty"
    empty.mkdir()
    for arguments in (("run", str(plan)), ("status",), ("prune",), ("init",), ("resume",)):
        expect_error(project.ask(*arguments, cwd=empty), 69, "is not a git repository", "git init")
    assert list(empty.iterdir()) == []


def test_a_repository_without_commits_is_told(project: "Project", tmp_path: Path) -> None:
    new = tmp_path / "new"
    subprocess.run(["git", "init", "-q", str(new)], check=True)
    (new / "tasks.md").write_text("- [ ] 1.1 One\n")
    expect_error(project.ask("run", "tasks.md", cwd=new), 69, "has no commits yet", "git commit")
    assert not (new / ".unstuck").exists()


def test_a_bare_repository_is_told(project: "Project", tmp_path: Path) -> None:
    plan = project.plan(A)
    bare = tmp_path / "bare.git"
    project.git("clone", "-q", "--bare", ".", str(bare))
    expect_error(project.ask("run", str(plan), cwd=bare), 64, "bare repository", "git worktree add")


def test_a_detached_head_is_left_alone_and_the_work_stays_on_the_run_branch(project: "Project") -> None:
    project.plan(A)
    project.git("checkout", "-q", "--detach")
    head = project.git("rev-parse", "HEAD")
    project.script(_1_1=[[MAKE_A]])
    result = project.run()
    assert result.code == 0, result
    assert "detached HEAD" in result.out
    assert "git merge unstuck/" in result.out
    assert project.git("rev-parse", "HEAD") == head
    assert project.commits("main")[0] == "Write tasks.md"


def test_submodules_are_filled_from_the_local_clone_and_edits_in_them_are_kept_and_told(
    project: "Project", tmp_path: Path
) -> None:
    library = tmp_path / "library"
    library.mkdir()
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *arguments], cwd=library, check=True)
    (library / "lib.txt").write_text("lib\n")
    subprocess.run(["git", "add", "-A"], cwd=library, check=True)
    subprocess.run(["git", "commit", "-qm", "lib"], cwd=library, check=True)
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "sub")
    project.git("commit", "-qm", "Add a submodule")
    library.rename(tmp_path / "gone")
    project.plan(("1.1", "Make a", "test -f a.txt && test -f sub/lib.txt"))
    edits = [{"write": "sub/lib.txt", "text": "mine\n"}, {"write": "sub/new.txt", "text": "new\n"}]
    project.script(_1_1=[[MAKE_A, *edits]])
    result = project.run()
    assert result.code == 0, result
    assert project.git("status", "--porcelain") == ""
    assert (project.root / "sub/lib.txt").read_text() == "lib\n"
    said = next(line for line in result.out.partition("Worth a look")[2].splitlines() if "submodule" in line)
    assert "sub never lands: new.txt, lib.txt." in said, said
    subprocess.run(said.rpartition("back: ")[2], shell=True, cwd=project.root, check=True)
    assert [(project.root / "sub" / name).read_text() for name in ("lib.txt", "new.txt")] == ["mine\n", "new\n"]


def test_a_linked_worktree_of_the_users_is_a_checkout_like_any_other(project: "Project", tmp_path: Path) -> None:
    project.plan(A)
    other = tmp_path / "other"
    project.git("worktree", "add", "-q", "-b", "feature", str(other))
    project.script(_1_1=[[MAKE_A]])
    result = project.unstuck("run", "tasks.md", "--agent", project.agent, cwd=other)
    assert result.code == 0, result
    assert project.commits("feature")[:2] == ["Tick the plan", "Make a"]
    assert project.commits("main")[0] == "Write tasks.md"
    assert not project.home.exists()


def test_a_repository_inside_of_a_worktree_is_its_own(project: "Project", tmp_path: Path) -> None:
    inner = project.root / "vendor" / "inner"
    inner.mkdir(parents=True)
    for arguments in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "inner"]):
        subprocess.run(["git", *arguments], cwd=inner, check=True)
    (inner / "tasks.md").write_text("- [ ] 1.1 Make a\n  - **Verify**: `test -f a.txt`\n")
    project.script(_1_1=[[MAKE_A]])
    result = project.unstuck("run", "tasks.md", "--agent", project.agent, cwd=inner)
    assert result.code == 0, result
    assert (inner / "a.txt").exists()
    assert project.commits("main") == ["Start"]


def test_our_own_worktree_is_no_place_to_start_in(project: "Project") -> None:
    project.plan(A)
    project.script(_1_1=[[MAKE_A]])
    assert project.run().code == 0
    expect_error(project.ask("status", cwd=project.slots[0]), 64, "unstuck's own slots", f"cd {project.root}")


NAMES = [
    b"with space.txt",
    b"new\nline.txt",
    "grüße-漢.txt".encode(),
    b"not-utf8-\xff.txt",
    b"-dash",
    b":(top)x",
    b'"q".txt',
]


def test_odd_file_names_are_carried_byte_for_byte(project: "Project") -> None:
    root = os.fsencode(project.root)
    for name in NAMES:
        Path(os.fsdecode(root + b"/" + name)).write_text("before\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "Odd names")
    project.plan(("1.1", "Change them", "! grep -l before ./*.txt"))
    agent = project.root.parent / "agent.sh"
    agent.write_text('for f in ./*; do case $f in *tasks.md|*unstuck.toml) ;; *) echo after > "$f";; esac; done\n')
    dirty = Path(os.fsdecode(root + b"/dirty\n\xfe"))
    dirty.write_bytes(b"mine")
    result = project.unstuck("run", "tasks.md", "--agent", f"sh {agent}")
    assert result.code == 0, result
    assert "dirty\\n" in result.err
    assert dirty.read_bytes() == b"mine"
    listed = subprocess.run(["git", "ls-tree", "-z", "--name-only", "main"], cwd=root, capture_output=True, check=True)
    assert set(NAMES) <= set(listed.stdout.split(b"\0"))
    assert {Path(os.fsdecode(root + b"/" + name)).read_text() for name in NAMES} == {"after\n"}
    changed = project.git("log", "-1", "--format=", "--name-only", "-z", "--grep=Change them", "main")
    assert changed.count("\0") == len(NAMES) + 1, "the names above, and the readme"
    for command in (["status"], ["show", "1.1"], ["log", "--json"], ["doctor"]):
        assert project.ask(*command).code in (0, 69)


def test_a_damaged_journal_is_set_aside_by_name(project: "Project") -> None:
    project.plan(A)
    project.script(_1_1=[[]])
    assert project.run("--max-attempts", "1").code == 3
    (project.store / "journal.db").write_bytes(b"this is no database at all" * 200)
    for extra in ("journal.db-wal", "journal.db-shm"):
        (project.home / extra).unlink(missing_ok=True)
    result = project.run()
    expect_error(result, 1, "journal.db", "Hint: ")
    (copy,) = project.store.glob("journal.db.*")
    assert copy.name in result.err
    assert copy.read_bytes().startswith(b"this is no database")


# --- the call ------------------------------------------------------------------------------------------


USAGE = {
    "no arguments": ([], "Start:"),
    "an unknown command": (["ruin"], "Did you mean 'run'?"),
    "a command that is like none": (["xyzzy"], "See unstuck --help"),
    "an unknown option": (["run", "tasks.md", "--colour"], "--colour"),
    "no plan": (["run"], "PLAN"),
    "too many arguments": (["show", "1.1", "1.2"], "1.2"),
    "no task": (["show"], "TASK"),
    "a time that is none": (["run", "tasks.md", "--max-time", "soon"], "90s, 15m or 8h"),
    "no time at all": (["run", "tasks.md", "--max-time", "0"], "90s, 15m or 8h"),
    "no parallel": (["run", "tasks.md", "--parallel", "0"], "--parallel"),
    "no attempts": (["run", "tasks.md", "--max-attempts", "0"], "--max-attempts"),
    "an unknown commit mode": (["run", "tasks.md", "--commit", "squash"], "message-only"),
    "resume and fresh": (["run", "tasks.md", "--resume", "--fresh"], "exclude each other"),
    "an undo of no number": (["undo", "last"], "last"),
}


@pytest.mark.parametrize(("arguments", "says"), USAGE.values(), ids=USAGE.keys())
def test_wrong_usage_is_exit_64_and_says_how_it_is_right(project: "Project", arguments: list[str], says: str) -> None:
    project.plan(A)
    expect_error(project.ask(*arguments), 64, says)
    assert not project.home.exists()


@pytest.mark.parametrize(
    "arguments",
    [["status"], ["show", "1.1"], ["log"], ["resume"], ["stop"], ["retry", "1.1"], ["undo"], ["rollback", "1.1"]],
    ids=" ".join,
)
def test_without_a_run_the_user_is_told_how_to_start_one(project: "Project", arguments: list[str]) -> None:
    expect_error(project.ask(*arguments), 64, "There is no run", "unstuck run PLAN")
    assert not project.home.exists()
    project.plan(A)
    assert project.ask("run", "tasks.md", "--agent", "no-such-agent").code == 69
    expect_error(project.ask(*arguments), 64, "There is no run", "unstuck run PLAN")


def test_a_task_or_run_that_does_not_exist_is_named(project: "Project") -> None:
    project.plan(A)
    project.script(_1_1=[[MAKE_A]])
    assert project.run().code == 0
    commands = ("show 9.9", "retry 9.9", "skip 9.9", "reset 9.9", "rollback 9.9", "rollback --to 9.9", "resume 9.9")
    for command in commands:
        expect_error(project.ask(*command.split()), 64, "9.9", "Hint: ")
    expect_error(project.ask("undo", "99"), 64, "nothing to undo", "unstuck log")


AGENTS = {
    "not on PATH": ("no-such-agent --go", 69, "'no-such-agent' is not on PATH"),
    "no file at its path": ("./no-such-agent --go", 69, "'./no-such-agent' is no program that can be run"),
    "an empty command": ("", 64, "empty"),
    "an open quote": ("sh -c 'x", 64, "quotes"),
    "a script that is not there": ("scripted:nowhere.toml", 64, "nowhere.toml"),
}


@pytest.mark.parametrize(("agent", "code", "says"), AGENTS.values(), ids=AGENTS.keys())
def test_an_agent_that_cannot_be_started_is_told_before_anything_begins(
    project: "Project", agent: str, code: int, says: str
) -> None:
    project.plan(A)
    expect_error(project.ask("run", "tasks.md", "--agent", agent), code, says, "Hint: ")
    expect_nothing_started(project)


def test_a_fresh_start_with_an_agent_that_cannot_be_started_sets_nothing_aside(project: "Project") -> None:
    project.plan(A, ("1.2", "Make b", "test -f b.txt"))
    project.script(_1_1=[[MAKE_A]], _1_2=[[{"print": "no"}]])
    assert project.run().code == 3
    before = sorted(path.relative_to(project.home) for path in project.home.rglob("*"))
    ticked = (project.root / "tasks.md").read_text()
    result = project.unstuck("run", "tasks.md", "--fresh", "--agent", "/nowhere/agent")
    assert (result.code, "is no program that can be run" in result.err) == (69, True), result
    assert sorted(path.relative_to(project.home) for path in project.home.rglob("*")) == before
    assert (project.root / "tasks.md").read_text() == ticked


def test_no_agent_at_all_is_told_with_the_ways_to_name_one(project: "Project") -> None:
    project.plan(A)
    expect_error(project.unstuck("run", "tasks.md", PATH=git_only(project)), 69, "No agent", "--agent", "unstuck init")
    expect_nothing_started(project)


SETTINGS = {
    "not TOML": ("[limits\n", "line 1"),
    "an unknown key": (
        "[limits]\nsilense = 3\n",
        "unstuck.toml:2: limits.silense: there is no such key; did you mean 'silence'",
    ),
    "a wrong type": ('parallel = "many"\n', 'unstuck.toml:1: parallel: wants a whole number, not "many".'),
    "a number with its unit": (
        '[limits]\nsilence = "6s"\n',
        'wants a number, not "6s". It means: seconds a session may',
    ),
    "a word that is none": ('[verify]\nunverified = "x"\n', "wants one of 'ask' or 'land', not \"x\"."),
    "an unknown table": ("[limit]\nsilence = 3\n", "unstuck.toml:1: limit"),
    "an unknown check": ('[checks]\ntests = "true"\n', "unstuck.toml:2: checks.tests"),
    "no parallel": ("parallel = 0\n", "unstuck.toml:1: parallel"),
    "a negative limit": ("[limits]\nsilence = -1\n", "unstuck.toml:2: limits.silence"),
}


@pytest.mark.parametrize(("text", "says"), SETTINGS.values(), ids=SETTINGS.keys())
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_wrong_configuration_is_told_with_its_line(project: "Project", command: str, text: str, says: str) -> None:
    project.plan(A)
    (project.root / "unstuck.toml").write_text(text)
    result = project.ask(command, "tasks.md", *(("--agent", project.agent) if command == "run" else ()))
    expect_error(result, 64, "unstuck.toml", says, "Hint: ")
    assert "limits.silence = 1200" in " ".join(project.ask("config", "limits").out.split()), "it reads on all the same"


def test_all_mistakes_of_a_configuration_are_told_at_once_and_config_shows_what_holds_without_them(
    project: "Project",
) -> None:
    project.plan(A)
    (project.root / "unstuck.toml").write_text(
        'paralel = 3\nagent = [1]\n[limits]\nsilence = "6s"\ndrain = -1\nwall_clock = 60\n[checks]\ntst = "true"\n'
    )
    result = project.ask("config", "limits")
    for where in ("has 5 mistakes:", "unstuck.toml:1: paralel", ":2: agent", ":4: ", ":5: ", ":8: checks.tst"):
        assert where in result.err, result
    assert result.code == 64
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert "limits.silence = 1200 # default" in lines
    assert "limits.wall_clock = 60 # unstuck.toml; default unset" in lines
    assert project.ask("plan", "tasks.md").err == result.err
    assert (project.ask("config", "--json").out, project.ask("config", "--json").code) == ("", 64)


PROFILES = {
    "an unknown key": ('chargse = "all"', "profiles.mine.chargse: there is no such key; did you mean 'charges'"),
    "an unknown limit": ("limits.atempts = 1", "profiles.mine.limits.atempts: there is no such key; did you mean 'attempts'"),
    "a wrong type": ("green_base = []", "profiles.mine.green_base: wants true or false, not []"),
    "a word that is none": ('view = "moon"', "profiles.mine.view: wants one of 'kind', 'type' or 'phase_type', not \"moon\""),
    "no classifier": ('classifier = "x"', "profiles.mine.classifier: wants one of 'unstuck', 'auto-claude' or 'seed-002'"),
    "a negative limit": ("limits.first_wait = -1", "profiles.mine.limits.first_wait: must be at least 0"),
    "a huge limit": ("limits.longest_wait = inf", "profiles.mine.limits.longest_wait: must be at most 1000000000"),
    "no such profile to begin as": ('like = "adaptve"', "profiles.mine.like: there is no profile 'adaptve' to begin as; did you mean 'adaptive'"),
    "no ladder": ('about = "x"', "profiles.mine.ladder: agent_crashed has no ladder; write one, or one of '*'"),
    "an unknown key of a ladder": ("ladder = [{ off = [] }]", "profiles.mine.ladder.off: there is no such key; did you mean 'of'"),
    "an unknown kind": ('ladder = [{ of = ["test_faild"] }]', "profiles.mine.ladder.of: 'test_faild' is not a kind; did you mean 'test_failed'"),
    "a rung that is no text": ("ladder = [{ rungs = [1] }]", "profiles.mine.ladder.rungs: wants a text in quotes, not 1"),
    "an unknown move": ('ladder = [{ rungs = ["retyr"] }]', "'retyr' is not a rung; write for example 'retry*2 repair'; moves are retry,"),
    "an unknown hint": ('ladder = [{ rungs = ["retry repare"] }]', "there is no hint 'repare'; did you mean 'repair'"),
    "an unknown placeholder": ('like = "adaptive"\nspent = "{tries}"', "profiles.mine.spent: {tries} is not filled in"),
    "no table": ("", "profiles.other: wants a table, not 3"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "says"), PROFILES.values(), ids=PROFILES.keys())
def test_a_wrong_profile_is_told_with_its_key_and_what_is_allowed(project: "Project", text: str, says: str) -> None:
    project.plan(A)
    other = "[profiles]\nother = 3\n" if not text else ""
    (project.root / "unstuck.toml").write_text(f"{other}[profiles.mine]\n{text}\n")
    for command in (("plan", "tasks.md"), ("policy",)):
        expect_error(project.ask(*command), 64, "unstuck.toml", says, "Hint: ")
    result = project.ask("config")
    assert (result.code, says in result.err) == (64, True), result


def test_a_profile_with_a_mistake_is_left_out_and_the_others_hold(project: "Project") -> None:
    project.settings('[profiles.good]\nlike = "standard"\n[profiles.bad]\nlike = "standrad"\n')
    result = project.ask("config", "profiles")
    assert 'profiles.good = {"like": "standard"}' in result.out
    assert "profiles.bad" not in result.out
    assert result.code == 64


def test_a_configuration_with_a_byte_order_mark_is_one(project: "Project") -> None:
    (project.root / "unstuck.toml").write_bytes(b"\xef\xbb\xbfparallel = 2\r\n")
    assert project.ask("config", "parallel").out.startswith("parallel = 2  # unstuck.toml; default 4")


def test_a_run_is_watched_and_stopped_while_its_configuration_is_broken(project: "Project") -> None:
    project.plan(A)
    project.script(_1_1=[[{"print": "I work."}, {"hang": True}]])
    running = project.start("run", "tasks.md", "--agent", project.agent)
    wait_until(lambda: project.slots and project.status().get("1.1") == "running", "the task to run")
    (project.root / "unstuck.toml").write_text("paralel = 3\n")
    for command in ("status", "show 1.1", "log", "runs", "report"):
        result = project.ask(*command.split())
        assert (result.code, result.err) == (0, ""), (command, result)
    assert "✘ journal" not in project.ask("doctor", "--no-run").out
    result = project.ask("stop")
    assert "Left for the running supervisor" in result.out, result
    running.communicate(timeout=60)
    assert running.returncode == 3
    expect_error(project.ask("retry", "1.1"), 64, "unstuck.toml:1: paralel")  # nobody is there to do it


def test_copies_from_outside_of_the_repository_are_refused(project: "Project") -> None:
    project.plan(A)
    (project.root / "unstuck.toml").write_text('[workspace]\ncopy = ["../secret"]\n')
    expect_error(project.ask("run", "tasks.md", "--agent", project.agent), 64, "unstuck.toml", "../secret", "Hint: ")


def test_a_plan_is_shown_with_the_gates_that_a_run_has(project: "Project") -> None:
    project.plan(A)
    project.settings('[checks]\ntest = "make test"\n')
    assert "make test  (after every task)" in project.ask("plan", "tasks.md").out
    (gate,) = project.ask("plan", "tasks.md", "--json").json["gates"]
    assert (gate["kind"], gate["command"]) == ("test", "make test")
    expect_nothing_started(project)


def test_a_run_inside_of_an_agents_session_is_refused(project: "Project") -> None:
    project.plan(A)
    project.script(_1_1=[[MAKE_A]])
    expect_error(project.run(UNSTUCK_RUN="20260101-abcdef"), 69, "20260101-abcdef", "Hint: ")
    expect_nothing_started(project)


def git_only(project: "Project") -> str:
    """Return a PATH with git and nothing that could be an agent."""
    folder = project.root.parent / "bin"
    folder.mkdir()
    for name in ("git", "bash", "sh"):
        found = subprocess.run(["which", name], capture_output=True, text=True, check=True).stdout.strip()
        (folder / name).symlink_to(found)
    assert sys.executable
    return str(folder)
