"""Edge: A bench for work outside of any run: a slot of its own, a journal that keeps nothing, a plan without tasks."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from unstuck.agents import agent
from unstuck.compose.gate_list import gates_of
from unstuck.compose.runs import room_beside
from unstuck.config import Config
from unstuck.decide import Experience, profile
from unstuck.diagnosis import open_rulebook
from unstuck.errors import Owned
from unstuck.git import GitWorkspace, Lender, Meanwhile, Placing, Repository, slots_folder
from unstuck.journal import Entry, Event, RunState, redactor
from unstuck.line import Bench, Layout, Recorder, Stopper
from unstuck.plans import Insertion, Plan, Task
from unstuck.ports import Fence, NoFence
from unstuck.process import DiskDesk, LocalProcesses, SystemClock
from unstuck.verify import NoMemory, open_memory

FIRST_SLOT, SLOTS = 900, 8
"""Slots of their own, so that a run beside it is not disturbed."""


def hand_bench(
    repository: Repository,
    config: Config,
    task: Task,
    *,
    slot: int,
    stopper: Stopper,
    seen: Callable[[str, str], None],
    run: str = "verify",
    agents: tuple[str, ...] = (),
    copy: tuple[str, ...] = (),
    fence: Fence | None = None,
    cache: bool = True,
) -> Bench:
    """Return a bench for one task of no run. `copy` is placed in its slot besides what the configuration says."""
    redact = redactor(os.environ)
    return Bench(
        run=run,
        record=Recorder(_Nowhere(), RunState(), redact),
        workspace=_workspace(repository, config, run, copy),
        processes=LocalProcesses(),
        agents={name: agent(name, config, repository.root) for name in agents},
        tasks={task.id: task},
        plan=_NoPlan(),
        config=config,
        policy=profile("adaptive"),
        experience=Experience(),
        guidance={},
        gates=gates_of(config, repository.root),
        layout=Layout(repository.root, repository.store),
        desk=DiskDesk(),
        redactor=redact,
        stop=stopper,
        clock=SystemClock(),
        judge=open_rulebook(repository.root),
        fence=fence or NoFence(),
        spare=slot,
        beside=room_beside(1),
        memory=open_memory(repository, config) if cache else NoMemory(),
        seen=seen,
    )


def _workspace(repository: Repository, config: Config, run: str, copy: tuple[str, ...]) -> GitWorkspace:
    return GitWorkspace(
        run=run,
        identity=repository.identity(),
        slots=slots_folder(repository, config.workspace.slots),
        lender=Lender(repository),
        meanwhile=Meanwhile(repository),
        place=Placing(root=repository.root, copy=(*config.workspace.copy, *copy), link=config.workspace.link),
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


class _Nowhere:
    """A journal that keeps nothing: work by hand is no part of any run."""

    def append(self, event: Event) -> Entry:
        return Entry(0, time.time(), event)

    def read(self, run: str, after: int = 0) -> Iterator[Entry]:  # noqa: ARG002  # the port's signature
        return iter(())

    def requests(self, after: int) -> tuple[()]:  # noqa: ARG002  # as above
        return ()

    def beat(self) -> None:
        """Own nothing."""


class _NoPlan:
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
