"""A recovery supervisor for autonomous coding agents: a plan goes in, verified commits come out.

The public names are those in `__all__` and those of `unstuck.testing`. `docs/reference/library.md` describes them.
All other modules are private.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unstuck.app.open_run import open_run, reopen_run
    from unstuck.app.remedy_plan import remedy
    from unstuck.app.remedy_runs import report
    from unstuck.app.settings import read_plan
    from unstuck.diagnosis.rulebook import diagnose
    from unstuck.library.advice import Advice, Attempt
    from unstuck.library.recovery import Recovery
    from unstuck.model.plan import Task
    from unstuck.model.verdict import Check

__version__ = "0.1.0"
__all__ = [
    "Advice",
    "Attempt",
    "Check",
    "Recovery",
    "Task",
    "__version__",
    "diagnose",
    "open_run",
    "read_plan",
    "remedy",
    "reopen_run",
    "report",
]

MODULES = {
    "Advice": "unstuck.library.advice",
    "Attempt": "unstuck.library.advice",
    "Check": "unstuck.model.verdict",
    "Recovery": "unstuck.library.recovery",
    "Task": "unstuck.model.plan",
    "diagnose": "unstuck.diagnosis.rulebook",
    "open_run": "unstuck.app.open_run",
    "read_plan": "unstuck.app.settings",
    "remedy": "unstuck.app.remedy_plan",
    "reopen_run": "unstuck.app.open_run",
    "report": "unstuck.app.remedy_runs",
}
"""The module of each public name.

It is imported on first use of the name, because the command line and the hook import this package and must start fast.
"""


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in MODULES:
        raise AttributeError(f"module 'unstuck' has no attribute {name!r}")
    return getattr(import_module(MODULES[name]), name)
