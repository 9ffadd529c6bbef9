"""Change the plan as an agent asks, within limits: its words become tasks, never commands."""

from unstuck.agents import statement
from unstuck.decide import Amend, Amendment, Append, Decision, Refused, amended_block, next_id, over_limit, read_request
from unstuck.journal import Acted, LineEvent, TaskState
from unstuck.line.parts import Bench
from unstuck.plans import Insertion


def asked_for(bench: Bench, task: TaskState) -> Decision | None:
    """Return the change of the plan that this attempt's agent asks for, if it is to be made; once per attempt."""
    found = _request(task)
    number = task.current.number
    if found is None or any(one.attempt == number for one in task.modifications):
        return None
    if isinstance(found, Amendment):
        ids = _ids(bench, task, len(found.proposals))
        because = _against(bench, task, found, ids)
        if not because:
            return Decision(
                action=_action(found, ids, number), reason=found.reason or "The agent asks for it.", rung="asked"
            )
        found = Refused(because)
    told = f"Task {task.task.id}'s agent asks to change the plan: refused, {found.because}."
    if told not in task.notes:
        bench.record.note(told, task.task.id)
    return None


def amend(bench: Bench, task: TaskState, action: Amend | Append, slot: int) -> LineEvent:
    """Write the tasks into the plan; doing it again finds them there."""
    name, found = task.task.id, _request(task)
    assert isinstance(found, Amendment)
    snapshot = bench.workspace.snapshot(slot, str(task.last_seq))
    known = {check.command for one in list(bench.tasks.values()) for check in one.checks}
    known.update(gate.command for gate in bench.gates)
    blocks: dict[str, str] = {}
    for new, proposal in zip(action.ids, found.proposals, strict=True):
        blocks[new], trusted = amended_block(new, proposal, bench.tasks[name], known)
        told = (
            f"Task {new} was proposed with a Verify of the agent's own, which is not run: it has that of task {name}."
        )
        if not trusted and told not in task.notes:
            bench.record.note(told, name)
    before = action.request == "ADD_PREREQUISITE"
    added = bench.plan.insert(Insertion(blocks=blocks, beside=name, before=before))
    bench.add(added)
    return Acted(task=name, action=action, snapshot=snapshot.ref if snapshot else None, added=added)


def _request(task: TaskState) -> Amendment | Refused | None:
    outcome = task.current.outcome
    return read_request(outcome.words, task.task.id) if outcome is not None else None


def _ids(bench: Bench, task: TaskState, count: int) -> tuple[str, ...]:
    taken = set(bench.record.state.tasks)
    ids: list[str] = []
    for _ in range(count):
        ids.append(next_id(task.task.id, len(task.fixes), taken))
        taken.add(ids[-1])
    return tuple(ids)


def _against(bench: Bench, task: TaskState, found: Amendment, ids: tuple[str, ...]) -> str:
    """Say what speaks against the change; empty if nothing does."""
    if not bench.plan.extensible:
        return "this plan takes no new tasks"
    if found.sort != "ADD_FOLLOWUP" and task.current.failure is None and _says_done(task):
        return "the task is done as it is"
    depth, above = 0, task.amends
    while above is not None:
        depth, above = depth + 1, bench.record.task(above).amends
    limits = bench.policy_of(task.task.id).limits
    return over_limit(len(task.modifications), depth, ids, most=limits.modifications, deepest=limits.modification_depth)


def _says_done(task: TaskState) -> bool:
    """Whether the agent says in so many words that it is done: to end well and ask for more is to say that it is not."""
    outcome = task.current.outcome
    return outcome is not None and statement(outcome.words, task.task.id).claim == "done"


def _action(found: Amendment, ids: tuple[str, ...], attempt: int) -> Amend | Append:
    if found.sort == "ADD_FOLLOWUP":
        return Append(ids=ids, attempt=attempt)
    return Amend(ids=ids, request=found.sort, attempt=attempt)
