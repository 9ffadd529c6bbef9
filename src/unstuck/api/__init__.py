"""The library's façade: read plans, look at runs, open them. Surfaces know this and nothing below it.

Its parts are loaded when they are first asked for: who looks at a run needs neither agents nor readers of plans.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unstuck.api.crews import Trial, check_agent, known_agents, read_session
    from unstuck.api.looking import View, entry_json, look
    from unstuck.api.opening import Run, Watcher, open_run, reopen_run
    from unstuck.api.operation import Finding, before_landing, commit_of_run, examine, prune
    from unstuck.api.reading_plans import gates, plan_problems, profiles, read_plan, write_config
    from unstuck.api.verification import verification, verify, write_findings

__all__ = [
    "Finding",
    "Run",
    "Trial",
    "View",
    "Watcher",
    "before_landing",
    "check_agent",
    "commit_of_run",
    "entry_json",
    "examine",
    "gates",
    "known_agents",
    "look",
    "open_run",
    "plan_problems",
    "profiles",
    "prune",
    "read_plan",
    "read_session",
    "reopen_run",
    "verification",
    "verify",
    "write_config",
    "write_findings",
]

PARTS: Mapping[str, tuple[str, ...]] = {
    "crews": ("Trial", "check_agent", "known_agents", "read_session"),
    "verification": ("verification", "verify", "write_findings"),
    "looking": ("View", "entry_json", "look"),
    "operation": ("Finding", "before_landing", "commit_of_run", "examine", "prune"),
    "reading_plans": ("gates", "plan_problems", "profiles", "read_plan", "write_config"),
    "opening": ("Run", "Watcher", "open_run", "reopen_run"),
}


def __getattr__(name: str) -> Any:
    """Load the part that a name belongs to."""
    part = next((part for part, names in PARTS.items() if name in names), None)
    if part is None:
        raise AttributeError(f"module 'unstuck.api' has no attribute {name!r}")
    return getattr(import_module(f"unstuck.api.{part}"), name)
