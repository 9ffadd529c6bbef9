"""Why it went as it did, and what another profile would have done: told from the journal, without any agent."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.project import Project


@pytest.fixture
def explained_run(project: "Project") -> "Project":
    """Run a task that fails its assertion three times in different ways, and lands with the fourth attempt."""
    project.plan(("1.1", "Answer", "python3 check.py"))
    parts = [
        [
            {"write": "check.py", "text": f"got = {got}\nassert got == 200, f'Expected 200 but got {{got}}'\n"},
            {"print": f"APPROACH: {word}"},
        ]
        for got, word in ((404, "routing"), (500, "caching"), (301, "headers"), (200, "rewriting"))
    ]
    project.script(_1_1=parts)
    assert project.run().code == 0
    return project


def test_the_story_tells_what_was_seen_by_which_rule_on_which_rung_and_what_others_would_do(
    explained_run: "Project",
) -> None:
    story = explained_run.ask("explain", "1.1").out
    assert story.splitlines()[0] == "Task 1.1: Answer (landed); decided by profile adaptive"
    assert story.count("\nAttempt ") == 4
    first = story.split("\nAttempt ")[1]
    assert "seen:     check_failed: " in first
    assert "rule:     crash.status_compared" in first
    assert "decided:  try again in the same tree" in first
    assert "[check_failed[1]]" in first
    third = story.split("\nAttempt ")[3]
    assert "decided:  roll back and try again" in third
    assert "standard would ask a person [VERIFICATION_FAILED[end]]" in third
    assert "decided:  land it" in story.split("\nAttempt ")[4]


def test_a_replay_says_where_the_other_profile_would_have_stopped(explained_run: "Project") -> None:
    before = explained_run.ask("log").out
    answer = explained_run.ask("replay", "--profile", "single-retry").out
    assert "Task 1.1 would have waited for a person after attempt 2. It landed after all." in answer
    assert (
        "Task 1.1 would have waited for a person after attempt 3."
        in explained_run.ask("replay", "--profile", "standard").out
    )
    same = explained_run.ask("replay", "--profile", "adaptive").out
    assert "4 decisions, 0 of them different." in same
    assert explained_run.ask("log").out == before, "a replay changes nothing"


def test_the_way_back_to_changes_that_failed_before_is_seen_though_the_files_differ(project: "Project") -> None:
    check = "import cart\nassert cart.total() == 6, f'got {cart.total()}'\n"
    project.file("check.py", check)
    project.file("cart.py", "def total():\n    return 0\n")
    project.plan(("1.1", "Add up", "python3 check.py"))
    project.script(
        _1_1=[
            [
                {"write": "cart.py", "text": f"def total():\n    return {got}\n{more}"},
                {"print": f"APPROACH: {word}"},
            ]
            for got, word, more in (
                (3, "recursion", ""),
                (4, "a table", ""),
                (3, "generators", "\n\n"),
                (6, "sums", ""),
            )
        ]
    )
    assert project.run().code == 3
    reasons = [line for line in project.ask("explain", "1.1").out.splitlines() if line.startswith("  because:")]
    assert reasons[-1] == "  because:  Attempt 3 took back exactly the changes of attempt 2. [circular_fix[end]]"
    assert len(reasons) == 3, "no fourth session repeats what failed twice"


@pytest.mark.parametrize(
    "arguments", [("explain", "9.9"), ("explain", "1.1", "--profile", "nope"), ("replay", "--profile", "nope")], ids=str
)
def test_what_is_not_there_is_refused_by_name(half_done: "Project", arguments: tuple[str, ...]) -> None:
    answer = half_done.ask(*arguments)
    assert answer.code == 64
    assert "There is no" in answer.err
