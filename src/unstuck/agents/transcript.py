"""What a session's own output says of it: how it ended, what it did, what it cost. Values only; readers make them."""

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
