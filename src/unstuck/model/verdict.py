"""Describe the checks of one tree: the commands, the results of their runs, and the verdict on all of them."""

from dataclasses import dataclass, field
from typing import Literal

from unstuck.model.outcome import Ended

CheckKind = Literal["verify", "test", "lint", "types", "format", "build"]


Status = Literal["pass", "fail", "inconclusive"]


Severity = Literal["reject", "ask", "warn"]
"""The effect of a remark: the change may not land, a person is asked, or the remark is only shown."""

OMIT_WHEN_EMPTY = {"exclude_if": lambda value: not value}
"""Metadata of a field that is missing in the stored JSON while it is empty: older journals do not have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One command that must pass. It is the user's code: it runs as written, with `bash -c`."""

    __pydantic_config__ = {"populate_by_name": True}  # noqa: RUF012  # read by pydantic, never changed

    command: str
    kind: CheckKind = "verify"
    timeout: float = 900.0
    detected: bool = field(default=False, metadata={"alias": "found"})
    """The files of the project suggest it, but no setting names it. If it cannot run, it is ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The numbers of tests that a runner reports."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckEvidence:
    """The decisive lines of a failing check: one test, its place, and the values that differ."""

    test: str = ""
    location: str = ""
    """File and line, as `tests/test_cart.py:12`."""
    expected: str = ""
    got: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of one check. The JSON names of three fields are older than their names here."""

    __pydantic_config__ = {"populate_by_name": True}  # noqa: RUF012  # read by pydantic, never changed

    command: str
    kind: CheckKind
    ended: Ended
    """The end of its last run."""
    runs: int = 1
    flaky: bool = False
    """It passed after a failure, or never failed in the same tests twice, on the same tree."""
    repaired: tuple[str, ...] = ()
    """Files of the tree that the check changed. Its result does not describe the tree that would land."""
    excused_because: str = field(default="", metadata={"alias": "although"})
    """The reason why this failure does not block landing: the base fails too, or the task asks for the failure."""
    not_meaningful_because: str = field(default="", metadata={"alias": "idle"})
    """The reason why the result says nothing about the work."""
    external_service_down: bool = field(default=False, metadata={"alias": "outside"})
    """The only cause of the failure is a server that does not answer."""
    tests: tuple[str, ...] = ()
    """The failing tests that the runner names. Of several runs, those that always failed."""
    counts: Counts | None = None
    cached: bool = False
    """The check passed on this tree before, with the same tools, and was not run again."""
    log: str = ""
    """The path of the file with its whole output."""
    evidence: CheckEvidence | None = field(default=None, metadata=OMIT_WHEN_EMPTY)

    @property
    def status(self) -> Status:
        if self.not_meaningful_because:
            return "inconclusive"
        passed = self.ended.ok and not self.repaired
        return "pass" if passed or self.excused_because else "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One finding in a change. The configuration decides its severity."""

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
    """The result of all checks of one tree. Only this tree may land."""

    status: Status
    tree: str
    base: str
    """The commit that the tree was made from, and on which it would land."""
    results: tuple[CheckResult, ...] = ()
    remarks: tuple[Remark, ...] = ()
    turned_green: bool = False
    """A check of the task fails on the base and passes now, which proves work without any claim."""
    unchanged: bool = False
    """No file was changed and the task's own checks pass. It may be done already, so no other task waits for it."""
    reason: str = ""
    """The reason for an inconclusive verdict."""
    files: tuple[str, ...] = ()
    """The files in which the tree differs from its base, the first few."""
    patch: tuple[str, ...] = ()
    """Digests of the attempt's own changes, for comparing attempts."""
    evidence: CheckEvidence | None = field(default=None, metadata=OMIT_WHEN_EMPTY)
    """The decisive lines of the check that the verdict rests on."""
