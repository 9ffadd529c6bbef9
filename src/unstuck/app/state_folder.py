"""Edge: Where the journal and the logs lie: in the repository's git folder, shown in `.unstuck/`; old ones are taken over, or set aside to begin anew."""

import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from unstuck.compat.run_files import SHOWN
from unstuck.git.git_command import Git
from unstuck.git.repository import Repository
from unstuck.journal.run_state import RunState, fold
from unstuck.journal.sqlite import SqliteJournal, open_to_write
from unstuck.journal.store import Store
from unstuck.model.errors import CannotWrite, UnstuckError
from unstuck.model.plan import Plan
from unstuck.plans.plan_file import PlanFile
from unstuck.process.caller import Owner

JOURNAL = "journal.db"

MOVED = ("remedies.json", f"{JOURNAL}-wal", f"{JOURNAL}-shm", JOURNAL)
"""The journal itself comes last: until then all of this is done again."""
JOURNALS = (JOURNAL, f"{JOURNAL}-wal", f"{JOURNAL}-shm")
STATE = ("phases", "attempt_history.json", "build_commits.json", "config.json", "reports")


@contextmanager
def claimed(journal: Store, run: str) -> Iterator[Owner | None]:
    """Own a run, or a repository, for a while; yields the dead owner that was replaced, if any."""
    before = journal.claim(run)
    try:
        yield before
    finally:
        journal.release()


def journal_path(repository: Repository) -> Path:
    """Return where the journal is or will be; one that an older unstuck left in `.unstuck/` is moved there."""
    path, old = repository.store / JOURNAL, repository.unstuck_folder / JOURNAL
    if not old.is_file() or path.exists():
        return path
    if _has_owner(old):
        return old
    try:
        repository.store.mkdir(parents=True, exist_ok=True)
        for name in SHOWN:
            if (repository.unstuck_folder / name).is_dir() and not (repository.unstuck_folder / name).is_symlink():
                shutil.copytree(
                    repository.unstuck_folder / name, repository.store / name, symlinks=True, dirs_exist_ok=True
                )
                shutil.rmtree(repository.unstuck_folder / name)
        for name in MOVED:
            if (repository.unstuck_folder / name).exists():
                shutil.move(repository.unstuck_folder / name, repository.store / name)
    except OSError as error:
        raise CannotWrite(
            f"The journal {old} cannot be moved to {repository.store}: {error.strerror}.",
            hint="Make both folders writable, then try again.",
        ) from error
    return path


def _has_owner(path: Path) -> bool:
    """Whether an older unstuck is at work with this journal."""
    try:
        journal = SqliteJournal(path)
    except UnstuckError:
        return False
    with closing(journal):
        owner = journal.owner()
        return owner is not None and owner.is_alive(time.time())


def begin_anew(repository: Repository, plan_file: PlanFile, plan: Plan, name: str) -> Plan:
    """Move the state to `.unstuck/old/<time>`; commits, snapshots and logs stay. Refused while a supervisor works.

    Returns the plan as it is to be run: what an old run of it (`name`) ticked off and never brought to the user's
    branch is open again, in the plan's file as well.
    """
    path = journal_path(repository)
    parts = [*(path.with_name(name) for name in JOURNALS), *(repository.unstuck_folder / name for name in STATE)]
    if not any(part.exists() for part in parts):
        return plan
    lost: frozenset[str] = frozenset()
    if path.exists():
        with closing(open_to_write(path)) as journal, claimed(journal, "fresh"):
            lost = frozenset(_never_came_home(journal, repository.git, name))
    target = _new_folder(repository.store / "old")
    again = [task.id for task in plan.tasks if task.done and task.id in lost]
    plan_file.mark(dict.fromkeys(again, "pending"))
    for part in (part for part in parts if part.exists()):
        shutil.move(part, target / part.name)
    return replace(plan, tasks=tuple(replace(task, done=task.done and task.id not in lost) for task in plan.tasks))


def _never_came_home(journal: SqliteJournal, git: Git, plan: str) -> Iterator[str]:
    """Yield the tasks that landed in a run of the plan, and whose work is not on the user's branch."""
    landed, home = dict[str, None](), set[str]()
    for run in journal.runs():
        state = fold(journal.read(run))
        if state.started is not None and state.started.plan == plan:
            names = [name for name, task in state.tasks.items() if task.status == "complete" and task.commit]
            landed |= dict.fromkeys(names)
            home |= set(names) if _whole_run_is_home(git, state) else _tasks_on_branch(git, run)
    yield from (name for name in landed if name not in home)


def _whole_run_is_home(git: Git, state: RunState) -> bool:
    commit = state.home.commit if state.home else None
    return commit is not None and git.succeeds("merge-base", "--is-ancestor", commit, "HEAD")


def _tasks_on_branch(git: Git, run: str) -> set[str]:
    """Return the tasks of a run that the history of HEAD names: as they landed, or picked one by one."""
    trailer = "--format=%(trailers:key=Unstuck-Task,valueonly,separator=%x0A)"
    return set(git("log", "--fixed-strings", f"--grep=Unstuck-Run: {run}", trailer, "HEAD").split("\n")) - {""}


def _new_folder(old: Path) -> Path:
    """Make a folder named for the time; a second one in the same second gets a number."""
    now, number = time.strftime("%Y%m%d-%H%M%S"), 1
    while True:
        folder = old / (now if number == 1 else f"{now}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            return folder
