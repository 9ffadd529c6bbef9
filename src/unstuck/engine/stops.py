"""Stop signals of a run and of single tasks."""

import time
from collections import deque

from unstuck.process.command import Stop


class RunStop:
    """The stop signal of a run: set by signal handlers, requests and limits."""

    def __init__(self, drain_seconds: float) -> None:
        self.drain_seconds = drain_seconds
        self._deadline: float | None = None
        self.reason = ""
        self.exit_code = 0

    def request(self, reason: str, exit_code: int) -> None:
        """Start nothing new and give running work the drain time. A second request ends it at once."""
        now = time.monotonic()
        if self._deadline is None:
            self._deadline, self.reason, self.exit_code = now + self.drain_seconds, reason, exit_code
        else:
            self._deadline = now

    def end_at_once(self, reason: str, exit_code: int) -> None:
        """End running work now."""
        self.request(reason, exit_code)
        self._deadline = time.monotonic()

    def deadline(self) -> float | None:
        """Return the `time.monotonic()` at which running work ends, or None while it goes on."""
        return self._deadline


class TaskStop:
    """The stop signal of one running task, with the messages for its session."""

    def __init__(self, run_stop: Stop) -> None:
        self._run_stop = run_stop
        self.ended = False
        self.takes_messages = False
        """The running session reads messages."""
        self._messages: deque[str] = deque()

    def send(self, message: str) -> None:
        """Leave a message for the running session."""
        self._messages.append(message)

    def take_messages(self) -> tuple[str, ...]:
        """Return all messages that were left, and forget them."""
        return tuple(self._messages.popleft() for _ in range(len(self._messages)))

    def deadline(self) -> float | None:
        """Return the `time.monotonic()` at which the task ends, or None while it goes on."""
        return 0.0 if self.ended else self._run_stop.deadline()
