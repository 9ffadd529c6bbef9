"""Read the recovery profiles: a ladder of rungs for each way to fail.

Past the last rung a person is asked.
"""

import difflib
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from string import Formatter
from typing import Any, Literal, get_args

from unstuck.journal.breakers import PROVIDER_LIMITS
from unstuck.model.config import Charges, Classifier, OnStuck, Quota, View
from unstuck.model.errors import BadUsage
from unstuck.model.failure import KINDS, Kind
from unstuck.shipped import shipped

Move = Literal["retry", "continue", "rollback", "switch", "fix", "wait"]

TRANSIENT_FAULTS = frozenset({
    Kind.NETWORK_ERROR, Kind.DISK_FULL, Kind.OUT_OF_MEMORY, Kind.PORT_IN_USE, Kind.RESOURCE_BUSY,
})  # fmt: skip
"""A check that meets one of these is run again a little later, without an agent."""

RETRY_CANNOT_HELP = frozenset(
    kind
    for kind, facts in KINDS.items()
    if not facts.retryable and facts.blame in ("environment", "provider", "plan")
) - TRANSIENT_FAULTS - PROVIDER_LIMITS - {Kind.PERMISSION_DENIED}  # fmt: skip
"""Faults that no attempt repairs, in any profile. A denied permission is left out: the agent can set a file's mode."""

UNLIMITED_TIMES = 10_000
"""The count of a rung that only its `below` or a limit bounds."""

RUNG = re.compile(r"(?P<move>[a-z]+)(?:\*(?P<times>[0-9]{1,5}))?(?:<(?P<below>[0-9]{1,5}))?(?: (?P<hint>[a-z_]+))?")
ANYTHING = "*"
SPENT_PLACEHOLDERS = ("index", "attempts", "error")


@dataclass(frozen=True, slots=True)
class Rung:
    """One move of a ladder, with its limits and its hint for the agent."""

    move: Move
    times: int = 1
    below: int | None = None  # only while fewer attempts than this are finished, the one that just failed included
    hint: str = ""


Ladder = tuple[Rung, ...]

GO_ON = Rung("continue", 1000, None, "The last session was interrupted. Its work is still here: go on from it.")
DEFAULT_LADDERS: Mapping[Kind, Ladder] = {
    **dict.fromkeys(PROVIDER_LIMITS, (Rung("wait", 28),)),
    Kind.INTERRUPTED: (GO_ON,),
    Kind.UNVERIFIED: (),
    Kind.QUESTION: (),
}
"""The ladders of kinds that a profile does not name.

A limit is waited for. A stop or death of the supervisor uses up no budget. Unverified work and an agent's question go to
a person.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ceilings above all ladders, for one task in one epoch and for the run."""

    attempts: int = 5  # attempts that are charged
    sessions: int = 12  # sessions of one attempt
    rollbacks: int = 3
    fixes: int = 3  # fix tasks of one task
    fix_depth: int = 3  # fix tasks of fix tasks
    fixes_per_root: int = 6  # fix tasks of one task, theirs, and so on
    modifications: int = 3  # changes of the plan that the agent may request in one task
    modification_depth: int = 2  # changes requested by tasks that were requested themselves
    executions: int | None = None  # sessions of the whole run; None means that the number of tasks decides
    executions_per_task: int = 3
    executions_at_least: int = 100
    wall_clock: float | None = None  # seconds for one session, if the profile sets it
    first_wait: float = 30.0  # seconds of the first wait if the end of a fault is unknown; doubles with every wait
    longest_wait: float = 900.0
    reset_margin: float = 30.0  # seconds to wait beyond a stated reset, since clocks differ
    check_waits: int = 6
    """The number of times that a check with a transient fault is run again before a person is asked."""
    first_check_wait: float = 5.0  # seconds of the first such wait; doubles with every wait
    longest_check_wait: float = 120.0
    task_seconds: float | None = None  # seconds of all sessions of a task
    task_cost_usd: float | None = None  # the reported cost that a task may reach

    def run_executions(self, tasks: int) -> int:
        return self.executions or max(self.executions_at_least, self.executions_per_task * tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A profile: the ladders and limits by which a run recovers."""

    ladders: Mapping[str, Ladder]
    name: str = "adaptive"
    about: str = ""
    view: View = "kind"
    classifier: Classifier = "unstuck"
    charges: Charges = "blame"  # `blame` charges only the agent's own failures, `all` every finished attempt
    on_stuck: OnStuck = "skip"
    green_base: bool = False
    """Roll back only to a commit at which the checks passed. Otherwise the task's own base is enough."""
    limits: Limits = field(default_factory=Limits)
    land_unverified: bool = False
    quota: Quota = "wait"
    siblings_first: bool = False  # try a failed task again only after the tasks beside it have finished
    spent: str = ""  # the text about a task without attempts left, with {index}, {attempts} and {error}

    def ladder_of(self, kind: Kind) -> tuple[str, Ladder]:
        """Return the kind's own ladder, or that of its word in the profile's view."""
        if kind.value in self.ladders:
            return kind.value, self.ladders[kind.value]
        if kind in DEFAULT_LADDERS:
            return kind.value, DEFAULT_LADDERS[kind]
        facts = KINDS[kind]
        name = {"kind": kind.value, "type": facts.type, "phase_type": facts.phase_type or "unknown"}[self.view]
        return name, self.ladders.get(name, self.ladders.get(ANYTHING, ()))


class BadPolicy(ValueError):
    """An error in a profile: the key that has it, and what is allowed."""

    def __init__(self, profile_name: str, key: str, reason: str) -> None:
        super().__init__(f"profile {profile_name}: {key}: {reason}")
        self.key = key
        self.reason = reason


def parse_profile(name: str, table: Mapping[str, Any], hints: Mapping[str, str]) -> Policy:
    """Return the profile of a table. Raise BadPolicy if the table has an error."""
    plain = {field.name for field in fields(Policy)} - {"name", "ladders", "limits", "land_unverified", "quota"}
    allowed = plain | {"ladder", "limits"}
    if unknown := set(table) - allowed:
        raise BadPolicy(name, min(unknown), f"unknown key; {_suggestion(min(unknown), allowed)}")
    view: View = table.get("view", "kind")
    if view not in get_args(View):
        raise BadPolicy(name, "view", f"there is no view {view!r}; {_suggestion(view, get_args(View))}")
    classifier = table.get("classifier", "unstuck")
    if classifier not in get_args(Classifier):
        choices = "known are unstuck and auto-claude"
        raise BadPolicy(name, "classifier", f"there is no classifier {classifier!r}; {choices}")
    ladders = _ladders(name, table, hints, view)
    if ANYTHING not in ladders and (missing := _needed(view) - set(ladders)):
        raise BadPolicy(
            name, "ladder", f"{min(missing)} has no ladder; write one, or one of '*' for all others, or `like`"
        )
    _check_spent(name, table.get("spent", ""))
    try:
        limits = Limits(**table.get("limits", {}))
    except TypeError as error:
        raise BadPolicy(name, "limits", str(error)) from error
    return Policy(name=name, ladders=ladders, limits=limits, **{key: table[key] for key in plain & set(table)})


def _ladders(name: str, table: Mapping[str, Any], hints: Mapping[str, str], view: View) -> dict[str, Ladder]:
    allowed = _values(view) | _values("kind") | {ANYTHING}
    ladders: dict[str, Ladder] = {}
    for entry in table.get("ladder", ()):
        rungs = tuple(_rung(name, text, hints) for text in entry.get("rungs", ()))
        for value in entry.get("of", ()):
            if value not in allowed:
                raise BadPolicy(name, "ladder.of", f"{value!r} is not a {view}; {_suggestion(value, allowed)}")
            if value in ladders:
                raise BadPolicy(name, "ladder.of", f"{value} has two ladders; one is allowed")
            ladders[value] = rungs
    return ladders


def _check_spent(name: str, text: str) -> None:
    """Raise BadPolicy unless the text has only the three placeholders that are filled in."""
    try:
        parts = list(Formatter().parse(text))
    except ValueError as error:
        raise BadPolicy(name, "spent", f"{error}; write {{{{ and }}}} for braces") from error
    for _, placeholder, form, conversion in parts:
        if placeholder is not None and (placeholder not in SPENT_PLACEHOLDERS or form or conversion):
            allowed = ", ".join(f"{{{word}}}" for word in SPENT_PLACEHOLDERS)
            raise BadPolicy(
                name, "spent", f"{{{placeholder[:40]}}} is not filled in, or has a format; allowed are {allowed}"
            )


def _suggestion(word: str, allowed: Collection[str]) -> str:
    """Return the nearest allowed word, or all of them."""
    near = difflib.get_close_matches(word[:100], allowed, n=1)
    return f"did you mean {near[0]!r}" if near else f"known are {', '.join(sorted(allowed))}"


def with_limits(policy: Policy, limits: Limits) -> Policy:
    """Return the profile with other limits. Rungs that were bound to its attempts follow the new number."""
    attempts = max(limits.attempts, limits.fixes + 1) if limits.fixes > policy.limits.fixes else limits.attempts
    before = policy.limits.attempts
    ladders = {
        name: tuple(replace(rung, below=attempts) if rung.below == before else rung for rung in ladder)
        for name, ladder in policy.ladders.items()
    }
    return replace(policy, limits=replace(limits, attempts=attempts), ladders=ladders)


def _rung(profile: str, text: str, hints: Mapping[str, str]) -> Rung:
    match = RUNG.fullmatch(text)
    if match is None or match["move"] not in get_args(Move):
        form = f"write for example 'retry*2 repair'; moves are {', '.join(get_args(Move))}"
        raise BadPolicy(profile, "ladder.rungs", f"{text[:80]!r} is not a rung; {form}")
    if match["hint"] and match["hint"] not in hints:
        raise BadPolicy(
            profile, "ladder.rungs", f"there is no hint {match['hint']!r}; {_suggestion(match['hint'], hints)}"
        )
    below = int(match["below"]) if match["below"] else None
    unbounded = below is not None or match["move"] == "fix"  # fix tasks have limits of their own
    times = int(match["times"]) if match["times"] else (UNLIMITED_TIMES if unbounded else 1)
    return Rung(match["move"], times, below, hints[match["hint"]] if match["hint"] else "")  # type: ignore[arg-type]  # looked up above


def _values(view: View) -> set[str]:
    """Return all words of a view."""
    if view == "kind":
        return {kind.value for kind in Kind}
    return {word for facts in KINDS.values() if (word := getattr(facts, view)) is not None}


def _needed(view: View) -> set[str]:
    return _values(view) if view != "phase_type" else _values(view) | {"unknown"}


def rungs_of(ladder: Sequence[Rung]) -> str:
    """Return a ladder as text: `retry, 2 times → rollback → a person`."""
    parts = []
    for rung in ladder:
        count = f", {rung.times} times" if 1 < rung.times < UNLIMITED_TIMES else ""
        until = f" (fewer than {rung.below} attempts)" if rung.below else ""
        parts.append(f"{rung.move}{count}{until}")
    return " → ".join([*parts, "a person"])


# --- the profiles of the catalogue, and the user's own in the same form --------------------------------------------


@dataclass(frozen=True, slots=True)
class ProfileCatalog:
    """The profiles and hints of `catalog/policies.toml`."""

    hints: Mapping[str, str]
    tables: Mapping[str, Mapping[str, Any]]
    policies: Mapping[str, Policy]


@cache
def _catalog() -> ProfileCatalog:
    tables = tomllib.loads(shipped("policies.toml"))
    hints = tables.pop("hints")
    policies = {name: parse_profile(name, table, hints) for name, table in tables.items()}
    return ProfileCatalog(hints, tables, policies)


def profiles(own: Mapping[str, Any] | None = None) -> dict[str, Policy]:
    """Return all profiles by name. A user's profile may begin as another one, named by `like`."""
    catalog = _catalog()
    policies = dict(catalog.policies)
    for name, table in (own or {}).items():
        try:
            policies[name] = _parse_own(name, table)
        except BadPolicy as error:
            raise BadUsage(
                f"The configuration's {error}.", hint="See the profiles and their form: unstuck policy"
            ) from error
    return policies


def profile(name: str, own: Mapping[str, Any] | None = None) -> Policy:
    """Return one profile. Raise BadUsage with the list of profiles if there is none of that name."""
    policies = profiles(own)
    if name not in policies:
        raise BadUsage(f"There is no profile {name!r}.", hint=f"Profiles: {', '.join(policies)}.")
    return policies[name]


def profile_mistake(name: str, table: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the key that is wrong in a user's profile, with the reason, or None."""
    try:
        _parse_own(name, table)
    except BadPolicy as error:
        return error.key, error.reason
    return None


def _parse_own(name: str, table: Mapping[str, Any]) -> Policy:
    catalog = _catalog()
    return parse_profile(name, _based_on_like(name, table, catalog), catalog.hints)


def _based_on_like(name: str, table: Mapping[str, Any], catalog: ProfileCatalog) -> dict[str, Any]:
    """Return a user's table merged over the one named by `like`. A user's ladder replaces the other's."""
    own_values = {key: value for key, value in table.items() if key != "like"}
    if "like" not in table:
        return own_values
    if table["like"] not in catalog.tables:
        suggestion = _suggestion(table["like"], catalog.tables)
        raise BadPolicy(name, "like", f"there is no profile {table['like'][:80]!r} to begin as; {suggestion}")
    base = catalog.tables[table["like"]]
    own_ladders = own_values.get("ladder", [])
    replaced = {value for entry in own_ladders for value in entry.get("of", ())}
    kept_ladders = [
        {**entry, "of": [value for value in entry["of"] if value not in replaced]} for entry in base["ladder"]
    ]
    limits = {**base.get("limits", {}), **own_values.get("limits", {})}
    return {**base, **own_values, "limits": limits, "ladder": [*own_ladders, *kept_ladders]}
