"""What the scripted model does when it is asked: one turn for each request, in the order of the script."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Trouble = Literal["rate_limit", "quota", "overloaded", "server_error", "auth", "overflow"]

STATUS: Mapping[Trouble, int] = {
    "rate_limit": 429,
    "quota": 429,
    "overloaded": 529,
    "server_error": 500,
    "auth": 401,
    "overflow": 400,
}

MESSAGES: Mapping[Trouble, str] = {
    "rate_limit": "This request would exceed your rate limit. Please try again later.",
    "quota": "You have reached your usage limit.",
    "overloaded": "Overloaded",
    "server_error": "Internal server error",
    "auth": "invalid x-api-key",
    "overflow": "prompt is too long: 208310 tokens > 200000 maximum",
}


@dataclass(frozen=True, slots=True)
class Say:
    """End the session's turn with a text."""

    text: str


@dataclass(frozen=True, slots=True)
class Run:
    """Call the agent's shell tool, whatever its name is."""

    command: str


@dataclass(frozen=True, slots=True)
class Use:
    """Call another tool of the agent's, by its name; `namespace` is where Codex files those of MCP servers.

    Codex offers them only after a call of its own `tool_search`.
    """

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Stop as models do that will not do it."""

    text: str = "I cannot help with that."


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Answer with an error of the provider's."""

    trouble: Trouble
    lasts: float = 0.0
    """Seconds, from the first request that meets it, in which every request gets the same; 0 is this request only."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """`{reset}` in a value or in the message is the moment at which it ends, in seconds since 1970."""
    message: str = ""
    ends: float = 0.0
    """Set when it is met."""


@dataclass(frozen=True, slots=True)
class Stall:
    """Take the request and say nothing, until the client goes away or the server is closed."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Begin to answer, then reset the connection."""


Turn = Say | Run | Use | Refuse | Fault | Stall | Cut
FOR_EVER = 10.0**6
