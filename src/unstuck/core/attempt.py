"""One try at a task: what we started, how it ended, what the agent says and what the checks say."""

from dataclasses import dataclass
from typing import Literal

from unstuck.core.plan import CheckKind

Claim = Literal["done", "failed", "none"]
"""What the agent says of its work. Never believed unverified."""

Ending = Literal[
    "exited", "signalled", "first_output", "silence", "wall_clock", "stopped", "not_started", "supervisor_died"
]
"""How a process ended: by itself, by a signal, by one of our three limits, because the run was stopped,
because it could not be started at all, or together with the supervisor."""

KILLED_BY_US: tuple[Ending, ...] = ("first_output", "silence", "wall_clock", "stopped")

Status = Literal["pass", "fail", "inconclusive"]


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
    session: str = ""
    """The agent's own name for the session, where it has one."""
    cost_usd: float | None = None
    """What the agent says it cost; None is unknown, not nothing. A resumed session is billed with all that went before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One check, run by us."""

    command: str
    kind: CheckKind
    ended: Ended

    @property
    def status(self) -> Status:
        return "pass" if self.ended.ok else "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the checks say about one exact tree. Only this tree may land."""

    status: Status
    tree: str
    base: str
    """The commit that the tree was made from, and on which it would land."""
    results: tuple[CheckResult, ...] = ()
    turned_green: bool = False
    """A check of the task that is red on the base is green now: proof of work without any claim."""
    reason: str = ""
    """Why the verdict is inconclusive."""
