"""Make eight small repositories, and run plans in them with a scripted agent that needs no model."""

import json
import os
import sqlite3
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SETTINGS = '[limits]\nfirst_output = 20\nsilence = 20\nwall_clock = 40\ndrain = 5\n[sandbox]\nmode = "none"\n'
DATE = "2026-01-05T10:00:00+00:00"
SEVERAL_COMMANDS = """
import contextlib, io, json, runpy, sys
answers = []
for words in json.load(sys.stdin):
    sys.argv = ["unstuck", *words]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape") for _ in range(2))
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_module("unstuck", run_name="__main__")
        except SystemExit as ended:
            code = ended.code or 0
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8", "replace"))
    answers.append([code, *texts])
json.dump(answers, sys.__stdout__)
"""
"""Run many commands in one process: to start Python for each of them takes ten times as long."""


@dataclass
class Workbench:
    """Hold the folder in which the repositories are made, and the version of `unstuck` that is looked at."""

    folder: Path
    source: Path
    python: str
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        programs = self.folder / "bin"
        programs.mkdir()
        (programs / "python3").write_text(f'#!/bin/sh\nexec {self.python} "$@"\n')
        (programs / "python3").chmod(0o755)
        (self.folder / "home").mkdir()
        self.environment = {
            "PATH": f"{programs}:/usr/bin:/bin", "HOME": str(self.folder / "home"), "LC_ALL": "C.UTF-8", "TZ": "UTC",
            "XDG_STATE_HOME": str(self.folder / "state"), "COLUMNS": "200", "PYTHONPATH": str(self.source),
            "PYTHONDONTWRITEBYTECODE": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "USER": "ada", "LOGNAME": "ada",
        }  # fmt: skip

    def commands(self, asked: Sequence[Sequence[str]], folder: Path) -> list[tuple[int, str, str]]:
        """Run several commands, and return the exit code and both streams of each."""
        done = subprocess.run(
            [self.python, "-P", "-c", SEVERAL_COMMANDS], cwd=folder, env=self.environment, text=True,
            input=json.dumps(asked), capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{asked} in {folder}: {done.stderr}")
        return [(code, out, err) for code, out, err in json.loads(done.stdout)]


@dataclass
class Repository:
    """Stand for a user's repository and the scripted agent that works in it."""

    bench: Workbench
    name: str
    in_order: bool = True
    """Whether events come in the same order every time; not so where tasks run side by side."""

    def __post_init__(self) -> None:
        self.root = self.bench.folder / self.name / "project"
        self.root.mkdir(parents=True)
        self.runs: list[tuple[int, str, str]] = []
        self.git("init", "--quiet", "-b", "main")
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")
        self.commit(
            {
                "readme.txt": "a project\n",
                ".gitignore": "*.log\nnode_modules/\n__pycache__/\n",
                "unstuck.toml": SETTINGS,
            }
        )
        self.script({})

    @property
    def agent(self) -> str:
        return f"scripted:{self.root.parent / 'agent.json'}"

    @property
    def store(self) -> Path:
        return self.root / ".git" / "unstuck"

    def git(self, *words: str) -> str:
        dates = {"GIT_AUTHOR_DATE": DATE, "GIT_COMMITTER_DATE": DATE}
        done = subprocess.run(
            ["git", *words],
            cwd=self.root,
            env=self.bench.environment | dates,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def commit(self, files: Mapping[str, str], message: str = "Start") -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.git("add", "--", *files)
        self.git("commit", "--quiet", "-m", message)

    def script(self, attempts: Mapping[str, Sequence[Any]]) -> None:
        """Write what the agent does: for each task its attempts, each a list of steps."""
        parts = {
            task: [steps if isinstance(steps, dict) else {"steps": steps} for steps in lists]
            for task, lists in attempts.items()
        }
        (self.root.parent / "agent.json").write_text(json.dumps({"task": parts}))

    def unstuck(self, *words: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
        """Run one command in a process of its own, and insist on its exit code."""
        done = subprocess.run(
            [self.bench.python, "-P", "-m", "unstuck", *words], cwd=self.root, env=self.bench.environment, text=True,
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
        self.runs.append((done.returncode, done.stdout, done.stderr))
        if done.returncode != expect:
            raise RuntimeError(
                f"{self.name}: {words} ended with {done.returncode}, not {expect}\n{done.stdout}\n{done.stderr}"
            )
        return done

    def run(self, plan: str, *words: str, expect: int = 0) -> None:
        quiet = () if self.in_order else ("--quiet",)
        self.unstuck("run", plan, "--agent", self.agent, "--json", *quiet, *words, expect=expect)

    def events(self) -> list[tuple[int, str, float, str]]:
        """Return the rows of the journal as they are stored."""
        with sqlite3.connect(self.store / "journal.db") as journal:
            return list(journal.execute("SELECT seq, run, at, body FROM events ORDER BY seq"))

    def tasks_of(self, run: str) -> list[str]:
        """Return the names of a run's tasks."""
        status = self.bench.commands([["status", "--run", run, "--json"]], self.root)[0][1]
        return list(json.loads(status)["tasks"])


def write(name: str, text: str = "right\n") -> dict[str, str]:
    return {"write": name, "text": text}


def failing(task: str, error: str) -> dict[str, str]:
    """Return the step in which an agent says that it failed, in smart-ralph's form."""
    return {
        "print": f"Task {task}: Add it FAILED\n- Error: {error}\n- Attempted fix: Checked alternate paths\n- Status: Blocked"
    }


def task(head: str, title: str, verify: str = "", *lines: str) -> str:
    more = [*lines, *([f"**Verify**: `{verify}`"] if verify else [])]
    return f"- [ ] {head} {title}\n" + "".join(f"  - {line}\n" for line in more)


def superplan(rows: Sequence[tuple[str, str, str, str]]) -> str:
    """Return a plan in phases; each row is a name, what it waits for, what runs beside it, and its check."""
    table = "".join(f"| {name} | Part {name} | {waits} | {beside} | 3 | ⬜ |\n" for name, waits, beside, _ in rows)
    sections = "\n".join(
        f"### Phase {name}: Part {name}\n\n> **Status**: ⬜ Not Started\n\n#### Objectives\n- [ ] Write part {name}\n\n"
        f"#### Definition of Done\n- [ ] `{check}` passes\n"
        for name, _, _, check in rows
    )
    head = "| Phase | Name | Depends On | Parallel With | Estimate | Status |\n|---|---|---|---|---|---|\n"
    return f"# Login Implementation Plan\n\n{head}{table}\n\n{sections}"


PHASES = superplan([
    ("1", "-", "-", "test -f 1.txt"), ("2A", "1", "2B", "bash tests.sh 2a"),
    ("2B", "1", "2A", "bash tests.sh 2b"), ("3", "2A, 2B", "-", "test -f 3.txt"),
])  # fmt: skip
PHASE_TESTS = 'grep -q right $1.txt 2>/dev/null && exit\necho "FAILED tests/$1_test.py::refresh - AssertionError"\necho "1 failed"; exit 1\n'
PROGRESS = "specs/demo/.progress.md"
FIX_PLAN = "# Tasks: Demo\n\n## Phase 1\n\n" + task(
    "1.3", "Add failure parser", 'grep -q "Parse Failure" implement.md',
    "**Do**: Add parsing logic to implement.md", "**Files**: implement.md", "**Commit**: feat(coordinator): add failure parser",
) + "\n" + task("1.4", "[VERIFY] Check everything", "test -f implement.md")  # fmt: skip
JSON_PLAN = json.dumps({
    "feature": "Sign-in", "workflow_type": "feature", "phases": [
        {"id": "phase-1", "name": "Rule", "depends_on": [], "subtasks": [
            {"id": "1.1", "description": "Refuse short passwords", "status": "pending", "files_to_modify": ["src/password.py"],
             "verification": {"type": "command", "command": "grep -q right src/password.py"}},
            {"id": "1.2", "description": "Describe the rule", "status": "completed", "files_to_modify": ["docs/password.md"]}]},
        {"id": "phase-2", "name": "Page", "depends_on": ["phase-1"], "subtasks": [
            {"id": "2.1", "description": "Show it", "verification": {"type": "command", "run": "test -s public/index.html"}}]}],
}, indent=2)  # fmt: skip
PREDECESSOR = json.dumps({
    "subtasks": {"1.1": {"status": "failed", "attempts": [{"session": 1, "timestamp": "2025-12-30T09:00:00", "approach": "a regex",
     "success": False, "error": "too short"}]}}, "stuck_subtasks": [], "metadata": {}})  # fmt: skip
MODULE = "def add(a, b):\n    return a {} b\n"
MODULE_TEST = "import unittest\n\nfrom calc import add\n\n\nclass AddTest(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 2), 4)\n"


def python_tasks(bench: Workbench) -> Repository:
    """Run a tasks.md in a Python project; its second task is right at the second try."""
    made = Repository(bench, "python_tasks")
    plan = "# Calc\n\n" + task(
        "1.1",
        "Write add",
        "python3 -m unittest -q test_calc",
        "**Files**: `calc.py`, `test_calc.py`",
        "**Commit**: `feat: add`",
    )
    plan += task("1.2", "Write notes", "grep -q right notes.md", "**Depends**: 1.1") + task(
        "1.3", "[VERIFY] All of it", "test -f calc.py && test -f notes.md"
    )
    made.commit(
        {"tasks.md": plan, "unstuck.toml": SETTINGS + '[checks]\nlint = "! grep -rn TODO --include=*.py ."\n'},
        "Write the plan",
    )
    made.script({
        "1.1": [[write("calc.py", MODULE.format("-")), write("test_calc.py", MODULE_TEST)], [write("calc.py", MODULE.format("+"))]],
        "1.2": [[write("notes.md", "wrong\n"), {"cost": 0.25, "session": "s1"}], [write("notes.md"), {"cost": 0.5, "session": "s1"}]],
    })  # fmt: skip
    made.run("tasks.md")
    return made


def phases(bench: Workbench) -> Repository:
    """Run a superplan with two phases side by side, of which one fails once."""
    made = Repository(bench, "phases", in_order=False)
    made.commit({"docs/feature-plan.md": PHASES, "tests.sh": PHASE_TESTS}, "Write the plan")
    made.script(
        {
            "1": [[write("1.txt")]],
            "2a": [[write("2a.txt")]],
            "2b": [[{"sleep": 1.5}, write("2b.txt", "no\n")], [write("2b.txt")]],
            "3": [[write("3.txt")]],
        }
    )
    made.run("docs/feature-plan.md")
    return made


def halted_phases(bench: Workbench) -> Repository:
    """Run the phases as autobuild has it: what fails twice halts the run."""
    made = Repository(bench, "halted_phases", in_order=False)
    made.commit({"docs/feature-plan.md": PHASES, "tests.sh": PHASE_TESTS}, "Write the plan")
    made.script(
        {
            "1": [[write("1.txt")]],
            "2a": [[write("2a.txt")]],
            "2b": [[{"sleep": 1.5}, write("2b.txt", "no\n")], [write("2b.txt", "never\n")]],
        }
    )
    made.run("docs/feature-plan.md", "--profile", "single-retry", expect=3)
    return made


def json_plan(bench: Workbench) -> Repository:
    """Run an implementation_plan.json beside which a predecessor left its attempts."""
    made = Repository(bench, "json_plan")
    made.commit({"implementation_plan.json": JSON_PLAN, "memory/attempt_history.json": PREDECESSOR}, "Write the plan")
    made.script(
        {
            "1.1": [[write("src/password.py", "wrong\n")], [write("src/password.py")]],
            "2.1": [[write("public/index.html")]],
        }
    )
    made.run("implementation_plan.json")
    return made


def fix_tasks(bench: Workbench) -> Repository:
    """Run a spec folder in which a failing Verify becomes a fix task in the plan."""
    made = Repository(bench, "fix_tasks")
    state = json.dumps({"phase": "execution", "taskIndex": 0, "totalTasks": 2, "fixTaskMap": {}})
    progress = "# Progress: demo\n\n## Original Goal\nA parser.\n\n## Learnings\n- Some learning\n"
    folder = "specs/demo"
    made.commit(
        {f"{folder}/tasks.md": FIX_PLAN, f"{folder}/.ralph-state.json": state, PROGRESS: progress}, "Write the spec"
    )
    made.script({
        "1.3": [[write("implement.md", "half\n"), failing("1.3", "File not found: src/parser.ts")], [{"print": "TASK_COMPLETE"}]],
        "1.3.1": [[{"append": "implement.md", "text": "Parse Failure\n"}, {"print": "TASK_COMPLETE"}]],
    })  # fmt: skip
    made.run(folder, "--recovery-mode")
    return made


def stuck_question(bench: Workbench) -> Repository:
    """Let one task get stuck and answer it, skip a second, and leave a third open."""
    made = Repository(bench, "stuck_question")
    plan = (
        task("1.1", "Make a", "test -f a.txt")
        + task("1.2", "Make b", "grep -q right b.txt")
        + task("1.3", "Make c", "test -f c.txt")
    )
    made.commit({"tasks.md": plan + task("1.4", "Make d", "test -f d.txt", "**Depends**: 1.3")}, "Write the plan")
    made.script(
        {
            "1.1": [[write("a.txt")]],
            "1.2": [[write("b.txt", "wrong\n")], [write("b.txt")]],
            "1.3": [[{"print": "Which colour?"}]],
        }
    )
    made.run("tasks.md", "--max-attempts", "1", expect=3)
    made.unstuck("answer", "1.2", "take the right one")
    made.unstuck("resume", "--json", expect=3)
    made.unstuck("skip", "1.4", "--because", "nobody needs it")
    return made


def parallel(bench: Workbench) -> Repository:
    """Run three tasks side by side."""
    made = Repository(bench, "parallel", in_order=False)
    names = ("a", "b", "c")
    plan = "".join(
        task(f"1.{n}", f"[P] Make {name}", f"test -f {name}.txt", f"**Files**: `{name}.txt`")
        for n, name in enumerate(names, 1)
    )
    made.commit({"tasks.md": plan + task("1.4", "[VERIFY] All", "ls a.txt b.txt c.txt")}, "Write the plan")
    made.script({f"1.{n}": [[{"sleep": 1.2 * n}, write(f"{name}.txt")]] for n, name in enumerate(names, 1)})
    made.run("tasks.md", "--parallel", "3", "--commit", "single")
    return made


def without_tests(bench: Workbench) -> Repository:
    """Run a checklist in a Node project without tests: one task is accepted by a person, then a goal is reached."""
    made = Repository(bench, "without_tests")
    plan = "# Fix plan\n\n- [ ] Write the readme\n- [ ] Write the script\n  - Verify: `bash hello.sh`\n"
    made.commit({"fix_plan.md": plan, "package.json": '{"name": "demo", "version": "1.0.0"}\n'}, "Write the plan")
    made.script(
        {
            "t1": [[write("readme.md")]],
            "t2": [[write("hello.sh", "echo hello\n")]],
            "goal": [[write("bye.sh", "echo bye\n")]],
        }
    )
    made.run("fix_plan.md", expect=3)
    made.unstuck("accept", "t1", "--because", "I read it")
    made.unstuck("resume", "--json")
    made.unstuck("go", "Say goodbye", "--check", "bash bye.sh", "--agent", made.agent, "--json")
    return made


REPOSITORIES: Sequence[Callable[[Workbench], Repository]] = (
    python_tasks, phases, halted_phases, json_plan, fix_tasks, stuck_question, parallel, without_tests,
)  # fmt: skip
