"""Edge: Run what needs nothing of the other checks at their side, in a checkout of its own."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from unstuck.journal import CheckResult
from unstuck.orders import Subject
from unstuck.plans import Check
from unstuck.verify.checks import Site, check_on

READERS = ("lint", "format", "types")
"""Kinds of gates that read sources: they rarely need what a build or a test run leaves behind."""


@contextmanager
def looking_aside(site: Site, subject: Subject) -> Iterator[Callable[[Check], CheckResult | None]]:
    """Begin with the readers among the gates; the function given says how one went, if it is green.

    One that is red is asked again in its turn: it may have needed what the checks before it make.
    """
    gates, beside = site.bench.gates, site.bench.beside
    readers = [gate for gate in gates if gate.kind in READERS]
    others = len(subject.task.checks) + len(gates) - len(readers)
    # Where a set-up is needed, a second checkout would cost more than it saves.
    if beside is None or not readers or not others or site.bench.config.workspace.setup:
        yield lambda _gate: None
        return
    second = Site(bench=site.bench, name=site.name, slot=site.slot + beside)
    with ThreadPoolExecutor(max_workers=1) as pool:
        looked: Future[Mapping[Check, CheckResult]] = pool.submit(_look, second, subject, readers)
        yield lambda gate: looked.result().get(gate) if gate in readers else None


def _look(site: Site, subject: Subject, readers: Sequence[Check]) -> Mapping[Check, CheckResult]:
    results = {gate: check_on(site, gate, subject.base, subject.tree, subject.tree) for gate in readers}
    return {gate: result for gate, result in results.items() if result.status == "pass"}
