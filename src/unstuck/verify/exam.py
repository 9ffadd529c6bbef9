"""Edge: One change under examination: what it is, where it is tried, what was seen so far, and what that comes to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from unstuck.model.changes import Change
from unstuck.model.orders import Subject
from unstuck.model.plan import Task
from unstuck.model.verdict import Check, CheckResult, Remark, Severity, Status
from unstuck.toolchain.toolchains import is_plain_run
from unstuck.verify.change import is_declared, part_of, rule_of
from unstuck.verify.check_context import CheckContext
from unstuck.verify.checks import CleanCheckout, check_on, on_base

NO_CHECK = "the task has no command that could be run"
NO_TEST = "`{}` passes and runs no test"
AS_ASKED = "this [RED] task is meant to make it fail"
TOLD_REASONS = 3
Weight = Literal["reject", "ask", "warn", "off"]


@dataclass(slots=True, kw_only=True)
class Verification:
    """One change, the checkout in which it is tried, and what was seen of it."""

    site: CleanCheckout
    subject: Subject
    changes: Sequence[Change]
    checks: list[tuple[Check, CheckResult]] = field(default_factory=list)
    """What was run on the whole change: the task's own checks first, then the gates."""
    remarks: list[Remark] = field(default_factory=list)

    @property
    def context(self) -> CheckContext:
        return self.site.context

    @property
    def task(self) -> Task:
        return self.subject.task

    @property
    def results(self) -> list[CheckResult]:
        return [result for _, result in self.checks]

    @property
    def own_results(self) -> list[CheckResult]:
        return self.results[: len(self.task.checks)]

    @property
    def refused(self) -> bool:
        return any(remark.severity == "reject" for remark in self.remarks)

    @property
    def holds(self) -> bool:
        return not self.refused and all(result.status != "fail" for result in self.results)

    def add(self, remarks: Iterable[Remark]) -> None:
        """Take remarks down, none twice, with the weight that the user's policy gives them."""
        verify = self.context.settings.verify
        weighed = weigh(remarks, {"reject": verify.tampered, "ask": verify.doubtful})
        self.remarks += [one for one in dict.fromkeys(weighed) if one not in self.remarks]

    def now(self, check: Check) -> CheckResult:
        """Say how a check goes on the tree that would land."""
        return check_on(self.site, check, self.subject.base, self.subject.tree)

    def before(self, check: Check) -> CheckResult:
        """Say how a check goes on the base."""
        return on_base(self.site, check, self.subject.base)

    def before_work(self, check: Check) -> CheckResult:
        """Say how a check went on the base; one of the task's own, which is meant to be red there, is run a single time."""
        return self.before(check) if check in self.context.gates else self.site.once(check, self.subject.base)

    def tree_of(self, paths: Iterable[str]) -> str:
        """Write a tree of our own making: the base, with these paths as the change has them."""
        return self.context.workspace.tree_with_paths(self.subject.base, self.subject.tree, sorted(paths))

    def playing(self, *parts: str) -> list[Change]:
        """Return the changes to files that play one of these parts."""
        return [change for change in self.changes if part_of(change.path) in parts]

    def names(self, path: str) -> bool:
        """Whether the task itself names the path, so that changing it is what it asks for."""
        return is_declared(path, self.task.files)


def weigh(remarks: Iterable[Remark], policy: Mapping[Severity, Weight]) -> tuple[Remark, ...]:
    """Give every remark the weight that the user's policy gives to its kind; drop what is switched off."""
    fixed = ((one, rule_of(one.rule).fixed) for one in remarks)
    weighed = ((one, one.severity if as_it_is else policy.get(one.severity, one.severity)) for one, as_it_is in fixed)
    return tuple(replace(remark, severity=weight) for remark, weight in weighed if weight != "off")


def judge_all(results: Sequence[CheckResult], remarks: Sequence[Remark]) -> tuple[Status, str]:
    """Say what checks and remarks come to, and why nobody can tell where that is so."""
    if any(remark.severity == "reject" for remark in remarks) or any(one.status == "fail" for one in results):
        return "fail", ""
    asked = [str(remark) for remark in remarks if remark.severity == "ask"]
    if asked:
        more = len(asked) - TOLD_REASONS
        return "inconclusive", "; ".join(asked[:TOLD_REASONS]) + (f"; and {more} more" if more > 0 else "")
    if any(_proves_something(one) for one in results):
        return "pass", ""
    idle = [one.not_meaningful_because or one.excused_because or NO_TEST.format(one.command) for one in results]
    return "inconclusive", idle[0] if idle else NO_CHECK


def _proves_something(result: CheckResult) -> bool:
    """Whether it passed, and ran a test where that is all it does; one that is red and excused counts if other tests pass."""
    tested = bool(result.counts and result.counts.passed)
    only_tests = result.counts is not None and (result.kind == "test" or is_plain_run(result.command))
    if result.excused_because not in ("", AS_ASKED) or (result.ended.ok and only_tests):
        return tested
    return result.status == "pass"
