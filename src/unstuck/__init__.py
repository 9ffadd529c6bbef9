"""A recovery supervisor for autonomous coding agents: a plan goes in, verified commits come out."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unstuck.compose import open_run, read_plan, remedy, reopen_run
    from unstuck.diagnosis import diagnose
    from unstuck.library import Advice, Attempt, Recovery

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
]

HOME = {
    "Advice": "unstuck.library",
    "Attempt": "unstuck.library",
    "Recovery": "unstuck.library",
    "diagnose": "unstuck.diagnosis",
    "open_run": "unstuck.compose",
    "read_plan": "unstuck.compose",
    "remedy": "unstuck.compose",
    "reopen_run": "unstuck.compose",
}
"""Name → the module that it is loaded from on first use: importing the package does no work."""


def __getattr__(name: str) -> Any:
    """Load the library on first use."""
    if name not in HOME:
        raise AttributeError(f"module 'unstuck' has no attribute {name!r}")
    return getattr(import_module(HOME[name]), name)
