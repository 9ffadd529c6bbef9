"""Edge: Ask the base's judge: the product part of a change under the tests, settings and tools that the base had.

Law: where it is green, whatever was done to the judge is harmless, and it lands. Where it is red, the reader may clear a
rename that the task speaks of, by its form; else the next attempt is told, and then a person is asked.
What was harmless when it landed is not so for the tasks behind it: they are judged by the form that it had before.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from unstuck.diagnosis import Diagnosis, Evidence, Kind, reason
from unstuck.journal import CheckResult, Remark, Severity
from unstuck.plans import Check, Task
from unstuck.tell import one_line
from unstuck.tools import programs, role, selecting, shows_tests
from unstuck.verify.baseline import excuse
from unstuck.verify.change import Change, added_lines, found, is_declared, is_judge, known, part_of, pattern
from unstuck.verify.change_audit import changed_tests, names_path
from unstuck.verify.checks import STEADY, check_on, evidence, on_base, program_names
from unstuck.verify.probing import Probe, old_forms

SAID_CHARS = 160
MOST_CANARIES = 20
_WORDS = re.compile(r"[\s=:,;'\"()&|]+|(?<!\w)\./")
CANNOT_BEGIN = frozenset({Kind.UNVERIFIED, Kind.INVALID_ARGUMENTS})
"""It found no tests, or was asked for one that the base does not have: that says nothing."""
NOT_BUILT = frozenset(
    {Kind.BUILD_BROKEN, Kind.MODULE_MISSING, Kind.DEPENDENCY_MISSING, Kind.PACKAGE_NOT_FOUND, Kind.COMMAND_NOT_FOUND}
)
"""It never came to the tests: what a new dependency looks like without the manifest that names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the base's judge says: whether it was asked at all, by a run of tests, and what it holds against the change."""

    asked: bool = False
    tested: bool = False
    remarks: tuple[Remark, ...] = ()


def ask_base(probe: Probe, checks: Sequence[tuple[Check, CheckResult]], doubts: Sequence[Remark]) -> Answer:
    """Run the checks that hold on the product part of the change with the base's judge; `doubts`: what the reader found."""
    questions = list(_questions(probe, tuple(doubts)))
    green = [(check, result) for check, result in checks if result.status == "pass"]
    asked = [(question, check, result) for question in questions for check, result in green if question.fits(check)]
    remarks = (
        remark for question, check, result in asked for remark in question.put(check, excused=bool(result.although))
    )
    first = next(remarks, None)
    tested = any(is_test_run(check) for _, check, _ in asked)
    needed = (remark for question in questions for remark in question.needed())
    return Answer(asked=bool(asked), tested=tested, remarks=(first,) if first else tuple(needed))


def _questions(probe: Probe, doubts: tuple[Remark, ...]) -> Iterator["_Question"]:
    """Yield the change under the base's judge, and under what tasks of this run made of it without naming it."""
    from unstuck.verify.audit import is_harmless  # noqa: PLC0415  # heavy: loaded when there is a change to judge

    subject, workspace = probe.subject, probe.site.bench.workspace
    own, out = bent(probe.changes, subject.task), unnamed(probe.changes, subject.task)
    forms = old_forms(probe) if any(part_of(one.path) == "product" for one in probe.changes) else {}
    if not own and not forms:
        return
    kept = {one.path for one in probe.changes} - {one.path for one in out}
    tree = workspace.mixed(subject.base, subject.tree, sorted(kept))
    if own:
        yield _Question(probe=probe, tree=tree, touched=own, out=out, doubts=doubts)
    lost, base = [], workspace.tree_of(subject.base)
    for commit, paths in forms.items():
        changes = [one for one in workspace.changes(commit, subject.tree) if one.path in paths and not is_harmless(one)]
        tree, base = (workspace.mixed(some, commit, [one.path for one in changes]) for some in (tree, base))
        lost += changes
    if lost:
        yield _Question(probe=probe, tree=tree, touched=tuple(lost), out=out, doubts=(), earlier=base)


def settled(answer: Answer, doubt: Remark) -> bool:
    """Whether a doubt about the judge is settled: the base's own was asked, by a run of tests where it is about a test."""
    return answer.tested or (answer.asked and part_of(doubt.path) != "test")


@dataclass(slots=True, kw_only=True)
class _Question:
    """One tree of our own making, and what stayed out of it."""

    probe: Probe
    tree: str
    touched: tuple[Change, ...]
    out: tuple[Change, ...]
    doubts: tuple[Remark, ...]
    earlier: str = ""
    """The base with the forms that files had before other tasks of this run, where the question is about these."""
    wanted: str = ""
    """A new file without which a check cannot do."""

    def fits(self, check: Check) -> bool:
        """Whether the base's judge can be asked: not by a look at files, nor by a check that names what it does not have."""
        return not program_names(check) <= STEADY and not any(self._asks_for(check, name) for name in self._new)

    def _asks_for(self, check: Check, name: str) -> bool:
        """Whether a check names a file that is new: by a path, or by a bare word that a look at files is given."""
        parts = [part.partition(" ") for part in programs(check.command)]
        return any(_mentions(rest, name) for program, _, rest in parts if {".", "/"} & {*name} or program in STEADY)

    def put(self, check: Check, *, excused: bool) -> Iterator[Remark]:
        """Run one check; say what fails, unless something clears it. `excused`: it is red with the change's judge, too."""
        site, subject = self.probe.site, self.probe.subject
        narrow = self._narrowed(check)
        if narrow is not None:
            result = self._run(narrow)
            ran = result.counts.passed if result.counts else shows_tests(narrow.command, result.ended.tail)
            if result.ended.ok and ran:
                return
        result = self._run(check)
        if result.ended.ok or (excused and excuse(result, on_base(site, check, subject.base))):
            return
        if result.flaky and on_base(site, check, subject.base).flaky:
            return  # it never says the same twice, with or without the work
        diagnosis = site.bench.judge.diagnose(evidence(check, result.ended))
        if self._says_nothing(result, diagnosis) or self._cleared(result, diagnosis):
            return
        if self.earlier and not check_on(site, check, subject.base, self.earlier, self.earlier).ended.ok:
            return  # it does not hold with these forms anyhow, so it is not this change that breaks it
        data = tuple(one for one in self.touched if is_data(one.path))
        about_data = bool(data) and self._holds_with(check, data)
        doubted = {one.path for one in self.doubts if one.severity != "warn"}
        causes = sorted(data if about_data else self.touched, key=lambda one: one.path not in doubted)
        named = ", ".join(one.path for one in causes[:3])
        said = one_line(diagnosis.message, SAID_CHARS) if diagnosis and diagnosis.message else "it says nothing"
        tests = f"{', '.join(result.tests[:3])}: " if result.tests else ""
        without = "in its old form it fails" if causes[0].old is not None else "without it this fails"
        whose = "Another task of this run changed" if self.earlier else "The task does not name"
        says = f"{whose} {named}; {without} on the new code: `{check.command}`: {tests}{said}"
        place = next((one.line for one in self.doubts if one.path == causes[0].path), 1)
        # Whether data belongs to the product nobody can tell by running: a person can.
        severity: Severity | None = "ask" if about_data else None
        yield found("old-test-fails", causes[0].path, line=place, says=says, severity=severity)

    def needed(self) -> Iterator[Remark]:
        if self.wanted:
            says = "It is new, the task does not name it, and a check of the base cannot do without it."
            yield found("judge-added", self.wanted, says=says)

    def _run(self, check: Check) -> CheckResult:
        site, base = self.probe.site, self.probe.subject.base
        if self.tree == site.bench.workspace.tree_of(base):
            return on_base(site, check, base)  # nothing of the product was changed
        return check_on(site, check, base, self.tree, self.tree)

    def _holds_with(self, check: Check, changes: Sequence[Change]) -> bool:
        """Whether a check holds once these changes are let in: then they are what it is about."""
        subject, workspace = self.probe.subject, self.probe.site.bench.workspace
        kept = {one.path for one in self.probe.changes} - {one.path for one in self.out} | {one.path for one in changes}
        tree = workspace.mixed(subject.base, subject.tree, sorted(kept))
        return check_on(self.probe.site, check, subject.base, tree, tree).ended.ok

    def _narrowed(self, check: Check) -> Check | None:
        """Ask for the changed test files alone, where nothing but such files was changed and the runner can be asked."""
        files = [one.path for one in self.touched if part_of(one.path) == "test"]
        if len(files) != len(self.touched) or any(one.old is None for one in self.touched):
            return None
        line = selecting([check.command], files)
        return replace(check, command=line, kind="test") if line else None

    def _says_nothing(self, result: CheckResult, diagnosis: Diagnosis | None) -> bool:
        """Whether the red is about the tree that we made, and not about the product."""
        if self._doubted or reason(result.ended.tail) == "asserted":
            return False
        if diagnosis is not None and diagnosis.kind in CANNOT_BEGIN:
            return True
        missing = [line for line in result.ended.tail.splitlines() if pattern("judge", "missing").search(line)]
        for name in self._new:
            if any(_mentions(line, name) for line in missing):
                self.wanted = self.wanted or next(one.path for one in self.out if one.path.endswith(name))
                return True
        return False

    def _cleared(self, result: CheckResult, diagnosis: Diagnosis | None) -> bool:
        """Whether the reader clears it: tests that assert what they did, or a manifest that asks for one package more."""
        from unstuck.verify.audit import is_harmless  # noqa: PLC0415  # heavy: loaded when there is a change to judge

        if not all(part_of(one.path) == "test" or is_harmless(one) for one in self.touched):
            return False
        said = [line for line in result.ended.tail.splitlines() if pattern("judge", "absent").search(line)]
        said.append(diagnosis.message if diagnosis is not None else "")
        spoken = speaks_of(self.probe.subject.task, self.touched, "\n".join(said))
        if spoken and not unaccounted(self.probe.changes, result.tests):
            return True
        built = diagnosis is None or diagnosis.kind not in NOT_BUILT or reason(result.ended.tail) == "asserted"
        return not built and not self._doubted and any(part_of(one.path) != "test" for one in self.touched)

    @property
    def _doubted(self) -> bool:
        paths = {one.path for one in self.touched}
        return any(doubt.path in paths and doubt.severity != "warn" for doubt in self.doubts)

    @property
    def _new(self) -> set[str]:
        """The names by which commands and outputs speak of files that the base does not have."""
        paths = [one.path for one in self.out if one.old is None]
        return {*paths, *(path.rpartition("/")[2] for path in paths)}


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None


def is_test_run(check: Check) -> bool:
    """Whether a check runs tests: a kind that somebody gave it says so better than its words."""
    by_name = pattern("check", "tests").search(check.command) is not None
    return by_name or role(Evidence(command=check.command, check=check.kind)) == "test"


def hears(probe: Probe, checks: Sequence[tuple[Check, CheckResult]]) -> Iterator[Remark]:
    """Find a run of tests that no longer hears of one that fails: code of the change reaches its runner, and has bent it."""
    site, subject = probe.site, probe.subject
    texts = {
        one.path: "\n".join(line.text for line in added_lines(one)) for one in probe.changes if not is_judge(one.path)
    }
    reaching = [path for path, text in texts.items() if pattern("judge", "reaches").search(text)]
    if not reaching:
        return
    written = _canaries(site.bench.workspace.files(subject.tree), [path.rpartition(".")[2] for path in reaching])
    for check, result in checks:
        if not written or result.status != "pass" or not is_test_run(check):
            continue
        before, now = (site.beside(check, subject.base, tree, written) for tree in (None, subject.tree))
        heard = {test for test in before.tests if "purpose" in test}
        if heard and (now.ended.ok or not heard <= {*now.tests}):
            says = f"With {reaching[0]} in it, `{check.command}` does not hear of a test that fails on purpose."
            yield found("deaf-check", reaching[0], says=says)
            return


def _canaries(files: Sequence[str], endings: Collection[str]) -> dict[str, str]:
    """Give what is written below some of the test files."""
    texts = {ending: known()["canary"][ending] for ending in endings if ending in known()["canary"]}
    tests = [path for path in files if part_of(path) == "test" and path.rpartition(".")[2] in texts]
    return {path: texts[path.rpartition(".")[2]] for path in tests[:MOST_CANARIES]}


def fewer_tests(probe: Probe, checks: Sequence[tuple[Check, CheckResult]]) -> Iterator[Remark]:
    """Find checks that run fewer tests than on the base, whatever files changed."""
    site, subject = probe.site, probe.subject
    for check, result in checks:
        gate = check in site.bench.gates
        if not (check.kind == "test" if gate else is_test_run(check)):
            continue
        before = on_base(site, check, subject.base) if gate else site.once(check, subject.base)
        speaks = gate or pattern("judge", "counts").search(check.command) is not None
        says = next(_runs_less(check, result, before, probe.changes, speaks=speaks), "")
        if not says:
            continue
        # Moved and merged cases account for it, by the reader's word; where the task names the tests, it has spoken already.
        tests = changed_tests(probe.changes)
        named = bool(tests) and all(names_path(subject.task, change.path) for change in tests)
        settled = named or (bool(tests) and not unaccounted(probe.changes))
        yield found("fewer-tests", says=f"`{check.command}` {says}", severity="warn" if settled else "ask")


def _runs_less(
    check: Check, now: CheckResult, before: CheckResult, changes: Sequence[Change], *, speaks: bool
) -> Iterator[str]:
    """Say what a run of tests leaves out, by its counts, by the names that it prints, and by the examples in texts.

    `speaks`: it always counts. A script of the task's own may well be silent where it is content.
    """
    ran, then = (one.counts.passed + one.counts.failed if one.counts else 0 for one in (now, before))
    if then > ran and (speaks or now.counts is not None):
        yield f"runs fewer tests: {ran} now, {then} on the base."
    listed = [line for line in now.ended.tail.splitlines() if pattern("judge", "passed").search(line)]
    whole = now.ended.output_bytes <= len(now.ended.tail.encode())
    leaves = [re.split(r"::| > ", test)[-1] for test in before.tests]
    unseen = [leaf for leaf in leaves if not any(leaf in line for line in listed)]
    if listed and whole and unseen:
        yield f"does not show the test that was red before: {one_line(unseen[0], SAID_CHARS)}."
    examples = [
        sum((text or "").count(">>> ") for text in side)
        for side in zip(*((x.old, x.new) for x in changes), strict=True)
    ]
    if "doctest" in check.command and examples and examples[0] > examples[1]:
        yield f"goes through fewer examples: {examples[1]} now, {examples[0]} on the base."


# --- what a change does to its judge, beyond what the task names ------------------------------------------------------


def unnamed(changes: Sequence[Change], task: Task) -> tuple[Change, ...]:
    """Return the changes to judge files that the task does not name; our own settings are the audit's."""
    return tuple(
        change
        for change in changes
        if (is_judge(change.path) or (task.files and change.old is not None and is_led_to(change.path, task)))
        and part_of(change.path) != "ours"
        and (task.files or not is_data(change.path))
        and not is_declared(change.path, task.files)
    )


def is_led_to(path: str, task: Task) -> bool:
    """Whether a check of the task names a file, by its path, its name, or what stands before its ending: ID=1.1."""
    name = path.rpartition("/")[2]
    meant = {path, name, name.rpartition(".")[0] or name}
    return any(not meant.isdisjoint(_WORDS.split(check.command)) for check in task.checks)


def is_data(path: str) -> bool:
    """Whether a file of no known kind may be the work itself; where the task names Files, this is none of them."""
    return part_of(path) == "unknown" and pattern("judge", "read_by_itself").search(path) is None


def bent(changes: Sequence[Change], task: Task) -> tuple[Change, ...]:
    """Return those of them that could bend the judge; new tests are none of them."""
    return tuple(
        one for one in unnamed(changes, task) if one.old is not None or not pattern("judge", "cases").search(one.path)
    )


def speaks_of(task: Task, touched: Sequence[Change], said: str) -> bool:
    """Whether a task speaks of the names that its change took out of the tests and that the base's tests miss now.

    One without words is a change that a person looks at by hand.
    """
    text = f"{task.title}\n{task.body}"
    before, after = _names("\n".join(x.old or "" for x in touched)), _names("\n".join(x.new or "" for x in touched))
    missed = (before - after) & _names(said)
    return not text.strip() or pattern("judge", "reshapes").search(text) is not None or missed <= _names(text)


def _names(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w+", text))


def unaccounted(changes: Sequence[Change], names: Collection[str] = ()) -> bool:
    """Whether a test of the base lost something that it asserted: one of these by name, or any where none is known by it.

    A text that cannot even be loaded fails without the name of a test. Where none could be read, nobody can account for them.
    """
    from unstuck.verify.audit import accounted  # noqa: PLC0415  # as above

    tests = accounted(changes)
    wanted = {re.split(r"::| > |\[", name)[-1 if "[" not in name else -2].strip() for name in names}
    concerned = [lives for name, lives in tests if name.rpartition("::")[2] in wanted] or [lives for _, lives in tests]
    return not concerned or not all(concerned)
