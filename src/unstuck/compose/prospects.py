"""Edge: Say what a run here would go by: the plan, the profiles, the checks. Nothing of a run itself is loaded for it."""

from collections.abc import Sequence
from pathlib import Path

from unstuck import decide
from unstuck.compose.gate_list import gates_of
from unstuck.config_file import read_config
from unstuck.errors import Unavailable, UnstuckError
from unstuck.git import find
from unstuck.plans import Check, Plan, Problem, check, open_plan, reviewed


def read_plan(path: Path, *, plan_format: str | None = None) -> Plan:
    """Read a plan and look it over; its problems and concerns are in it."""
    return reviewed(open_plan(path, plan_format).read(), gates=len(gates(Path.cwd())))


def plan_problems(plan: Plan) -> tuple[Problem, ...]:
    return check(plan)


def profiles(cwd: Path) -> "dict[str, decide.Policy]":
    """Return the profiles that a run here could use: the catalog's, and the configuration's own."""
    try:
        own = read_config(find(cwd).root).profiles
    except Unavailable:
        own = {}
    return decide.profiles(own)


def gates(cwd: Path, wanted: Sequence[Check] = ()) -> tuple[Check, ...]:
    """Return the checks that hold after every task: the repository's, and those that a plan wants besides."""
    try:
        root = find(cwd).root
        return gates_of(read_config(root), root, wanted)
    except UnstuckError:
        return tuple(wanted)
