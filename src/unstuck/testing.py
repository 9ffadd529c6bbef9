"""A world without disk, clock and processes, for tests of agents, policies and user interfaces.

A `World` holds a script: for each task, what its attempts leave behind. Nothing here touches a disk or a clock.

    world = World({"1.1": [Part(work="wrong"), Part(work="right")]})
    state = world.run([Task(id="1.1", title="…", checks=(Check(command="right"),))])
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from unstuck.agents.agent_set import Assignment
from unstuck.agents.claims import session_claim
from unstuck.diagnosis.diagnosis_result import Diagnosis
from unstuck.diagnosis.evidence import Evidence
from unstuck.engine.context import RunContext, Services
from unstuck.engine.local_dispatcher import PROBE, LocalDispatcher
from unstuck.engine.pool import Pool
from unstuck.engine.recorder import Recorder
from unstuck.engine.requests import RequestHandler
from unstuck.engine.stops import RunStop
from unstuck.journal.run_state import RunState, fold
from unstuck.model.changes import Change, Changes, Touch
from unstuck.model.config import Config
from unstuck.model.event import Entry, Event, Options, Request, RunStarted, Verb
from unstuck.model.landing import Conflict, Landing, Snapshot, Tree
from unstuck.model.layout import Layout
from unstuck.model.outcome import Ended, Outcome
from unstuck.model.plan import Insertion, Plan, Task
from unstuck.plans.tasks_md import read_tasks_md as read_tasks
from unstuck.policy.profiles import Policy, profile
from unstuck.policy.schedule import Experience
from unstuck.process.command import Command, Stop
from unstuck.redaction.redactor import redactor
from unstuck.remedies.toolbox import Remedies
from unstuck.verify.check_context import CheckContext

ENDED_WELL = Ended(ending="exited", exit_code=0)


@dataclass(frozen=True, slots=True)
class Part:
    """The result of one session: the content of its slot and how it ended."""

    work: str = ""
    ended: Ended = ENDED_WELL


@dataclass(slots=True)
class MemoryJournal:
    """A journal in memory. `cut` is called after every append: raise there to end the world."""

    cut: Callable[[int], None] = field(default=lambda _count: None)
    entries: list[Entry] = field(default_factory=list)
    left: list[Request] = field(default_factory=list)

    def append(self, event: Event) -> Entry:
        entry = Entry(len(self.entries) + 1, float(len(self.entries)), event)
        self.entries.append(entry)
        self.cut(entry.seq)
        return entry

    def read(self, run: str, after: int = 0) -> Iterator[Entry]:
        return iter(self.entries[after:])

    def requests(self, after: int) -> Sequence[Request]:
        return [request for request in self.left if request.id > after]

    def beat(self) -> None:
        return None


@dataclass(slots=True)
class FakeClock:
    """Time that passes only by waiting."""

    time: float = 0.0

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float) -> None:
        self.time += seconds


class Paper:
    """Files that keep nothing."""

    def put(self, path: Path, text: str) -> None:
        return None

    def append(self, path: Path, text: str) -> None:
        return None

    def read(self, path: Path) -> str | None:
        return None


class NoJudge:
    """Has no opinion: what the engine itself knows must do."""

    def diagnose(self, evidence: Evidence) -> Diagnosis | None:  # the port's signature
        return None

    def resets_at(self, diagnosis: Diagnosis, now: float) -> float | None:  # nothing was found
        return None


class Sheet:
    """A plan that keeps nothing. A task that is written into it reads back unchanged."""

    path = Path("plan")
    companions = ()
    spec_folder = False
    extensible = True

    def read(self) -> Plan:
        return Plan(path="plan", format="memory", tasks=())

    def mark(self, statuses: Mapping[str, str]) -> bool:
        return False

    def redone(
        self, contents: Mapping[str, bytes], insertions: Sequence[Insertion], tasks: Mapping[str, tuple[str, str]]
    ) -> Mapping[str, bytes]:
        return contents

    def insert(self, insertion: Insertion) -> tuple[Task, ...]:
        return tuple(
            next(iter(read_tasks(block, "plan", runnable=lambda _: True).tasks)) for block in insertion.blocks.values()
        )


@dataclass(frozen=True, slots=True)
class Stage:
    """Processes that are played, not run."""

    world: "World"

    def run(self, command: Command, *, stop: Stop, seen: Callable[[str], None] | None = None) -> Ended:
        return self.world.play(command)

    def prepare_command(self, env: Mapping[str, str]) -> None:
        return None

    def end_lasting(self) -> None:
        return None

    def end_leftovers(self, marker: str, but: str = "") -> int:
        return 0

    def unrelated_processes(self, folder: Path, since: float) -> tuple[str, ...]:
        return ()


@dataclass(slots=True)
class World:
    """Git, processes and agents as plain values. A tree is a string; a commit is a number in the log."""

    script: Mapping[str, Sequence[Part]]
    branch: list[str] = field(default_factory=lambda: ["base"])
    slots: dict[int, str] = field(default_factory=dict)
    snapshots: dict[str, str] = field(default_factory=dict)
    sessions: list[tuple[str, int]] = field(default_factory=list)
    name: str = "scripted"
    reports_cost: bool = False
    login: str = ""

    def run(
        self,
        tasks: Sequence[Task],
        *,
        journal: MemoryJournal | None = None,
        policy: Policy | None = None,
        parallel: int = 1,
        remedies: Remedies | None = None,
    ) -> RunState:
        """Run the tasks, or go on after a cut: what the journal holds decides."""
        journal = journal or MemoryJournal()
        state = fold(journal.entries)
        recorder = Recorder(journal, state, redactor({}))
        if not journal.entries:
            options = Options(agents=(self.name,), parallel=parallel)
            recorder.record(
                RunStarted(run="r", plan="p", format="f", base="0", branch=None, options=options, tasks=tuple(tasks))
            )
        run_stop, clock = RunStop(drain_seconds=0.0), FakeClock()
        checks = self._check_context(tasks, state, run_stop, parallel)
        context = RunContext(
            run_id="r",
            settings=Config(),
            policy=policy or profile("adaptive"),
            experience=Experience(),
            guidance={},
            layout=checks.layout,
        )
        agents = {self.name: self}
        services = Services(
            recorder=recorder,
            checks=checks,
            dispatcher=LocalDispatcher(checks, agents, clock),
            agents=agents,
            plan_file=Sheet(),
            clock=clock,
            remedies=remedies,
        )
        pool = Pool(
            context=context,
            services=services,
            journal=journal,
            run_files=self,
            requests=RequestHandler(recorder=recorder, journal=journal, workspace=self, stop_signal=run_stop),
            stop=run_stop,
            parallel=parallel,
        )
        recorder.record(pool.run())
        return state

    def _check_context(self, tasks: Sequence[Task], state: RunState, run_stop: RunStop, parallel: int) -> CheckContext:
        return CheckContext(
            run_id="r",
            settings=Config(),
            layout=Layout(Path("/nonexistent"), Path("/nonexistent")),
            gates=(),
            tasks={task.id: task for task in tasks},
            state=state,
            workspace=self,
            processes=Stage(self),
            own_files=Paper(),
            judge=NoJudge(),
            redactor=redactor({}),
            stop=run_stop,
            first_checkout_slot=parallel,
        )

    # --- an agent and its processes ----------------------------------------------------------------

    def command(self, assignment: Assignment) -> Command:
        argv = ("agent", assignment.task, str(assignment.attempt), str(assignment.slot))
        return Command(argv=argv, cwd=assignment.worktree, log=assignment.log)

    def outcome(self, ended: Ended, assignment: Assignment) -> Outcome:
        return Outcome(ended=ended, claim=session_claim(ended))

    def play(self, command: Command) -> Ended:
        """Play a session, or evaluate a check: its line must be in the worktree's content."""
        program, *rest = command.argv
        if program == "agent" and rest[0] in (PROBE, "--version"):
            return Ended(ending="exited", exit_code=0)
        if program == "agent":
            task, attempt, slot = rest[0], int(rest[1]), int(rest[2])
            parts = self.script.get(task, [Part()])
            part = parts[min(attempt, len(parts)) - 1]
            self.sessions.append((task, attempt))
            self.slots[slot] = f"{self.slots[slot]} {part.work}".strip()
            return part.ended
        holds = rest[-1] in self.slots[int(command.cwd.name)].split()
        return Ended(ending="exited", exit_code=0 if holds else 1)

    # --- git -----------------------------------------------------------------------------------------

    def open_branch(self, base: str) -> bool:
        return False

    def tip(self) -> str:
        return str(len(self.branch) - 1)

    def path(self, slot: int) -> Path:
        return Path(str(slot))

    def prepare(self, slot: int, base: str, tree: str | None = None, *, clean: bool = False) -> Path:
        self.slots[slot] = tree if tree is not None else self.branch[int(base)]
        return self.path(slot)

    def remember_setup(self, slot: int, before: Sequence[str], altered: Sequence[str]) -> None:
        return None

    def untracked_files(self, slot: int) -> tuple[str, ...]:
        return ()

    def altered_files(self, slot: int) -> tuple[str, ...]:
        return ()

    def tree_with_paths(self, base: str, tree: str, paths: Sequence[str]) -> str:
        return tree if paths else self.branch[int(base)]

    def has_slot(self, slot: int) -> bool:
        return slot in self.slots

    def write_tree(self, slot: int, base: str) -> Tree:
        return Tree(id=self.slots[slot])

    def snapshot(self, slot: int, name: str) -> Snapshot | None:
        self.snapshots[name] = self.slots[slot]
        return Snapshot(ref=name, commit=self.slots[slot])

    def changed_paths(self, base: str, tree: str) -> tuple[str, ...]:
        return () if self.branch[int(base)] == tree else ("file",)

    def summarize_changes(self, base: str, tree: str) -> Changes:
        return Changes(modified=self.changed_paths(base, tree))

    def touches(self, base: str, tree: str, files: Sequence[str]) -> tuple[Touch, ...]:
        return ()

    def changes(self, base: str, tree: str) -> tuple[Change, ...]:
        old = self.branch[int(base)] if base.isdigit() else base
        return () if old == tree else (Change(path="work.py", old=old, new=tree),)

    def line_authors(self, path: str, commit: str, since: str) -> Sequence[tuple[str, str]]:
        return ()

    def tree_of(self, commit: str) -> str:
        return self.branch[int(commit)]

    def tree_files(self, tree: str) -> tuple[str, ...]:
        return ("file",)

    def merge(self, landing: Landing, tip: str) -> str | Conflict:
        added = [word for word in landing.tree.split() if word not in self.branch[int(landing.base)].split()]
        return " ".join([self.branch[int(tip)], *added])

    def land(self, landing: Landing) -> str | None:
        if landing.tree == self.branch[int(landing.base)]:
            return landing.base
        following = int(landing.base) + 1
        if following < len(self.branch):
            return str(following) if self.branch[following] == landing.tree else None
        self.branch.append(landing.tree)
        return self.tip()

    def history(self, commit: str, base: str) -> tuple[str, ...]:
        return tuple(str(number) for number in range(int(commit), int(base) - 1, -1))

    def merge_user_commit(self, commit: str, *, message: str, at: float) -> str | Conflict:
        return self.tip()

    def keep_commit(self, name: str, commit: str) -> Snapshot:
        return Snapshot(ref=name, commit=commit)

    def move_branch(self, commit: str, *, expected: str) -> None:
        del self.branch[int(commit) + 1 :]

    def note_repository_state(self) -> None:
        return None

    def finish_session(self, slot: int, base: str) -> tuple[str, ...]:
        return ()

    # --- files ---------------------------------------------------------------------------------------

    def write(self, state: RunState, changed: Sequence[str]) -> None:
        return None

    def redone(self, state: RunState, contents: Mapping[str, bytes]) -> Mapping[str, bytes]:
        return contents

    def edits(self, run: str, entries: Sequence[Entry]) -> Iterator[tuple[Verb, str, str]]:
        return iter(())
