"""The recovery table: a ladder of rungs for each way to fail; past the last rung a person is asked."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from unstuck.diagnosis import KINDS, Failure, Kind

Move = Literal["retry", "continue", "rollback", "switch", "fix", "wait"]
OnStuck = Literal["skip", "halt"]
View = Literal["kind", "type", "phase_type"]
Charges = Literal["blame", "all"]
Classifier = Literal["unstuck", "auto-claude", "seed-002"]
"""Who says what a failure is: our rules, or Auto-Claude's word lists, which its document numbered 002 among the seeds."""
Quota = Literal["wait", "switch", "exit"]
"""What to do about a provider's limit: wait for its end, give the task to another agent, or end the run until then."""

LIMITED = frozenset({Kind.RATE_LIMITED, Kind.QUOTA_EXHAUSTED, Kind.PROVIDER_OVERLOADED})
"""Limits of providers: they pass, so no profile spends an attempt on them."""

PASSING = frozenset({
    Kind.NETWORK_ERROR, Kind.DISK_FULL, Kind.OUT_OF_MEMORY, Kind.PORT_IN_USE, Kind.RESOURCE_BUSY,
})  # fmt: skip
"""What a check may meet on its way: it is run again a little later, and no agent is called for it."""

FUTILE = frozenset(
    kind
    for kind, facts in KINDS.items()
    if not facts.retryable and facts.blame in ("environment", "provider", "plan")
) - PASSING - LIMITED - {Kind.PERMISSION_DENIED}  # fmt: skip
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
    below: int | None = None
    """Only while fewer attempts than this are finished, the one that just failed included."""
    hint: str = ""


Ladder = tuple[Rung, ...]

GO_ON = Rung("continue", 1000, None, "The last session was interrupted. Its work is still here: go on from it.")
OWN_LADDERS: Mapping[Kind, Ladder] = {
    **dict.fromkeys(LIMITED, (Rung("wait", 28),)),
    Kind.INTERRUPTED: (GO_ON,),
    Kind.UNVERIFIED: (),
    Kind.QUESTION: (),
}
"""What every profile does that has no ladder for it: a limit is waited for, our own stop or death uses up no budget of
any kind, and what nothing can check, or an agent asks, is a question, not something to try again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ceilings whatever the ladders say: for one task in one epoch, and for the run."""

    attempts: int = 5
    """Attempts that are charged."""
    sessions: int = 12
    """Sessions of one attempt."""
    rollbacks: int = 3
    fixes: int = 3
    """Fix tasks of one task."""
    fix_depth: int = 3
    """Fix tasks of fix tasks."""
    fixes_per_root: int = 6
    """Fix tasks of one task, theirs, and so on."""
    modifications: int = 3
    """Changes of the plan that the agent may ask for in one task."""
    modification_depth: int = 2
    """Such changes in tasks that came of such changes."""
    executions: int | None = None
    """Sessions of the whole run; None follows from the number of tasks."""
    executions_per_task: int = 3
    executions_at_least: int = 100
    wall_clock: float | None = None
    """Seconds for one session, where the profile has its own."""
    first_wait: float = 30.0
    """Seconds to wait where nobody says when a fault ends; doubles with every wait."""
    longest_wait: float = 900.0
    reset_margin: float = 30.0
    """Seconds to wait beyond a stated reset, since clocks differ."""
    check_waits: int = 6
    """How often a check that met the network's or the machine's trouble is run again before a person is asked."""
    first_check_wait: float = 5.0
    """Seconds until then; doubles with every wait."""
    longest_check_wait: float = 120.0
    task_seconds: float | None = None
    """Seconds of all sessions of a task."""
    task_cost_usd: float | None = None
    """What a task may cost, as far as its agents say."""

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
    charges: Charges = "blame"
    """`blame` charges only the agent's own failures, `all` every finished attempt."""
    on_stuck: OnStuck = "skip"
    green_base: bool = False
    """Roll back only to a commit at which our checks were green; otherwise the task's own base will do."""
    limits: Limits = field(default_factory=Limits)
    land_unverified: bool = False
    quota: Quota = "wait"
    siblings_first: bool = False
    """Try a failed task again only after those that ran at its side have finished."""
    spent: str = ""
    """What to say when a task's attempts are used up: {index}, {attempts} and {error} are filled in."""
    priced: bool = False
    """Evidence of earlier runs may take the open rungs of a ladder in another order."""

    def ladder(self, failure: Failure) -> tuple[str, Ladder]:
        """Return the ladder for a failure, and its name."""
        return self.ladder_of(failure.kind)

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
    known = {
        "about",
        "view",
        "classifier",
        "charges",
        "on_stuck",
        "green_base",
        "siblings_first",
        "limits",
        "ladder",
        "spent",
        "priced",
    }
    if unknown := set(table) - known:
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
    return Policy(
        name=name,
        about=table.get("about", ""),
        view=view,
        classifier=classifier,
        charges=table.get("charges", "blame"),
        on_stuck=table.get("on_stuck", "skip"),
        green_base=table.get("green_base", False),
        siblings_first=table.get("siblings_first", False),
        limits=limits,
        ladders=ladders,
        spent=table.get("spent", ""),
        priced=table.get("priced", False),
    )


def limited(policy: Policy, limits: Limits) -> Policy:
    """Return the profile with other limits. Rungs that end with the attempts follow them, and fixes need attempts."""
    attempts = max(limits.attempts, limits.fixes + 1) if limits.fixes > policy.limits.fixes else limits.attempts
    before = policy.limits.attempts
    ladders = {
        name: tuple(replace(rung, below=attempts) if rung.below == before else rung for rung in ladder)
        for name, ladder in policy.ladders.items()
    }
    return replace(policy, limits=replace(limits, attempts=attempts), ladders=ladders)


def most_decisions(policy: Policy) -> int:
    """Return how many decisions a task can cause, however it fails, before a person is asked.

    Every decision that is not final takes a rung; a rung can be taken `times` times, or while attempts are few.
    """
    ladders = {policy.ladder_of(kind) for kind in Kind}
    return 1 + policy.limits.check_waits + sum(_most(rung, policy) for _, ladder in ladders for rung in ladder)


def most_decisions_of_lineage(policy: Policy) -> int:
    """Return how many decisions a task and all the fix tasks that follow from it can cause."""
    fixes = any(rung.move == "fix" for ladder in policy.ladders.values() for rung in ladder)
    return most_decisions(policy) * (1 + policy.limits.fixes_per_root * fixes)


def _most(rung: Rung, policy: Policy) -> int:
    return min(rung.times, rung.below or NEVER_ENDING, policy.limits.fixes if rung.move == "fix" else NEVER_ENDING)


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


INTRODUCTION = """# Policies

A profile says which view of a failure decides, what is charged, and for each way to fail a ladder: the moves to make, in
order. Past the last rung a person is asked. This page is generated from `catalog/policies.toml`; a test compares them.

Whatever the profile: what nobody repairs by trying again (a command, package, variable or credential that is missing, a
set-up that fails) is asked at once, unless the work itself brought the need for it; if every task would meet it, once for
all. Trouble that a check meets on its way (network, disk, memory, port, lock) is waited out by that check alone, without a
session, while the other tasks go on.

Where a profile is `priced`, evidence may take the open rungs of a ladder in another order: what is expected to land the
work for the least cost comes first, by what each move came to in earlier runs at this kind of failure, with this agent
where that is known, else with any. The ladder's order is the prior, and a move counts from its fifth try on; a person is
asked early only where attempts have shown to be nearly hopeless. `unstuck explain` shows the figures.
"""


def page(policies: Iterable[Policy]) -> str:
    """Write the page."""
    return "\n".join([INTRODUCTION, *(_section(policy) for policy in policies)])


def _section(policy: Policy) -> str:
    charges = "the agent's own failures" if policy.charges == "blame" else "every finished attempt"
    limits = policy.limits
    lines = [
        f"## `{policy.name}`",
        "",
        policy.about,
        "",
        f"Decides by {policy.view}{', priced by evidence' if policy.priced else ''}; charges {charges}; `on_stuck` is {policy.on_stuck}. At most {limits.attempts} charged attempts, {limits.sessions} sessions an attempt, {limits.rollbacks} rollbacks.",
        f"However a task fails, a person is asked after {most_decisions(policy)} decisions at the latest.",
        "",
        f"| {policy.view} | ladder |",
        "|---|---|",
    ]
    by_ladder: dict[str, list[str]] = {}
    for value, ladder in policy.ladders.items():
        by_ladder.setdefault(rungs_of(ladder), []).append("anything" if value == "*" else f"`{value}`")
    lines += [f"| {', '.join(values)} | {ladder} |" for ladder, values in by_ladder.items()]
    return "\n".join([*lines, ""])
