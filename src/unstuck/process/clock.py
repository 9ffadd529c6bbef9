"""The clock of a run."""

import time
from functools import cache
from typing import Protocol


class Clock(Protocol):
    """The time, so that tests can replace it."""

    def now(self) -> float:
        """Return seconds since 1970, UTC."""

    def wait(self, seconds: float) -> None: ...


STEADY_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> float:
    """Return seconds since 1970 by a clock that no one can set back while this process runs."""
    return _system_start() + time.clock_gettime(STEADY_CLOCK)


@cache
def _system_start() -> float:
    return time.time() - time.clock_gettime(STEADY_CLOCK)


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        return now()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)
