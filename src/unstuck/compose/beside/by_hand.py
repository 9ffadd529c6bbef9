"""Edge: Verification by hand, composed: the same audit and the same checks as in a run, for any task or commit."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unstuck.compose.beside.side_slots import NAME, Side, free_slot
from unstuck.compose.fleets.stores import has_runs
from unstuck.compose.gate_list import gates_of
from unstuck.compose.looking import look
from unstuck.compose.opening import open_either
from unstuck.compose.runs import refuse_inside_an_agent
from unstuck.config_file import read_config
from unstuck.errors import BadUsage, CannotWrite, Unavailable
from unstuck.git import find
from unstuck.journal import GOAL, RunState, Verdict
from unstuck.line import Interrupted, Stopper, timed
from unstuck.orders import Subject
from unstuck.plans import Task
from unstuck.process import put
from unstuck.verify import NoMemory, NotSetUp, Site, examine, open_memory, sarif_text
from unstuck.verify import junit as junit_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was verified, and what came of it."""

    what: str
    verdict: Verdict
    seconds: float


class Verification:
    """One verification by hand; `stopper` ends it early."""

    def __init__(self, cwd: Path, *, cache: bool = True, seen: Callable[[str, str], None]) -> None:
        self._repository = find(cwd)
        self._config = read_config(self._repository.root)
        self._cache = cache and self._config.verify.cache
        self._seen = seen
        self.stopper = Stopper(drain=0.0)

    def of_commit(self, name: str, files: Sequence[str] = ()) -> Verified:
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

    def of_task(self, state: RunState, name: str) -> Verified:
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
        started = state.started
        assert started is not None
        known = {name: one.task.title for name, one in state.tasks.items()}
        root = self._repository.root
        written = open_either(root / started.plan, started.format, root=root, known=known).read().tasks
        return next((one for one in written if one.id == task.id), task)

    def _examined(self, what: str, task: Task, *, base: str, tree: str, plan: str | None) -> Verified:
        repository, config = self._repository, self._config
        began = time.monotonic()
        # Nobody claims anything here: an empty change is nothing to be held against anyone.
        asked = replace(timed(task, config.verify.timeout), commit="")
        subject = Subject(task=asked, base=base, tree=tree, claim="done")
        with free_slot(repository) as slot:
            memory = open_memory(repository, config) if self._cache else NoMemory()
            side = Side(repository=repository, config=config, stopper=self.stopper, seen=self._seen, memory=memory)
            bench = side.bench(slot, asked, gates_of(config, repository.root), plan)
            try:
                verdict = examine(Site(bench=bench, name=task.id, slot=slot), subject)
            except Interrupted as error:
                raise KeyboardInterrupt from error
            except NotSetUp as error:
                raise Unavailable(error.failure.summary, hint="See `setup` in `[workspace]`.") from error
        return Verified(what=what, verdict=verdict, seconds=time.monotonic() - began)


def verification(cwd: Path, *, seen: Callable[[str, str], None], cache: bool = True) -> Verification:
    """Open a verification by hand; a session of a run is refused, as its supervisor verifies it anyway.

    `seen` is told each set-up command and each check, as it starts and ends.
    """
    refuse_inside_an_agent()
    return Verification(cwd, cache=cache, seen=seen)


def verify(opened: Verification, cwd: Path, name: str | None = None, files: Sequence[str] = ()) -> Verified:
    """Verify the last work on a task of the latest run, or a commit; without a name, HEAD.

    `files` are what the task of a commit would name in its Files.
    """
    if name is not None and not files and has_runs(find(cwd)):
        state = look(cwd).state
        if name in state.tasks:
            return opened.of_task(state, name)
    return opened.of_commit(name or "HEAD", files)


def write_findings(verdict: Verdict, name: str, *, sarif: Path | None, junit: Path | None) -> None:
    """Write a verdict in the forms that other tools read."""
    try:
        if sarif is not None:
            put(sarif.absolute(), sarif_text(verdict.remarks))
        if junit is not None:
            put(junit.absolute(), junit_text("unstuck verify", [(name, verdict)]))
    except CannotWrite as error:
        raise BadUsage(error.message, hint="Name another file.") from error
