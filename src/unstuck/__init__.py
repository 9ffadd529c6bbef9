"""A recovery supervisor for autonomous coding agents: a plan goes in, verified commits come out."""

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

__version__ = "0.1.0"
__all__ = [
    "Advice",
    "Attempt",
    "Recovery",
    "__version__",
    "diagnose",
    "open_run",
    "read_plan",
    "remedy",
    "reopen_run",
    "report",
]

HOME = {
    "Advice": "unstuck.library.advice",
    "Attempt": "unstuck.library.advice",
    "Recovery": "unstuck.library.recovery",
    "diagnose": "unstuck.diagnosis.rulebook",
    "open_run": "unstuck.app.open_run",
    "read_plan": "unstuck.app.settings",
    "remedy": "unstuck.app.remedy_plan",
    "reopen_run": "unstuck.app.open_run",
    "report": "unstuck.app.remedy_runs",
}
"""Name → the module that it is loaded from on first use: importing the package does no work."""


def __getattr__(name: str) -> Any:
    """Load the library on first use."""
    if name not in HOME:
        raise AttributeError(f"module 'unstuck' has no attribute {name!r}")
    return getattr(import_module(HOME[name]), name)
