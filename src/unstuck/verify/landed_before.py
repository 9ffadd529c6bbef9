"""Edge: What landed in this run stays green: a later task may build on an earlier one, not take it back."""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from unstuck.journal import Remark
from unstuck.plans import END_TO_END, Check
from unstuck.tell import one_line
from unstuck.verify.change_audit import names_path
from unstuck.verify.checks import Site, check_on, on_base
from unstuck.verify.weighing import own

if TYPE_CHECKING:
    from unstuck.line import Bench
    from unstuck.verify.probing_tests import Probe

LEAST_CHARS = 4
"""A line shorter than this says nothing about who wrote it."""
MOST = 20
"""Files whose lines are looked up."""


def stays_green(probe: "Probe", known: Collection[str]) -> Iterator[Remark]:
    """Run the checks of landed tasks whose files this change touches, and say whose lines it takes back.

    `known`: the commands that were run already.
    """
    bench, asked = probe.site.bench, set(known)
    paths = {change.path for change in probe.changes}
    touched = [
        name for name, _ in landed(bench, but=probe.subject.task.id) if not paths.isdisjoint(_files(bench, name))
    ]
    undone = set()
    for name in touched:
        checks = [check for check in lasting_checks(bench, name) if check.command not in asked]
        asked |= {check.command for check in checks}
        for remark in _red_now(probe, name, checks):
            undone.add(name)
            yield remark
    for path, name, text in _taken_back(probe) if touched else ():
        if name not in undone:
            says = f"It takes back what task {name} added: {one_line(text, 80)}"
            doubtful = not lasting_checks(bench, name) and not names_path(probe.subject.task, path)
            yield own("takes-back", path, says=says, severity="ask" if doubtful else "warn")


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
        if result.status != "fail" or result.flaky or on_base(site, check, subject.base).status == "fail":
            continue
        last = next((line for line in reversed(result.ended.tail.splitlines()) if line.strip()), "it says nothing")
        says = f"It undoes what task {name} did: `{check.command}`, which held, fails now: {one_line(last, 160)}"
        yield own("undoes", says=says)


def _taken_back(probe: "Probe") -> Iterator[tuple[str, str, str]]:
    """Yield path, task and line for every file of which this change removes, and does not move, what a task added."""
    from unstuck.verify.audit.change import added_lines, removed_lines  # noqa: PLC0415  # heavy, and seldom needed

    bench, base = probe.site.bench, probe.subject.base
    started, tasks = bench.record.state.started, {commit: name for name, commit in landed(bench)}
    moved = {line.text.strip() for change in probe.changes for line in added_lines(change)}
    gone = [(change.path, {line.text.strip() for line in removed_lines(change)} - moved) for change in probe.changes]
    for path, texts in [(path, texts) for path, texts in gone if any(len(text) >= LEAST_CHARS for text in texts)][
        :MOST
    ]:
        seen = set()
        for commit, line in bench.workspace.authors(path, base, started.base if started else base):
            name, text = tasks.get(commit, ""), line.strip()
            if name and name not in seen and text in texts and len(text) >= LEAST_CHARS:
                seen.add(name)
                yield path, name, text


def _files(bench: "Bench", name: str) -> tuple[str, ...]:
    made = bench.record.state.tasks[name].changes
    return (*made.created, *made.modified, *made.deleted) if made is not None else ()
