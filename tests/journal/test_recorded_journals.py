"""Read journals that an earlier version recorded: what they say of a run stays the same.

Each `recorded/NN_name.jsonl` holds the events of one run, one in a line. Beside it lie the answers that the command line
gave to them. `python test_recorded_journals.py` writes these answers anew, for when they were changed on purpose.
"""

import contextlib
import gc
import io
import json
import os
import runpy
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

RECORDED = Path(__file__).with_name("recorded")
JOURNALS = sorted(RECORDED.glob("*.jsonl"))
TABLES = RECORDED / "journal_format_3.sql"
ENVIRONMENT = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "COLUMNS": "100", "NO_COLOR": "1", "GIT_CONFIG_GLOBAL": os.devnull}


@pytest.fixture(autouse=True)
def unchanged_garbage_collection() -> Iterator[None]:
    """Take back how the command line sets Python's garbage collection for its own process."""
    threshold = gc.get_threshold()
    yield
    gc.set_threshold(*threshold)
    gc.unfreeze()


@pytest.mark.parametrize("journal", JOURNALS, ids=lambda path: path.stem)
def test_a_recorded_journal_is_read_as_it_was(journal: Path, tmp_path: Path) -> None:
    lines = journal.read_text(encoding="utf-8").splitlines()
    answers = answers_to(lines, tmp_path / "project")
    assert answers.pop("events") == [json.loads(line)["body"] for line in lines]
    for name, answer in answers.items():
        expected = journal.with_suffix(f".{name}.json").read_text(encoding="utf-8")
        assert answer == json.loads(expected), f"{name} of {journal.stem}"


def test_a_journal_without_one_of_its_events_is_read_differently(tmp_path: Path) -> None:
    journal = JOURNALS[0]
    lines = journal.read_text(encoding="utf-8").splitlines()
    landed = max(number for number, line in enumerate(lines) if json.loads(line)["body"]["type"] == "acted")
    answers = answers_to(lines[:landed] + lines[landed + 1 :], tmp_path / "project")
    for name in ("status", "show", "log"):
        assert answers[name] != json.loads(journal.with_suffix(f".{name}.json").read_text(encoding="utf-8"))


def answers_to(lines: Sequence[str], project: Path) -> dict[str, Any]:
    """Return what the command line says of these events, in a repository that has nothing but them."""
    place_journal(lines, project)
    with (
        patch.dict(os.environ, ENVIRONMENT | {"XDG_STATE_HOME": str(project.parent / "state")}),
        contextlib.chdir(project),
    ):
        for name in [name for name in os.environ if name.startswith("UNSTUCK_") or name == "FORCE_COLOR"]:
            del os.environ[name]
        status = json.loads(printed("status", "--json"))
        answers = {
            "status": {"status": status, "runs": json.loads(printed("runs", "--json"))},
            "show": {task: json.loads(printed("show", task, "--json")) for task in status["tasks"]},
            "log": [*printed("log").splitlines(), "", *printed("replay", "--profile", "standard").splitlines()],
        }
        events = [json.loads(line)["event"] for line in printed("log", "--json").splitlines()]
    text = json.dumps(answers).replace(str(project), "<project>")
    return {"events": events, **json.loads(text)}


def place_journal(lines: Sequence[str], project: Path) -> None:
    """Make a repository whose journal holds these events."""
    store = project / ".git" / "unstuck"
    person = ("-c", "user.name=Ada", "-c", "user.email=ada")
    subprocess.run(["git", "init", "--quiet", "-b", "main", project], check=True)
    subprocess.run(["git", *person, "commit", "--quiet", "--allow-empty", "-m", "Start"], cwd=project, check=True)
    store.mkdir()
    with contextlib.closing(sqlite3.connect(store / "journal.db")) as journal:
        journal.execute("PRAGMA synchronous = OFF")
        journal.executescript(TABLES.read_text(encoding="utf-8"))
        for row in map(json.loads, lines):
            body = json.dumps(row["body"], separators=(",", ":"), ensure_ascii=False)
            journal.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (row["seq"], row["run"], row["at"], body))
        journal.commit()


def printed(*words: str) -> str:
    """Run one command in this process, by the entry that `python -m unstuck` has, and return what it prints."""
    out, errors = io.StringIO(), io.StringIO()
    code: Any = 0
    with (
        patch.object(sys, "argv", ["unstuck", *words]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
    ):
        try:
            runpy.run_module("unstuck", run_name="__main__")
        except SystemExit as ended:
            code = ended.code
    assert not code, f"{words}: exit code {code}\n{out.getvalue()}\n{errors.getvalue()}"
    return out.getvalue()


def write_expected_answers() -> None:
    for journal in JOURNALS:
        with tempfile.TemporaryDirectory() as folder:
            answers = answers_to(journal.read_text(encoding="utf-8").splitlines(), Path(folder) / "project")
        del answers["events"]
        for name, answer in answers.items():
            text = json.dumps(answer, indent=1, ensure_ascii=False) + "\n"
            journal.with_suffix(f".{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_expected_answers()
