"""Describe the work of one session or verification as values that another machine can carry out."""

from dataclasses import dataclass

from unstuck.model.config import TimeLimits
from unstuck.model.failure import Failure
from unstuck.model.outcome import Claim, Outcome
from unstuck.model.plan import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOrder:
    """The order to run one session, identified by run, task, attempt and session."""

    run: str
    task: str
    attempt: int
    session: int
    agent: str
    slot: int
    base: str
    limits: TimeLimits
    tree: str | None = None
    """The tree in the slot when the session begins, if it is not that of `base`."""
    brief: str = ""
    """The whole brief, for an agent that knows nothing of the task."""
    word: str = ""
    """The shorter text for the agent's own session `resume`, if that can be continued."""
    resume: str = ""
    lasting: bool = False
    """Processes that the session leaves behind are not ended."""
    begun: bool = False
    """A supervisor that died started this session. It is not started again, only its end is read."""
    probe: bool = False
    """The session only tests whether the agent can be started."""
    place: str = ""
    """The worker that must run it, from an earlier session's end. Empty for any worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDone:
    """The end of a session. Its work is in the slot."""

    outcome: Outcome
    failure: Failure | None = None
    """The failed set-up, if the session never began."""
    notes: tuple[str, ...] = ()
    """Sentences about changes in the user's repository meanwhile."""
    place: str = ""
    """The worker that ran it. Empty for this machine."""
    version: bool = False
    """In a probe, the agent's program printed its version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The tree to verify, with its base, its task and the agent's report."""

    task: Task
    base: str
    tree: str
    claim: Claim = "none"
    last_message: str = ""
    alone: bool = True
    """The session was not ended from outside, and without an error."""
    start: str = ""
    """The tree that the attempt began with, if it is not that of its base."""
