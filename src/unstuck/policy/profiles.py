"""The recovery table: a ladder of rungs for each way to fail; past the last rung a person is asked."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Literal, get_args

from unstuck.journal.breakers import PROVIDER_LIMITS
from unstuck.model.config import OnStuck, Quota
from unstuck.model.errors import BadUsage
from unstuck.model.failure import KINDS, Kind
from unstuck.shipped import shipped

Move = Literal["retry", "continue", "rollback", "switch", "fix", "wait"]
View = Literal["kind", "type", "phase_type"]
Charges = Literal["blame", "all"]
Classifier = Literal["unstuck", "auto-claude", "seed-002"]
"""Who says what a failure is: our rules, or Auto-Claude's word lists, under either of their names."""


PASSING = frozenset({
    Kind.NETWORK_ERROR, Kind.DISK_FULL, Kind.OUT_OF_MEMORY, Kind.PORT_IN_USE, Kind.RESOURCE_BUSY,
})  # fmt: skip
"""What a check may meet on its way: it is run again a little later, and no agent is called for it."""

FUTILE = frozenset(
    kind
    for kind, facts in KINDS.items()
    if not facts.retryable and facts.blame in ("environment", "provider", "plan")
) - PASSING - PROVIDER_LIMITS - {Kind.PERMISSION_DENIED}  # fmt: skip
"""What nobody repairs by trying again, whatever the profile; a file without its mode bit is the agent's to mend."""

NEVER_ENDING = 10_000
"""What a rung without a count allows; its `below` bounds it, or a limit does."""

RUNG = re.compile(r"(?P<move>[a-z]+)(?:\*(?P<times>\d+))?(?:<(?P<below>\d+))?(?: (?P<hint>[a-z_]+))?")
ANYTHING = "*"


@dataclass(frozen=True, slots=True)
class Rung:
    """One move, how often and until which attempt it may be taken for one task, and what to tell the agent."""

    move: Move
    times: int = 1
    below: int | None = None  # only while fewer attempts than this are finished, the one that just failed included
    hint: str = ""


Ladder = tuple[Rung, ...]

GO_ON = Rung("continue", 1000, None, "The last session was interrupted. Its work is still here: go on from it.")
OWN_LADDERS: Mapping[Kind, Ladder] = {
    **dict.fromkeys(PROVIDER_LIMITS, (Rung("wait", 28),)),
    Kind.INTERRUPTED: (GO_ON,),
    Kind.UNVERIFIED: (),
    Kind.QUESTION: (),
}
"""What every profile does that has no ladder for it: a limit is waited for, our own stop or death uses up no budget of
any kind, and what nothing can check, or an agent asks, is a question, not something to try again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ceilings whatever the ladders say: for one task in one epoch, and for the run."""

    attempts: int = 5  # attempts that are charged
    sessions: int = 12  # sessions of one attempt
    rollbacks: int = 3
    fixes: int = 3  # fix tasks of one task
    fix_depth: int = 3  # fix tasks of fix tasks
    fixes_per_root: int = 6  # fix tasks of one task, theirs, and so on
    modifications: int = 3  # changes of the plan that the agent may ask for in one task
    modification_depth: int = 2  # such changes in tasks that came of such changes
    executions: int | None = None  # sessions of the whole run; None follows from the number of tasks
    executions_per_task: int = 3
    executions_at_least: int = 100
    wall_clock: float | None = None  # seconds for one session, where the profile has its own
    first_wait: float = 30.0  # seconds to wait where nobody says when a fault ends; doubles with every wait
    longest_wait: float = 900.0
    reset_margin: float = 30.0  # seconds to wait beyond a stated reset, since clocks differ
    check_waits: int = 6
    """How often a check that met the network's or the machine's trouble is run again before a person is asked."""
    first_check_wait: float = 5.0  # seconds until then; doubles with every wait
    longest_check_wait: float = 120.0
    task_seconds: float | None = None  # seconds of all sessions of a task
    task_cost_usd: float | None = None  # what a task may cost, as far as its agents say

    def run_executions(self, tasks: int) -> int:
        return self.executions or max(self.executions_at_least, self.executions_per_task * tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A profile: how one run recovers."""

    ladders: Mapping[str, Ladder]
    name: str = "adaptive"
    about: str = ""
    view: View = "kind"
    classifier: Classifier = "unstuck"
    charges: Charges = "blame"  # `blame` charges only the agent's own failures, `all` every finished attempt
    on_stuck: OnStuck = "skip"
    green_base: bool = False
    """Roll back only to a commit at which our checks were green; otherwise the task's own base will do."""
    limits: Limits = field(default_factory=Limits)
    land_unverified: bool = False
    quota: Quota = "wait"
    siblings_first: bool = False  # try a failed task again only after those that ran at its side have finished
    spent: str = ""  # what to say when a task's attempts are used up: {index}, {attempts} and {error} are filled in

    def ladder_of(self, kind: Kind) -> tuple[str, Ladder]:
        """Return the kind's own ladder, where there is one; else that of the word by which the profile decides."""
        if kind.value in self.ladders:
            return kind.value, self.ladders[kind.value]
        if kind in OWN_LADDERS:
            return kind.value, OWN_LADDERS[kind]
        facts = KINDS[kind]
        name = {"kind": kind.value, "type": facts.type, "phase_type": facts.phase_type or "unknown"}[self.view]
        return name, self.ladders.get(name, self.ladders.get(ANYTHING, ()))


class BadPolicy(ValueError):
    """A profile that makes no sense, and why."""


def parse(name: str, table: Mapping[str, Any], hints: Mapping[str, str]) -> Policy:
    """Make a profile from its table; refuse what could not be climbed."""
    plain = {one.name for one in fields(Policy)} - {"name", "ladders", "limits", "land_unverified", "quota"}
    if unknown := set(table) - plain - {"ladder", "limits"}:
        raise BadPolicy(f"profile {name}: unknown key {min(unknown)!r}")
    view: View = table.get("view", "kind")
    classifier = table.get("classifier", "unstuck")
    if classifier not in get_args(Classifier):
        raise BadPolicy(f"profile {name}: there is no classifier {classifier!r}; known are unstuck and auto-claude")
    ladders: dict[str, Ladder] = {}
    for entry in table.get("ladder", ()):
        rungs = tuple(_rung(name, text, hints) for text in entry.get("rungs", ()))
        for value in entry.get("of", ()):
            if value in ladders:
                raise BadPolicy(f"profile {name}: {value} has two ladders")
            ladders[value] = rungs
    if unknown := set(ladders) - _values(view) - _values("kind") - {ANYTHING}:
        raise BadPolicy(f"profile {name}: {min(unknown)!r} is not a {view}")
    if ANYTHING not in ladders and (missing := _needed(view) - set(ladders)):
        raise BadPolicy(f"profile {name}: {min(missing)} has no ladder")
    try:
        limits = Limits(**table.get("limits", {}))
        str(table.get("spent", "")).format(index=0, attempts=1, error="")
    except (TypeError, LookupError, ValueError) as error:
        raise BadPolicy(f"profile {name}: limits or spent: {error}") from error
    return Policy(name=name, ladders=ladders, limits=limits, **{key: table[key] for key in plain & set(table)})


def limited(policy: Policy, limits: Limits) -> Policy:
    """Return the profile with other limits. Rungs that end with the attempts follow them, and fixes need attempts."""
    attempts = max(limits.attempts, limits.fixes + 1) if limits.fixes > policy.limits.fixes else limits.attempts
    before = policy.limits.attempts
    ladders = {
        name: tuple(replace(rung, below=attempts) if rung.below == before else rung for rung in ladder)
        for name, ladder in policy.ladders.items()
    }
    return replace(policy, limits=replace(limits, attempts=attempts), ladders=ladders)


def _rung(profile: str, text: str, hints: Mapping[str, str]) -> Rung:
    found = RUNG.fullmatch(text)
    if found is None or found["move"] not in get_args(Move):
        raise BadPolicy(f"profile {profile}: {text!r} is not a rung; write for example 'retry*2 repair'")
    if found["hint"] and found["hint"] not in hints:
        raise BadPolicy(f"profile {profile}: there is no hint {found['hint']!r}")
    below = int(found["below"]) if found["below"] else None
    unbounded = below is not None or found["move"] == "fix"  # fix tasks have limits of their own
    times = int(found["times"]) if found["times"] else (NEVER_ENDING if unbounded else 1)
    return Rung(found["move"], times, below, hints[found["hint"]] if found["hint"] else "")  # type: ignore[arg-type]  # looked up above


def _values(view: View) -> set[str]:
    """Return all words of a view."""
    if view == "kind":
        return {kind.value for kind in Kind}
    return {word for facts in KINDS.values() if (word := getattr(facts, view)) is not None}


def _needed(view: View) -> set[str]:
    return _values(view) if view != "phase_type" else _values(view) | {"unknown"}


def rungs_of(ladder: Sequence[Rung]) -> str:
    """Write a ladder as people read it: `retry, twice → rollback → a person`."""
    parts = []
    for rung in ladder:
        count = f", {rung.times} times" if 1 < rung.times < NEVER_ENDING else ""
        until = f" (fewer than {rung.below} attempts)" if rung.below else ""
        parts.append(f"{rung.move}{count}{until}")
    return " → ".join([*parts, "a person"])


# --- faults that concern more than one task: how far they reach, and when what is out of order is tried again -------


# --- the profiles: those of the catalogue, and the user's own in the same shape ------------------------------------


def profiles(own: Mapping[str, Any] | None = None) -> dict[str, Policy]:
    """Return all profiles by name; a profile of the user's may begin as another one, named by `like`."""
    found = dict(_catalogued())
    for name, table in (own or {}).items():
        try:
            found[name] = parse(name, _based(table, _catalog()), _catalog()["hints"])
        except BadPolicy as error:
            raise BadUsage(
                f"The configuration's {error}.", hint="See the profiles and their form: unstuck policy"
            ) from error
    return found


@cache
def _catalogued() -> Mapping[str, Policy]:
    tables = _catalog()
    return {name: parse(name, table, tables["hints"]) for name, table in tables.items() if name != "hints"}


def profile(name: str, own: Mapping[str, Any] | None = None) -> Policy:
    """Return one profile, or say which there are."""
    found = profiles(own)
    if name not in found:
        raise BadUsage(f"There is no profile {name!r}.", hint=f"Profiles: {', '.join(found)}.")
    return found[name]


def _based(table: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, Any]:
    """Lay the user's table over the one that it names; a ladder of the user's replaces the other's for the same values."""
    mine = {key: value for key, value in table.items() if key != "like"}
    if "like" not in table:
        return mine
    if table["like"] not in tables or table["like"] == "hints":
        raise BadPolicy(f"profile is like {table['like']!r}, which is none")
    base = tables[table["like"]]
    own = mine.get("ladder", [])
    taken = {value for entry in own for value in entry.get("of", ())}
    rest = [{**entry, "of": [value for value in entry["of"] if value not in taken]} for entry in base["ladder"]]
    return {**base, **mine, "limits": {**base.get("limits", {}), **mine.get("limits", {})}, "ladder": [*own, *rest]}


@cache
def _catalog() -> dict[str, Any]:
    return tomllib.loads(shipped("policies.toml"))
