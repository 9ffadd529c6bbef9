"""The line as a table: the last fact about a task says which stage comes next.

Rule 1: everything that decides the order of stages lives in this file.
Rule 2: this file knows facts, not effects; the engine performs the stage.

Resuming a run needs no other code: replay the journal, then ask `next_stage`.
"""

from collections.abc import Mapping
from enum import StrEnum

from unstuck import decide, journal


class Stage(StrEnum):
    OPEN = "open"
    EXECUTE = "execute"
    RECONCILE = "reconcile"
    VERIFY = "verify"
    CLASSIFY = "classify"
    DECIDE = "decide"
    ACT = "act"
    WAIT = "wait"
    REST = "rest"


AFTER: Mapping[type[journal.LineEvent], Stage] = {
    journal.AttemptStarted: Stage.EXECUTE,
    journal.SessionStarted: Stage.RECONCILE,  # seen only after a crash: the supervisor died in the middle of the session
    journal.SessionEnded: Stage.VERIFY,  # a claim is never believed unverified
    journal.Rebased: Stage.VERIFY,  # green alone is not green together
    journal.Verified: Stage.CLASSIFY,
    journal.Classified: Stage.DECIDE,
    journal.Decided: Stage.ACT,
}

AFTER_ACTION: Mapping[type[decide.Action], Stage] = {
    decide.Accept: Stage.REST,
    decide.Retry: Stage.OPEN,
    decide.Continue: Stage.EXECUTE,
    decide.Rollback: Stage.OPEN,
    decide.Switch: Stage.OPEN,
    decide.Fix: Stage.OPEN,  # when its fix has landed: until then the schedule does not start it
    decide.Amend: Stage.OPEN,
    decide.Append: Stage.DECIDE,
    decide.Wait: Stage.WAIT,
    decide.Escalate: Stage.REST,
    decide.Halt: Stage.REST,
}


def next_stage(last: journal.LineEvent | None) -> Stage:
    """Return the stage that follows the last recorded fact about a task."""
    if last is None:
        return Stage.OPEN
    if isinstance(last, journal.Acted):
        return AFTER_ACTION[type(last.action)]
    return AFTER[type(last)]
