"""Do what was decided. Every action may be repeated: the decision is in the journal before it."""

from dataclasses import replace

from unstuck.agents.claims import read_statement
from unstuck.engine.context import TaskRun
from unstuck.engine.land import land
from unstuck.journal.task_graph import next_free_id
from unstuck.journal.task_state import TaskState, failed_command
from unstuck.model.action import Accept, Action, Amend, Append, Decision, Escalate, Fix, Halt, Switch
from unstuck.model.event import Acted, LineEvent
from unstuck.model.failure import AGENT_DOWN, Kind
from unstuck.model.plan import Insertion, Task
from unstuck.model.text import one_line
from unstuck.policy.plan_changes import (
    PlanRequest,
    RefusedRequest,
    exceeded_request_limit,
    fix_block,
    read_request,
    requested_task_block,
)

NOT_A_TOOL_CALL = frozenset({Kind.AGENT_MISSING, Kind.SETUP_FAILED, Kind.KILLED})
"""Faults of the environment that no tool call met."""
PROPOSED_CHECK = (
    "Task {new}'s agent proposes the check: {check}. It is not run, as an agent wrote it: {new} is checked by the gates, "
    "and with task {name} by the Verify of that. To have it run, write it into the plan as the Verify of {new}."
)


def act(run: TaskRun, task: TaskState) -> LineEvent:
    """Perform the task's last decision."""
    decision = task.current.decision
    assert decision is not None
    action = decision.action
    match action:
        case Accept():
            run.ask_remedies(lambda remedies: remedies.passed(run.workspace.path(run.slot)))
            return land(run, task)
        case Fix():
            return insert_fix_task(run, task, action)
        case Amend() | Append():
            return insert_requested_tasks(run, task, action)
        case Switch():
            if not _note_resting_agent(run, task, action):
                relieve_surroundings(run, task)
        case Escalate() | Halt():
            action = replace(action, asks=_question_of_remedies(run, task))
        case _:
            relieve_surroundings(run, task)
    return _keep_work(run, task, action)


def _note_resting_agent(run: TaskRun, task: TaskState, switch: Switch) -> bool:
    """Note that another agent takes over from one that is down. Return False if the agent is not down."""
    failure = task.current.failure
    if failure is None or failure.kind not in AGENT_DOWN:
        return False
    reason = one_line(failure.summary, 120)
    run.note(f"{task.current.agent} is set to rest ({reason}); {switch.agent} takes task {run.task_id} over.")
    return True


def _keep_work(run: TaskRun, task: TaskState, action: Action, added: tuple[Task, ...] = ()) -> LineEvent:
    """Keep the attempt's work under a snapshot ref and return the event of the action."""
    snapshot = run.workspace.snapshot(run.slot, str(task.last_seq))
    return Acted(task=run.task_id, action=action, snapshot=snapshot.ref if snapshot else None, added=added)


def _question_of_remedies(run: TaskRun, task: TaskState) -> str:
    """Return what to ask a person about the surroundings, where these are to blame. Empty if there is nothing to ask."""
    failure, outcome = task.current.failure, task.current.outcome
    if failure is not None and failure.kind is Kind.AUTH_FAILED:
        agent = run.services.agents.get(task.current.agent)
        login = agent.login if agent is not None else ""
        sentence = f"{task.current.agent} is not logged in. It said: {one_line(failure.says, 200)}"
        return f"{sentence}\nTo log in: {login}" if login else sentence
    if failure is None or failure.blame != "environment" or failure.kind in NOT_A_TOOL_CALL:
        return ""
    if (outcome is not None and outcome.denied) or not run.workspace.has_slot(run.slot):
        return ""
    command, folder = failed_command(task), run.workspace.path(run.slot)
    return run.ask_remedies(lambda remedies: remedies.question(failure, command, folder)) or ""


def relieve_surroundings(run: TaskRun, task: TaskState) -> None:
    """Do what is safe about the surroundings before the next attempt. Repeating it finds nothing to do."""
    failure = task.current.failure
    if failure is None or not run.workspace.has_slot(run.slot):
        return
    command, folder = failed_command(task), run.workspace.path(run.slot)
    for sentence in run.ask_remedies(lambda remedies: remedies.relieve(failure, command, folder)) or ():
        run.note(sentence)


def insert_fix_task(run: TaskRun, task: TaskState, fix: Fix) -> LineEvent:
    """Write the fix task into the plan and keep the failed work. Repeating it finds the task there."""
    block = fix_block(run.plan_task, fix, scope=run.context.settings.fixes.scope)
    added = run.services.plan_file.insert(Insertion(blocks={fix.id: block}, beside=run.task_id))
    run.services.checks.add_tasks(added)
    return _keep_work(run, task, fix, added)


# --- tasks that an agent asks for --------------------------------------------------------------------------


def requested_plan_change(run: TaskRun, task: TaskState) -> Decision | None:
    """Return the plan change that this attempt's agent asks for, if it is allowed. Each attempt gets one."""
    request = _plan_request(task)
    attempt = task.current.number
    if request is None or any(change.attempt == attempt for change in task.modifications):
        return None
    if isinstance(request, PlanRequest):
        ids = _new_ids(run, task, len(request.tasks))
        objection = _objection(run, task, request, ids)
        if not objection:
            action = _plan_action(request, ids, attempt)
            return Decision(action=action, reason=request.reason or "The agent asks for it.", rung="asked")
        request = RefusedRequest(objection)
    sentence = f"Task {run.task_id}'s agent asks to change the plan: refused, {request.because}."
    if sentence not in task.notes:
        run.note(sentence)
    return None


def insert_requested_tasks(run: TaskRun, task: TaskState, action: Amend | Append) -> LineEvent:
    """Write the tasks that the agent asked for into the plan. Repeating it finds them there."""
    request = _plan_request(task)
    assert isinstance(request, PlanRequest)
    checks = run.services.checks
    trusted_commands = {check.command for planned in list(checks.tasks.values()) for check in planned.checks}
    trusted_commands.update(gate.command for gate in checks.gates)
    original = run.plan_task if action.request == "ADD_FOLLOWUP" else None
    blocks: dict[str, str] = {}
    for new_id, proposal in zip(action.ids, request.tasks, strict=True):
        blocks[new_id], proposed_check = requested_task_block(new_id, proposal, trusted_commands, original)
        sentence = PROPOSED_CHECK.format(new=new_id, name=run.task_id, check=proposed_check)
        if proposed_check and sentence not in task.notes:
            run.note(sentence)
    before = action.request == "ADD_PREREQUISITE"
    added = run.services.plan_file.insert(Insertion(blocks=blocks, beside=run.task_id, before=before))
    checks.add_tasks(added)
    return _keep_work(run, task, action, added)


def _plan_request(task: TaskState) -> PlanRequest | RefusedRequest | None:
    outcome = task.current.outcome
    return read_request(outcome.words, task.task.id) if outcome is not None else None


def _new_ids(run: TaskRun, task: TaskState, count: int) -> tuple[str, ...]:
    taken = set(run.state.tasks)
    ids: list[str] = []
    for _ in range(count):
        new_id = next_free_id(run.task_id, len(task.fixes), taken)
        ids.append(new_id)
        taken.add(new_id)
    return tuple(ids)


def _objection(run: TaskRun, task: TaskState, request: PlanRequest, ids: tuple[str, ...]) -> str:
    """Return why the plan may not be changed like this, or an empty string."""
    if not run.services.plan_file.extensible:
        return "this plan takes no new tasks"
    if request.type != "ADD_FOLLOWUP" and task.current.failure is None and _claims_done(task):
        return "the task is done as it is"
    depth, parent = 0, task.amends
    while parent is not None:
        depth += 1
        parent = run.services.recorder.task(parent).amends
    limits = run.policy.limits
    return exceeded_request_limit(
        len(task.modifications), depth, ids, max_requests=limits.modifications, max_depth=limits.modification_depth
    )


def _claims_done(task: TaskState) -> bool:
    """Return whether the agent says in words that it is done. A good exit code alone is no such claim."""
    outcome = task.current.outcome
    return outcome is not None and read_statement(outcome.words, task.task.id).claim == "done"


def _plan_action(request: PlanRequest, ids: tuple[str, ...], attempt: int) -> Amend | Append:
    if request.type == "ADD_FOLLOWUP":
        return Append(ids=ids, attempt=attempt)
    return Amend(ids=ids, request=request.type, attempt=attempt)
