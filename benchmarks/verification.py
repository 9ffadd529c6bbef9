"""Measure what verification costs per attempt: a slow gate in a run, against the same gate by hand."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

from benchmarks.report import BenchBroken, Report, Target
from unstuck.app.open_run import open_run
from unstuck.app.services import Watcher
from unstuck.journal.run_state import RunState
from unstuck.model.event import Entry, SessionEnded, Verified

SECONDS = 10.0
UNTOUCHED, TOUCHED = 1.3, 2.3
"""How often the time of the bare checks: where the judge is as it was, and where the change touches it."""
TASKS = {"1.1": "the judge untouched", "1.2": "the judge touched"}
PLAN = "".join(f"- [ ] {name} Write\n  - **Verify**: `grep -q {name} app.py`\n" for name in TASKS)
MAKEFILE = "test:\n\t@sleep {seconds} && grep -q answer app.py && echo 'test result: ok. 3 passed; 0 failed'\n"


def measure(*, seconds: float = SECONDS, say: Callable[[str], None] = print) -> Report:
    """Run a plan of two tasks under a gate of so many seconds, and the gate alone beside it."""
    with tempfile.TemporaryDirectory(prefix="unstuck-bench-") as scratch:
        root = Path(scratch) / "repository"
        _make(root, seconds)
        say(f"Running a gate of {seconds:g} seconds by hand, then in a run of {len(TASKS)} tasks ...")
        began = time.monotonic()
        subprocess.run(["make", "-s", "test"], cwd=root, check=True, stdout=subprocess.DEVNULL)
        bare = time.monotonic() - began
        took = _run(root, Path(scratch) / "agent.json")
    lines = [f"by hand: {bare:.2f} s"]
    lines += [f"{about}: {took[name]:.2f} s from the session's end to the verdict" for name, about in TASKS.items()]
    ratios = {name: took[name] / bare for name in TASKS}
    return Report(
        lines=tuple(lines),
        figures={"seconds": seconds, "bare": bare, **{about: took[name] for name, about in TASKS.items()}},
        targets=(
            Target(
                name=f"verification against the bare checks, {TASKS['1.1']}", value=ratios["1.1"], at_most=UNTOUCHED
            ),
            Target(name=f"verification against the bare checks, {TASKS['1.2']}", value=ratios["1.2"], at_most=TOUCHED),
        ),
    )


def _run(root: Path, script: Path) -> dict[str, float]:
    """Run the plan; return for each task the seconds between the end of its session and the verdict."""
    steps = {name: [{"steps": [{"append": "app.py", "text": f"answer = {name}\n"}]}] for name in TASKS}
    steps["1.2"][0]["steps"].append({"append": "Makefile", "text": "# a remark that nobody asked for\n"})
    script.write_text(json.dumps({"task": steps}))
    ended: dict[str, float] = {}
    took: dict[str, float] = {}

    def watch(entry: Entry, _state: RunState) -> None:
        match entry.event:
            case SessionEnded(task=name):
                ended[name] = time.monotonic()
            case Verified(task=name):
                took[name] = time.monotonic() - ended[name]
            case _:
                pass

    with chdir(root):
        run = open_run("tasks.md", agents=[f"scripted:{script}"], watcher=Watcher(entry=watch))
        summary = run.go()
    if summary.exit_code != 0 or took.keys() != TASKS.keys():
        raise BenchBroken(f"The run did not land both tasks: {summary.reason}")
    return took


def _make(root: Path, seconds: float) -> None:
    root.mkdir()
    files = {
        "app.py": "answer = 0\n",
        "Makefile": MAKEFILE.format(seconds=seconds),
        "unstuck.toml": '[checks]\ntest = "make -s test"\n',
        "tasks.md": PLAN,
    }
    for name, text in files.items():
        (root / name).write_text(text)
    author = {"GIT_AUTHOR_NAME": "Kit", "GIT_AUTHOR_EMAIL": "bench@example.org"}
    author |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in author.items()}
    for line in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "Start"]):
        subprocess.run(["git", *line], cwd=root, check=True, env={**os.environ, **author})
    for name, value in (("user.name", "Kit"), ("user.email", "bench@example.org")):
        subprocess.run(["git", "config", name, value], cwd=root, check=True)
