"""The line on values alone: every story, and a power cut after every event of every story."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unstuck.journal.run_state import RunState, fold
from unstuck.model.event import Decided, Request, RunEnded, SessionEnded
from unstuck.model.outcome import Ended
from unstuck.model.plan import Task
from unstuck.model.verdict import Check
from unstuck.policy.profiles import profile
from unstuck.testing import MemoryJournal, Part, World

GREEN = Part(work="right")
RED = Part(work="wrong")
CRASH = Part(work="half", ended=Ended(ending="exited", exit_code=1))
HANG_RIGHT = Part(work="right", ended=Ended(ending="silence"))
HANG = Part(work="half", ended=Ended(ending="silence"))
KILLED = Part(work="half", ended=Ended(ending="signalled", signal=9))


class PowerCut(BaseException):
    """Ends the process as a power cut would: nothing may catch it."""


def task(name: str = "1.1", *, checks: bool = True, group: str | None = None, depends_on: tuple[str, ...] = ()) -> Task:
    return Task(
        id=name, title=name, checks=(Check(command="right"),) if checks else (), group=group, depends_on=depends_on
    )


def result(state: RunState) -> dict[str, tuple[str, int, str | None, int]]:
    return {name: (one.status, len(one.attempts), one.commit, one.charged) for name, one in state.tasks.items()}


@pytest.mark.parametrize(
    ("parts", "status", "attempts"),
    [
        pytest.param([GREEN], "complete", 1, id="right-at-once"),
        pytest.param([RED, GREEN], "complete", 2, id="wrong-then-right"),
        pytest.param([CRASH, GREEN], "complete", 2, id="crashed-then-right"),
        pytest.param([HANG_RIGHT], "complete", 1, id="hung-with-the-work-done"),
        pytest.param([HANG, GREEN], "complete", 2, id="hung-then-right"),
        pytest.param([RED], "stuck", 4, id="wrong-for-ever"),
        pytest.param([KILLED], "stuck", 1, id="killed-for-ever"),
    ],
)
def test_a_story_ends_as_it_should(parts: list[Part], status: str, attempts: int) -> None:
    state = World({"1.1": parts}).run([task()])
    assert (state.tasks["1.1"].status, len(state.tasks["1.1"].attempts)) == (status, attempts)


def test_work_that_no_check_covers_waits_for_a_person() -> None:
    state = World({"1.1": [GREEN]}).run([task(checks=False)])
    assert state.tasks["1.1"].status == "stuck"
    assert state.tasks["1.1"].charged == 0


def test_an_accepted_task_lands_with_the_reason() -> None:
    world, journal = World({"1.1": [GREEN]}), MemoryJournal()
    world.run([task(checks=False)], journal=journal)
    journal.left.append(Request(id=1, verb="accept", task="1.1", text="I looked at it"))
    state = world.run([task(checks=False)], journal=journal)
    assert state.tasks["1.1"].status == "complete"
    assert world.branch == ["base", "base right"]
    assert any(isinstance(e.event, Decided) and e.event.decision.reason == "I looked at it" for e in journal.entries)


def test_a_green_tree_without_a_claim_lands_only_if_a_check_was_red_before() -> None:
    world = World({"1.1": [GREEN], "1.2": [HANG, HANG, GREEN]})
    state = world.run([task("1.1"), task("1.2")])
    assert state.tasks["1.2"].status == "complete"
    assert len(state.tasks["1.2"].attempts) == 3, (
        "the check was green on the base already: nothing proved the first two"
    )


def test_a_stuck_task_blocks_only_what_depends_on_it() -> None:
    world = World({"1.1": [RED], "1.2": [GREEN], "1.3": [GREEN]})
    state = world.run([task("1.1"), task("1.2", depends_on=("1.1",)), task("1.3")])
    assert [one.status for one in state.tasks.values()] == ["stuck", "pending", "complete"]
    assert state.ended is not None
    assert state.ended.exit_code == 3


def test_on_stuck_halt_starts_nothing_new() -> None:
    world = World({"1.1": [RED], "1.2": [GREEN]})
    state = world.run([task("1.1"), task("1.2")], policy=replace(profile("adaptive"), on_stuck="halt"))
    assert [one.status for one in state.tasks.values()] == ["stuck", "pending"]


def test_tasks_side_by_side_all_land_on_each_other() -> None:
    names = [f"1.{number}" for number in range(1, 6)]
    world = World({name: [Part(work=f"right w{name}")] for name in names})
    state = world.run([task(name, group="P") for name in names], parallel=4)
    assert {one.status for one in state.tasks.values()} == {"complete"}
    assert set(world.branch[-1].split()) >= {f"w{name}" for name in names}


def test_a_person_can_skip_reset_and_undo() -> None:
    world, journal = World({"1.1": [RED]}), MemoryJournal()
    world.run([task()], journal=journal)
    journal.left.append(Request(id=1, verb="skip", task="1.1"))
    assert world.run([task()], journal=journal).tasks["1.1"].status == "skipped"
    journal.left.append(Request(id=2, verb="undo"))
    assert world.run([task()], journal=journal).tasks["1.1"].status == "stuck"
    world.script = {"1.1": [GREEN]}
    journal.left.append(Request(id=3, verb="reset", task="1.1"))
    assert world.run([task()], journal=journal).tasks["1.1"].status == "complete"


PARTS = st.sampled_from([GREEN, RED, CRASH, HANG_RIGHT, HANG, KILLED])
SCRIPTS = st.fixed_dictionaries({name: st.lists(PARTS, min_size=1, max_size=4) for name in ("1.1", "1.2")})


@settings(max_examples=60, deadline=None)
@given(script=SCRIPTS, cuts=st.lists(st.integers(1, 40), min_size=1, max_size=3))
def test_a_power_cut_after_any_event_changes_nothing(script: dict[str, list[Part]], cuts: list[int]) -> None:
    tasks = [task("1.1"), task("1.2", depends_on=())]
    undisturbed = World(script)
    expected = result(undisturbed.run(tasks))

    world, journal = World(script), MemoryJournal()
    for cut in cuts:
        stop_at = len(journal.entries) + cut

        def end(count: int, stop_at: int = stop_at) -> None:
            if count == stop_at:
                raise PowerCut

        journal.cut = end
        try:
            world.run(tasks, journal=journal)
        except PowerCut:
            continue
    journal.cut = lambda _count: None
    assert result(world.run(tasks, journal=journal)) == expected
    assert world.branch == undisturbed.branch


def test_the_state_is_a_function_of_the_journal() -> None:
    journal = MemoryJournal()
    state = World({"1.1": [RED, CRASH, GREEN]}).run([task()], journal=journal)
    assert fold(journal.entries) == state
    assert sum(isinstance(entry.event, SessionEnded) for entry in journal.entries) == 3
    assert isinstance(journal.entries[-1].event, RunEnded)


def test_an_interrupted_task_keeps_its_worktree_though_others_start_before_it() -> None:
    """1.2 is cut in the middle of its session; then a person resets 1.1, which is done again first."""
    script = {"1.1": [Part(work="right")], "1.2": [Part(work="half right", ended=Ended(ending="exited", exit_code=0))]}
    tasks = [task("1.1"), Task(id="1.2", title="1.2", checks=(Check(command="half"),))]
    world, journal = World(script), MemoryJournal()

    def cut(_count: int) -> None:
        if any(isinstance(entry.event, SessionEnded) and entry.event.task == "1.2" for entry in journal.entries):
            raise PowerCut

    journal.cut = cut
    with pytest.raises(PowerCut):
        world.run(tasks, journal=journal)
    journal.cut = lambda _count: None
    journal.left.append(Request(id=1, verb="reset", task="1.1"))
    state = world.run(tasks, journal=journal)
    assert [one.status for one in state.tasks.values()] == ["complete", "complete"]
    assert len(state.tasks["1.2"].attempts) == 1, "its work was still there to be verified"


def test_a_reset_keeps_the_work_of_a_session_that_was_cut_short() -> None:
    world, journal = World({"1.1": [Part(work="half")]}), MemoryJournal()

    def cut(_count: int) -> None:
        if isinstance(journal.entries[-1].event, SessionEnded):
            raise PowerCut

    journal.cut = cut
    with pytest.raises(PowerCut):
        world.run([task()], journal=journal)
    journal.cut = lambda _count: None
    journal.left.append(Request(id=1, verb="reset", task="1.1"))
    world.script = {"1.1": [GREEN]}
    state = world.run([task()], journal=journal)
    assert state.tasks["1.1"].status == "complete"
    assert "base half" in world.snapshots.values()
    assert any("is kept at" in note for note in state.tasks["1.1"].notes)


def test_the_limit_of_sessions_for_a_run_stops_it_between_tasks() -> None:
    few = replace(profile("adaptive"), limits=replace(profile("adaptive").limits, executions=2))
    world = World({name: [GREEN] for name in ("1.1", "1.2", "1.3")})
    tasks = [Task(id=name, title=name, checks=(Check(command="right"),)) for name in ("1.1", "1.2", "1.3")]
    state = world.run(tasks, policy=few)
    assert [one.status for one in state.tasks.values()] == ["complete", "complete", "pending"]
    assert state.ended is not None
    assert state.ended.exit_code == 2
