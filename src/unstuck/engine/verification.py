"""Edge: Check the work ourselves, after every end of a session, in a clean checkout of exactly the tree that would land."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath

from unstuck.engine.context import Kit
from unstuck.engine.session import run_session
from unstuck.engine.stops import Interrupted
from unstuck.journal.task_state import AttemptState, TaskState
from unstuck.model.action import Amend
from unstuck.model.event import Classified, LineEvent, SessionEnded, Verified
from unstuck.model.failure import Failure
from unstuck.model.orders import Subject
from unstuck.model.outcome import Ended, Outcome
from unstuck.model.verdict import Verdict
from unstuck.report.verdict_formats import NOT_COUNTED, red_before, verdict_notes
from unstuck.toolchain.toolchains import manifest_files
from unstuck.verify.checks import NotSetUp, Site, hindered, on_base

NO_AGENT_NEEDED = Ended(ending="exited", exit_code=0, tail="The checks pass as it is: no agent was needed.")
CHECKED_AGAIN = "The work of attempt {} is there: only its checks are run again."
BASE = "base"
"""The log's name for checks before any task."""
NOTHING_TO_RUN = "An agent is called, because no check can say whether there is anything to do."


def verify(kit: Kit, task: TaskState, slot: int) -> LineEvent:
    """Say what the audit, the task's checks and the repository's gates make of what the worktree holds now."""
    name, outcome = task.task.id, task.current.outcome
    subject = Subject(
        task=kit.tasks[name],
        base=task.current.base,
        tree=_what_would_land(kit, task, slot),
        claim=outcome.claim if outcome else "none",
        last_message=outcome.words if outcome else "",
        alone=outcome is not None and (outcome.ended.ok or outcome.claimed),
        start="" if _merged(task.current) else task.current.tree or "",
    )
    try:
        verdict = kit.dispatcher.verify(subject, slot, kit.stop)
    except NotSetUp as error:
        return Classified(task=name, failure=error.failure)
    for sentence in (*verdict_notes(verdict), *_needs_set_up(kit, verdict)):
        _note(kit, name, sentence)
    return Verified(task=name, verdict=verdict)


def look_before(kit: Kit) -> None:
    """Run the set-up and the gates before the first session: what is red already is told once, and guards nothing that was.

    What cannot even begin is met by the first task, before anybody pays for it; see `check_first`.
    """
    site = Site(kit=kit, name=BASE, slot=kit.spare)
    setup = kit.config.workspace.setup
    base = kit.workspace.tip() if kit.gates or setup else ""
    try:
        if setup:
            site.stand(base)
        befores = [(gate, on_base(site, gate, base)) for gate in kit.gates]
    except (NotSetUp, Interrupted):
        return  # the first task meets the same in its own worktree, and tells it with what to do
    for gate, before in befores:
        if before.status == "fail" and not hindered(kit, gate, before, base):
            sentence = red_before(before)
            if kit.redactor.text(sentence) not in kit.record.state.notes:
                kit.record.note(sentence)


def check_first(kit: Kit, task: TaskState, slot: int) -> LineEvent:
    """Run a session; where there may be nothing to do, an agent is called only if the checks fail."""
    name, attempt = task.task.id, task.current
    if not attempt.sessions and (failure := _cannot_begin(kit, task, slot)) is not None:
        kit.workspace.prepare(slot, attempt.base, attempt.tree)
        return Classified(task=name, failure=failure)
    only_checks = kit.tasks[name].only_checks and attempt.number == task.epoch_from + 1
    there = _work_is_there(task)
    if attempt.sessions or not (only_checks or there or _split_before(task)):
        return run_session(kit, task, slot)
    kit.workspace.prepare(slot, attempt.base, attempt.tree)
    if there is not None and not task.hint:  # what a person says is for the agent, unless the checks pass without it
        return SessionEnded(task=name, outcome=there)
    tree = attempt.tree if there and attempt.tree else kit.workspace.tree_of(attempt.base)
    subject = Subject(task=kit.tasks[name], base=attempt.base, tree=tree, claim="done")
    try:
        verdict = kit.dispatcher.verify(subject, slot, kit.stop)
    except NotSetUp as error:
        return Classified(task=name, failure=error.failure)
    if verdict.status == "pass":
        return SessionEnded(task=name, outcome=there or Outcome(ended=NO_AGENT_NEEDED, claim="done"))
    red = [result.command for result in verdict.results if result.status == "fail"]
    _note(kit, name, f"An agent is called, because this fails: {'; '.join(red)}" if red else NOTHING_TO_RUN)
    return run_session(kit, task, slot)


def _cannot_begin(kit: Kit, task: TaskState, slot: int) -> Failure | None:
    """Say which gate that somebody asked for cannot run where the attempt begins."""
    base = task.current.base
    site, tree = Site(kit=kit, name=task.task.id, slot=kit.spare + slot), kit.workspace.tree_of(base)
    for gate in kit.gates:
        if gate.detected or kit.baselines.recall(tree, gate) is None:
            continue
        try:
            before = on_base(site, gate, base)
        except NotSetUp as error:
            return error.failure
        shown = replace(before, command=kit.redactor.text(before.command))
        failure = hindered(kit, gate, shown, base)
        if failure is not None:
            return replace(failure, check=(gate.kind, shown.command))
    return None


def _work_is_there(task: TaskState) -> Outcome | None:
    """Return how the session ended whose work waits for nothing but its checks: a person was asked about what these met."""
    before = task.attempts[-2] if len(task.attempts) > 1 and task.current.number == task.epoch_from + 1 else None
    if before is None or not before.only_environment_failed or before.outcome is None or task.current.tree is None:
        return None
    ended = replace(NO_AGENT_NEEDED, tail=CHECKED_AGAIN.format(before.number))
    return replace(before.outcome, ended=ended, cost_usd=None, usage=None, session="")


def _split_before(task: TaskState) -> bool:
    """Whether the attempt before this one split the task, and its parts have landed meanwhile."""
    last = task.modifications[-1] if task.modifications else None
    return isinstance(last, Amend) and last.request == "SPLIT_TASK" and last.attempt == task.current.number - 1


def _what_would_land(kit: Kit, task: TaskState, slot: int) -> str:
    """Write the worktree's files as a tree; work that was merged onto another task's is a tree already."""
    attempt = task.current
    if _merged(attempt) and attempt.tree is not None:
        return attempt.tree
    if not kit.workspace.has_slot(slot):
        kit.workspace.prepare(slot, attempt.base, attempt.tree)
    tree = kit.workspace.write_tree(slot, attempt.base)
    for sentence in tree.notes:
        _note(kit, task.task.id, sentence)
    return tree.id


def _merged(attempt: AttemptState) -> bool:
    """Whether the work was put on top of another task's since it was last verified: its tree is the merged one then."""
    return attempt.verdict is not None and attempt.verdict.base != attempt.base


def _needs_set_up(kit: Kit, verdict: Verdict) -> Iterator[str]:
    """Say why work that installs something may be red here: a clean checkout has the user's own packages."""
    if verdict.status != "fail" or kit.config.workspace.setup:
        return
    needs = [path for path in verdict.files if PurePath(path).name in manifest_files()]
    if needs:
        yield (
            f"The work changes {', '.join(needs[:3])}. The checks run with the packages that [workspace] brings along; "
            "where it needs new ones, give the commands that install them as `setup`."
        )


def _note(kit: Kit, name: str, sentence: str) -> None:
    if NOT_COUNTED in sentence and any(
        sentence.partition("`")[2].partition("`")[0] in one for one in kit.record.state.notes
    ):
        return  # that this gate was red before was told for the whole run
    if kit.redactor.text(sentence) not in kit.record.task(name).notes:
        kit.record.note(sentence, name)
