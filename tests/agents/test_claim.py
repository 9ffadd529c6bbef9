"""What agents say of their work is read exactly, and never more than they said.

Every case of the groups s3-parse and sr-verify-layers holds.
"""

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.growth import faster_than_linear

from unstuck.agents.claims import (
    claimed_files,
    claimed_files_missing,
    failure_report,
    last_approach,
    read_statement,
    session_claim,
)
from unstuck.agents.printed_json import PhaseResult, UnreadableResult, read_result
from unstuck.model.outcome import Claim, Ended
from unstuck.policy.plan_changes import error_title

FAILED = """Task 1.3: Add failure parser FAILED
- Error: File not found: src/parser.ts
- Attempted fix: Checked alternate paths
- Status: Blocked, needs manual intervention
"""

# --- one word on a line of its own -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("All tests pass.\n\nTASK_COMPLETE\nstatus: pass\ncommit: 1a2b3c4", "done", id="plain"),
        pytest.param("**TASK_COMPLETE**\r\n", "done", id="bold"),
        pytest.param("\x1b[32m`TASK_COMPLETE`\x1b[0m", "done", id="coloured code"),
        pytest.param("VERIFICATION_PASS", "done", id="verification passed"),
        pytest.param("VERIFICATION_FAIL", "failed", id="verification failed"),
        pytest.param("ALL_TASKS_COMPLETE", "done", id="all tasks"),
        pytest.param("I will print TASK_COMPLETE when I am done.", "none", id="in a sentence"),
        pytest.param("> TASK_COMPLETE", "none", id="quoted"),
        pytest.param("When done, print:\n```\nTASK_COMPLETE\n```\n", "none", id="in a fence"),
        pytest.param("````md\n```\n````\nTASK_COMPLETE", "done", id="after a longer fence"),
        pytest.param("```text\nTASK_COMPLETE", "none", id="in a fence that never ends"),
        pytest.param("TASK_COMPLETED\nNOT_TASK_COMPLETE", "none", id="other words"),
        pytest.param("I am done, everything works!", "none", id="prose"),
        pytest.param("", "none", id="nothing"),
        pytest.param(FAILED, "failed", id="failure"),
        pytest.param(f"TASK_COMPLETE\n\nNo, wait.\n\n{FAILED}", "failed", id="failure after success"),
        pytest.param(f"{FAILED}\nFound it after all.\n\nTASK_COMPLETE", "done", id="success after failure"),
        pytest.param(f"{FAILED}TASK_COMPLETE\n", "failed", id="in the middle of a failure"),
        pytest.param("Task 1.3: run the tests, 0 FAILED", "none", id="none failed"),
        pytest.param("The log says Task 1.3: x FAILED", "none", id="failure in a sentence"),
        pytest.param("> Task 1.3: x FAILED", "none", id="quoted failure"),
    ],
)
def test_only_a_plain_statement_is_a_claim(text: str, expected: Claim) -> None:
    assert read_statement(text).claim == expected


# --- words that deny the claim ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("This needs human by the user.", ("needs human",), id="sr-verify-layers-007"),
        pytest.param("This manual intervention by the user.", ("manual intervention",), id="sr-verify-layers-008"),
        pytest.param("It REQUIRES\nmanual steps", ("requires manual",), id="case and line break"),
        pytest.param(
            "It cannot be automated, I could not complete it", ("cannot be automated", "could not complete"), id="two"
        ),
        pytest.param("No manual intervention is needed; it never needs human help.", (), id="denied"),
        pytest.param("> needs human\n```\nmanual intervention\n```", (), id="quoted"),
        pytest.param("It needs humanity", (), id="another word"),
    ],
)
def test_phrases_that_deny_success_are_found_beside_a_claim(text: str, expected: tuple[str, ...]) -> None:
    said = read_statement(f"{text}\nTASK_COMPLETE")
    assert said.claim == "done"
    assert said.contradictions == expected
    assert said.denied is bool(expected)


def test_without_a_claim_of_success_nothing_is_denied() -> None:
    assert read_statement("This needs human help.").contradictions == ()
    assert read_statement(FAILED).contradictions == ()


# --- the end of a session --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tail", "exit_code", "expected"),
    [
        pytest.param("", 0, "done", id="ended well"),
        pytest.param("", 1, "none", id="ended badly"),
        pytest.param(FAILED, 0, "failed", id="says that it failed"),
        pytest.param("TASK_COMPLETE", 1, "none", id="crashed after the claim"),
        pytest.param("It needs human help.\nTASK_COMPLETE", 0, "none", id="denies its own claim"),
        pytest.param("It needs human help.", 0, "done", id="prose is not judged"),
    ],
)
def test_a_session_claims(tail: str, exit_code: int, expected: Claim) -> None:
    assert session_claim(Ended(ending="exited", exit_code=exit_code, tail=tail)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("APPROACH: cache totals\nmore", "cache totals"),
        ("APPROACH: one\nAPPROACH: two", "two"),
        ("**APPROACH:** cache totals", "cache totals"),
        ("APPROACH: cache totals\n- Attempted fix: other", "cache totals"),
        (FAILED, "Checked alternate paths"),
        ("print one line `APPROACH: ` and how you went about it", ""),
        ("APPROACH:\n", ""),
        ("", ""),
        ("APPROACH: " + "x" * 999, "x" * 300),
    ],
)
def test_the_approach_is_the_last_one_named(text: str, expected: str) -> None:
    assert last_approach(text) == expected
    assert read_statement(text).approach == expected


# --- the failure object of smart-ralph ----------------------------------------------------------------


def test_the_worked_example_of_smart_ralph_is_parsed() -> None:
    assert asdict(failure_report(FAILED)) == {
        "task_id": "1.3",
        "error": "File not found: src/parser.ts",
        "attempted_fix": "Checked alternate paths",
        "status": "Blocked, needs manual intervention",
    }
    assert read_statement(FAILED).failure == failure_report(FAILED)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("I could not finish this.", {"error": "Task did not complete"}, id="s3-parse-002"),
        pytest.param(
            "Task 1.3: X FAILED\n- Attempted fix: a\n- Status: b", {"error": "Task execution failed"}, id="s3-parse-003"
        ),
        pytest.param(
            "Task 1.3: X FAILED\n- Error: e\n- Status: b", {"attempted_fix": "No fix attempted"}, id="s3-parse-004"
        ),
        pytest.param(
            "Task 1.3: X FAILED\n- Error: e\n- Attempted fix: a", {"status": "Unknown status"}, id="s3-parse-005"
        ),
        pytest.param("Task 1.3.1.2: X FAILED\n- Error: e", {"task_id": "1.3.1.2", "error": "e"}, id="nested id"),
        pytest.param("Task V4: X FAILED", {"task_id": "V4"}, id="verification id"),
        pytest.param("Task VF: X FAILED\n- Error: e", {"task_id": "VF", "error": "e"}, id="the last verification's id"),
        pytest.param(
            "Task 1.1: X FAILED\n\nHere is why.\n\n- Error: e\n\n\n- Attempted fix: a\n",
            {"error": "e", "attempted_fix": "a"},
            id="prose above the fields",
        ),
        pytest.param(
            "### \u274c Task VE2: X **FAILED**\n* **Error:** e", {"task_id": "VE2", "error": "e"}, id="ornaments"
        ),
        pytest.param(
            "Task 1.1: X FAILED\n- Error: first\n  second\n  - third: 3\n- Status: s\n",
            {"error": "first\nsecond\n- third: 3", "status": "s"},
            id="several lines",
        ),
        pytest.param(
            "Task 1.1: X FAILED\n\n- Error: e\n\n- Attempted fix: a\n\nAnd more.",
            {"error": "e", "attempted_fix": "a"},
            id="blank lines between",
        ),
        pytest.param("Task 1.1: X FAILED\n- Error: e\n- Note: n\n  m", {"error": "e"}, id="unknown field"),
        pytest.param("```\nTask 1.1: X FAILED\n- Error: e\n```\nmore", {"error": "e"}, id="fenced"),
        pytest.param(
            "Task 1.1: X FAILED\n- Error: old\n\nTask 1.1: X FAILED\n- Error: new", {"error": "new"}, id="last wins"
        ),
    ],
)
def test_a_failure_is_parsed_with_its_fallbacks(text: str, expected: dict[str, str]) -> None:
    report = asdict(failure_report(text))
    assert {name: report[name] for name in expected} == expected


def test_the_failure_of_another_task_is_not_this_tasks() -> None:
    text = f"{FAILED}\nTask 1.4: Other FAILED\n- Error: other\n"
    assert failure_report(text, task="1.3").error == "File not found: src/parser.ts"
    assert failure_report(text, task="2.1").error == "Task did not complete"
    assert failure_report(text, task="2.1").task_id == "2.1"
    assert read_statement(text, task="2.1").claim == "none"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("File not found: src/parser.ts", "File not found: src/parser.ts"),
        ("`a | b`  is\nnot one line", "a b is"),
        ("the quick brown fox jumps over the lazy dog and runs", "the quick brown fox jumps over the lazy dog and…"),
        ("x" * 60, "x" * 49 + "…"),
    ],
)
def test_the_summary_fits_a_title(error: str, expected: str) -> None:
    assert error_title(failure_report(f"Task 1.3: X FAILED\n- Error: {error}").error, "1.3") == expected


# --- the result JSON of autobuild -------------------------------------------------------------------

RESULT: dict[str, Any] = {
    "phase_id": "2a",
    "status": "complete",
    "tasks": {"total": 3, "completed": 2},
    "quality_gates": {"lint": {"passed": True, "output": "ok"}, "test": {"passed": False}},
    "commit_message": "feat(cart): add totals",
    "files": {"created": ["a.py"], "modified": [], "deleted": ["b.py"]},
    "plan_updated": True,
    "error": None,
}
RAW = json.dumps(RESULT)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"Done.\n```json\n{json.dumps(RESULT, indent=2)}\n```\nBye.", id="fenced"),
        pytest.param(f"Done: {RAW} and that is all.", id="raw"),
        pytest.param(f"{{ not json }} {json.dumps(dict(reversed(RESULT.items())))}", id="key in the end"),
        pytest.param(f'{RAW}\nI set "phase_id" as asked.', id="the key in a sentence"),
        pytest.param(f'```json\n{{"other": 1}}\n```\n{RAW}', id="another fence"),
        pytest.param(f"```json\n{RAW}\n```\n{RAW.replace('2a', '9z')}", id="the fence before the raw object"),
        pytest.param(f"```json\n{RAW.replace('2a', '9z')}\n```\n```JSON\n{RAW}\n```", id="the last fence"),
        pytest.param(f"\x1b[1m{RAW}\x1b[0m\r\n", id="coloured"),
    ],
)
def test_a_result_is_found(text: str) -> None:
    found = read_statement(text).result
    assert found == PhaseResult(
        phase_id="2a",
        status="complete",
        tasks_total=3,
        tasks_completed=2,
        created=("a.py",),
        modified=(),
    )
    assert read_statement(text).claim == "done"


def test_a_failed_result_is_a_claim_of_failure_with_its_error() -> None:
    error = {"type": "test_failure", "message": "3 tests", "details": "t1"}
    said = read_statement(json.dumps({**RESULT, "status": "failed", "commit_message": None, "error": error}))
    assert said.claim == "failed"
    assert said.result is not None
    assert (said.result.error_type, said.result.error_message) == ("test_failure", "3 tests")


@pytest.mark.parametrize(
    "text",
    [
        "Done.",
        'the "phase_id" is 2a',
        'def f(): {}\nThe column "phase_id" is new.',
        '```json\n["phase_id"]\n```',
        '{"phase_id": "2a", "phase_name": "Backend", "status": "running", "attempt": 1, "max_attempts": 2}',
    ],
    ids=["nothing", "a word", "a word after code", "a list", "a state file"],
)
def test_no_result_is_no_problem(text: str) -> None:
    assert read_result(text) is None
    assert read_statement(text).problem == ""


def test_a_result_that_counts_open_tasks_is_no_claim_of_success() -> None:
    said = read_statement(changed(tasks={"total": 3, "completed": 1}))
    assert said.result is not None
    assert said.result.unfinished
    assert said.denied


def changed(**changes: object) -> str:
    return json.dumps({**RESULT, **changes})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(f"```json\n{RAW[:-9]}\n```", "not JSON", id="broken in a fence"),
        pytest.param(f"```json\n{RAW[:60]}", "not JSON", id="cut off"),
        pytest.param(RAW[:60], "not JSON", id="raw and cut off"),
        pytest.param(f"```json\n[{RAW}]\n```", "no object", id="a list"),
        pytest.param(changed(status="done"), "'done', not \"complete\"", id="unknown status"),
        pytest.param(changed(tasks={"total": "3"}), '"tasks"', id="tasks without numbers"),
        pytest.param(changed(files={"created": "a.py"}), '"files"', id="files that are no list"),
        pytest.param(changed(plan_updated="yes"), '"plan_updated"', id="wrong type"),
        pytest.param(f"```json\n{RAW[:-1]}{'[' * 99_999}\n```", "not JSON", id="too deep"),
        *(
            pytest.param(json.dumps({key: RESULT[key] for key in RESULT if key != name}), f'"{name}"', id=f"no {name}")
            for name in ("status", "tasks", "quality_gates", "commit_message", "files", "plan_updated")
        ),
    ],
)
def test_an_invalid_result_is_a_parse_error_with_its_reason(text: str, reason: str) -> None:
    found = read_result(text)
    assert isinstance(found, UnreadableResult)
    assert reason in found.reason
    assert read_statement(text).problem == found.reason
    assert read_statement(text).denied


# --- anything may be printed -----------------------------------------------------------------------


HOSTILE = [
    '{"phase_id": ' + "[" * 500_000,
    "{" * 500_000 + '"phase_id"',
    '{"phase_id"' * 50_000,
    '```json\n{"phase_id": ' + "1" * 500_000 + "}\n```",
    "Task 1.1: " + "FAILED " * 100_000,
    ("Task 1.1: " + "FAILED " * 250 + "\n" + " " * 1_900 + "x\n") * 400,
    "Task 1.1: X FAILED\n" * 40_000,
    "Task 1.1: X FAILED\n\nTASK_COMPLETE\n" * 30_000,
    "\n" * 900_000 + "TASK_COMPLETE",
    "```\n" * 200_000,
    "requires " * 100_000 + "\nTASK_COMPLETE",
    "- Error: \n" * 100_000,
    "x" * 5_000_000,
]


def test_no_text_takes_more_than_linear_time() -> None:
    assert faster_than_linear(HOSTILE, lambda text: read_statement(text, task="1.1")) == []


PIECES = st.sampled_from(
    (
        "TASK_COMPLETE", "Task 1.3: x FAILED", "- Error: e", "- Status: needs human", "```", "```json", RAW, RAW[:40], "\n",
        "\n\n", " ", "> ", "APPROACH: a", '"phase_id"', "{", "}", "VERIFICATION_FAIL", "\x1b[", "\r",
    )
)  # fmt: skip


@given(st.text() | st.lists(PIECES, max_size=20).map("".join), st.sampled_from(["", "1.3", "9"]))
@settings(max_examples=150, deadline=None)
def test_any_text_can_be_read(text: str, task: str) -> None:
    said = read_statement(text, task=task)
    assert said.failure is None or said.claim == "failed"
    assert said.result is None or said.problem == ""
    assert failure_report(text, task).error


# --- files that an agent says it made ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "paths"),
    [
        pytest.param("I created `src/shop/cart.py` and tests/test_cart.py.", ("src/shop/cart.py", "tests/test_cart.py"), id="a sentence"),
        pytest.param("Updated:\n- ./a.ts", (), id="a list below the word is not read"),
        pytest.param("Fixed by upgrading to 1.2.3, see https://example.org/a.html", (), id="versions and addresses"),
        pytest.param("Look at src/a.py for details.", (), id="mentioned, not claimed"),
        pytest.param("added src/a.py, modified src/a.py", ("src/a.py",), id="twice"),
    ],
)  # fmt: skip
def test_claimed_files_are_read_from_what_the_agent_says(said: str, paths: tuple[str, ...]) -> None:
    assert claimed_files(said) == paths


def test_a_claimed_file_that_does_not_exist_is_told() -> None:
    said = "I created src/new.py, updated src/a.py and wrote src/old.py."
    assert claimed_files_missing(said, {"src/a.py"}, deleted={"src/old.py"}) == ("src/new.py",)


def test_a_bare_name_counts_when_some_folder_holds_it() -> None:
    assert claimed_files_missing("I created cart.py.", {"src/shop/cart.py"}) == ()
    assert claimed_files_missing("I created cart.py.", set()) == ("cart.py",)
