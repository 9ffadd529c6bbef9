"""One session, and one tree to verify, as plain values: any machine that has the commits and the agent can do it."""

from dataclasses import dataclass

from unstuck.model.config import TimeLimits
from unstuck.model.failure import Failure
from unstuck.model.outcome import Claim, Outcome
from unstuck.model.plan import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOrder:
    """What is needed to run one session. Run, task, attempt and session name it."""

    run: str
    task: str
    attempt: int
    session: int
    agent: str
    slot: int
    base: str
    limits: TimeLimits
    tree: str | None = None
    """What the slot holds when the session begins, where that is not `base` itself."""
    brief: str = ""
    """All that an agent needs which knows nothing."""
    word: str = ""
    """What is said instead to the agent's own session `resume`, where that can be continued."""
    resume: str = ""
    lasting: bool = False
    """What it leaves running stays."""
    begun: bool = False
    """A supervisor that died had begun it: it is not begun again, but asked how it ended."""
    probe: bool = False
    """It only tries whether the agent can be started at all."""
    place: str = ""
    """Where it must be run, as an earlier session's end says; empty for anywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDone:
    """How a session ended; its work is in the slot."""

    outcome: Outcome
    failure: Failure | None = None
    """Why it never began: its set-up failed."""
    notes: tuple[str, ...] = ()
    """What changed around it meanwhile, as sentences."""
    place: str = ""
    """Where it was run; empty for here."""
    version: bool = False
    """Of a probe: whether the agent's program tells its version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is verified: a tree on its base, the task that it is for, and what its author said."""

    task: Task
    base: str
    tree: str
    claim: Claim = "none"
    said: str = ""
    alone: bool = True
    """The session ended by itself and well."""
    start: str = ""
    """The tree that the attempt began with, where that is not its base."""
