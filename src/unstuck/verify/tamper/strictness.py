"""Compare two assertions: whether the one says at least as much as the other, or the opposite."""

import re
from collections import Counter
from collections.abc import Iterable

from unstuck.verify.tamper.losses import World
from unstuck.verify.tamper.suite import Assertion, Case

LOADERS = frozenset(
    {"load", "loads", "read_text", "open", "readFileSync", "safe_load", "reader", "DictReader", "parse"}
)
"""A test that calls one of these may have its values in a file."""
TRUTHS = frozenset({"None", "True", "False", "null", "undefined", "true", "false"})
_FALSE = frozenset({"None", "False", "0", "''", "null", "undefined", "false"})
_OPPOSITES = frozenset(
    {("ne", "eq"), ("NotIn", "In"), ("In", "NotIn"), ("falsy", "truthy"), ("truthy", "falsy"), ("eq", "ne")}
)


def contradicts(old: Assertion, new: Assertion) -> bool:
    """Tell whether the very same thing is now expected to be another value, or the opposite."""
    if (old.relation, new.relation) in _OPPOSITES or new.relation == f"not {old.relation}":
        return old.literals <= new.literals and old.names <= new.names
    if old.relation == "raises" != new.relation:
        return True
    if old.relation == "truthy" and new.relation == "eq":
        return bool(new.literals - old.literals) and new.literals - old.literals <= _FALSE
    if not old.relation == new.relation == "eq":
        return False
    one, two = (set(found.key.removeprefix("eq ").split(" ~ ")) - {"eq", ""} for found in (old, new))
    rest = two - one
    if len(one & two) != 1 or len(rest) != 1 or "approx" in old.names:
        return False
    value = next(iter(rest)).split()
    return "_" not in value and bool(set(value) & new.literals) and not set(value) & new.names


def as_strict(old: Assertion, new: Assertion) -> bool:
    """Tell whether the new assertion demands at least as much of what it speaks of."""
    if new.idle or not new.blurs <= old.blurs or is_wider(old, new):
        return False
    if _is_one_property(old, new):
        return True
    if new.rank < old.rank:
        return False
    if "raises" in (old.relation, new.relation) and old.relation != new.relation:
        return new.relation == "raises" and bool(old.names & {"exception", "value", "message", "args"})
    alike = {old.relation, new.relation} <= {"eq", "call", "called"} or old.relation == new.relation
    if old.relation == "falsy" and new.relation == "eq":
        return True
    return alike or (new.rank > old.rank and not {"ne", "falsy"} & {old.relation, new.relation})


def _is_one_property(old: Assertion, new: Assertion) -> bool:
    """`toMatchObject({status: 403})` says as much as that `.status` is 403."""
    found = re.search(r"\. (\w+) ~ (\S+)$|^eq ~ (\S+) ~ .*\. (\w+)$", old.key)
    if old.relation != "eq" or new.relation != "like" or found is None or "{" not in new.key:
        return False
    name, value = (found[1], found[2]) if found[1] else (found[4], found[3])
    return f"{name} : {value}" in new.key


def _is_more_precise(old: Assertion, new: Assertion) -> bool:
    """Tell whether a value that was given roughly is given with more digits now."""
    if not 0 < new.tolerance <= old.tolerance:
        return False
    had, has = (_numbers(one.literals) for one in (old, new))
    width = old.tolerance * max(1.0, *(abs(one) for one in had)) if had else 0.0
    return all(any(abs(one - two) <= width for two in has) for one in had)


def _reckoned(named: Iterable[str], new: Assertion, world: World) -> frozenset[str]:
    """Give what `LIMIT + 1` and the like come to."""
    parts = _numbers(new.literals)
    values = [one for name in named for one in _numbers(world.constants.get(name, ()))]
    return frozenset(
        f"{found:g}" for value in values for part in parts for found in (value + part, value - part, value * part)
    )


def _numbers(literals: Iterable[str]) -> list[float]:
    return [float(one) for one in literals if re.fullmatch(r"-?\d{1,15}(?:\.\d{1,15})?(?:[eE]-?\d{1,2})?", one)]


def _says_it_less_often(old: Assertion, new: Assertion) -> bool:
    """Tell whether a value that stood on both sides stands on one only: `f([9, 5]) == [9, 5]` → `f([9, 5])[0] == 9`."""
    if not (old.relation == new.relation == "eq" and old.literals <= new.literals and old.names & new.names):
        return False
    had, has = (Counter(word for word in one.key.split() if word in one.literals) for one in (old, new))
    return bool(had - has)


def is_wider(old: Assertion, new: Assertion) -> bool:
    """Tell whether a tolerance grew beyond what a change of units explains."""
    return bool(old.tolerance) and new.tolerance > 10 * old.tolerance


def covers(old: Assertion, new: Assertion, case: Case, world: World) -> bool:
    """Tell whether all values of the old assertion are among those that the new one goes through."""
    near = case.literals | new.literals
    if case.rows:
        shared = near - frozenset().union(*case.rows)
        if any(old.literals <= row | new.literals | shared for row in case.rows):
            return True
    elif old.literals <= near:
        return not _says_it_less_often(old, new)
    if (case.open_rows or case.calls & LOADERS) and old.literals <= near | world.literals:
        return True
    missing = old.literals - near
    kinds = {(one[7:], base[7:]) for one in new.literals for base in missing if one.startswith("raises:")}
    if len(missing) == 1 and kinds & world.subclasses:
        return True  # a more special error
    if _is_more_precise(old, new):
        return True
    named = [name for name in new.names - old.names if name.isupper() and len(name) > 1]
    if len(missing) == 1 and missing <= _reckoned(named, new, world):
        return True
    if len(missing) == 1 and any(name not in world.constants for name in named):
        return True
    return bool(named) and missing <= frozenset().union(*(world.constants.get(name, frozenset()) for name in named))
