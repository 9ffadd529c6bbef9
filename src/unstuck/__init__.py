"""A recovery supervisor for autonomous coding agents: a plan goes in, verified commits come out."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unstuck.compose import open_run, read_plan, remedy, reopen_run, report
    from unstuck.diagnosis import diagnose

__version__ = "0.1.0"
__all__ = ["__version__", "diagnose", "open_run", "read_plan", "remedy", "reopen_run", "report"]


def __getattr__(name: str) -> Any:
    """Load the library on first use: importing the package does no work."""
    if name == "diagnose":
        from unstuck.diagnosis import diagnose  # noqa: PLC0415  # on first use, and without the rest

        return diagnose
    if name == "remedy":
        from unstuck.compose import remedy  # noqa: PLC0415  # as above

        return remedy
    if name in __all__:
        from unstuck import compose  # noqa: PLC0415  # on first use

        return getattr(compose, name)
    raise AttributeError(f"module 'unstuck' has no attribute {name!r}")
