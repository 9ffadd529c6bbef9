"""Edge: Examine one tree: the change first, then the checks in a clean checkout, then the base's judge and what else trying tells."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from unstuck.decide import done_by_others, patch_marks
from unstuck.journal import CheckResult, Remark, Severity, Status, Verdict
from unstuck.orders import Subject
from unstuck.plans import Check
from unstuck.tools import can_fail, is_plain_run
from unstuck.verify.base_judge import ask_base, bent, fewer_tests, hears, is_test_run, settled
from unstuck.verify.baseline import compare
from unstuck.verify.change import found
from unstuck.verify.change_audit import changed_tests, look_at, names_path
from unstuck.verify.checks import Site, check_on, hindered, looking_aside, on_base
from unstuck.verify.probing import Probe, holds_as_red, stays_green

RED = "RED"
NOT_HERE = "`{}` was found for this kind of project and cannot run here"
GUARDS_NOTHING = "it was red before, in another way every time: it guards nothing"
SAME_REPAIRS = "it changes the same files on the base: {}"
UNCLEAR = "`{}` was red before and is red now: {}"
WAVERS = "`{}`, the task's own check, failed and then passed on the same tree ({} runs): nobody can rely on it."
DONE_ALREADY = "nothing was changed, and its own checks passed before as well: is it done already?"
NOTHING_CHANGED = (
    "nothing was changed, and the task has no check of its own that could say whether anything is left to do"
)
NOT_COUNTED = "is red and does not count"
GRAVITY = ("reject", "ask", "warn")
TOLD, MOST_REMARKS = 5, 100
NO_CHECK = "the task has no command that could be run"
AS_ASKED = "this [RED] task is meant to make it fail"
Weight = Literal["reject", "ask", "warn", "off"]
NOT_WEIGHED = frozenset({"scope", "not-red", "unfinished-claim", "secret"})
"""Rules that have a setting of their own, or that no policy can do without."""
NOT_OF_THE_JUDGE = NOT_WEIGHED | {"claimed-file-missing", "own-settings-changed"}
"""What is not settled by running the base's judge."""


def examine(site: Site, subject: Subject) -> Verdict:
    """Say what the change itself, the checks and the base's judge say about this tree."""
    bench = site.bench
    changes = bench.workspace.changes(subject.base, subject.tree)
    probe = Probe(site=site, subject=subject, changes=changes)
    touched = {change.path for change in bent(changes, subject.task)} if changes else set[str]()
    looked = look_at(bench, subject, changes, _red_before(probe))
    doubts = [one for one in looked if one.path in touched and one.rule not in NOT_OF_THE_JUDGE]
    weights: Mapping[Severity, Weight] = {"reject": bench.config.verify.tampered, "ask": bench.config.verify.doubtful}
    seen = _Seen(remarks=list(weigh((one for one in looked if one not in doubts), weights)))
    if not seen.rejected:
        _run_checks(probe, seen)
        doubts = _try_the_rest(probe, seen, doubts, weights)
    remarks = [*seen.remarks, *weigh(doubts, weights)]
    results = [replace(one, command=bench.redactor.text(one.command)) for one in seen.results]
    status, why = judge_all(results, remarks)
    unchanged = not changes and subject.claim == "done"
    if status == "pass" and unchanged and not _expects_nothing(site, subject):
        status, why = "inconclusive", DONE_ALREADY if subject.task.checks else NOTHING_CHANGED
    claimed = subject.alone and subject.claim == "done"
    return Verdict(
        status=status,
        tree=subject.tree,
        base=subject.base,
        results=tuple(results),
        remarks=tuple(sorted(remarks, key=lambda one: GRAVITY.index(one.severity))[:MOST_REMARKS]),
        turned_green=status == "pass" and not claimed and _turned_green(probe, results),
        unchanged=unchanged and why == DONE_ALREADY,
        reason=why,
        files=tuple(change.path for change in changes)[:MOST_REMARKS],
        patch=_patch(probe) if status != "pass" else (),
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
            yield f"`{result.command}` {NOT_COUNTED}: {result.although}."
        elif result.idle and any(one.status == "pass" for one in verdict.results):
            yield f"A check says nothing: {result.idle}."


def _patch(probe: Probe) -> tuple[str, ...]:
    """Mark what this attempt did: only work that was not right is compared with what comes after it."""
    subject, workspace = probe.subject, probe.site.bench.workspace
    changes = workspace.changes(subject.start, subject.tree) if subject.start else probe.changes
    return () if any(one.binary for one in changes) else patch_marks((one.path, one.old, one.new) for one in changes)


@dataclass(slots=True, kw_only=True)
class _Seen:
    """What was seen so far."""

    remarks: list[Remark]
    checks: list[tuple[Check, CheckResult]] = field(default_factory=list)

    @property
    def results(self) -> list[CheckResult]:
        return [result for _, result in self.checks]

    @property
    def rejected(self) -> bool:
        return any(remark.severity == "reject" for remark in self.remarks)

    @property
    def holds(self) -> bool:
        return not self.rejected and all(result.status != "fail" for result in self.results)


def _run_checks(probe: Probe, seen: _Seen) -> None:
    with looking_aside(probe.site, probe.subject) as aside:
        for check in probe.subject.task.checks:
            result = _own(probe, check)
            seen.checks.append((check, result))
            if result.flaky and result.ended.ok:
                seen.remarks.append(found("own-check-wavers", says=WAVERS.format(check.command, result.runs)))
        for gate in probe.site.bench.gates:
            green = aside(gate)
            result, *remarks = (green,) if green is not None else _gate(probe, gate)
            seen.checks.append((gate, result))
            seen.remarks += remarks


def _try_the_rest(probe: Probe, seen: _Seen, doubts: list[Remark], weights: Mapping[Severity, Weight]) -> list[Remark]:
    """Try what the checks alone do not show, once they hold; return the doubts about the judge that are left."""
    if RED in probe.subject.task.markers:
        seen.remarks += _not_red(probe, seen.results)
        return doubts
    if not seen.holds or not probe.changes:
        return doubts
    answer = ask_base(probe, seen.checks, doubts)
    seen.remarks += weigh(answer.remarks, weights)
    if seen.rejected:
        return doubts
    if not any(one.rule == "old-test-fails" for one in seen.remarks):
        doubts = [replace(one, severity="warn") if settled(answer, one) else one for one in doubts]
    seen.remarks += fewer_tests(probe, seen.checks)
    if not seen.rejected:
        seen.remarks += hears(probe, seen.checks)
    seen.remarks += stays_green(probe, {check.command for check, _ in seen.checks})
    if seen.holds:
        seen.remarks += probe.on_old_code()
    return doubts


def _red_before(probe: Probe) -> tuple[str, ...]:
    """Name the tests that fail on the base, where the task names tests that changed: to be rid of one is never right."""
    task, site = probe.subject.task, probe.site
    if not any(one.old is not None and names_path(task, one.path) for one in changed_tests(probe.changes)):
        return ()
    runs = [check for check in (*task.checks, *site.bench.gates) if can_fail(check.command) and is_test_run(check)]
    return tuple(test for check in runs for test in on_base(site, check, probe.subject.base).tests)


def _own(probe: Probe, check: Check) -> CheckResult:
    """Run a check of the task's own: nothing excuses it, but the purpose of a [RED] task."""
    site, subject = probe.site, probe.subject
    result = check_on(site, check, subject.base, subject.tree, subject.tree)
    red = result.status == "fail" and not result.ended.ok and not result.flaky
    asked = red and RED in subject.task.markers and holds_as_red(probe, result)
    return replace(result, although=AS_ASKED) if asked else result


def _gate(probe: Probe, gate: Check) -> tuple[CheckResult, *tuple[Remark, ...]]:
    """Run one of the repository's gates; a red one is held against the base. One with no green run there guards nothing."""
    site, subject = probe.site, probe.subject
    result = check_on(site, gate, subject.base, subject.tree, subject.tree)
    if result.status != "fail":
        return (result,)
    if RED in subject.task.markers and gate.kind == "test" and probe.new_tests_fail(result):
        return (replace(result, although=AS_ASKED),)
    before = on_base(site, gate, subject.base)
    if before.status == "pass":
        return (result,)
    if hindered(site.bench, gate, before, site.bench.workspace.tree_of(subject.base)):
        # Nobody asked for this gate: that its tool is not here is no one's fault. One that was asked for must run.
        return (replace(result, idle=NOT_HERE.format(gate.command)) if gate.found else result,)
    if result.ended.ok:
        same = set(result.repaired) <= set(before.repaired)
        return (replace(result, although=SAME_REPAIRS.format(", ".join(result.repaired[:3]))) if same else result,)
    if before.flaky or result.flaky:
        return (replace(result, although=GUARDS_NOTHING),)
    held = compare(result, before)
    if held.verdict == "unknown":
        says = UNCLEAR.format(gate.command, held.because)
        return replace(result, idle=says), found("red-before", says=says)
    return (replace(result, although=held.because if held.verdict == "same" else ""),)


def _not_red(probe: Probe, results: Sequence[CheckResult]) -> Iterator[Remark]:
    """Find a [RED] task whose test does not fail, or fails by a mistake."""
    own_results = results[: len(probe.subject.task.checks)]
    plain = [result for result in own_results if is_plain_run(result.command)]
    if any(result.ended.ok for result in plain) and all(not result.although for result in plain):
        yield found("not-red", says="A [RED] task must leave a test that fails, and its check passes.")
    elif not plain and all(result.status != "fail" for result in own_results):
        yield from probe.red()


def _expects_nothing(site: Site, subject: Subject) -> bool:
    """Whether an empty change can be right: nothing was asked for, or somebody else did it in this run."""
    task, state = subject.task, site.bench.record.state
    if task.only_checks or task.commit == "" or task.fixes is not None or done_by_others(state, task.id):
        return True
    if _person_helped(site, subject):
        return True
    if state.started is None or not task.checks or state.started.base == subject.base:
        return False
    return _red_on(site, task.checks, state.started.base)


def _person_helped(site: Site, subject: Subject) -> bool:
    """Whether a person's commits came in since the last attempt: what is left to do may be nothing."""
    state = site.bench.record.state
    attempts = state.tasks[subject.task.id].attempts if subject.task.id in state.tasks else ()
    if len(attempts) < 2:  # noqa: PLR2004  # this one, and one before it
        return False
    ours = {task.commit for task in state.tasks.values()}
    return any(commit not in ours for commit in site.bench.workspace.history(subject.base, attempts[-2].base)[:-1])


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


def weigh(remarks: Iterable[Remark], policy: Mapping[Severity, Weight]) -> tuple[Remark, ...]:
    """Give every remark the weight that the user's policy gives to its kind; drop what is switched off."""
    weighed = []
    for remark in remarks:
        weight = policy.get(remark.severity, remark.severity)
        if remark.rule in NOT_WEIGHED:
            weighed.append(remark)
        elif weight != "off":
            weighed.append(replace(remark, severity=weight))
    return tuple(weighed)


def judge_all(results: Sequence[CheckResult], remarks: Sequence[Remark]) -> tuple[Status, str]:
    """Say what checks and remarks come to, and why nobody can tell where that is so."""
    if any(remark.severity == "reject" for remark in remarks) or any(one.status == "fail" for one in results):
        return "fail", ""
    asked = [str(remark) for remark in remarks if remark.severity == "ask"]
    if asked:
        return "inconclusive", "; ".join(asked[:3]) + (f"; and {len(asked) - 3} more" if len(asked) > 3 else "")  # noqa: PLR2004
    if any(_proves_something(one) for one in results):
        return "pass", ""
    idle = [one.idle or one.although for one in results]
    return "inconclusive", idle[0] if idle else NO_CHECK


def _proves_something(result: CheckResult) -> bool:
    """Whether it passed; a red check that is excused still counts where other tests in it pass."""
    if result.although in ("", AS_ASKED):
        return result.status == "pass"
    return bool(result.counts and result.counts.passed)
