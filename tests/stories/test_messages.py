"""What people and agents are told, read as they would read it: the sentence that must be there, and the one that must not."""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.project import SOURCE, make_project
from tests.stories.superplans import run, superplan, write

from unstuck.agents.claims import blocking_question
from unstuck.agents.manifests import manifest, permission
from unstuck.agents.printed_json import gist
from unstuck.app.config_file import read_config
from unstuck.model.config import AgentConfig

if TYPE_CHECKING:
    from tests.fork_server import ForkServer
    from tests.project import CommandResult, Project, Step

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
    result = project.run("--max-attempts", "3")
    assert result.code == 3, result
    history = json.loads((project.home / "attempt_history.json").read_text())["subtasks"]["1.1"]["attempts"]
    errors = [attempt["error"] for attempt in history]
    for number, error in enumerate(errors, 1):
        assert error.startswith(f"AssertionError: {number} != 42 ("), errors
        assert "test_answer" in error, errors
        assert error.endswith(f", from `{UNITTEST}`"), errors
    brief = (project.store / "briefs" / "1.1-3-1.md").read_text()
    assert "Error: AssertionError: 1 != 42 (" in brief
    assert "Error: AssertionError: 2 != 42 (" in brief
    report = project.ask("report", "1.1").out
    assert "guess - AssertionError: 1 != 42 (" in report, report
    assert "Last: The tests fail: AssertionError: 3 != 42 (" in result.out, result


def test_an_agent_that_dies_or_gives_up_is_told_by_its_own_error_line(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"), ("1.2", "Make b", "test -f b.txt"))
    gave_up = "Task 1.2: Make b FAILED\n- Error: the schema has no column b\n- Attempted fix: none\n- Status: blocked"
    project.script(
        _1_1=[[{"error": "loading\nError: cannot open config.yml\nbye"}, {"exit": 3}]], _1_2=[[{"print": gave_up}]]
    )
    result = project.run("--max-attempts", "1")
    assert "Error: cannot open config.yml" in result.out, result
    assert "the schema has no column b" in result.out, result
    history = json.loads((project.home / "attempt_history.json").read_text())["subtasks"]
    assert history["1.1"]["attempts"][0]["error"] == "Error: cannot open config.yml"
    assert history["1.2"]["attempts"][0]["error"] == "the schema has no column b"


# --- after a run with something stuck --------------------------------------------------------------------


@pytest.fixture(scope="module")
def stuck(
    tmp_path_factory: pytest.TempPathFactory, fork_server: "ForkServer"
) -> Iterator[tuple["Project", "CommandResult"]]:
    """Run a plan of which one task lands with a file that its plan does not name, and one gets stuck. Look, do not touch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.setenv("PYTHONPATH", str(SOURCE))
        made = make_project(tmp_path_factory.mktemp("stuck") / "project", fork_server)
        made.file(
            "tasks.md",
            "# A plan\n\n- [ ] 1.1 Write the parser of all the formats that we know\n  - **Files**: a.txt\n"
            "  - **Verify**: `test -f a.txt`\n- [ ] 1.2 Make b\n  - **Verify**: `grep -q right b.txt`\n",
        )
        landing: list[Step] = [
            {"write": "a.txt", "text": "a\na\n"},
            {"write": "odd.txt", "text": "x\n"},
            {"cost": 0.25},
        ]
        made.script(_1_1=[landing], _1_2=[[{"write": "b.txt", "text": "wrong\n"}, {"cost": 0.5}]])
        result = made.run("--max-attempts", "1", COLUMNS="80")
        assert result.code == 3, result
        yield made, result


def test_after_a_stuck_task_the_summary_says_where_the_rest_is_and_the_command_that_takes_it(
    stuck: tuple["Project", "CommandResult"],
) -> None:
    project, result = stuck
    branch = project.git("for-each-ref", "--format=%(refname:short)", "refs/heads/unstuck")
    assert f"1 landed task is on branch {branch}, not on main yet:" in result.out, result
    assert f"take it as it is: git merge --ff-only {branch}" in result.out
    assert "unstuck skip 1.2 && unstuck resume" in result.out
    assert "scripted" in result.out
    assert "2 files +3 -0" in result.out
    assert "$0.25" in result.out
    assert "Worth a look:" in result.out
    assert "odd.txt" in result.out


def test_no_line_of_a_summary_is_wider_than_the_terminal_and_titles_stay_readable(
    stuck: tuple["Project", "CommandResult"],
) -> None:
    _, result = stuck
    rows = result.out.split("What needs you")[0].splitlines()
    assert any("Write the parser of all the formats that we know" in row for row in rows), result
    assert [row for row in rows[:8] if len(row) > 80] == []


def test_stories_and_reports_fit_a_narrow_terminal_and_break_no_word_and_no_command(
    stuck: tuple["Project", "CommandResult"], monkeypatch: pytest.MonkeyPatch
) -> None:
    project, _ = stuck
    monkeypatch.setenv("COLUMNS", "64")
    for command in (("show", "1.2"), ("report", "1.2"), ("status",)):
        wide = [line for line in project.ask(*command).out.splitlines() if len(line) > 64]
        assert [line for line in wide if "unstuck " not in line and "/" not in line] == [], command


def test_what_the_summary_tells_is_in_the_status_as_json_too(stuck: tuple["Project", "CommandResult"]) -> None:
    project, _ = stuck
    result = project.ask("status", "--json").json
    assert [one["type"] for one in result["commands"]][1] == "unstuck skip 1.2 && unstuck resume"
    assert [one["tasks"] for one in result["questions"]] == [["1.2"]]
    assert any("odd.txt" in line for line in result["cautions"])
    assert result["cost_usd"] == 0.75


def test_an_attempt_that_changed_nothing_is_told_as_one_and_an_agent_by_the_end_of_its_path(project: "Project") -> None:
    agent = project.root.parent / "a-folder-with-a-very-long-name" / "weasel"
    agent.parent.mkdir()
    agent.write_text("#!/bin/sh\necho UNSTUCK_DONE\n")
    agent.chmod(0o755)
    project.plan(("1.1", "Make a", "test -f a.txt"))
    result = project.unstuck("run", "tasks.md", "--agent", f"{agent} --now", "--max-attempts", "1")
    assert "…/weasel --now" in result.out, result
    empty = project.ask("diff", "1.1", "1")
    assert (empty.code, empty.out, empty.err) == (0, "", "Attempt 1 of task 1.1 changed nothing.\n"), empty


def test_the_work_of_an_attempt_is_shown_by_one_command_whether_it_landed_or_not(
    stuck: tuple["Project", "CommandResult"],
) -> None:
    project, _ = stuck
    assert "+wrong" in project.ask("diff", "1.2").out
    assert "odd.txt | 1 +" in project.ask("diff", "1.1", "--stat").out
    refused = project.ask("diff", "1.2", "7")
    assert (refused.code, "has no attempt 7" in refused.err) == (64, True)


def test_work_that_the_agent_committed_is_shown_by_the_command_that_the_next_brief_names(project: "Project") -> None:
    project.plan(("1.1", "Make a", "grep -q right a.txt"))
    own = [{"write": "a.txt", "text": "wrong\n"}, {"run": "git add -A"}, {"run": "git commit -qm mine"}]
    project.script(_1_1=[own, [{"write": "a.txt", "text": "right\n"}]])
    assert project.run().code == 0
    brief = (project.store / "briefs" / "1.1-2-1.md").read_text()
    command = next(line.partition("kept: ")[2] for line in brief.splitlines() if "Its work is kept: " in line)
    assert command.startswith("git diff ")
    assert "+wrong" in project.git(*command.split()[1:])


def test_costs_and_time_are_those_of_the_whole_run_and_a_budget_holds_over_resumes(project: "Project") -> None:
    project.plan(("1.1", "Make a", "grep -q right a.txt"), ("1.2", "Make b", "test -f b.txt"))
    project.script(
        _1_1=[[{"write": "a.txt", "text": "wrong\n"}, {"cost": 2.0}]], _1_2=[[{"write": "b.txt"}, {"cost": 0.5}]]
    )
    first = project.run("--budget-usd", "1.50", "--max-attempts", "1")
    assert "for $2.00" in first.out, first
    again = project.unstuck("resume")
    assert "The budget of $1.50 is used up: $2.00 so far. Raise it with: unstuck resume --budget-usd N" in again.out, (
        again
    )
    more = project.unstuck("resume", "--budget-usd", "9")
    assert "for $4.50" in more.out, more


# --- one precise question per cause ----------------------------------------------------------------------

GENERIC = ("Can you put this machine in order?", "What should the next attempt do differently?")


def test_many_tasks_that_miss_commands_ask_once_for_all_of_them(project: "Project") -> None:
    project.plan(*((f"1.{n}", f"Make {n}", f"nosuchtool{n} --version") for n in (1, 2, 3)))
    project.script(**{f"_1_{n}": [[{"write": f"{n}.txt"}]] for n in (1, 2, 3)})
    result = project.run("--max-attempts", "1")
    assert result.code == 3, result
    asked = "Please install nosuchtool1, nosuchtool2 and nosuchtool3, or say what to use instead."
    assert result.out.count(asked) == 1, result
    report = project.ask("report").out
    assert asked in report
    assert report.count("## Stuck Subtask") == 1
    assert not [words for words in GENERIC if words in result.out + report]


def test_a_failing_assertion_is_the_question_and_the_report_names_what_was_touched_and_what_is_blocked(
    project: "Project",
) -> None:
    project.file("test_answer.py", TESTS)
    project.plan(("1.1", "Answer", UNITTEST))
    project.script(_1_1=[[says(7)]])
    result = project.run("--max-attempts", "1")
    assert "One attempt ended with: AssertionError: 7 != 42 (" in result.out, result
    report = project.ask("report", "1.1").out
    assert "- answer.py (changed by the agent)" in report, report
    assert "### What It Blocks\n- nothing: all other tasks can go on" in report
    assert "None was made: " in report
    assert "::" not in report.split("### Files Involved")[1].split("###")[0], "a test is no file"
    assert not [words for words in GENERIC if words in result.out + report]


def test_the_report_of_a_stuck_phase_names_the_phases_that_wait_for_it(project: "Project") -> None:
    superplan(project, (("1", "-", "-", "sh tests.sh 1"), ("2", "1", "-", "sh tests.sh 2")))
    project.script(_1=[[write("1", "wrong\n")]])
    assert run(project).code == 3
    assert "### What It Blocks\n- 2\n" in project.ask("report", "1").out


def test_an_agent_that_asks_is_not_tried_again_and_the_answer_reaches_the_same_session(project: "Project") -> None:
    project.plan(("1.1", "Make a", "grep -q right a.txt"))
    question = "Should the table be dropped or kept?"
    asking: list[Step] = [
        {"write": "a.txt", "text": "half\n"},
        {"cost": 0.1, "session": "s1"},
        {"print": f"I looked around.\n{question}"},
    ]
    project.script(_1_1=[asking, [{"append": "a.txt", "text": "right\n"}]])
    result = project.run()
    assert result.code == 3, result
    assert f"asks: {question}" in result.out, result
    assert "1 attempt," in result.out
    answered = project.ask("answer", "1.1", "keep it")
    assert answered.code == 0, answered
    assert project.unstuck("resume").code == 0
    brief = (project.store / "briefs" / "1.1-2-1.md").read_text()
    assert brief.startswith("You stopped on task 1.1 to ask. Here is the answer"), brief
    assert "A person answers your question: keep it" in brief
    assert project.git("show", "main:a.txt") == "half\nright", "its work was kept"


def test_an_agent_that_says_and_does_nothing_is_told_so_and_what_waits_for_it_is_blocked_everywhere(
    project: "Project",
) -> None:
    check = """echo "$PWD/a.py:3: not there"; false"""
    project.file(
        "tasks.md",
        f"# A plan\n\n- [ ] 1.1 Make a\n  - **Verify**: `{check}`\n"
        "- [ ] 1.2 Make b\n  - **Verify**: `test -f b`\n  - **Depends**: 1.1\n",
    )
    result = project.unstuck("run", "tasks.md", "--agent", "true", "--max-attempts", "2")
    assert "the agent ended with exit code 0, without a word" in result.err, result
    assert "says it is done" not in result.err
    assert "1.1: true said nothing, and changed nothing: a.py:3: not there, from" in result.out, result
    assert "slots/w" not in result.out, "which of our folders a check ran in says nothing"
    assert "It changed nothing at all." in (project.store / "briefs" / "1.1-2-1.md").read_text()
    assert "; nothing was changed" in project.ask("report", "1.1").out
    assert project.ask("show", "1.2").out.startswith("⊘ Task 1.2: Make b (blocked)\nIt waits for 1.1.")
    assert project.ask("explain", "1.2").out.startswith("Task 1.2: Make b (blocked)")
    assert "blocked, waits for 1.1" in project.ask("status").out


def test_a_polite_offer_at_the_end_is_no_question() -> None:
    offers = ("All done. Would you like me to continue with the docs?", "Is there anything else?", "Shall I proceed?")
    needs = ("May I delete the old table?", "Which of the two ports should I use?", "Do you want A or B?")
    assert [text for text in offers if blocking_question(text)] == []
    assert [text for text in needs if not blocking_question(f"I looked at it.\n{text}")] == []


def test_a_question_before_the_last_sentence_is_asked_and_one_that_the_agent_answers_itself_is_none() -> None:
    assert blocking_question("Which file name should I use, A or B? I cannot go on without an answer.")
    assert blocking_question(
        "I looked around.\n\nShould the table be dropped or kept? Both are in the plan.\nIt says neither."
    )
    assert not blocking_question("How should I handle the dot? I decided to keep it. The parser is there.")
    assert not blocking_question("What went wrong? The cache was stale, and that is mended.")
    assert not blocking_question("Should I drop the table?\n\nNo: the plan says to keep it. So it is kept.")


def test_an_exit_code_is_not_told_as_a_claim(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"), ("1.2", "Make b", "test -f b.txt"))
    project.script(_1_1=[[{"print": "Looking around"}]], _1_2=[[{"print": "All done."}]])
    result = project.run("--max-attempts", "1")
    assert "1.1: the agent ended with exit code 0 (" in result.err, result
    assert "1.2: the agent ended with exit code 0, says it is done" in result.err, result
    assert "agent.json ended with exit code 0, and changed nothing: " in result.out, result
    assert "agent.json says that it is done, and changed nothing: " in result.out, result


def test_the_question_after_a_crash_names_the_signal(project: "Project") -> None:
    project.plan(("1.1", "Make a", "grep -q right a.txt"))
    agent = project.root.parent / "agent"
    agent.write_text(
        "#!/bin/sh\ngrep -q 'Make a' || { echo ok; exit; }\necho wrong > a.txt\necho starting\nkill -SEGV $$\n"
    )
    agent.chmod(0o755)
    result = project.unstuck("run", "tasks.md", "--agent", str(agent), "--max-attempts", "3")
    assert "3 attempts ended with: starting, signal 11. Does the agent work here" in result.out, result


def test_only_work_that_passed_is_said_to_have_been_right(project: "Project") -> None:
    project.settings("[limits]\nsilence = 1\nfirst_output = 1\n")
    project.plan(("1.1", "Make a", "grep -q right a.txt"), ("1.2", "Make b", "test -f b.txt"))
    project.script(_1_1=[[{"write": "a.txt", "text": "wrong\n"}, {"hang": True}]], _1_2=[[{"write": "b.txt"}]])
    assert project.run("--max-attempts", "1").code == 3
    assert project.ask("accept", "1.1", "--because", "no").code == 0
    for where in (project.ask("status").out, project.ask("pr").out):
        assert "accepted by a person (no), 1 check red; lands with " in where, where
        assert "interrupted" not in where
    assert "asked to accept 1.1 ('no'): done" in project.ask("log").out
    result = project.unstuck("resume")
    assert result.code == 0, result
    assert "accepted by a person (no), 1 check red" in result.out, result
    assert "its work was right" not in result.out, result


def test_an_attempt_that_adds_nothing_to_work_that_is_there_is_told_so(project: "Project") -> None:
    project.plan(("1.1", "Make a", "grep -q right PART.txt"))
    project.script(_1_1=[[{"write": "PART.txt", "text": "wrong\n"}], *[[{"print": "Done."}]] * 5])
    result = project.run("--max-attempts", "6")
    assert "Attempt 3 added nothing to what attempt 1 left, and neither did attempt 2." in result.err + result.out, (
        result
    )


def test_where_nothing_was_done_and_a_check_is_red_there_is_no_work_to_accept(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[{"print": "Done."}]])
    result = project.run("--max-attempts", "1")
    for text in (result.out, project.ask("show", "1.1").out, project.ask("report", "1.1").out):
        assert "unstuck accept" not in text, text
    refused = project.ask("accept", "1.1", "--because", "no")
    assert (refused.code, "left nothing that could land; to go on without it: unstuck skip 1.1" in refused.err) == (
        64,
        True,
    )
    assert project.status() == {"1.1": "stuck"}


def test_what_brings_the_rest_home_is_a_whole_command_however_much_is_stuck(project: "Project") -> None:
    names = [f"1.{number}" for number in range(1, 7)]
    project.plan(*((name, f"Make {name}", f"test -f {name}") for name in names))
    project.script(_1_1=[[{"write": "1.1"}]], **{f"_1_{number}": [[{"write": "x"}]] for number in range(2, 7)})
    assert project.run("--max-attempts", "1").code == 3
    command = project.ask("status", "--json").json["commands"][1]["type"]
    assert command == f"for task in {' '.join(names[1:])}; do unstuck skip $task; done && unstuck resume"


# --- one task's story -----------------------------------------------------------------------------------


def test_a_story_has_what_each_attempt_said_and_changed_and_a_person_s_own_words(project: "Project") -> None:
    project.plan(("1.1", "Make a", "grep -q right a.txt"))
    wrong = [{"write": "a.txt", "text": "wrong\n"}, {"print": "I have written a.txt.\nIt should do."}]
    project.script(_1_1=[wrong, wrong, [{"write": "a.txt", "text": "right\n"}]])
    project.run("--max-attempts", "1")
    story = project.ask("show", "1.1").out
    assert "Attempt 1, scripted" in story, story
    assert "changed: a.txt" in story
    assert "I have written a.txt." in story
    assert "unstuck show 1.1" not in story, "one reads it already"
    assert "unstuck answer 1.1 'TEXT'" in story
    project.ask("retry", "1.1", "--hint", "write the word right")
    assert "asked to retry 1.1 ('write the word right'): done" in project.ask("show", "1.1").out
    assert "+wrong" in project.ask("show", "1.1", "--diff").out
    assert "# Task 1.1: Make a" in project.ask("show", "1.1", "--brief").out


def test_all_runs_are_listed_and_each_can_be_looked_at(project: "Project") -> None:
    project.script(_1_1=[[{"write": "a.txt", "text": "a\n"}]], _2_1=[[{"write": "b.txt"}]])
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.plan(("2.1", "Make b", "test -f b.txt"), name="more.md")
    assert project.run().code == 0
    assert project.run(plan="more.md").code == 0
    listed = project.ask("runs", "--json").json["runs"]
    assert [(one["plan"], one["landed"], one["exit"]) for one in listed] == [("tasks.md", 1, 0), ("more.md", 1, 0)]
    assert "tasks.md: 1 landed of 1 task" in project.ask("runs").out
    first = listed[0]["run"]
    assert "Make a" in project.ask("status", "--run", first).out
    assert "Make b" not in project.ask("status", "--run", first).out
    assert "1.1" in project.ask("log", "--run", first).out
    assert "+++ b/a.txt" in project.ask("diff", "1.1", "--run", first).out
    assert project.ask("report", "--run", first).out == "Nothing waits for a person.\n"


# --- what agents are told ---------------------------------------------------------------------------------


def test_a_brief_forbids_no_word_of_the_task_and_says_what_the_agent_may_do(project: "Project") -> None:
    project.plan(("1.1", "Write the parser", "printf '\\033[31mred\\033[0m\\n'; false"))
    project.script(
        _1_1=[[{"write": f"{n}.txt"}, {"print": "APPROACH: write the parser with a regex table"}] for n in "ab"]
    )
    project.run("--max-attempts", "3")
    brief = (project.store / "briefs" / "1.1-3-1.md").read_text()
    avoided = (
        next(line for line in brief.splitlines() if "do without them: " in line).partition("them: ")[2].split(", ")
    )
    assert {"regex", "table"} == set(avoided), brief
    assert "You may edit files and run commands without asking. Nobody can answer while you work" in brief
    assert "\x1b" not in brief
    assert "checks below" not in brief


def test_a_session_that_goes_on_is_in_progress_and_no_failed_attempt(project: "Project") -> None:
    project.plan(("1.1", "Make a", "grep -q right a.txt"))
    spent: list[Step] = [{"error": "API Error: prompt is too long: 210000 tokens > 200000 maximum"}, {"exit": 1}]
    looks = {"run": f"cp {project.home}/attempt_history.json {project.root.parent}/seen.json"}
    going_on: list[Step] = [looks, {"write": "a.txt", "text": "right\n"}]
    project.script(_1_1=[{"sessions": [spent, going_on]}])
    assert project.run().code == 0
    brief = (project.store / "briefs" / "1.1-1-2.md").read_text()
    assert "session 2 of attempt 1, which is still in progress" in brief
    assert "FAILED" not in brief.split("## Hand-over")[0].split("## What will be checked")[1]
    history = json.loads((project.home / "attempt_history.json").read_text())["subtasks"]["1.1"]
    assert [(one["session"], one["success"]) for one in history["attempts"]] == [(2, True)]


# --- waiting, counting, limits ------------------------------------------------------------------------------


def test_waiting_says_for_whom_and_until_when_in_the_log_and_in_the_status(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[{"error": "API Error: 429 rate limit exceeded, try again in 5 hours"}, {"exit": 1}]])
    result = project.run("--quota", "exit")
    assert result.code == 75, result
    line = r"waits for scripted\S* until \d\d:\d\d"
    assert re.search(line + ", then goes on in the same session", project.ask("log").out), project.ask("log")
    assert re.search(line + r" \(in 5 h\), then goes on in the same session", project.ask("status").out), result
    row = project.ask("status", "--json").json["tasks"]["1.1"]
    assert row["waits_on"].startswith("scripted")
    assert row["wait_until"]


def test_checks_that_are_excused_or_say_nothing_are_not_counted_as_passing(project: "Project") -> None:
    project.settings('[checks]\nlint = "sh lint.sh"\n')
    project.file("lint.sh", "echo 'a.py:1:1: E501 Line too long'; exit 1\n")
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]])
    result = project.run()
    assert result.code == 0, result
    assert "1 of 2 checks pass, 1 is red and excused" in result.err
    assert "2 of 2 checks pass" not in result.err
    assert "Worth a look:\n  1.1: `sh lint.sh` is red, and excused: " in result.out


def test_the_user_s_wall_clock_and_gate_times_hold_in_every_profile(project: "Project") -> None:
    project.settings(
        '[limits]\nwall_clock = 1\n[verify.timeouts]\ntest = 0.5\n[checks]\ntest = "test ! -f b.txt || sleep 60"\n'
    )
    project.plan(("1.1", "Make a", "test -f a.txt"), ("1.2", "Make b", "test -f b.txt"))
    project.script(_1_1=[[{"print": "hm"}, {"hang": True}]], _1_2=[[{"write": "b.txt"}]])
    result = project.run("--profile", "single-retry", "--max-attempts", "1", "--on-stuck", "skip")
    assert "took too long and was ended" in result.err, result
    assert "A check did not end within its time limit: `test ! -f b.txt || sleep 60`" in result.out, result


# --- logins, tools and boards -----------------------------------------------------------------------------

PLAYER = Path(__file__).with_name("played_agent.py")


def plays(project: "Project", *lines: dict[str, Any], code: int = 0) -> None:
    """Configure an agent `mine` that prints these events of Claude Code in every session."""
    play = project.root.parent / "mine.json"
    play.write_text(
        json.dumps([{"lines": [{"type": "system", "subtype": "init", "session_id": "s"}, *lines], "exit": code}])
    )
    arguments = json.dumps([str(PLAYER), str(play), "--json"])
    project.settings(
        f'[agents.mine]\nprogram = {json.dumps(sys.executable)}\narguments = {arguments}\noutput = "claude"\n'
        'login = "mine login"\nlogin_variables = ["NO_SUCH_KEY_OF_MINE"]\n'
    )


def test_a_missing_login_is_told_before_the_start_and_after_it_in_a_few_lines(project: "Project") -> None:
    refused = {
        "type": "result",
        "is_error": True,
        "api_error_status": 401,
        "result": "Invalid API key · Please run /login",
    }
    plays(project, refused, code=1)
    project.plan(("1.1", "Make a", "test -f a.txt"), ("1.2", "Make b", "test -f b.txt"))
    result = project.unstuck("run", "tasks.md", "--agent", "mine")
    how = "mine login, or set NO_SUCH_KEY_OF_MINE"
    assert f"mine shows no sign of a login. To log in: {how}" in result.err, result
    needs = result.out.partition("What needs you:\n")[2].splitlines()
    assert needs == [  # one fault, one question: 1.2 pays for no session of an agent that cannot work
        "  1.1: mine is not logged in. It said: Invalid API key · Please run /login",
        f"    To log in: {how}",
        "",
        "Then go on with: unstuck resume",
    ], result


def test_what_an_agent_was_not_allowed_is_named_and_its_tools_stand_in_its_story(project: "Project") -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "rm -rf build"}}
    done = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": "I could not clean up.",
        "session_id": "s",
    }
    denied = [{"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "rm -rf build"}}]
    plays(project, {"type": "assistant", "message": {"content": [call]}}, {**done, "permission_denials": denied})
    project.plan(("1.1", "Make a", "test -f a.txt"))
    result = project.unstuck("run", "tasks.md", "--agent", "mine")
    assert "The agent was not allowed Bash rm -rf build. How should it do without?" in result.out, result
    assert "`[agents.mine] permission`" in result.out
    assert "stuck, 1 attempt," in result.out, "it would be denied again, however often it tried"
    story = project.ask("show", "1.1").out
    assert "tools:   Bash" in story, story
    assert "denied:  Bash rm -rf build" in story
    assert "I could not clean up." in story


def test_no_permission_at_all_can_be_configured(project: "Project") -> None:
    own = read_config(project.root).agents
    assert permission(manifest("codex", own) or AgentConfig())
    project.settings("[agents.codex]\npermission = []\n")
    assert permission(manifest("codex", read_config(project.root).agents) or AgentConfig()) == ()


def test_a_line_of_an_agent_is_told_by_its_tool_and_never_by_what_we_said_to_it() -> None:
    tool = {"type": "tool_use", "name": "Bash", "input": {"command": "pytest -k roman", "description": "Run tests"}}
    edit = {"type": "tool_use", "name": "Edit", "input": {"file_path": "number.py", "old_string": "a"}}
    assert gist(json.dumps({"type": "assistant", "message": {"content": [tool]}})) == "Bash pytest -k roman"
    assert gist(json.dumps({"type": "assistant", "message": {"content": [edit]}})) == "Edit number.py"
    ours = {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "# Task 1.1: Make a"}]}}
    assert gist(json.dumps(ours)) == ""


# --- what is not so is not said ----------------------------------------------------------------------------


def test_the_configuration_is_used_and_not_said_to_be_left_out(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"))
    project.script(_1_1=[[{"write": "a.txt"}]])
    project.file("unstuck.toml", "[limits]\nsilence = 20\n", commit=False)
    project.file("notes.txt", "mine\n", commit=False)
    result = project.run()
    assert "Uncommitted and not used by the run, which starts from HEAD: notes.txt" in result.err, result
    assert "unstuck.toml" not in result.err


def test_no_full_stop_becomes_a_part_of_a_command_that_doctor_names(project: "Project") -> None:
    project.file("Makefile", "test:\n\t@true\n")
    (project.root / "unstuck.toml").unlink()
    remedies = [
        one["remedy"] for one in project.ask("doctor", "--no-run", "--json").json["findings"] if one["about"] == "check"
    ]
    assert any(re.search(r"Found here: `[^`]+`", one) for one in remedies), remedies
    assert not any(one.endswith(".") for one in remedies if "Found here" in one)


def test_a_task_that_is_opened_again_in_its_phase_file_is_not_called_ticked_by_hand(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"), ("1.2", "Make b", "grep -q right b.txt"))
    project.script(_1_1=[[{"write": "a.txt", "text": "a\n"}]], _1_2=[[{"write": "b.txt"}]])
    assert project.run("--max-attempts", "1").code == 3
    file = project.home / "phases" / "phase-1.1.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "status": "pending"}))
    result = project.unstuck("resume")
    assert "its status was set to pending by hand" in result.err, result
    assert "Ticked in the plan by hand" not in result.err


def test_a_fix_that_was_skipped_is_not_said_to_have_recovered_anything(project: "Project") -> None:
    project.plan(("1.1", "Make a", "grep -q right a.txt"))
    wrong, right = [{"write": "a.txt", "text": "wrong\n"}], [{"write": "a.txt", "text": "right\n"}]
    project.script(_1_1=[wrong, right], _1_1_1=[wrong])
    assert project.run("--recovery-mode", "--max-attempts", "2").code == 3
    for task in ("1.1.1.1.1", "1.1.1.1", "1.1.1"):
        project.ask("skip", task)
    result = project.unstuck("resume")
    row = next(line for line in result.out.splitlines() if "✔ 1.1 " in line)
    assert "recovered from" in row, result
    assert " by 1.1.1" not in row
