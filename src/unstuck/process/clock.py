"""The clock of a run."""

import time
from typing import Protocol

from unstuck.process.caller import now


class Clock(Protocol):
    """Time, so that tests need none."""

    def now(self) -> float:
        """Return seconds since 1970, UTC."""

    def wait(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> float:
        return now()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)
