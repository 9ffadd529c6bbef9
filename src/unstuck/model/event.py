"""Every fact the journal can hold. A closed union: append-only, never edited. Its JSON is the shape of the values themselves."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal

from unstuck.model.action import Action, Decision
from unstuck.model.changes import Changes
from unstuck.model.config import OnStuck, Quota
from unstuck.model.errors import JournalDamaged
from unstuck.model.failure import Failure
from unstuck.model.outcome import Outcome
from unstuck.model.plan import Task
from unstuck.model.verdict import Verdict

if TYPE_CHECKING:
    from pydantic import TypeAdapter

CommitMode = Literal["auto", "single", "message-only"]
Verb = Literal["stop", "retry", "answer", "skip", "reset", "accept", "approve", "rollback", "undo", "run", "unreadable"]
"""What can be asked; `run` only to be refused, and the last stands for a row that is no request of ours."""
Order = Literal["given", "experience"]
Gate = Literal["plan", "land"]
"""What a person may want to approve: that the plan is begun, and that work lands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user asked for when the run began; a resumed run keeps it."""

    agents: tuple[str, ...]
    parallel: int = 4
    commit: CommitMode = "auto"
    profile: str = "adaptive"
    on_stuck: OnStuck | None = None
    """None: what the profile says."""
    max_attempts: int | None = None
    max_time: float | None = None
    siblings_first: bool = False
    """A failed task is tried again only after those that ran at its side have finished; comes from the profile."""
    budget_usd: float | None = None
    quota: Quota = "wait"
    cache: bool = True
    """Whether a check that passed on a tree before counts without running it again."""
    order: Order | None = None
    """Who begins a task: the first agent named, or who did best; None: as named, until there is evidence enough."""
    records: tuple[tuple[str, int, int], ...] = ()
    """With order `experience`: agent, attempts landed and attempts failed in earlier runs. Kept for the replay."""
    sorts: tuple[tuple[str, tuple[tuple[str, int, int], ...]], ...] = ()
    """Unused. Journals of version 0.1 hold such records by sort of task here."""
    approve: tuple[Gate, ...] = ()
    """What a person wants to approve before it is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the files beside a plan ask of its run."""

    recovery: bool = False
    awaits_approval: bool = False
    """Its loop yields to the user."""
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
    """What a predecessor tried for one task, oldest first."""

    id: str
    attempts: tuple[PastAttempt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCommit:
    """A commit that a predecessor called good. We did not check it, so it is no checkpoint of ours."""

    hash: str
    subtask_id: str
    timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Something that a person asks of a run. Any process may leave one; the run's owner carries it out."""

    id: int
    verb: Verb
    task: str | None = None
    text: str = ""
    shown: str = ""
    """The tree that was shown to whoever accepts it."""
    who: str = ""
    place: str = ""
    at: float = 0.0
    inside: str = ""
    """The session or check that asked; empty for a person."""
    pid: int = 0
    token: str = ""
    """The process that stands by it until it is seen, and by what that is known."""
    doubt: str = ""
    """Why it is nobody's word, as seen by the run's owner."""


# --- facts about the run ---------------------------------------------------------------------------


GOAL = "goal"
"""The format of a plan that is one sentence of a person's, kept by us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    run: str
    plan: str
    format: str
    base: str
    """The commit that the run starts from."""
    branch: str | None
    """The user's branch at that time; None on a detached HEAD."""
    options: Options
    tasks: tuple[Task, ...]
    title: str = ""
    plan_files: tuple[str, ...] = ()
    """The plan and its companions, as far as they lie in the checkout: our changes to them become a commit."""
    inside: str = ""
    """The run whose session began this one; empty where a person did. Only that run's sessions may operate it."""
    type: Literal["run_started"] = "run_started"

    @property
    def about(self) -> str:
        """What it works on, as people know it: the plan's path, or the goal where there is no plan."""
        return self.title if self.format == GOAL else self.plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResumed:
    """A supervisor took the run up again; a new epoch gives stuck tasks fresh budgets."""

    epoch: bool
    tip: str
    """The run's branch, with new commits of the user's branch merged in."""
    type: Literal["run_resumed"] = "run_resumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChanged:
    """A person changed the plan and said so: tasks whose text changed are open again."""

    tasks: tuple[Task, ...]
    reopened: tuple[str, ...]
    type: Literal["plan_changed"] = "plan_changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operated:
    """A person's request, carried out or refused."""

    request: Request
    refused: str = ""
    reopened: tuple[str, ...] = ()
    """Tasks that are open again because of it."""
    before: str | None = None
    after: str | None = None
    """The run's branch before and after, where the request moves it."""
    undoes: int | None = None
    type: Literal["operated"] = "operated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inherited:
    """What a predecessor recorded before the run began. Agents are told of it; it uses up no budget."""

    source: str
    tasks: tuple[PastTask, ...]
    commits: tuple[PastCommit, ...]
    type: Literal["inherited"] = "inherited"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """Something worth telling that decides nothing."""

    text: str
    task: str | None = None
    meanwhile: bool = False
    """It tells of a change in the user's repository while a session ran: the summary does, too."""
    type: Literal["noted"] = "noted"


@dataclass(frozen=True, slots=True, kw_only=True)
class BroughtHome:
    """The end of the run reached the user's branch, or did not, and why."""

    commit: str | None
    text: str
    type: Literal["brought_home"] = "brought_home"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    exit_code: int
    reason: str
    type: Literal["run_ended"] = "run_ended"


CHANGED = "A person changed it since it ended."
"""What a run's end comes to when something was asked of the run afterwards."""


# --- facts about a task, in the order of the line ---------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStarted:
    task: str
    attempt: int
    agent: str
    base: str
    slot: int
    tree: str | None = None
    """Files to begin with, where they are not the base's."""
    type: Literal["attempt_started"] = "attempt_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStarted:
    task: str
    session: int
    type: Literal["session_started"] = "session_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded:
    task: str
    outcome: Outcome
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
    """Where the run's branch stands after landing."""
    snapshot: str | None = None
    """The ref under which the attempt's work is kept."""
    changes: Changes | None = None
    """What the landed commit changes, its first few hundred files."""
    added: tuple[Task, ...] = ()
    """Tasks that were written into the plan."""
    type: Literal["acted"] = "acted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebased:
    """Other work landed first, of a task or of the user; the work was merged onto the new tip and must be verified again."""

    task: str
    base: str
    tree: str
    type: Literal["rebased"] = "rebased"


LineEvent = AttemptStarted | SessionStarted | SessionEnded | Verified | Classified | Decided | Acted | Rebased
RunEvent = RunStarted | RunResumed | PlanChanged | Operated | Inherited | Noted | BroughtHome | RunEnded
Event = LineEvent | RunEvent


@dataclass(frozen=True, slots=True)
class Entry:
    """An event as the journal holds it: its place and its time."""

    seq: int
    at: float
    event: Event


def encode(event: Event) -> str:
    return _adapter().dump_json(event, exclude_defaults=False).decode()


def decode(text: str, *, seq: int) -> Event:
    """Read one event; a journal written by a newer unstuck is refused by name, not misread."""
    from pydantic import ValidationError  # noqa: PLC0415  # heavy: who only names an event needs none of it

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
