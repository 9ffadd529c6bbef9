"""Edge: Try a change beyond its own checks: new tests on the old code, red ones for red, and the checks of what landed before.

Law: what landed in this run stays green: a later task may build on an earlier one, not take it back. And what one task
did to the judge without being asked to, harmlessly then, does not help the next one.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from unstuck.diagnosis import reason
from unstuck.journal import CheckResult, Remark, Verdict
from unstuck.line import Bench
from unstuck.orders import Subject
from unstuck.plans import END_TO_END, Check
from unstuck.tell import one_line
from unstuck.tools import is_plain_run, selecting
from unstuck.verify.change import Change, added_lines, found, is_declared, is_judge, part_of, removed_lines, rule_of
from unstuck.verify.change_audit import changed_tests, names_path
from unstuck.verify.checks import Site, check_on, on_base

READ_BY_TOOLS = ("commands", "settings", "support")
AIDS = ("test", "support", "snapshot", "testdata")
"""Parts that belong to the tests: they move together."""
NO_TESTS_RAN = 5
LEAST_CHARS = 4
"""A line shorter than this says nothing about who wrote it."""
MOST = 20
"""Files whose lines are looked up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One change, and the checkout in which it is tried."""

    site: Site
    subject: Subject
    changes: Sequence[Change]

    def on_old_code(self) -> Iterator[Remark]:
        """Run new tests on the base: one that passes there proves nothing about the work."""
        new = self._new_tests()
        check = self._selected(new)
        if check is None or not changed_tests(self.changes, ("product",)):
            return
        aids = [one.path for one in changed_tests(self.changes, AIDS) if one.new is not None]
        tree = self.site.bench.workspace.mixed(self.subject.base, self.subject.tree, aids)
        if self.site.once(check, self.subject.base, tree).ended.ok:
            yield found("proves-nothing", new[0])

    def red(self) -> tuple[Remark, ...]:
        """Run the new tests of a [RED] task: one of them must fail, and not by a mistake."""
        new = self._new_tests()
        check = self._selected(new)
        if check is None:
            return ()
        result = self.site.run(check, self.subject.base, self.subject.tree)
        return () if fails_rightly(self, result) else (found("not-red", new[0], says=_why_not_red(result)),)

    def new_tests_fail(self, result: CheckResult) -> bool:
        """Whether all that a red gate complains of is new: what a [RED] task is for."""
        new = self._new_tests()
        return bool(new) and (not result.tests or all(any(path in test for path in new) for test in result.tests))

    def _new_tests(self) -> list[str]:
        return [change.path for change in changed_tests(self.changes) if change.new and any(added_lines(change))]

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


def stays_green(probe: Probe, known: Collection[str]) -> Iterator[Remark]:
    """Run the checks of landed tasks whose files this change touches, and say whose lines it takes back.

    `known`: the commands that were run already.
    """
    bench, asked = probe.site.bench, set(known)
    paths = {change.path for change in probe.changes}
    touched = [name for name, _ in landed(bench, but=probe.subject.task.id) if paths & _files(bench, name)]
    undone = set()
    for name in touched:
        checks = [check for check in lasting_checks(bench, name) if check.command not in asked]
        asked |= {check.command for check in checks}
        for remark in _red_now(probe, name, checks) if checks else ():
            undone.add(name)
            yield remark
    for path, name, text in _taken_back(probe) if touched else ():
        if name not in undone:
            says = f"It takes back what task {name} added: {one_line(text, 80)}"
            doubtful = not lasting_checks(bench, name) and not names_path(probe.subject.task, path)
            yield found("takes-back", path, says=says, severity="ask" if doubtful else "warn")


def old_forms(probe: Probe) -> Mapping[str, Sequence[str]]:
    """Return what landed tasks of this run did to the judge without naming it, by the commit that has its old form.

    The first form counts; a later task that names the file, or a person who accepted the work, had a right to change it.
    """
    bench, forms = probe.site.bench, dict[str, str]()
    states = {
        task.commit: task for task in bench.record.state.tasks.values() if task.commit and task.task.id in bench.tasks
    }
    verdicts = {commit: task.current.verdict for commit, task in states.items()}
    if not any(_bent(verdict) for verdict in verdicts.values() if verdict):
        return {}
    started, base = bench.record.state.started, probe.subject.base
    for commit in reversed(bench.workspace.history(base, started.base if started else base)):
        if (verdict := verdicts.get(commit)) is None:
            continue
        files = bench.tasks[states[commit].task.id].files
        meant = {path for path in verdict.files if states[commit].accepted or is_declared(path, files)}
        bent = dict.fromkeys((path for path in _bent(verdict) if path not in meant), verdict.base)
        forms = {path: form for path, form in (bent | forms).items() if path not in meant}
    mine = {path: form for path, form in forms.items() if not is_declared(path, probe.subject.task.files)}
    return {form: [path for path in mine if mine[path] == form] for form in dict.fromkeys(mine.values())}


def _bent(verdict: Verdict) -> list[str]:
    """List what a landed change did to its judge: tests that the reader doubted, and whatever else tools may read."""
    doubted = [one.path for one in verdict.remarks if one.severity == "warn" != rule_of(one.rule).severity]
    read = [path for path in verdict.files if part_of(path) in READ_BY_TOOLS]
    return [path for path in dict.fromkeys((*doubted, *read)) if is_judge(path) and part_of(path) != "ours"]


def landed(bench: Bench, but: str = "") -> list[tuple[str, str]]:
    """List the tasks of this run that landed, each with its commit."""
    tasks = bench.record.state.tasks.items()
    return [(name, task.commit) for name, task in tasks if task.commit is not None and name != but]


def lasting_checks(bench: Bench, name: str) -> tuple[Check, ...]:
    """Return the checks of a landed task that must go on to hold: not that a test is red, nor what needs a server."""
    task = bench.tasks.get(name)
    if task is None or "RED" in task.markers or END_TO_END.fullmatch(name):
        return ()
    return task.checks


def _red_now(probe: Probe, name: str, checks: Collection[Check]) -> Iterator[Remark]:
    subject = probe.subject
    site = Site(bench=probe.site.bench, name=name, slot=probe.site.slot)
    probe.site.stands_on = None  # the same folder, entered under another task's name
    for check in checks:
        result = check_on(site, check, subject.base, subject.tree, subject.tree)
        if result.status != "fail" or result.flaky or on_base(site, check, subject.base).status == "fail":
            continue
        last = next((line for line in reversed(result.ended.tail.splitlines()) if line.strip()), "it says nothing")
        says = f"It undoes what task {name} did: `{check.command}`, which held, fails now: {one_line(last, 160)}"
        yield found("undoes", says=says)


def _taken_back(probe: Probe) -> Iterator[tuple[str, str, str]]:
    """Yield path, task and line for every file of which this change removes, and does not move, what a task added."""
    bench, base = probe.site.bench, probe.subject.base
    started, tasks = bench.record.state.started, {commit: name for name, commit in landed(bench)}
    moved = {line.text.strip() for change in probe.changes for line in added_lines(change)}
    gone = [
        (change.path, {text for line in removed_lines(change) if len(text := line.text.strip()) >= LEAST_CHARS} - moved)
        for change in probe.changes
    ]
    for path, texts in [(path, texts) for path, texts in gone if texts][:MOST]:
        lines = bench.workspace.authors(path, base, started.base if started else base)
        named = {tasks[commit]: line for commit, line in reversed(lines) if commit in tasks and line.strip() in texts}
        yield from ((path, name, line.strip()) for name, line in named.items())


def _files(bench: Bench, name: str) -> set[str]:
    made = bench.record.state.tasks[name].changes
    return {*made.created, *made.modified, *made.deleted} if made is not None else set()
