"""Walking a recovery plan: what is run, how often, and what is told."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from unstuck.diagnosis.diagnosis_result import Diagnosis
from unstuck.diagnosis.evidence import Evidence
from unstuck.model.failure import Kind
from unstuck.remedies.chain import ASK, Ask, Rendered, Risk, Shell, Step
from unstuck.remedies.performing import Tried, walk
from unstuck.remedies.recovery_plan import Plan, Strategy, Told
from unstuck.remedies.toolbox import Done


@dataclass
class Played:
    """A toolbox and a judge that play what was written down: for each way the ends of its executions."""

    ends: dict[str, list[str]]
    obstacles: dict[str, str] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)
    settled: list[bool] = field(default_factory=list)

    def obstacle(self, strategy: Strategy) -> str:
        return self.obstacles.get(strategy.strategy, "")

    def use(self, step: Step) -> Done:
        self.used.append(step.action)
        ends = self.ends.get(step.action, ["broken"])
        end = ends.pop(0) if len(ends) > 1 else ends[0]
        return Done(ok=end == "ok", exit_code=0 if end == "ok" else 1, output=end)

    def settle(self, *, keep: bool) -> tuple[str, ...]:
        self.settled.append(keep)
        return ("made.txt",) if keep else ()

    def diagnose(self, evidence: Evidence) -> Diagnosis | None:
        kinds = {"ok": None, "network": Kind.NETWORK_ERROR, "broken": Kind.UNKNOWN}
        kind = kinds[evidence.stdout]
        return Diagnosis(kind=kind, confidence=1.0, message=evidence.stdout) if kind else None

    def resets_at(self, diagnosis: Diagnosis, now: float) -> float | None:  # noqa: ARG002  # the port's signature
        return None


def made(*names: str, risks: Sequence[Risk] = (), kind: Kind = Kind.RESOURCE_BUSY) -> Plan:
    ways = []
    for place, name in enumerate(names):
        risk: Risk = risks[place] if risks else "safe"
        step = Step(action=name, operation=Shell(argv=("true",)), expected="", risk=risk, again=True)
        ways.append(
            Strategy(
                strategy=name, confidence=0.9, iterations=1, steps=(Told(step=step, call=Rendered("run_bash", {})),)
            )
        )
    asking = Told(step=Step(action="Ask", operation=Ask(), expected=""), call=Rendered(None, {}))
    ways.append(Strategy(strategy=ASK, confidence=0.9, iterations=1, steps=(asking,)))
    return Plan(kind=kind, chain=str(kind), context="", strategies=tuple(ways))


def test_the_chain_is_walked_to_the_first_way_that_works_and_no_further() -> None:
    world = Played({"two": ["ok"]})
    told: list[Tried] = []
    walked = walk(made("one", "two", "three"), world, world, "safe", told.append)
    assert walked.recovered_by == "two"
    assert world.used == ["one", "two"]
    assert world.settled == [False, True]
    assert [(one.strategy, one.result) for one in told] == [("one", "failed"), ("two", "worked")]


def test_a_way_that_met_something_passing_is_executed_once_more_and_never_a_third_time() -> None:
    world = Played({"one": ["network"]})
    walked = walk(made("one", "two"), world, world, "safe")
    assert world.used == ["one", "two", "one"]
    assert walked.recovered_by is None


def test_a_second_execution_can_be_the_one_that_works() -> None:
    world = Played({"one": ["network", "ok"]})
    assert walk(made("one", "two"), world, world, "safe").recovered_by == "one"


def test_four_executions_are_enough_for_one_failure() -> None:
    world = Played({name: ["network"] for name in ("one", "two", "three")})
    walk(made("one", "two", "three"), world, world, "safe")
    assert len(world.used) == 4


def test_what_is_not_allowed_or_cannot_work_is_told_and_not_run() -> None:
    world = Played({"three": ["ok"]}, obstacles={"two": "curl is not installed"})
    walked = walk(made("one", "two", "three", risks=("privileged", "safe", "safe")), world, world, "caution")
    assert world.used == ["three"]
    assert [(one.strategy, one.result) for one in walked.tried] == [
        ("one", "not_run"),
        ("two", "not_run"),
        ("three", "worked"),
    ]
    assert "privileged" in walked.tried[0].because
    assert walked.tried[1].because == "curl is not installed"


def test_a_call_that_ended_by_itself_when_it_had_the_time_is_not_given_more() -> None:
    world = Played({"two": ["ok"]})
    walked = walk(made("one", "two", kind=Kind.TIMEOUT), world, world, "safe")
    assert world.used == ["one"]
    assert "time is not what it lacks" in walked.tried[1].because


def test_what_may_have_had_its_effect_is_made_again_once() -> None:
    world = Played({"one": ["network"], "three": ["ok"]})
    walk(
        made("one", "two", "three", risks=("caution", "caution", "safe"), kind=Kind.NETWORK_ERROR),
        world,
        world,
        "caution",
    )
    assert world.used == ["one", "three"]


def test_a_way_without_the_call_is_advice_and_never_a_recovery() -> None:
    world = Played({"one": ["ok"], "two": ["ok"]})
    plan = made("one", "two")
    looking = plan.strategies[0].steps[0]
    looking = looking._replace(step=looking.step._replace(again=False))
    plan = plan._replace(strategies=(plan.strategies[0]._replace(steps=(looking,)), *plan.strategies[1:]))
    walked = walk(plan, world, world, "safe")
    assert world.used == ["two"]
    assert walked.tried[0].result == "not_run"
    assert "advice" in walked.tried[0].because


def test_a_recovery_hands_over_the_call_its_output_its_code_and_its_files() -> None:
    world = Played({"one": ["ok"]})
    done = walk(made("one"), world, world, "safe").recovery
    assert done is not None
    assert (done.output, done.exit_code, done.files) == ("ok", 0, ("made.txt",))
    assert done.calls == (Rendered("run_bash", {}),)


def test_a_person_is_never_asked_by_the_walk_itself() -> None:
    world = Played({})
    walk(made(), world, world, "destructive")
    assert world.used == []
