"""Fix tasks in the run's state: who waits for whom, what a settled task takes with it, and what always runs."""

from typing import Any

import pytest

from unstuck.adapters.plans import tasks_md
from unstuck.adapters.policies import profile
from unstuck.core.action import Accept, Escalate, Fix, Halt
from unstuck.core.event import Acted, AttemptStarted, Entry, Operated, Options, Request, RunResumed, RunStarted
from unstuck.core.plan import Check, Task
from unstuck.core.schedule import blocked, startable
from unstuck.core.state import RunState, fold
from unstuck.testing import Part, World

PLAN = "- [ ] 1.2 A\n- [ ] 1.3 B\n- [ ] 1.4 [VERIFY] C\n"
E2E = "- [ ] 2.1 Work\n- [ ] VE1 E2E startup\n- [ ] VE2 E2E check\n- [ ] VE3 E2E cleanup\n- [ ] VF Original issue\n"


def read(text: str) -> tuple[Task, ...]:
    return tuple(tasks_md.read(text, "", runnable=lambda _: True).tasks)


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
    assert blocked(state) == {"1.3": ("1.3.1",), "1.3.1": ("1.3.1.1",), "1.4": ("1.3",)}
    assert state.lineage("1.3.1.1").chain == ("1.3", "1.3.1", "1.3.1.1")
    assert state.lineage("1.3").spent == 2


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
    assert "VE3" not in blocked(state)
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
