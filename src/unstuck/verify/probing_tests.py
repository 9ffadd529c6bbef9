"""Edge: Try tests where they were not meant to run: new ones on the old code, red ones for red."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unstuck.diagnosis import reason
from unstuck.journal import CheckResult, Remark
from unstuck.orders import Subject
from unstuck.plans import Check
from unstuck.tools import is_plain_run, selecting
from unstuck.verify.change_audit import changed_tests
from unstuck.verify.checks import Site
from unstuck.verify.weighing import own

if TYPE_CHECKING:
    from unstuck.verify.audit import Change

AIDS = ("test", "support", "snapshot", "testdata")
"""Parts that belong to the tests: they move together."""
NO_TESTS_RAN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One change, and the checkout in which it is tried."""

    site: Site
    subject: Subject
    changes: "Sequence[Change]"

    def on_old_code(self) -> Iterator[Remark]:
        """Run new tests on the base: one that passes there proves nothing about the work."""
        new = self._new_tests()
        check = self._selected(new)
        if check is None or not changed_tests(self.changes, ("product",)):
            return
        if self._run_on_base(check).ended.ok:
            yield own("proves-nothing", new[0])

    def red(self) -> tuple[Remark, ...]:
        """Run the new tests of a [RED] task: one of them must fail, and not by a mistake."""
        new = self._new_tests()
        check = self._selected(new)
        if check is None:
            return ()
        result = self.site.run(check, self.subject.base, self.subject.tree)
        return () if fails_rightly(self, result) else (own("not-red", new[0], says=_why_not_red(result)),)

    def new_tests_fail(self, result: CheckResult) -> bool:
        """Whether all that a red gate complains of is new: what a [RED] task is for."""
        new = self._new_tests()
        return bool(new) and (not result.tests or all(any(path in test for path in new) for test in result.tests))

    def _new_tests(self) -> list[str]:
        from unstuck.verify.audit import added_lines  # noqa: PLC0415  # heavy: loaded when there is a change

        return [change.path for change in changed_tests(self.changes) if change.new and any(added_lines(change))]

    def _run_on_base(self, check: Check) -> CheckResult:
        site, subject = self.site, self.subject
        key = f"{subject.base} with the tests of {subject.tree}"
        if (known := site.bench.memory.recall(key, check)) is not None:
            return known
        site.stand(subject.base)
        site.disturb(subject.tree, [one.path for one in changed_tests(self.changes, AIDS) if one.new is not None])
        result = site.once(check)
        site.bench.memory.remember(key, check, result)
        return result

    def _selected(self, files: Sequence[str]) -> Check | None:
        checks = (*self.subject.task.checks, *self.site.bench.gates)
        line = selecting([check.command for check in checks], files) if files else None
        return Check(command=line, kind="test", timeout=self.site.bench.config.verify.timeout) if line else None


def fails_rightly(probe: Probe, result: CheckResult) -> bool:
    """Whether a test run is red for want of the work: something is asserted, or what the plan speaks of is not there."""
    ended = result.ended
    if ended.ok or ended.ending != "exited" or ended.exit_code == NO_TESTS_RAN:
        return False
    tasks = probe.site.bench.tasks.values()
    spoken = [text for task in tasks for text in (task.body, task.title, *task.files)]
    return reason(ended.tail, spoken) != "mistaken"


def holds_as_red(probe: Probe, result: CheckResult) -> bool:
    """Whether a red check of a [RED] task is the task's very success."""
    return is_plain_run(result.command) and fails_rightly(probe, result)


def _why_not_red(result: CheckResult) -> str:
    if result.ended.ok:
        return "A [RED] task must leave a test that fails, and its new test passes."
    return "The new test fails by a mistake of its own (syntax, a missing import or fixture), not for want of the work."
