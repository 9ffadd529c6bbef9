"""The order in which agents begin tasks, where earlier runs decide it."""

from typing import TYPE_CHECKING

from unstuck.app.experience_table import order_agents
from unstuck.app.inspect import look
from unstuck.model.event import Options
from unstuck.policy.schedule import Experience, Tried, sorted_by_rate

if TYPE_CHECKING:
    from tests.project import Project


def test_the_agent_with_the_highest_landed_rate_comes_first() -> None:
    records = (("a", 2, 18), ("b", 18, 2), ("c", 5, 5))
    assert sorted_by_rate(("a", "b", "c"), records) == ("b", "c", "a")


def test_agents_with_equal_rates_keep_the_users_order() -> None:
    records = (("a", 5, 5), ("b", 5, 5), ("c", 0, 0))
    assert sorted_by_rate(("c", "b", "a"), records) == ("c", "b", "a")


def test_the_order_changes_unasked_only_when_every_agent_has_enough_attempts() -> None:
    options = Options(agents=("a", "b"))
    few = Experience(agents={"a": Tried(tried=10, won=4), "b": Tried(tried=9, won=9)})
    assert order_agents(options, few).order == "given"
    assert order_agents(options, few).records == ()
    enough = Experience(agents={**few.agents, "b": Tried(tried=10, won=9)})
    assert order_agents(options, enough).order == "experience"
    assert order_agents(options, enough).records == (("a", 4, 6), ("b", 9, 1))
    assert order_agents(Options(agents=("a",)), enough).order == "given", "there is nothing to order"


def test_the_agent_that_landed_more_begins_the_next_run(project: "Project") -> None:
    numbers = range(1, 6)
    project.plan(*((f"1.{number} [P]", f"Make {number}", f"test -f {number}.txt") for number in numbers))
    idle = project.root.parent / "idle.json"
    idle.write_text('{"task": {}}')
    project.script(**{f"_1_{number}": [[{"write": f"{number}.txt"}]] for number in range(1, 7)})
    agents = ("--agent", f"scripted:{idle}", "--agent", project.agent)
    told = project.unstuck("run", "tasks.md", *agents, "--parallel", "5")
    assert told.code == 0, told
    project.plan(("1.6", "Make 6", "test -f 6.txt"), name="more.md")
    told = project.unstuck("run", "more.md", *agents, "--order", "experience")
    assert told.code == 0, told
    state = look(project.root).state
    assert [attempt.agent for attempt in state.tasks["1.6"].attempts] == [project.agent], "no session for the idle one"
    assert any("in the order of their landed work" in note and "landed 5 of 5" in note for note in state.notes)
