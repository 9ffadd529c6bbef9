"""Edge: the supervisors that the bench knows, one file each; a file defines `supervisors()`."""

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from benchmarks.supervisor.arena import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a supervisor says at its end."""

    done: frozenset[str]
    questions: frozenset[str] = frozenset()
    """The tasks about which it asks a person."""
    branch: str = "main"
    """Where what it landed stands."""


class Supervisor(Protocol):
    """How to start a supervisor, how to tell it the agent, how to read what it says."""

    @property
    def name(self) -> str: ...

    @property
    def commits(self) -> bool:
        """Tell whether the agent is to commit its work itself."""
        ...

    def missing(self) -> str:
        """Say why it cannot run here, or nothing."""
        ...

    def prepare(self, trial: Trial) -> None:
        """Write what it needs into the repository; what is left uncommitted is committed."""
        ...

    def command(self, trial: Trial) -> list[str]:
        """Return the command line; it is run in the repository."""
        ...

    def told(self, trial: Trial, output: str) -> Told:
        """Read what it says of the tasks."""
        ...


def known() -> dict[str, Supervisor]:
    """Return all supervisors by name, in the order of their files' names."""
    found: list[Supervisor] = []
    for module in pkgutil.iter_modules(__path__):
        offered: Iterable[Supervisor] = importlib.import_module(f"{__name__}.{module.name}").supervisors()
        found.extend(offered)
    return {supervisor.name: supervisor for supervisor in found}
