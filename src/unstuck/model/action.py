"""Define the actions of the supervisor as a closed union. Match on it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from unstuck.model.failure import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept:
    """Land the work. Success is an action like the others."""

    because: str = ""  # a person's reason for accepting work that no check proves
    type: Literal["accept"] = "accept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Open a new attempt in the tree that the last one left."""

    hint: str = ""
    type: Literal["retry"] = "retry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Continue:
    """Keep the attempt and open a new session in it. Charges nothing."""

    hint: str = ""
    type: Literal["continue"] = "continue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """Snapshot the work, go back to the last checkpoint, open a new attempt."""

    hint: str = ""
    type: Literal["rollback"] = "rollback"


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """Snapshot the work, go back to the last checkpoint, open a new attempt with another agent."""

    agent: str
    hint: str = ""
    type: Literal["switch"] = "switch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """Write a fix task into the plan, and try this task again when the fix has landed."""

    id: str  # the new task's id
    error: str
    attempted_fix: str
    kind: Kind | None = None
    type: Literal["fix"] = "fix"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amend:
    """Write requested tasks into the plan, and try this task again when they have landed."""

    ids: tuple[str, ...]
    request: Literal["SPLIT_TASK", "ADD_PREREQUISITE"]
    attempt: int
    type: Literal["amend"] = "amend"


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Write requested tasks into the plan behind this one, then decide about this one."""

    ids: tuple[str, ...]
    attempt: int
    request: Literal["ADD_FOLLOWUP"] = "ADD_FOLLOWUP"
    type: Literal["append"] = "append"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Do nothing until a time, then open a new session in the same attempt. Charges nothing."""

    until: float
    what: str = ""  # an agent whose provider is at its limit, or the fault that has to end
    type: Literal["wait"] = "wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalate:
    """Mark the task stuck and ask a person. Independent tasks go on."""

    question: str
    asks: str = ""  # the question of the remedies, if the environment is the cause
    type: Literal["escalate"] = "escalate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """Ask a person, and start nothing new in this run."""

    question: str
    asks: str = ""  # as for `Escalate`
    type: Literal["halt"] = "halt"


Action = Accept | Retry | Continue | Rollback | Switch | Fix | Amend | Append | Wait | Escalate | Halt


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The chosen action and the reason for it."""

    action: Action
    reason: str
    rung: str  # where on which ladder, e.g. ``check_failed[1]``
    weighed: tuple[Mapping[str, str | int | float], ...] = ()
    """Unused. Journals of version 0.1 hold figures here that ranked the possible actions."""


APPROVAL = "approval"
"""The rung on which work that is right waits for a person's word."""
