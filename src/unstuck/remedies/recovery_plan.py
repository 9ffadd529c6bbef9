"""Make the recovery plan: look up the chain, fill in every way, leave out what cannot work, and say why. Pure."""

import re
import shlex
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from unstuck.model.failure import KINDS, Kind
from unstuck.model.text import one_line
from unstuck.remedies.call_words import file_address, operand, reads_input
from unstuck.remedies.chain import (
    ASK,
    NOTHING_GIVEN,
    RISKS,
    Ask,
    Chain,
    Expects,
    NoWay,
    ReadFile,
    Recipe,
    Remove,
    Rendered,
    Risk,
    Shell,
    Step,
    StrategyRow,
    WriteFile,
    fixed,
    listed,
    name_words,
    no_way,
    recipe,
    run,
    shape,
)
from unstuck.remedies.learning import Lessons, order
from unstuck.remedies.schemas import breaks, filled
from unstuck.remedies.situation import Situation, blanks, path, variable
from unstuck.remedies.surroundings import GitState
from unstuck.shipped import shipped_table

QUESTION_CHARS, ACTION_CHARS, REASON_CHARS = 400, 300, 300
GONE = "Please correct what imports {package}: {gone}."
MIRRORS = ("try_alternative_host_url", "use_alternative_api_source")


class Told(NamedTuple):
    """A step, and how the caller's tools are told to do it."""

    step: Step
    call: Rendered

    @property
    def line(self) -> str:
        """What a shell is told, where it is a shell's to do and the caller has named no tools of their own."""
        return str(self.call.args.get("script", ""))


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
    folder: str = ""  # where the call works, seen from where it was made

    @property
    def category(self) -> str | None:
        return KINDS[self.kind].category


def recovery(situation: Situation, lessons: Lessons, context: str = "") -> Plan:
    """Return the recovery plan for one failed call."""
    chain, tool = situation.catalog.chain(situation.kind), situation.call.program
    rows = order(chain.strategies, chain.name, context, lessons, tool)
    if situation.preferences.prefer_mirrors:
        rows = tuple(sorted(rows, key=lambda row: row.name not in MIRRORS))
    strategies: list[Strategy] = []
    skipped: list[tuple[str, str]] = []
    for row in rows:
        try:
            filled = _filled(situation, row)
        except NoWay as reason:
            skipped.append((row.name, one_line(str(reason), REASON_CHARS)))
        else:
            known = lessons.rate(chain.name, row.name, context, tool, row.confidence)
            strategies.append(filled._replace(confidence=round(known * filled.confidence, 3)))
    strategies.append(_asking(situation, chain))
    return Plan(situation.kind, chain.name, context, tuple(strategies), tuple(skipped), tool, situation.tools.folder)


def _filled(situation: Situation, row: StrategyRow) -> Strategy:
    """Fill one way in; its confidence is how likely it is that the repair is what was meant."""
    if row.name in situation.preferences.never:
        no_way("the configuration says never")
    late = situation.kind in {Kind.TIMEOUT, Kind.HANG}
    if late and situation.is_command and reads_input(situation.call.line):
        no_way("it reads its input, and nobody gives it any")
    if row.creates and situation.task_type == "exploratory":
        no_way("an exploring task creates nothing")
    recipe = _recipe(situation, row.name)
    for name in recipe.requires:
        if not situation.around.has(name) and "/" not in name:
            no_way(f"{name} is not installed")
    for host in recipe.hosts:
        if not situation.preferences.may_reach(host):
            no_way(f"{host} is not among the allowed hosts")
    asked = re.search(shape("question"), situation.text[-QUESTION_CHARS:]) if late else None
    weighed = [_weighed(situation, step, asked[0].strip() if asked else "") for step in recipe.steps]
    steps = tuple(_told(situation, step) for step in weighed)
    return Strategy(
        row.name, recipe.likelihood, row.iterations, steps, recipe.requires, recipe.hosts, row.between_attempts
    )


def _told(s: Situation, step: Step) -> Told:
    """Tell the caller's tool to do a step, as the schema of that tool wants it; no way, if nobody knows how.

    No step is offered that its tool would refuse. What is required and missing is what the failed call says, or the schema;
    what only says what is done is what the step does.
    """
    call, args = s.rendered(step.operation), dict[str, Any]()
    schema = s.schema(call.tool)
    for name, value in call.args.items():
        told_anew = name in listed("saying") and not step.again
        place = getattr(step.operation, "path", None) if "uri" in name_words(name) else None
        args[name] = step.action if told_anew else file_address(s.around.cwd, place) if place is not None else value
    if call.tool is None or schema is None:
        return Told(step, call._replace(args=args))
    for name in schema.get("required", ()):
        if name not in args and (name in s.call.args or name in listed("saying")):
            args[name] = s.call.args.get(name, step.action)
    args = filled(args, schema)
    if wrong := next(breaks(args, schema), ""):
        no_way(f"{call.tool} would refuse the call: {wrong}")
    return Told(step, call._replace(args=args))


def _recipe(s: Situation, name: str) -> Recipe:
    """Fill in a way for the call; or for the one command of its line that failed, which is then put into the line."""
    try:
        return fill(name)(s)
    except NoWay:
        part = s.failed_part if name in listed("of_a_part") else ""
        if not part:
            raise
        made = fill(name)(s._replace(call=s.call._replace(command=part)))
        return made._replace(steps=tuple(_inside_line(s, part, step) if step.again else step for step in made.steps))


def _inside_line(s: Situation, part: str, step: Step) -> Step:
    match step.operation:
        case Shell(argv=argv, env=env) if not env:
            whole = s.again(step.action, script=s.call.line.replace(part, shlex.join(argv)))
            return whole._replace(risk=max(whole.risk, step.risk, key=RISKS.index))
        case _:
            return no_way("only a shell can tell what the call consists of")


def fill(name: str) -> Callable[[Situation], Recipe]:
    """Return what fills in a way: its row in the catalogue, or a function of its name."""
    catalog = shipped_table("chains")
    if name in catalog["recipes"]:
        return lambda s: _by_row(s, catalog["recipes"][name])
    module = next(module for module, names in catalog["filled_by"].items() if name in names.split())
    found: Callable[[Situation], Recipe] = getattr(import_module(f"unstuck.remedies.strategies.{module}"), name)
    return found


def _by_row(s: Situation, row: Mapping[str, Any]) -> Recipe:
    known = _facts(s)
    for fact, because in row.get("unless", ()):
        if known[fact]:
            no_way(because.format(**known))
    return recipe(*(_step(s, step, known) for step in row["steps"]), requires=row.get("requires", ()))


def _facts(s: Situation) -> dict[str, Any]:
    """Return what rows may ask for: a fact that forbids a way, and what fills its braces."""
    git, lock, place, text = s.around.git or GitState(), s.around.lock, path(s) or ".", s.text.lower()
    files = [name for name in listed("env_files") if name in s.around.root_names]
    return {
        "half": git.operation,
        "nothing_half_done": not git.operation,
        "no_merge": git.operation != "merge",
        "unmerged": next(iter(git.unmerged), ""),
        "nothing_changed": git.operation or not git.changed or "to commit" in text,
        "free_lock": lock.path if lock is not None and lock.exists and not lock.held else "",
        "no_heap": "heap" not in text or not s.is_command,
        "known_identity": "tell me who you are" not in text and "identity unknown" not in text,
        "no_env_files": not files or not s.is_command or not variable(s),
        "env_files": ", ".join(files),
        "env_list": " ".join(files),
        "place": place,
        "operand": operand(place),
        "waited": max(1, round(s.preferences.timeout) - 1),
    }


def _step(s: Situation, row: Mapping[str, Any], known: Mapping[str, Any]) -> Step:
    def words(name: str) -> tuple[str, ...]:
        return tuple(fixed(word[1:]) if word[0] == "@" else word.format(**known) for word in row.get(name, ()))

    action, env = row["action"].format(**known), s.table("variables").get(row.get("env", ""), NOTHING_GIVEN)
    expects = Expects(exists=(row["exists"],) if "exists" in row else (), prints=row.get("prints", False))
    more: dict[str, Any] = {"expected": row["expected"].format(**known)} if "expected" in row else {}
    more |= {"expects": expects, "timeout": s.preferences.timeout + row["seconds"] if "seconds" in row else None}
    if "wraps" in row:
        step = s.wrapped(action, fixed(row["wraps"]), *words("first"), env=env, risk=row.get("risk"), **more)
        assert isinstance(step.operation, Shell)
        return (
            step._replace(operation=step.operation._replace(detached=True), expects=expects)
            if "detached" in row
            else step
        )
    if "run" in row:
        back = Shell(words("back")) if "back" in row else None
        return run(action, *words("run"), risk=row.get("risk", "safe"), back=back, again="again" in row, **more)
    return Step(action, ReadFile(row["reads"]), row["expected"]) if "reads" in row else s.again(action, env=env)


def _weighed(situation: Situation, step: Step, asked: str) -> Step:
    """Raise the risk of a write beyond the places that remedies may write to; keep what is said on one line, and no question open."""
    step = step._replace(action=one_line(step.action, ACTION_CHARS))
    if asked and step.again:
        step = step._replace(expects=step.expects._replace(unasked=asked))
    match step.operation:
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
    asked = GONE if known["gone"] else chain.ask
    unknown = [name for name in re.findall(r"\{(\w+)\}", asked) if not known[name]]
    question = (situation.catalog.chains["unknown"].ask if unknown else asked).format(**known)
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
