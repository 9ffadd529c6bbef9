"""Edge: Do what was decided. Every act may be done again: the decision is in the journal before it."""

from collections.abc import Callable
from dataclasses import replace

from unstuck.agents.claims import statement
from unstuck.diagnosis.classifying import conflict, red, red_together
from unstuck.engine.context import Kit
from unstuck.journal.task_graph import next_free_id
from unstuck.journal.task_state import TaskState, failed_command
from unstuck.model.action import Accept, Action, Amend, Append, Decision, Escalate, Fix, Halt, Switch
from unstuck.model.changes import Touch
from unstuck.model.event import Acted, Classified, LineEvent, Rebased
from unstuck.model.failure import AGENT_DOWN, Failure, Kind
from unstuck.model.landing import Conflict, Landing
from unstuck.model.plan import Insertion, Task
from unstuck.model.text import one_line
from unstuck.model.verdict import Check, CheckResult
from unstuck.policy.plan_changes import (
    PlanRequest,
    RefusedRequest,
    exceeded_request_limit,
    fix_block,
    read_request,
    requested_task_block,
)
from unstuck.verify.checks import ASKS_FOR_US, Site, check_on

SUBJECT_CHARS = 72
NOT_SURROUNDINGS = frozenset({Kind.AGENT_MISSING, Kind.SETUP_FAILED, Kind.KILLED})
"""Faults of the environment that no tool call met."""
PROPOSED = (
    "Task {new}'s agent proposes the check: {check}. It is not run, as an agent wrote it: {new} is checked by the gates, "
    "and with task {name} by the Verify of that. To have it run, write it into the plan as the Verify of {new}."
)


def act(kit: Kit, task: TaskState, slot: int) -> LineEvent:
    """Perform the task's last decision."""
    decision = task.current.decision
    assert decision is not None
    action = decision.action
    match action:
        case Accept():
            kit.helped(task.task.id, lambda remedies: remedies.passed(kit.workspace.path(slot)))
            return land(kit, task)
        case Fix():
            return repair(kit, task, action, slot)
        case Amend() | Append():
            return amend(kit, task, action, slot)
        case Switch(agent=other) if task.current.failure is not None and task.current.failure.kind in AGENT_DOWN:
            why = one_line(task.current.failure.summary, 120)
            told = f"{task.current.agent} is set to rest ({why}); {other} takes task {task.task.id} over."
            kit.record.note(told, task.task.id)
        case Escalate() | Halt():
            action = replace(action, asks=_asked(kit, task, slot))
        case _:
            relieve(kit, task, slot)
    return _put_away(kit, task, slot, action)


def _put_away(kit: Kit, task: TaskState, slot: int, action: Action, added: tuple[Task, ...] = ()) -> LineEvent:
    """Keep the attempt's work under a ref of its own, whatever becomes of its slot."""
    snapshot = kit.workspace.snapshot(slot, str(task.last_seq))
    return Acted(task=task.task.id, action=action, snapshot=snapshot.ref if snapshot else None, added=added)


def _asked(kit: Kit, task: TaskState, slot: int) -> str:
    """Return what the remedies would ask a person, where the surroundings are to blame and not what the agent may do."""
    failure, outcome = task.current.failure, task.current.outcome
    if failure is not None and failure.kind is Kind.AUTH_FAILED:
        agent = kit.agents.get(task.current.agent)
        how = agent.login if agent is not None else ""
        said = f"{task.current.agent} is not logged in. It said: {one_line(failure.says, 200)}"
        return f"{said}\nTo log in: {how}" if how else said
    if failure is None or failure.blame != "environment" or failure.kind in NOT_SURROUNDINGS:
        return ""
    if (outcome is not None and outcome.denied) or not kit.workspace.has_slot(slot):
        return ""
    place = kit.workspace.path(slot)
    asked = kit.helped(task.task.id, lambda remedies: remedies.question(failure, failed_command(task), place))
    return asked or ""


def relieve(kit: Kit, task: TaskState, slot: int) -> None:
    """Do what is safe about the surroundings before the next attempt; doing it again finds nothing to do."""
    failure = task.current.failure
    if failure is not None and kit.workspace.has_slot(slot):
        name, command, place = task.task.id, failed_command(task), kit.workspace.path(slot)
        for sentence in kit.helped(name, lambda remedies: remedies.relieve(failure, command, place)) or ():
            kit.record.note(sentence, name)


def repair(kit: Kit, task: TaskState, fix: Fix, slot: int) -> LineEvent:
    """Write the fix task into the plan, and keep the failed work; doing it again finds it there."""
    name = task.task.id
    block = fix_block(kit.tasks[name], fix, scope=kit.config.fixes.scope)
    added = kit.plan.insert(Insertion(blocks={fix.id: block}, beside=name))
    kit.add(added)
    return _put_away(kit, task, slot, fix, added)


def land(kit: Kit, task: TaskState) -> LineEvent:
    """Put the verified tree on the run's branch, or merge it onto a tip that moved, to be verified again."""
    name, verdict, decision = task.task.id, task.current.verdict, task.current.decision
    assert verdict is not None
    assert decision is not None
    landing = Landing(tree=verdict.tree, base=verdict.base, message=message(kit, task), at=task.last_at)
    if (commit := kit.workspace.land(landing)) is not None:
        if commit == verdict.base:
            return Acted(task=name, action=decision.action)
        changes = kit.workspace.summarize_changes(verdict.base, verdict.tree)
        return Acted(task=name, action=decision.action, commit=commit, changes=changes)
    tip = kit.workspace.tip()
    merged = kit.workspace.merge(landing, tip)
    if isinstance(merged, Conflict):
        return Classified(task=name, failure=conflict(merged.files, both_sides(kit, task, tip, merged.files)))
    return Rebased(task=name, base=tip, tree=merged)


def message(kit: Kit, task: TaskState) -> str:
    """Write the commit's text: the plan's own subject where it has one, and trailers that say where it came from."""
    plan_task = kit.tasks[task.task.id]
    subject = one_line(kit.redactor.text(plan_task.commit or plan_task.title), SUBJECT_CHARS)
    trailers = [f"Unstuck-Run: {kit.run}", f"Unstuck-Task: {plan_task.id}", f"Unstuck-Attempt: {task.current.number}"]
    action = task.current.decision.action if task.current.decision else None
    because = action.because if isinstance(action, Accept) else ""
    accepted = [f"Accepted: {one_line(because, 500)}", ""] if because else []
    return "\n".join([subject or f"Task {plan_task.id}", "", *accepted, *trailers]) + "\n"


def asked_for(kit: Kit, task: TaskState) -> Decision | None:
    """Return the change of the plan that this attempt's agent asks for, if it is to be made; once per attempt."""
    found = _request(task)
    number = task.current.number
    if found is None or any(one.attempt == number for one in task.modifications):
        return None
    if isinstance(found, PlanRequest):
        ids = _ids(kit, task, len(found.tasks))
        because = _against(kit, task, found, ids)
        if not because:
            return Decision(
                action=_action(found, ids, number), reason=found.reason or "The agent asks for it.", rung="asked"
            )
        found = RefusedRequest(because)
    told = f"Task {task.task.id}'s agent asks to change the plan: refused, {found.because}."
    if told not in task.notes:
        kit.record.note(told, task.task.id)
    return None


def amend(kit: Kit, task: TaskState, action: Amend | Append, slot: int) -> LineEvent:
    """Write the tasks into the plan; doing it again finds them there."""
    name, found = task.task.id, _request(task)
    assert isinstance(found, PlanRequest)
    known = {check.command for one in list(kit.tasks.values()) for check in one.checks}
    known.update(gate.command for gate in kit.gates)
    blocks: dict[str, str] = {}
    follows = action.request == "ADD_FOLLOWUP"
    for new, proposal in zip(action.ids, found.tasks, strict=True):
        blocks[new], proposed = requested_task_block(new, proposal, known, kit.tasks[name] if follows else None)
        told = PROPOSED.format(new=new, name=name, check=proposed)
        if proposed and told not in task.notes:
            kit.record.note(told, name)
    before = action.request == "ADD_PREREQUISITE"
    added = kit.plan.insert(Insertion(blocks=blocks, beside=name, before=before))
    kit.add(added)
    return _put_away(kit, task, slot, action, added)


def _request(task: TaskState) -> PlanRequest | RefusedRequest | None:
    outcome = task.current.outcome
    return read_request(outcome.words, task.task.id) if outcome is not None else None


def _ids(kit: Kit, task: TaskState, count: int) -> tuple[str, ...]:
    taken = set(kit.record.state.tasks)
    ids: list[str] = []
    for _ in range(count):
        ids.append(next_free_id(task.task.id, len(task.fixes), taken))
        taken.add(ids[-1])
    return tuple(ids)


def _against(kit: Kit, task: TaskState, found: PlanRequest, ids: tuple[str, ...]) -> str:
    """Say what speaks against the change; empty if nothing does."""
    if not kit.plan.extensible:
        return "this plan takes no new tasks"
    if found.type != "ADD_FOLLOWUP" and task.current.failure is None and _says_done(task):
        return "the task is done as it is"
    depth, above = 0, task.amends
    while above is not None:
        depth, above = depth + 1, kit.record.task(above).amends
    limits = kit.policy_of(task.task.id).limits
    return exceeded_request_limit(
        len(task.modifications), depth, ids, max_requests=limits.modifications, max_depth=limits.modification_depth
    )


def _says_done(task: TaskState) -> bool:
    """Whether the agent says in so many words that it is done: to end well and ask for more is to say that it is not."""
    outcome = task.current.outcome
    return outcome is not None and statement(outcome.words, task.task.id).claim == "done"


def _action(found: PlanRequest, ids: tuple[str, ...], attempt: int) -> Amend | Append:
    if found.type == "ADD_FOLLOWUP":
        return Append(ids=ids, attempt=attempt)
    return Amend(ids=ids, request=found.type, attempt=attempt)


def both_sides(kit: Kit, task: TaskState, tip: str, files: tuple[str, ...]) -> tuple[Touch, ...]:
    """Say what this task and those that landed since its base did to the files in conflict."""
    verdict = task.current.verdict
    assert verdict is not None
    found: list[Touch] = []
    for name, commit in _landed_since(kit, verdict.base, tip):
        landed = kit.workspace.touches(f"{commit}^", commit, files)
        found += [replace(touch, task=name) for touch in landed]
    found += [replace(touch, task=task.task.id) for touch in kit.workspace.touches(verdict.base, verdict.tree, files)]
    return tuple(sorted(found, key=lambda touch: files.index(touch.file)))


def stands_together(kit: Kit, task: TaskState, slot: int) -> Failure | None:
    """Run the checks of the tasks that landed meanwhile on the merged tree; say whose is red now, if any is."""
    attempt = task.current
    if attempt.alone is None or attempt.verdict is None:
        return None
    landed = _landed_since(kit, attempt.alone.base, attempt.verdict.base)
    own = {check.command for check in kit.checks(task.task.id)}
    wanted: dict[str, tuple[str, Check]] = {}
    for name, _ in landed:
        for check in kit.tasks[name].checks:
            if ASKS_FOR_US in check.command:
                wanted[f"{name} {check.command}"] = name, check  # it means something else for every task
            elif check.command not in own:
                wanted.setdefault(check.command, (name, check))
    site = Site(kit=kit, name=task.task.id, slot=kit.spare + slot)
    for name, check in wanted.values():
        site.name = name
        kit.processes.prepare_command(kit.environment(name, site.slot))
        result = check_on(site, check, attempt.verdict.base, attempt.verdict.tree)
        if result.status == "fail":
            return red_together(red(result), name)
    return None


def with_partner(kit: Kit, task: TaskState, slot: int, failure: Failure) -> Failure:
    """Name the task with which a merged tree is red, where the work was green alone."""
    attempt = task.current
    if attempt.alone is None or attempt.verdict is None or attempt.verdict.status != "fail":
        return failure
    result = next((one for one in attempt.verdict.results if one.status == "fail"), None)
    landed = _landed_since(kit, attempt.alone.base, attempt.verdict.base)
    if result is None or not landed:
        return failure
    check = Check(command=_as_written(kit, task, result), kind=result.kind)
    place = _first_red(len(landed), lambda at: _is_red(kit, task, slot, landed[at][1], check))
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


def _is_red(kit: Kit, task: TaskState, slot: int, commit: str, check: Check) -> bool:
    alone = task.current.alone
    assert alone is not None
    merged = kit.workspace.merge(Landing(tree=alone.tree, base=alone.base, message="", at=0.0), commit)
    if isinstance(merged, Conflict):
        return True
    site = Site(kit=kit, name=task.task.id, slot=kit.spare + slot)
    return check_on(site, check, commit, merged).status == "fail"


def _landed_since(kit: Kit, base: str, tip: str) -> list[tuple[str, str]]:
    """List the tasks that landed after `base`, oldest first, each with its commit."""
    commits = {task.commit: name for name, task in kit.record.state.tasks.items() if task.commit is not None}
    passed = reversed(kit.workspace.history(tip, base)[:-1])
    return [(commits[commit], commit) for commit in passed if commit in commits]


def _as_written(kit: Kit, task: TaskState, result: CheckResult) -> str:
    """Return the check as the plan has it: the journal's copy may have lost a secret."""
    return next(
        (one.command for one in kit.checks(task.task.id) if kit.redactor.text(one.command) == result.command),
        result.command,
    )
