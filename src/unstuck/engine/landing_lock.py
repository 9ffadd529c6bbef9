"""A lock that lets one task land at a time."""

import threading
from collections.abc import Callable

SLICE_SECONDS = 0.25


class Turn:
    """The right to land. A task keeps it while its merged tree is verified, so that the tip stands still meanwhile."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._holder: str | None = None
        self._waiting: dict[str, int] = {}

    def take(self, name: str, place: int, *, given_up: Callable[[], bool]) -> bool:
        """Wait for the turn; False if `given_up` says so first. Taking it twice is harmless."""
        with self._changed:
            self._waiting[name] = place
            try:
                while self._holder != name:
                    first = min(self._waiting, key=self._waiting.__getitem__)
                    if self._holder is None and first == name:
                        self._holder = name
                        break
                    if given_up():
                        return False
                    self._changed.wait(SLICE_SECONDS)
                return True
            finally:
                del self._waiting[name]
                self._changed.notify_all()

    def give(self, name: str) -> None:
        """Let the next one land; harmless for a task that has not the turn."""
        with self._changed:
            if self._holder == name:
                self._holder = None
                self._changed.notify_all()
