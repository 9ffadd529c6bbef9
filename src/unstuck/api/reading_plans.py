"""Look at plans, and at what a run of one would go by."""

from pathlib import Path

from unstuck.config_file import read_config
from unstuck.decide import Policy
from unstuck.decide import profiles as all_profiles
from unstuck.errors import Unavailable, UnstuckError
from unstuck.git import find
from unstuck.plans import Check, Plan, Problem, check, open_plan, reviewed
from unstuck.tools import FirstConfig
from unstuck.tools import write_config as write_first_config
from unstuck.verify import gates as all_gates


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
        return all_gates(read_config(root), root)
    except UnstuckError:
        return ()


def write_config(cwd: Path, *, force: bool = False) -> FirstConfig:
    """Write a first `unstuck.toml` into the root of the repository."""
    return write_first_config(find(cwd).root, force=force)
