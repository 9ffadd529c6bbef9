"""Check the work ourselves, after every end of a session, in exactly the tree that would land."""

from unstuck.core.attempt import CheckResult, Verdict
from unstuck.core.event import Classified, LineEvent, Verified
from unstuck.core.plan import Check
from unstuck.core.task_state import TaskState
from unstuck.engine.bench import Bench, Interrupted
from unstuck.engine.execute import set_up

NO_CHECK = "the task has no command that could be run"


def verify(bench: Bench, task: TaskState, slot: int) -> LineEvent:
    """Run the task's checks and the repository's gates on what the worktree holds now."""
    name, attempt = task.task.id, task.current
    merged = attempt.tree if attempt.verdict is not None and attempt.verdict.base != attempt.base else None
    if merged is not None or not bench.workspace.present(slot):
        bench.workspace.prepare(slot, attempt.base, attempt.tree)
        if (failure := set_up(bench, name, slot)) is not None:
            return Classified(task=name, failure=failure)
    tree = bench.workspace.tree(slot, attempt.base)
    for sentence in tree.notes:
        if sentence not in task.notes:
            bench.record.note(sentence, name)
    results = tuple(run_check(bench, name, check, slot) for check in bench.checks(name))
    if not results:
        verdict = Verdict(status="inconclusive", tree=tree.id, base=attempt.base, reason=NO_CHECK)
    elif any(result.status == "fail" for result in results):
        verdict = Verdict(status="fail", tree=tree.id, base=attempt.base, results=results)
    else:
        turned = not _claimed(task) and _red_before(bench, task, slot)
        verdict = Verdict(status="pass", tree=tree.id, base=attempt.base, results=results, turned_green=turned)
    return Verified(task=name, verdict=verdict)


def run_check(bench: Bench, name: str, check: Check, slot: int) -> CheckResult:
    """Run one check to its end."""
    bench.seen(name, f"check: {check.command}")
    ended = bench.processes.run(bench.command(name, check.command, slot, timeout=check.timeout), stop=bench.stop)
    if ended.ending == "stopped":
        raise Interrupted
    return CheckResult(command=check.command, kind=check.kind, ended=ended)


def _claimed(task: TaskState) -> bool:
    outcome = task.current.outcome
    return outcome is not None and outcome.claimed


def _red_before(bench: Bench, task: TaskState, slot: int) -> bool:
    """Whether a check of the task's own fails on the base: then its green is work, whatever the session said."""
    name, spare = task.task.id, bench.spare + slot
    if not bench.tasks[name].checks:
        return False
    bench.workspace.prepare(spare, task.current.base)
    if set_up(bench, name, spare) is not None:
        return False
    return any(run_check(bench, name, check, spare).status == "fail" for check in bench.tasks[name].checks)
