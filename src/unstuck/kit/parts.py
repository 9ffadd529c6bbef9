"""Edge: What every stage works with: the ports, the settings of the run, its ceilings, its stop, the turn to land, and where things lie on disk."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from unstuck import ports
from unstuck.agents.assignment import Agent
from unstuck.diagnosis.classifying import set_up_failed
from unstuck.diagnosis.judge import Judge
from unstuck.git.protocols import Checkouts
from unstuck.kit.recorder import Recorder
from unstuck.model.config import Config, TimeLimits
from unstuck.model.errors import UnstuckError
from unstuck.model.failure import Failure
from unstuck.model.plan import Task, recovers
from unstuck.model.text import counted, one_line
from unstuck.model.verdict import Check
from unstuck.plans.plan_file import PlanFile
from unstuck.policy.experience import Experience
from unstuck.policy.profiles import Policy
from unstuck.process.atomic_files import OwnFiles
from unstuck.process.clock import Clock
from unstuck.process.command import Command, Processes, Purpose, Stop
from unstuck.process.sandbox import Fence, NoFence
from unstuck.redaction.redactor import Redactor
from unstuck.remedies.toolbox import Remedies
from unstuck.toolchain.shell import is_script
from unstuck.verify.check_cache import Memory, NoMemory, ShortMemory
from unstuck.verify.own_copies import own_first

SLICE_SECONDS = 0.25
T = TypeVar("T")


class Turn:
    """The right to land. A task keeps it while its merged tree is verified, so that the tip stands still meanwhile."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._holder: str | None = None
        self._waiting: dict[str, int] = {}

    def take(self, name: str, place: int, *, given_up: Callable[[], bool]) -> bool:
        """Wait for the turn; False if `given_up` says so first. Taking it twice is harmless."""
        with self._changed:
            self._waiting[name] = place
            try:
                while self._holder != name:
                    first = min(self._waiting, key=self._waiting.__getitem__)
                    if self._holder is None and first == name:
                        self._holder = name
                        break
                    if given_up():
                        return False
                    self._changed.wait(SLICE_SECONDS)
                return True
            finally:
                del self._waiting[name]
                self._changed.notify_all()

    def give(self, name: str) -> None:
        """Let the next one land; harmless for a task that has not the turn."""
        with self._changed:
            if self._holder == name:
                self._holder = None
                self._changed.notify_all()


class Interrupted(Exception):
    """The run was stopped in the middle of a stage; the stage is done again on resume."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a lifeless session turned out to mean: the agent's fault, one that another task met first, or nothing."""

    failure: Failure | None = None
    elsewhere: bool = False


@dataclass(slots=True)
class Probes:
    """What was found out about the agents of one run; one task at a time finds out, and the others learn from it."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _broken: dict[str, str] = field(default_factory=dict)
    """Who found out that an agent is broken."""
    _sound: set[tuple[str, str]] = field(default_factory=set)

    def found(self, task: str, agent: str, stands: Callable[[str], bool], look: Callable[[], Failure | None]) -> Found:
        """Look whether the agent is broken, unless that is known. `stands`: what that task found out still holds."""
        with self._lock:
            finder = self._broken.get(agent)
            if finder is not None and finder != task and stands(finder):
                return Found(elsewhere=True)
            if (agent, task) in self._sound:
                return Found()
            failure = look()
            if failure is None:
                self._sound.add((agent, task))
            else:
                self._broken[agent] = task
            return Found(failure=failure)


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
    dispatch: "Callable[[Kit], ports.Dispatcher]"
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
    fence: Fence = field(default_factory=NoFence)
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
    def dispatcher(self) -> ports.Dispatcher:
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
        return self.fence.around(command, purpose)

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


class Stopper:
    """Whether running work must end, and by when. Set from signal handlers, requests and limits."""

    def __init__(self, drain: float) -> None:
        self.drain = drain
        self._deadline: float | None = None
        self.reason = ""
        self.exit_code = 0

    def ask(self, reason: str, exit_code: int) -> None:
        """Start nothing new; give what runs the drain time. Asked again: end it at once."""
        now = time.monotonic()
        if self._deadline is None:
            self._deadline, self.reason, self.exit_code = now + self.drain, reason, exit_code
        else:
            self._deadline = now

    def at_once(self, reason: str, exit_code: int) -> None:
        self.ask(reason, exit_code)
        self._deadline = time.monotonic()

    def deadline(self) -> float | None:
        return self._deadline


class OneTask:
    """What reaches one running task from outside: the run's stop, a stop of its own, and messages to its session."""

    def __init__(self, run: Stop) -> None:
        self._run = run
        self.ended = False
        self.listening = False
        """Whether the session that runs takes messages."""
        self._hints: deque[str] = deque()

    def tell(self, hint: str) -> None:
        """Leave a message for the session that runs."""
        self._hints.append(hint)

    def hints(self) -> tuple[str, ...]:
        """Take all messages that were left."""
        return tuple(self._hints.popleft() for _ in range(len(self._hints)))

    def deadline(self) -> float | None:
        return 0.0 if self.ended else self._run.deadline()


def set_up(kit: Kit, name: str, slot: int, *, needs: str | None = None) -> Failure | None:
    """Run the set-up commands once in every fresh worktree; a stamp beside it says that they are done.

    With `needs`, what the files say that the project needs, they are run again when that changes.
    """
    commands = kit.config.workspace.setup
    stamp = kit.workspace.path(slot).with_suffix(".ready")
    done = "\n".join(commands if needs is None else (*commands, sha256(needs.encode(errors="replace")).hexdigest()))
    if not commands or kit.own_files.read(stamp) == done:
        return None
    loose, before = kit.workspace.loose(slot), kit.workspace.altered(slot)
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
    altered = [path for path in kit.workspace.altered(slot) if path not in before]
    kit.workspace.settle(slot, loose, altered)
    if not altered:  # what it did to the tree itself is undone by the next `prepare`, and must be done again then
        kit.own_files.put(stamp, done)
    return None
