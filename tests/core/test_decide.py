import pytest

from unstuck.core.action import Accept, Action, Continue, Escalate, Halt, Retry, Rollback, Switch
from unstuck.core.decide import History, decide
from unstuck.core.failure import Failure, Kind
from unstuck.core.policy import LADDERS, Policy

POLICY = Policy(ladders=LADDERS)


def failure(kind: Kind) -> Failure:
    return Failure(kind=kind, summary="3 tests fail")


@pytest.mark.parametrize(
    ("kind", "history", "expected"),
    [
        pytest.param(Kind.CHECK_FAILED, History(attempts=1), Retry, id="first-red-retries"),
        pytest.param(
            Kind.CHECK_FAILED,
            History(attempts=2, climbed=("check_failed[0]",), agents=("a", "b"), tried=frozenset({"a"})),
            Switch,
            id="second-red-switches-where-there-is-another-agent",
        ),
        pytest.param(
            Kind.CHECK_FAILED,
            History(attempts=2, climbed=("check_failed[0]",)),
            Retry,
            id="second-red-retries-where-there-is-none",
        ),
        pytest.param(Kind.BUILD_BROKEN, History(attempts=1), Rollback, id="broken-build-rolls-back"),
        pytest.param(
            Kind.BUILD_BROKEN,
            History(attempts=3, climbed=("build_broken[0]",) * 2),
            Escalate,
            id="third-broken-build-asks",
        ),
        pytest.param(Kind.INTERRUPTED, History(), Continue, id="an-interruption-continues"),
        pytest.param(Kind.UNVERIFIED, History(), Escalate, id="unverified-asks"),
        pytest.param(Kind.CHECK_FAILED, History(attempts=5), Escalate, id="the-attempt-limit-asks"),
        pytest.param(
            Kind.INTERRUPTED, History(attempts=5), Continue, id="the-attempt-limit-is-only-for-the-agent's-own-failures"
        ),
    ],
)
def test_a_decision_follows_the_ladder(kind: Kind, history: History, expected: type[Action]) -> None:
    assert isinstance(decide(failure(kind), history, POLICY).action, expected)


def test_no_failure_is_accepted() -> None:
    assert decide(None, History(), POLICY).action == Accept()


def test_on_stuck_halt_stops_the_whole_run() -> None:
    policy = Policy(ladders=LADDERS, on_stuck="halt")
    assert decide(failure(Kind.UNVERIFIED), History(), policy).action == Halt(question="3 tests fail")


def test_unverified_work_lands_only_where_the_user_said_so() -> None:
    policy = Policy(ladders=LADDERS, land_unverified=True)
    assert isinstance(decide(failure(Kind.UNVERIFIED), History(), policy).action, Accept)


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("agents", [("a",), ("a", "b", "c")], ids=["one-agent", "three-agents"])
def test_every_story_ends_with_a_person(kind: Kind, agents: tuple[str, ...]) -> None:
    """However a task keeps failing, a person is asked after finitely many decisions."""
    bound = sum(rung.times for rung in LADDERS[kind]) + 1
    climbed: tuple[str, ...] = ()
    tried = {"a"}
    for attempts in range(1, bound + 1):
        history = History(attempts=attempts, climbed=climbed, agents=agents, tried=frozenset(tried))
        decision = decide(failure(kind), history, POLICY)
        if isinstance(decision.action, Escalate):
            return
        if isinstance(decision.action, Switch):
            tried.add(decision.action.agent)
        climbed += (decision.rung,)
    pytest.fail(f"{kind} never asks a person")
