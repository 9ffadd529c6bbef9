"""What decisions know of the past: circles from the third try on, faults that hold others back, one problem in many tasks."""

import pytest

from unstuck.journal.run_state import RunState, fold
from unstuck.model.action import Accept, Escalate, Halt, Retry, Wait
from unstuck.model.event import (
    Acted,
    AttemptStarted,
    Classified,
    Entry,
    Event,
    Options,
    RunStarted,
    SessionEnded,
    Verified,
)
from unstuck.model.failure import Failure, Kind
from unstuck.model.outcome import Ended, Outcome
from unstuck.model.plan import Task
from unstuck.model.verdict import Verdict
from unstuck.policy.decision import decide
from unstuck.policy.history import history, loop_signal
from unstuck.policy.profiles import profile
from unstuck.policy.schedule import blocking_breaker, next_agent, startable

TASKS = tuple(Task(id=f"1.{number}", title="t", group="P") for number in range(1, 6))


def run(*facts: Event, agents: tuple[str, ...] = ("a",)) -> RunState:
    started = RunStarted(
        run="r", plan="p", format="f", base="b", branch=None, options=Options(agents=agents), tasks=TASKS
    )
    return fold(Entry(number, float(number), one) for number, one in enumerate([started, *facts], 1))


def attempt(
    number: int, approach: str, tree: str, *, task: str = "1.1", kind: Kind = Kind.TEST_FAILED, signature: str = ""
) -> list[Event]:
    ended = Ended(ending="exited", exit_code=0, tail="Done.")
    return [
        AttemptStarted(task=task, attempt=number, agent="a", base="b", slot=0),
        SessionEnded(task=task, outcome=Outcome(ended=ended, claim="done", approach=approach)),
        Verified(task=task, verdict=Verdict(status="fail", tree=tree, base="b")),
        Classified(task=task, failure=Failure(kind=kind, summary="red", signature=signature)),
    ]


SEED = ["Using async await for fetch", "Using async/await with try-catch", "Using async await pattern"]


def test_auto_claudes_example_is_circular_at_the_third_try_and_not_before() -> None:
    tries = [attempt(number, approach, f"t{number}") for number, approach in enumerate(SEED, 1)]
    assert loop_signal(run(*tries[0], *tries[1]).tasks["1.1"]) == ""
    assert "async" in loop_signal(run(*tries[0], *tries[1], *tries[2]).tasks["1.1"])


def test_a_circle_changes_the_action_and_never_the_kind() -> None:
    state = run(*(fact for number, approach in enumerate(SEED, 1) for fact in attempt(number, approach, f"t{number}")))
    past = history(state, "1.1", ("a",), now=99.0)
    failure = state.tasks["1.1"].current.failure
    assert failure is not None
    assert isinstance(decide(failure, past, profile("adaptive")).action, Escalate)
    assert failure.kind is Kind.TEST_FAILED


def test_the_same_files_three_times_are_a_circle_whatever_the_agent_says() -> None:
    facts = [
        fact
        for number, words in enumerate(["alpha one", "beta two", "gamma three"], 1)
        for fact in attempt(number, words, "same")
    ]
    assert loop_signal(run(*facts).tasks["1.1"])


def test_different_approaches_are_no_circle() -> None:
    words = ["Parse with a regular expression", "Write a recursive descent parser", "Call the compiler's own grammar"]
    facts = [fact for number, one in enumerate(words, 1) for fact in attempt(number, one, f"t{number}")]
    assert loop_signal(run(*facts).tasks["1.1"]) == ""


def test_what_is_not_the_agents_fault_is_no_part_of_a_circle() -> None:
    facts = [
        fact for number in (1, 2, 3) for fact in attempt(number, "the same words", "same", kind=Kind.NETWORK_ERROR)
    ]
    assert loop_signal(run(*facts).tasks["1.1"]) == ""


def met(kind: Kind, task: str = "1.1") -> list[Event]:
    return [*attempt(1, "", "t1", task=task, kind=kind), Acted(task=task, action=Wait(until=500.0))]


@pytest.mark.parametrize(
    ("kind", "agent", "is_held"),
    [
        pytest.param(Kind.DISK_FULL, "a", False, id="a-full-disk-concerns-the-check-that-met-it"),
        pytest.param(Kind.RATE_LIMITED, "a", True, id="a-limit-concerns-its-agent"),
        pytest.param(Kind.RATE_LIMITED, "b", False, id="and-no-other-agent"),
        pytest.param(Kind.PORT_IN_USE, "a", False, id="a-port-concerns-its-task"),
    ],
)
def test_one_task_learns_of_a_fault_and_the_others_wait(kind: Kind, agent: str, is_held: bool) -> None:
    state = run(*met(kind), agents=("a", "b"))
    assert (blocking_breaker(state, "1.2", agent) is not None) == is_held
    assert blocking_breaker(state, "1.1", agent) is None, "the one that met it goes first"


def test_others_go_on_when_the_first_one_got_through() -> None:
    through = [*met(Kind.RATE_LIMITED), Classified(task="1.1", failure=None)]
    assert blocking_breaker(run(*through), "1.2", "a") is None
    again = [*met(Kind.RATE_LIMITED), Classified(task="1.1", failure=Failure(kind=Kind.RATE_LIMITED, summary="still"))]
    assert blocking_breaker(run(*again), "1.2", "a") is not None
    given_up = [*met(Kind.RATE_LIMITED), Acted(task="1.1", action=Escalate(question="?"))]
    assert blocking_breaker(run(*given_up), "1.2", "a") is None


def test_held_tasks_do_not_start() -> None:
    state = run(*met(Kind.RATE_LIMITED))
    assert startable(state, ("1.1",), 4) == []


def test_a_new_task_goes_to_an_agent_that_is_in_order() -> None:
    state = run(*met(Kind.RATE_LIMITED), agents=("a", "b"))
    assert next_agent(state, state.tasks["1.2"]) == "b"
    assert startable(state, ("1.1",), 1) == ["1.2"]


def test_waiting_charges_nothing() -> None:
    state = run(*met(Kind.RATE_LIMITED))
    assert history(state, "1.1", ("a",), now=9.0).attempts == 0


def in_many_tasks(kind: Kind) -> RunState:
    tries = [attempt(1, "", f"t{number}", task=f"1.{number}", kind=kind, signature="s") for number in (1, 2, 3)]
    return run(*(fact for one in tries for fact in one))


def test_one_fault_in_many_tasks_is_one_problem() -> None:
    state, last = in_many_tasks(Kind.COMMAND_NOT_FOUND), "1.3"
    past = history(state, last, ("a",), now=20.0)
    assert past.systemic == ("1.1", "1.2", "1.3")
    decision = decide(state.tasks[last].current.failure, past, profile("adaptive"))
    assert isinstance(decision.action, Halt)
    assert "one problem" in decision.action.question
    assert not history(state, last, ("a",), now=20.0 + 2 * 3600.0).systemic


def test_a_fault_that_a_task_overcame_is_no_problem_of_all() -> None:
    tries = [attempt(1, "", f"t{at}", task=f"1.{at}", kind=Kind.CONTEXT_EXHAUSTED, signature="s") for at in (1, 2, 3)]
    overcome = Acted(task="1.1", action=Accept(), commit="c1")
    state = run(*(fact for one in tries for fact in one), overcome)
    assert not history(state, "1.3", ("a",), now=20.0).systemic


def test_the_same_words_from_checks_of_many_tasks_are_many_problems() -> None:
    assert not history(in_many_tasks(Kind.TEST_FAILED), "1.3", ("a",), now=20.0).systemic


def test_a_landed_commit_is_a_green_base() -> None:
    landed = Acted(task="1.2", action=Accept(), commit="c1")
    second = AttemptStarted(task="1.1", attempt=1, agent="a", base="c1", slot=0)
    assert history(run(second, landed), "1.1", ("a",), now=0.0).green_base
    assert not history(run(*attempt(1, "", "t")), "1.1", ("a",), now=0.0).green_base
    assert history(run(*attempt(1, "", "t")), "1.1", ("a",), now=0.0, healthy_base=True).green_base


def test_every_agent_that_had_the_task_is_counted() -> None:
    other = AttemptStarted(task="1.1", attempt=2, agent="b", base="b", slot=0)
    past = history(run(*attempt(1, "", "t"), Acted(task="1.1", action=Retry()), other), "1.1", ("a", "b"), now=0.0)
    assert past.tries == {"a": 1, "b": 1}
    assert past.executions == 2


def test_a_supervisor_that_was_killed_in_many_tasks_is_no_pattern() -> None:
    assert not history(in_many_tasks(Kind.INTERRUPTED), "1.3", ("a",), now=20.0).systemic
