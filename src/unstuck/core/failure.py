"""What went wrong: one table of kinds, and one judged failure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Blame = Literal["agent", "plan", "check", "environment", "provider", "supervisor"]


class Kind(StrEnum):
    """Why an attempt did not land. Judged from evidence, never from history."""

    CHECK_FAILED = "check_failed"
    TEST_FAILED = "test_failed"
    LINT_FAILED = "lint_failed"
    TYPES_FAILED = "types_failed"
    FORMAT_FAILED = "format_failed"
    BUILD_BROKEN = "build_broken"
    CHECK_TIMEOUT = "check_timeout"
    AGENT_CRASHED = "agent_crashed"
    AGENT_FAILED = "agent_failed"
    AGENT_MISSING = "agent_missing"
    HANG = "hang"
    TIMEOUT = "timeout"
    KILLED = "killed"
    NO_CLAIM = "no_claim"
    UNVERIFIED = "unverified"
    MERGE_CONFLICT = "merge_conflict"
    SETUP_FAILED = "setup_failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Facts:
    """What holds for every failure of a kind."""

    blame: Blame
    means: str

    @property
    def charged(self) -> bool:
        """Whether it uses up one of the agent's attempts: only the agent's own failures do."""
        return self.blame == "agent"


KINDS: Mapping[Kind, Facts] = {
    Kind.CHECK_FAILED: Facts("agent", "a check of the task fails"),
    Kind.TEST_FAILED: Facts("agent", "the tests fail"),
    Kind.LINT_FAILED: Facts("agent", "the linter complains"),
    Kind.TYPES_FAILED: Facts("agent", "the type checker complains"),
    Kind.FORMAT_FAILED: Facts("agent", "the formatter would change files"),
    Kind.BUILD_BROKEN: Facts("agent", "the build is broken"),
    Kind.CHECK_TIMEOUT: Facts("agent", "a check did not end within its time limit"),
    Kind.AGENT_CRASHED: Facts("agent", "the agent ended with an error and the checks fail"),
    Kind.AGENT_FAILED: Facts("agent", "the agent says that it failed, and the checks agree"),
    Kind.AGENT_MISSING: Facts("environment", "the agent could not be started"),
    Kind.HANG: Facts("agent", "the agent printed nothing for too long"),
    Kind.TIMEOUT: Facts("agent", "the agent took longer than its time limit"),
    Kind.KILLED: Facts("environment", "somebody killed the agent"),
    Kind.NO_CLAIM: Facts("agent", "the checks pass, but they passed before, and the agent did not say that it is done"),
    Kind.UNVERIFIED: Facts("plan", "no check could say whether the work is right"),
    Kind.MERGE_CONFLICT: Facts("supervisor", "another task landed first and changed the same lines"),
    Kind.SETUP_FAILED: Facts("environment", "a set-up command of the worktree fails"),
    Kind.INTERRUPTED: Facts("supervisor", "the run was stopped, or the supervisor died, in the middle of it"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Judged evidence about one attempt."""

    kind: Kind
    summary: str
    """One line, shown to people and put into the next brief."""
    detail: str = ""
    """The end of the decisive output, redacted and bounded."""

    @property
    def blame(self) -> Blame:
        return KINDS[self.kind].blame

    @property
    def charged(self) -> bool:
        return KINDS[self.kind].charged
