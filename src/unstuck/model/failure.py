"""The kinds of failures with their facts."""

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
    """A cause of failure, judged from evidence. Only `circular_fix` and `flaky` need a history."""

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
    # The network or a server failed.
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
    """Facts about every failure of a kind, with its names in the vocabularies of the predecessors (None: no name)."""

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
        """Return how hard a recovery is by forgekeeper's rule."""
        if self.severity == "fatal":
            return "impossible"
        if self.severity == _NEEDS_PERSON or self.category in HARD:
            return "hard"
        return "easy" if self.category in EASY else "medium"

    @property
    def charged(self) -> bool:
        """Return whether the failure uses up an attempt: only the agent's own failures do, except a full context."""
        return self.blame == "agent" and self.type != CONTEXT_EXHAUSTED_TYPE


_RED, _BUILD, _OTHER = "VERIFICATION_FAILED", "BROKEN_BUILD", "UNKNOWN"
_NEEDS_PERSON: Severity = "user_action_required"
_FATAL: Severity = "fatal"
"""Autobuild stops for good, because no phase can run."""
_RETRY_MAY_HELP, _RETRY_CANNOT_HELP = True, False
"""Trying again may help, or cannot help."""

CONTEXT_EXHAUSTED_TYPE = "CONTEXT_EXHAUSTED"

# fmt: off
KINDS: Mapping[Kind, Facts] = {
    Kind.CHECK_FAILED: Facts(_RED, None, "unknown", "agent", _RETRY_MAY_HELP, "a check fails"),
    Kind.TEST_FAILED: Facts(_RED, None, "test_failure", "agent", _RETRY_MAY_HELP, "the tests fail"),
    Kind.TEST_TIMEOUT: Facts(_RED, "timeout", "test_failure", "agent", _RETRY_MAY_HELP, "a test did not end in time"),
    Kind.LINT_FAILED: Facts(_RED, None, "lint_error", "agent", _RETRY_MAY_HELP, "the linter complains"),
    Kind.TYPES_FAILED: Facts(_RED, None, "typecheck_error", "agent", _RETRY_MAY_HELP, "the type checker complains"),
    Kind.FORMAT_FAILED: Facts(_RED, None, "format_error", "agent", _RETRY_MAY_HELP, "the formatter would change files"),
    Kind.CLAIM_REFUTED: Facts(_RED, None, "verification_mismatch", "agent", _RETRY_MAY_HELP, "the agent says that it is done, and the checks fail"),
    Kind.TAMPERED: Facts(_RED, None, "verification_mismatch", "agent", _RETRY_MAY_HELP, "the checks themselves were weakened", _NEEDS_PERSON),
    Kind.FLAKY: Facts(_RED, None, "test_failure", "check", _RETRY_MAY_HELP, "a check passes and fails on the same tree"),
    Kind.CIRCULAR_FIX: Facts("CIRCULAR_FIX", None, None, "agent", _RETRY_CANNOT_HELP, "the same approach was tried again", _NEEDS_PERSON),
    Kind.BUILD_BROKEN: Facts(_BUILD, None, "unknown", "agent", _RETRY_MAY_HELP, "the build is broken"),
    Kind.SYNTAX_ERROR: Facts(_BUILD, "syntax_error", "unknown", "agent", _RETRY_MAY_HELP, "a source file cannot be parsed"),
    Kind.MODULE_MISSING: Facts(_BUILD, "file_not_found", "unknown", "agent", _RETRY_MAY_HELP, "a file of the project is missing"),
    Kind.IMPORT_CYCLE: Facts(_BUILD, None, "circular_dependency", "agent", _RETRY_MAY_HELP, "modules import one another"),
    Kind.DEPENDENCY_MISSING: Facts(_BUILD, None, "dependency_missing", "environment", _RETRY_CANNOT_HELP, "a package is not installed", _NEEDS_PERSON),
    Kind.DEPENDENCY_CONFLICT: Facts(_BUILD, None, "dependency_missing", "environment", _RETRY_CANNOT_HELP, "the required versions exclude one another", _NEEDS_PERSON),
    Kind.PACKAGE_NOT_FOUND: Facts(_OTHER, "unknown", "dependency_missing", "environment", _RETRY_CANNOT_HELP, "a package or version does not exist", _NEEDS_PERSON),
    Kind.COMMAND_NOT_FOUND: Facts(_OTHER, "command_not_found", "dependency_missing", "environment", _RETRY_CANNOT_HELP, "a command is not installed"),
    Kind.TOOL_NOT_FOUND: Facts(_OTHER, "tool_not_found", None, "agent", _RETRY_MAY_HELP, "the agent called a tool it has not"),
    Kind.COMMAND_SYNTAX: Facts(_OTHER, "syntax_error", None, "agent", _RETRY_MAY_HELP, "a command line cannot be parsed"),
    Kind.INVALID_ARGUMENTS: Facts(_OTHER, "invalid_arguments", None, "agent", _RETRY_MAY_HELP, "a command was called wrongly"),
    Kind.FILE_NOT_FOUND: Facts(_OTHER, "file_not_found", None, "agent", _RETRY_MAY_HELP, "a file or address does not exist"),
    Kind.PERMISSION_DENIED: Facts(_OTHER, "permission_denied", None, "environment", _RETRY_CANNOT_HELP, "the system refuses access"),
    Kind.ENVIRONMENT_MISSING: Facts(_OTHER, "unknown", "unknown", "environment", _RETRY_CANNOT_HELP, "a variable or service is not set up", _NEEDS_PERSON),
    Kind.DISK_FULL: Facts(_OTHER, "disk_full", None, "environment", _RETRY_CANNOT_HELP, "the disk is full", _NEEDS_PERSON),
    Kind.OUT_OF_MEMORY: Facts(_OTHER, "unknown", "unknown", "environment", _RETRY_CANNOT_HELP, "the memory is used up", _NEEDS_PERSON),
    Kind.PORT_IN_USE: Facts(_OTHER, "unknown", "unknown", "environment", _RETRY_MAY_HELP, "another process has the port"),
    Kind.RESOURCE_BUSY: Facts(_OTHER, "unknown", "unknown", "environment", _RETRY_MAY_HELP, "another process holds a lock"),
    Kind.OUTPUT_FLOOD: Facts(_OTHER, "unknown", "unknown", "agent", _RETRY_MAY_HELP, "the command printed far too much"),
    Kind.PROGRAM_CRASHED: Facts(_OTHER, "unknown", "unknown", "agent", _RETRY_MAY_HELP, "a program ended with an error of its own"),
    Kind.MALFORMED_INPUT: Facts(_OTHER, "syntax_error", "parse_error", "agent", _RETRY_MAY_HELP, "a file or answer cannot be read"),
    Kind.GIT_REFUSED: Facts(_OTHER, "unknown", "unknown", "agent", _RETRY_MAY_HELP, "git refuses the command"),
    Kind.MERGE_CONFLICT: Facts(_OTHER, "unknown", "file_conflict", "supervisor", _RETRY_CANNOT_HELP, "another change touches the same lines"),
    Kind.SETUP_FAILED: Facts(_OTHER, "unknown", "dependency_missing", "environment", _RETRY_CANNOT_HELP, "a set-up command of the worktree fails", _NEEDS_PERSON),
    Kind.NETWORK_ERROR: Facts(_OTHER, "network_error", None, "environment", _RETRY_MAY_HELP, "the network or a server fails"),
    Kind.RATE_LIMITED: Facts(_OTHER, "rate_limited", None, "provider", _RETRY_MAY_HELP, "too many requests for now"),
    Kind.QUOTA_EXHAUSTED: Facts(_OTHER, "rate_limited", None, "provider", _RETRY_CANNOT_HELP, "the quota of the plan is used up", _NEEDS_PERSON),
    Kind.PROVIDER_OVERLOADED: Facts(_OTHER, "rate_limited", None, "provider", _RETRY_MAY_HELP, "the provider is overloaded"),
    Kind.AUTH_FAILED: Facts(_OTHER, "permission_denied", None, "provider", _RETRY_CANNOT_HELP, "the credentials are missing or refused", _NEEDS_PERSON),
    Kind.BILLING: Facts(_OTHER, "permission_denied", None, "provider", _RETRY_CANNOT_HELP, "the account must be paid", _NEEDS_PERSON),
    Kind.CONTEXT_EXHAUSTED: Facts(CONTEXT_EXHAUSTED_TYPE, "unknown", "unknown", "agent", _RETRY_MAY_HELP, "the model's context window is full"),
    Kind.AGENT_CRASHED: Facts(_OTHER, "unknown", "task_incomplete", "agent", _RETRY_MAY_HELP, "the agent ended with an error and the checks fail"),
    Kind.AGENT_FAILED: Facts(_OTHER, "unknown", "task_incomplete", "agent", _RETRY_MAY_HELP, "the agent says that it failed, and the checks agree"),
    Kind.AGENT_MISSING: Facts(_OTHER, "command_not_found", "dependency_missing", "environment", _RETRY_CANNOT_HELP, "the agent could not be started"),
    Kind.QUESTION: Facts(_OTHER, "unknown", None, "plan", _RETRY_CANNOT_HELP, "the agent asks something and waits for the answer", _NEEDS_PERSON),
    Kind.RESULT_UNREADABLE: Facts(_OTHER, "unknown", "parse_error", "agent", _RETRY_MAY_HELP, "the agent's result cannot be read"),
    Kind.TASK_INCOMPLETE: Facts(_OTHER, "unknown", "task_incomplete", "agent", _RETRY_MAY_HELP, "the agent stopped before it was done"),
    Kind.NO_CLAIM: Facts(_OTHER, "unknown", "task_incomplete", "agent", _RETRY_MAY_HELP, "the checks pass, but they passed before, and the agent did not say that it is done"),
    Kind.NO_CHANGE: Facts(_OTHER, "unknown", "task_incomplete", "agent", _RETRY_MAY_HELP, "the agent ended without having done anything"),
    Kind.CHECK_TIMEOUT: Facts(_OTHER, "timeout", "timeout", "agent", _RETRY_MAY_HELP, "a check did not end within its time limit"),
    Kind.HANG: Facts(_OTHER, "timeout", "timeout", "agent", _RETRY_MAY_HELP, "the agent printed nothing for too long"),
    Kind.TIMEOUT: Facts(_OTHER, "timeout", "timeout", "agent", _RETRY_MAY_HELP, "it took longer than its time limit"),
    Kind.KILLED: Facts(_OTHER, "unknown", "unknown", "environment", _RETRY_MAY_HELP, "somebody killed it"),
    Kind.INTERRUPTED: Facts(_OTHER, "unknown", "unknown", "supervisor", _RETRY_MAY_HELP, "the run was stopped, or the supervisor or a worker died, in the middle"),
    Kind.PLAN_INVALID: Facts(_OTHER, "unknown", "plan_invalid", "plan", _RETRY_CANNOT_HELP, "the plan is not valid", _FATAL),
    Kind.CIRCULAR_DEPENDENCY: Facts(_OTHER, "unknown", "circular_dependency", "plan", _RETRY_CANNOT_HELP, "the plan's dependencies form a circle", _FATAL),
    Kind.UNVERIFIED: Facts(_OTHER, "unknown", "unknown", "plan", _RETRY_CANNOT_HELP, "no check could say whether the work is right", _NEEDS_PERSON),
    Kind.UNKNOWN: Facts(_OTHER, "unknown", "unknown", "agent", _RETRY_MAY_HELP, "it failed in a way that no rule knows"),
}
# fmt: on


class Judged:
    """The facts of a kind as attributes of every value that has one."""

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
    """The names in the decisive line: a missing package, command or variable."""
    resets_at: float | None = None
    """When a limit ends, in seconds since 1970, where the provider says so."""
    check: tuple[str, str] = ("", "")
    """Kind and command of the check that could not begin, if no verdict has it."""
    touches: tuple[Touch, ...] = ()
    """The changed lines of both sides, where two tasks cannot be merged."""
    together: str = ""
    """The task with which this one is red, although it is green alone."""
    error: str = ""
    """The error message of an assertion, a compiler or an agent, with its origin."""

    @property
    def blame(self) -> Blame:
        return KINDS[self.kind].blame

    @property
    def says(self) -> str:
        """Return the error message, or the summary without one, for histories and hints."""
        return self.error or self.summary

    @property
    def charged(self) -> bool:
        return KINDS[self.kind].charged


class RecentFailure(NamedTuple):
    """One failure of the recent past."""

    kind: Kind
    name: str = ""  # what it is about: the command, package or host
    at: float = 0.0
