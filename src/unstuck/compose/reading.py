"""Edge: What a run here would go by: the plan, the profiles, and the checks of the configuration or those that fit the project."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from unstuck.config import GATE_TIMEOUTS, Config
from unstuck.config_file import has_config, read_config
from unstuck.decide import Policy
from unstuck.decide import profiles as all_profiles
from unstuck.errors import Unavailable, UnstuckError
from unstuck.git import find
from unstuck.plans import Check, Plan, Problem, check, open_plan, reviewed
from unstuck.tools import FirstConfig, detect, is_present
from unstuck.tools import write_config as write_first_config


def read_plan(path: Path, *, plan_format: str | None = None) -> Plan:
    """Read a plan and look it over; its problems and concerns are in it."""
    return reviewed(open_plan(path, plan_format).read(), gates=len(gates(Path.cwd())))


def plan_problems(plan: Plan) -> tuple[Problem, ...]:
    return check(plan)


def profiles(cwd: Path) -> dict[str, Policy]:
    """Return the profiles that a run here could use: the catalog's, and the configuration's own."""
    try:
        own = read_config(find(cwd).root).profiles
    except Unavailable:
        own = {}
    return all_profiles(own)


def gates(cwd: Path) -> tuple[Check, ...]:
    """Return the checks that hold after every task; none outside of a repository."""
    try:
        root = find(cwd).root
        return gates_of(read_config(root), root)
    except UnstuckError:
        return ()


def write_config(cwd: Path, *, force: bool = False) -> FirstConfig:
    """Write a first `unstuck.toml` into the root of the repository."""
    return write_first_config(find(cwd).root, force=force)


def gates_of(config: Config, root: Path, wanted: Sequence[Check] = ()) -> tuple[Check, ...]:
    """Return the repository's gates, and the plan's where it has none of a kind, each with its own time limit."""
    asked = tuple(Check(command=line, kind=kind) for kind, line in config.checks.items())
    asked += tuple(check for check in wanted if check.kind not in config.checks)
    if not asked and config.verify.detect and not has_config(root):
        asked = _found(root)
    return tuple(replace(check, timeout=GATE_TIMEOUTS.get(check.kind, config.verify.timeout)) for check in asked)


def note_found(checks: Sequence[Check]) -> Iterator[str]:
    """Say which gates nobody asked for."""
    if found := [check.command for check in checks if check.found]:
        yield f"There is no configuration, so the checks are those that fit the project: {'; '.join(found)}."


@lru_cache(maxsize=8)
def _found(root: Path) -> tuple[Check, ...]:
    return tuple(replace(check, found=True) for check in detect(root).checks if is_present(check, root))
