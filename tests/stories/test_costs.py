"""Money: what agents say they cost is counted once, and a budget ends the run; what they do not say is unknown."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.project import Project, Step

WRONG = {"write": "a.txt", "text": "wrong\n"}
RIGHT = {"write": "a.txt", "text": "right\n"}
SPENT_CONTEXT = {"error": "API Error: prompt is too long: 210000 tokens > 200000 maximum"}


def test_a_resumed_session_is_billed_for_what_it_added(project: "Project") -> None:
    project.plan(("1.1", "Make a", "grep -q right a.txt"))
    first: list[Step] = [WRONG, {"cost": 0.5, "session": "s1"}, SPENT_CONTEXT, {"exit": 1}]
    project.script(_1_1=[{"sessions": [first, [RIGHT, {"cost": 0.75, "session": "s1"}]]}])
    result = project.run("--json")
    assert result.json["tasks"]["1.1"] == {
        "status": "complete",
        "attempts": 1,
        "commit": result.json["tasks"]["1.1"]["commit"],
        "cost_usd": 0.75,
    }, result


def test_a_used_up_budget_ends_the_run_with_exit_2_and_the_summary_says_so(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"), ("1.2", "Make b", "test -f b.txt"))
    project.script(_1_1=[[RIGHT, {"cost": 2.0}]], _1_2=[[{"write": "b.txt"}, {"cost": 1.0}]])
    result = project.run("--budget-usd", "1.50")
    assert result.code == 2, result
    assert "The budget of $1.50 is used up: $2.00 so far." in result.out
    assert project.status() == {"1.1": "complete", "1.2": "pending"}
    assert project.unstuck("resume").code == 2, "what was spent before counts"
    assert project.unstuck("resume", "--budget-usd", "5").code == 0


def test_a_budget_for_an_agent_that_does_not_say_what_it_costs_is_warned_of(project: "Project") -> None:
    project.plan(("1.1", "Make a", "test -f a.txt"))
    result = project.unstuck("run", "tasks.md", "--agent", "touch a.txt", "--budget-usd", "3")
    assert result.code == 0, result
    assert "The budget of $3.00 cannot be kept for touch a.txt" in result.err
