"""How a session of an agent ended: its process, and what its own output says of it. Values only; readers make them."""

from dataclasses import dataclass
from typing import Literal

Claim = Literal["done", "failed", "none"]
"""What the agent says of its work. Never believed unverified."""


End = Literal[
    "done_claimed", "failed_claimed", "context_exhausted", "rate_limited", "overloaded", "auth_failed", "billing", "max_turns",
    "budget", "permission_denied", "refused", "tool_hang", "crashed", "killed", "no_work", "unreadable", "network", "bad_request",
    "asks",
]  # fmt: skip
"""Why a session ended, as far as its output tells. Says nothing about whether the work is right."""


Ending = Literal[
    "exited",
    "signalled",
    "first_output",
    "silence",
    "wall_clock",
    "stopped",
    "not_started",
    "supervisor_died",
    "worker_gone",
]
"""How a process ended: by itself, by a signal, by one of our three limits, because the run was stopped,
because it could not be started at all, or together with the supervisor or with the worker that had it."""


ENDED_BY_US: tuple[Ending, ...] = ("stopped", "supervisor_died", "worker_gone")


KILLED_BY_US: tuple[Ending, ...] = ("first_output", "silence", "wall_clock", "stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One thing that the agent did, and how it came out."""

    name: str
    input: str = ""
    exit_code: int | None = None
    """None where the agent does not tell."""
    ok: bool | None = None
    """None: it never returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens, as the agent counts them."""

    input_tokens: int
    output_tokens: int

    def __add__(self, more: "Usage") -> "Usage":
        total = self.output_tokens + more.output_tokens
        return Usage(input_tokens=self.input_tokens + more.input_tokens, output_tokens=total)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a process ended and what it last printed. The whole output is in the log."""

    ending: Ending
    exit_code: int | None = None
    signal: int | None = None
    seconds: float = 0.0
    tail: str = ""
    """The last of both streams, redacted, at most a few kilobytes."""
    output_bytes: int = 0

    @property
    def ok(self) -> bool:
        return self.ending == "exited" and self.exit_code == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one session of an agent ended. Says nothing yet about whether the work is right."""

    ended: Ended
    claim: Claim = "none"
    approach: str = ""
    """One line in the agent's own words: how it went about the task."""
    end: End | Literal[""] = ""
    """Why the session ended, as the agent's own output tells; empty where it is not read."""
    session: str = ""
    """The agent's own name for the session, by which it can be resumed, where it has one."""
    cost_usd: float | None = None
    """What the agent says it cost; None is unknown, not nothing. A resumed session is billed with all that went before."""
    usage: Usage | None = None
    resets_at: float | None = None
    """When a limit ends, in seconds since 1970, where the provider says so."""
    message: str = ""
    """The last thing that the agent said, or the error that ended it."""
    failed: tuple[ToolCall, ...] = ()
    """The last tool calls that failed."""
    lost: bool = False
    """The session that was to be resumed does not exist any more."""
    denied: tuple[str, ...] = ()
    """What the agent wanted to do and was not allowed to."""

    @property
    def claimed(self) -> bool:
        """Whether it ended by itself and says that it is done; a process that hangs after its last word has ended, too."""
        return self.claim == "done" and (self.ended.ok or self.end == "done_claimed")

    @property
    def words(self) -> str:
        """What the agent said last: the end of its output, or its last message where the output is a record of events."""
        return self.message if self.end else self.ended.tail


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An error of a provider, or of the agent with it."""

    end: End
    message: str = ""
    resets_at: float | None = None
    """When it is over, in seconds since 1970, where that is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """Everything that was read from one session's output."""

    end: End
    claim: Claim = "none"
    session: str = ""
    """The agent's own name for the session: it can be resumed by it."""
    message: str = ""
    """The last thing that the agent, or the error that ended it, said."""
    approach: str = ""
    cost_usd: float | None = None
    usage: Usage | None = None
    resets_at: float | None = None
    tools: tuple[ToolCall, ...] = ()
    denied: tuple[str, ...] = ()
    """What it wanted to do and was not allowed to."""
    lost: bool = False
    """The session that was to be resumed does not exist any more."""
