"""Begin a run, or resume one: replay the journal, take in changes, and enter the ordinary loop.

Resuming is not a second way to run. Everything here ends with the same state and the same pool.
"""

import shlex
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from unstuck.engine.recorder import Recorder, redacted
from unstuck.engine.requests import RequestHandler
from unstuck.git.protocols import Workspace
from unstuck.journal.run_state import RunState
from unstuck.journal.task_state import SETTLED, TaskState
from unstuck.model.action import Amend, Append, Fix
from unstuck.model.errors import BadUsage, CheckpointGone, RunConflict
from unstuck.model.event import Decided, Entry, PlanChanged, Request, RunResumed, RunStarted, Verb
from unstuck.model.landing import Conflict, run_branch
from unstuck.model.plan import Plan, Task, members_of_joins
from unstuck.redaction.redactor import Redactor

BY_HAND = 0
"""Id of a request that stands for a person's edit of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDifference:
    """The difference between the plan and the one that the run began with."""

    changed: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.changed or self.added or self.removed)

    def __str__(self) -> str:
        parts = [("changed", self.changed), ("added", self.added), ("removed", self.removed)]
        return "; ".join(f"{verb}: {', '.join(names[:10])}" for verb, names in parts if names)


def begin(recorder: Recorder, workspace: Workspace, started: RunStarted) -> None:
    """Record the run and its plan, then give it a branch."""
    recorder.record(started)
    workspace.open_branch(started.base)


def take_up(recorder: Recorder, workspace: Workspace, requests: RequestHandler, *, user_head: str, at: float) -> None:
    """Resume a run: finish what was begun, merge the user's new commits, open a new epoch after a halt."""
    state = recorder.state
    started = state.started
    assert started is not None
    _restore_branch(recorder, workspace, started)
    requests.redo()
    tip = workspace.merge_user_commit(
        user_head, message=f"Merge the user's commits into unstuck/{started.run}\n", at=at
    )
    if isinstance(tip, Conflict):
        raise RunConflict(
            f"Your branch and {run_branch(started.run)} changed the same lines: {', '.join(tip.files[:5])}.",
            hint=f"Merge them by hand in a checkout of {run_branch(started.run)}, then `unstuck resume`.",
        )
    halted = state.ended is not None and state.ended.exit_code not in (75, 129, 130, 143)
    recorder.record(RunResumed(epoch=halted, tip=tip))


def _restore_branch(recorder: Recorder, workspace: Workspace, started: RunStarted) -> None:
    """Create the run's branch again if it is gone. Raise CheckpointGone if it was moved back."""
    tip = recorder.state.tip
    if workspace.open_branch(tip):
        recorder.note(
            f"The branch {run_branch(started.run)} was gone: it stands again where work last landed, at {tip[:12]}."
        )
    elif tip not in workspace.history(workspace.tip(), started.base):
        raise CheckpointGone(
            f"The branch {run_branch(started.run)} no longer holds all that landed: work last landed at {tip}.",
            hint=f"Bring it back with `git branch -f {run_branch(started.run)} {tip}`, then `unstuck resume`.",
        )


def plan_difference(state: RunState, tasks: Sequence[Task], redactor: Redactor) -> PlanDifference:
    """Return how the plan's tasks differ from those in the journal, which are redacted."""
    recorded = {name: task.task for name, task in state.tasks.items()}
    being_inserted = {new for task in state.tasks.values() for new in _tasks_being_inserted(task)} - recorded.keys()
    inserted = being_inserted.union(name for name, task in state.tasks.items() if task.inserted)
    before = dict(_texts(tuple(recorded.values()), inserted))
    plan_tasks = tuple(redacted(task, redactor) for task in tasks)
    now = {name: text for name, text in _texts(plan_tasks, inserted) if name not in being_inserted}
    return PlanDifference(
        changed=tuple(name for name in now if name in before and now[name] != before[name]),
        added=tuple(name for name in now if name not in before),
        removed=tuple(name for name in before if name not in now),
    )


def _tasks_being_inserted(task: TaskState) -> tuple[str, ...]:
    """Return the tasks of a decision that may be in the plan already, because the supervisor was killed there."""
    action = task.last.decision.action if isinstance(task.last, Decided) else None
    if isinstance(action, Amend | Append):
        return action.ids
    return (action.id,) if isinstance(action, Fix) else ()


def take_plan(requests: RequestHandler, plan: Plan, redactor: Redactor, *, accepted: bool) -> None:
    """Record a changed plan, if the user accepted the change. Unchanged tasks stay as they are."""
    recorder = requests.recorder
    change = plan_difference(recorder.state, plan.tasks, redactor)
    if not change:
        return
    if not accepted:
        again = f"unstuck run {shlex.quote(plan.path)}"
        raise BadUsage(
            f"The plan changed since the run began ({change}).",
            hint=f"Go on with the new text: `{again} --accept-plan-change`. Begin anew: `{again} --fresh`.",
        )
    for name in (*change.changed, *change.removed):
        requests.put_away(name)
    recorder.record(PlanChanged(tasks=tuple(replace(task, done=False) for task in plan.tasks), reopened=change.changed))


def note_change(recorder: Recorder, plan: Plan, redactor: Redactor) -> None:
    """Note that the plan was changed while the run worked by the old text."""
    state = recorder.state
    if plan.problems and not plan.tasks:
        why = f"{plan.problems[0].message} {plan.problems[0].hint}".strip()
        recorder.note(f"The plan can no longer be read, so what was done since is not marked in it. {why}")
    elif change := plan_difference(state, plan.tasks, redactor):
        landed = [name for name in change.changed if state.tasks[name].status == "complete"]
        way = [
            *(f"unstuck reset {name}" for name in landed),
            f"unstuck run {shlex.quote(plan.path)} --accept-plan-change",
        ]
        recorder.note(
            f"The plan changed while the run worked ({change}), which followed the old text. "
            f"To take the new one in: {' && '.join(way)}"
        )


def note_ticks(recorder: Recorder, plan: Plan, reopened: Container[str] = ()) -> None:
    """Note that a tick by hand settles nothing: the checks decide, and the box will show their result.

    `reopened` are tasks that a person opened again in another file. Their ticks were written by unstuck.
    """
    tasks = {name: task for name, task in recorder.state.tasks.items() if name not in reopened}
    done = [task.id for task in plan.tasks if task.done and task.id in tasks]
    ticked = [name for name in done if tasks[name].status not in SETTLED]
    if ticked:
        recorder.note(
            f"Ticked in the plan by hand: {', '.join(ticked[:10])}. The checks decide all the same. "
            f"To settle it without them: unstuck skip {ticked[0]}"
        )


def take_edits(requests: RequestHandler, edits: Sequence[tuple[Verb, str, str]]) -> frozenset[str]:
    """Carry out what a person changed in files of unstuck as requests. Return the tasks concerned."""
    for verb, task, how in edits:
        requests.carry_out(Request(id=BY_HAND, verb=verb, task=task, text=how), live=False)
    return frozenset(task for _, task, _ in edits)


def start_from(requests: RequestHandler, name: str | None, *, new: bool) -> None:
    """Open a task and all that follow it in the plan. In a new run, the tasks before it are skipped."""
    tasks = requests.recorder.state.tasks
    if name is None or name not in tasks:
        return
    names = list(tasks)
    first = names.index(name)
    how = f"asked for with --from {tasks[name].task.shown}"
    before = [earlier for earlier in names[:first] if new and tasks[earlier].status not in SETTLED]
    again = [later for later in names[first:] if _is_open_again(tasks[later], names[first:])]
    for verb, chosen in (("skip", before), ("reset", again)):
        for task in chosen:
            requests.carry_out(Request(id=BY_HAND, verb=cast("Verb", verb), task=task, text=how), live=False)


def _is_open_again(task: TaskState, names: Container[str]) -> bool:
    """Return whether a task must be done again with these. A landed fix of one of them stays done."""
    repaired = task.status == "complete" and task.task.fixes in names
    return not repaired and (task.status != "pending" or bool(task.attempts))


def unfinished(entries: Sequence[Entry]) -> bool:
    """Return whether a run has anything left to do."""
    for entry in reversed(entries):
        if entry.event.type == "run_ended":
            return entry.event.exit_code != 0
        if entry.event.type == "run_resumed" or (entry.event.type == "operated" and not entry.event.refused):
            return True
    return True


def _texts(tasks: Sequence[Task], inserted: Container[str]) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield the parts of each task that a person may have changed, but not its tick or place.

    The tasks that it waits for are one number, the same whether they are named one by one or as a join. Tasks that
    unstuck inserted do not count.
    """
    joins = {
        join: sum(hash(name) for name in names if name not in inserted)
        for join, names in members_of_joins(tasks).items()
    }
    for task in tasks:
        waits = sum(joins.get(name, hash(name)) for name in task.depends_on if name not in inserted)
        text = task.digest or task.body.partition("\n")[2]
        yield task.id, (task.title, waits, task.checks, task.files, task.commit, task.markers, text)
