"""Wait for what other processes and threads bring about; only where it never comes does a test run out of patience."""

import time
from collections.abc import Callable

PATIENCE = 100.0
"""Seconds that nothing here should ever take, on any machine."""


def wait_until(true: Callable[[], object], what: str = "it", *, pause: float = 0.02) -> None:
    """Look again and again until it is true."""
    given_up = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > given_up:
            raise TimeoutError(f"waited in vain for {what}")
        time.sleep(pause)
