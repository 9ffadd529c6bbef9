"""The blocks of text that autobuild prints for events of a phase.

The words are autobuild's and stay literally as they are: its users and their scripts look for them.
A blank in braces is filled in. A line whose blank holds a list is repeated for each item, or left out for an empty list.
The first line is the title.
"""

from collections.abc import Mapping
from typing import Final

CIRCULAR_DEPENDENCY_BLOCK: Final = """\
ERROR: circular_dependency (NON-RETRYABLE)
Plan contains circular {noun} dependencies:
  {circle}

UNSTUCK CANNOT PROCEED

Resolution:
  Fix the plan's "Depends On" column to remove the cycle.
  Ensure dependencies form a directed acyclic graph (DAG).

[HALTED - Invalid plan]"""

PLAN_INVALID_BLOCK: Final = """\
ERROR: plan_invalid (NON-RETRYABLE)
Plan format is incorrect:
  {problems}

UNSTUCK CANNOT PROCEED

Resolution:
  Correct these lines.
  Then look at it again: unstuck plan {path}

[HALTED - Invalid plan]"""

DEPENDENCY_MISSING_BLOCK: Final = """\
ERROR: dependency_missing (NON-RETRYABLE)
Required dependency not installed:
  Package: {package}
  Required by: {by}

UNSTUCK CANNOT PROCEED

Resolution:
  {install}
  Then resume: {resume}

[HALTED - Manual intervention required]"""

FILE_CONFLICT_BLOCK: Final = """\
ERROR: file_conflict (NON-RETRYABLE)
Parallel {noun}s modified the same file:
  {touches}

UNSTUCK CANNOT PROCEED

Resolution options:
1. Manually merge the changes
2. Modify plan to make these {noun}s sequential
3. Split the shared file to avoid conflicts

[HALTED - Parallel conflict]"""

HALT_SEQUENCE_BLOCK: Final = """\
UNSTUCK HALT SEQUENCE
1. Stop launching new phases
2. Wait for running phases to complete (or timeout)
3. Write final state files
4. Update execution log
5. Output halt summary
6. Preserve state for resume"""

FRESH_START_BLOCK: Final = """\
FRESH START
User command: unstuck run {plan} --commit {commit} --fresh

Behavior:
1. Move the old state to .unstuck/old/
2. Create fresh state files
3. Start from the first phase whose work is not on your branch
4. All previous commits remain (if --commit auto was used)

Warning: Does not undo previous commits. Use git reset if needed."""

RETRY_BLOCK: Final = """\
{NOUN} FAILURE - Initiating Retry
{noun}: {phase}
Attempt: {attempt} of {most}

Failure details:
  Type: {type}
  Message: {message}
  Tests: {tests}

Launching retry sub-agent with error context..."""

PARTIAL_FAILURE_BLOCK: Final = """\
PARALLEL BATCH - PARTIAL FAILURE
Batch: {batch}

Status:
  {noun} {progress}

Decision: Allow running siblings to complete before retry.

Rationale:
1. Siblings may succeed, preserving their work
2. Retry of {failed} won't conflict with running {others}
3. More efficient than cancelling all

Waiting for {others} to complete..."""

MULTIPLE_FAILURES_BLOCK: Final = """\
PARALLEL BATCH - MULTIPLE FAILURES
Batch: {batch}

Results:
  {noun} {progress}

Multiple {nouns} failed. Retrying each:

{retries}

[Retries run in parallel since they're independent]"""

RETRY_AFTER_SIBLINGS_BLOCK: Final = """\
PARALLEL BATCH - RETRY AFTER SIBLINGS
All siblings complete:
  {noun} {progress}

Initiating retry for {noun} {failed}...
{note}"""

RESUMED_BLOCK: Final = """\
RESUME AFTER EXTERNAL FIX
Previous state:
  {noun} {failed}

Resume command: {command}

Resume behavior:
1. Read state files
2. Find {noun} {names} in failed status
3. Reset attempt count to 0
4. Re-execute {noun} {names}
5. Continue with remaining {nouns} if successful"""

USER_ACTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "test_failure": (
        "Review test failures manually",
        "Check if tests are flaky",
        "Verify test assumptions match implementation",
    ),
    "lint_error": (
        "Review lint rules",
        "Consider disabling problematic rules",
        "Check for conflicting lint configurations",
    ),
    "typecheck_error": (
        "Review type definitions",
        "Check for missing @types packages",
        "Verify tsconfig/mypy configuration",
    ),
    "timeout": (
        "Increase timeout (if justified)",
        "Break phase into smaller phases",
        "Check for infinite loops or hanging operations",
    ),
    "verification_mismatch": ("Review sub-agent logs", "Check for race conditions", "Verify no external state changes"),
    "format_error": ("Run the formatter by hand", "Check for conflicting formatter configurations"),
    "task_incomplete": ("Review sub-agent logs", "Break phase into smaller phases"),
    "parse_error": ("Review sub-agent logs", "Check what form of result the agent is asked for"),
}
"""The actions of a user after a retry that failed too, by the type of the failure."""

CAPTURED_LABELS: Final[Mapping[str, str]] = {
    "count": "Number of errors",
    "files": "File paths with errors",
    "rules": "Rule names violated",
    "lines": "Line numbers",
    "tests": "Test names",
    "messages": "Error messages",
    "after_seconds": "Seconds before timeout",
    "last_activity": "Last known activity",
    "claimed": "What sub-agent claimed",
    "found": "What fresh verification found",
    "discrepancy": "Discrepancy details",
    "tasks_completed": "Tasks completed",
    "tasks_total": "Tasks in all",
    "reason": "Why the result cannot be read",
}
"""Labels of the facts that are captured of a failure."""

CAPTURED_TEST_LABELS: Final[Mapping[str, str]] = {
    "count": "Number of tests failed",
    "files": "Test file paths",
}
"""Labels that differ for failing tests."""

REQUIRED_BY: Final[Mapping[str, str]] = {
    "types": "Type checking",
    "test": "Tests",
    "lint": "Linting",
    "format": "Formatting",
    "build": "Building",
    "verify": "Verification",
}
"""The check that needs a missing dependency, by its kind."""
