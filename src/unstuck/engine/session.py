"""Give a task to an agent: open an attempt, prepare its slot, run one session."""

from dataclasses import replace

from unstuck.engine.agent_probe import judge_empty_session
from unstuck.engine.context import TaskRun
from unstuck.journal.breakers import AGENT_PREFIX
from unstuck.journal.task_state import TaskState, failed_command
from unstuck.model.action import Amend
from unstuck.model.config import WALL_CLOCK, TimeLimits
from unstuck.model.errors import Interrupted
from unstuck.model.event import Acted, AttemptStarted, Classified, LineEvent, SessionEnded, SessionStarted
from unstuck.model.failure import Kind
from unstuck.model.landing import Landing
from unstuck.model.orders import SessionOrder
from unstuck.model.plan import END_TO_END_ID
from unstuck.policy.history import continued_session, recent_failures
from unstuck.policy.schedule import blocking_breaker, next_agent
from unstuck.remedies.learning import pattern
from unstuck.reports.briefs import brief, continuation_brief

POLL_SECONDS = 1.0


def open_attempt(run: TaskRun, task: TaskState) -> LineEvent:
    """Open the next attempt: on the tip, or on the tree that a retry keeps."""
    agents = run.services.agents
    agent = next_agent(run.state, task, run.now())
    agent = agent if agent in agents else next(iter(agents))
    if (breaker := run.state.breakers.get(f"{AGENT_PREFIX}{agent}")) is not None and not breaker.task:
        run.note(f"{agent} has rested and is tried again with task {run.task_id}.")
    waited_for_tasks = isinstance(task.last, Acted) and isinstance(task.last.action, Amend)
    waited_for_a_person = bool(task.attempts) and not task.tries and task.current.only_environment_failed
    if waited_for_tasks or waited_for_a_person:
        base, tree = _kept_work_on_tip(run, task)
    else:
        base, tree = task.base, task.seed
    return AttemptStarted(
        task=run.task_id,
        attempt=len(task.attempts) + 1,
        agent=agent,
        base=base or run.workspace.tip(),
        slot=run.slot,
        tree=tree,
    )


def _kept_work_on_tip(run: TaskRun, task: TaskState) -> tuple[str | None, str | None]:
    """Merge the task's kept work onto the tip and return (base, tree). On a conflict the task starts over."""
    tip = run.workspace.tip()
    if task.base is None or task.seed is None or tip == task.base:
        return task.base, task.seed
    kept = Landing(tree=task.seed, base=task.base, message=f"Work of task {run.task_id}\n", at=task.last_at)
    merged = run.workspace.merge(kept, tip)
    if isinstance(merged, str):
        return tip, merged
    clash = f"What task {run.task_id} had done clashes with what came meanwhile"
    files = ", ".join(merged.files[:5])
    sentence = f"{clash} ({files}): it begins anew. Its work is kept at {task.current.snapshot}."
    if sentence not in task.notes:
        run.note(sentence)
    return tip, None


def run_session(run: TaskRun, task: TaskState) -> LineEvent:
    """Run one session of the attempt's agent and return how it ended."""
    attempt = task.current
    _wait_for_agent(run, attempt.agent)
    run.dispatcher.expect(run.task_id, run.slot)
    if attempt.sessions == 0:
        run.workspace.prepare(run.slot, attempt.base, attempt.tree)
    elif not run.workspace.has_slot(run.slot):
        run.workspace.prepare(run.slot, attempt.base, _start_tree(task))
    if (failure := run.dispatcher.ready(run.task_id, run.slot, run.stop)) is not None:
        return Classified(task=run.task_id, failure=failure)
    session = attempt.sessions + 1
    run.record(SessionStarted(task=run.task_id, session=session))
    order = _with_brief(run, task, session_order(run, task, session))
    done = run.dispatcher.run(order, run.stop)
    for sentence in done.notes:
        run.note(sentence, meanwhile=True)
    if done.failure is not None:
        run.record(SessionEnded(task=run.task_id, outcome=done.outcome))
        return Classified(task=run.task_id, failure=done.failure)
    return judge_empty_session(run, order, done) or SessionEnded(task=run.task_id, outcome=done.outcome)


def session_order(run: TaskRun, task: TaskState, session: int) -> SessionOrder:
    """Return the order of a session, still without its brief."""
    attempt, limits = task.current, run.context.settings.limits
    return SessionOrder(
        run=run.context.run_id,
        task=run.task_id,
        attempt=attempt.number,
        session=session,
        agent=attempt.agent,
        slot=run.slot,
        base=attempt.base,
        tree=_start_tree(task),
        resume=continued_session(task),
        limits=TimeLimits(
            first_output=limits.first_output or None,
            silence=limits.silence or None,
            wall_clock=_wall_clock(run) or None,
        ),
        lasting=END_TO_END_ID.fullmatch(run.task_id) is not None,  # later steps look at what this one starts
    )


def _start_tree(task: TaskState) -> str | None:
    """Return the tree that the attempt's next session starts from. None is the base itself."""
    attempt = task.current
    return attempt.verdict.tree if attempt.verdict else attempt.tree


def _wall_clock(run: TaskRun) -> float:
    """Return the time limit of a session. The user's setting wins over the profile's. 0 is no limit."""
    setting = run.context.settings.limits.wall_clock
    return setting if setting is not None else run.context.policy.limits.wall_clock or WALL_CLOCK


def _wait_for_agent(run: TaskRun, agent: str) -> None:
    """Wait while another task waits for the same agent's fault to end: that task tries first."""
    while (breaker := blocking_breaker(run.state, run.task_id, agent, run.now())) is not None:
        if run.stop.deadline() is not None or breaker.needs_person:
            raise Interrupted
        cause = f"task {breaker.task}" if breaker.task else agent
        run.services.checks.show_activity(run.task_id, f"waits for {cause}, which met {breaker.kind}")
        run.services.clock.wait(POLL_SECONDS)


def _with_brief(run: TaskRun, task: TaskState, order: SessionOrder) -> SessionOrder:
    """Return the order with its brief: the whole one, and a short word for a session that is continued."""
    attempt = task.current
    task_as_written = replace(task, task=run.plan_task)
    checks = run.services.checks.checks_of(run.task_id)
    changed_files: tuple[str, ...] = ()
    if attempt.verdict and attempt.sessions:
        changed_files = run.workspace.changed_paths(attempt.base, attempt.verdict.tree)
    repaired_task = run.state.tasks.get(task.task.fixes or "")
    may_ask = run.services.plan_file.extensible
    text = brief(
        task_as_written, checks, run.context.guidance, changed_files, repaired_task, _advice(run, task), may_ask=may_ask
    )
    word = continuation_brief(task_as_written, checks) if order.resume else ""
    redactor = run.services.redactor
    return replace(order, brief=redactor.text(text), word=redactor.text(word))


def _advice(run: TaskRun, task: TaskState) -> tuple[str, ...]:
    """Return what the agent itself may do about the surroundings in which the last attempt failed."""
    failure = next((attempt.failure for attempt in reversed(task.attempts) if attempt.failure is not None), None)
    if failure is None:
        return ()
    shared = pattern(recent_failures(run.state), run.now())
    shared_advice = (f"{shared.advice} ({shared.because})",) if shared else ()
    if failure.kind in (Kind.HANG, Kind.TIMEOUT, Kind.KILLED):  # the session failed, so no check is to blame
        return shared_advice
    command, folder = failed_command(task), run.workspace.path(run.slot)
    advice = run.ask_remedies(lambda remedies: remedies.advise(failure, command, folder))
    return (*shared_advice, *(advice or ()))
