"""Who begins a task, where experience says so."""

from typing import TYPE_CHECKING

import pytest

from unstuck.app.inspect import look
from unstuck.policy.experience import Experience, Tried, drawn

if TYPE_CHECKING:
    from tests.project import Project


@pytest.mark.parametrize(
    ("records", "least", "most"),
    [
        pytest.param((("a", 2, 18), ("b", 18, 2)), 0.0, 0.02, id="a-much-better-one-begins"),
        pytest.param((("a", 5, 5), ("b", 6, 4)), 0.2, 0.5, id="nearly-the-same-share-the-work"),
        pytest.param((("a", 0, 0), ("b", 6, 4)), 0.2, 0.6, id="an-unknown-one-gets-its-chance"),
    ],
)
def test_agents_are_drawn_by_what_is_known_of_them(
    records: tuple[tuple[str, int, int], ...], least: float, most: float
) -> None:
    first = [drawn(records, f"run {number}")[0] for number in range(1000)]
    assert least <= first.count("a") / 1000 <= most
    assert drawn(records, "run 7") == drawn(records, "run 7"), "the same run draws the same"


def test_experience_decides_by_itself_only_with_enough_of_it() -> None:
    known = Experience(agents={"a": Tried(tried=10, won=9), "b": Tried(tried=9, won=4)})
    assert not known.enough(["a", "b"])
    assert not known.enough(["a"]), "one agent is in order by itself"
    assert Experience(agents={**known.agents, "b": Tried(tried=10, won=5)}).enough(["a", "b"])


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
    assert any("is drawn by experience" in note and "landed 5 of 5" in note for note in state.notes)
