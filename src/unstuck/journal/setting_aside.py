"""Edge: Begin anew without losing anything: move the old journal and the files made from it out of the way."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from unstuck.git import Git, Repository
from unstuck.journal.run_state import RunState, fold
from unstuck.journal.sqlite import SqliteJournal, open_to_write
from unstuck.journal.storing import JOURNAL, journal_path
from unstuck.plans import Plan
from unstuck.ports import PlanFile

JOURNALS = (JOURNAL, f"{JOURNAL}-wal", f"{JOURNAL}-shm")
STATE = (
    "phases",
    "attempt_history.json",
    "build_commits.json",
    "config.json",
    "reports",
)


def begin_anew(repository: Repository, plan_file: PlanFile, plan: Plan, name: str) -> Plan:
    """Move the state to `.unstuck/old/<time>`; commits, snapshots and logs stay. Refused while a supervisor works.

    Returns the plan as it is to be run: what an old run of it (`name`) ticked off and never brought to the user's
    branch is open again, in the plan's file as well.
    """
    path = journal_path(repository)
    parts = [*(path.with_name(name) for name in JOURNALS), *(repository.ours / name for name in STATE)]
    if not any(part.exists() for part in parts):
        return plan
    lost: frozenset[str] = frozenset()
    if path.exists():
        journal = open_to_write(path)
        try:
            journal.claim("fresh")
            lost = frozenset(_never_came_home(journal, repository.git, name))
            journal.release()
        finally:
            journal.close()
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
