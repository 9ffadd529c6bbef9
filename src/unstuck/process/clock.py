"""Edge: Time as it passes for one process: a clock that is set while it works changes nothing, and sleep counts."""

import time
from functools import cache

STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> float:
    """Return seconds since 1970: those at this process's start, and what has passed since then."""
    return _began() + time.clock_gettime(STEADY)


@cache
def _began() -> float:
    return time.time() - time.clock_gettime(STEADY)


class SystemClock:
    def now(self) -> float:
        return now()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)
