"""Describe the end of an agent's session: its process and its output."""

from dataclasses import dataclass
from typing import Literal

Claim = Literal["done", "failed", "none"]
"""The agent's statement about its work. It is never trusted without verification."""


End = Literal[
    "done_claimed", "failed_claimed", "context_exhausted", "rate_limited", "overloaded", "auth_failed", "billing", "max_turns",
    "budget", "permission_denied", "refused", "tool_hang", "crashed", "killed", "no_work", "unreadable", "network", "bad_request",
    "asks",
]  # fmt: skip
"""The reason of a session's end, as its output reports it. It proves nothing about the work."""


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
"""The end of a process: its own exit, a signal, one of the three limits, a stop of the run, a failed start, or the death of
its supervisor or worker."""


ENDED_BY_US: tuple[Ending, ...] = ("stopped", "supervisor_died", "worker_gone")


KILLED_BY_US: tuple[Ending, ...] = ("first_output", "silence", "wall_clock", "stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool call of the agent, with its result."""

    name: str
    input: str = ""
    exit_code: int | None = None
    """None if the agent does not report it."""
    ok: bool | None = None
    """None if the call never returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The token counts that the agent reports."""

    input_tokens: int
    output_tokens: int

    def __add__(self, more: "Usage") -> "Usage":
        total = self.output_tokens + more.output_tokens
        return Usage(input_tokens=self.input_tokens + more.input_tokens, output_tokens=total)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a process and its last output. The whole output is in the log."""

    ending: Ending
    exit_code: int | None = None
    signal: int | None = None
    seconds: float = 0.0
    tail: str = ""
    """The end of both streams, redacted, at most a few kilobytes."""
    output_bytes: int = 0

    @property
    def ok(self) -> bool:
        return self.ending == "exited" and self.exit_code == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of one session of an agent. It proves nothing about the work."""

    ended: Ended
    claim: Claim = "none"
    approach: str = ""
    """One line in the agent's own words about its approach."""
    end: End | Literal[""] = ""
    """The reason of the end in the agent's output. Empty if the output is not parsed."""
    session: str = ""
    """The agent's name of the session, which can resume it."""
    cost_usd: float | None = None
    """The reported cost, or None if unknown. A resumed session includes its earlier cost."""
    usage: Usage | None = None
    resets_at: float | None = None
    """The end of a limit in seconds since 1970, if the provider states it."""
    message: str = ""
    """The agent's last message, or the error that ended the session."""
    failed: tuple[ToolCall, ...] = ()
    """The last tool calls that failed."""
    lost: bool = False
    """The session to resume no longer exists."""
    denied: tuple[str, ...] = ()
    """The actions that the agent was not permitted to do."""

    @property
    def claimed(self) -> bool:
        """Return whether the agent says that it is done, and its session ended without an error.

        A process that hangs after its last message counts as ended.
        """
        return self.claim == "done" and (self.ended.ok or self.end == "done_claimed")

    @property
    def words(self) -> str:
        """Return the agent's last message, or the end of an output that is plain text."""
        return self.message if self.end else self.ended.tail


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An error of a provider, or of the agent's connection to it."""

    end: End
    message: str = ""
    resets_at: float | None = None
    """The end of the fault in seconds since 1970, if the provider states it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """The parsed output of one session."""

    end: End
    claim: Claim = "none"
    session: str = ""
    """The agent's name of the session, which can resume it."""
    message: str = ""
    """The agent's last message, or the error that ended the session."""
    approach: str = ""
    cost_usd: float | None = None
    usage: Usage | None = None
    resets_at: float | None = None
    tools: tuple[ToolCall, ...] = ()
    denied: tuple[str, ...] = ()
    """The actions that the agent was not permitted to do."""
    lost: bool = False
    """The session to resume no longer exists."""
