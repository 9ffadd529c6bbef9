"""A night of ten tasks with the real Claude Code, read the next morning as a person would."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conformance.clis import pinned
from tests.conformance.conftest import Site
from tests.conformance.server import ModelServer
from tests.conformance.turns import Fault, Run, Say, Stall, Turn

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(900)]

SUITE = """import unittest
from roman import value


class Values(unittest.TestCase):
    def test_small(self):
        self.assertEqual(value("VIII"), 8)

    def test_before(self):
        self.assertEqual(value("XIV"), 14)
"""
FILES = {"test_roman.py": SUITE, "notes.md": "Notes\n", "test_skip.py": SUITE.replace("roman", "numerals")}
DIGITS = "{'I': 1, 'V': 5, 'X': 10, 'L': 50, 'C': 100}"
WRONG = f"def value(text):\n    return sum({DIGITS}[c] for c in text)\n"
RIGHT = f"""def value(text):
    digits = [{DIGITS}[c] for c in text]
    return sum(-d if d < max(digits[i:]) else d for i, d in enumerate(digits))
"""


def writes(name: str, text: str) -> Run:
    return Run(f"cat > {name} <<'END'\n{text}END")


def done(how: str) -> Say:
    return Say(f"The task is done.\nAPPROACH: {how}")


NIGHT: Mapping[str, tuple[str, str, str, tuple[Turn, ...]]] = {
    "1.1": ("Greet in greeting.txt", "greeting.txt", "grep -q hello greeting.txt",
            (writes("greeting.txt", "hello\n"), done("wrote the file"))),
    "1.2": ("Say goodbye in farewell.txt", "farewell.txt", "grep -q goodbye farewell.txt",
            (Say("I wrote farewell.txt. Everything works."), writes("farewell.txt", "goodbye\n"), done("wrote it this time"))),
    "1.3": ("Read Roman numbers", "roman.py", "python3 -m unittest -q test_roman",
            (writes("roman.py", WRONG), done("added up all letters"),
             writes("roman.py", "def value(text):\n    return {'VIII': 8, 'XIV': 41}[text]\n"), done("looked them up"),
             writes("roman.py", "import romans\n"), done("took a library"),
             writes("roman.py", RIGHT), done("subtracted what stands before more"))),
    "1.4": ("Keep a change log", "changes.md", "grep -q roman changes.md",
            (Run("echo draft > changes.md"), Fault(trouble="rate_limit", lasts=3, headers={"retry-after": "1"}),
             writes("changes.md", "roman numbers\n"), done("wrote the log"))),
    "1.5": ("Name the licence", "LICENCE", "grep -q MIT LICENCE",
            (Run("echo MIT > LICENCE && git add LICENCE && git commit -qm 'my own commit'"), done("committed it myself"))),
    "1.6": ("List the authors", "AUTHORS", "grep -q Ada AUTHORS",
            (Run("echo Ada > AUTHORS && echo 'see AUTHORS' >> notes.md"), done("listed them and noted it"))),
    "1.7": ("Choose the storage", "storage.txt", "grep -q sqlite storage.txt",
            (writes("storage.txt", "undecided\n"), Say("Both would do. Should the numbers be kept in sqlite or in a flat file?"),
             writes("storage.txt", "sqlite\n"), done("took what I was told"))),
    "1.8": ("Describe the build", "build.md", "grep -q make build.md",
            (Run("echo todo > build.md"), Stall(), writes("build.md", "make\n"), done("wrote it in one go"))),
    "1.9": ("Describe the tests", "tests.md", "grep -q unittest tests.md",
            (Run("echo half > tests.md; kill -KILL $PPID"), writes("tests.md", "unittest\n"), done("finished what was there"))),
    "1.10": ("Read numerals", "numerals.py", "python3 -m unittest -q test_skip",
             (writes("numerals.py", WRONG), Run("sed -i 's/    def test_before/    @unittest.skip(\"later\")\\n    def test_before/' test_skip.py"), done("left the hard case for later"),
              writes("numerals.py", RIGHT), done("did the hard case, too"))),
}  # fmt: skip


@pytest.fixture
def night() -> Iterator[ModelServer]:
    with ModelServer(tasks={name: turns for name, (*_, turns) in NIGHT.items()}) as model:
        yield model


@pytest.fixture
def here(site: Callable[..., Site], night: ModelServer) -> Site:
    """Plan the ten tasks."""
    cli = pinned()["claude"]
    if not cli.installed:
        pytest.skip(f"{cli.name} {cli.version} is not in {cli.folder}: run `make conformance CLIS=claude`")
    made: Site = site("claude", night, silence=15)
    blocks = [
        f"- [ ] {name} {title}\n  - **Files**: {file}\n  - **Verify**: `{check}`\n"
        for name, (title, file, check, _) in NIGHT.items()
    ]
    for name, text in {**FILES, "tasks.md": "# Roman numbers\n\n" + "\n".join(blocks)}.items():
        (made.root / name).write_text(text)
    made.git("add", "-A")
    made.git("commit", "--quiet", "-m", "Plan the night")
    return made


def at(here: Site, width: int, *arguments: str) -> str:
    """Return what a command prints on a terminal of so many columns; keep it where CONFORMANCE_STORY names a folder."""
    text = replace(here, env={**here.env, "COLUMNS": str(width)}).unstuck(*arguments).out
    if keep := os.environ.get("CONFORMANCE_STORY"):
        Path(keep, f"{'-'.join(arguments)}-{width}.txt").write_text(text)
    return text


def read(text: str) -> str:
    """Return a text as one reads it, whichever way its lines are broken."""
    return " ".join(text.split())


def test_a_night_of_ten_tasks_is_told_right_in_the_morning(here: Site) -> None:
    told = here.unstuck("run", "tasks.md", "--agent", "claude", seconds=700)
    assert told.code == 3, told
    for width in (80, 120):
        summary = at(here, width, "status")
        branch = here.git("for-each-ref", "--format=%(refname:short)", "refs/heads/unstuck")
        for words in (
            "9 landed, 1 stuck of 10 tasks",
            f"9 landed tasks are on branch {branch}, not on main yet:",
            f"git merge --ff-only {branch}",
            "unstuck skip 1.7 && unstuck resume",
            "1.6: notes.md:1: notes.md is not among the task's Files.",
            "1.7: claude asks: Should the numbers be kept in sqlite or in a flat file?",
            "recovered from tampered",
            "recovered from hang",
            "went on in session 2",
        ):
            assert words in read(summary), summary
        assert [line for line in summary.splitlines() if len(line) > width] == []
        story = at(here, width, "show", "1.3")
        for words in (
            "AssertionError: 16 != 14",
            "AssertionError: 41 != 14",
            "No module named 'romans'",
            "added up all",
        ):
            assert words in read(story), story
        report = at(here, width, "report")
        assert "- storage.txt (changed by the agent)" in report
        for words in ("printed nothing for too long", "slots/w", "\x1b"):
            assert words not in at(here, width, "show", "1.9") + story + report
    history = json.loads((here.root / ".unstuck" / "attempt_history.json").read_text())["subtasks"]["1.3"]["attempts"]
    errors = [attempt["error"] for attempt in history if not attempt["success"]]
    assert (len(errors), len(set(errors))) == (3, 3), errors
    assert here.unstuck("answer", "1.7", "sqlite").code == 0
    again = here.unstuck("resume")
    assert again.code == 0, again
    assert here.git("show", "HEAD:storage.txt") == "sqlite"
    assert here.model.left == ()
    assert here.leftovers() == []
