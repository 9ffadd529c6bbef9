"""Hold what the journal says about one task and its attempts, as frozen values."""

from dataclasses import dataclass
from typing import Literal

from unstuck.journal.stages import Stage, next_stage
from unstuck.model.action import APPROVAL, Amend, Append, Continue, Decision, Wait
from unstuck.model.changes import Changes
from unstuck.model.event import LineEvent, PastAttempt
from unstuck.model.failure import AGENT_DOWN, KINDS, Failure, Kind
from unstuck.model.outcome import Outcome, Usage
from unstuck.model.plan import Task
from unstuck.model.verdict import Verdict

Status = Literal["pending", "running", "verifying", "waiting", "complete", "stuck", "skipped", "blocked", "interrupted"]
"""`blocked` and `interrupted` are never stored: they depend on other tasks and on whether a supervisor lives."""

SETTLED: tuple[Status, ...] = ("complete", "skipped")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptState:
    """One attempt at a task, as far as the journal knows it."""

    number: int
    agent: str
    base: str
    slot: int
    started: float
    tree: str | None = None
    sessions: int = 0
    ended: float | None = None
    outcome: Outcome | None = None
    verdict: Verdict | None = None
    failure: Failure | None = None
    decision: Decision | None = None
    snapshot: str | None = None
    alone: Verdict | None = None
    """The verdict before the work was merged with other work that had landed meanwhile."""
    cost_usd: float | None = None
    """The cost of its sessions together, or None if no session reported it."""
    worked: float = 0.0
    """Seconds of its sessions, without waiting and checks."""
    usage: Usage | None = None
    """The tokens of its sessions together, or None if no session reported them."""

    @property
    def continues(self) -> bool:
        """Return whether the attempt goes on in a new session: it is in progress, and has not failed."""
        return self.decision is not None and isinstance(self.decision.action, Continue | Wait)

    @property
    def work(self) -> str | None:
        """Return the snapshot of the work, or the tree that was verified."""
        return self.snapshot or (self.verdict.tree if self.verdict else None)

    @property
    def show_command(self) -> str:
        """Return the command that shows the work. `git show` prints nothing for a snapshot that is a merge."""
        return f"git diff {self.base[:12]} {self.snapshot}" if self.snapshot else ""

    @property
    def denied(self) -> bool:
        """Return whether the agent stopped because it lacked a permission."""
        if self.outcome is None or self.failure is None:
            return False
        return self.outcome.end == "permission_denied" and self.failure.kind is Kind.PERMISSION_DENIED

    @property
    def changed_nothing(self) -> bool:
        """Return whether a check fails and the agent left every file unchanged."""
        return self.verdict is not None and self.verdict.status == "fail" and not self.verdict.files

    @property
    def met_by_check(self) -> bool:
        """Return whether a check failed, and not the agent's session."""
        if self.failure is None or self.failure.kind in AGENT_DOWN:
            return False
        if any(self.failure.check):  # a gate could not begin on the base
            return True
        if self.verdict is None or self.verdict.status != "fail":
            return False
        if self.outcome is None or self.outcome.ended.ending == "not_started":
            return False
        return self.outcome.end in ("", "done_claimed", "failed_claimed")

    @property
    def only_environment_failed(self) -> bool:
        """Return whether the work exists and its check failed because of the environment, which a person may repair."""
        if self.verdict is None or self.failure is None or any(self.failure.check):
            return False
        return self.met_by_check and KINDS[self.failure.kind].blame == "environment"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """The history of one task."""

    task: Task
    status: Status = "pending"
    last: LineEvent | None = None
    last_at: float = 0.0
    last_seq: int = 0
    attempts: tuple[AttemptState, ...] = ()
    inherited: tuple[PastAttempt, ...] = ()
    """Attempts that a predecessor recorded."""
    epoch_from: int = 0
    """The number of attempts before a person last gave the task a fresh budget."""
    charged: int = 0
    climbed: tuple[str, ...] = ()
    hint: str = ""
    agent: str | None = None
    """The agent that a switch chose for the next attempt."""
    seed: str | None = None
    """The tree that the next attempt begins with, or None for that of the tip."""
    base: str | None = None
    """The commit that the next attempt keeps as its base, or None for the tip."""
    accepted: str = ""
    """A person's reason for accepting the work. It does not extend to the changes of a later session."""
    question: str = ""
    session: str = ""
    """The agent's session that asked a question and that the next attempt continues with the answer."""
    asks: str = ""
    """The question of the remedies about the environment."""
    commit: str | None = None
    changes: Changes | None = None
    """The files that the landed commit changes."""
    fixes: tuple[str, ...] = ()
    """The tasks that repair this one, oldest first."""
    fixes_before: int = 0
    """The number of fix tasks before a person last gave the task a fresh budget."""
    last_error: str = ""
    """The error that the last fix task repairs."""
    waits_for: tuple[str, ...] = ()
    """Tasks that were written into the plan and must settle before the next attempt."""
    modifications: tuple[Amend | Append, ...] = ()
    """Changes of the plan that its agent requested and that were made."""
    amends: str | None = None
    """The task whose agent requested this one."""
    inserted: bool = False
    """The supervisor wrote it into the plan."""
    wait_until: float | None = None
    waits_on: str = ""
    """The agent or fault that `wait_until` belongs to."""
    notes: tuple[str, ...] = ()

    @property
    def stage(self) -> Stage:
        return Stage.REST if self.status in ("complete", "skipped", "stuck") else next_stage(self.last)

    @property
    def verdict(self) -> Verdict | None:
        """Return the verdict on the last attempt's work, or None if there is none."""
        return self.attempts[-1].verdict if self.attempts else None

    @property
    def can_be_accepted(self) -> bool:
        """Return whether there is work that a person could accept: with a failing check, files must have changed."""
        return self.verdict is not None and not self.current.changed_nothing

    @property
    def tries(self) -> tuple[AttemptState, ...]:
        """Return the attempts since a person last gave the task a fresh budget."""
        return self.attempts[self.epoch_from :]

    @property
    def is_silent(self) -> bool:
        """Return whether the agent seems broken: no attempt changed anything, and the last one printed nothing."""
        last = self.attempts[-1].outcome if self.attempts else None
        if last is None or last.words.strip():
            return False
        return all(
            attempt.changed_nothing and attempt.failure is not None and attempt.failure.charged
            for attempt in self.tries
        )

    @property
    def needs(self) -> tuple[str, ...]:
        """Return the tasks that must settle before this one may start."""
        return (*self.task.depends_on, *self.waits_for) if self.waits_for else self.task.depends_on

    @property
    def current(self) -> AttemptState:
        return self.attempts[-1]

    @property
    def cost_usd(self) -> float | None:
        """Return the reported cost of all attempts, or None if no agent reported one."""
        costs = [attempt.cost_usd for attempt in self.attempts if attempt.cost_usd is not None]
        return sum(costs) if costs else None

    @property
    def worked(self) -> float:
        """Return the seconds of agents' work in all epochs."""
        return sum(attempt.worked for attempt in self.attempts)

    @property
    def seconds(self) -> float:
        """Return the seconds of agents' work in this epoch."""
        return sum(attempt.worked for attempt in self.tries)


def failed_command(state: TaskState) -> str:
    """Return the check that fails in the last verdict, or an empty string."""
    verdicts = [attempt.verdict for attempt in state.attempts if attempt.verdict is not None]
    results = verdicts[-1].results if verdicts else ()
    return next((result.command for result in results if result.status == "fail"), "")


def is_unverified(state: TaskState) -> bool:
    """Return whether only a person can say that the work is right. Another attempt would not help."""
    failure = state.attempts[-1].failure if state.attempts else None
    return failure is not None and failure.kind is Kind.UNVERIFIED


def awaits_approval(state: TaskState) -> bool:
    """Return whether the work is right and waits for a person's approval."""
    return state.status == "stuck" and bool(state.climbed) and state.climbed[-1] == APPROVAL
