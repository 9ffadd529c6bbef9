from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unstuck.compat.auto_claude import attempt_history, build_commits
from unstuck.compat.autobuild import phase
from unstuck.journal.run_state import RunState, fold
from unstuck.journal.stages import AFTER, AFTER_ACTION
from unstuck.model import event as events
from unstuck.model.action import Accept, Action, Decision, Escalate, Retry
from unstuck.model.event import (
    Acted,
    AttemptStarted,
    Classified,
    Decided,
    Entry,
    Event,
    LineEvent,
    Operated,
    Options,
    PlanChanged,
    Rebased,
    Request,
    RunResumed,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Verified,
)
from unstuck.model.failure import Failure, Kind
from unstuck.model.outcome import Ended, Outcome
from unstuck.model.plan import Task
from unstuck.model.verdict import CheckResult, Verdict
from unstuck.policy.history import history
from unstuck.policy.schedule import blocked_tasks, startable
from unstuck.reports.event_lines import event_line
from unstuck.reports.summaries import summary

NAMES = st.sampled_from(["1.1", "1.2", "2.1", "unknown"])
TASKS = (
    Task(id="1.1", title="a"),
    Task(id="1.2", title="b", depends_on=("1.1",), group="P"),
    Task(id="2.1", title="c", done=True),
)


def started(*tasks: Task) -> RunStarted:
    return RunStarted(
        run="r", plan="p", format="f", base="b0", branch=None, options=Options(agents=("a",)), tasks=tasks or TASKS
    )


@st.composite
def any_event(draw: st.DrawFn) -> Event:
    kind = draw(st.sampled_from(get_args(Event)))
    if kind is RunStarted:
        return started()
    if kind is PlanChanged:
        return PlanChanged(tasks=TASKS, reopened=draw(st.sampled_from([(), ("1.1",), ("2.1", "1.2")])))
    if kind is Operated:
        request = st.builds(
            Request, id=st.integers(0, 9), task=st.one_of(st.none(), NAMES), text=st.sampled_from(["", "7", "x"])
        )
        return draw(
            st.builds(
                Operated,
                request=request,
                reopened=st.lists(NAMES, max_size=2).map(tuple),
                undoes=st.one_of(st.none(), st.integers(0, 20)),
            )
        )
    given = {"task": NAMES} if "task" in kind.__dataclass_fields__ else {}
    if kind is Acted:
        given["added"] = st.sampled_from([(), (Task(id="1.1.1", title="Fix: a", fixes="1.1"),)])
    event: Event = draw(st.builds(kind, **given))
    return event


@settings(max_examples=120, deadline=None)
@given(st.lists(any_event(), max_size=30))
def test_any_sequence_of_events_folds_and_can_be_looked_at(sequence: list[Event]) -> None:
    state = fold(Entry(number, float(number), one) for number, one in enumerate(sequence, 1))
    assert state.seq == len(sequence)
    startable(state, (), 4)
    blocked_tasks(state)
    assert len(summary(state, 99.0, live=False).rows) == len(state.tasks)
    attempt_history(state)
    build_commits(state)
    for name in state.tasks:
        phase(state, name)
    assert all("\n" not in event_line(one) for one in sequence)


@settings(max_examples=100, deadline=None)
@given(st.lists(any_event(), max_size=30), st.integers(0, 30))
def test_folding_a_prefix_and_going_on_is_folding_the_whole(sequence: list[Event], cut: int) -> None:
    entries = [Entry(number, float(number), one) for number, one in enumerate(sequence, 1)]
    state = fold(entries[:cut])
    for entry in entries[cut:]:
        state.apply(entry)
    assert state == fold(entries)


@settings(max_examples=100, deadline=None)
@given(st.lists(any_event(), max_size=30), st.integers(0, 30))
def test_what_files_are_made_from_is_not_changed_by_what_is_recorded_meanwhile(sequence: list[Event], cut: int) -> None:
    entries = [Entry(number, float(number), one) for number, one in enumerate([started(), *sequence], 1)]
    state = fold(entries[:cut])
    taken = state.copied()
    for entry in entries[cut:]:
        state.apply(entry)
    assert taken == fold(entries[:cut])
    blocked_tasks(taken)


def test_every_fact_of_the_line_has_a_next_stage() -> None:
    assert {*AFTER, Acted} == set(get_args(LineEvent))
    assert set(AFTER_ACTION) == set(get_args(Action))


def test_every_event_names_its_own_type() -> None:
    types = [one.__dataclass_fields__["type"].default for one in get_args(Event)]
    assert len(set(types)) == len(types)
    assert all(getattr(events, one.__name__) for one in get_args(Event))


def story(*facts: Event) -> RunState:
    return fold(Entry(number, float(number), one) for number, one in enumerate([started(), *facts], 1))


RED = Failure(kind=Kind.CHECK_FAILED, summary="red")
ATTEMPT = AttemptStarted(task="1.1", attempt=1, agent="a", base="b0", slot=0)
ENDED = SessionEnded(task="1.1", outcome=Outcome(ended=Ended(ending="exited", exit_code=0), claim="done"))
VERDICT = Verdict(
    status="fail",
    tree="t1",
    base="b0",
    results=(CheckResult(command="x", kind="verify", ended=Ended(ending="exited", exit_code=1)),),
)


def decided(action: Action) -> Decided:
    return Decided(task="1.1", decision=Decision(action=action, reason="r", rung="check_failed[0]"))


def test_a_task_ticked_before_the_run_is_complete_and_never_starts() -> None:
    assert story().tasks["2.1"].status == "complete"
    assert "2.1" not in story().open


def test_a_failed_attempt_is_charged_before_the_decision_on_it() -> None:
    state = story(
        ATTEMPT,
        SessionStarted(task="1.1", session=1),
        ENDED,
        Verified(task="1.1", verdict=VERDICT),
        Classified(task="1.1", failure=RED),
    )
    assert history(state, "1.1", ("a",), now=0.0).attempts == 1


def test_an_interruption_charges_nothing() -> None:
    state = story(ATTEMPT, Classified(task="1.1", failure=Failure(kind=Kind.INTERRUPTED, summary="died")))
    assert state.tasks["1.1"].charged == 0


def test_a_retry_keeps_the_failed_tree_and_its_base() -> None:
    state = story(
        ATTEMPT,
        ENDED,
        Verified(task="1.1", verdict=VERDICT),
        decided(Retry()),
        Acted(task="1.1", action=Retry(hint="h")),
    )
    task = state.tasks["1.1"]
    assert (task.seed, task.base, task.hint) == ("t1", "b0", "h")


def test_a_rebase_changes_the_base_that_the_verdict_must_be_about() -> None:
    state = story(ATTEMPT, ENDED, Verified(task="1.1", verdict=VERDICT), Rebased(task="1.1", base="b1", tree="t2"))
    assert (state.tasks["1.1"].current.base, state.tasks["1.1"].current.tree) == ("b1", "t2")


def test_landing_moves_the_tip_and_unblocks_what_depends_on_it() -> None:
    state = story(ATTEMPT, ENDED, Acted(task="1.1", action=Accept(), commit="c1"))
    assert state.tip == "c1"
    assert startable(state, (), 4) == ["1.2"]


@pytest.mark.parametrize(
    ("epoch", "status"), [(True, "pending"), (False, "stuck")], ids=["a-person-resumes", "a-crash"]
)
def test_only_a_person_gives_a_stuck_task_a_fresh_budget(epoch: bool, status: str) -> None:
    stuck = Acted(task="1.1", action=Escalate(question="?"))
    state = story(ATTEMPT, Classified(task="1.1", failure=RED), stuck, RunResumed(epoch=epoch, tip="b0"))
    assert state.tasks["1.1"].status == status
    assert state.tasks["1.1"].charged == (0 if epoch else 1)


def test_unverified_work_is_not_done_again_by_resuming() -> None:
    unverified = Classified(task="1.1", failure=Failure(kind=Kind.UNVERIFIED, summary="?"))
    state = story(
        ATTEMPT, unverified, Acted(task="1.1", action=Escalate(question="?")), RunResumed(epoch=True, tip="b0")
    )
    assert state.tasks["1.1"].status == "stuck"


def test_a_changed_plan_keeps_what_did_not_change() -> None:
    landed = Acted(task="1.1", action=Accept(), commit="c1")
    changed = PlanChanged(tasks=(*TASKS, Task(id="3.1", title="new")), reopened=("1.2",))
    state = story(ATTEMPT, landed, changed)
    assert [task.status for task in state.tasks.values()] == ["complete", "pending", "complete", "pending"]


@pytest.mark.parametrize("snapshot", ["refs/unstuck/snapshots/r/9", None])
def test_a_question_is_one_sentence_with_where_its_work_is_kept(snapshot: str | None) -> None:
    told = event_line(Acted(task="1.1", action=Escalate(question="Nothing changed."), snapshot=snapshot))
    kept = "; its work is kept at refs/unstuck/snapshots/r/9" if snapshot else "."
    assert told == f"1.1: stuck: Nothing changed{kept}"
