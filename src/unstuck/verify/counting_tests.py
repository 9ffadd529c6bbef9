"""Edge: Count tests: a check that runs fewer than on the base, and nothing that accounts for it, is a question."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from unstuck.journal import CheckResult, Counts, Remark
from unstuck.plans import Check
from unstuck.verify.base_judge import is_test_run
from unstuck.verify.change_audit import changed_tests, names_path
from unstuck.verify.checks import Site, on_base
from unstuck.verify.judge_files import unaccounted
from unstuck.verify.weighing import own

if TYPE_CHECKING:
    from unstuck.verify.probing_tests import Probe


def fewer_tests(probe: "Probe", checks: Sequence[tuple[Check, CheckResult]]) -> Iterator[Remark]:
    """Find checks that run fewer tests than on the base, whatever files changed."""
    site, subject = probe.site, probe.subject
    for check, result in checks:
        gate = check in site.bench.gates
        if not (check.kind == "test" if gate else is_test_run(check)) or (result.counts is None and not gate):
            continue  # a script of the task's own may well be silent where it is content
        before = _before(site, check, subject.base)
        ran = result.counts.passed + result.counts.failed if result.counts else 0
        if before is None or before.passed + before.failed <= ran:
            continue
        says = f"`{check.command}` runs fewer tests: {ran} now, {before.passed + before.failed} on the base."
        # Moved and merged cases account for it, by the reader's word; where the task names the tests, it has spoken already.
        tests = changed_tests(probe.changes)
        named = bool(tests) and all(names_path(subject.task, change.path) for change in tests)
        settled = named or (bool(tests) and not unaccounted(probe.changes))
        yield own("fewer-tests", says=says, severity="warn" if settled else "ask")


def _before(site: Site, check: Check, base: str) -> Counts | None:
    """Count the tests of the base: a gate was run there; of a task's own check, one run of any colour says enough."""
    if check in site.bench.gates:
        return on_base(site, check, base).counts
    key = f"{site.bench.workspace.tree_of(base)} once"
    known = site.bench.memory.recall(key, check)
    if known is None:
        site.stand(base)
        known = site.once(check)
        site.bench.memory.remember(key, check, known)
    return known.counts
