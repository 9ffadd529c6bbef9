"""What checks are run with."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from unstuck.diagnosis.diagnosis_result import Judge
from unstuck.git.protocols import Checkouts
from unstuck.journal.run_state import RunState
from unstuck.model.config import Config, TimeLimits
from unstuck.model.layout import Layout
from unstuck.model.plan import Task
from unstuck.model.verdict import Check
from unstuck.process.atomic_files import OwnFiles
from unstuck.process.command import Command, Processes, Purpose, Stop
from unstuck.process.sandbox import Sandbox, sandboxed
from unstuck.redaction.redactor import Redactor
from unstuck.toolchain.shell import is_script
from unstuck.verify.check_cache import Memory, NoMemory, ShortMemory
from unstuck.verify.own_copies import own_first


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """The settings, services and caches with which one run, or one command, runs its checks."""

    run_id: str
    settings: Config
    layout: Layout
    gates: tuple[Check, ...]
    tasks: dict[str, Task]
    """The plan's tasks as written: commands with secrets in them run from here, never from the journal."""
    state: RunState
    """What the journal says of the run so far."""
    workspace: Checkouts
    processes: Processes
    own_files: OwnFiles
    judge: Judge
    redactor: Redactor
    stop: Stop
    first_checkout_slot: int
    """Slots from here on are used for verification checkouts."""
    second_checkout_offset: int | None = None
    """Distance from a verification's slot to its second one. None where the machine has no room for two at once."""
    sandbox: Sandbox | None = None
    check_cache: Memory = field(default_factory=NoMemory)
    """Results of checks on trees, kept between runs."""
    base_results: Memory = field(default_factory=ShortMemory)
    """Results of checks on the commits that tasks began with."""
    show_activity: Callable[[str, str], None] = field(default=lambda _task, _line: None)
    """Shows the user what a task does now: task id, line."""

    def checks_of(self, task_id: str) -> tuple[Check, ...]:
        """Return all that must hold after a task: its own checks, then the repository's gates."""
        return (*self.tasks[task_id].checks, *self.gates)

    def add_tasks(self, tasks: Iterable[Task]) -> None:
        """Add tasks that were written into the plan."""
        for task in tasks:
            self.tasks[task.id] = with_check_timeout(task, self.settings.verify.timeout)

    def command(
        self, task_id: str, line: str, slot: int, *, timeout: float | None, purpose: Purpose = "check"
    ) -> Command:
        """Return a line of the user's own code as a child process in the slot's root."""
        own = own_first(line, self.workspace.path(slot), self.layout.root) if purpose == "check" else {}
        stop_at_first_failure = ("-e",) if is_script(line) else ()
        command = Command(
            argv=("bash", *stop_at_first_failure, "-c", line),
            cwd=self.workspace.path(slot),
            log=self.layout.log(task_id),
            env={**self.environment(task_id, slot), **own},
            limits=TimeLimits(wall_clock=timeout or None),
        )
        return sandboxed(command, purpose, self.sandbox)

    def environment(self, task_id: str, slot: int) -> Mapping[str, str]:
        """Return the variables that mark a child process as one of this run."""
        return {
            "UNSTUCK_RUN": self.run_id,
            "UNSTUCK_TASK": task_id,
            "UNSTUCK_SLOT": str(slot % self.first_checkout_slot if self.first_checkout_slot else slot),
        }


def with_check_timeout(task: Task, timeout: float) -> Task:
    """Return the task with the time limit of its own checks."""
    return replace(task, checks=tuple(replace(check, timeout=timeout) for check in task.checks))
