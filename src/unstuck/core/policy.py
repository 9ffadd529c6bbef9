"""The recovery table: for each kind of failure a ladder of rungs; past the last rung a person is asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from unstuck.core.failure import Kind

Move = Literal["retry", "continue", "rollback", "switch"]
OnStuck = Literal["skip", "halt"]


@dataclass(frozen=True, slots=True)
class Rung:
    """One move, how often it may be taken for one task, and what to tell the agent."""

    move: Move
    times: int = 1
    hint: str = ""


Ladder = tuple[Rung, ...]

REPAIR = "The checks below fail. Your last work is still here: repair it."
DIFFERENT = "Go about it in a different way than before."
RUN_CHECKS = "Run every check yourself before you say that you are done."
SHORT_STEPS = "The last session was ended by a time limit. Work in small steps and avoid commands that wait for input."

ENDED_EARLY = "The last session ended early. Its work is still here: finish it and say that you are done."
CHANGED_NOTHING = "The last session changed nothing. Do the task; if it is done already, show it with a check."
GO_ON = "The last session was interrupted. Its work is still here: go on from it."
OUT_OF_ROOM = "The last session ran out of room. Its work is still here: go on from it, and read only what you need."
BY_RULES = "The last command was called wrongly. Read its usage, then call it as it wants to be called."

_REPAIR = (
    Rung("retry", 1, REPAIR),
    Rung("switch", 1, DIFFERENT),
    Rung("retry", 1, RUN_CHECKS),
    Rung("rollback", 1, DIFFERENT),
)
_REBUILD = (Rung("rollback", 2, "Keep the build green at every step."),)
_ANEW = (Rung("retry", 1, DIFFERENT), Rung("switch", 1, DIFFERENT), Rung("rollback", 1, DIFFERENT))
_SURROUNDINGS = (Rung("continue", 1, "The last session met an obstacle outside of the code. Look whether it is gone."),)
_ELSEWHERE = (Rung("switch"),)
_ONCE = (Rung("retry", 1, "Something that the work needs is not installed here. Do without it."),)

LADDERS: Mapping[Kind, Ladder] = {
    Kind.CHECK_FAILED: _REPAIR,
    Kind.TEST_FAILED: _REPAIR,
    Kind.TEST_TIMEOUT: (
        Rung("retry", 1, "A test did not end in time: look for endless loops and waits."),
        Rung("rollback", 1, DIFFERENT),
    ),
    Kind.LINT_FAILED: (Rung("retry", 3, REPAIR),),
    Kind.TYPES_FAILED: (Rung("retry", 3, REPAIR),),
    Kind.FORMAT_FAILED: (Rung("retry", 3, REPAIR),),
    Kind.CLAIM_REFUTED: (Rung("retry", 2, RUN_CHECKS), Rung("switch", 1, RUN_CHECKS)),
    Kind.TAMPERED: (Rung("rollback", 1, "Do not weaken, skip or delete checks. Make the code right instead."),),
    Kind.FLAKY: (Rung("continue", 1, "A check passes and fails on the same tree. Make it tell the same every time."),),
    Kind.CIRCULAR_FIX: (Rung("switch", 1, DIFFERENT),),
    Kind.BUILD_BROKEN: _REBUILD,
    Kind.SYNTAX_ERROR: _REBUILD,
    Kind.MODULE_MISSING: _REBUILD,
    Kind.IMPORT_CYCLE: _REBUILD,
    Kind.DEPENDENCY_MISSING: _ONCE,
    Kind.DEPENDENCY_CONFLICT: _ONCE,
    Kind.PACKAGE_NOT_FOUND: _ONCE,
    Kind.COMMAND_NOT_FOUND: (),
    Kind.TOOL_NOT_FOUND: _ANEW,
    Kind.COMMAND_SYNTAX: (Rung("retry", 2, BY_RULES), Rung("switch")),
    Kind.INVALID_ARGUMENTS: (Rung("retry", 2, BY_RULES), Rung("switch")),
    Kind.FILE_NOT_FOUND: (
        Rung("retry", 2, "A file was not where it was looked for. Find it, or make it."),
        Rung("switch"),
    ),
    Kind.PERMISSION_DENIED: (),
    Kind.ENVIRONMENT_MISSING: (),
    Kind.DISK_FULL: (),
    Kind.OUT_OF_MEMORY: (),
    Kind.PORT_IN_USE: _SURROUNDINGS,
    Kind.RESOURCE_BUSY: _SURROUNDINGS,
    Kind.OUTPUT_FLOOD: (Rung("retry", 1, "The last command printed far too much. Print less."),),
    Kind.PROGRAM_CRASHED: _REPAIR,
    Kind.MALFORMED_INPUT: (Rung("retry", 2, "A file could not be read. Write it in the form that its reader wants."),),
    Kind.GIT_REFUSED: (Rung("retry", 1, "Leave branches and commits alone: change files, nothing else."),),
    Kind.MERGE_CONFLICT: (
        Rung(
            "rollback", 3, "Another task landed first and changed the same lines. Do the task again on top of its work."
        ),
    ),
    Kind.SETUP_FAILED: (),
    Kind.NETWORK_ERROR: (Rung("continue", 2, "The network failed. Its work is still here: go on from it."),),
    Kind.RATE_LIMITED: _ELSEWHERE,
    Kind.QUOTA_EXHAUSTED: _ELSEWHERE,
    Kind.PROVIDER_OVERLOADED: (Rung("continue", 1, GO_ON), Rung("switch")),
    Kind.AUTH_FAILED: _ELSEWHERE,
    Kind.BILLING: _ELSEWHERE,
    Kind.CONTEXT_EXHAUSTED: (Rung("continue", 3, OUT_OF_ROOM), Rung("switch")),
    Kind.AGENT_CRASHED: (
        Rung("retry", 2, "The last session crashed. Its work is still here: look at what is missing."),
        Rung("switch"),
    ),
    Kind.AGENT_FAILED: _ANEW,
    Kind.AGENT_MISSING: (Rung("switch"),),
    Kind.RESULT_UNREADABLE: (
        Rung("retry", 1, "Your result could not be read. Print it in the form that was asked for."),
    ),
    Kind.TASK_INCOMPLETE: (Rung("retry", 2, ENDED_EARLY), Rung("switch")),
    Kind.NO_CLAIM: (Rung("retry", 2, ENDED_EARLY),),
    Kind.NO_CHANGE: (Rung("retry", 1, CHANGED_NOTHING), Rung("switch", 1, CHANGED_NOTHING)),
    Kind.CHECK_TIMEOUT: (
        Rung("retry", 1, "A check did not end in time: look for endless loops and waits."),
        Rung("rollback", 1, DIFFERENT),
    ),
    Kind.HANG: (Rung("retry", 2, SHORT_STEPS), Rung("switch")),
    Kind.TIMEOUT: (Rung("retry", 2, SHORT_STEPS), Rung("switch")),
    Kind.KILLED: (Rung("continue", 2, "The last session was killed. Its work is still here: go on from it."),),
    Kind.INTERRUPTED: (Rung("continue", 1000, GO_ON),),
    Kind.PLAN_INVALID: (),
    Kind.CIRCULAR_DEPENDENCY: (),
    Kind.UNVERIFIED: (),
    Kind.UNKNOWN: (Rung("retry", 1, DIFFERENT),),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The ladders and the ceilings over all of them together."""

    ladders: Mapping[Kind, Ladder]
    max_attempts: int = 5
    """Attempts that are charged to one task in one epoch; whatever the ladders say."""
    on_stuck: OnStuck = "skip"
    land_unverified: bool = False


DEFAULT = Policy(ladders=LADDERS)
