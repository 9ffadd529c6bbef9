"""One try at a task: what we started, how it ended, what the agent says and what the checks say."""

from dataclasses import dataclass
from typing import Literal

from unstuck.agents import Claim, End, ToolCall, Usage
from unstuck.plans import CheckKind

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

Status = Literal["pass", "fail", "inconclusive"]
Severity = Literal["reject", "ask", "warn"]
"""What a remark about a change means: it may not land, a person is asked, or it is told."""


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
class Counts:
    """How many tests a runner says it ran."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The files in which two trees differ."""

    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    plus: int = 0
    minus: int = 0
    """Lines that came and that went, of files that have lines."""

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.created, *self.modified, *self.deleted)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One check, run by us, with what it said."""

    command: str
    kind: CheckKind
    ended: Ended
    """The last of its runs."""
    runs: int = 1
    flaky: bool = False
    """It failed and then passed, or never failed in the same tests twice, on the very same tree."""
    repaired: tuple[str, ...] = ()
    """Files of the tree that it changed: what it says is not about the tree that would land."""
    although: str = ""
    """Why it holds though it is red: it was red on the base as well, or this task is meant to make it so."""
    idle: str = ""
    """Why it says nothing about the work."""
    outside: bool = False
    """All that is red is a server that does not answer, and that no work brings."""
    tests: tuple[str, ...] = ()
    """The failing tests, as far as their runner names them; of several runs, those that always failed."""
    counts: Counts | None = None
    cached: bool = False
    """It passed on this very tree before, with the same tools: it was not run again."""
    log: str = ""
    """Where all of its output is."""

    @property
    def status(self) -> Status:
        if self.idle:
            return "inconclusive"
        held = self.ended.ok and not self.repaired
        return "pass" if held or self.although else "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Something found in the change itself, weighed by the policy."""

    rule: str
    severity: Severity
    path: str
    line: int
    says: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}: " if self.path else ""
        return f"{place}{self.says}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the checks and the audit say about one exact tree. Only this tree may land."""

    status: Status
    tree: str
    base: str
    """The commit that the tree was made from, and on which it would land."""
    results: tuple[CheckResult, ...] = ()
    remarks: tuple[Remark, ...] = ()
    turned_green: bool = False
    """A check of the task that is red on the base is green now: proof of work without any claim."""
    unchanged: bool = False
    """Nothing was changed, and the task's own checks hold: it may be done already, so nobody has to wait for it."""
    reason: str = ""
    """Why the verdict is inconclusive."""
    files: tuple[str, ...] = ()
    """The files in which the tree differs from its base, the first few."""
    patch: tuple[str, ...] = ()
    """Marks of what this attempt changed in the tree that it began with, for comparing it with others."""
