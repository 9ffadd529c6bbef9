"""Results of probes that show whether an agent works at all."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from unstuck.model.failure import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a lifeless session turned out to mean: the agent's fault, one that another task met first, or nothing."""

    failure: Failure | None = None
    elsewhere: bool = False


@dataclass(slots=True)
class Probes:
    """What was found out about the agents of one run; one task at a time finds out, and the others learn from it."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _broken: dict[str, str] = field(default_factory=dict)
    """Who found out that an agent is broken."""
    _sound: set[tuple[str, str]] = field(default_factory=set)

    def found(self, task: str, agent: str, stands: Callable[[str], bool], look: Callable[[], Failure | None]) -> Found:
        """Look whether the agent is broken, unless that is known. `stands`: what that task found out still holds."""
        with self._lock:
            finder = self._broken.get(agent)
            if finder is not None and finder != task and stands(finder):
                return Found(elsewhere=True)
            if (agent, task) in self._sound:
                return Found()
            failure = look()
            if failure is None:
                self._sound.add((agent, task))
            else:
                self._broken[agent] = task
            return Found(failure=failure)
