"""The system's time."""

import time


class SystemClock:
    def now(self) -> float:
        return time.time()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)
