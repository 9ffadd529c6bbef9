"""The line as a table: the last fact about a task says which stage comes next.

Rule 1: everything that decides the order of stages lives in this file.
Rule 2: this file knows facts, not effects; the engine performs the stage.

Resuming a run needs no other code: replay the journal, then ask `next_stage`.
"""

from collections.abc import Mapping
from enum import StrEnum

from unstuck.model.action import (
    Accept,
    Action,
    Amend,
    Append,
    Continue,
    Escalate,
    Fix,
    Halt,
    Retry,
    Rollback,
    Switch,
    Wait,
)
from unstuck.model.event import (
    Acted,
    AttemptStarted,
    Classified,
    Decided,
    LineEvent,
    Rebased,
    SessionEnded,
    SessionStarted,
    Verified,
)


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


AFTER: Mapping[type[LineEvent], Stage] = {
    AttemptStarted: Stage.EXECUTE,
    SessionStarted: Stage.RECONCILE,  # seen only after a crash: the supervisor died in the middle of the session
    SessionEnded: Stage.VERIFY,  # a claim is never believed unverified
    Rebased: Stage.VERIFY,  # green alone is not green together
    Verified: Stage.CLASSIFY,
    Classified: Stage.DECIDE,
    Decided: Stage.ACT,
}

AFTER_ACTION: Mapping[type[Action], Stage] = {
    Accept: Stage.REST,
    Retry: Stage.OPEN,
    Continue: Stage.EXECUTE,
    Rollback: Stage.OPEN,
    Switch: Stage.OPEN,
    Fix: Stage.OPEN,  # when its fix has landed: until then the schedule does not start it
    Amend: Stage.OPEN,
    Append: Stage.DECIDE,
    Wait: Stage.WAIT,
    Escalate: Stage.REST,
    Halt: Stage.REST,
}


def next_stage(last: LineEvent | None) -> Stage:
    """Return the stage that follows the last recorded fact about a task."""
    if last is None:
        return Stage.OPEN
    if isinstance(last, Acted):
        return AFTER_ACTION[type(last.action)]
    return AFTER[type(last)]
