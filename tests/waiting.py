"""Waiting for other processes and threads."""

import time
from collections.abc import Callable

TIMEOUT_SECONDS = 100.0
"""Longer than anything in the tests takes on any machine."""


def wait_until(condition: Callable[[], object], description: str = "it", *, pause: float = 0.02) -> None:
    """Call the condition again and again until it is true."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited in vain for {description}")
        time.sleep(pause)
