"""Objects that the task threads of one run share."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from unstuck.model.failure import Failure

POLL_SECONDS = 0.25


class LandingLock:
    """A lock that goes to the waiting task that comes first in the plan.

    A task holds it while its merged tree is verified, so that the tip does not move meanwhile.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._holder: str | None = None
        self._waiting: dict[str, int] = {}

    def acquire(self, task: str, place: int, *, is_given_up: Callable[[], bool]) -> bool:
        """Wait for the lock. Return False if `is_given_up` is true first. Acquiring it twice is harmless."""
        with self._changed:
            self._waiting[task] = place
            try:
                while self._holder != task:
                    first = min(self._waiting, key=self._waiting.__getitem__)
                    if self._holder is None and first == task:
                        self._holder = task
                        break
                    if is_given_up():
                        return False
                    self._changed.wait(POLL_SECONDS)
                return True
            finally:
                del self._waiting[task]
                self._changed.notify_all()

    def release(self, task: str) -> None:
        """Free the lock for the next task. Harmless for a task that does not hold it."""
        with self._changed:
            if self._holder == task:
                self._holder = None
                self._changed.notify_all()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """The meaning of a session without any work: a broken agent, one that is reported already, or nothing."""

    failure: Failure | None = None
    reported_elsewhere: bool = False


@dataclass(slots=True)
class AgentHealth:
    """Which agents of one run are broken. One task at a time probes an agent, and the others use its result."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _broken: dict[str, str] = field(default_factory=dict)
    """Agent → the task whose probe showed that it is broken."""
    _working: set[tuple[str, str]] = field(default_factory=set)

    def check(
        self, task: str, agent: str, still_holds: Callable[[str], bool], probe: Callable[[], Failure | None]
    ) -> ProbeResult:
        """Probe the agent, unless another task's result still holds."""
        with self._lock:
            reporter = self._broken.get(agent)
            if reporter is not None and reporter != task and still_holds(reporter):
                return ProbeResult(reported_elsewhere=True)
            if (agent, task) in self._working:
                return ProbeResult()
            failure = probe()
            if failure is None:
                self._working.add((agent, task))
            else:
                self._broken[agent] = task
            return ProbeResult(failure=failure)
