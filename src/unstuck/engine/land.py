"""Land verified work on the run's branch, alone or merged with what landed meanwhile."""

from collections.abc import Callable
from dataclasses import replace

from unstuck.diagnosis.classifying import combined_failure, conflict, red
from unstuck.engine.context import TaskRun
from unstuck.journal.task_state import TaskState
from unstuck.model.action import Accept
from unstuck.model.changes import Touch
from unstuck.model.event import Acted, Classified, LineEvent, Rebased
from unstuck.model.failure import Failure
from unstuck.model.landing import Conflict, Landing
from unstuck.model.text import one_line
from unstuck.model.verdict import Check, CheckResult
from unstuck.verify.checks import ASKS_FOR_US, check_on

SUBJECT_CHARS = 72


def land(run: TaskRun, task: TaskState) -> LineEvent:
    """Put the verified tree on the run's branch. If the tip moved, merge onto it, and the merged tree is verified again."""
    verdict, decision = task.current.verdict, task.current.decision
    assert verdict is not None
    assert decision is not None
    landing = Landing(tree=verdict.tree, base=verdict.base, message=commit_message(run, task), at=task.last_at)
    if (commit := run.workspace.land(landing)) is not None:
        if commit == verdict.base:
            return Acted(task=run.task_id, action=decision.action)
        changes = run.workspace.summarize_changes(verdict.base, verdict.tree)
        return Acted(task=run.task_id, action=decision.action, commit=commit, changes=changes)
    tip = run.workspace.tip()
    merged = run.workspace.merge(landing, tip)
    if isinstance(merged, Conflict):
        failure = conflict(merged.files, both_sides(run, task, tip, merged.files))
        return Classified(task=run.task_id, failure=failure)
    return Rebased(task=run.task_id, base=tip, tree=merged)


def commit_message(run: TaskRun, task: TaskState) -> str:
    """Return the commit message: the plan's subject if it has one, and trailers that name run and task."""
    plan_task = run.plan_task
    subject = one_line(run.services.redactor.text(plan_task.commit or plan_task.title), SUBJECT_CHARS)
    action = task.current.decision.action if task.current.decision else None
    reason = action.because if isinstance(action, Accept) else ""
    accepted = [f"Accepted: {one_line(reason, 500)}", ""] if reason else []
    trailers = [
        f"Unstuck-Run: {run.context.run_id}",
        f"Unstuck-Task: {plan_task.id}",
        f"Unstuck-Attempt: {task.current.number}",
    ]
    return "\n".join([subject or f"Task {plan_task.id}", "", *accepted, *trailers]) + "\n"


def both_sides(run: TaskRun, task: TaskState, tip: str, files: tuple[str, ...]) -> tuple[Touch, ...]:
    """Return what this task and those that landed since its base did to the files in conflict."""
    verdict = task.current.verdict
    assert verdict is not None
    touches: list[Touch] = []
    for landed_task, commit in _landed_since(run, verdict.base, tip):
        landed = run.workspace.touches(f"{commit}^", commit, files)
        touches += [replace(touch, task=landed_task) for touch in landed]
    own = run.workspace.touches(verdict.base, verdict.tree, files)
    touches += [replace(touch, task=run.task_id) for touch in own]
    return tuple(sorted(touches, key=lambda touch: files.index(touch.file)))


def check_with_landed(run: TaskRun, task: TaskState) -> Failure | None:
    """Run the checks of the tasks that landed meanwhile on the merged tree. Return the first failure."""
    attempt = task.current
    if attempt.alone is None or attempt.verdict is None:
        return None
    checkout = run.checkout
    for landed_task, check in _checks_of_landed(run, attempt.alone.base, attempt.verdict.base):
        checkout.name = landed_task
        run.services.processes.prepare_command(run.services.checks.environment(landed_task, checkout.slot))
        result = check_on(checkout, check, attempt.verdict.base, attempt.verdict.tree)
        if result.status == "fail":
            return combined_failure(red(result), landed_task)
    return None


def _checks_of_landed(run: TaskRun, base: str, tip: str) -> list[tuple[str, Check]]:
    """Return the checks of the tasks that landed between two commits, without those that this task runs itself."""
    checks = run.services.checks
    own_commands = {check.command for check in checks.checks_of(run.task_id)}
    wanted: dict[str, tuple[str, Check]] = {}
    for landed_task, _ in _landed_since(run, base, tip):
        for check in checks.tasks[landed_task].checks:
            if ASKS_FOR_US in check.command:  # it means something else for every task
                wanted[f"{landed_task} {check.command}"] = landed_task, check
            elif check.command not in own_commands:
                wanted.setdefault(check.command, (landed_task, check))
    return list(wanted.values())


def name_conflicting_task(run: TaskRun, task: TaskState, failure: Failure) -> Failure:
    """Name the task with which the merged tree fails, where the work passed alone."""
    attempt = task.current
    if attempt.alone is None or attempt.verdict is None or attempt.verdict.status != "fail":
        return failure
    failed = next((result for result in attempt.verdict.results if result.status == "fail"), None)
    landed = _landed_since(run, attempt.alone.base, attempt.verdict.base)
    if failed is None or not landed:
        return failure
    check = Check(command=_command_as_written(run, failed), kind=failed.kind)
    index = _first_failing(len(landed), lambda number: _fails_at(run, task, landed[number][1], check))
    return combined_failure(failure, landed[index][0])


def _first_failing(count: int, fails: Callable[[int], bool]) -> int:
    """Return the first failing index by bisection. The last one is known to fail."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if fails(middle):
            high = middle
        else:
            low = middle + 1
    return high


def _fails_at(run: TaskRun, task: TaskState, commit: str, check: Check) -> bool:
    """Return whether the check fails on the task's own work merged onto a commit."""
    alone = task.current.alone
    assert alone is not None
    merged = run.workspace.merge(Landing(tree=alone.tree, base=alone.base, message="", at=0.0), commit)
    if isinstance(merged, Conflict):
        return True
    return check_on(run.checkout, check, commit, merged).status == "fail"


def _landed_since(run: TaskRun, base: str, tip: str) -> list[tuple[str, str]]:
    """Return the tasks that landed after `base`, oldest first, each with its commit."""
    task_of = {task.commit: name for name, task in run.state.tasks.items() if task.commit is not None}
    commits = reversed(run.workspace.history(tip, base)[:-1])
    return [(task_of[commit], commit) for commit in commits if commit in task_of]


def _command_as_written(run: TaskRun, result: CheckResult) -> str:
    """Return the check's command from the plan, because the journal's copy may lack a secret."""
    for check in run.services.checks.checks_of(run.task_id):
        if run.services.redactor.text(check.command) == result.command:
            return check.command
    return result.command
