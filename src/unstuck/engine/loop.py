"""Move one task from stage to stage until it rests.

Each stage is a function from the task's state to the next event about the task. The event is recorded before the next
stage begins. After a crash the journal is replayed and the task goes on here, at the same stage.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from unstuck.compat.keyword_lists import reclassified_by_auto_claude
from unstuck.diagnosis.classifying import classify, evidence_of
from unstuck.engine.act import act, requested_plan_change
from unstuck.engine.context import TaskRun, limit_reached
from unstuck.engine.land import check_with_landed, name_conflicting_task
from unstuck.engine.session import open_attempt, run_session, session_order
from unstuck.engine.verification import check_first, verify
from unstuck.journal.stages import Stage
from unstuck.journal.task_state import TaskState
from unstuck.model.action import Accept, Amend, Fix
from unstuck.model.errors import Interrupted
from unstuck.model.event import Acted, Classified, Decided, LineEvent, SessionEnded
from unstuck.policy.decision import decide, requires_missing
from unstuck.policy.history import history, replacements_did_work
from unstuck.policy.profiles import RETRY_CANNOT_HELP
from unstuck.policy.schedule import is_waiting, waits_for_siblings
from unstuck.verify.checks import SetupFailed, diagnosed, on_base


def advance(run: TaskRun) -> None:
    """Advance the task until it rests or the run is stopped. Safe to call again after a crash."""
    lock = run.services.landing_lock
    try:
        while (task := run.services.recorder.task(run.task_id)).stage is not Stage.REST:
            if task.stage in STARTS_WORK and _may_not_start_work(run):
                return
            if task.stage is Stage.OPEN and waits_for_siblings(run.state, run.task_id):
                return
            if is_waiting(task, run.now()):
                return  # the schedule starts the task again at its time, and others may use the slot meanwhile
            if task.stage not in KEEPS_LOCK:
                lock.release(run.task_id)
            elif not _may_act(run, task):
                return
            if task.stage is Stage.VERIFY:
                run.dispatcher.expect(run.task_id, run.slot)
            event = PERFORM[task.stage](run, task)
            run.record(event)
            if isinstance(event, Acted) and isinstance(event.action, Fix | Amend):
                return  # the schedule starts the task again when the new ones have landed
    except Interrupted:
        return
    finally:
        lock.release(run.task_id)


def _may_not_start_work(run: TaskRun) -> bool:
    """Return whether the run was asked to stop, or has reached one of its limits."""
    return run.stop.deadline() is not None or limit_reached(run.context, run.services) != ""


def _may_act(run: TaskRun, task: TaskState) -> bool:
    """Wait for the landing lock if the decision is to land. Return False if the run is stopped meanwhile."""
    decision = task.current.decision
    if task.stage is not Stage.ACT or decision is None or not isinstance(decision.action, Accept):
        return True
    place = run.state.places[run.task_id]
    return run.services.landing_lock.acquire(run.task_id, place, is_given_up=lambda: _is_over(run.stop.deadline()))


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


def reconcile(run: TaskRun, task: TaskState) -> LineEvent:
    """End a session whose supervisor died. The work that it left is verified like any other."""
    order = replace(session_order(run, task, task.current.sessions), begun=True)
    return SessionEnded(task=run.task_id, outcome=run.dispatcher.run(order, run.stop).outcome)


def classify_failure(run: TaskRun, task: TaskState) -> LineEvent:
    """Return what prevents landing, if anything."""
    attempt = task.current
    assert attempt.outcome is not None
    assert attempt.verdict is not None
    if task.accepted or is_repaired(run, task):
        return Classified(task=run.task_id, failure=None)
    evidence = evidence_of(attempt.outcome, attempt.verdict)
    diagnosis = diagnosed(run.checks, evidence, attempt.verdict.tree) if evidence else None
    failure = classify(attempt.outcome, attempt.verdict, diagnosis)
    if failure is not None and diagnosis is not None and failure.kind is diagnosis.kind:
        resets_at = run.services.checks.judge.resets_at(diagnosis, run.now())
        failure = replace(failure, resets_at=resets_at)
    try:
        failure = name_conflicting_task(run, task, failure) if failure else check_with_landed(run, task)
    except SetupFailed as error:
        failure = error.failure
    if failure is not None and run.policy.classifier != "unstuck":
        failure = reclassified_by_auto_claude(failure)
    return Classified(task=run.task_id, failure=failure)


def is_repaired(run: TaskRun, task: TaskState) -> bool:
    """Return whether a fix task landed all the work: the checks pass and nothing is left to change."""
    verdict = task.current.verdict
    if verdict is None or verdict.status != "pass" or not replacements_did_work(run.state, run.task_id):
        return False
    return not run.workspace.changed_paths(task.current.base, verdict.tree)


def choose(run: TaskRun, task: TaskState) -> LineEvent:
    """Decide what to do next."""
    if (decision := requested_plan_change(run, task)) is not None:
        return Decided(task=run.task_id, decision=decision)
    needs_green_base = task.current.failure is not None and run.policy.green_base
    past = history(
        run.state,
        run.task_id,
        _agents_to_switch_to(run),
        run.now(),
        extensible=run.services.plan_file.extensible,
        healthy_base=needs_green_base and _is_base_green(run, task),
        caused_by_work=_asked_for_by_own_change(run, task),
        wants_approval=_needs_approval(run, task),
        gates=[run.services.redactor.text(gate.command) for gate in run.services.checks.gates],
    )
    decision = decide(task.current.failure, past, run.policy, run.context.experience)
    return Decided(task=run.task_id, decision=decision)


def _is_base_green(run: TaskRun, task: TaskState) -> bool:
    """Return whether the gates pass at the attempt's base, so that it is as good as a landed commit."""
    base = task.current.base
    if base in run.state.green:
        return True
    checkout = run.checkout
    try:
        return all(on_base(checkout, gate, base).status == "pass" for gate in run.services.checks.gates)
    except SetupFailed:
        return False


def _asked_for_by_own_change(run: TaskRun, task: TaskState) -> bool:
    """Return whether the attempt's own change asks for what is missing."""
    failure, verdict = task.current.failure, task.current.verdict
    if failure is None or verdict is None or failure.kind not in RETRY_CANNOT_HELP:
        return False
    changes = run.workspace.changes(verdict.base, verdict.tree)
    return requires_missing(failure, [(change.old, change.new) for change in changes])


def _needs_approval(run: TaskRun, task: TaskState) -> bool:
    """Return whether the user wants to approve what would land. Where nothing changed, nothing lands."""
    started, verdict = run.state.started, task.current.verdict
    if started is None or verdict is None or "land" not in started.options.approve:
        return False
    return bool(run.workspace.changed_paths(verdict.base, verdict.tree))


def go_on(run: TaskRun, task: TaskState) -> LineEvent:
    """Go on after a wait. If a check met the fault, only that check runs again, else a session runs."""
    if not task.current.met_by_check:
        return run_session(run, task)
    return verify(run, task) if task.current.sessions else check_first(run, task)


def _agents_to_switch_to(run: TaskRun) -> tuple[str, ...]:
    """Return the agents that the user listed for the run, without those of single tasks."""
    started = run.state.started
    return started.options.agents if started is not None else tuple(run.services.agents)


PERFORM: Mapping[Stage, Callable[[TaskRun, TaskState], LineEvent]] = {
    Stage.OPEN: open_attempt,
    Stage.EXECUTE: check_first,
    Stage.RECONCILE: reconcile,
    Stage.VERIFY: verify,
    Stage.CLASSIFY: classify_failure,
    Stage.DECIDE: choose,
    Stage.ACT: act,
    Stage.WAIT: go_on,
}

KEEPS_LOCK = (Stage.VERIFY, Stage.CLASSIFY, Stage.DECIDE, Stage.ACT)
"""Stages in which a task keeps the landing lock: a merged tree is verified before the tip moves again."""
STARTS_WORK = (Stage.OPEN, Stage.EXECUTE, Stage.WAIT)
"""Stages that do not begin once the run was asked to stop, or has reached one of its limits."""
