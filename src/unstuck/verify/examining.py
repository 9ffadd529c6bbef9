"""Edge: Examine one tree: the audit first, then the checks in a clean checkout, then what only trying can tell."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from unstuck.decide import done_by_others
from unstuck.diagnosis import Evidence
from unstuck.journal import CheckResult, Remark, Severity, Verdict
from unstuck.plans import Check
from unstuck.verify.baseline import MISSING_TOOL, excuse
from unstuck.verify.change_audit import Subject, changed_tests, look_at
from unstuck.verify.checks import Site, check_on
from unstuck.verify.probing_tests import Probe, holds_as_red
from unstuck.verify.selecting import is_plain_run
from unstuck.verify.weighing import AS_ASKED, judge_all, own

RED = "RED"
NOT_HERE = "`{}` was found for this kind of project and cannot run here"
EMPTY = "The agent says that it is done, but it changed nothing, and its checks passed before."
GRAVITY = ("reject", "ask", "warn")
TOLD, MOST_REMARKS = 5, 100
JUDGES = ("test", "support", "settings", "commands", "snapshot")
"""Files whose change can make a runner see fewer tests."""


def examine(site: Site, subject: Subject) -> Verdict:
    """Say what the audit and the checks say about this tree."""
    bench = site.bench
    changes = bench.workspace.changes(subject.base, subject.tree)
    remarks = list(look_at(bench, subject, changes))
    probe = Probe(site=site, subject=subject, changes=changes)
    results: list[CheckResult] = []
    if not _rejected(remarks):
        results = [_checked(probe, check, own_check=True) for check in subject.task.checks]
        results += [_checked(probe, gate, own_check=False) for gate in bench.gates]
        results = [replace(one, command=bench.redactor.text(one.command)) for one in results]
        remarks += _tried(probe, results, remarks)
    status, why = judge_all(results, remarks)
    if status == "pass" and not changes and subject.claim == "done" and not _expects_nothing(site, subject):
        remarks.append(Remark(rule="empty-claim", severity="reject", path="", line=1, says=EMPTY))
        status = "fail"
    claimed = subject.alone and subject.claim == "done"
    return Verdict(
        status=status,
        tree=subject.tree,
        base=subject.base,
        results=tuple(results),
        remarks=tuple(sorted(remarks, key=lambda one: GRAVITY.index(one.severity))[:MOST_REMARKS]),
        turned_green=status == "pass" and not claimed and _turned_green(probe, results),
        reason=why,
        files=tuple(change.path for change in changes)[:MOST_REMARKS],
    )


def told(verdict: Verdict) -> Iterator[str]:
    """Say what people should know though it decides nothing: warnings, flaky checks, and what was red before."""
    warnings = [remark for remark in verdict.remarks if remark.severity == "warn"]
    yield from (f"Worth a look: {remark}" for remark in warnings[:TOLD])
    if len(warnings) > TOLD:
        yield f"Worth a look: {len(warnings) - TOLD} more like these; see `unstuck verify`."
    for result in verdict.results:
        if result.flaky and result.ended.ok:
            yield f"`{result.command}` is flaky: on one and the same tree it failed {result.runs - 1} of {result.runs} times."
        elif result.although:
            yield f"`{result.command}` is red and does not count: {result.although}."
        elif result.idle and any(one.status == "pass" for one in verdict.results):
            yield f"A check says nothing: {result.idle}."


def _checked(probe: Probe, check: Check, *, own_check: bool) -> CheckResult:
    """Run one check on the tree; a red gate is held against the base, a red check of a [RED] task against its purpose."""
    site, subject = probe.site, probe.subject
    result = check_on(site, check, subject.base, subject.tree, subject.tree)
    if result.status != "fail" or result.flaky:
        return result
    if RED in subject.task.markers:
        meant = holds_as_red(probe, result) if own_check else check.kind == "test" and probe.new_tests_fail(result)
        if meant:
            return replace(result, although=AS_ASKED)
    if own_check:
        return result
    before = baseline(site, check, subject.base)
    if _cannot_run(site, check, before):
        # Nobody asked for this gate: that its tool is not here is no one's fault. One that was asked for must run.
        return replace(result, idle=NOT_HERE.format(check.command)) if check.found else result
    return replace(result, although=excuse(result, before))


def baseline(site: Site, gate: Check, base: str) -> CheckResult:
    """Say how a gate goes on the commit that the task began with; asked once for a tree."""
    bench = site.bench
    tree = bench.workspace.tree_of(base)
    known = bench.baselines.recall(tree, gate) or bench.memory.recall(tree, gate)
    if known is None:
        site.stand(base)
        known = site.run(gate)
        bench.baselines.remember(tree, gate, known)
        if not known.flaky:
            bench.memory.remember(tree, gate, known)
    return known


def _cannot_run(site: Site, gate: Check, before: CheckResult) -> bool:
    if before.ended.ok:
        return False
    found = site.bench.judge.diagnose(
        Evidence(stdout=before.ended.tail, exit_code=before.ended.exit_code, command=gate.command)
    )
    return found is not None and found.kind in MISSING_TOOL


def _tried(probe: Probe, results: Sequence[CheckResult], remarks: Sequence[Remark]) -> Iterator[Remark]:
    """Try what the checks alone do not show, once they hold."""
    if RED in probe.subject.task.markers:
        yield from _not_red(probe, results)
        return
    if any(result.status == "fail" for result in results) or not probe.changes or _rejected(remarks):
        return
    yield from _fewer_tests(probe, results)
    yield from probe.old_form()
    yield from probe.on_old_code()


def _not_red(probe: Probe, results: Sequence[CheckResult]) -> Iterator[Remark]:
    """Find a [RED] task whose test does not fail, or fails by a mistake."""
    own_results = results[: len(probe.subject.task.checks)]
    plain = [result for result in own_results if is_plain_run(result.command)]
    if any(result.ended.ok for result in plain) and all(not result.although for result in plain):
        yield own("not-red", says="A [RED] task must leave a test that fails, and its check passes.")
    elif not plain and all(result.status != "fail" for result in own_results):
        yield from probe.red()


def _fewer_tests(probe: Probe, results: Sequence[CheckResult]) -> Iterator[Remark]:
    """Find a gate that runs fewer tests than on the base, although no test was changed by name."""
    site, subject, changes = probe.site, probe.subject, probe.changes
    if not changed_tests(changes, JUDGES) and not any(change.new is None for change in changes):
        return
    for gate, result in zip(site.bench.gates, results[len(subject.task.checks) :], strict=True):
        if gate.kind != "test" or result.counts is None:
            continue
        before = baseline(site, gate, subject.base).counts
        if before is None or before.passed + before.failed <= result.counts.passed + result.counts.failed:
            continue
        ran = result.counts.passed + result.counts.failed
        says = f"`{gate.command}` runs fewer tests: {ran} now, {before.passed + before.failed} on the base."
        # Where tests were changed the audit has read them, and knows whether what they asserted is still asserted.
        severity: Severity | None = "warn" if changed_tests(changes) else None if subject.task.files else "ask"
        yield own("fewer-tests", says=says, severity=severity)


def _expects_nothing(site: Site, subject: Subject) -> bool:
    """Whether an empty change can be right: nothing was asked for, or what was asked for came into being in this run."""
    task = subject.task
    if task.only_checks or task.commit == "" or task.fixes is not None:
        return True
    if done_by_others(site.bench.record.state, task.id):
        return True
    started = site.bench.record.state.started
    if started is None or not task.checks or started.base == subject.base:
        return False
    return _red_on(site, task.checks, started.base)


def _turned_green(probe: Probe, results: Sequence[CheckResult]) -> bool:
    """Whether a check of the task's own fails on the base: then its green is work, whatever the session said."""
    task = probe.subject.task
    if any(result.although == AS_ASKED for result in results[: len(task.checks)]):
        return True
    plain = RED in task.markers  # such a check is red before the work and after it; turned round, it turns green
    checks = [check for check in task.checks if not (plain and is_plain_run(check.command))]
    return _red_on(probe.site, checks, probe.subject.base)


def _red_on(site: Site, checks: Sequence[Check], commit: str) -> bool:
    if not checks:
        return False
    tree = site.bench.workspace.tree_of(commit)
    return any(check_on(site, check, commit, None, tree).status == "fail" for check in checks)


def _rejected(remarks: Sequence[Remark]) -> bool:
    return any(remark.severity == "reject" for remark in remarks)
