"""Edge: Examine one tree: the change itself first, then the checks in a clean checkout, then the base's judge and what else trying tells."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from posixpath import dirname, join, normpath

from unstuck.agents.claims import claimed_files, claimed_files_missing, read_statement
from unstuck.diagnosis.evidence import Evidence
from unstuck.diagnosis.output.tool_output import read_output
from unstuck.model.changes import Change
from unstuck.model.failure import Kind
from unstuck.model.orders import Subject
from unstuck.model.text import one_line
from unstuck.model.verdict import Check, CheckResult, Remark, Severity, Verdict
from unstuck.policy.history import replacements_did_work
from unstuck.policy.loops import patch_marks
from unstuck.toolchain.toolchains import is_plain_run
from unstuck.verify.audit.auditing import audit
from unstuck.verify.audit.weakened_settings import is_harmless
from unstuck.verify.base_judge import ask_base, bent
from unstuck.verify.baseline import Comparison, compare
from unstuck.verify.change import (
    EVIDENCE_CHARS,
    GRAVITY,
    SYMLINK,
    Line,
    added_lines,
    found,
    is_declared,
    pattern,
    removed_lines,
    rule_of,
)
from unstuck.verify.checks import CleanCheckout, begun_aside, check_on, hindered, is_test_run, steady
from unstuck.verify.exam import AS_ASKED, Verification, judge_all
from unstuck.verify.probing import PROBES, RED, fails_rightly, new_tests_fail, not_red

NOT_HERE = "`{}` was found for this kind of project and cannot run here"
GUARDS_NOTHING = "it was red before, in another way every time: it guards nothing"
SAME_REPAIRS = "it changes the same files on the base: {}"
WAVERS_NOW = "it fails in another way every time now, and did not before"
UNCLEAR = "`{}` was red before and is red now: {}"
WAVERS = "`{}`, the task's own check, failed and then passed on the same tree ({} runs): nobody can rely on it."
DONE_ALREADY = "nothing was changed, and its own checks passed before as well: is it done already?"
NOTHING_CHANGED = "nothing was changed, and no check of the task's own could say whether anything is left to do"
MOST_REMARKS = 100


def examine(site: CleanCheckout, subject: Subject) -> Verdict:
    """Say what the change itself, the checks and the base's judge say about this tree."""
    context = site.context
    exam = Verification(site=site, subject=subject, changes=context.workspace.changes(subject.base, subject.tree))
    looked = look_at(exam, _red_before(exam))
    touched = {change.path for change in bent(exam)}
    doubts = [one for one in looked if one.path in touched and not rule_of(one.rule).fixed]
    exam.add(one for one in looked if one not in doubts)
    if not exam.refused:
        _run_checks(exam)
    if RED in exam.task.markers:
        exam.add((*(not_red(exam) if exam.checks else ()), *doubts))
    elif not exam.changes or not exam.holds:
        exam.add(doubts)
    else:
        exam.add(_or_a_question(ask_base, exam, doubts))
        for probe in PROBES:
            if not exam.refused:
                exam.add(_or_a_question(probe, exam))
    return _verdict(exam)


def _or_a_question(read: Callable[..., Iterable[Remark]], *given: object) -> tuple[Remark, ...]:
    """Read a change, and take a fault of ours for a question: nobody lands what nobody could read, and no run ends by it."""
    try:
        return tuple(read(*given))
    except (ValueError, RecursionError, MemoryError, LookupError, TypeError, AttributeError) as error:
        return (found("check-changed", says=UNREADABLE.format(one_line(repr(error), EVIDENCE_CHARS)), severity="ask"),)


def _verdict(exam: Verification) -> Verdict:
    subject, context = exam.subject, exam.context
    results = [replace(one, command=context.redactor.text(one.command)) for one in exam.results]
    status, why = judge_all(results, exam.remarks)
    unchanged = not exam.changes and subject.claim == "done"
    if status == "pass" and unchanged and not _expects_nothing(exam):
        status, why = "inconclusive", DONE_ALREADY if exam.task.checks else NOTHING_CHANGED
    claimed = subject.alone and subject.claim == "done"
    return Verdict(
        status=status,
        tree=subject.tree,
        base=subject.base,
        results=tuple(results),
        remarks=tuple(sorted(exam.remarks, key=lambda one: GRAVITY.index(one.severity))[:MOST_REMARKS]),
        turned_green=status == "pass" and not claimed and _turned_green(exam),
        unchanged=unchanged and why == DONE_ALREADY,
        reason=why,
        files=tuple(change.path for change in exam.changes)[:MOST_REMARKS],
        patch=_patch(exam) if status != "pass" else (),
    )


def _patch(exam: Verification) -> tuple[str, ...]:
    """Mark what this attempt did: only work that was not right is compared with what comes after it."""
    start, tree = exam.subject.start, exam.subject.tree
    changes = exam.context.workspace.changes(start, tree) if start else exam.changes
    return () if any(one.binary for one in changes) else patch_marks((one.path, one.old, one.new) for one in changes)


def _red_before(exam: Verification) -> tuple[str, ...]:
    """Name the tests that fail on the base, where the task names tests that changed: to be rid of one is never right."""
    if not any(one.old is not None and exam.names(one.path) for one in exam.playing("test")):
        return ()
    runs = [check for check in (*exam.task.checks, *exam.context.gates) if is_test_run(check)]
    return tuple(test for check in runs for test in exam.before(check).tests)


def _run_checks(exam: Verification) -> None:
    with begun_aside(exam.site, exam.subject) as aside:
        for check in exam.task.checks:
            result = _own(exam, check)
            exam.checks.append((check, result))
            if result.flaky and result.ended.ok:
                exam.add((found("own-check-wavers", says=WAVERS.format(check.command, result.runs)),))
        for gate in exam.context.gates:
            green = gate in aside and (result := aside[gate].result()).status == "pass"
            if not green:  # red aside: it may have needed what checks before it make, and is asked in its turn
                result = exam.now(gate)
            result, *remarks = _held_against_base(exam, gate, result) if result.status == "fail" else (result,)
            exam.checks.append((gate, result))
            exam.add(remarks)


def _own(exam: Verification, check: Check) -> CheckResult:
    """Run a check of the task's own: nothing excuses it, but the purpose of a [RED] task."""
    result = exam.now(check)
    if result.status != "fail" or result.ended.ok or result.flaky:
        return result
    if RED in exam.task.markers and is_plain_run(result.command) and fails_rightly(exam, result):
        return replace(result, excused_because=AS_ASKED)
    return replace(result, external_service_down=_outside(exam, check, result))


def _outside(exam: Verification, check: Check, result: CheckResult) -> bool:
    """Whether all that is red is a server that does not answer: one that nobody writes, or that the base misses as well, now.

    The base is without the work, so no session repairs what it meets, unless the task is to bring that server.
    """
    met = _complaints(result)
    diagnoses = [exam.context.judge.diagnose(Evidence(stdout=said, exit_code=1)) for _, said in met]
    if any(one is None or one.kind is not Kind.NETWORK_ERROR for one in diagnoses):
        return False
    if all(pattern("judge", "services").search(said) for _, said in met):
        return True
    if pattern("judge", "serves").search(f"{exam.task.title}\n{exam.task.body}"):
        return False
    on_base = _complaints(exam.site.run(check, exam.subject.base))
    return {(name, steady(said)) for name, said in met} <= {(name, steady(said)) for name, said in on_base}


def _complaints(result: CheckResult) -> list[tuple[str, str]]:
    """List what a red run says of each test that failed, or else all that it says."""
    failed = [(one.label, one.message) for one in read_output(result.ended.tail).failures]
    return failed or [("", result.ended.tail)]


def _held_against_base(exam: Verification, gate: Check, result: CheckResult) -> tuple[CheckResult, *tuple[Remark, ...]]:
    """Hold a red gate against the base. One with no green run there guards nothing."""
    if RED in exam.task.markers and gate.kind == "test" and new_tests_fail(exam, result):
        return (replace(result, excused_because=AS_ASKED),)
    before = exam.before(gate)
    if before.status == "pass":
        return (result,)
    if hindered(exam.context, gate, before, exam.subject.base, but=exam.task.id):
        # Nobody asked for this gate: that its tool is not here is no one's fault. One that was asked for must run.
        return (replace(result, not_meaningful_because=NOT_HERE.format(gate.command)) if gate.detected else result,)
    if result.ended.ok:
        same = set(result.repaired) <= set(before.repaired)
        return (
            replace(result, excused_because=SAME_REPAIRS.format(", ".join(result.repaired[:3]))) if same else result,
        )
    if before.flaky:
        return (replace(result, excused_because=GUARDS_NOTHING),)
    held = Comparison("unknown", WAVERS_NOW) if result.flaky else compare(result, before)
    if held.verdict == "unknown":
        says = UNCLEAR.format(gate.command, held.because)
        return replace(result, not_meaningful_because=says), found("red-before", says=says)
    return (replace(result, excused_because=held.because if held.verdict == "same" else ""),)


def _expects_nothing(exam: Verification) -> bool:
    """Whether an empty change can be right: nothing was asked for, or somebody else did it in this run."""
    task, started, state = exam.task, exam.context.state.started, exam.context.state
    if task.only_checks or task.commit == "" or task.fixes is not None or replacements_did_work(state, task.id):
        return True
    before = started.base if started is not None else exam.subject.base
    return _person_helped(exam) or (before != exam.subject.base and _red_on(exam, task.checks, before))


def _person_helped(exam: Verification) -> bool:
    """Whether a person's commits came in since the last attempt: what is left to do may be nothing."""
    state, name = exam.context.state, exam.task.id
    earlier = state.tasks[name].attempts[:-1] if name in state.tasks else ()
    if not earlier:
        return False
    ours = {task.commit for task in state.tasks.values()}
    since = exam.context.workspace.history(exam.subject.base, earlier[-1].base)
    return any(commit not in ours for commit in since[:-1])


def _turned_green(exam: Verification) -> bool:
    """Whether a check of the task's own fails on the base: then its green is work, whatever the session said."""
    if any(result.excused_because == AS_ASKED for result in exam.own_results):
        return True
    plain = RED in exam.task.markers  # such a check is red before the work and after it; turned round, it turns green
    checks = [check for check in exam.task.checks if not (plain and is_plain_run(check.command))]
    return _red_on(exam, checks, exam.subject.base)


def _red_on(exam: Verification, checks: Sequence[Check], commit: str) -> bool:
    return any(check_on(exam.site, check, commit).status == "fail" for check in checks)


UNREADABLE = "The change could not be audited, so a person should look at it: {}"
_FOLLOWS = re.compile(r"(?:^|/)(?:__init__\.py|[\w.-]*lock(?:\.\w+)?|go\.sum|\.unstuck/.*)$")
"""Files that tools write by themselves when another file changes."""


def load_ahead() -> None:
    """Load what an audit needs, which takes a tenth of a second: for whoever waits while the agents work."""
    import_module("unstuck.verify.audit.auditing")


def look_at(exam: Verification, red: Sequence[str] = ()) -> list[Remark]:
    """Give everything that can be said about a change without running anything; `red`: tests that fail on the base."""
    fence = exam.context.settings.verify.scope
    given = exam.changes, exam.task.files, red, exam.context.redactor
    remarks = [*_or_a_question(audit, *given)] if exam.changes else []
    if fence != "off":
        remarks += (
            *outside_scope(exam.changes, exam.task.files, fence),
            *_unspoken(exam, {one.path for one in remarks}),
        )
    return [*remarks, *_links(exam), *_claims(exam)]


def outside_scope(changes: Sequence[Change], declared: Sequence[str], severity: Severity = "warn") -> list[Remark]:
    """Find files that were touched although the task does not name them; a task that names none has no fence."""
    return [
        found("scope", change.path, says=f"{change.path} is not among the task's Files.", severity=severity)
        for change in changes
        if declared and not is_declared(change.path, declared) and not _FOLLOWS.search(change.path)
    ]


def _unspoken(exam: Verification, told: Collection[str]) -> Iterator[Remark]:
    """Tell once of what the checks are run by, where a task without Files does not speak of it and the reader found nothing."""
    text = f"{exam.task.title}\n{exam.task.body}".lower()
    for change in exam.playing("settings", "commands", "support") if not exam.task.files else ():
        name = change.path.rpartition("/")[2].lower()
        if change.old is not None and change.path not in told and name not in text and not is_harmless(change):
            now = next(iter((*added_lines(change), *removed_lines(change))), Line(1, ""))
            says = f"{change.path} was {'changed' if change.new is not None else 'deleted'}, and the task does not name it."
            yield found("scope", change.path, now.number, says, now.text.strip(), "warn")


def _links(exam: Verification) -> Iterator[Remark]:
    """Find links that lead out of the tree: what is read there is not what was verified, and anybody may change it."""
    for one in exam.changes:
        target = one.new or "/"
        way = normpath(join(dirname(one.path), target))
        # Up again from a folder that the link names is another way where that folder is a link.
        climbs = target.split("/").count("..") != normpath(target).split("/").count("..")
        if one.new_mode == SYMLINK and (climbs or way.split("/")[0] in {"", "..", ".git"}):
            yield found("link-out", one.path, says=f"{one.path} leads out of the tree.")


def _claims(exam: Verification) -> Iterator[Remark]:
    """Hold what the agent says against what is there. Its prose is only told; its own result must be true."""
    said = exam.subject.last_message
    result = read_statement(said, exam.task.id).result if said else None
    named = (*result.created, *result.modified) if result is not None and result.status == "complete" else ()
    if not named and not claimed_files(said):
        return
    present = exam.context.workspace.tree_files(exam.subject.tree)
    gone = [change.path for change in exam.changes if change.new is None]
    absent = {
        "unfinished-claim": [path for path in named if path.removeprefix("./") not in present],
        "claimed-file-missing": claimed_files_missing(said, present, gone),
    }
    for rule, paths in absent.items():
        yield from (found(rule, path, says=f"The agent names {path}, but there is no such file.") for path in paths)
