"""What went wrong: one table of kinds, and one judged failure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

from unstuck.model.changes import Touch

Blame = Literal["agent", "plan", "check", "environment", "provider", "supervisor"]
Severity = Literal["recoverable", "user_action_required", "fatal"]
"""forgekeeper: can a tool recover, must a person act, or can nothing go on?"""
Difficulty = Literal["easy", "medium", "hard", "impossible"]
"""forgekeeper's word for how hard a recovery is."""
EASY, HARD = frozenset({"invalid_arguments", "syntax_error"}), frozenset({"disk_full", "environment_missing"})


class Kind(StrEnum):
    """Why something failed. Judged from evidence; only `circular_fix` and `flaky` need a history."""

    # The work was checked and is not right.
    CHECK_FAILED = "check_failed"
    TEST_FAILED = "test_failed"
    TEST_TIMEOUT = "test_timeout"
    LINT_FAILED = "lint_failed"
    TYPES_FAILED = "types_failed"
    FORMAT_FAILED = "format_failed"
    CLAIM_REFUTED = "claim_refuted"
    TAMPERED = "tampered"
    FLAKY = "flaky"
    CIRCULAR_FIX = "circular_fix"
    # It cannot be built or started.
    BUILD_BROKEN = "build_broken"
    SYNTAX_ERROR = "syntax_error"
    MODULE_MISSING = "module_missing"
    IMPORT_CYCLE = "import_cycle"
    DEPENDENCY_MISSING = "dependency_missing"
    DEPENDENCY_CONFLICT = "dependency_conflict"
    PACKAGE_NOT_FOUND = "package_not_found"
    # A command was called wrongly, or its surroundings are not as it needs them.
    COMMAND_NOT_FOUND = "command_not_found"
    TOOL_NOT_FOUND = "tool_not_found"
    COMMAND_SYNTAX = "command_syntax"
    INVALID_ARGUMENTS = "invalid_arguments"
    FILE_NOT_FOUND = "file_not_found"
    PERMISSION_DENIED = "permission_denied"
    ENVIRONMENT_MISSING = "environment_missing"
    DISK_FULL = "disk_full"
    OUT_OF_MEMORY = "out_of_memory"
    PORT_IN_USE = "port_in_use"
    RESOURCE_BUSY = "resource_busy"
    OUTPUT_FLOOD = "output_flood"
    PROGRAM_CRASHED = "program_crashed"
    MALFORMED_INPUT = "malformed_input"
    GIT_REFUSED = "git_refused"
    MERGE_CONFLICT = "merge_conflict"
    SETUP_FAILED = "setup_failed"
    # Somebody on the network did not do their part.
    NETWORK_ERROR = "network_error"
    RATE_LIMITED = "rate_limited"
    QUOTA_EXHAUSTED = "quota_exhausted"
    PROVIDER_OVERLOADED = "provider_overloaded"
    AUTH_FAILED = "auth_failed"
    BILLING = "billing"
    # The agent and its session.
    CONTEXT_EXHAUSTED = "context_exhausted"
    AGENT_CRASHED = "agent_crashed"
    AGENT_FAILED = "agent_failed"
    AGENT_MISSING = "agent_missing"
    QUESTION = "question"
    RESULT_UNREADABLE = "result_unreadable"
    TASK_INCOMPLETE = "task_incomplete"
    NO_CLAIM = "no_claim"
    NO_CHANGE = "no_change"
    # Time and ends.
    CHECK_TIMEOUT = "check_timeout"
    HANG = "hang"
    TIMEOUT = "timeout"
    KILLED = "killed"
    INTERRUPTED = "interrupted"
    # The plan.
    PLAN_INVALID = "plan_invalid"
    CIRCULAR_DEPENDENCY = "circular_dependency"
    UNVERIFIED = "unverified"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Facts:
    """What holds for every failure of a kind, and what the predecessors' three vocabularies call it; None: no word for it."""

    type: str
    """Auto-Claude."""
    category: str | None
    """Forgekeeper: the tool call."""
    phase_type: str | None
    """Autobuild: the phase."""
    blame: Blame
    retryable: bool
    means: str
    severity: Severity = "recoverable"

    @property
    def difficulty(self) -> Difficulty:
        """How hard it is to recover from, by forgekeeper's rule."""
        if self.severity == "fatal":
            return "impossible"
        if self.severity == _PERSON or self.category in HARD:
            return "hard"
        return "easy" if self.category in EASY else "medium"

    @property
    def charged(self) -> bool:
        """Whether it uses up one of the agent's attempts: only its own failures do, and a spent context ends no attempt."""
        return self.blame == "agent" and self.type != SPENT


_RED, _BUILD, _OTHER = "VERIFICATION_FAILED", "BROKEN_BUILD", "UNKNOWN"
_PERSON: Severity = "user_action_required"
_FATAL: Severity = "fatal"
"""Autobuild stops for good: no phase can run, whoever tries."""
_AGAIN, _FINAL = True, False
"""Whether trying again may help."""

SPENT = "CONTEXT_EXHAUSTED"

# fmt: off
KINDS: Mapping[Kind, Facts] = {
    Kind.CHECK_FAILED: Facts(_RED, None, "unknown", "agent", _AGAIN, "a check fails"),
    Kind.TEST_FAILED: Facts(_RED, None, "test_failure", "agent", _AGAIN, "the tests fail"),
    Kind.TEST_TIMEOUT: Facts(_RED, "timeout", "test_failure", "agent", _AGAIN, "a test did not end in time"),
    Kind.LINT_FAILED: Facts(_RED, None, "lint_error", "agent", _AGAIN, "the linter complains"),
    Kind.TYPES_FAILED: Facts(_RED, None, "typecheck_error", "agent", _AGAIN, "the type checker complains"),
    Kind.FORMAT_FAILED: Facts(_RED, None, "format_error", "agent", _AGAIN, "the formatter would change files"),
    Kind.CLAIM_REFUTED: Facts(_RED, None, "verification_mismatch", "agent", _AGAIN, "the agent says that it is done, and the checks fail"),
    Kind.TAMPERED: Facts(_RED, None, "verification_mismatch", "agent", _AGAIN, "the checks themselves were weakened", _PERSON),
    Kind.FLAKY: Facts(_RED, None, "test_failure", "check", _AGAIN, "a check passes and fails on the same tree"),
    Kind.CIRCULAR_FIX: Facts("CIRCULAR_FIX", None, None, "agent", _FINAL, "the same approach was tried again", _PERSON),
    Kind.BUILD_BROKEN: Facts(_BUILD, None, "unknown", "agent", _AGAIN, "the build is broken"),
    Kind.SYNTAX_ERROR: Facts(_BUILD, "syntax_error", "unknown", "agent", _AGAIN, "a source file cannot be parsed"),
    Kind.MODULE_MISSING: Facts(_BUILD, "file_not_found", "unknown", "agent", _AGAIN, "a file of the project is missing"),
    Kind.IMPORT_CYCLE: Facts(_BUILD, None, "circular_dependency", "agent", _AGAIN, "modules import one another"),
    Kind.DEPENDENCY_MISSING: Facts(_BUILD, None, "dependency_missing", "environment", _FINAL, "a package is not installed", _PERSON),
    Kind.DEPENDENCY_CONFLICT: Facts(_BUILD, None, "dependency_missing", "environment", _FINAL, "the required versions exclude one another", _PERSON),
    Kind.PACKAGE_NOT_FOUND: Facts(_OTHER, "unknown", "dependency_missing", "environment", _FINAL, "a package or version does not exist", _PERSON),
    Kind.COMMAND_NOT_FOUND: Facts(_OTHER, "command_not_found", "dependency_missing", "environment", _FINAL, "a command is not installed"),
    Kind.TOOL_NOT_FOUND: Facts(_OTHER, "tool_not_found", None, "agent", _AGAIN, "the agent called a tool it has not"),
    Kind.COMMAND_SYNTAX: Facts(_OTHER, "syntax_error", None, "agent", _AGAIN, "a command line cannot be parsed"),
    Kind.INVALID_ARGUMENTS: Facts(_OTHER, "invalid_arguments", None, "agent", _AGAIN, "a command was called wrongly"),
    Kind.FILE_NOT_FOUND: Facts(_OTHER, "file_not_found", None, "agent", _AGAIN, "a file or address does not exist"),
    Kind.PERMISSION_DENIED: Facts(_OTHER, "permission_denied", None, "environment", _FINAL, "the system refuses access"),
    Kind.ENVIRONMENT_MISSING: Facts(_OTHER, "unknown", "unknown", "environment", _FINAL, "a variable or service is not set up", _PERSON),
    Kind.DISK_FULL: Facts(_OTHER, "disk_full", None, "environment", _FINAL, "the disk is full", _PERSON),
    Kind.OUT_OF_MEMORY: Facts(_OTHER, "unknown", "unknown", "environment", _FINAL, "the memory is used up", _PERSON),
    Kind.PORT_IN_USE: Facts(_OTHER, "unknown", "unknown", "environment", _AGAIN, "another process has the port"),
    Kind.RESOURCE_BUSY: Facts(_OTHER, "unknown", "unknown", "environment", _AGAIN, "another process holds a lock"),
    Kind.OUTPUT_FLOOD: Facts(_OTHER, "unknown", "unknown", "agent", _AGAIN, "the command printed far too much"),
    Kind.PROGRAM_CRASHED: Facts(_OTHER, "unknown", "unknown", "agent", _AGAIN, "a program ended with an error of its own"),
    Kind.MALFORMED_INPUT: Facts(_OTHER, "syntax_error", "parse_error", "agent", _AGAIN, "a file or answer cannot be read"),
    Kind.GIT_REFUSED: Facts(_OTHER, "unknown", "unknown", "agent", _AGAIN, "git refuses the command"),
    Kind.MERGE_CONFLICT: Facts(_OTHER, "unknown", "file_conflict", "supervisor", _FINAL, "another change touches the same lines"),
    Kind.SETUP_FAILED: Facts(_OTHER, "unknown", "dependency_missing", "environment", _FINAL, "a set-up command of the worktree fails", _PERSON),
    Kind.NETWORK_ERROR: Facts(_OTHER, "network_error", None, "environment", _AGAIN, "the network or a server fails"),
    Kind.RATE_LIMITED: Facts(_OTHER, "rate_limited", None, "provider", _AGAIN, "too many requests for now"),
    Kind.QUOTA_EXHAUSTED: Facts(_OTHER, "rate_limited", None, "provider", _FINAL, "the quota of the plan is used up", _PERSON),
    Kind.PROVIDER_OVERLOADED: Facts(_OTHER, "rate_limited", None, "provider", _AGAIN, "the provider is overloaded"),
    Kind.AUTH_FAILED: Facts(_OTHER, "permission_denied", None, "provider", _FINAL, "the credentials are missing or refused", _PERSON),
    Kind.BILLING: Facts(_OTHER, "permission_denied", None, "provider", _FINAL, "the account must be paid", _PERSON),
    Kind.CONTEXT_EXHAUSTED: Facts(SPENT, "unknown", "unknown", "agent", _AGAIN, "the model's context window is full"),
    Kind.AGENT_CRASHED: Facts(_OTHER, "unknown", "task_incomplete", "agent", _AGAIN, "the agent ended with an error and the checks fail"),
    Kind.AGENT_FAILED: Facts(_OTHER, "unknown", "task_incomplete", "agent", _AGAIN, "the agent says that it failed, and the checks agree"),
    Kind.AGENT_MISSING: Facts(_OTHER, "command_not_found", "dependency_missing", "environment", _FINAL, "the agent could not be started"),
    Kind.QUESTION: Facts(_OTHER, "unknown", None, "plan", _FINAL, "the agent asks something and waits for the answer", _PERSON),
    Kind.RESULT_UNREADABLE: Facts(_OTHER, "unknown", "parse_error", "agent", _AGAIN, "the agent's result cannot be read"),
    Kind.TASK_INCOMPLETE: Facts(_OTHER, "unknown", "task_incomplete", "agent", _AGAIN, "the agent stopped before it was done"),
    Kind.NO_CLAIM: Facts(_OTHER, "unknown", "task_incomplete", "agent", _AGAIN, "the checks pass, but they passed before, and the agent did not say that it is done"),
    Kind.NO_CHANGE: Facts(_OTHER, "unknown", "task_incomplete", "agent", _AGAIN, "the agent ended without having done anything"),
    Kind.CHECK_TIMEOUT: Facts(_OTHER, "timeout", "timeout", "agent", _AGAIN, "a check did not end within its time limit"),
    Kind.HANG: Facts(_OTHER, "timeout", "timeout", "agent", _AGAIN, "the agent printed nothing for too long"),
    Kind.TIMEOUT: Facts(_OTHER, "timeout", "timeout", "agent", _AGAIN, "it took longer than its time limit"),
    Kind.KILLED: Facts(_OTHER, "unknown", "unknown", "environment", _AGAIN, "somebody killed it"),
    Kind.INTERRUPTED: Facts(_OTHER, "unknown", "unknown", "supervisor", _AGAIN, "the run was stopped, or the supervisor or a worker died, in the middle"),
    Kind.PLAN_INVALID: Facts(_OTHER, "unknown", "plan_invalid", "plan", _FINAL, "the plan is not valid", _FATAL),
    Kind.CIRCULAR_DEPENDENCY: Facts(_OTHER, "unknown", "circular_dependency", "plan", _FINAL, "the plan's dependencies form a circle", _FATAL),
    Kind.UNVERIFIED: Facts(_OTHER, "unknown", "unknown", "plan", _FINAL, "no check could say whether the work is right", _PERSON),
    Kind.UNKNOWN: Facts(_OTHER, "unknown", "unknown", "agent", _AGAIN, "it failed in a way that no rule knows"),
}
# fmt: on


class Judged:
    """What follows from a kind, as attributes of every value that has one."""

    __slots__ = ()
    kind: Kind

    @property
    def facts(self) -> Facts:
        return KINDS[self.kind]

    @property
    def type(self) -> str:
        return self.facts.type

    @property
    def category(self) -> str | None:
        return self.facts.category

    @property
    def phase_type(self) -> str | None:
        return self.facts.phase_type

    @property
    def blame(self) -> Blame:
        return self.facts.blame

    @property
    def retryable(self) -> bool:
        return self.facts.retryable

    @property
    def severity(self) -> Severity:
        return self.facts.severity

    @property
    def difficulty(self) -> Difficulty:
        return self.facts.difficulty


AGENT_DOWN = frozenset({kind for kind, facts in KINDS.items() if facts.blame == "provider"} | {Kind.AGENT_MISSING})
"""Faults that every task of the same agent would meet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Judged evidence about one attempt."""

    kind: Kind
    summary: str
    """One line, shown to people and put into the next brief."""
    detail: str = ""
    """The end of the decisive output, redacted and bounded."""
    signature: str = ""
    """The same failure again has the same signature; empty where there is no output to compare."""
    tests: tuple[str, ...] = ()
    """The failing tests, as far as their runner names them."""
    rule: str = ""
    """The classification rule that decided, where one did."""
    names: tuple[str, ...] = ()
    """What its decisive line names: the package, command or variable that is missing."""
    resets_at: float | None = None
    """When a limit ends, in seconds since 1970, where the provider says so."""
    check: tuple[str, str] = ("", "")
    """Kind and command of the check that could not begin, where no verdict tells."""
    touches: tuple[Touch, ...] = ()
    """Who changed which lines, where two tasks cannot be merged."""
    together: str = ""
    """The task with which this one is red, although it is green alone."""
    error: str = ""
    """The error itself, with whose it is: what an assertion, a compiler or a dying agent said; empty where nothing was."""

    @property
    def blame(self) -> Blame:
        return KINDS[self.kind].blame

    @property
    def says(self) -> str:
        """What went wrong in the words of whoever met it: for histories, hints and everybody who goes on from here."""
        return self.error or self.summary

    @property
    def charged(self) -> bool:
        return KINDS[self.kind].charged


class RecentFailure(NamedTuple):
    """One failure of the recent past."""

    kind: Kind
    name: str = ""  # what it is about: the command, package or host
    at: float = 0.0
