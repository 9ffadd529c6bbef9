"""Edge: What every stage works with: the ports, the settings of the run, its ceilings, its stop, the turn to land, and where things lie on disk."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Protocol, TypeVar

from unstuck.agents.assignment import Agent
from unstuck.diagnosis.classifying import set_up_failed
from unstuck.diagnosis.judge import Judge
from unstuck.engine.agent_health import Probes
from unstuck.engine.landing_lock import Turn
from unstuck.engine.recorder import Recorder
from unstuck.engine.stops import Interrupted
from unstuck.git.protocols import Checkouts
from unstuck.journal.run_state import RunState
from unstuck.model.config import Config, TimeLimits
from unstuck.model.errors import UnstuckError
from unstuck.model.event import Entry, Verb
from unstuck.model.failure import Failure
from unstuck.model.orders import SessionDone, SessionOrder, Subject
from unstuck.model.plan import Task, recovers
from unstuck.model.text import counted, one_line
from unstuck.model.verdict import Check, Verdict
from unstuck.plans.plan_file import PlanFile
from unstuck.policy.experience import Experience
from unstuck.policy.profiles import Policy
from unstuck.process.atomic_files import OwnFiles
from unstuck.process.clock import Clock
from unstuck.process.command import Command, Processes, Purpose, Stop
from unstuck.process.sandbox import Sandbox, sandboxed
from unstuck.redaction.redactor import Redactor
from unstuck.remedies.toolbox import Remedies
from unstuck.toolchain.shell import is_script
from unstuck.verify.check_cache import Memory, NoMemory, ShortMemory
from unstuck.verify.own_copies import own_first

T = TypeVar("T")


def timed(task: Task, timeout: float) -> Task:
    """Return the task with the time that its own checks may take."""
    return replace(task, checks=tuple(replace(check, timeout=timeout) for check in task.checks))


@dataclass(frozen=True, slots=True)
class Layout:
    """Where our files lie: what people read and edit in the checkout, what must not be lost in git's own folder."""

    root: Path
    store: Path

    @property
    def home(self) -> Path:
        return self.root / ".unstuck"

    @property
    def pause(self) -> Path:
        """A file that a person makes to stop the run at the next opportunity; its text is shown."""
        return self.home / "PAUSE"

    def log(self, task: str) -> Path:
        return self.store / "logs" / f"task-{task}.log"

    def transcript(self, task: str, attempt: int, session: int) -> Path:
        return self.store / "transcripts" / f"{task}-{attempt}-{session}.out"

    def brief(self, task: str, attempt: int, session: int) -> Path:
        return self.store / "briefs" / f"{task}-{attempt}-{session}.md"


class NoRemedies:
    """Leaves everything as it is."""

    def relieve(self, failure: Failure, command: str, cwd: Path) -> tuple[str, ...]:  # noqa: ARG002  # the port's signature
        return ()

    def advise(self, failure: Failure, command: str, cwd: Path) -> tuple[str, ...]:  # noqa: ARG002  # as above
        return ()

    def question(self, failure: Failure, command: str, cwd: Path) -> str:  # noqa: ARG002  # as above
        return ""

    def passed(self, cwd: Path) -> None:  # noqa: ARG002  # as above
        return


class Projections(Protocol):
    """The files that people read: made from the state, never read back except for a person's edits."""

    def write(self, state: RunState, changed: Sequence[str]) -> None:
        """Bring the files of the changed tasks, and what follows from all of them, up to date."""

    def redone(self, state: RunState, contents: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Write into another version of the plan's files, given by their names, all that we wrote into those on disk."""

    def edits(self, run: str, entries: Sequence[Entry]) -> Iterator[tuple[Verb, str, str]]:
        """Yield (what to do, task, what was done) for every task about which a person edited our files."""


class Dispatcher(Protocol):
    """Who does the work of a run: the threads of this machine, or other machines. Every verb may be asked again."""

    def expect(self, name: str, slot: int) -> None:
        """Get ready for a session, while its slot is made."""

    def ready(self, name: str, slot: int) -> Failure | None:
        """Set a slot up before a session in it counts; whoever sits elsewhere does that with the session."""

    def run(self, order: "SessionOrder", stop: Stop) -> "SessionDone":
        """Run one session to its end. Its slot holds what it begins with, and then its work."""

    def verify(self, subject: "Subject", slot: int, stop: Stop) -> Verdict:
        """Say what the checks make of one tree; raise NotSetUp where they cannot be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """The kit of one run; the same for all of its tasks."""

    run: str
    record: Recorder
    workspace: Checkouts
    processes: Processes
    agents: Mapping[str, Agent]
    tasks: dict[str, Task]
    """The plan's tasks as written: commands with secrets in them run from here, never from the journal."""
    plan: PlanFile
    dispatch: "Callable[[Kit], Dispatcher]"
    """Who runs sessions and verifies trees."""
    config: Config
    policy: Policy
    recovery: Policy | None = None
    """The profile for tasks that are repaired by fix tasks whatever the run's own profile says."""
    experience: Experience
    guidance: Mapping[str, str]
    """Advice by kind of failure."""
    gates: tuple[Check, ...]
    layout: Layout
    own_files: OwnFiles
    redactor: Redactor
    stop: Stop
    clock: Clock
    judge: Judge
    remedies: Remedies = field(default_factory=NoRemedies)
    spare: int
    """The first slot beyond those of the running tasks: its worktrees serve for verifying."""
    probes: Probes = field(default_factory=Probes)
    """Whether its agents work at all."""
    beside: int | None = None
    """How far behind a verification's slot its second one is; None where the machine has no room for checks side by side."""
    turn: Turn = field(default_factory=Turn)
    """Whose turn it is to land."""
    sandbox: Sandbox | None = None
    memory: Memory = field(default_factory=NoMemory)
    """How checks went before, for trees that did not change since."""
    baselines: Memory = field(default_factory=ShortMemory)
    """How gates went on the commits that tasks began with."""
    max_time: float | None = None
    """Seconds that the run may take."""
    budget_usd: float | None = None
    """What the run may cost, as far as the agents say."""
    seen: Callable[[str, str], None] = field(default=lambda _task, _line: None)

    @property
    def dispatcher(self) -> Dispatcher:
        return self.dispatch(self)

    def checks(self, name: str) -> tuple[Check, ...]:
        """Return all that must hold after this task: its own checks, then the repository's gates."""
        return (*self.tasks[name].checks, *self.gates)

    def policy_of(self, name: str) -> Policy:
        """Return the profile that decides about this task."""
        forced = self.recovery is not None and recovers(self.tasks[name])
        return self.recovery if forced and self.recovery else self.policy

    def add(self, tasks: Iterable[Task]) -> None:
        """Take tasks in that were written into the plan."""
        timeout = self.config.verify.timeout
        for task in tasks:
            self.tasks[task.id] = timed(task, timeout)

    def helped(self, name: str, ask: Callable[[Remedies], T]) -> T | None:
        """Ask the remedies, which are no run's condition: a fault of ours inside of one is told, and the run goes on."""
        try:
            return ask(self.remedies)
        except UnstuckError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is, a night's work is worth more
            told = f"A remedy was left out, by a fault of unstuck: {type(error).__name__}: {one_line(str(error), 200)}"
            self.record.note(told, name)
            return None

    def command(self, name: str, line: str, slot: int, *, timeout: float | None, purpose: Purpose = "check") -> Command:
        """Return a line of the user's own code as a process: run as written, in the slot's root; of a script each line must hold."""
        own = own_first(line, self.workspace.path(slot), self.layout.root) if purpose == "check" else {}
        command = Command(
            argv=("bash", *(("-e",) if is_script(line) else ()), "-c", line),
            cwd=self.workspace.path(slot),
            log=self.layout.log(name),
            env={**self.environment(name, slot), **own},
            limits=TimeLimits(wall_clock=timeout or None),
        )
        return sandboxed(command, purpose, self.sandbox)

    def environment(self, name: str, slot: int) -> dict[str, str]:
        """Return what tells our processes from all others."""
        return {
            "UNSTUCK_RUN": self.run,
            "UNSTUCK_TASK": name,
            "UNSTUCK_SLOT": str(slot % self.spare if self.spare else slot),
        }


def used_up(kit: Kit) -> str:
    """Say which ceiling of the run is reached, if any, while there is work left."""
    state = kit.record.state
    if not state.open:
        return ""
    sessions = kit.policy.limits.run_executions(len(state.tasks))
    if kit.max_time is not None and kit.clock.now() - state.began > kit.max_time:
        return "The time limit of the run is reached."
    if kit.budget_usd is not None and state.cost_usd >= kit.budget_usd:
        return f"The budget of ${kit.budget_usd:.2f} is used up: ${state.cost_usd:.2f} so far. Raise it with: unstuck resume --budget-usd N"
    if state.executions >= sessions:
        return f"The limit of {counted(sessions, 'session')} for one run is reached."
    return ""


def set_up(kit: Kit, name: str, slot: int, *, needs: str | None = None) -> Failure | None:
    """Run the set-up commands once in every fresh worktree; a stamp beside it says that they are done.

    With `needs`, what the files say that the project needs, they are run again when that changes.
    """
    commands = kit.config.workspace.setup
    stamp = kit.workspace.path(slot).with_suffix(".ready")
    done = "\n".join(commands if needs is None else (*commands, sha256(needs.encode(errors="replace")).hexdigest()))
    if not commands or kit.own_files.read(stamp) == done:
        return None
    loose, before = kit.workspace.untracked_files(slot), kit.workspace.altered_files(slot)
    for line in commands:
        kit.seen(name, f"set-up: {line}")
        ended = kit.processes.run(
            kit.command(name, line, slot, timeout=kit.config.workspace.setup_timeout, purpose="setup"),
            stop=kit.stop,
        )
        if ended.ending == "stopped":
            raise Interrupted
        if not ended.ok:
            return set_up_failed(line, ended)
    altered = [path for path in kit.workspace.altered_files(slot) if path not in before]
    kit.workspace.remember_setup(slot, loose, altered)
    if not altered:  # what it did to the tree itself is undone by the next `prepare`, and must be done again then
        kit.own_files.put(stamp, done)
    return None
