"""Define the events of the journal as a closed union.

The journal is append-only. Field names are the keys of the stored JSON, unless a field has an alias. A new field needs
a default, and `OMIT_WHEN_EMPTY` keeps it out of events that do not use it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal

from unstuck.model.action import Action, Decision
from unstuck.model.changes import Changes
from unstuck.model.config import OnStuck, Quota
from unstuck.model.errors import JournalDamaged
from unstuck.model.failure import Failure
from unstuck.model.outcome import Outcome
from unstuck.model.plan import Task
from unstuck.model.verdict import OMIT_WHEN_EMPTY, Verdict

if TYPE_CHECKING:
    from pydantic import TypeAdapter

CommitMode = Literal["auto", "single", "message-only"]
Verb = Literal["stop", "retry", "answer", "skip", "reset", "accept", "approve", "rollback", "undo", "run", "unreadable"]
"""The requests to a run. `run` is always refused; `unreadable` stands for a row that is not a valid request."""
Order = Literal["given", "experience"]
Gate = Literal["plan", "land"]
"""The steps that a person may want to approve: the start of the plan, and each landing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the user when the run began. A resumed run keeps them."""

    agents: tuple[str, ...]
    parallel: int = 4
    commit: CommitMode = "auto"
    profile: str = "adaptive"
    on_stuck: OnStuck | None = None
    """None means that the profile decides."""
    max_attempts: int | None = None
    max_time: float | None = None
    siblings_first: bool = False
    """A failed task is tried again only after the tasks beside it have finished. The profile sets it."""
    budget_usd: float | None = None
    quota: Quota = "wait"
    cache: bool = True
    """A check that passed on a tree before is not run on it again."""
    order: Order | None = None
    """The order of agents: as named, or by landed rate. None means as named until each has enough attempts."""
    records: tuple[tuple[str, int, int], ...] = ()
    """With order `experience`: agent, attempts landed and attempts failed in earlier runs. Kept for the replay."""
    sorts: tuple[tuple[str, tuple[tuple[str, int, int], ...]], ...] = ()
    """Unused. Journals of version 0.1 hold such records by sort of task here."""
    approve: tuple[Gate, ...] = ()
    """The steps that wait for a person's approval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a run in the files beside its plan."""

    recovery: bool = False
    awaits_approval: bool = False
    """The plan's loop waits for the user's approval."""
    limits: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastAttempt:
    """An attempt that a predecessor recorded, in Auto-Claude's words."""

    session: int
    timestamp: str
    approach: str
    success: bool
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTask:
    """A predecessor's attempts at one task, oldest first."""

    id: str
    attempts: tuple[PastAttempt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCommit:
    """A commit that a predecessor called good. It was not verified here, so it is no checkpoint."""

    hash: str
    subtask_id: str
    timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A person's request to a run. Any process may leave one. The run's owner carries it out."""

    __pydantic_config__ = {"populate_by_name": True}  # noqa: RUF012  # read by pydantic, never changed

    id: int
    verb: Verb
    task: str | None = None
    text: str = ""
    shown_tree: str = field(default="", metadata={"alias": "shown"})
    """The tree that the person saw when accepting it."""
    requester: str = field(default="", metadata={"alias": "who"})
    place: str = ""
    at: float = 0.0
    inside: str = ""
    """The session or check that made the request. Empty for a person."""
    pid: int = 0
    token: str = ""
    """The process that waits until the request is seen, and the token that proves it."""
    doubt: str = ""
    """The owner's reason to doubt that a person made the request."""


# --- events of the run ---------------------------------------------------------------------------


GOAL = "goal"
"""The format of a plan that is one sentence of a person, kept by unstuck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    run: str
    plan: str
    format: str
    base: str
    """The commit that the run starts from."""
    branch: str | None
    """The user's branch at that time, or None on a detached HEAD."""
    options: Options
    tasks: tuple[Task, ...]
    title: str = ""
    plan_files: tuple[str, ...] = ()
    """The plan and its companion files in the checkout. Changes of the run to them become a commit."""
    inside: str = ""
    """The run whose session began this one, which only its sessions may operate. Empty if a person began it."""
    type: Literal["run_started"] = "run_started"

    @property
    def about(self) -> str:
        """Return the plan's path, or the goal if there is no plan."""
        return self.title if self.format == GOAL else self.plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResumed:
    """A supervisor resumed the run. A new epoch gives stuck tasks fresh budgets."""

    epoch: bool
    tip: str
    """The tip of the run's branch, with new commits of the user's branch merged in."""
    type: Literal["run_resumed"] = "run_resumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChanged:
    """A person changed the plan and confirmed it. Tasks whose text changed are open again."""

    tasks: tuple[Task, ...]
    reopened: tuple[str, ...]
    type: Literal["plan_changed"] = "plan_changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operated:
    """A person's request, carried out or refused."""

    request: Request
    refused: str = ""
    reopened: tuple[str, ...] = ()
    """Tasks that the request opened again."""
    before: str | None = None
    after: str | None = None
    """The tip of the run's branch before and after, if the request moves it."""
    undoes: int | None = None
    type: Literal["operated"] = "operated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inherited:
    """The records of a predecessor from before the run. Briefs quote them. They use up no budget."""

    source: str
    tasks: tuple[PastTask, ...]
    commits: tuple[PastCommit, ...]
    type: Literal["inherited"] = "inherited"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A note for people. It decides nothing."""

    text: str
    task: str | None = None
    meanwhile: bool = False
    """The note is about a change in the user's repository while a session ran. The summary repeats it."""
    type: Literal["noted"] = "noted"


@dataclass(frozen=True, slots=True, kw_only=True)
class BroughtHome:
    """The result of merging the run's branch into the user's branch."""

    commit: str | None
    text: str
    type: Literal["brought_home"] = "brought_home"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    exit_code: int
    reason: str
    type: Literal["run_ended"] = "run_ended"


CHANGED = "A person changed it since it ended."
"""The reason of a run's end after a later request."""


# --- events of a task, in the order of the pipeline ---------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStarted:
    task: str
    attempt: int
    agent: str
    base: str
    slot: int
    tree: str | None = None
    """The tree to begin with, if it is not that of the base."""
    entry: int = field(default=0, metadata=OMIT_WHEN_EMPTY)
    """The place of this agent's session, if several agents work in one attempt."""
    type: Literal["attempt_started"] = "attempt_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStarted:
    task: str
    session: int
    entry: int = field(default=0, metadata=OMIT_WHEN_EMPTY)
    """As in `AttemptStarted`."""
    type: Literal["session_started"] = "session_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded:
    task: str
    outcome: Outcome
    entry: int = field(default=0, metadata=OMIT_WHEN_EMPTY)
    """As in `AttemptStarted`."""
    type: Literal["session_ended"] = "session_ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    task: str
    verdict: Verdict
    type: Literal["verified"] = "verified"


@dataclass(frozen=True, slots=True, kw_only=True)
class Classified:
    task: str
    failure: Failure | None
    type: Literal["classified"] = "classified"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    task: str
    decision: Decision
    type: Literal["decided"] = "decided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    task: str
    action: Action
    commit: str | None = None
    """The tip of the run's branch after landing."""
    snapshot: str | None = None
    """The ref under which the attempt's work is kept."""
    changes: Changes | None = None
    """The first few hundred files that the landed commit changes."""
    added: tuple[Task, ...] = ()
    """Tasks that were written into the plan."""
    doubt: str = field(default="", metadata=OMIT_WHEN_EMPTY)
    """The open finding of a provisional landing, as one sentence. Empty for a final landing."""
    type: Literal["acted"] = "acted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebased:
    """Other work landed first. This work was merged onto the new tip and must be verified again."""

    task: str
    base: str
    tree: str
    type: Literal["rebased"] = "rebased"


LineEvent = AttemptStarted | SessionStarted | SessionEnded | Verified | Classified | Decided | Acted | Rebased
RunEvent = RunStarted | RunResumed | PlanChanged | Operated | Inherited | Noted | BroughtHome | RunEnded
Event = LineEvent | RunEvent


@dataclass(frozen=True, slots=True)
class Entry:
    """An event with its place in the journal and its time."""

    seq: int
    at: float
    event: Event


def encode(event: Event) -> str:
    """Return the JSON of an event as the journal stores it."""
    return _adapter().dump_json(event, by_alias=True).decode()


def decode(text: str, *, seq: int) -> Event:
    """Return the event of a stored text. Raise JournalDamaged if it cannot be read."""
    from pydantic import ValidationError  # noqa: PLC0415  # heavy, and only needed to read or write events

    try:
        return _adapter().validate_json(text)
    except ValidationError as error:
        raise JournalDamaged(
            f"Event {seq} of the journal cannot be read: {error.errors()[0]['msg']}.",
            hint="If a newer unstuck wrote it, use that version. The journal was not changed.",
        ) from error


@cache
def _adapter() -> "TypeAdapter[Event]":
    from pydantic import Field, TypeAdapter  # noqa: PLC0415  # as above

    return TypeAdapter(Annotated[Event, Field(discriminator="type")])
