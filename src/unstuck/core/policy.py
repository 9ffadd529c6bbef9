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

LADDERS: Mapping[Kind, Ladder] = {
    Kind.CHECK_FAILED: (
        Rung("retry", 1, REPAIR),
        Rung("switch", 1, DIFFERENT),
        Rung("retry", 1, RUN_CHECKS),
        Rung("rollback", 1, DIFFERENT),
    ),
    Kind.TEST_FAILED: (
        Rung("retry", 1, REPAIR),
        Rung("switch", 1, DIFFERENT),
        Rung("retry", 1, RUN_CHECKS),
        Rung("rollback", 1, DIFFERENT),
    ),
    Kind.LINT_FAILED: (Rung("retry", 3, REPAIR),),
    Kind.TYPES_FAILED: (Rung("retry", 3, REPAIR),),
    Kind.FORMAT_FAILED: (Rung("retry", 3, REPAIR),),
    Kind.BUILD_BROKEN: (Rung("rollback", 2, "Keep the build green at every step."),),
    Kind.CHECK_TIMEOUT: (
        Rung("retry", 1, "A check did not end in time: look for endless loops and waits."),
        Rung("rollback", 1, DIFFERENT),
    ),
    Kind.AGENT_CRASHED: (
        Rung("retry", 2, "The last session crashed. Its work is still here: look at what is missing."),
        Rung("switch"),
    ),
    Kind.AGENT_FAILED: (Rung("retry", 1, DIFFERENT), Rung("switch", 1, DIFFERENT), Rung("rollback", 1, DIFFERENT)),
    Kind.AGENT_MISSING: (Rung("switch"),),
    Kind.HANG: (Rung("retry", 2, SHORT_STEPS), Rung("switch")),
    Kind.TIMEOUT: (Rung("retry", 2, SHORT_STEPS), Rung("switch")),
    Kind.KILLED: (Rung("continue", 2, "The last session was killed. Its work is still here: go on from it."),),
    Kind.NO_CLAIM: (
        Rung("retry", 2, "The last session ended early. Its work is still here: finish it and say that you are done."),
    ),
    Kind.UNVERIFIED: (),
    Kind.MERGE_CONFLICT: (
        Rung(
            "rollback", 3, "Another task landed first and changed the same lines. Do the task again on top of its work."
        ),
    ),
    Kind.SETUP_FAILED: (),
    Kind.INTERRUPTED: (
        Rung("continue", 1000, "The last session was interrupted. Its work is still here: go on from it."),
    ),
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
