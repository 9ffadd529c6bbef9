"""Verify the work after every session, in a clean checkout of exactly the tree that would land."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath

from unstuck.engine.context import Services, TaskRun
from unstuck.engine.session import run_session
from unstuck.journal.task_state import AttemptState, TaskState
from unstuck.model.action import Amend
from unstuck.model.errors import Interrupted
from unstuck.model.event import Classified, LineEvent, SessionEnded, Verified
from unstuck.model.failure import Failure
from unstuck.model.orders import Subject
from unstuck.model.outcome import Ended, Outcome
from unstuck.model.verdict import Verdict
from unstuck.reports.verdict_formats import NOT_COUNTED, red_before_note, verdict_notes
from unstuck.toolchain.toolchains import manifest_files
from unstuck.verify.checks import CleanCheckout, SetupFailed, hindered, on_base

NO_AGENT_NEEDED = Ended(ending="exited", exit_code=0, tail="The checks pass as it is: no agent was needed.")
CHECKED_AGAIN = "The work of attempt {} is there: only its checks are run again."
BASE_LOG = "base"
"""Name of the log of checks that run before any task."""
NOTHING_TO_RUN = "An agent is called, because no check can say whether there is anything to do."


def verify(run: TaskRun, task: TaskState) -> LineEvent:
    """Return the verdict of the task's checks and the repository's gates on the work in the slot."""
    outcome = task.current.outcome
    subject = Subject(
        task=run.plan_task,
        base=task.current.base,
        tree=_tree_to_land(run, task),
        claim=outcome.claim if outcome else "none",
        last_message=outcome.words if outcome else "",
        alone=outcome is not None and (outcome.ended.ok or outcome.claimed),
        start="" if _is_merged(task.current) else task.current.tree or "",
    )
    try:
        verdict = run.dispatcher.verify(subject, run.slot, run.stop)
    except SetupFailed as error:
        return Classified(task=run.task_id, failure=error.failure)
    for sentence in (*verdict_notes(verdict), *_missing_setup_notes(run, verdict)):
        _note_once(run, sentence)
    return Verified(task=run.task_id, verdict=verdict)


def check_base_before_first_session(services: Services) -> None:
    """Run the set-up and the gates before the first session. Note once which gates are red already.

    A gate that cannot begin is reported by the first task, before any session is paid for. See `check_first`.
    """
    checks = services.checks
    checkout = CleanCheckout(context=checks, name=BASE_LOG, slot=checks.first_checkout_slot)
    has_setup = bool(checks.settings.workspace.setup)
    base = services.workspace.tip() if checks.gates or has_setup else ""
    try:
        if has_setup:
            checkout.stand(base)
        results = [(gate, on_base(checkout, gate, base)) for gate in checks.gates]
    except (SetupFailed, Interrupted):
        return  # the first task meets the same in its own slot and reports it with what to do
    for gate, result in results:
        if result.status == "fail" and not hindered(checks, gate, result, base):
            sentence = red_before_note(result)
            if services.redactor.text(sentence) not in services.recorder.state.notes:
                services.recorder.note(sentence)


def check_first(run: TaskRun, task: TaskState) -> LineEvent:
    """Run a session, but where the work may be done already, only if the checks fail."""
    attempt = task.current
    if not attempt.sessions and (failure := _gate_that_cannot_begin(run, task)) is not None:
        run.workspace.prepare(run.slot, attempt.base, attempt.tree)
        return Classified(task=run.task_id, failure=failure)
    only_checks = run.plan_task.only_checks and attempt.number == task.epoch_from + 1
    earlier_outcome = _outcome_of_unchecked_work(task)
    may_be_done = only_checks or earlier_outcome is not None or _was_split_before(task)
    if attempt.sessions or not may_be_done:
        return run_session(run, task)
    run.workspace.prepare(run.slot, attempt.base, attempt.tree)
    if earlier_outcome is not None and not task.hint:  # a person's hint is for the agent
        return SessionEnded(task=run.task_id, outcome=earlier_outcome)
    tree = attempt.tree if earlier_outcome and attempt.tree else run.workspace.tree_of(attempt.base)
    subject = Subject(task=run.plan_task, base=attempt.base, tree=tree, claim="done")
    try:
        verdict = run.dispatcher.verify(subject, run.slot, run.stop)
    except SetupFailed as error:
        return Classified(task=run.task_id, failure=error.failure)
    if verdict.status == "pass":
        outcome = earlier_outcome or Outcome(ended=NO_AGENT_NEEDED, claim="done")
        return SessionEnded(task=run.task_id, outcome=outcome)
    failing = [result.command for result in verdict.results if result.status == "fail"]
    reason = f"An agent is called, because this fails: {'; '.join(failing)}" if failing else NOTHING_TO_RUN
    _note_once(run, reason)
    return run_session(run, task)


def _gate_that_cannot_begin(run: TaskRun, task: TaskState) -> Failure | None:
    """Return why a configured gate cannot run at the attempt's base, or None."""
    base = task.current.base
    checkout, checks = run.checkout, run.checks
    tree = run.workspace.tree_of(base)
    for gate in checks.gates:
        if gate.detected or checks.base_results.recall(tree, gate) is None:
            continue
        try:
            result = on_base(checkout, gate, base)
        except SetupFailed as error:
            return error.failure
        shown_result = replace(result, command=run.services.redactor.text(result.command))
        failure = hindered(checks, gate, shown_result, base)
        if failure is not None:
            return replace(failure, check=(gate.kind, shown_result.command))
    return None


def _outcome_of_unchecked_work(task: TaskState) -> Outcome | None:
    """Return the outcome of the session whose work only waits for its checks, after a person mended their surroundings."""
    is_first_try = task.current.number == task.epoch_from + 1
    previous = task.attempts[-2] if len(task.attempts) > 1 and is_first_try else None
    if (
        previous is None
        or not previous.only_environment_failed
        or previous.outcome is None
        or task.current.tree is None
    ):
        return None
    ended = replace(NO_AGENT_NEEDED, tail=CHECKED_AGAIN.format(previous.number))
    return replace(previous.outcome, ended=ended, cost_usd=None, usage=None, session="")


def _was_split_before(task: TaskState) -> bool:
    """Return whether the attempt before this one split the task, and its parts have landed since."""
    last = task.modifications[-1] if task.modifications else None
    return isinstance(last, Amend) and last.request == "SPLIT_TASK" and last.attempt == task.current.number - 1


def _tree_to_land(run: TaskRun, task: TaskState) -> str:
    """Write the slot's files as a tree. Work that was merged onto another task's is a tree already."""
    attempt = task.current
    if _is_merged(attempt) and attempt.tree is not None:
        return attempt.tree
    if not run.workspace.has_slot(run.slot):
        run.workspace.prepare(run.slot, attempt.base, attempt.tree)
    tree = run.workspace.write_tree(run.slot, attempt.base)
    for sentence in tree.notes:
        _note_once(run, sentence)
    return tree.id


def _is_merged(attempt: AttemptState) -> bool:
    """Return whether the work was merged onto another task's since its last verdict."""
    return attempt.verdict is not None and attempt.verdict.base != attempt.base


def _missing_setup_notes(run: TaskRun, verdict: Verdict) -> Iterator[str]:
    """Yield why work that installs something may fail here: a clean checkout has the user's own packages."""
    if verdict.status != "fail" or run.context.settings.workspace.setup:
        return
    manifests = [path for path in verdict.files if PurePath(path).name in manifest_files()]
    if manifests:
        yield (
            f"The work changes {', '.join(manifests[:3])}. The checks run with the packages that [workspace] brings "
            "along; where it needs new ones, give the commands that install them as `setup`."
        )


def _note_once(run: TaskRun, sentence: str) -> None:
    """Record a note about the task, unless the same was noted before."""
    if NOT_COUNTED in sentence and _is_noted_for_the_run(run, sentence):
        return
    if run.services.redactor.text(sentence) not in run.services.recorder.task(run.task_id).notes:
        run.note(sentence)


def _is_noted_for_the_run(run: TaskRun, sentence: str) -> bool:
    """Return whether the run has a note about the gate that this sentence quotes."""
    gate = sentence.partition("`")[2].partition("`")[0]
    return any(gate in note for note in run.state.notes)
