"""A journal of many tasks, written as a supervisor writes it, without the hours that the run would take."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from unstuck.app.journal_location import journal_path
from unstuck.git.repository import find_repository
from unstuck.journal.sqlite import SqliteJournal
from unstuck.model.action import Accept, Decision, Retry
from unstuck.model.event import (
    Acted,
    AttemptStarted,
    Classified,
    Decided,
    Event,
    Options,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Verified,
    encode,
)
from unstuck.model.failure import Failure, Kind
from unstuck.model.outcome import Ended, Outcome
from unstuck.model.plan import Task
from unstuck.model.verdict import CheckResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.project import Project

RUN = "20260101-abcdef"


def write_journal(project: "Project", tasks: int, attempts: int, noise: str) -> None:
    """Record a run in which every task landed at its last attempt, and everybody said as much as is ever kept."""
    path = journal_path(find_repository(project.root))
    SqliteJournal(path).close()
    head = project.git("rev-parse", "HEAD")
    plan = tuple(Task(id=f"1.{number}", title=f"Task {number}", body=noise) for number in range(1, tasks + 1))
    options = Options(agents=("nova",))
    started = RunStarted(
        run=RUN, plan="tasks.md", format="tasks.md", base=head, branch=None, options=options, tasks=plan
    )
    worked = (
        event
        for task in plan
        for attempt in range(1, attempts + 1)
        for event in _attempt(task.id, attempt, head, noise, lands=attempt == attempts)
    )
    rows = (
        (RUN, float(at), encode(event)) for at, event in enumerate((started, *worked, RunEnded(exit_code=0, reason="")))
    )
    with closing(sqlite3.connect(path)) as journal, journal:  # one force to the disk for all of them
        journal.executemany("INSERT INTO events (run, at, body) VALUES (?, ?, ?)", rows)


def _attempt(task: str, number: int, head: str, noise: str, *, lands: bool) -> "Iterator[Event]":
    ended = Ended(ending="exited", exit_code=0, seconds=90.0, tail=noise)
    red = CheckResult(command="make test", kind="test", ended=ended if lands else replace(ended, exit_code=1))
    failure = None if lands else Failure(kind=Kind.TEST_FAILED, summary="A test fails", detail=noise, error=noise[:200])
    action = Accept() if lands else Retry(hint="again")
    yield AttemptStarted(task=task, attempt=number, agent="nova", base=head, slot=0)
    yield SessionStarted(task=task, session=1)
    yield SessionEnded(task=task, outcome=Outcome(ended=ended, claim="done", approach="by hand", cost_usd=0.25))
    yield Verified(
        task=task, verdict=Verdict(status="pass" if lands else "fail", tree=head, base=head, results=(red, red))
    )
    yield Classified(task=task, failure=failure)
    yield Decided(task=task, decision=Decision(action=action, reason="so", rung="test_failed[0]"))
    yield Acted(task=task, action=action, commit=head if lands else None)
