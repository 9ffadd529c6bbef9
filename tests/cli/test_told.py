"""What people and agents are told, read as they would read it: the sentence that must be there, and the one that must not."""

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.project import Project

UNITTEST = "python3 -m unittest -q test_answer"
TESTS = """import unittest
from answer import answer
class Answers(unittest.TestCase):
    def test_answer(self):
        self.assertEqual(answer(), 42)
"""


def says(number: int) -> dict[str, str]:
    return {"write": "answer.py", "text": f"def answer():\n    return {number}\n"}


# --- the error itself ----------------------------------------------------------------------------------


def test_three_attempts_are_told_by_their_three_errors_with_the_command_beside_them(project: "Project") -> None:
    project.file("test_answer.py", TESTS)
    project.plan(("1.1", "Answer", UNITTEST))
    project.script(
        _1_1=[[says(number), {"print": f"APPROACH: {way}"}] for number, way in enumerate(("guess", "ask", "think"), 1)]
    )
    told = project.run("--max-attempts", "3")
    assert told.code == 3, told
    history = json.loads((project.home / "attempt_history.json").read_text())["subtasks"]["1.1"]["attempts"]
    errors = [attempt["error"] for attempt in history]
    for number, error in enumerate(errors, 1):
        assert error.startswith(f"AssertionError: {number} != 42 ("), errors
        assert "test_answer" in error, errors
        assert error.endswith(f", from `{UNITTEST}`"), errors
    brief = (project.home / "briefs" / "1.1-3-1.md").read_text()
    assert "Error: AssertionError: 1 != 42 (" in brief
    assert "Error: AssertionError: 2 != 42 (" in brief
    report = project.ask("report", "1.1").out
    assert "guess - AssertionError: 1 != 42 (" in report, report
    assert "Last: The tests fail: AssertionError: 3 != 42 (" in told.out, told


def test_an_agent_that_dies_or_gives_up_is_told_by_its_own_error_line(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"), ("1.2", "Make b", "test -f b.txt"))
    gave_up = "Task 1.2: Make b FAILED\n- Error: the schema has no column b\n- Attempted fix: none\n- Status: blocked"
    project.script(
        _1_1=[[{"error": "loading\nError: cannot open config.yml\nbye"}, {"exit": 3}]], _1_2=[[{"print": gave_up}]]
    )
    told = project.run("--max-attempts", "1")
    assert "Error: cannot open config.yml" in told.out, told
    assert "the schema has no column b" in told.out, told
    history = json.loads((project.home / "attempt_history.json").read_text())["subtasks"]
    assert history["1.1"]["attempts"][0]["error"] == "Error: cannot open config.yml"
    assert history["1.2"]["attempts"][0]["error"] == "the schema has no column b"
