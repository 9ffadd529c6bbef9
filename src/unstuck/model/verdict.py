"""One command that must hold, what its run said, and what all checks and the audit make of one tree."""

from dataclasses import dataclass
from typing import Literal

from unstuck.model.outcome import Ended

CheckKind = Literal["verify", "test", "lint", "types", "format", "build"]


Status = Literal["pass", "fail", "inconclusive"]


Severity = Literal["reject", "ask", "warn"]
"""What a remark about a change means: it may not land, a person is asked, or it is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One command that must hold. It is the user's code: it runs as written, with `bash -c`."""

    command: str
    kind: CheckKind = "verify"
    timeout: float = 900.0
    found: bool = False
    """Nobody asked for it: it fits the files that are there. One that cannot run says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many tests a runner says it ran."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0


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
