"""A child process to run, as a value, and the protocol that runs it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from unstuck.model.config import TimeLimits
from unstuck.model.outcome import Ended


class Stop(Protocol):
    """Whether, and by when, running work must end."""

    def deadline(self) -> float | None:
        """Return the `time.monotonic()` at which running processes are ended; None while nobody asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """How to talk to a process while it runs: its stdin stays open until it has printed its last word."""

    last_word: bytes
    phrase: Callable[[str], bytes]
    """Make a message of a text, as the process reads it."""
    inbox: Callable[[], Sequence[str]] = tuple
    """Asked again and again for what is to be said now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A process to run: arguments, never a shell line."""

    argv: tuple[str, ...]
    cwd: Path
    log: Path
    """Both streams are appended here, redacted, bounded."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Set on top of the supervisor's own environment."""
    stdin: bytes = b""
    dialogue: Dialogue | None = None
    limits: TimeLimits = field(default_factory=TimeLimits)
    gist: Callable[[str], str] = str
    """Say what of a printed line is worth showing to a person; empty for nothing."""
    quiet: bool = False
    """It prints nothing until it is done: only the wall clock limits it."""
    transcript: Path | None = None
    """Where stdout is kept apart as well; stderr goes beside it, to the same name with `.err`. Redacted, bounded."""
    lasting: bool = False
    """What it leaves running stays until `Processes.end_lasting`, or until the supervisor dies."""
    writes: tuple[str, ...] = ()
    """What it must be able to write in a sandbox, besides its folder: below the home directory, or `$VARIABLE`."""


Purpose = Literal["session", "check", "setup"]


class Processes(Protocol):
    """Runs commands so that nothing of them is left when `run` returns, however they end; but see `lasting`."""

    def run(self, command: Command, *, stop: Stop, seen: Callable[[str], None] | None = None) -> Ended:
        """Run to the end. `seen` is told the last line printed, a few times a second at most."""

    def expect(self, env: Mapping[str, str]) -> None:
        """Get ready for a command with these of our variables, which will come soon."""

    def end_lasting(self) -> None:
        """End what lasting commands left running."""

    def end_leftovers(self, marker: str, but: str = "") -> int:
        """End every process whose environment holds `marker` (``NAME=value``) and not `but`; return how many there were."""

    def unrelated_processes(self, folder: Path, since: float) -> tuple[str, ...]:
        """Say which processes work in the folder since then that are none of ours, as sentences."""
