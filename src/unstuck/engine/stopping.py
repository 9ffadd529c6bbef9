"""Asking a run to stop: first politely, with time to finish, then at once."""

import time


class Stopper:
    """Whether running work must end, and by when. Set from signal handlers, requests and limits."""

    def __init__(self, drain: float) -> None:
        self._drain = drain
        self._deadline: float | None = None
        self.reason = ""
        self.exit_code = 0

    def ask(self, reason: str, exit_code: int) -> None:
        """Start nothing new; give what runs the drain time. Asked again: end it at once."""
        now = time.monotonic()
        if self._deadline is None:
            self._deadline, self.reason, self.exit_code = now + self._drain, reason, exit_code
        else:
            self._deadline = now

    def at_once(self, reason: str, exit_code: int) -> None:
        self.ask(reason, exit_code)
        self._deadline = time.monotonic()

    def deadline(self) -> float | None:
        return self._deadline


class OneTask:
    """The run's stop, and one for a single task that a person skipped or reset while it runs."""

    def __init__(self, run: Stopper) -> None:
        self._run = run
        self.ended = False

    def deadline(self) -> float | None:
        return 0.0 if self.ended else self._run.deadline()
