"""Edge: Try what the checks alone do not show: that they still count and hear, that red is red, and that what landed stays.

Law: what landed in this run stays green: a later task may build on an earlier one, not take it back.
"""

import re
from collections.abc import Iterator, Sequence

from unstuck.diagnosis.judging import FILE_NAME
from unstuck.diagnosis.missing import reason
from unstuck.model.plan import END_TO_END_ID
from unstuck.model.text import one_line
from unstuck.model.verdict import Check, CheckResult, Remark
from unstuck.toolchain.toolchains import is_plain_run, shows_tests
from unstuck.verify.base_judge import SAID_CHARS, unaccounted
from unstuck.verify.change import added_lines, found, pattern, removed_lines
from unstuck.verify.check_context import CheckContext
from unstuck.verify.checks import CleanCheckout, check_on, is_test_run, narrowed, on_base
from unstuck.verify.exam import Verification
from unstuck.verify.hearing import comes_to_its_end, expects, hears

RED = "RED"
AIDS = ("test", "support", "snapshot", "testdata")
"""Parts that belong to the tests: they move together."""
NO_TESTS_RAN = 5
LEAST_CHARS = 4
"""A line shorter than this says nothing about who wrote it."""
MOST = 20
"""Files whose lines are looked up."""
PASSES = "A [RED] task must leave a test that fails, and its {} passes."
BENT_GREEN = "It was red before, and in its new form it passes on the old code: not the work made it green."
MISTAKEN = "The new test fails by a mistake of its own (syntax, a missing import or fixture), not for want of the work."


# --- tests that are still run -------------------------------------------------------------------------------------------


def fewer_tests(exam: Verification) -> Iterator[Remark]:
    """Find checks that run fewer tests than on the base, whatever files changed."""
    for check, result in exam.checks:
        gate = check in exam.context.gates
        if not (check.kind == "test" if gate else is_test_run(check)):
            continue
        says = next(_runs_less(exam, check, result, exam.before_work(check)), "")
        if not says:
            continue
        # Moved and merged cases account for it, by the reader's word; where the task names the tests, it has spoken already.
        tests = exam.playing("test")
        settled = bool(tests) and (all(exam.names(one.path) for one in tests) or not unaccounted(exam.changes))
        yield found("fewer-tests", says=f"`{check.command}` {says}", severity="warn" if settled else "ask")


def _runs_less(exam: Verification, check: Check, now: CheckResult, before: CheckResult) -> Iterator[str]:
    """Say what a run of tests leaves out, by its counts, by the names that it prints, and by the examples in texts."""
    # A script of the task's own may well be silent where it is content; a gate and a known runner count, or say `ok`.
    counts = check in exam.context.gates or pattern("judge", "counts").search(check.command) is not None
    speaks = counts and not shows_tests(check.command, now.ended.tail)
    ran, then = (one.counts.passed + one.counts.failed if one.counts else 0 for one in (now, before))
    if then > ran and (speaks or now.counts is not None or before.ended.ok):
        yield f"runs fewer tests: {ran} now, {then} on the base."
    whole = now.ended.output_bytes <= len(now.ended.tail.encode())
    # The parts of a test of pytest's are told by their values where they fail, and with their test where they pass.
    red = [re.sub(r" [(\[].*", "", test, flags=re.DOTALL) if "::" in test else test for test in before.tests]
    unseen = _unseen(now.ended.tail, [re.split(r"::| > ", test)[-1] for test in red]) if whole else []
    if unseen:
        yield f"does not show the test that was red before: {one_line(unseen[0], SAID_CHARS)}."
    was, is_now = (
        sum((text or "").count(">>> ") for text in side)
        for side in zip(*((x.old, x.new) for x in exam.changes), strict=True)
    )
    if "doctest" in check.command and was > is_now:
        yield f"goes through fewer examples: {is_now} now, {was} on the base."


def _unseen(output: str, names: Sequence[str]) -> list[str]:
    """Return those of the tests that a runner does not list among what passed, where it lists tests and not files."""
    listed = [line for line in output.splitlines() if pattern("judge", "passed").search(line)]
    titles = [pattern("judge", "lasted").sub("", pattern("judge", "passed").sub("", line).strip()) for line in listed]
    if any(pattern("judge", "file_of_some").fullmatch(title) for title in titles):
        return []
    if all(FILE_NAME.fullmatch(title) for title in titles):
        return []
    # What a line shows of a test may be all of its name, or what stands behind the groups that it is in.
    return [
        name
        for name in names
        if not any(name in line for line in listed) and not any(f" {name}".endswith(f" {title}") for title in titles)
    ]


# --- new tests, and those that are meant to fail ----------------------------------------------------------------------


def proves_nothing(exam: Verification) -> Iterator[Remark]:
    """Run new tests on the base: one that passes there proves nothing, and one that was red there was bent."""
    new, check = _new_tests(exam)
    if not new or not exam.playing("product"):
        return
    once, base = exam.site.once, exam.subject.base
    tree = exam.tree_of(one.path for one in exam.playing(*AIDS) if one.new is not None)
    changed = any(one.old is not None and one.path in new for one in exam.changes)
    own = [one for one in exam.task.checks if is_test_run(one)] if changed else ()
    if any(not once(one, base).ended.ok and once(one, base, tree).ended.ok for one in own):
        yield found("proves-nothing", new[0], says=BENT_GREEN, severity="ask")
    elif check is not None and once(check, base, tree).ended.ok:
        yield found("proves-nothing", new[0])


def not_red(exam: Verification) -> Iterator[Remark]:
    """Find a [RED] task whose test does not fail, or fails by a mistake: by its own check, or by its new tests alone."""
    plain = [result for result in exam.own_results if is_plain_run(result.command)]
    if any(result.ended.ok for result in plain) and all(not result.excused_because for result in plain):
        yield found("not-red", says=PASSES.format("check"))
    if plain or any(result.status == "fail" for result in exam.own_results):
        return
    new, check = _new_tests(exam)
    result = exam.site.run(check, exam.subject.base, exam.subject.tree) if check is not None else None
    if result is not None and not fails_rightly(exam, result):
        yield found("not-red", new[0], says=PASSES.format("new test") if result.ended.ok else MISTAKEN)


def fails_rightly(exam: Verification, result: CheckResult) -> bool:
    """Whether a test run is red for want of the work: something is asserted, or what the plan speaks of is not there."""
    ended = result.ended
    if ended.ok or ended.ending != "exited" or ended.exit_code == NO_TESTS_RAN:
        return False
    spoken = [text for task in exam.context.tasks.values() for text in (task.body, task.title, *task.files)]
    return reason(ended.tail, spoken) != "mistaken"


def new_tests_fail(exam: Verification, result: CheckResult) -> bool:
    """Whether all that a red gate complains of is new: what a [RED] task is for."""
    new, _ = _new_tests(exam)
    return bool(new) and all(any(path in test for path in new) for test in result.tests)


def _new_tests(exam: Verification) -> tuple[list[str], Check | None]:
    """Return the test files with something new in them, and the check that runs these alone."""
    files = [change.path for change in exam.playing("test") if change.new and any(added_lines(change))]
    return files, narrowed((*exam.task.checks, *exam.context.gates), files)


# --- what landed before -----------------------------------------------------------------------------------------------


def stays_green(exam: Verification) -> Iterator[Remark]:
    """Run the checks of landed tasks whose files this change touches, and say whose lines it takes back."""
    context, asked = exam.context, {check.command for check, _ in exam.checks}
    paths = {change.path for change in exam.changes}
    made = {name: context.state.tasks[name].changes for name, _ in landed(context) if name != exam.task.id}
    touched = [name for name, changes in made.items() if changes is not None and paths & {*changes.files}]
    undone = set()
    for name in touched:
        checks = [check for check in lasting_checks(context, name) if check.command not in asked]
        asked |= {check.command for check in checks}
        for remark in _red_now(exam, name, checks):
            undone.add(name)
            yield remark
    for path, name, text in _taken_back(exam) if touched else ():
        if name not in undone:
            says = f"It takes back what task {name} added: {one_line(text, 80)}"
            doubtful = not lasting_checks(context, name) and not exam.names(path)
            yield found("takes-back", path, says=says, severity="ask" if doubtful else "warn")


def landed(context: CheckContext) -> list[tuple[str, str]]:
    """List the tasks of this run that landed, each with its commit."""
    return [(name, task.commit) for name, task in context.state.tasks.items() if task.commit is not None]


def lasting_checks(context: CheckContext, name: str) -> tuple[Check, ...]:
    """Return the checks of a landed task that must go on to hold: not that a test is red, nor what needs a server."""
    task = context.tasks.get(name)
    return () if task is None or RED in task.markers or END_TO_END_ID.fullmatch(name) else task.checks


def _red_now(exam: Verification, name: str, checks: Sequence[Check]) -> Iterator[Remark]:
    base, tree = exam.subject.base, exam.subject.tree
    site = CleanCheckout(context=exam.context, name=name, slot=exam.site.slot)
    exam.site.stands_on = None  # the same folder, entered under another task's name
    for check in checks:
        result = check_on(site, check, base, tree)
        if result.status != "fail" or result.flaky or on_base(site, check, base).status == "fail":
            continue
        last = next((line for line in reversed(result.ended.tail.splitlines()) if line.strip()), "it says nothing")
        says = f"It undoes what task {name} did: `{check.command}`, which held, fails now: {one_line(last, SAID_CHARS)}"
        yield found("undoes", says=says)


def _taken_back(exam: Verification) -> Iterator[tuple[str, str, str]]:
    """Yield path, task and line for every file of which this change removes, and does not move, what a task added."""
    context, base = exam.context, exam.subject.base
    started, tasks = context.state.started, {commit: name for name, commit in landed(context)}
    moved = {line.text.strip() for change in exam.changes for line in added_lines(change)}
    gone = [
        (change.path, {text for line in removed_lines(change) if len(text := line.text.strip()) >= LEAST_CHARS} - moved)
        for change in exam.changes
    ]
    for path, texts in [(path, texts) for path, texts in gone if texts][:MOST]:
        lines = context.workspace.line_authors(path, base, started.base if started else base)
        named = {tasks[commit]: line for commit, line in reversed(lines) if commit in tasks and line.strip() in texts}
        yield from ((path, name, line.strip()) for name, line in named.items())


PROBES = (fewer_tests, hears, comes_to_its_end, expects, stays_green, proves_nothing)
"""What is tried once the checks and the base's judge hold, until something refuses."""
