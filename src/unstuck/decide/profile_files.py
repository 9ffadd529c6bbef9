"""Read the profiles: those in the catalog, and the user's own in the same shape."""

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from unstuck.config import Config
from unstuck.decide.policy import BadPolicy, Policy, limited, parse
from unstuck.errors import BadUsage
from unstuck.journal import Options, Settings
from unstuck.shipped import shipped


def profiles(own: Mapping[str, Any] | None = None) -> dict[str, Policy]:
    """Return all profiles by name; a profile of the user's may begin as another one, named by `like`."""
    tables = _catalog()
    hints = tables["hints"]
    found = {name: parse(name, table, hints) for name, table in tables.items() if name != "hints"}
    for name, table in (own or {}).items():
        try:
            found[name] = parse(name, _based(table, tables), hints)
        except BadPolicy as error:
            raise BadUsage(
                f"The configuration's {error}.", hint="See the profiles and their form: unstuck policy"
            ) from error
    return found


def profile(name: str, own: Mapping[str, Any] | None = None) -> Policy:
    """Return one profile, or say which there are."""
    found = profiles(own)
    if name not in found:
        raise BadUsage(f"There is no profile {name!r}.", hint=f"Profiles: {', '.join(found)}.")
    return found[name]


def resolved(options: Options, config: Config, asked: Settings) -> Options:
    """Write down what the profile says where the user said nothing; a profile that does not exist is refused here."""
    policy = policy_of(options, config, asked)
    return replace(
        options,
        on_stuck=policy.on_stuck,
        max_attempts=policy.limits.attempts,
        siblings_first=policy.siblings_first,
        approve=config.approve.before,
    )


def policy_of(options: Options, config: Config, asked: Settings) -> Policy:
    """Return the run's profile with what the user said about it, and the plan's own state file."""
    policy = profile(options.profile, config.profiles)
    limits = replace(policy.limits, **asked.limits)
    if options.max_attempts:
        limits = replace(limits, attempts=options.max_attempts)
    return replace(
        limited(policy, limits),
        on_stuck=options.on_stuck or policy.on_stuck,
        land_unverified=config.verify.unverified == "land",
        quota=options.quota,
    )


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
