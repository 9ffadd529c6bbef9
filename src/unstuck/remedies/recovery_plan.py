"""Make the recovery plan: look up the chain, fill in every way, leave out what cannot work, and say why. Pure."""

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from unstuck.diagnosis import KINDS, Kind
from unstuck.remedies import subject as reading
from unstuck.remedies.chain import ASK, Chain, Risk, Way, worst
from unstuck.remedies.learning import Lessons, order
from unstuck.remedies.situation import Situation
from unstuck.remedies.step import Ask, Recipe, Remove, Rendered, Step, WriteFile
from unstuck.tell import one_line

QUESTION_CHARS, ACTION_CHARS = 400, 300

WAYS: Mapping[str, tuple[str, ...]] = {
    "commands": ("alternative_command", "manual_installation"),
    "duration": ("reduce_scope", "increase_timeout", "stream_results", "background_execution", "close_input"),
    "files": ("verify_path", "create_missing_file", "try_sandbox_directory", "check_permissions"),
    "arguments": (
        "fix_parameter_types",
        "check_schema",
        "simplify_arguments",
        "use_available_alternative",
        "decompose_into_basic_tools",
    ),
    "syntax": ("fix_syntax", "use_simpler_command", "try_alternative_syntax"),
    "network": (
        "retry_with_backoff",
        "try_alternative_host_url",
        "use_cached_data",
        "wait_and_retry",
        "reduce_request_frequency",
        "use_alternative_api_source",
        "use_anonymous_access",
    ),
    "resources": (
        "clean_up_temp_files",
        "write_smaller_file",
        "use_another_port",
        "wait_for_the_port",
        "wait_for_the_lock",
        "reduce_parallelism",
        "raise_memory_limit",
        "write_to_a_file",
        "show_the_ends",
    ),
    "repositories": (
        "remove_stale_lock",
        "conclude_merge",
        "abort_half_done",
        "put_changes_aside",
        "install_from_local_folder",
        "install_declared_dependencies",
        "load_env_file",
        "use_own_identity",
    ),
}
"""Module of `strategies` → the strategies in it; loaded when a chain has one of them."""
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
        return worst([told.step.risk for told in self.steps])

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
    tool: str = ""
    """The program or tool that was called, for which experience counts."""

    @property
    def category(self) -> str | None:
        return KINDS[self.kind].category


def recovery(situation: Situation, lessons: Lessons, context: str = "") -> Plan:
    """Return the recovery plan for one failed call."""
    chain = situation.catalog.chain(situation.kind)
    filled: list[Strategy] = []
    skipped: list[tuple[str, str]] = []
    for way in _ordered(situation, chain, context, lessons):
        found = _filled(situation, way, chain, context, lessons)
        if isinstance(found, str):
            skipped.append((way.name, one_line(found, 300)))
        else:
            filled.append(found)
    strategies = (*filled, _asking(situation, chain))
    return Plan(
        kind=situation.kind,
        chain=chain.name,
        context=context,
        strategies=strategies,
        skipped=tuple(skipped),
        tool=situation.call.program,
    )


def _ordered(situation: Situation, chain: Chain, context: str, lessons: Lessons) -> tuple[Way, ...]:
    ways = order(chain.ways, chain.name, context, lessons, situation.call.program)
    if situation.preferences.prefer_mirrors:
        return tuple(sorted(ways, key=lambda way: way.name not in MIRRORS))
    return ways


def _filled(situation: Situation, way: Way, chain: Chain, context: str, lessons: Lessons) -> Strategy | str:
    """Fill one way in, or say why it cannot work."""
    if way.name in situation.preferences.never:
        return "the configuration says never"
    if way.creates and situation.task_type == "exploratory":
        return "an exploring task creates nothing"
    recipe = fill(way.name)(situation)
    if isinstance(recipe, str):
        return recipe
    missing = [name for name in recipe.requires if not situation.around.has(name) and "/" not in name]
    if missing:
        return f"{missing[0]} is not installed"
    for host in recipe.hosts:
        if not situation.preferences.may_reach(host):
            return f"{host} is not among the allowed hosts"
        if host in situation.around.unreachable:
            return f"{host} cannot be reached"
    told = []
    for step in recipe.steps:
        call = situation.tools.render(step.deed)
        if isinstance(call, str):
            return f"it needs the tool {call}, which is not among the tools"
        plain = step._replace(action=one_line(step.action, ACTION_CHARS))
        told.append(Told(step=_weighed(situation, plain), call=call))
    counts = lessons.of(chain.name, way.name, context, situation.call.program)
    return Strategy(
        strategy=way.name,
        confidence=round(counts.blended(way.confidence) * recipe.likelihood, 3),
        iterations=way.iterations,
        steps=tuple(told),
        requires=recipe.requires,
        hosts=recipe.hosts,
        between_attempts=way.between_attempts,
    )


def fill(name: str) -> Callable[[Situation], Recipe | str]:
    """Return what fills in a way."""
    module = next(module for module, names in WAYS.items() if name in names)
    found: Callable[[Situation], Recipe | str] = getattr(import_module(f"unstuck.remedies.strategies.{module}"), name)
    return found


def _weighed(situation: Situation, step: Step) -> Step:
    """Raise the risk of a write beyond the places that remedies may write to."""
    root, allowed = situation.around.root, situation.preferences.allowed_folders
    if isinstance(step.deed, WriteFile) and step.deed.path.startswith(("/", "~", "../")):
        inside = any(
            step.deed.path.startswith(f"{folder.rstrip('/')}/") for folder in (root, *allowed) if folder != "."
        )
        return step if inside else step._replace(risk="destructive")
    if isinstance(step.deed, Remove) and not step.deed.paths:
        return step._replace(risk="destructive")
    return step


def _asking(situation: Situation, chain: Chain) -> Strategy:
    blanks = reading.blanks(situation)
    question = re.sub(r"\{(\w+)\}", lambda found: blanks.get(found[1], ""), chain.ask)
    step = Step(action=one_line(question, QUESTION_CHARS), deed=Ask(), expected="An answer")
    return Strategy(
        strategy=ASK, confidence=chain.ask_confidence, iterations=1, steps=(Told(step=step, call=Rendered(None, {})),)
    )


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
