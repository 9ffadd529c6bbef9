"""Edge: What landed in this run stays green: a later task may build on an earlier one, not take it back."""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from unstuck.journal import Remark
from unstuck.plans import END_TO_END, Check
from unstuck.tell import one_line
from unstuck.verify.change_audit import names_path
from unstuck.verify.checks import Site, baseline, check_on
from unstuck.verify.weighing import own

if TYPE_CHECKING:
    from unstuck.line import Bench
    from unstuck.verify.audit import Change
    from unstuck.verify.probing_tests import Probe

LEAST_CHARS = 4
"""A line shorter than this says nothing about who wrote it."""


def stays_green(probe: "Probe", known: Collection[str]) -> Iterator[Remark]:
    """Run the checks of landed tasks whose files this change touches, and say whose lines it takes back.

    `known`: the commands that were run already.
    """
    subject, site = probe.subject, probe.site
    asked = set(known)
    for name, commit in landed(site.bench, but=subject.task.id):
        made = {one.path: one for one in site.bench.workspace.changes(f"{commit}^", commit)}
        common = [change for change in probe.changes if change.path in made]
        if not common:
            continue
        checks = [check for check in lasting_checks(site.bench, name) if check.command not in asked]
        asked |= {check.command for check in checks}
        red = list(_red_now(probe, name, checks))
        yield from red
        judged = bool(lasting_checks(site.bench, name))
        for change in common:
            gone = _taken_back(change, made[change.path], probe.changes)
            if gone and not red:
                says = f"It takes back what task {name} added: {one_line(gone, 80)}"
                doubtful = not judged and not names_path(subject.task, change.path)
                yield own("takes-back", change.path, says=says, severity="ask" if doubtful else "warn")


def landed(bench: "Bench", but: str = "") -> list[tuple[str, str]]:
    """List the tasks of this run that landed, each with its commit."""
    tasks = bench.record.state.tasks.items()
    return [(name, task.commit) for name, task in tasks if task.commit is not None and name != but]


def lasting_checks(bench: "Bench", name: str) -> tuple[Check, ...]:
    """Return the checks of a landed task that must go on to hold: not that a test is red, nor what needs a server."""
    task = bench.tasks.get(name)
    if task is None or "RED" in task.markers or END_TO_END.fullmatch(name):
        return ()
    return task.checks


def _red_now(probe: "Probe", name: str, checks: Collection[Check]) -> Iterator[Remark]:
    subject = probe.subject
    site = Site(bench=probe.site.bench, name=name, slot=probe.site.slot)
    probe.site.stands_on = None  # the same folder, entered under another task's name
    for check in checks:
        result = check_on(site, check, subject.base, subject.tree, subject.tree)
        if result.status != "fail" or result.flaky or baseline(site, check, subject.base).status == "fail":
            continue
        last = next((line for line in reversed(result.ended.tail.splitlines()) if line.strip()), "it says nothing")
        says = f"It undoes what task {name} did: `{check.command}`, which held, fails now: {one_line(last, 160)}"
        yield own("undoes", says=says)


def _taken_back(change: "Change", made: "Change", changes: "Collection[Change]") -> str:
    """Return the first line that the other task added and this change removes, unless it only moved."""
    from unstuck.verify.audit.change import added_lines, removed_lines  # noqa: PLC0415  # heavy, and seldom needed

    added = {line.text.strip() for line in added_lines(made)}
    moved = {line.text.strip() for other in changes for line in added_lines(other)}
    gone = (line.text.strip() for line in removed_lines(change))
    return next((text for text in gone if len(text) >= LEAST_CHARS and text in added and text not in moved), "")
