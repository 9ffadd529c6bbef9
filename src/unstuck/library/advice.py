"""The advice of a `Recovery` on a task, with the attempt that it is about."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from unstuck.diagnosis.diagnosis_result import Diagnosis
from unstuck.diagnosis.evidence import Evidence
from unstuck.journal.task_state import AttemptState, TaskState
from unstuck.model.action import (
    Accept,
    Amend,
    Append,
    Continue,
    Decision,
    Escalate,
    Fix,
    Halt,
    Retry,
    Rollback,
    Switch,
    Wait,
)
from unstuck.model.errors import BadUsage
from unstuck.model.failure import Judged, Kind
from unstuck.policy.history import loop_signal
from unstuck.policy.plan_changes import fix_block
from unstuck.reports.briefs import hints

if TYPE_CHECKING:
    from unstuck.library.recovery import Recovery

Move = Literal["accept", "retry", "continue", "rollback", "switch", "fix", "wait", "escalate", "halt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A decision on a task, with what the caller needs to carry it out."""

    task: str
    attempt: int
    action: Move
    """`escalate` leaves this task to the user and goes on with other tasks. `halt` starts nothing more."""
    reason: str
    rung: str
    """The rung of the profile's ladder, e.g. `test_failed[1]`."""
    kind: Kind | None = None
    """The kind of the failure, or `circular_fix` if the attempts go in circles. See `diagnosis` for the output."""
    hints: str = ""
    """A text for the next attempt: earlier attempts, their errors, what to change."""
    circular: str = ""
    """A description of the loop that the attempts are in, or an empty string."""
    wait: float = 0.0
    """Seconds until the caller should continue."""
    rollback_to: str = ""
    """The last commit that passed."""
    agent: str = ""
    """The agent that should get the task now."""
    fix_task: str = ""
    """The id of a task that repairs this one and comes first. `fix_text` is its text in Markdown."""
    fix_text: str = ""
    question: str = ""
    """The question to the user."""
    diagnosis: Diagnosis | None = field(default=None, repr=False, compare=False)

    @property
    def goes_on(self) -> bool:
        """The caller should try the task again."""
        return self.action not in ("accept", "escalate", "halt")

    @property
    def type(self) -> str | None:
        """The failure as one of the five types, such as VERIFICATION_FAILED."""
        return _JudgedKind(self.kind).type if self.kind is not None else None

    def as_json(self) -> dict[str, Any]:
        """Return the advice as plain values."""
        names = [name for name in self.__slots__ if name != "diagnosis"]
        values = {name: getattr(self, name) for name in names}
        return {**values, "kind": str(self.kind) if self.kind else None, "type": self.type}


@dataclass(frozen=True, slots=True)
class _JudgedKind(Judged):
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A recorded attempt."""

    number: int
    approach: str
    agent: str
    kind: Kind | None
    """The kind of the failure, or None if the attempt passed or has not ended."""
    error: str
    signature: str
    action: str
    """The decision after the attempt."""


def advice_of(task: TaskState, diagnosis: Diagnosis | None, guidance: Mapping[str, str], now: float) -> Advice:
    """Return the decision after the last attempt at a task."""
    attempt, decision = task.current, task.current.decision
    assert decision is not None
    circular = loop_signal(task)
    failure = attempt.failure
    kind = Kind.CIRCULAR_FIX if circular else failure.kind if failure else None
    action = decision.action
    return Advice(
        task=task.task.id,
        attempt=attempt.number,
        action=_move(decision),
        reason=decision.reason,
        rung=decision.rung,
        kind=kind,
        hints=hints(task, guidance) if failure else "",
        circular=circular,
        wait=max(action.until - now, 0.0) if isinstance(action, Wait) else 0.0,
        rollback_to=attempt.base if isinstance(action, Rollback) else "",
        agent=action.agent if isinstance(action, Switch) else attempt.agent,
        fix_task=action.id if isinstance(action, Fix) else "",
        fix_text=fix_block(task.task, action) if isinstance(action, Fix) else "",
        question=action.question if isinstance(action, Escalate | Halt) else "",
        diagnosis=diagnosis,
    )


def past_attempt(attempt: AttemptState) -> Past:
    failure, decision = attempt.failure, attempt.decision
    return Past(
        number=attempt.number,
        approach=attempt.outcome.approach if attempt.outcome else "",
        agent=attempt.agent,
        kind=failure.kind if failure else None,
        error=failure.summary if failure else "",
        signature=failure.signature if failure else "",
        action=_move(decision) if decision else "",
    )


def _move(decision: Decision) -> Move:
    match decision.action:
        case Accept() | Retry() | Continue() | Rollback() | Switch() | Fix() | Wait() | Escalate() | Halt():
            return decision.action.type
        case Amend() | Append():  # requested by agents of a supervised run only
            raise AssertionError(decision.action)


class Attempt:
    """An attempt under way. The caller ends it with `failed` or `passed`, which return the next step."""

    def __init__(
        self,
        *,
        recovery: "Recovery",
        task: str,
        number: int,
        session: int,
        approach: str,
        hints: str,
        circular: str,
        began: float,
    ) -> None:
        self._recovery = recovery
        self.task, self.number, self.session, self.approach, self.began = task, number, session, approach, began
        self.hints = hints
        """A text on earlier attempts for the prompt of the agent."""
        self.circular = circular
        """A warning if the approach is like earlier ones that failed."""

    def failed(
        self,
        output: str = "",
        *,
        stderr: str = "",
        exit_code: int | None = None,
        signal: str = "",
        tool: str = "",
        command: str = "",
        timed_out: bool = False,
        kind: str | None = None,
        tree: str = "",
    ) -> Advice:
        """Record the failure and return the next step.

        `kind` overrules the diagnosis of the output. `tree` is an id of the files that the attempt left.
        """
        if kind is not None and kind not in set(Kind):
            raise BadUsage(f"There is no kind {kind!r}.", hint="See the kinds with `unstuck policy`.")
        evidence = Evidence(
            stdout=output,
            stderr=stderr,
            exit_code=exit_code,
            signal=signal,
            tool=tool,
            command=command,
            timed_out=timed_out,
        )
        diagnosis = self._recovery.diagnose(evidence, Kind(kind) if kind is not None else None)
        return self._recovery.ended(self, diagnosis, tree=tree, commit="")

    def passed(self, commit: str = "", *, tree: str = "") -> Advice:
        """Record that the checks pass. Later attempts can be rolled back to the commit."""
        return self._recovery.ended(self, None, tree=tree, commit=commit)
