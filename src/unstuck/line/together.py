"""Green alone is not green together: find out with whose work a task cannot stand, and name both.

Every task was verified on its own base. What landed since then is a row of commits that were all green; so where the
merged tree is red, one of them is the first with which this task is red, and halving the row finds it.
"""

from collections.abc import Callable
from dataclasses import replace

from unstuck.diagnosis import Failure, Touch, red, red_together
from unstuck.journal import CheckResult, TaskState
from unstuck.line.parts import Bench
from unstuck.plans import Check
from unstuck.ports import Conflict, Landing
from unstuck.verify import ASKS_FOR_US, Site, check_on


def both_sides(bench: Bench, task: TaskState, tip: str, files: tuple[str, ...]) -> tuple[Touch, ...]:
    """Say what this task and those that landed since its base did to the files in conflict."""
    verdict = task.current.verdict
    assert verdict is not None
    found: list[Touch] = []
    for name, commit in _landed_since(bench, verdict.base, tip):
        landed = bench.workspace.touches(f"{commit}^", commit, files)
        found += [replace(touch, task=name) for touch in landed]
    found += [replace(touch, task=task.task.id) for touch in bench.workspace.touches(verdict.base, verdict.tree, files)]
    return tuple(sorted(found, key=lambda touch: files.index(touch.file)))


def stands_together(bench: Bench, task: TaskState, slot: int) -> Failure | None:
    """Run the checks of the tasks that landed meanwhile on the merged tree; say whose is red now, if any is."""
    attempt = task.current
    if attempt.alone is None or attempt.verdict is None:
        return None
    landed = _landed_since(bench, attempt.alone.base, attempt.verdict.base)
    own = {check.command for check in bench.checks(task.task.id)}
    wanted: dict[str, tuple[str, Check]] = {}
    for name, _ in landed:
        for check in bench.tasks[name].checks:
            if ASKS_FOR_US in check.command:
                wanted[f"{name} {check.command}"] = name, check  # it means something else for every task
            elif check.command not in own:
                wanted.setdefault(check.command, (name, check))
    site = Site(bench=bench, name=task.task.id, slot=bench.spare + slot)
    for name, check in wanted.values():
        site.name = name
        result = check_on(site, check, attempt.verdict.base, attempt.verdict.tree, attempt.verdict.tree)
        if result.status == "fail":
            return red_together(red(result), name)
    return None


def with_partner(bench: Bench, task: TaskState, slot: int, failure: Failure) -> Failure:
    """Name the task with which a merged tree is red, where the work was green alone."""
    attempt = task.current
    if attempt.alone is None or attempt.verdict is None or attempt.verdict.status != "fail":
        return failure
    result = next((one for one in attempt.verdict.results if one.status == "fail"), None)
    landed = _landed_since(bench, attempt.alone.base, attempt.verdict.base)
    if result is None or not landed:
        return failure
    check = Check(command=_as_written(bench, task, result), kind=result.kind)
    place = _first_red(len(landed), lambda at: _is_red(bench, task, slot, landed[at][1], check))
    return red_together(failure, landed[place][0])


def _first_red(count: int, is_red: Callable[[int], bool]) -> int:
    """Halve the row: everything before the place returned is green, the last one is known to be red."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if is_red(middle):
            high = middle
        else:
            low = middle + 1
    return high


def _is_red(bench: Bench, task: TaskState, slot: int, commit: str, check: Check) -> bool:
    alone = task.current.alone
    assert alone is not None
    merged = bench.workspace.merge(Landing(tree=alone.tree, base=alone.base, message="", at=0.0), commit)
    if isinstance(merged, Conflict):
        return True
    site = Site(bench=bench, name=task.task.id, slot=bench.spare + slot)
    return check_on(site, check, commit, merged, merged).status == "fail"


def _landed_since(bench: Bench, base: str, tip: str) -> list[tuple[str, str]]:
    """List the tasks that landed after `base`, oldest first, each with its commit."""
    commits = {task.commit: name for name, task in bench.record.state.tasks.items() if task.commit is not None}
    passed = reversed(bench.workspace.history(tip, base)[:-1])
    return [(commits[commit], commit) for commit in passed if commit in commits]


def _as_written(bench: Bench, task: TaskState, result: CheckResult) -> str:
    """Return the check as the plan has it: the journal's copy may have lost a secret."""
    return next(
        (one.command for one in bench.checks(task.task.id) if bench.redactor.text(one.command) == result.command),
        result.command,
    )
