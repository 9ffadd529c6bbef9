"""Edge: Verification by hand, and the slot beside a run in which it, drafts, trials and the doctor work."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from unstuck.agents.agent_set import Agent
from unstuck.app.config_file import read_config
from unstuck.app.inspect import look
from unstuck.app.journal_location import claimed, has_runs, open_for_run, with_last_store
from unstuck.app.open_run import plan_of
from unstuck.app.services import refuse_inside_an_agent, second_checkout_offset, workspace_of
from unstuck.app.settings import gates_of, sandbox_of
from unstuck.diagnosis.rulebook import open_rulebook
from unstuck.engine.local_dispatcher import LocalDispatcher
from unstuck.engine.stops import RunStop
from unstuck.git.repository import Repository, find_repository
from unstuck.git.workspace import GitWorkspace
from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import TaskState
from unstuck.model.config import Config
from unstuck.model.errors import BadUsage, CannotWrite, Interrupted, Owned, Unavailable
from unstuck.model.event import GOAL
from unstuck.model.layout import Layout
from unstuck.model.orders import Subject
from unstuck.model.plan import Task
from unstuck.model.verdict import Check, Verdict
from unstuck.process.atomic_files import DiskFiles, write_atomically
from unstuck.process.clock import SystemClock
from unstuck.process.processes import LocalProcesses
from unstuck.redaction.redactor import redactor
from unstuck.reports.verdict_formats import junit_xml as junit_text
from unstuck.reports.verdict_formats import sarif_text
from unstuck.verify.check_cache import Memory, NoMemory, open_memory
from unstuck.verify.check_context import CheckContext, with_check_timeout
from unstuck.verify.checks import CleanCheckout, SetupFailed
from unstuck.verify.examining import examine

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
    unseen: tuple[str, ...] = ()
    """What of the checkout is in no commit, where HEAD was meant: nothing was said about it."""


def verify_by_hand(
    cwd: Path,
    name: str | None,
    files: Sequence[str],
    run_stop: RunStop,
    seen: Callable[[str, str], None],
    *,
    cache: bool = True,
) -> Verified:
    """Verify the last work on a task of the latest run, or a commit; without a name, HEAD.

    `files` are what the task of a commit would name in its Files. `stopper` ends it early; `seen` is told each set-up
    command and each check.
    """
    refuse_inside_an_agent()  # its supervisor verifies a session anyway
    repository, began = find_repository(cwd), time.monotonic()
    config = read_config(repository.root)
    state = look(cwd).state if name is not None and not files and has_runs(repository) else RunState()
    known = state.tasks.get(name or "")
    what, asked, plan = _of_task(state, known, repository) if known else _of_commit(repository, name or "HEAD", files)
    # Nobody claims anything here: an empty change is nothing to be held against anyone.
    task = replace(with_check_timeout(asked.task, config.verify.timeout), commit="")
    with free_slot(repository) as slot, told_as_errors():
        memory = open_memory(repository, config) if cache and config.verify.cache else NoMemory()
        gates = gates_of(config, repository.root)
        context = separate_check_context(
            repository, config, slot, run_stop, seen, memory=memory, task=task, gates=gates, plan=plan
        )
        verdict = examine(CleanCheckout(context=context, name=task.id, slot=slot), replace(asked, task=task))
    unseen = repository.uncommitted() if name is None else ()
    return Verified(what=what, verdict=verdict, seconds=time.monotonic() - began, unseen=unseen)


def _of_commit(repository: Repository, name: str, files: Sequence[str]) -> tuple[str, Subject, None]:
    """Take a commit against its first parent, as the work on a task that names `files`: the gates, and the audit."""
    git = repository.git
    found = git.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if found.returncode != 0:
        raise BadUsage(
            f"There is no task and no commit {name!r}.", hint="See tasks with `unstuck status`, commits with `git log`."
        )
    commit = found.stdout.strip()
    parent = git.attempt("rev-parse", "--verify", "--quiet", f"{commit}^1").stdout.strip() or commit
    title = git("log", "-1", "--format=%s", commit)
    task = Task(id=NAME, title=title, files=tuple(files))
    tree = git("rev-parse", f"{commit}^{{tree}}")
    return f"Commit {commit[:12]}: {title}", Subject(task=task, base=parent, tree=tree, claim="done"), None


def _of_task(state: RunState, known: TaskState, repository: Repository) -> tuple[str, Subject, str | None]:
    """Take the last work on a task again, as its run did; the task is the plan's, as the journal holds no secrets."""
    name, verdict = known.task.id, known.verdict
    if verdict is None:
        raise BadUsage(f"Task {name} has no work that could be verified.", hint="See `unstuck show " + name + "`.")
    written = (one for one in plan_of(state, repository.root).read().tasks if one.id == name)
    plan = state.started.plan if state.started and state.started.format != GOAL else None
    task = next(written, known.task)
    return (
        f"Task {name}: {known.task.title}",
        Subject(task=task, base=verdict.base, tree=verdict.tree, claim="done"),
        plan,
    )


def write_findings(verdict: Verdict, name: str, *, sarif: Path | None, junit: Path | None) -> None:
    """Write a verdict in the forms that other tools read."""
    try:
        if sarif is not None:
            write_atomically(sarif.absolute(), sarif_text(verdict.remarks))
        if junit is not None:
            write_atomically(junit.absolute(), junit_text("unstuck verify", [(name, verdict)]))
    except CannotWrite as error:
        raise BadUsage(error.message, hint="Name another file.") from error


def separate_check_context(
    repository: Repository,
    config: Config,
    slot: int,
    stop: RunStop,
    show_activity: Callable[[str, str], None],
    *,
    run_id: str = NAME,
    memory: Memory | None = None,
    task: Task | None = None,
    gates: Sequence[Check] = (),
    plan: str | None = None,
) -> CheckContext:
    """Return what checks outside of a run are run with, in a slot of their own."""
    placed = (plan,) if plan and not Path(plan).is_absolute() else ()
    return replace(
        bare_check_context(run_id, repository, config, workspace_of(repository, config, run_id, placed), slot),
        tasks={task.id: task} if task is not None else {},
        gates=tuple(gates),
        stop=stop,
        second_checkout_offset=second_checkout_offset(1),
        check_cache=memory or NoMemory(),
        show_activity=show_activity,
    )


def bare_check_context(
    run_id: str, repository: Repository, config: Config, workspace: GitWorkspace, slots: int
) -> CheckContext:
    """Return what checks are run with on this machine, without tasks, gates or a cache."""
    return CheckContext(
        run_id=run_id,
        settings=config,
        layout=Layout(repository.root, repository.store),
        gates=(),
        tasks={},
        state=RunState(),
        workspace=workspace,
        processes=LocalProcesses(),
        own_files=DiskFiles(),
        judge=open_rulebook(repository.root),
        redactor=redactor(os.environ),
        stop=RunStop(drain_seconds=0.0),
        first_checkout_slot=slots,
        second_checkout_offset=second_checkout_offset(slots),
        sandbox=sandbox_of(config, repository),
    )


def local_dispatcher(checks: CheckContext, agents: Mapping[str, Agent]) -> LocalDispatcher:
    """Return what runs sessions of these agents on this machine."""
    return LocalDispatcher(checks, agents, SystemClock())


@contextmanager
def told_as_errors() -> Iterator[None]:
    """End a command as people expect it where its work in a slot was interrupted, or could not begin."""
    try:
        yield
    except Interrupted as error:
        raise KeyboardInterrupt from error
    except SetupFailed as error:
        raise Unavailable(error.failure.summary, hint="See `setup` in `[workspace]`.") from error


@contextmanager
def free_slot(repository: Repository) -> Iterator[int]:
    """Take a slot that nobody else uses by hand."""
    repository.exclude_unstuck_folder()
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
        try:
            taken = journal.owner() is not None
        except CannotWrite:  # a store that cannot be asked says nothing against a run that is at work
            taken = True
        if taken:
            with free_slot(repository) as slot:
                yield slot
            return
        repository.exclude_unstuck_folder()
        with claimed(journal, NAME):
            yield Config().parallel
