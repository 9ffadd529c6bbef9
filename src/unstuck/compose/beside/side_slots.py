"""Edge: Slots beside those of runs, for whoever runs checks without being one: verification by hand, `init`, `doctor`, `draft`."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from unstuck.agents import agent
from unstuck.compose.fencing import fence_of
from unstuck.compose.fleets.stores import open_for_run, with_last_store
from unstuck.compose.runs import room_beside
from unstuck.config import Config
from unstuck.config_file import read_config
from unstuck.decide import Experience, profile
from unstuck.diagnosis import open_rulebook
from unstuck.errors import CannotWrite, Owned
from unstuck.git import GitWorkspace, Lender, Meanwhile, Placing, Repository, slots_folder
from unstuck.journal import Entry, Event, RunState, Store, redactor
from unstuck.line import Bench, Here, Layout, Recorder, Stopper
from unstuck.plans import Check, Insertion, Plan, Task
from unstuck.process import DiskDesk, LocalProcesses, SystemClock
from unstuck.verify import Memory, NoMemory

FIRST_SLOT, SLOTS = 900, 8
"""Worktrees of their own, so that a run beside it is not disturbed."""
NAME = "verify"
"""The name of the log, where no task is verified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What a workbench without a run is made of; `seen` is told each set-up command and each check."""

    repository: Repository
    config: Config
    stopper: Stopper
    seen: Callable[[str, str], None]
    memory: Memory = field(default_factory=NoMemory)
    run: str = NAME
    agents: tuple[str, ...] = ()

    def bench(self, slot: int, task: Task | None = None, gates: Sequence[Check] = (), plan: str | None = None) -> Bench:
        repository, config = self.repository, self.config
        redact = redactor(os.environ)
        return Bench(
            run=self.run,
            record=Recorder(Nowhere(), RunState(), redact),
            workspace=_workspace(repository, config, self.run, plan),
            processes=LocalProcesses(),
            agents={name: agent(name, config, repository.root) for name in self.agents},
            tasks={task.id: task} if task is not None else {},
            plan=NoPlan(),
            dispatch=Here,
            config=config,
            policy=profile("adaptive"),
            experience=Experience(),
            guidance={},
            gates=tuple(gates),
            layout=Layout(repository.root, repository.store),
            desk=DiskDesk(),
            redactor=redact,
            stop=self.stopper,
            clock=SystemClock(),
            judge=open_rulebook(repository.root),
            fence=fence_of(config, repository),
            spare=slot,
            beside=room_beside(1),
            memory=self.memory,
            seen=self.seen,
        )


def _workspace(repository: Repository, config: Config, run: str, plan: str | None) -> GitWorkspace:
    copy = (*config.workspace.copy, *((plan,) if plan and not Path(plan).is_absolute() else ()))
    return GitWorkspace(
        run=run,
        identity=repository.identity(),
        slots=slots_folder(repository, config.workspace.slots),
        lender=Lender(repository),
        meanwhile=Meanwhile(repository),
        place=Placing(root=repository.root, copy=copy, link=config.workspace.link),
    )


@contextmanager
def free_slot(repository: Repository) -> Iterator[int]:
    """Take a slot that nobody else uses by hand."""
    repository.exclude_ours()
    folder = repository.store / "slots"
    folder.mkdir(parents=True, exist_ok=True)
    for slot in range(FIRST_SLOT, FIRST_SLOT + SLOTS):
        with (folder / f"w{slot}.taken").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            yield slot
            return
    raise Owned(f"{SLOTS} verifications or drafts are at work already.", hint="Wait for one of them.")


@contextmanager
def first_checking_slot(repository: Repository) -> Iterator[int]:
    """Take the slot that a run begins to check in, so that it finds it set up; while one works here, another."""
    journal = open_for_run(repository, with_last_store(repository, read_config(repository.root)))
    try:
        if _taken(journal):
            with free_slot(repository) as slot:
                yield slot
            return
        repository.exclude_ours()
        journal.claim(NAME)
        try:
            yield Config().parallel
        finally:
            journal.release()
    finally:
        journal.close()


def _taken(journal: Store) -> bool:
    """Whether a run may be at work here; a store that cannot be asked says nothing against it."""
    try:
        return journal.owner() is not None
    except CannotWrite:
        return True


class Nowhere:
    """A journal that keeps nothing: verification by hand is no part of any run."""

    def append(self, event: Event) -> Entry:
        return Entry(0, time.time(), event)

    def read(self, run: str, after: int = 0) -> Iterator[Entry]:  # noqa: ARG002  # the port's signature
        return iter(())

    def requests(self, after: int) -> tuple[()]:  # noqa: ARG002  # as above
        return ()

    def beat(self) -> None:
        """Own nothing."""


class NoPlan:
    """A plan without tasks: nothing is ticked and nothing is added."""

    extensible = False
    companions = ()
    spec_folder = False
    path = Path()

    def read(self) -> Plan:
        return Plan(path="", format="none", tasks=())

    def mark(self, statuses: Mapping[str, str]) -> bool:  # noqa: ARG002  # the port's signature
        return False

    def insert(self, insertion: Insertion) -> tuple[Task, ...]:  # noqa: ARG002  # as above
        return ()
