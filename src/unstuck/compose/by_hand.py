"""Edge: Verification by hand, and the slot beside a run in which it, drafts, trials and the doctor work."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from unstuck.agents import agent
from unstuck.compose.looking import look
from unstuck.compose.opening import GoalFile, plan_of
from unstuck.compose.runs import refuse_inside_an_agent, room_beside, workspace_of
from unstuck.compose.stores import has_runs, open_for_run, with_last_store
from unstuck.compose.terms import fence_of, gates_of
from unstuck.config import Config
from unstuck.config_file import read_config
from unstuck.decide import Experience, profile
from unstuck.diagnosis import open_rulebook
from unstuck.errors import BadUsage, CannotWrite, Owned, Unavailable
from unstuck.git import Repository, find
from unstuck.journal import GOAL, Entry, Event, RunState, Store, Verdict, claimed, redactor
from unstuck.line import Bench, Here, Interrupted, Layout, Recorder, Stopper, timed
from unstuck.orders import Subject
from unstuck.plans import Check, Task
from unstuck.process import DiskDesk, LocalProcesses, SystemClock, put
from unstuck.tell import junit as junit_text
from unstuck.tell import sarif_text
from unstuck.verify import Memory, NoMemory, NotSetUp, Site, examine, open_memory

FIRST_SLOT, SLOTS = 900, 8
"""Worktrees of their own, so that a run beside it is not disturbed."""
NAME = "verify"
"""The name of the log, where no task is verified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was verified, and what came of it."""

    what: str
    verdict: Verdict
    seconds: float


@dataclass(slots=True)
class Verification:
    """One verification by hand; `stopper` ends it early. `seen` is told each set-up command and each check."""

    _cwd: Path
    _stopper: Stopper
    _seen: Callable[[str, str], None]
    cache: bool = True
    _repository: Repository = field(init=False)
    _config: Config = field(init=False)

    def __post_init__(self) -> None:
        refuse_inside_an_agent()  # its supervisor verifies a session anyway
        self._repository = find(self._cwd)
        self._config = read_config(self._repository.root)

    def of(self, name: str | None = None, files: Sequence[str] = ()) -> Verified:
        """Verify the last work on a task of the latest run, or a commit; without a name, HEAD.

        `files` are what the task of a commit would name in its Files.
        """
        if name is not None and not files and has_runs(self._repository):
            state = look(self._cwd).state
            if name in state.tasks:
                return self._of_task(state, name)
        return self._of_commit(name or "HEAD", files)

    def _of_commit(self, name: str, files: Sequence[str]) -> Verified:
        """Verify a commit against its first parent, as the work on a task that names `files`: the gates, and the audit."""
        git = self._repository.git
        found = git.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if found.returncode != 0:
            raise BadUsage(
                f"There is no task and no commit {name!r}.",
                hint="See tasks with `unstuck status`, commits with `git log`.",
            )
        commit = found.stdout.strip()
        parent = git.attempt("rev-parse", "--verify", "--quiet", f"{commit}^1").stdout.strip() or commit
        tree = git("rev-parse", f"{commit}^{{tree}}")
        title = git("log", "-1", "--format=%s", commit)
        task = Task(id=NAME, title=title, files=tuple(files))
        return self._examined(f"Commit {commit[:12]}: {title}", task, base=parent, tree=tree, plan=None)

    def _of_task(self, state: RunState, name: str) -> Verified:
        """Verify the last work on a task again, as its run did."""
        task = state.tasks[name]
        verdict = task.current.verdict if task.attempts else None
        if verdict is None:
            raise BadUsage(f"Task {name} has no work that could be verified.", hint="See `unstuck show " + name + "`.")
        what = f"Task {name}: {task.task.title}"
        plan = state.started.plan if state.started and state.started.format != GOAL else None
        return self._examined(what, self._as_written(state, task.task), base=verdict.base, tree=verdict.tree, plan=plan)

    def _as_written(self, state: RunState, task: Task) -> Task:
        """Take the task from the plan, where it still stands there: the journal holds no secrets."""
        written = plan_of(state, self._repository.root).read().tasks
        return next((one for one in written if one.id == task.id), task)

    def _examined(self, what: str, task: Task, *, base: str, tree: str, plan: str | None) -> Verified:
        repository, config = self._repository, self._config
        began = time.monotonic()
        # Nobody claims anything here: an empty change is nothing to be held against anyone.
        asked = replace(timed(task, config.verify.timeout), commit="")
        subject = Subject(task=asked, base=base, tree=tree, claim="done")
        with free_slot(repository) as slot:
            memory = open_memory(repository, config) if self.cache and config.verify.cache else NoMemory()
            side = Side(repository=repository, config=config, stopper=self._stopper, seen=self._seen, memory=memory)
            bench = side.bench(slot, asked, gates_of(config, repository.root), plan)
            with told_as_errors():
                verdict = examine(Site(bench=bench, name=task.id, slot=slot), subject)
        return Verified(what=what, verdict=verdict, seconds=time.monotonic() - began)


def write_findings(verdict: Verdict, name: str, *, sarif: Path | None, junit: Path | None) -> None:
    """Write a verdict in the forms that other tools read."""
    try:
        if sarif is not None:
            put(sarif.absolute(), sarif_text(verdict.remarks))
        if junit is not None:
            put(junit.absolute(), junit_text("unstuck verify", [(name, verdict)]))
    except CannotWrite as error:
        raise BadUsage(error.message, hint="Name another file.") from error


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
        placed = (plan,) if plan and not Path(plan).is_absolute() else ()
        return Bench(
            run=self.run,
            record=Recorder(Nowhere(), RunState(), redact),
            workspace=workspace_of(repository, config, self.run, placed),
            processes=LocalProcesses(),
            agents={name: agent(name, config, repository.root) for name in self.agents},
            tasks={task.id: task} if task is not None else {},
            plan=GoalFile(Path()),  # nothing of it is read, ticked or added to
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


@contextmanager
def told_as_errors() -> Iterator[None]:
    """End a command as people expect it where its work in a slot was interrupted, or could not begin."""
    try:
        yield
    except Interrupted as error:
        raise KeyboardInterrupt from error
    except NotSetUp as error:
        raise Unavailable(error.failure.summary, hint="See `setup` in `[workspace]`.") from error


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
    with closing(open_for_run(repository, with_last_store(repository, read_config(repository.root)))) as journal:
        if _taken(journal):
            with free_slot(repository) as slot:
                yield slot
            return
        repository.exclude_ours()
        with claimed(journal, NAME):
            yield Config().parallel


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
