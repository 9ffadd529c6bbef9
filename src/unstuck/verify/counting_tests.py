"""Edge: Count tests: a gate that runs fewer than on the base, and nothing that accounts for it, is a question."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from unstuck.journal import CheckResult, Remark
from unstuck.plans import Check
from unstuck.verify.change_audit import changed_tests, names_path
from unstuck.verify.checks import on_base
from unstuck.verify.judge_files import unaccounted
from unstuck.verify.weighing import own

if TYPE_CHECKING:
    from unstuck.verify.probing_tests import Probe


def fewer_tests(probe: "Probe", checks: Sequence[tuple[Check, CheckResult]]) -> Iterator[Remark]:
    """Find gates that run fewer tests than on the base, whatever files changed."""
    site, subject = probe.site, probe.subject
    for gate, result in checks:
        if gate not in site.bench.gates or gate.kind != "test":
            continue
        before = on_base(site, gate, subject.base).counts
        ran = result.counts.passed + result.counts.failed if result.counts else 0
        if before is None or before.passed + before.failed <= ran:
            continue
        says = f"`{gate.command}` runs fewer tests: {ran} now, {before.passed + before.failed} on the base."
        # Moved and merged cases account for it, by the reader's word; where the task names the tests, it has spoken already.
        tests = changed_tests(probe.changes)
        named = bool(tests) and all(names_path(subject.task, change.path) for change in tests)
        settled = named or (bool(tests) and not unaccounted(probe.changes))
        yield own("fewer-tests", says=says, severity="warn" if settled else "ask")
