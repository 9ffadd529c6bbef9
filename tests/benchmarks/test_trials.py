"""Recorded trials replayed: small made-up files whose answers can be counted by hand."""

from pathlib import Path

import pytest
from benchmarks.policy import SAMPLE, measure, read_trials, score
from benchmarks.trials import Score, Trial, replay, replay_by_experience

from unstuck.model.errors import BadUsage
from unstuck.policy.profiles import profile


def trials(**results: dict[str, str]) -> list[Trial]:
    """`trials(t1={"a": "01"})`: at task t1 agent a fails, then passes."""
    return [
        Trial(task=task, agent=agent, passed=mark == "1")
        for task, agents in results.items()
        for agent, marks in agents.items()
        for mark in marks
    ]


def test_a_budget_of_one_is_the_first_trial_of_every_agent() -> None:
    recorded = trials(t1={"a": "10", "b": "00"}, t2={"a": "01", "b": "10"})
    assert replay(recorded, profile("adaptive"), 1) == Score(solved=2, attempts=4)


def test_standard_tries_the_same_agent_three_times() -> None:
    recorded = trials(t1={"a": "001", "b": "111"})
    assert replay(recorded, profile("standard"), 3) == Score(solved=2, attempts=4)
    assert replay(recorded, profile("standard"), 2) == Score(solved=1, attempts=3)


def test_adaptive_hands_the_task_to_the_strongest_other() -> None:
    agents = {"a": "000", "b": "011", "c": "111"}
    assert replay(trials(t1=agents, t2=agents), profile("adaptive"), 2) == Score(solved=6, attempts=10)


def test_how_a_task_ends_tells_nothing_before_it_has() -> None:
    recorded = trials(t1={"a": "0", "b": "0", "c": "111"}, t2={"b": "1"}, t3={"c": "0"})
    assert replay(recorded, profile("adaptive"), 2).solved == 1 + 1, "from a and b another is asked before c"


def test_single_retry_stops_after_two() -> None:
    assert replay(trials(t1={"a": "001"}), profile("single-retry"), 5) == Score(solved=0, attempts=2)


def test_an_agent_whose_trials_are_used_up_is_passed_over() -> None:
    recorded = trials(t1={"a": "0", "b": "0", "c": "0001"})
    assert replay(recorded, profile("adaptive"), 5).solved == 0
    assert replay(trials(t1={"a": "0", "b": "01"}), profile("adaptive"), 3) == Score(solved=2, attempts=6)


def test_a_trial_that_timed_out_and_passed_counts_as_solved() -> None:
    recorded = [Trial(task="t", agent="a", passed=True, ended="timeout")]
    assert replay(recorded, profile("standard"), 1) == Score(solved=1, attempts=1)


def test_more_budget_never_solves_less() -> None:
    recorded = read_trials(SAMPLE)
    for name in ("adaptive", "standard", "single-retry", "max-retries"):
        solved = [replay(recorded, profile(name), budget).solved for budget in range(1, 6)]
        assert solved == sorted(solved)


def test_the_bench_puts_the_profiles_side_by_side() -> None:
    report = measure(say=lambda _text: None)
    assert any("adaptive" in line for line in report.lines)
    budgets = report.figures["budgets"]
    assert set(budgets) == {"1", "2", "3", "4", "5"}
    assert budgets["3"]["adaptive"]["solved"] >= budgets["3"]["standard"]["solved"]


def test_experience_of_the_other_tasks_says_who_begins() -> None:
    tasks = {f"t{number}": {"a": "000", "b": "111"} for number in range(30)}
    recorded = trials(**tasks)
    assert replay(recorded, profile("adaptive"), 1).solved == 30
    assert replay_by_experience(recorded, profile("adaptive"), [1])[1].solved >= 58, "b begins, whoever is named first"
    budgets = measure(say=lambda _text: None).figures["budgets"]
    assert budgets["1"]["experience"]["solved"] > budgets["1"]["adaptive"]["solved"]
    assert budgets["3"]["experience"]["attempts"] < budgets["3"]["adaptive"]["attempts"]


def test_a_profile_of_the_users_own_takes_part() -> None:
    scores = score(read_trials(SAMPLE), {"mine": {"like": "standard"}})
    assert scores[2]["mine"] == scores[2]["standard"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "task,agent,trial,passed,ended\n",
        "task,agent,trial,passed,ended\nt,a,1,yes,done\n",
        "task,agent,trial,passed,ended\nt,a,1,1,won\n",
        "a\n1\n",
    ],
    ids=["empty", "no-trials", "passed-is-not-a-digit", "unknown-end", "other-columns"],
)
def test_a_file_that_is_none_is_refused_by_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trials.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadUsage):
        read_trials(path)
