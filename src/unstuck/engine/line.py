"""The straight line: move one task from stage to stage until it rests.

Every stage is a function from what is known about the task to the next fact about it. The fact is recorded before
the next stage begins, so a crash anywhere continues here, at the same stage, after replay.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from unstuck.core.attempt import Ended, Outcome
from unstuck.core.classify import classify, evidence
from unstuck.core.decide import decide
from unstuck.core.event import Acted, Classified, Decided, LineEvent, SessionEnded
from unstuck.core.history import history
from unstuck.core.stages import Stage
from unstuck.core.task_state import TaskState
from unstuck.engine.act import act
from unstuck.engine.bench import Bench, Interrupted
from unstuck.engine.execute import assign, open_attempt, run_session, wait_then_run
from unstuck.engine.limits import used_up
from unstuck.engine.verify import verify


def advance(bench: Bench, name: str, slot: int) -> None:
    """Advance the task until it rests or the run is stopped. Safe to call again after a crash."""
    while (task := bench.record.task(name)).stage is not Stage.REST:
        if task.stage in STARTS_WORK and (bench.stop.deadline() is not None or used_up(bench)):
            return
        try:
            event = PERFORM[task.stage](bench, task, slot)
        except Interrupted:
            return
        bench.record(event)
        if isinstance(event, Acted) and event.added:
            return  # the schedule starts the task again when the new ones have landed


def reconcile(bench: Bench, task: TaskState, slot: int) -> LineEvent:
    """End a session whose supervisor died: what it left behind is verified like any other work."""
    ended = Ended(ending="supervisor_died", tail="The supervisor died while this session ran.")
    agent, attempt = bench.agents.get(task.current.agent), task.current
    if agent is None:
        return SessionEnded(task=task.task.id, outcome=Outcome(ended=ended))
    outcome = agent.outcome(ended, assign(bench, task, slot, attempt.sessions))
    return SessionEnded(task=task.task.id, outcome=replace(outcome, claim="none", approach=""))


def judge(bench: Bench, task: TaskState, _slot: int) -> LineEvent:
    """Say what stands in the way of landing, if anything."""
    attempt = task.current
    assert attempt.outcome is not None
    assert attempt.verdict is not None
    if task.accepted or repaired(bench, task):
        return Classified(task=task.task.id, failure=None)
    closer = evidence(attempt.outcome, attempt.verdict)
    found = bench.judge.diagnose(closer) if closer else None
    failure = classify(attempt.outcome, attempt.verdict, found)
    if failure is not None and found is not None and failure.kind is found.kind:
        failure = replace(failure, resets_at=bench.judge.resets_at(found, bench.clock.now()))
    return Classified(task=task.task.id, failure=failure)


def repaired(bench: Bench, task: TaskState) -> bool:
    """Whether a fix task has done all of the work: it landed, the checks are green, and nothing is left to change."""
    verdict = task.current.verdict
    landed = any(bench.record.task(fix).status == "complete" for fix in task.fixes if fix in bench.record.state.tasks)
    green = verdict is not None and verdict.status == "pass"
    return landed and green and not bench.workspace.changed(task.current.base, verdict.tree if verdict else "")


def choose(bench: Bench, task: TaskState, _slot: int) -> LineEvent:
    """Decide what to do next."""
    name = task.task.id
    past = history(bench.record.state, name, _choices(bench), bench.clock.now(), extensible=bench.plan.extensible)
    decision = decide(task.current.failure, past, bench.policy_of(name), bench.experience)
    return Decided(task=name, decision=decision)


def _choices(bench: Bench) -> tuple[str, ...]:
    """Return the agents that a task may be switched to: those that the user listed, not those of single tasks."""
    started = bench.record.state.started
    return started.options.agents if started is not None else tuple(bench.agents)


PERFORM: Mapping[Stage, Callable[[Bench, TaskState, int], LineEvent]] = {
    Stage.OPEN: open_attempt,
    Stage.EXECUTE: run_session,
    Stage.RECONCILE: reconcile,
    Stage.VERIFY: verify,
    Stage.CLASSIFY: judge,
    Stage.DECIDE: choose,
    Stage.ACT: act,
    Stage.WAIT: wait_then_run,
}

STARTS_WORK = (Stage.OPEN, Stage.EXECUTE, Stage.WAIT)
"""Stages that are not begun once the run has been asked to stop, or has used up one of its limits."""
