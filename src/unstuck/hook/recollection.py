"""What is remembered of one session of an agent: values, bounded so that the ten thousandth call costs what the tenth did."""

import zlib
from typing import Any, NamedTuple, TypedDict

CALLS, FAILURES, FILES, STATES, TOLD, OPEN = 12, 8, 20, 8, 50, 10
"""How many of each are remembered: enough for every streak that is looked for, and never more."""


class Failed(NamedTuple):
    """A call that failed."""

    kind: str
    message: str
    """Its decisive line: what names the failure is worked out when there are several to compare."""
    tests: list[str]
    failing: int
    """How many tests fail; -1 is unknown."""
    what: str
    """The call, in a line."""


class Proposed(TypedDict):
    """Ways out that the agent was told, to see whether they work."""

    chain: str
    context: str
    tool: str
    """The program or tool that was called, for which experience counts."""
    ways: list[list[Any]]
    """Each with its name, and its steps as command lines."""
    left: int
    """How many calls more they are waited for."""


class Memory:
    """One session; its lists are cut when it is saved."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.head: str = content.get("head", "")
        """The commit that the session began with."""
        self.prompt: str = content.get("prompt", "")
        self.edited: bool = content.get("edited", False)
        self.refused: int = content.get("refused", 0)
        """Stops that were refused since the person last said something."""
        self.nudged: str = content.get("nudged", "")
        """The streak that the agent was warned of."""
        self.calls: list[list[Any]] = content.get("calls", [])
        """Tool, digest of its arguments, digest of its result, whether it failed."""
        self.failures: list[Failed] = [Failed(*row) for row in content.get("failures", [])]
        self.states: dict[str, list[list[str]]] = content.get("states", {})
        """File → the states before and after each edit."""
        self.told: list[str] = content.get("told", [])
        """Signatures of failures about which the agent was told something."""
        self.red: dict[str, str] = content.get("red", {})
        """Check → how it failed when it ran last."""
        self.proposed: Proposed | None = content.get("proposed")

    def as_json(self) -> dict[str, Any]:
        return {
            "head": self.head,
            "prompt": self.prompt,
            "edited": self.edited,
            "refused": self.refused,
            "nudged": self.nudged,
            "calls": self.calls[-CALLS:],
            "failures": self.failures[-FAILURES:],
            "states": {path: states[-STATES:] for path, states in list(self.states.items())[-FILES:]},
            "told": self.told[-TOLD:],
            "red": dict(list(self.red.items())[-OPEN:]),
            "proposed": self.proposed,
        }


def digest(text: str) -> str:
    """Return a short name of a text, to compare it with the few before it."""
    raw = text.encode(errors="replace")
    return f"{zlib.crc32(raw):08x}{len(raw):x}"
