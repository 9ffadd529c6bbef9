"""Recovery priced by evidence: what landed work for the least cost comes first, with the ladder as the prior."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from unstuck.app.inspect import look
from unstuck.model.action import Escalate, Retry, Rollback, Switch
from unstuck.model.failure import Failure, Kind
from unstuck.model.plan import Task
from unstuck.policy.decision import History, decide
from unstuck.policy.experience import ANY_AGENT, ELSEWHERE, ENOUGH_TRIES, Experience, Tried, pooled, task_sort
from unstuck.policy.profiles import profile

if TYPE_CHECKING:
    from tests.project import Project

RED = Failure(kind=Kind.TEST_FAILED, summary="red")
PAST = History(attempts=1, agent="a", agents=("a", "b"), tries={"a": 1})
IN_VAIN = Tried(tried=100, won=0, seconds=100.0)


def known(agent: str = ANY_AGENT, **moves: Tried) -> Experience:
    return Experience(moves={("test_failed", move, agent): tried for move, tried in moves.items()})


def test_without_evidence_enough_the_ladder_is_climbed_in_its_order() -> None:
    few = known(switch=Tried(tried=ENOUGH_TRIES - 1, won=0))
    for experience in (Experience(), few):
        decision = decide(RED, PAST, profile("adaptive"), experience)
        assert isinstance(decision.action, Switch)
        assert decision.weighed == ()


def test_a_move_that_lands_more_for_its_cost_overtakes_and_the_figures_are_kept() -> None:
    better = known(switch=Tried(tried=20, won=2, seconds=20.0), retry=Tried(tried=20, won=12, seconds=20.0))
    decision = decide(RED, PAST, profile("adaptive"), better)
    assert isinstance(decision.action, Retry)
    assert {(one.move, one.won, one.tried) for one in decision.weighed} >= {("switch", 2, 20), ("retry", 12, 20)}
    dear = known(switch=Tried(tried=20, won=10, seconds=400.0), retry=Tried(tried=20, won=9, seconds=20.0))
    assert isinstance(decide(RED, PAST, profile("adaptive"), dear).action, Retry), "twenty times the time, hardly more"


def test_what_is_known_of_the_agent_itself_outweighs_what_is_known_of_all() -> None:
    all_of_them = known(switch=Tried(tried=20, won=2), retry=Tried(tried=20, won=12))
    this_one = known("a", switch=Tried(tried=10, won=9), retry=Tried(tried=10, won=0))
    both = Experience(moves={**all_of_them.moves, **this_one.moves})
    assert isinstance(decide(RED, PAST, profile("adaptive"), both).action, Switch)
    assert isinstance(decide(RED, replace(PAST, agent="b"), profile("adaptive"), both).action, Retry)


def test_a_person_is_asked_early_where_nothing_left_has_ever_helped() -> None:
    hopeless = known(switch=IN_VAIN, retry=IN_VAIN, rollback=IN_VAIN)
    decision = decide(RED, PAST, profile("adaptive"), hopeless)
    assert isinstance(decision.action, Escalate)
    assert "nearly always in vain" in decision.action.question
    last_hope = known(switch=IN_VAIN, retry=IN_VAIN)
    assert isinstance(decide(RED, PAST, profile("adaptive"), last_hope).action, Rollback)


def test_evidence_bends_no_predecessors_profile_and_no_failure_that_is_not_the_agents() -> None:
    hopeless = known(retry=IN_VAIN)
    assert isinstance(decide(RED, PAST, profile("max-retries"), hopeless).action, Retry)
    network = replace(RED, kind=Kind.NETWORK_ERROR)
    assert decide(network, PAST, profile("adaptive"), hopeless).weighed == ()


def test_other_repositories_count_for_a_quarter_and_sorts_of_tasks_apart() -> None:
    there = Experience(
        agents={"a": Tried(tried=43, won=40)}, moves={("test_failed", "retry", ""): Tried(tried=9, won=4)}
    )
    both = pooled(Experience(agents={"a": Tried(tried=2, won=1)}), [there])
    assert both.agents["a"] == Tried(tried=1 + 40 // ELSEWHERE + 1, won=1 + 40 // ELSEWHERE)
    assert both.moves["test_failed", "retry", ""].tried == 9 // ELSEWHERE
    sorts = [
        Task(id="1", title="t", fixes="0"),
        Task(id="2", title="t", markers=("RED",)),
        Task(id="3", title="t", files=("src/a.py", "docs/b.md", "src/c.py")),
        Task(id="4", title="t"),
    ]
    assert [task_sort(one) for one in sorts] == ["fix", "test", "py", ""]
    known_sorts = Experience(
        agents={"a": Tried(tried=50, won=50), "b": Tried(tried=50, won=0)},
        sorts={("a", "py"): Tried(tried=10, won=0), ("b", "py"): Tried(tried=10, won=10)},
    )
    assert known_sorts.records(["a", "b"], "py") == (("a", 0, 10), ("b", 10, 0))
    assert known_sorts.records(["a", "b"], "md") == (("a", 50, 0), ("b", 0, 50))


def test_a_run_uses_what_another_repository_taught_and_explain_shows_the_figures(project: "Project") -> None:
    folder = Path(os.environ["XDG_STATE_HOME"]) / "unstuck" / "experience"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "broken.json").write_text("{")
    elsewhere = folder / "elsewhere.json"
    moves = [["check_failed", "retry", "", 80, 0, 80.0], ["check_failed", "rollback", "", 80, 60, 80.0]]
    elsewhere.write_text(json.dumps({"schema": 1, "agents": [], "sorts": [], "moves": moves}))
    project.plan(("1.1", "Answer", "grep -q right a.txt"))
    project.script(_1_1=[[{"write": "a.txt", "text": "wrong\n"}], [{"write": "a.txt", "text": "right\n"}]])
    told = project.run()
    elsewhere.unlink()
    assert told.code == 0, told
    first = look(project.root).state.tasks["1.1"].attempts[0]
    assert first.decision is not None
    assert isinstance(first.decision.action, Rollback)
    story = project.ask("explain", "1.1").out
    assert "weighed:  retry [check_failed[1]] " in story
    assert "(15 of 20 landed)" in story
