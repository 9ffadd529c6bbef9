"""Edge: The straight line: move one task from stage to stage until it rests.

Every stage is a function from what is known about the task to the next fact about it. The fact is recorded before
the next stage begins, so a crash anywhere continues here, at the same stage, after replay.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from unstuck.compat.keyword_lists import by_word_lists
from unstuck.diagnosis.classifying import classify, evidence_of
from unstuck.engine.act import act, asked_for, stands_together, with_partner
from unstuck.engine.context import Kit, used_up
from unstuck.engine.session import open_attempt, order_of, run_session
from unstuck.engine.stops import Interrupted
from unstuck.engine.verification import check_first, verify
from unstuck.journal.stages import Stage
from unstuck.journal.task_state import TaskState
from unstuck.model.action import Accept, Amend, Fix
from unstuck.model.event import Acted, Classified, Decided, LineEvent, SessionEnded
from unstuck.policy.decision import asks_for_it, decide
from unstuck.policy.history import done_by_others, history
from unstuck.policy.profiles import FUTILE
from unstuck.policy.schedule import waits, waits_for_siblings
from unstuck.verify.checks import NotSetUp, Site, diagnosed, on_base


def advance(kit: Kit, name: str, slot: int) -> None:
    """Advance the task until it rests or the run is stopped. Safe to call again after a crash."""
    try:
        while (task := kit.record.task(name)).stage is not Stage.REST:
            if task.stage in STARTS_WORK and (kit.stop.deadline() is not None or used_up(kit)):
                return
            if task.stage is Stage.OPEN and waits_for_siblings(kit.record.state, name):
                return
            if waits(task, kit.clock.now()):
                return  # the schedule starts it again at its time; others may have the room meanwhile
            if task.stage not in LANDS:
                kit.turn.give(name)
            elif not _may_act(kit, task):
                return
            if task.stage is Stage.VERIFY:
                kit.dispatcher.expect(name, slot)
            event = PERFORM[task.stage](kit, task, slot)
            kit.record(event)
            if isinstance(event, Acted) and isinstance(event.action, Fix | Amend):
                return  # the schedule starts the task again when the new ones have landed
    except Interrupted:
        return
    finally:
        kit.turn.give(name)


def _may_act(kit: Kit, task: TaskState) -> bool:
    """Wait for the turn to land, where that is what was decided; False if the run is stopped at once meanwhile."""
    decision = task.current.decision
    if task.stage is not Stage.ACT or decision is None or not isinstance(decision.action, Accept):
        return True
    place = kit.record.state.places[task.task.id]
    return kit.turn.take(task.task.id, place, given_up=lambda: _over(kit.stop.deadline()))


def _over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


def reconcile(kit: Kit, task: TaskState, slot: int) -> LineEvent:
    """End a session whose supervisor died: what it left behind is verified like any other work."""
    begun = replace(order_of(kit, task, slot, task.current.sessions), begun=True)
    return SessionEnded(task=task.task.id, outcome=kit.dispatcher.run(begun, kit.stop).outcome)


def judge(kit: Kit, task: TaskState, slot: int) -> LineEvent:
    """Say what stands in the way of landing, if anything."""
    attempt = task.current
    assert attempt.outcome is not None
    assert attempt.verdict is not None
    if task.accepted or repaired(kit, task):
        return Classified(task=task.task.id, failure=None)
    closer = evidence_of(attempt.outcome, attempt.verdict)
    found = diagnosed(kit, closer, attempt.verdict.tree) if closer else None
    failure = classify(attempt.outcome, attempt.verdict, found)
    if failure is not None and found is not None and failure.kind is found.kind:
        failure = replace(failure, resets_at=kit.judge.resets_at(found, kit.clock.now()))
    try:
        failure = stands_together(kit, task, slot) if failure is None else with_partner(kit, task, slot, failure)
    except NotSetUp as error:
        failure = error.failure
    if failure is not None and kit.policy_of(task.task.id).classifier != "unstuck":
        failure = by_word_lists(failure)
    return Classified(task=task.task.id, failure=failure)


def repaired(kit: Kit, task: TaskState) -> bool:
    """Whether a fix task has done all of the work: it landed, the checks are green, and nothing is left to change."""
    verdict = task.current.verdict
    green = verdict is not None and verdict.status == "pass"
    return (
        green
        and done_by_others(kit.record.state, task.task.id)
        and not kit.workspace.changed_paths(task.current.base, verdict.tree if verdict else "")
    )


def choose(kit: Kit, task: TaskState, slot: int) -> LineEvent:
    """Decide what to do next."""
    name = task.task.id
    if (asked := asked_for(kit, task)) is not None:
        return Decided(task=name, decision=asked)
    past = history(
        kit.record.state,
        name,
        _choices(kit),
        kit.clock.now(),
        extensible=kit.plan.extensible,
        healthy_base=task.current.failure is not None and kit.policy_of(name).green_base and _healthy(kit, task, slot),
        own_doing=_own_doing(kit, task),
        wants_approval=_wants_approval(kit, task),
        gates=[kit.redactor.text(gate.command) for gate in kit.gates],
    )
    decision = decide(task.current.failure, past, kit.policy_of(name), kit.experience)
    return Decided(task=name, decision=decision)


def _healthy(kit: Kit, task: TaskState, slot: int) -> bool:
    """Whether the gates are green at the commit that the attempt began with: it is as good as one that landed."""
    base = task.current.base
    if base in kit.record.state.green:
        return True
    site = Site(kit=kit, name=task.task.id, slot=kit.spare + slot)
    try:
        return all(on_base(site, gate, base).status == "pass" for gate in kit.gates)
    except NotSetUp:
        return False


def _own_doing(kit: Kit, task: TaskState) -> bool:
    """Whether what is missing is asked for by the attempt's own change."""
    failure, verdict = task.current.failure, task.current.verdict
    if failure is None or verdict is None or failure.kind not in FUTILE:
        return False
    changes = kit.workspace.changes(verdict.base, verdict.tree)
    return asks_for_it(failure, [(change.old, change.new) for change in changes])


def _wants_approval(kit: Kit, task: TaskState) -> bool:
    """Whether a person wants to approve what would land now; where nothing changed, nothing lands."""
    started, verdict = kit.record.state.started, task.current.verdict
    if started is None or verdict is None or "land" not in started.options.approve:
        return False
    return bool(kit.workspace.changed_paths(verdict.base, verdict.tree))


def go_on(kit: Kit, task: TaskState, slot: int) -> LineEvent:
    """Go on after a wait: what a check met concerns that check, so only that is done again; else a session is run."""
    again = verify if task.current.sessions else check_first
    return (again if task.current.met_by_check else run_session)(kit, task, slot)


def _choices(kit: Kit) -> tuple[str, ...]:
    """Return the agents that a task may be switched to: those that the user listed, not those of single tasks."""
    started = kit.record.state.started
    return started.options.agents if started is not None else tuple(kit.agents)


PERFORM: Mapping[Stage, Callable[[Kit, TaskState, int], LineEvent]] = {
    Stage.OPEN: open_attempt,
    Stage.EXECUTE: check_first,
    Stage.RECONCILE: reconcile,
    Stage.VERIFY: verify,
    Stage.CLASSIFY: judge,
    Stage.DECIDE: choose,
    Stage.ACT: act,
    Stage.WAIT: go_on,
}

LANDS = (Stage.VERIFY, Stage.CLASSIFY, Stage.DECIDE, Stage.ACT)
"""Stages through which a task keeps its turn to land: a merged tree is verified before the tip moves again."""
STARTS_WORK = (Stage.OPEN, Stage.EXECUTE, Stage.WAIT)
"""Stages that are not begun once the run has been asked to stop, or has used up one of its limits."""
