"""Do what was decided. Every act may be done again: the decision is in the journal before it."""

from unstuck.decide import Accept, Amend, Append, Continue, Fix, Retry, Rollback, Switch, Wait, fix_block
from unstuck.diagnosis import AGENT_DOWN, conflict
from unstuck.journal import Acted, Classified, LineEvent, Rebased, TaskState, failed_command
from unstuck.line.amending import amend
from unstuck.line.parts import Bench
from unstuck.line.together import both_sides
from unstuck.plans import Insertion
from unstuck.ports import Conflict, Landing
from unstuck.tell import one_line

SUBJECT_CHARS = 72


def act(bench: Bench, task: TaskState, slot: int) -> LineEvent:
    """Perform the task's last decision."""
    decision = task.current.decision
    assert decision is not None
    match decision.action:
        case Accept():
            return land(bench, task)
        case Fix():
            return repair(bench, task, decision.action, slot)
        case Amend() | Append():
            return amend(bench, task, decision.action, slot)
        case Switch(agent=other) if task.current.failure is not None and task.current.failure.kind in AGENT_DOWN:
            why = task.current.failure.summary
            bench.record.note(
                f"{task.current.agent} is set to rest ({one_line(why, 120)}); {other} takes task {task.task.id} over.",
                task.task.id,
            )
            snapshot = bench.workspace.snapshot(slot, str(task.last_seq))
            return Acted(task=task.task.id, action=decision.action, snapshot=snapshot.ref if snapshot else None)
        case _:
            relieve(bench, task, slot)
            snapshot = bench.workspace.snapshot(slot, str(task.last_seq))
            return Acted(task=task.task.id, action=decision.action, snapshot=snapshot.ref if snapshot else None)


def relieve(bench: Bench, task: TaskState, slot: int) -> None:
    """Do what is safe about the surroundings before the next attempt; doing it again finds nothing to do."""
    failure, decision = task.current.failure, task.current.decision
    goes_on = decision is not None and isinstance(decision.action, Retry | Continue | Rollback | Switch | Wait)
    if failure is not None and goes_on and bench.workspace.present(slot):
        for sentence in bench.remedies.relieve(failure, failed_command(task), bench.workspace.path(slot)):
            bench.record.note(sentence, task.task.id)


def repair(bench: Bench, task: TaskState, fix: Fix, slot: int) -> LineEvent:
    """Keep the failed work and write the fix task into the plan; doing it again finds it there."""
    name = task.task.id
    snapshot = bench.workspace.snapshot(slot, str(task.last_seq))
    block = fix_block(bench.tasks[name], fix, scope=bench.config.fixes.scope)
    added = bench.plan.insert(Insertion(blocks={fix.id: block}, beside=name))
    bench.add(added)
    return Acted(task=name, action=fix, snapshot=snapshot.ref if snapshot else None, added=added)


def land(bench: Bench, task: TaskState) -> LineEvent:
    """Put the verified tree on the run's branch, or merge it onto a tip that moved, to be verified again."""
    name, verdict, decision = task.task.id, task.current.verdict, task.current.decision
    assert verdict is not None
    assert decision is not None
    landing = Landing(tree=verdict.tree, base=verdict.base, message=message(bench, task), at=task.last_at)
    if (commit := bench.workspace.land(landing)) is not None:
        if commit == verdict.base:
            return Acted(task=name, action=decision.action)
        changes = bench.workspace.listed(verdict.base, commit)
        return Acted(task=name, action=decision.action, commit=commit, changes=changes)
    tip = bench.workspace.tip()
    merged = bench.workspace.merge(landing, tip)
    if isinstance(merged, Conflict):
        return Classified(task=name, failure=conflict(merged.files, both_sides(bench, task, tip, merged.files)))
    return Rebased(task=name, base=tip, tree=merged)


def message(bench: Bench, task: TaskState) -> str:
    """Write the commit's text: the plan's own subject where it has one, and trailers that say where it came from."""
    plan_task = bench.tasks[task.task.id]
    subject = one_line(bench.redactor.text(plan_task.commit or plan_task.title), SUBJECT_CHARS)
    trailers = [f"Unstuck-Run: {bench.run}", f"Unstuck-Task: {plan_task.id}", f"Unstuck-Attempt: {task.current.number}"]
    action = task.current.decision.action if task.current.decision else None
    because = action.because if isinstance(action, Accept) else ""
    accepted = [f"Accepted: {one_line(because, 500)}", ""] if because else []
    return "\n".join([subject or f"Task {plan_task.id}", "", *accepted, *trailers]) + "\n"
