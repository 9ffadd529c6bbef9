"""What a loop of one's own has in its hands: one try under way, and a decision with all that is needed to carry it out."""

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
from unstuck.report.briefs import hints

if TYPE_CHECKING:
    from unstuck.library.recovery import Recovery

Move = Literal["accept", "retry", "continue", "rollback", "switch", "fix", "wait", "escalate", "halt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What to do next, and why."""

    task: str
    attempt: int
    action: Move
    """`escalate` leaves this task to a person and goes on with the others; `halt` starts nothing more."""
    reason: str
    rung: str
    """Where on which ladder of the profile, e.g. ``test_failed[1]``."""
    kind: Kind | None = None
    """`circular_fix` where the attempts go in circles; what the output itself says is in `diagnosis`."""
    hints: str = ""
    """For the next attempt: what was tried, how it failed, and what to do differently."""
    circular: str = ""
    """How the attempts go in circles; empty if they do not."""
    wait: float = 0.0
    """Seconds until it is worth going on."""
    rollback_to: str = ""
    """The last commit that passed."""
    agent: str = ""
    """Who should have the task now."""
    fix_task: str = ""
    """The id of a task that repairs this one, to be done first; `fix_text` is its text in Markdown."""
    fix_text: str = ""
    question: str = ""
    """What to ask a person."""
    diagnosis: Diagnosis | None = field(default=None, repr=False, compare=False)

    @property
    def goes_on(self) -> bool:
        """Whether the task is to be tried again."""
        return self.action not in ("accept", "escalate", "halt")

    @property
    def type(self) -> str | None:
        """The failure as one of the five types, such as VERIFICATION_FAILED."""
        return _Known(self.kind).type if self.kind is not None else None

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        names = [name for name in self.__slots__ if name != "diagnosis"]
        values = {name: getattr(self, name) for name in names}
        return {**values, "kind": str(self.kind) if self.kind else None, "type": self.type}


@dataclass(frozen=True, slots=True)
class _Known(Judged):
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One attempt as it is remembered."""

    number: int
    approach: str
    agent: str
    kind: Kind | None
    """None: it passed, or has not ended."""
    error: str
    signature: str
    action: str
    """What was decided after it."""


def advice(task: TaskState, found: Diagnosis | None, texts: Mapping[str, str], now: float) -> Advice:
    """Say what was decided after the task's last attempt."""
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
        hints=hints(task, texts) if failure else "",
        circular=circular,
        wait=max(action.until - now, 0.0) if isinstance(action, Wait) else 0.0,
        rollback_to=attempt.base if isinstance(action, Rollback) else "",
        agent=action.agent if isinstance(action, Switch) else attempt.agent,
        fix_task=action.id if isinstance(action, Fix) else "",
        fix_text=fix_block(task.task, action) if isinstance(action, Fix) else "",
        question=action.question if isinstance(action, Escalate | Halt) else "",
        diagnosis=found,
    )


def past(attempt: AttemptState) -> Past:
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
        case Amend() | Append():  # an agent's, who has no say in somebody's own loop
            raise AssertionError(decision.action)


class Attempt:
    """One try under way. End it with `failed` or `passed`; both say what to do next."""

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
        """What earlier attempts teach, for the agent's prompt."""
        self.circular = circular
        """A warning, where the approach is like those that failed."""

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
        """Say how it failed; `kind` overrules what the output looks like, `tree` names the files that it left."""
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
        found = self._recovery.diagnose(evidence, Kind(kind) if kind is not None else None)
        return self._recovery.ended(self, found, tree=tree, commit="")

    def passed(self, commit: str = "", *, tree: str = "") -> Advice:
        """Say that your checks pass; the commit is where later attempts can be rolled back to."""
        return self._recovery.ended(self, None, tree=tree, commit=commit)
