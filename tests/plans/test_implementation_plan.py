"""`implementation_plan.json`: its aliases, what comes next, and statuses written back in place."""

import json
from pathlib import Path
from typing import Any

import pytest

from unstuck.model.plan import execution_batches, plan_problems
from unstuck.plans import json_formats as reader
from unstuck.plans.plan_file import open_plan


def phases(*listed: tuple[list[Any], list[str]]) -> str:
    """Write a plan of phases, each with what it depends on and the statuses of its subtasks."""
    made = [
        {
            "phase": place,
            "depends_on": depends,
            "subtasks": [
                {"id": f"p{place}c{n}", "description": "do", "status": status} for n, status in enumerate(statuses, 1)
            ],
        }
        for place, (depends, statuses) in enumerate(listed, 1)
    ]
    return json.dumps({"phases": made})


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        pytest.param(phases(([], []), ([1], ["pending"])), (), id="an-empty-phase-is-complete"),
        pytest.param(phases(([], ["completed"]), (["1"], ["pending"])), ("p1c1",), id="text-and-number-are-one-id"),
        pytest.param(phases(([], ["complete"]), ([1.0], ["not-started"])), ("p1c1",), id="other-numbers"),
        pytest.param(phases(([], ["pending", "pending"])), ("p1c1",), id="in-order"),
    ],
)
def test_a_subtask_waits_for_the_one_before_it_and_for_all_of_the_phases_that_its_own_depends_on(
    text: str, waits: tuple[str, ...]
) -> None:
    assert reader.read(reader.FORMAT, text, "p").tasks[-1].depends_on == waits


@pytest.mark.parametrize(
    ("statuses", "own"),
    [
        (["completed", "blocked"], ("in_progress", "in_progress")),
        (["blocked", "blocked"], ("backlog", "pending")),
        (["completed", "in_progress"], ("in_progress", "in_progress")),
        (["pending"], ("backlog", "pending")),
        (["completed", "completed"], ("human_review", "review")),
    ],
)
def test_the_plans_own_status_follows_from_its_subtasks(statuses: list[str], own: tuple[str, str]) -> None:
    assert reader.overall(statuses) == own


def test_a_subtask_is_done_in_any_of_the_words_for_it() -> None:
    text = phases(([], ["complete", "Done", "IN PROGRESS", "stuck", "unknown_status"]))
    assert [task.done for task in reader.read(reader.FORMAT, text, "p").tasks] == [True, True, False, False, False]


def test_other_names_for_the_same_things_are_understood(tmp_path: Path) -> None:
    plan = tmp_path / "implementation_plan.json"
    plan.write_text(
        json.dumps(
            {
                "title": "T",
                "phases": [
                    {"phase_id": "1", "title": "Research", "chunks": [{"subtask_id": "1.1", "title": "Look", "description": "", "status": "not started"}]},
                    {"phase": 2, "depends_on": 1, "subtasks": [{"id": "2.1", "description": "Do", "verification": {"type": "component", "run": "make it"}}]},
                ],
            }
        )
    )  # fmt: skip
    read = open_plan(tmp_path).read()
    assert plan_problems(read) == ()
    assert [(task.id, task.title, task.depends_on, task.done) for task in read.tasks] == [
        ("1.1", "Look", (), False),
        ("2.1", "Do", ("1.1",), False),
    ]
    assert [one.command for one in read.tasks[1].checks] == ["make it"]


def test_subtasks_run_in_order_unless_their_phase_is_safe_to_run_in_parallel() -> None:
    text = json.dumps(
        {
            "phases": [
                {"id": "a", "parallel_safe": safe, "subtasks": [{"id": f"{safe}1"}, {"id": f"{safe}2"}]}
                for safe in (False, True)
            ]
        }
    )
    assert [(one.parallel, one.tasks) for one in execution_batches(reader.read(reader.FORMAT, text, "p"))] == [
        (False, ("False1",)),
        (True, ("True1", "True2")),
        (False, ("False2",)),
    ]


def test_a_failed_subtask_is_done_again_by_a_run() -> None:
    """The predecessor never picked it again and took the plan for complete."""
    assert [task.done for task in reader.read(reader.FORMAT, phases(([], ["failed", "completed"])), "p").tasks] == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not a plan in JSON"),
        ('{"phases": 3}', 'it has no list "phases"'),
        (phases(([7], ["pending"])), "Phase 1 depends on an unknown phase '7'."),
        (phases(([2], ["pending"]), ([1], ["pending"])), "in a circle"),
    ],
)
def test_what_cannot_be_run_is_said(text: str, told: str) -> None:
    assert told in " ".join(one.message for one in plan_problems(reader.read(reader.FORMAT, text, "p")))


def test_a_command_that_cannot_fail_checks_nothing() -> None:
    subtask = '{"id": "1", "description": "Add it", "verification": {"type": "command", "command": "echo ok || true"}}'
    assert (
        reader.read(reader.FORMAT, f'{{"phases": [{{"id": 1, "subtasks": [{subtask}]}}]}}', "p").tasks[0].checks == ()
    )


def test_a_verification_that_is_a_bare_text_is_not_run_and_that_is_said() -> None:
    subtask = '{"id": "1", "description": "Add it", "verification": "make test"}'
    plan = reader.read(reader.FORMAT, f'{{"phases": [{{"id": 1, "subtasks": [{subtask}]}}]}}', "p")
    assert plan.tasks[0].checks == ()
    assert "The verification of subtask 1 is not read" in " ".join(concern.message for concern in plan.concerns)


def test_marking_changes_status_values_and_no_other_byte(tmp_path: Path) -> None:
    text = (
        '{ "feature": "Ünïcode \\u00e9",\r\n  "status": "backlog", "planStatus" : "pending",\n'
        '"phases": [{"id": "x", "subtasks": [ {"id": "a", "status":"pending" , "n": 1.50}, {"id":"b"},{ "id": "c", "status": "not_started"}]}] }\n'
    )
    path = tmp_path / "plan.json"
    path.write_text(text, newline="")
    plan = open_plan(path)
    assert plan.mark({"a": "complete", "b": "running", "c": "pending"})
    assert path.read_bytes().decode() == text.replace('"backlog"', '"in_progress"').replace(
        '"planStatus" : "pending"', '"planStatus" : "in_progress"'
    ).replace('"status":"pending"', '"status":"completed"').replace('{"id":"b"}', '{"status": "in_progress", "id":"b"}')
    assert not plan.mark({"a": "complete", "b": "running", "c": "pending"})
