"""Make the recovery plan: look up the chain, fill in every way, leave out what cannot work, and say why. Pure."""

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from unstuck.diagnosis import KINDS, Kind
from unstuck.remedies.chain import (
    ASK,
    RISKS,
    Ask,
    Chain,
    NoWay,
    Recipe,
    Remove,
    Rendered,
    Risk,
    Step,
    Way,
    WriteFile,
    no_way,
)
from unstuck.remedies.learning import Lessons, order
from unstuck.remedies.situation import Situation, blanks
from unstuck.shipped import shipped_table
from unstuck.tell import one_line

QUESTION_CHARS, ACTION_CHARS, REASON_CHARS = 400, 300, 300
MIRRORS = ("try_alternative_host_url", "use_alternative_api_source")


class Told(NamedTuple):
    """A step, and how the caller's tools are told to do it."""

    step: Step
    call: Rendered


class Strategy(NamedTuple):
    """One way out, filled in."""

    strategy: str
    confidence: float
    iterations: int
    steps: tuple[Told, ...]
    requires: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    between_attempts: bool = False

    @property
    def risk(self) -> Risk:
        """The gravest of its steps' risks."""
        return max((told.step.risk for told in self.steps), key=RISKS.index, default="safe")

    @property
    def proves(self) -> bool:
        """Whether the call is among its steps, so that running it shows whether it works."""
        return any(told.step.again for told in self.steps)


class Plan(NamedTuple):
    """All ways out of one failure, the first to be tried first; the last one asks a person."""

    kind: Kind
    chain: str
    context: str
    strategies: tuple[Strategy, ...]
    skipped: tuple[tuple[str, str], ...] = ()
    tool: str = ""  # the program or tool that was called, for which experience counts

    @property
    def category(self) -> str | None:
        return KINDS[self.kind].category


def recovery(situation: Situation, lessons: Lessons, context: str = "") -> Plan:
    """Return the recovery plan for one failed call."""
    chain, tool = situation.catalog.chain(situation.kind), situation.call.program
    ways = order(chain.ways, chain.name, context, lessons, tool)
    if situation.preferences.prefer_mirrors:
        ways = tuple(sorted(ways, key=lambda way: way.name not in MIRRORS))
    strategies: list[Strategy] = []
    skipped: list[tuple[str, str]] = []
    for way in ways:
        try:
            filled = _filled(situation, way)
        except NoWay as reason:
            skipped.append((way.name, one_line(str(reason), REASON_CHARS)))
        else:
            known = lessons.of(chain.name, way.name, context, tool).blended(way.confidence)
            strategies.append(filled._replace(confidence=round(known * filled.confidence, 3)))
    strategies.append(_asking(situation, chain))
    return Plan(situation.kind, chain.name, context, tuple(strategies), tuple(skipped), tool)


def _filled(situation: Situation, way: Way) -> Strategy:
    """Fill one way in; its confidence is how likely it is that the repair is what was meant."""
    if way.name in situation.preferences.never:
        no_way("the configuration says never")
    if way.creates and situation.task_type == "exploratory":
        no_way("an exploring task creates nothing")
    recipe = fill(way.name)(situation)
    for name in recipe.requires:
        if not situation.around.has(name) and "/" not in name:
            no_way(f"{name} is not installed")
    for host in recipe.hosts:
        if not situation.preferences.may_reach(host):
            no_way(f"{host} is not among the allowed hosts")
    steps = tuple(Told(_weighed(situation, step), situation.tools.render(step.deed)) for step in recipe.steps)
    return Strategy(
        way.name, recipe.likelihood, way.iterations, steps, recipe.requires, recipe.hosts, way.between_attempts
    )


def fill(name: str) -> Callable[[Situation], Recipe]:
    """Return what fills in a way."""
    module = next(module for module, names in shipped_table("chains")["filled_by"].items() if name in names.split())
    found: Callable[[Situation], Recipe] = getattr(import_module(f"unstuck.remedies.{module}"), name)
    return found


def _weighed(situation: Situation, step: Step) -> Step:
    """Raise the risk of a write beyond the places that remedies may write to; keep what is said on one line."""
    step = step._replace(action=one_line(step.action, ACTION_CHARS))
    match step.deed:
        case WriteFile(path=path) if path.startswith(("/", "~", "../")):
            places = (situation.around.root, *situation.preferences.allowed_folders)
            if not any(path.startswith(f"{folder.rstrip('/')}/") for folder in places if folder != "."):
                return step._replace(risk="destructive")
        case Remove(paths=()):
            return step._replace(risk="destructive")
        case _:
            pass
    return step


def _asking(situation: Situation, chain: Chain) -> Strategy:
    known = blanks(situation)
    question = re.sub(r"\{(\w+)\}", lambda found: known.get(found[1], ""), chain.ask)
    step = Step(one_line(question, QUESTION_CHARS), Ask(), "An answer")
    return Strategy(ASK, chain.ask_confidence, 1, (Told(step, Rendered(None, {})),))


# --- as JSON ------------------------------------------------------------------------------------------------------


def plan_json(made: Plan) -> dict[str, Any]:
    """Return the plan in its public form, which is forgekeeper's."""
    names = [strategy.strategy for strategy in made.strategies]
    return {
        "schema": 1,
        "failed": True,
        "kind": str(made.kind),
        "category": made.category,
        "plans": [_strategy(strategy, place, names[place:]) for place, strategy in enumerate(made.strategies, 1)],
        "skipped": [{"strategy": name, "because": because} for name, because in made.skipped],
    }


def _strategy(strategy: Strategy, place: int, later: list[str]) -> dict[str, Any]:
    return {
        "priority": place,
        "strategy": strategy.strategy,
        "confidence": strategy.confidence,
        "estimatedIterations": strategy.iterations,
        "risk": strategy.risk,
        "requires": [*strategy.requires, *(f"host:{host}" for host in strategy.hosts)],
        "steps": [
            {
                "action": told.step.action,
                "tool": told.call.tool,
                "args": told.call.args,
                "expectedOutcome": told.step.expected,
                "risk": told.step.risk,
            }
            for told in strategy.steps
        ],
        "fallbackChain": later,
    }
