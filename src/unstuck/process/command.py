"""A child process to run, as a value, and the protocols of running it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from unstuck.model.config import TimeLimits
from unstuck.model.outcome import Ended


class Stop(Protocol):
    """A request to end running work."""

    def deadline(self) -> float | None:
        """Return the `time.monotonic()` at which running processes are ended, or None without a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """Messages to a running process. Its stdin stays open until the process prints the end mark."""

    end_mark: bytes
    encode: Callable[[str], bytes]
    """Turns a text into a message as the process reads it."""
    inbox: Callable[[], Sequence[str]] = tuple
    """Returns the texts to send now. It is called again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A process to run: arguments, never a shell line."""

    argv: tuple[str, ...]
    cwd: Path
    log: Path
    """Both streams are appended here, redacted and with a limited size."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the supervisor's own environment."""
    stdin: bytes = b""
    dialogue: Dialogue | None = None
    limits: TimeLimits = field(default_factory=TimeLimits)
    gist: Callable[[str], str] = str
    """Returns the part of a printed line that is worth showing to the user. May be empty."""
    quiet: bool = False
    """It prints nothing until it is done, so only the wall clock limits it."""
    transcript: Path | None = None
    """A second log of stdout alone, redacted and limited. Stderr goes to the same name with `.err`."""
    lasting: bool = False
    """Processes that it leaves running stay until `Processes.end_lasting`, or until the supervisor dies."""
    writes: tuple[str, ...] = ()
    """Paths below the home directory, or `$VARIABLE`s, that it must be able to write in a sandbox."""


Purpose = Literal["session", "check", "setup"]


class Processes(Protocol):
    """Runs commands. Except for lasting commands, no process of theirs is left when `run` returns."""

    def run(self, command: Command, *, stop: Stop, seen: Callable[[str], None] | None = None) -> Ended:
        """Run a command to its end. `seen` receives the last printed line a few times a second."""

    def prepare_command(self, env: Mapping[str, str]) -> None:
        """Prepare for a command of the run and task in these variables that will start soon."""

    def end_lasting(self) -> None:
        """End the processes that lasting commands left running."""

    def end_leftovers(self, marker: str, but: str = "") -> int:
        """End each process with `marker` (``NAME=value``) and without `but` in its environment. Return their number."""

    def unrelated_processes(self, folder: Path, since: float) -> tuple[str, ...]:
        """Return a sentence about each process that works in the folder, began since then and is not a descendant."""
