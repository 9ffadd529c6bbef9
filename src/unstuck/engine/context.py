"""The values and services with which a run and its tasks work."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from unstuck.agents.agent_set import Agent
from unstuck.engine.recorder import Recorder
from unstuck.engine.shared_state import AgentHealth, LandingLock
from unstuck.git.protocols import Checkouts
from unstuck.journal.run_state import RunState
from unstuck.model.config import Config
from unstuck.model.errors import UnstuckError
from unstuck.model.event import Entry, Event, Verb
from unstuck.model.failure import Failure
from unstuck.model.layout import Layout
from unstuck.model.orders import SessionDone, SessionOrder, Subject
from unstuck.model.plan import Task, always_gets_fix_tasks
from unstuck.model.text import counted, one_line
from unstuck.model.verdict import Verdict
from unstuck.plans.plan_file import PlanFile
from unstuck.policy.profiles import Policy
from unstuck.policy.schedule import Experience
from unstuck.process.atomic_files import OwnFiles
from unstuck.process.clock import Clock
from unstuck.process.command import Processes, Stop
from unstuck.redaction.redactor import Redactor
from unstuck.remedies.toolbox import Remedies
from unstuck.verify.check_context import CheckContext
from unstuck.verify.checks import CleanCheckout

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """The values of one run. They never change while it works."""

    run_id: str
    settings: Config
    policy: Policy
    recovery_policy: Policy | None = None
    """The profile of tasks that are repaired by fix tasks, whatever the run's own profile says."""
    experience: Experience
    guidance: Mapping[str, str]
    """Advice by kind of failure."""
    layout: Layout
    max_time_seconds: float | None = None
    budget_usd: float | None = None
    """Limit of the cost, as far as the agents report it."""

    def policy_of(self, task: Task) -> Policy:
        """Return the profile that decides about a task."""
        return self.recovery_policy if self.recovery_policy and always_gets_fix_tasks(task) else self.policy


class Dispatcher(Protocol):
    """Runs sessions and verifies trees, on this machine or on others. Every method may be called again."""

    def expect(self, name: str, slot: int) -> None:
        """Prepare for a session while its slot is made."""

    def ready(self, name: str, slot: int, stop: Stop) -> Failure | None:
        """Set a slot up before a session in it counts. Return why that failed, or None."""

    def run(self, order: SessionOrder, stop: Stop) -> SessionDone:
        """Run one session to its end. Its slot holds what it begins with, and then its work."""

    def verify(self, subject: Subject, slot: int, stop: Stop) -> Verdict:
        """Return the verdict on one tree. Raise NotSetUp where its checks cannot run."""


class RunFiles(Protocol):
    """The files that people read. They are made from the state and read back only for a person's edits."""

    def write(self, state: RunState, changed: Sequence[str]) -> None:
        """Update the files of the changed tasks and what follows from all of them."""

    def redone(self, state: RunState, contents: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Write our changes into another version of the plan's files, given by their names."""

    def edits(self, run: str, entries: Sequence[Entry]) -> Iterator[tuple[Verb, str, str]]:
        """Yield (request, task, edit) for every task whose files a person edited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The objects that act on the world, built once in `app/services.py`."""

    recorder: Recorder
    checks: CheckContext
    dispatcher: Dispatcher
    agents: Mapping[str, Agent]
    plan_file: PlanFile
    clock: Clock
    remedies: Remedies | None = None
    agent_health: AgentHealth = field(default_factory=AgentHealth)
    landing_lock: LandingLock = field(default_factory=LandingLock)

    @property
    def workspace(self) -> Checkouts:
        return self.checks.workspace

    @property
    def processes(self) -> Processes:
        return self.checks.processes

    @property
    def own_files(self) -> OwnFiles:
        return self.checks.own_files

    @property
    def redactor(self) -> Redactor:
        return self.checks.redactor


@dataclass(frozen=True, slots=True)
class TaskRun:
    """One task in one slot. A stage takes it with the task's state and returns the next event about the task."""

    context: RunContext
    services: Services
    task_id: str
    slot: int
    stop: Stop

    @property
    def state(self) -> RunState:
        """The state of the whole run."""
        return self.services.recorder.state

    @property
    def workspace(self) -> Checkouts:
        return self.services.workspace

    @property
    def dispatcher(self) -> Dispatcher:
        return self.services.dispatcher

    @property
    def checks(self) -> CheckContext:
        """The context for this task's checks, with its own stop signal."""
        return replace(self.services.checks, stop=self.stop)

    @property
    def checkout(self) -> CleanCheckout:
        """A clean checkout for verifying this task's work."""
        checks = self.checks
        return CleanCheckout(context=checks, name=self.task_id, slot=checks.first_checkout_slot + self.slot)

    @property
    def plan_task(self) -> Task:
        """The task as the plan has it, secrets included."""
        return self.services.checks.tasks[self.task_id]

    @property
    def policy(self) -> Policy:
        """The profile that decides about this task."""
        return self.context.policy_of(self.plan_task)

    def now(self) -> float:
        """Return the seconds since 1970."""
        return self.services.clock.now()

    def record(self, event: Event) -> None:
        """Write an event to the journal."""
        self.services.recorder.record(event)

    def note(self, text: str, *, meanwhile: bool = False) -> None:
        """Record a note about this task."""
        self.services.recorder.note(text, self.task_id, meanwhile=meanwhile)

    def ask_remedies(self, question: Callable[[Remedies], T]) -> T | None:
        """Return what the remedies answer. A fault inside them is noted, and the run goes on without an answer."""
        if self.services.remedies is None:
            return None
        try:
            return question(self.services.remedies)
        except UnstuckError:
            raise
        except Exception as error:  # noqa: BLE001  # any fault of a remedy is smaller than the run
            fault = f"{type(error).__name__}: {one_line(str(error), 200)}"
            self.note(f"A remedy was left out, by a fault of unstuck: {fault}")
            return None


def limit_reached(context: RunContext, services: Services) -> str:
    """Return which limit of the run is reached while work is left, as a sentence, or an empty string."""
    state = services.recorder.state
    if not state.open:
        return ""
    sessions = context.policy.limits.run_executions(len(state.tasks))
    if context.max_time_seconds is not None and services.clock.now() - state.began > context.max_time_seconds:
        return "The time limit of the run is reached."
    if context.budget_usd is not None and state.cost_usd >= context.budget_usd:
        budget, cost = f"${context.budget_usd:.2f}", f"${state.cost_usd:.2f}"
        return f"The budget of {budget} is used up: {cost} so far. Raise it with: unstuck resume --budget-usd N"
    if state.executions >= sessions:
        return f"The limit of {counted(sessions, 'session')} for one run is reached."
    return ""
