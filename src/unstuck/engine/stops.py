"""Stop signals of a run and of single tasks."""

import time
from collections import deque

from unstuck.process.command import Stop


class Interrupted(Exception):
    """The run was stopped in the middle of a stage; the stage is done again on resume."""


class Stopper:
    """Whether running work must end, and by when. Set from signal handlers, requests and limits."""

    def __init__(self, drain: float) -> None:
        self.drain = drain
        self._deadline: float | None = None
        self.reason = ""
        self.exit_code = 0

    def ask(self, reason: str, exit_code: int) -> None:
        """Start nothing new; give what runs the drain time. Asked again: end it at once."""
        now = time.monotonic()
        if self._deadline is None:
            self._deadline, self.reason, self.exit_code = now + self.drain, reason, exit_code
        else:
            self._deadline = now

    def at_once(self, reason: str, exit_code: int) -> None:
        self.ask(reason, exit_code)
        self._deadline = time.monotonic()

    def deadline(self) -> float | None:
        return self._deadline


class OneTask:
    """What reaches one running task from outside: the run's stop, a stop of its own, and messages to its session."""

    def __init__(self, run: Stop) -> None:
        self._run = run
        self.ended = False
        self.listening = False
        """Whether the session that runs takes messages."""
        self._hints: deque[str] = deque()

    def tell(self, hint: str) -> None:
        """Leave a message for the session that runs."""
        self._hints.append(hint)

    def hints(self) -> tuple[str, ...]:
        """Take all messages that were left."""
        return tuple(self._hints.popleft() for _ in range(len(self._hints)))

    def deadline(self) -> float | None:
        return 0.0 if self.ended else self._run.deadline()
