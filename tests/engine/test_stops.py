"""When a run stops, and when it does not: its own limit, verified work, repetition; never a claim or mere errors."""

from dataclasses import replace
from typing import Any, cast

from unstuck.model.outcome import Ended
from unstuck.model.plan import Task
from unstuck.model.verdict import Check
from unstuck.policy.profiles import Limits, profile
from unstuck.remedies.toolbox import Remedies
from unstuck.testing import MemoryJournal, Part, World

TASK = Task(id="1.1", title="One", checks=(Check(command="right"),))
OTHER = Task(id="1.2", title="Two", checks=(Check(command="also"),))


def with_limits(executions: int) -> Limits:
    return replace(profile("adaptive").limits, executions=executions)


def test_the_limit_of_sessions_ends_the_run_with_exit_2_and_not_one_session_before() -> None:
    policy = replace(profile("adaptive"), limits=with_limits(2))
    world = World({"1.1": [Part(work="wrong"), Part(work="wronger"), Part(work="right")]})
    state = world.run([TASK], policy=policy)
    assert state.ended is not None
    assert (state.ended.exit_code, len(world.sessions)) == (2, 2)
    world = World({"1.1": [Part(work="wrong"), Part(work="right")]})
    state = world.run([TASK], policy=policy)
    assert state.ended is not None
    assert (state.ended.exit_code, len(world.sessions)) == (0, 2)


def test_verified_work_ends_a_task_whatever_the_agent_thinks_of_it() -> None:
    failed = Ended(ending="exited", exit_code=1, tail="Task 1.1: One FAILED\n- Error: I do not think so")
    state = World({"1.1": [Part(work="right", ended=failed)]}).run([TASK])
    assert state.tasks["1.1"].status == "complete"


def test_an_unverified_claim_ends_nothing() -> None:
    sure = Ended(ending="exited", exit_code=0, tail="ALL_TASKS_COMPLETE confidence 0.99")
    world = World({"1.1": [Part(work="wrong", ended=sure), Part(work="right", ended=sure)]})
    assert world.run([TASK]).tasks["1.1"].status == "complete"
    assert len(world.sessions) == 2


def test_repetition_stops_the_task_asks_a_person_and_lets_the_others_go_on() -> None:
    world = World({"1.1": [Part(work="")], "1.2": [Part(work="also")]})
    state = world.run([TASK, OTHER])
    assert (state.tasks["1.1"].status, state.tasks["1.2"].status) == ("stuck", "complete")
    assert "changed nothing" in state.tasks["1.1"].question


def test_repetition_halts_the_run_where_the_user_wants_that() -> None:
    world = World({"1.1": [Part(work="")], "1.2": [Part(work="also")]})
    state = world.run([TASK, OTHER], policy=replace(profile("adaptive"), on_stuck="halt"))
    assert (state.tasks["1.1"].status, state.tasks["1.2"].status) == ("stuck", "pending")


def test_a_cut_charges_no_budget_of_any_kind() -> None:
    """A supervisor that dies in every session still lets the task have all of its attempts."""

    class Cut(Exception):
        pass

    def dies(count: int) -> None:
        if journal.entries[-1].event.type == "session_started" and count < 40:
            raise Cut

    journal = MemoryJournal(cut=dies)
    world = World({"1.1": [Part(work="wrong"), Part(work="right")]})
    for _ in range(60):
        try:
            state = world.run([TASK], journal=journal)
            break
        except Cut:
            continue
    assert state.tasks["1.1"].status == "complete"
    assert state.tasks["1.1"].charged <= 1


class Faulty:
    """Remedies that fail, whatever is asked of them."""

    def __getattribute__(self, name: str) -> Any:
        raise IndexError(f"nothing to {name}")


def test_a_fault_of_ours_inside_of_a_remedy_is_told_and_ends_no_run() -> None:
    world = World({"1.1": [Part(work="wrong"), Part(work="right")]})
    state = world.run([TASK], remedies=cast("Remedies", Faulty()))
    assert state.tasks["1.1"].status == "complete"
    for fault in ("relieve", "advise", "passed"):
        assert any(
            f"by a fault of unstuck: IndexError: nothing to {fault}" in note for note in state.tasks["1.1"].notes
        )
