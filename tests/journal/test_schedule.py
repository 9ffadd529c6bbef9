"""The schedule, asked after every event of whole runs: what may start, what waits, and what stands behind a stuck task."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from unstuck.agents.agent_set import Assignment
from unstuck.engine.resume import plan_difference
from unstuck.journal.run_state import RunState, fold
from unstuck.journal.task_state import Status
from unstuck.model.event import AttemptStarted, Entry, Options, RunStarted
from unstuck.model.outcome import Ended, Outcome
from unstuck.model.plan import (
    MAX_NAMED_DEPENDENCIES,
    Task,
    execution_batches,
    may_run_together,
    members_of_joins,
    plan_problems,
)
from unstuck.model.verdict import Check
from unstuck.plans.plan_file import read_plan_text
from unstuck.policy.profiles import profile
from unstuck.policy.schedule import all_settled, blocked_tasks, is_waiting, seconds_until_next, startable
from unstuck.redaction.redactor import Redactor
from unstuck.testing import MemoryJournal, Part, World

RIGHT, WRONG = Part(work="right"), Part(work="wrong")
ROOM = 3


def task(name: str, *needs: str, group: str | None = None) -> Task:
    return Task(id=name, title=name, depends_on=needs, group=group, checks=(Check(command="right"),))


def history(tasks: list[Task], script: dict[str, list[Part]], parallel: int = 1) -> tuple[MemoryJournal, RunState]:
    journal = MemoryJournal()
    return journal, World(script).run(tasks, journal=journal, parallel=parallel)


def running(state: RunState) -> list[str]:
    return [name for name, one in state.tasks.items() if one.attempts and one.status in ("running", "verifying")]


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[Task], dict[str, list[Part]]]:
    """Draw a plan whose tasks lean on earlier ones, some of them in groups, and what their attempts bring."""
    tasks: list[Task] = []
    for number in range(draw(st.integers(1, 6))):
        earlier = [one.id for one in tasks]
        needs = draw(st.lists(st.sampled_from(earlier), unique=True, max_size=2)) if earlier else []
        tasks.append(task(f"1.{number}", *needs, group=draw(st.sampled_from([None, "a", "b"]))))
    attempts = st.lists(st.sampled_from([RIGHT, WRONG]), min_size=1, max_size=3)
    return tasks, {one.id: draw(attempts) for one in tasks}


@given(plans(), st.integers(0, ROOM))
@settings(max_examples=40, deadline=None)
def test_whatever_happened_only_what_may_start_is_started(
    plan: tuple[list[Task], dict[str, list[Part]]], room: int
) -> None:
    tasks, script = plan
    journal, _ = history(tasks, script, parallel=2)
    order = [one.id for one in tasks]
    for count in range(1, len(journal.entries)):
        state = fold(journal.entries[:count])
        busy = running(state)
        chosen = startable(state, busy, room)
        assert len(chosen) <= room
        assert chosen == sorted(chosen, key=order.index)
        assert not set(chosen) & set(busy)
        assert all(
            state.tasks[need].status in {"complete", "skipped"} for name in chosen for need in state.tasks[name].needs
        )
        beginning = [state.tasks[name].task for name in (*busy, *chosen)]
        assert all(may_run_together(one, other) for one in beginning for other in beginning if one is not other)


@given(plans())
@settings(max_examples=30, deadline=None)
def test_a_run_ends_with_every_task_settled_stuck_or_behind_a_stuck_one(
    plan: tuple[list[Task], dict[str, list[Part]]],
) -> None:
    _, state = history(*plan)
    stuck = {name for name, one in state.tasks.items() if one.status == "stuck"}
    behind = blocked_tasks(state)
    left = {name for name, one in state.tasks.items() if one.status not in {"complete", "skipped"}} - stuck
    assert set(behind) == left
    assert all(set(causes) <= stuck | left and causes for causes in behind.values())
    assert all_settled(state) == (not stuck and not left)


def test_a_stuck_task_blocks_all_that_leans_on_it_each_by_what_stands_before_it_and_nothing_else() -> None:
    tasks = [task("1"), task("2", "1"), task("3", "2"), task("4")]
    _, state = history(tasks, {"1": [WRONG]} | {name: [RIGHT] for name in "234"})
    assert blocked_tasks(state) == {"2": ("1",), "3": ("2",)}
    assert state.tasks["4"].status == "complete"


def test_a_task_behind_two_stuck_ones_names_both() -> None:
    tasks = [task("1"), task("2"), task("3", "1", "2")]
    _, state = history(tasks, {"1": [WRONG], "2": [WRONG]})
    assert blocked_tasks(state) == {"3": ("1", "2")}


class Limited(World):
    """An agent whose provider refuses its first session."""

    def outcome(self, ended: Ended, assignment: Assignment) -> Outcome:
        first = assignment.task == "1" and assignment.attempt == 1 and assignment.session == 1
        return replace(World.outcome(self, ended, assignment), end="rate_limited" if first else "")


def test_a_waiting_task_starts_again_when_its_time_has_come() -> None:
    journal = MemoryJournal()
    failed = Part(ended=Ended(ending="exited", exit_code=1))
    Limited({"1": [failed, RIGHT]}).run([task("1")], journal=journal)
    states = [fold(journal.entries[:count]) for count in range(1, len(journal.entries))]
    state = next(one for one in states if one.tasks["1"].wait_until)
    until = state.tasks["1"].wait_until
    assert until is not None
    assert is_waiting(state.tasks["1"], until - 1)
    assert seconds_until_next(state, until - 1) == 1
    assert startable(state, [], ROOM, until - 1) == []
    assert seconds_until_next(state, until) is None
    assert startable(state, [], ROOM, until) == ["1"]


def test_side_by_side_means_the_same_group_and_no_more_than_there_is_room_for() -> None:
    tasks = [task("1", group="a"), task("2", group="a"), task("3", group="b"), task("4"), task("5", group="a")]
    journal, _ = history(tasks, {one.id: [RIGHT] for one in tasks}, parallel=2)
    fresh = fold(journal.entries[:1])
    assert startable(fresh, [], ROOM) == ["1", "2", "5"]
    assert startable(fresh, [], 2) == ["1", "2"]
    assert startable(fresh, ["3"], ROOM) == []
    assert startable(fresh, ["4"], ROOM) == []
    assert startable(fresh, ["1"], ROOM) == ["2", "5"]
    assert startable(fresh, [], 0) == []


def test_a_profile_that_says_no_number_ends_after_its_own() -> None:
    """Five attempts are the default of `max-retries`: one more would be somebody's money, one less somebody's night."""
    journal = MemoryJournal()
    World({"1": [WRONG]}).run([task("1")], journal=journal, policy=profile("max-retries"))
    assert sum(isinstance(entry.event, AttemptStarted) for entry in journal.entries) == 5


# --- joins: what thousands wait for is named once ------------------------------------------------------


def phased(sizes: list[int], stories: set[int]) -> str:
    """Write a spec-kit plan of phases so large, some of them user stories."""
    lines, number = ["# Tasks: x"], 0
    for place, size in enumerate(sizes):
        lines.append(f"\n## Phase {place}: {'User Story' if place in stories else 'Part'} {place}\n")
        for _ in range(size):
            number += 1
            lines.append(f"- [ ] T{number:03d} {'[P] ' if number % 3 else ''}Make it, depends on T{number // 2:03d}")
    return "\n".join(lines)


def in_json(sizes: list[int], stories: set[int]) -> str:
    """Write phases of subtasks; a story depends on the first phase, another phase on all before it. One may be empty."""
    made = [
        {
            "phase": place,
            "depends_on": [0] * bool(place) if place in stories else list(range(place)),
            "parallel_safe": place % 2 == 0,
            "subtasks": [{"id": f"p{place}c{one}", "description": "Make it"} for one in range(size)],
        }
        for place, size in enumerate(sizes)
    ]
    return json.dumps({"phases": made})


def named_one_by_one(tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks as if nobody knew joins."""
    members = members_of_joins(tasks)
    return [
        replace(one, depends_on=tuple(name for need in one.depends_on for name in members.get(need, [need])), joins=())
        for one in tasks
    ]


SIZES = st.lists(
    st.sampled_from([0, 1, 3, MAX_NAMED_DEPENDENCIES, MAX_NAMED_DEPENDENCIES + 1, 30]), min_size=2, max_size=5
)


@given(SIZES, st.sets(st.integers(0, 4)), st.booleans(), st.data())
@settings(max_examples=40, deadline=None)
def test_a_join_comes_to_the_same_as_its_members_one_by_one(
    sizes: list[int], stories: set[int], spec_kit: bool, data: st.DataObject
) -> None:
    text, form = (
        (phased(sizes, stories), "spec-kit") if spec_kit else (in_json(sizes, stories), "implementation_plan.json")
    )
    plan = read_plan_text(text, form, "p", Path())
    plain = replace(plan, tasks=named_one_by_one(plan.tasks))
    assert execution_batches(plan) == execution_batches(plain)
    assert len(plan_problems(plan)) == len(plan_problems(plain)) == (not plan.tasks)
    named = max((len(one.depends_on) for one in plan.tasks), default=0)
    assert named <= MAX_NAMED_DEPENDENCIES * (2 if spec_kit else len(sizes)) + 1
    some = st.sets(st.sampled_from([one.id for one in plan.tasks])) if plan.tasks else st.just(set[str]())
    done, stuck = data.draw(some), data.draw(some)
    states = []
    for one in (plan, plain):
        state = fold([Entry(seq=1, at=1.0, event=started(one.tasks))])
        for name in sorted(done | stuck):
            status: Status = "stuck" if name in stuck else "complete"
            state.tasks[name] = replace(state.tasks[name], status=status)
            state.open.pop(name)
        states.append(state)
    (joined_up, apart) = states
    assert startable(joined_up, (), 100) == startable(apart, (), 100)
    causes = blocked_tasks(joined_up), blocked_tasks(apart)
    assert [(name, set(by)) for name, by in causes[0].items()] == [(name, set(by)) for name, by in causes[1].items()]


def started(tasks: Sequence[Task]) -> RunStarted:
    return RunStarted(
        run="r", plan="p", format="f", base="0", branch=None, options=Options(agents=("a",)), tasks=tuple(tasks)
    )


def test_a_join_that_becomes_one_by_our_own_task_or_by_a_person_is_told_apart() -> None:
    plan = read_plan_text(phased([MAX_NAMED_DEPENDENCIES, 2], set()), "spec-kit", "p", Path())
    assert not members_of_joins(plan.tasks)
    state = fold([Entry(seq=1, at=1.0, event=started(plan.tasks))])
    longer = phased([MAX_NAMED_DEPENDENCIES, 2], set()).replace("- [ ] T003", "- [ ] T002.1 More\n- [ ] T003")
    now = read_plan_text(longer, "spec-kit", "p", Path())
    assert members_of_joins(now.tasks)
    by_a_person = plan_difference(state, now.tasks, Redactor(()))
    assert (by_a_person.added, by_a_person.changed) == (("T002.1",), ("T021", "T022"))
    state.tasks["T002.1"] = replace(state.tasks["T001"], inserted=True, task=now.tasks[2])
    assert not plan_difference(state, now.tasks, Redactor(()))
