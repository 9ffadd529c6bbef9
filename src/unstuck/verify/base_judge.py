"""Edge: Ask the base's judge: the product part of a change under the tests, settings and tools that the base had.

Law: where it is green, whatever was done to the judge is harmless, and it lands. Where it is red, the reader may clear a
rename that the task speaks of, by its form; else the next attempt is told, and then a person is asked.
What was harmless when it landed is not so for the tasks behind it: they are judged by the form that it had before.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from unstuck.diagnosis.diagnosis_result import Diagnosis
from unstuck.diagnosis.missing import reason
from unstuck.model.changes import Change
from unstuck.model.failure import Kind
from unstuck.model.plan import Task
from unstuck.model.text import one_line
from unstuck.model.verdict import Check, CheckResult, Remark, Severity, Verdict
from unstuck.toolchain.shell import programs
from unstuck.toolchain.toolchains import shows_tests
from unstuck.verify.audit.auditing import accounted, asserts
from unstuck.verify.audit.weakened_settings import is_harmless
from unstuck.verify.baseline import compare
from unstuck.verify.change import found, is_declared, is_judge, part_of, pattern, rule_of
from unstuck.verify.checks import TO_BE_WRITTEN, check_on, evidence, is_test_run, narrowed, only_looks
from unstuck.verify.exam import Verification

SAID_CHARS = 160
READ_BY_TOOLS = ("commands", "settings", "support")
_WORDS = re.compile(r"[\s=:,;'\"()&|]+|(?<!\w)\./")
CANNOT_BEGIN = frozenset({Kind.UNVERIFIED, Kind.INVALID_ARGUMENTS})
"""It found no tests, or was asked for one that the base does not have: that says nothing."""
NOT_BUILT = frozenset({Kind.BUILD_BROKEN, Kind.MODULE_MISSING, *TO_BE_WRITTEN})
"""It never came to the tests: what a new dependency looks like without the manifest that names it."""


def ask_base(exam: Verification, doubts: Sequence[Remark]) -> Iterator[Remark]:
    """Run the checks that hold on the product part of the change with the base's judge.

    Yield what is held against it, and the reader's doubts about the judge with the weight that is left of them: where
    nothing is held against it, they are settled, those about tests by a run of tests.
    """
    asked = [
        (question, check, result)
        for question in _questions(exam, doubts)
        for check, result in exam.checks
        if result.status == "pass" and question.fits(check)
    ]
    held = False
    for question, check, result in asked:
        for remark in question.put(check, excused=bool(result.excused_because)) if not held else ():
            held = remark.severity != "warn"
            yield remark
    tested = any(is_test_run(check) for _, check, _ in asked)
    for doubt in doubts:
        settled = not held and (tested or (bool(asked) and part_of(doubt.path) != "test"))
        yield replace(doubt, severity="warn") if settled else doubt


def _questions(exam: Verification, doubts: Sequence[Remark]) -> Iterator["_Question"]:
    """Yield the change under the base's judge, and under what tasks of this run made of it without naming it."""
    if not any(result.status == "pass" and not only_looks(check) for check, result in exam.checks):
        return  # what looks at files says the same under any judge
    out, workspace = unnamed(exam), exam.context.workspace
    own = bent(exam) or out  # new tests alone add tests; what they do to the others, a run of these says
    forms = _old_forms(exam) if exam.playing("product") else {}
    data = [one for one in exam.changes if not exam.task.files and one.old is not None and is_data(one.path)]
    tree = exam.tree_of(one.path for one in exam.changes if one not in out) if own or forms else ""
    if own:
        grave = [one for one in doubts if one.severity != "warn"]
        yield _Question(exam=exam, tree=tree, touched=own, out=out, doubts=grave)
    if data:  # asked by itself: it may be the work, which the base's judge must see
        some = exam.tree_of(one.path for one in exam.changes if one not in (*out, *data))
        yield _Question(exam=exam, tree=some, touched=data, out=(*out, *data))
    lost, base = [], workspace.tree_of(exam.subject.base)
    for commit, paths in forms.items():
        earlier = workspace.changes(commit, exam.subject.tree)
        changes = [one for one in earlier if one.path in paths and not is_harmless(one)]
        tree, base = (workspace.tree_with_paths(some, commit, [one.path for one in changes]) for some in (tree, base))
        lost += changes
    if lost:
        yield _Question(exam=exam, tree=tree, touched=lost, out=out, earlier=base)


def _old_forms(exam: Verification) -> Mapping[str, Sequence[str]]:
    """Return what landed tasks of this run did to the judge without naming it, by the commit that has its old form.

    The first form counts; a later task that names the file, or a person who accepted the work, had a right to change it.
    """
    context, state, forms = exam.context, exam.context.state, dict[str, str]()
    landed = {task.commit: task for task in state.tasks.values() if task.commit and task.task.id in context.tasks}
    verdicts = {commit: task.current.verdict for commit, task in landed.items()}
    if not any(_bent_by(verdict) for verdict in verdicts.values() if verdict):
        return {}
    base = exam.subject.base
    for commit in reversed(context.workspace.history(base, state.started.base if state.started else base)):
        if (verdict := verdicts.get(commit)) is None:
            continue
        files = context.tasks[landed[commit].task.id].files
        meant = {path for path in verdict.files if landed[commit].accepted or is_declared(path, files)}
        bent_here = dict.fromkeys(_bent_by(verdict), verdict.base)
        forms = {path: form for path, form in (bent_here | forms).items() if path not in meant}
    mine = {path: form for path, form in forms.items() if not exam.names(path)}
    return {form: [path for path in mine if mine[path] == form] for form in dict.fromkeys(mine.values())}


def _bent_by(verdict: Verdict) -> list[str]:
    """List what a landed change did to its judge: tests that the reader doubted, and whatever else tools may read."""
    doubted = [one.path for one in verdict.remarks if one.severity == "warn" != rule_of(one.rule).severity]
    read = [path for path in verdict.files if part_of(path) in READ_BY_TOOLS]
    return [path for path in dict.fromkeys((*doubted, *read)) if is_judge(path) and part_of(path) != "ours"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """One tree of our own making, what was done to the judge in it, and what stayed out of it."""

    exam: Verification
    tree: str
    touched: Sequence[Change]
    out: Sequence[Change]
    doubts: Sequence[Remark] = ()
    """What the reader holds against what was done to the judge."""
    earlier: str = ""
    """The base with the forms that files had before other tasks of this run, where the question is about these."""

    def fits(self, check: Check) -> bool:
        """Whether the base's judge can be asked: not by a look at files, nor by a check that names what it does not have.

        A new file is named by a path, or by a bare word that a look at files is given.
        """
        parts = [part.partition(" ") for part in programs(check.command)]
        given = "\n".join(rest for _, _, rest in parts)
        looked_at = "\n".join(rest for program, _, rest in parts if pattern("judge", "steady").fullmatch(program))
        named = any(_mentions(given if {".", "/"} & {*name} else looked_at, name) for name in self._new)
        return not only_looks(check) and not named and (is_test_run(check) or not self._adds)

    def put(self, check: Check, *, excused: bool) -> Iterator[Remark]:
        """Run one check; say what fails, unless something clears it. `excused`: it is red with the change's judge, too."""
        exam = self.exam
        if self._holds_narrowed(check):
            return
        result = check_on(exam.site, check, exam.subject.base, self.tree)
        if result.ended.ok or (excused and compare(result, exam.before(check)).verdict == "same"):
            return
        if result.flaky and exam.before(check).flaky:
            return  # it never says the same twice, with or without the work
        diagnosis = exam.context.judge.diagnose(evidence(check, result.ended))
        asserted = reason(result.ended.tail) == "asserted"
        if self._adds and not result.tests:
            return  # no test of the base is red: it asks for more of them, as a floor under coverage does
        if not asserted and not self.doubts:  # the red may be about the tree that we made, and not about the product
            if diagnosis is not None and diagnosis.kind in CANNOT_BEGIN:
                return
            if wanted := self._missed(result.ended.tail):
                says = "It is new, the task does not name it, and a check of the base cannot do without it."
                yield found("judge-added", wanted, says=says)
                return
        if self._cleared(result, diagnosis, built=asserted or diagnosis is None or diagnosis.kind not in NOT_BUILT):
            return
        if self.earlier and not self._is_owed(check):
            return
        yield self._refusal(check, result, diagnosis)

    @property
    def _adds(self) -> bool:
        """Whether nothing was done to the judge but that new tests were added."""
        return all(is_new_test(one) for one in self.touched)

    def _holds_narrowed(self, check: Check) -> bool:
        """Whether the changed test files hold by themselves, where nothing else was changed and the runner can be asked."""
        if any(part_of(one.path) != "test" or one.old is None for one in self.touched):
            return False
        part = narrowed([check], [one.path for one in self.touched])
        result = check_on(self.exam.site, part, self.exam.subject.base, self.tree) if part is not None else None
        if result is None or not result.ended.ok:
            return False
        return bool(result.counts.passed) if result.counts else shows_tests(result.command, result.ended.tail)

    def _is_owed(self, check: Check) -> bool:
        """Whether a check that is red with the old forms is for this change to answer: it breaks it, or was spared the work.

        What held at the start and does not hold with these forms any more, another task had reasons for.
        """
        exam, started = self.exam, self.exam.context.state.started
        if check_on(exam.site, check, exam.subject.base, self.earlier).ended.ok:
            return True
        spared = check in exam.task.checks and exam.before(check).ended.ok
        return spared and started is not None and not check_on(exam.site, check, started.base).ended.ok

    def _missed(self, output: str) -> str:
        """Return the new file that an output says is missing."""
        lines = [line for line in output.splitlines() if pattern("judge", "missing").search(line)]
        return next((path for name, path in self._new.items() if any(_mentions(line, name) for line in lines)), "")

    def _cleared(self, result: CheckResult, diagnosis: Diagnosis | None, *, built: bool) -> bool:
        """Whether the reader clears it: tests that assert what they did, or a manifest that asks for one package more."""
        if not all(part_of(one.path) == "test" or is_harmless(one) for one in self.touched):
            return False
        said = [line for line in result.ended.tail.splitlines() if pattern("judge", "absent").search(line)]
        said.append(diagnosis.message if diagnosis is not None else "")
        spoken_of = speaks_of(self.exam.task, self.touched, "\n".join(said))
        if spoken_of and not unaccounted(self.exam.changes, result.tests):
            return True
        return not built and not self.doubts and any(part_of(one.path) != "test" for one in self.touched)

    def _refusal(self, check: Check, result: CheckResult, diagnosis: Diagnosis | None) -> Remark:
        """Say what fails, with the file that was bent, the test and the assertion."""
        data = [one for one in self.touched if is_data(one.path)]
        about_data, in_time = bool(data) and self._holds_with(check, data), result.ended.ending == "exited"
        doubted = {one.path: one.line for one in reversed(self.doubts)}
        causes = sorted(data if about_data else self.touched, key=lambda one: one.path not in doubted)
        named = ", ".join(one.path for one in causes[:3])
        silent = "it says nothing" if in_time else "it does not end in time"
        said = one_line(diagnosis.message, SAID_CHARS) if in_time and diagnosis and diagnosis.message else silent
        tests = f"{', '.join(result.tests[:3])}: " if result.tests else ""
        without = "in its old form it fails" if causes[0].old is not None else "without it this fails"
        whose = "Another task of this run changed" if self.earlier else "The task does not name"
        says = f"{whose} {named}; {without} on the new code: `{check.command}`: {tests}{said}"
        # Whether data belongs to the product, and why a run has no end, a person can tell.
        severity: Severity | None = "ask" if about_data or not in_time else None
        return found("old-test-fails", causes[0].path, doubted.get(causes[0].path, 1), says, severity=severity)

    def _holds_with(self, check: Check, changes: Sequence[Change]) -> bool:
        """Whether a check holds once these changes are let in: then they are what it is about."""
        exam = self.exam
        tree = exam.tree_of(one.path for one in exam.changes if one not in self.out or one in changes)
        return check_on(exam.site, check, exam.subject.base, tree).ended.ok

    @property
    def _new(self) -> dict[str, str]:
        """The names by which commands and outputs speak of files that the base does not have, with their paths."""
        paths = [one.path for one in self.out if one.old is None]
        return {**{path.rpartition("/")[2]: path for path in paths}, **{path: path for path in paths}}


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None


# --- what a change does to its judge, beyond what the task names ------------------------------------------------------


def unnamed(exam: Verification) -> list[Change]:
    """Return the changes to judge files that the task does not name; our own settings are the audit's."""
    files = exam.task.files
    return [
        change
        for change in exam.changes
        if (is_judge(change.path) or _is_checking(change, exam.task))
        and part_of(change.path) != "ours"
        and (files or not is_data(change.path))
        and not exam.names(change.path)
    ]


def _is_checking(change: Change, task: Task) -> bool:
    """Whether a check of the task names a file of the base, and the task's Files or what it asserts make it no work."""
    led = change.old is not None and is_led_to(change.path, task)
    return led and (bool(task.files) or asserts(change))


def bent(exam: Verification) -> list[Change]:
    """Return those of them that are more than new tests."""
    return [one for one in unnamed(exam) if not is_new_test(one)]


def is_new_test(change: Change) -> bool:
    """Whether a file that the base does not have is taken for tests by its name."""
    return change.old is None and pattern("judge", "cases").search(change.path) is not None


def is_led_to(path: str, task: Task) -> bool:
    """Whether a check of the task names a file, by its path, its name, or what stands before its ending: ID=1.1.

    A compiler or a linter only reads what it is given, and a run of tests that is given a name looks for it.
    """
    name = path.rpartition("/")[2]
    meant = {path, name, name.rpartition(".")[0] or name}
    return any(not meant.isdisjoint(_WORDS.split(_running(check.command))) for check in task.checks)


def _running(command: str) -> str:
    """Return a command without what only reads the files that it is given, and without the names that tests are asked for by."""
    for part in filter(pattern("judge", "only_reads").match, programs(command)):
        command = command.replace(part, "", 1)
    return pattern("judge", "asks_by_name").sub(r"\1", command)


def is_data(path: str) -> bool:
    """Whether a file of no known kind may be the work itself: a new one, of a task that names no Files."""
    return part_of(path) == "unknown" and pattern("judge", "read_by_itself").search(path) is None


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
    tests = accounted(changes)
    wanted = {re.split(r"::| > |\[", name)[-1 if "[" not in name else -2].strip() for name in names}
    concerned = [lives for name, lives in tests if name.rpartition("::")[2] in wanted] or [lives for _, lives in tests]
    return not concerned or not all(concerned)
