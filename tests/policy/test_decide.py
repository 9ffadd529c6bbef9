"""Decisions: Auto-Claude's tree box by box, the ladders of all profiles, and an end to every story."""

import random
from dataclasses import fields, replace

import pytest
from scripts.write_policies import most_decisions

from unstuck.model.action import Accept, Action, Continue, Escalate, Halt, Retry, Rollback, Switch, Wait
from unstuck.model.config import ProfileLimitsConfig
from unstuck.model.failure import KINDS, Failure, Kind
from unstuck.policy.decision import History, decide
from unstuck.policy.profiles import Limits, Policy, parse_profile, profile, profiles
from unstuck.policy.schedule import Experience, Tried

ADAPTIVE, STANDARD, SINGLE = profile("adaptive"), profile("standard"), profile("single-retry")
OF_TYPE = {
    "BROKEN_BUILD": Kind.BUILD_BROKEN,
    "VERIFICATION_FAILED": Kind.TEST_FAILED,
    "CONTEXT_EXHAUSTED": Kind.CONTEXT_EXHAUSTED,
    "UNKNOWN": Kind.UNKNOWN,
}


def failure(kind: Kind, resets_at: float | None = None) -> Failure:
    return Failure(kind=kind, summary="3 tests fail", resets_at=resets_at)


@pytest.mark.parametrize(
    ("word", "history", "expected"),
    [
        pytest.param("BROKEN_BUILD", History(executions=1), Rollback, id="broken-build-with-a-good-commit-rolls-back"),
        pytest.param(
            "BROKEN_BUILD", History(executions=1, green_base=False), Escalate, id="broken-build-without-one-escalates"
        ),
        pytest.param(
            "BROKEN_BUILD",
            History(executions=3, rollbacks=2, climbed=("BROKEN_BUILD[0]",) * 2),
            Escalate,
            id="a-third-rollback-escalates",
        ),
        pytest.param("VERIFICATION_FAILED", History(executions=1), Retry, id="verification-first"),
        pytest.param("VERIFICATION_FAILED", History(executions=2), Retry, id="verification-second"),
        pytest.param("VERIFICATION_FAILED", History(executions=3), Escalate, id="verification-third-asks"),
        pytest.param("VERIFICATION_FAILED", History(executions=3, loop="again"), Escalate, id="circular-asks"),
        pytest.param(
            "VERIFICATION_FAILED", History(executions=1, loop="again"), Escalate, id="circular-overrides-the-action"
        ),
        pytest.param("CONTEXT_EXHAUSTED", History(executions=1), Continue, id="context-continues"),
        pytest.param("UNKNOWN", History(executions=1), Retry, id="unknown-first"),
        pytest.param("UNKNOWN", History(executions=2), Escalate, id="unknown-second-asks"),
    ],
)
def test_auto_claudes_tree_comes_out_exactly_under_standard(
    word: str, history: History, expected: type[Action]
) -> None:
    assert isinstance(decide(failure(OF_TYPE[word]), history, STANDARD).action, expected)


def test_attempts_of_any_type_count_together_under_standard() -> None:
    """One unknown failure, then two failed verifications: that is three attempts."""
    history = History(executions=3, climbed=("UNKNOWN[0]", "VERIFICATION_FAILED[0]"))
    assert isinstance(decide(failure(Kind.TEST_FAILED), history, STANDARD).action, Escalate)


@pytest.mark.parametrize("executions", [1, 2, 7])
@pytest.mark.parametrize("name", ["adaptive", "standard", "single-retry", "max-retries"])
def test_our_own_stop_or_death_uses_up_no_budget_in_any_profile(name: str, executions: int) -> None:
    history = History(attempts=executions, executions=executions)
    assert isinstance(decide(failure(Kind.INTERRUPTED), history, profile(name)).action, Continue)


PROVIDER_LIMITS = [Kind.PROVIDER_OVERLOADED, Kind.QUOTA_EXHAUSTED, Kind.RATE_LIMITED]
NOT_RETRIED = {
    Kind.AGENT_MISSING, Kind.AUTH_FAILED, Kind.BILLING, Kind.CIRCULAR_DEPENDENCY, Kind.COMMAND_NOT_FOUND,
    Kind.DEPENDENCY_CONFLICT, Kind.DEPENDENCY_MISSING, Kind.ENVIRONMENT_MISSING, Kind.MERGE_CONFLICT,
    Kind.PACKAGE_NOT_FOUND, Kind.PLAN_INVALID, Kind.SETUP_FAILED,
}  # fmt: skip
"""Another attempt cannot repair these."""


def test_single_retry_gives_exactly_one_retry_and_then_halts() -> None:
    for kind in set(Kind) - {*PROVIDER_LIMITS, Kind.INTERRUPTED, Kind.QUESTION, Kind.UNVERIFIED}:
        first = decide(failure(kind), History(executions=1), SINGLE).action
        second = decide(failure(kind), History(executions=2), SINGLE).action
        assert isinstance(first, Halt if kind in NOT_RETRIED else Retry), kind
        assert isinstance(second, Halt), kind


@pytest.mark.parametrize("kind", sorted(NOT_RETRIED - {Kind.MERGE_CONFLICT}))
def test_what_no_attempt_can_repair_stops_the_run_where_it_concerns_every_task(kind: Kind) -> None:
    everywhere = History(executions=1, affects_all=True, agent="a", agents=("a",), tries={"a": 1})
    assert isinstance(decide(failure(kind), everywhere, ADAPTIVE).action, Halt)
    only_here = replace(everywhere, affects_all=False)
    assert isinstance(decide(failure(kind), only_here, ADAPTIVE).action, Escalate)
    caused_by_the_change = replace(everywhere, caused_by_work=True)
    assert not isinstance(decide(failure(kind), caused_by_the_change, ADAPTIVE).action, Halt)


def test_red_tests_never_stop_the_run_for_all_tasks() -> None:
    everywhere = History(executions=9, attempts=9, affects_all=True, agent="a", agents=("a",), tries={"a": 9})
    assert isinstance(decide(failure(Kind.TEST_FAILED), everywhere, ADAPTIVE).action, Escalate)


RETRYABLE = {
    "test_failure": True, "lint_error": True, "typecheck_error": True, "format_error": True, "task_incomplete": True,
    "verification_mismatch": True, "timeout": True, "parse_error": True, "dependency_missing": False,
    "circular_dependency": False, "file_conflict": False, "plan_invalid": False,
}  # fmt: skip
"""Autobuild's table."""


@pytest.mark.parametrize(("word", "again"), RETRYABLE.items(), ids=RETRYABLE)
def test_what_autobuild_calls_retryable_is_tried_again_and_the_rest_halts_at_once(word: str, again: bool) -> None:
    of_the_code = {Kind.IMPORT_CYCLE}  # one word means the plan's circles and the code's
    kinds = [kind for kind, facts in KINDS.items() if facts.phase_type == word and kind not in of_the_code]
    assert kinds
    for kind in kinds:
        assert KINDS[kind].retryable is again
        assert isinstance(decide(failure(kind), History(executions=1), SINGLE).action, Retry if again else Halt)


@pytest.mark.parametrize("name", profiles())
def test_what_nothing_can_check_is_a_question_in_every_profile_and_never_tried_again(name: str) -> None:
    action = decide(failure(Kind.UNVERIFIED), History(attempts=0, executions=1), profile(name)).action
    assert isinstance(action, Escalate | Halt)


@pytest.mark.parametrize("name", ["standard", "single-retry", "max-retries", "adaptive"])
@pytest.mark.parametrize("kind", PROVIDER_LIMITS)
def test_no_profile_spends_an_attempt_on_a_providers_limit(kind: Kind, name: str) -> None:
    decision = decide(failure(kind, resets_at=500.0), History(executions=9, attempts=9, now=100.0), profile(name))
    assert isinstance(decision.action, Wait)
    assert decision.action.until > 500.0


@pytest.mark.parametrize("kind", PROVIDER_LIMITS)
def test_a_limit_goes_to_another_agent_where_the_user_would_rather_switch(kind: Kind) -> None:
    policy = replace(ADAPTIVE, quota="switch")
    both = History(agent="a", agents=("a", "b"), tries={"a": 1})
    assert decide(failure(kind), both, policy).action == Switch(agent="b")
    assert isinstance(decide(failure(kind), replace(both, resting=frozenset({"b"})), policy).action, Wait)


def test_an_agent_that_is_down_is_no_choice_however_good_it_was() -> None:
    good = Experience(agents={"a": Tried(tried=50, won=50), "b": Tried(tried=50, won=0)})
    both = History(agent="a", agents=("a", "b"), tries={"a": 1})
    assert decide(failure(Kind.AUTH_FAILED), both, ADAPTIVE, good).action == Switch(agent="b")


def test_max_retries_stops_after_five_attempts() -> None:
    policy = profile("max-retries")
    assert isinstance(decide(failure(Kind.TEST_FAILED), History(executions=4), policy).action, Retry)
    assert isinstance(decide(failure(Kind.TEST_FAILED), History(executions=5), policy).action, Halt)


@pytest.mark.parametrize(
    ("kind", "history", "expected"),
    [
        pytest.param(
            Kind.TEST_FAILED,
            History(attempts=1, agent="a", agents=("a",), tries={"a": 1}),
            Retry,
            id="one-agent-retries",
        ),
        pytest.param(
            Kind.TEST_FAILED,
            History(attempts=1, agent="a", agents=("a", "b"), tries={"a": 1}),
            Switch,
            id="two-agents-switch-at-once",
        ),
        pytest.param(Kind.TEST_FAILED, History(attempts=5), Escalate, id="the-limit-asks"),
        pytest.param(Kind.NETWORK_ERROR, History(attempts=5), Wait, id="the-limit-is-not-for-the-network"),
        pytest.param(
            Kind.NETWORK_ERROR,
            History(sessions=0, met_by_check=True, affects_all=True, climbed=("check_again[0]",) * 6),
            Halt,
            id="a-gate-that-nobody-can-begin-with-is-one-question",
        ),
        pytest.param(
            Kind.BUILD_BROKEN,
            History(attempts=1, green_base=False),
            Rollback,
            id="adaptive-may-go-back-to-its-own-base",
        ),
        pytest.param(Kind.UNVERIFIED, History(), Escalate, id="unverified-asks"),
        pytest.param(Kind.CONTEXT_EXHAUSTED, History(sessions=12), Escalate, id="sessions-are-bounded"),
        pytest.param(Kind.INTERRUPTED, History(sessions=500), Continue, id="our-own-deaths-are-free"),
        pytest.param(
            Kind.TEST_FAILED,
            History(loop="again", agent="a", agents=("a", "b"), tries={"a": 3}),
            Switch,
            id="a-loop-goes-to-another-agent",
        ),
        pytest.param(
            Kind.TEST_FAILED,
            History(loop="again", agent="a", agents=("a",), tries={"a": 3}),
            Escalate,
            id="a-loop-without-one-asks",
        ),
    ],
)
def test_adaptive_looks_at_the_blame_and_at_who_is_there(kind: Kind, history: History, expected: type[Action]) -> None:
    assert isinstance(decide(failure(kind), history, ADAPTIVE).action, expected)


def test_no_failure_is_accepted() -> None:
    assert decide(None, History(), ADAPTIVE).action == Accept()


def test_unverified_work_lands_only_where_the_user_said_so() -> None:
    policy = Policy(ladders=ADAPTIVE.ladders, land_unverified=True)
    assert isinstance(decide(failure(Kind.UNVERIFIED), History(), policy).action, Accept)


def test_every_decision_says_why_and_on_which_rung_it_stands() -> None:
    decision = decide(failure(Kind.TEST_FAILED), History(attempts=1), ADAPTIVE)
    assert (decision.reason, decision.rung) == ("3 tests fail", "test_failed[1]")


def test_a_stated_reset_is_waited_for_with_a_margin() -> None:
    action = decide(failure(Kind.RATE_LIMITED, resets_at=5000.0), History(now=1000.0), ADAPTIVE).action
    assert action == Wait(until=5030.0)


def test_without_a_reset_the_waits_double_up_to_a_quarter_of_an_hour() -> None:
    waits = []
    for taken in range(7):
        history = History(now=0.0, climbed=("provider_overloaded[0]",) * taken)
        action = decide(failure(Kind.PROVIDER_OVERLOADED), history, ADAPTIVE).action
        assert isinstance(action, Wait)
        waits.append(action.until)
    assert waits == [30, 60, 120, 240, 480, 900, 900]


def test_a_profile_has_its_own_patience() -> None:
    limits = Limits(first_wait=1.0, longest_wait=3.0, reset_margin=2.0)
    policy = Policy(ladders=ADAPTIVE.ladders, limits=limits)
    third = History(now=100.0, climbed=("rate_limited[0]",) * 2)
    assert decide(failure(Kind.RATE_LIMITED), third, policy).action == Wait(until=103.0)
    assert decide(failure(Kind.RATE_LIMITED, resets_at=150.0), third, policy).action == Wait(until=152.0)


def test_jitter_spreads_waits_and_never_shortens_them() -> None:
    plain = decide(failure(Kind.NETWORK_ERROR), History(now=0.0), ADAPTIVE).action
    spread = decide(failure(Kind.NETWORK_ERROR), History(now=0.0, jitter=0.9), ADAPTIVE).action
    assert isinstance(plain, Wait)
    assert isinstance(spread, Wait)
    assert spread.until > plain.until


def test_agents_take_turns_in_the_users_order_while_nothing_is_known() -> None:
    agents, tries, current = ("a", "b", "c"), {"a": 1}, "a"
    chosen = []
    for _ in range(4):
        action = decide(failure(Kind.TEST_FAILED), History(agent=current, agents=agents, tries=tries), ADAPTIVE).action
        current = action.agent if isinstance(action, Switch) else current
        tries = {**tries, current: tries.get(current, 0) + 1}
        chosen.append(current)
    assert chosen == ["b", "c", "a", "b"]


def test_with_enough_evidence_the_better_agent_comes_first() -> None:
    known = Experience(agents={"a": Tried(tried=10, won=5), "b": Tried(tried=20, won=1), "c": Tried(tried=20, won=15)})
    assert known.best(("a", "b", "c"), {"a": 1}) == "c"
    few = Experience(agents={**known.agents, "c": Tried(tried=9, won=9)})
    assert few.best(("a", "b", "c"), {"a": 1}) == "b"


def test_a_resting_agent_is_passed_over() -> None:
    history = History(agent="a", agents=("a", "b", "c"), tries={"a": 1}, resting=frozenset({"b"}))
    action = decide(failure(Kind.TEST_FAILED), history, ADAPTIVE).action
    assert isinstance(action, Switch)
    assert action.agent == "c"


@pytest.mark.parametrize("name", profiles())
@pytest.mark.parametrize("agents", [("a",), ("a", "b", "c")], ids=["one-agent", "three-agents"])
def test_every_story_ends_with_a_person_however_it_goes_wrong(name: str, agents: tuple[str, ...]) -> None:
    """Whatever kinds come in whatever order, a person is asked within the bound that the profile's tables give."""
    policy, bound = profile(name), most_decisions(profile(name))
    for seed in range(20):
        chance = random.Random(seed)
        kinds = list(Kind) if seed else [kind for kind in Kind if kind is not Kind.INTERRUPTED]
        climbed: tuple[str, ...] = ()
        asked = False
        attempts, executions, sessions, rollbacks = 0, 1, 1, 0
        for _ in range(bound + 1):
            kind = chance.choice(kinds)
            attempts += KINDS[kind].charged
            history = History(
                attempts=attempts,
                executions=executions,
                sessions=sessions,
                climbed=climbed,
                rollbacks=rollbacks,
                agent="a",
                agents=agents,
            )
            decision = decide(failure(kind), history, policy)
            if asked := isinstance(decision.action, Escalate | Halt):
                break
            climbed += (decision.rung,)
            again = isinstance(decision.action, Continue | Wait)
            sessions, executions = (sessions + 1, executions) if again else (1, executions + 1)
            rollbacks += isinstance(decision.action, Rollback)
        assert asked, f"{name} does not end within {bound} decisions"


@pytest.mark.parametrize("name", profiles())
def test_one_kind_alone_ends_soon(name: str) -> None:
    policy = profile(name)
    assert [kind for kind in Kind if not asks_a_person(kind, policy)] == []


def asks_a_person(kind: Kind, policy: Policy) -> bool:
    """Tell whether a kind that comes again and again reaches a person when its ladder has been climbed."""
    _, ladder = policy.ladder_of(kind)
    bound = 1 + sum(min(rung.times, rung.below or rung.times) for rung in ladder)
    climbed: tuple[str, ...] = ()
    for number in range(1, bound + 1):
        history = History(
            attempts=number if KINDS[kind].charged else 0, executions=number, climbed=climbed, agents=("a",), agent="a"
        )
        decision = decide(failure(kind), history, policy)
        if isinstance(decision.action, Escalate | Halt):
            return True
        climbed += (decision.rung,)
    return False


def test_a_profile_of_the_users_own_begins_as_another_one() -> None:
    own = profiles(
        {"mine": {"like": "adaptive", "on_stuck": "halt", "ladder": [{"of": ["test_failed"], "rungs": []}]}}
    )["mine"]
    assert isinstance(decide(failure(Kind.TEST_FAILED), History(attempts=1), own).action, Halt)
    assert own.ladders["lint_failed"] == ADAPTIVE.ladders["lint_failed"]


def test_a_profile_of_the_users_own_may_set_every_limit() -> None:
    assert [limit.name for limit in fields(ProfileLimitsConfig)] == [limit.name for limit in fields(Limits)]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        pytest.param({"ladder": [{"of": ["nonsense"], "rungs": []}]}, "is not a kind", id="unknown-kind"),
        pytest.param({"ladder": [{"of": ["*"], "rungs": ["dance"]}]}, "is not a rung", id="unknown-move"),
        pytest.param({"ladder": [{"of": ["*"], "rungs": ["retry nohint"]}]}, "no hint", id="unknown-hint"),
        pytest.param({"ladder": [{"of": ["unknown"], "rungs": []}]}, "has no ladder", id="a-kind-is-missing"),
        pytest.param({"ladder": [{"of": ["unknown", "unknown"], "rungs": []}]}, "two ladders", id="twice"),
        pytest.param({"wrong": 1}, "unknown key", id="unknown-key"),
        pytest.param({"limits": {"wrong": 1}, "ladder": [{"of": ["*"], "rungs": []}]}, "limits", id="unknown-limit"),
    ],
)
def test_a_profile_that_makes_no_sense_is_refused_with_the_reason(table: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_profile("mine", table, {})
