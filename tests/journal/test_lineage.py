"""Fix tasks in the run's state: who waits for whom, what a settled task takes with it, and what always runs."""

import json
from typing import Any

import pytest

from unstuck.compat.smart_ralph import final_of
from unstuck.journal.run_state import RunState, fold
from unstuck.model.action import Accept, Amend, Escalate, Fix, Halt
from unstuck.model.event import Acted, AttemptStarted, Entry, Operated, Options, Request, RunResumed, RunStarted
from unstuck.model.outcome import Ended
from unstuck.model.plan import Task
from unstuck.model.verdict import Check
from unstuck.plans.tasks_md import read_tasks_md
from unstuck.policy.history import landed_commit, replacements_did_work
from unstuck.policy.profiles import profile
from unstuck.policy.schedule import blocked_tasks, startable
from unstuck.testing import Part, World

PLAN = "- [ ] 1.2 A\n- [ ] 1.3 B\n- [ ] 1.4 [VERIFY] C\n"
E2E = "- [ ] 2.1 Work\n- [ ] VE1 E2E startup\n- [ ] VE2 E2E check\n- [ ] VE3 E2E cleanup\n- [ ] VF Original issue\n"


def read(text: str) -> tuple[Task, ...]:
    return tuple(read_tasks_md(text, "", runnable=lambda _: True).tasks)


def run(text: str, *events: Any) -> RunState:
    started = RunStarted(
        run="r", plan="p", format="f", base="0", branch=None, options=Options(agents=("a",)), tasks=read(text)
    )
    return fold(Entry(seq, float(seq), event) for seq, event in enumerate((started, *events), 1))


def attempt(task: str, number: int = 1) -> AttemptStarted:
    return AttemptStarted(task=task, attempt=number, agent="a", base="0", slot=0)


def fixed(task: str, new: str) -> tuple[Any, ...]:
    action = Fix(id=new, error="boom", attempted_fix="")
    return attempt(task), Acted(task=task, action=action, added=read(f"- [ ] {new} [FIX {task}] Fix: boom\n"))


def landed(task: str) -> tuple[Any, ...]:
    return attempt(task), Acted(task=task, action=Accept())


def stuck(task: str, *, halt: bool = False) -> tuple[Any, ...]:
    return attempt(task), Acted(task=task, action=Halt(question="?") if halt else Escalate(question="?"))


def test_the_original_waits_for_its_fix_which_is_next() -> None:
    state = run(PLAN, *landed("1.2"), *fixed("1.3", "1.3.1"))
    assert list(state.tasks) == ["1.2", "1.3", "1.3.1", "1.4"]
    assert startable(state, [], 4) == ["1.3.1"]
    state = run(PLAN, *landed("1.2"), *fixed("1.3", "1.3.1"), *landed("1.3.1"))
    assert startable(state, [], 4) == ["1.3"]


def test_a_stuck_fix_blocks_all_that_it_repairs() -> None:
    state = run(PLAN, *fixed("1.3", "1.3.1"), *fixed("1.3.1", "1.3.1.1"), *stuck("1.3.1.1"))
    assert blocked_tasks(state) == {"1.3": ("1.3.1",), "1.3.1": ("1.3.1.1",), "1.4": ("1.3",)}
    assert state.lineage("1.3.1.1").chain == ("1.3", "1.3.1", "1.3.1.1")
    assert state.lineage("1.3").spent == 2


@pytest.mark.parametrize(
    ("plan", "first"),
    [
        ("- [ ] 1.3 [FIX 1.4] A\n- [ ] 1.4 [FIX 1.3] B\n", "1.3"),
        ("- [ ] 1.3 [FIX 1.3] A\n", "1.3"),
        ("- [ ] 1.3 A\n- [ ] 1.3.1 [FIX 1.3] [VERIFY] B\n", "1.3"),
        ("- [ ] 1.1 [FIX 1.2] A\n- [ ] 1.2 [FIX 1.3] B\n- [ ] 1.3 [FIX 1.1] C\n", "1.1"),
    ],
    ids=["each-other", "itself", "checkpoint", "three"],
)
def test_marks_that_go_in_a_circle_keep_nobody_waiting(plan: str, first: str) -> None:
    assert startable(run(plan), [], 4) == [first]
    events: list[Any] = []
    while following := startable(run(plan, *events), [], 1):
        events += landed(following[0])
    state = run(plan, *events)
    assert {task.status for task in state.tasks.values()} <= {"complete", "skipped"}
    assert all(final_of(state, name) in ("", "PASS") for name in state.tasks)


def test_a_settled_original_takes_its_open_fixes_with_it() -> None:
    skip = Operated(request=Request(id=1, verb="skip", task="1.3", text=""))
    state = run(PLAN, *fixed("1.3", "1.3.1"), *fixed("1.3.1", "1.3.1.1"), *stuck("1.3.1.1"), skip)
    assert {name: task.status for name, task in state.tasks.items()} == {
        "1.2": "pending", "1.3": "skipped", "1.3.1": "skipped", "1.3.1.1": "skipped", "1.4": "pending",
    }  # fmt: skip


def test_a_persons_resume_gives_the_lineage_a_fresh_budget_and_new_ids() -> None:
    state = run(PLAN, *fixed("1.3", "1.3.1"), *landed("1.3.1"), *stuck("1.3"), RunResumed(epoch=True, tip="0"))
    lineage = state.lineage("1.3")
    assert (lineage.fixes, lineage.spent, lineage.next_id) == ((), 0, "1.3.2")


@pytest.mark.parametrize("halt", [False, True], ids=["skip", "halt"])
def test_the_cleanup_of_end_to_end_steps_runs_whatever_became_of_them(halt: bool) -> None:
    events = [*landed("2.1"), *stuck("VE1", halt=halt)]
    state = run(E2E, *events)
    assert startable(state, [], 4) == ["VE3"]
    assert "VE3" not in blocked_tasks(state)
    assert startable(run(E2E, *events, *landed("VE3")), [], 4) == []


def test_nothing_is_cleaned_up_that_never_began() -> None:
    state = run(E2E, *stuck("2.1"))
    assert startable(state, [], 4) == []


def test_the_cleanup_waits_while_steps_can_go_on() -> None:
    assert startable(run(E2E, *landed("2.1"), attempt("VE1")), ["VE1"], 4) == []
    assert startable(run(E2E, *landed("2.1"), *landed("VE1")), [], 4) == ["VE2"]


def test_a_whole_story_in_memory() -> None:
    task = Task(id="1.3", title="B", checks=(Check(command="right"),), body="- [ ] 1.3 B\n  - **Verify**: `right`\n")
    world = World(
        {"1.3": [Part(work="wrong"), Part()], "1.3.1": [Part(work="worse"), Part()], "1.3.1.1": [Part(work="right")]}
    )
    state = world.run([task], policy=profile("fix-tasks"))
    assert {name: one.status for name, one in state.tasks.items()} == dict.fromkeys(
        ("1.3", "1.3.1", "1.3.1.1"), "complete"
    )
    assert [name for name, _ in world.sessions] == ["1.3", "1.3.1", "1.3.1.1", "1.3.1", "1.3"]
    assert state.ended is not None
    assert state.ended.exit_code == 0


def test_an_original_without_work_whose_check_was_green_before_is_one_question_and_no_fix_task() -> None:
    task = Task(id="1.3", title="B", checks=(Check(command="base"),), body="- [ ] 1.3 B\n  - **Verify**: `base`\n")
    world = World({"1.3": [Part()]})
    state = world.run([task], policy=profile("fix-tasks"))
    assert list(state.tasks) == ["1.3"]
    assert state.tasks["1.3"].status == "stuck"
    assert len(world.sessions) == 1


def test_a_fix_that_was_ticked_before_the_run_has_done_its_part() -> None:
    state = run("- [ ] 1.3 A\n- [x] 1.3.1 [FIX 1.3] B\n- [ ] 1.4 C\n- [ ] 1.4.1 [FIX 1.4] D\n", *landed("1.4.1"))
    assert replacements_did_work(state, "1.3")
    assert not replacements_did_work(state, "1.4")


@pytest.mark.parametrize(("request_", "done"), [("SPLIT_TASK", True), ("ADD_PREREQUISITE", False)])
def test_the_parts_of_a_task_do_its_work_and_a_prerequisite_does_not(request_: Any, done: bool) -> None:
    action = Amend(ids=("1.3.1",), request=request_, attempt=1)
    asked = attempt("1.3"), Acted(task="1.3", action=action, added=read("- [ ] 1.3.1 Part\n"))
    state = run(PLAN, *asked, attempt("1.3.1"), Acted(task="1.3.1", action=Accept(), commit="c1"))
    assert replacements_did_work(state, "1.3") is done
    assert landed_commit(state, "1.3") == ("c1" if done else None)


@pytest.mark.parametrize(
    ("last", "made"), [("", ["1.3", "1.3.1"]), ("\nTASK_COMPLETE", ["1.3"])], ids=["asks", "asks-and-is-done"]
)
def test_an_agent_that_asks_for_a_split_without_saying_that_it_is_done_is_not_done(last: str, made: list[str]) -> None:
    """Its check is green from the beginning, and it ends well: only its words tell."""
    fields = "".join(f"\n  - **{name}**: x" for name in ("Do", "Files", "Done when", "Verify", "Commit"))
    request = {"type": "SPLIT_TASK", "originalTaskId": "1.3", "proposedTasks": [f"- [ ] 9 Part{fields}"]}
    asked = Ended(ending="exited", exit_code=0, tail=f"TASK_MODIFICATION_REQUEST\n{json.dumps(request)}{last}")
    task = Task(id="1.3", title="B", checks=(Check(command="base"),), body="- [ ] 1.3 B\n  - **Verify**: `base`\n")
    world = World({"1.3": [Part(work="half", ended=asked), Part()], "1.3.1": [Part(work="more")]})
    state = world.run([task])
    assert [name for name, _ in world.sessions] == made
    assert {one.status for one in state.tasks.values()} == {"complete"}
