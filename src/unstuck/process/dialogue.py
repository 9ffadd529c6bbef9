"""Talk to a process while it runs: its stdin stays open until it has said its last word."""

import os
from contextlib import ExitStack, suppress

from unstuck.ports import Dialogue

PAUSE = 0.25


class Conversation:
    """The open stdin of one process, or none. What it does not read blocks nobody."""

    def __init__(self, dialogue: Dialogue | None, first: bytes, theirs: ExitStack, ours: ExitStack) -> None:
        self._dialogue = dialogue
        self._mouth = self.stdin = -1
        self._unsaid, self._heard = first, b""
        if dialogue is not None:
            self.stdin, self._mouth = os.pipe()
            theirs.callback(os.close, self.stdin)
            ours.callback(self.close)
            os.set_blocking(self._mouth, False)

    def hear(self, chunk: bytes) -> None:
        """Take in what the process printed; after its last word nothing more is said to it."""
        if self._dialogue is None:
            return
        heard = self._heard + chunk.replace(b" ", b"")  # JSON may be spaced
        if self._dialogue.last_word in heard:
            self.close()
        self._heard = heard[-len(self._dialogue.last_word) :]

    def speak(self) -> None:
        """Say what there is to say, as far as the pipe takes it."""
        if self._dialogue is None or self._mouth < 0:
            return
        self._unsaid += b"".join(self._dialogue.phrase(text) for text in self._dialogue.inbox())
        try:
            self._unsaid = self._unsaid[os.write(self._mouth, self._unsaid) :] if self._unsaid else b""
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.close()

    def patience(self, seconds: float) -> float:
        """Return how long to wait for the process's words before looking for something to say to it."""
        return min(seconds, PAUSE) if self._mouth >= 0 else seconds

    def close(self) -> None:
        if self._mouth >= 0:
            with suppress(OSError):
                os.close(self._mouth)
            self._mouth = -1
