"""The audit: read a change and say where it makes the checks mean less. Pure: same change, same findings.

The law: an agent may change anything but its judges. What a test asserted must still be asserted, what a gate asked for
must still be asked for. Where the task names a path, its tests may expect something else, but not say less.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from unstuck.model.changes import Change
from unstuck.model.verdict import Remark
from unstuck.redaction.redactor import Redactor
from unstuck.verify.audit.asserting import NOTHING
from unstuck.verify.audit.cases import Case, read_tests
from unstuck.verify.audit.conserve import Balance, Lost, pair, plain_name
from unstuck.verify.audit.grammars import grammar_of
from unstuck.verify.audit.product import ANYWHERE, judge_product, names_gone
from unstuck.verify.audit.weakened_settings import judge_settings
from unstuck.verify.change import (
    GRAVITY,
    found,
    is_declared,
    part_of,
    pattern,
    removed_lines,
    rule_of,
)

_LOSES = frozenset({"test-deleted", "assertion-removed", "assertion-loosened", "cases-removed"})


def audit(
    changes: Sequence[Change], declared: Sequence[str] = (), red: Collection[str] = (), redactor: Redactor = ANYWHERE
) -> tuple[Remark, ...]:
    """Give all findings about a change, gravest first.

    `declared` are the paths that the task names (none: the task has no Files), `red` the names of tests that failed on
    the base: to be rid of one of them is never right. The redactor knows what is secret on this machine.
    """
    changed = [one for one in changes if one.old != one.new or one.binary or one.old_mode != one.new_mode]
    reading = _Reading(changed)
    raw = [*_weigh_tests(reading, declared, red), *(_weighed(one, declared) for one in _files(changed, redactor))]
    return tuple(
        sorted(dict.fromkeys(raw), key=lambda one: (GRAVITY.index(one.severity), one.path, one.line, one.rule))
    )


def accounted(changes: Sequence[Change]) -> tuple[tuple[str, bool], ...]:
    """Name each test of the base in a changed file, and say whether all that it asserted is asserted in the new form."""
    reading = _Reading([one for one in changes if one.old != one.new])
    lost = {one.case for one in reading.lost}
    return tuple((case.name, case not in lost) for case, _ in reading.pairs if case.kind == "test")


def asserts(change: Change) -> bool:
    """Tell whether the old text of a file asserts anything, whatever it is called: a script that is a check."""
    read = read_tests(change.path, change.old) if change.old and not change.binary else ""
    return not isinstance(read, str) and any(one.assertions for one in read)


class _Reading:
    """The tests of a change before and after, and what is lost between."""

    def __init__(self, changes: Sequence[Change]) -> None:
        watched = [change for change in changes if _holds_tests(change)]
        old = {one.path: _read(one, one.old) for one in watched if one.old is not None}
        new = {one.path: _read(one, one.new) for one in watched if one.new is not None}
        self.pairs, fresh = pair(_cases(old), _cases(new))
        balance = Balance(self.pairs, fresh, names_gone(changes))
        self.lost = list(balance.lost())
        self.spare = balance.spare()
        for case, became in self.pairs:
            if became is not None and not case.off:
                less = _runs_less(case, became) if case.kind == "test" else _ends_all(became)
                self.lost += [Lost(case, remark) for remark in less]
        self.beside = [finding for case in fresh for finding in _new_test(case)]
        for path, before in old.items():
            if why := next((read for read in (before, new.get(path)) if isinstance(read, str)), ""):
                says = f"Tests in {path} changed and cannot be read here: {why}."
                self.beside.append(found("tests-unread", path, says=says))


def _read(change: Change, text: str) -> list[Case] | str:
    if change.binary:
        return "it is too large or no text"
    read = read_tests(change.path, text)
    return read if isinstance(read, str) or part_of(change.path) != "product" else _without_product(read)


def _without_product(cases: Sequence[Case]) -> list[Case]:
    """Leave out what a product asserts of itself: only tests are judges, and what stands beside them in a group of their own."""
    groups = {one.scope for one in cases if one.kind == "test"} - {""}
    return [one for one in cases if one.kind == "test" or (one.kind == "aid" and one.scope in groups)]


def _cases(texts: Mapping[str, list[Case] | str]) -> list[Case]:
    return [case for read in texts.values() if not isinstance(read, str) for case in read]


def _holds_tests(change: Change) -> bool:
    part, grammar = part_of(change.path), grammar_of(change.path)
    within = part == "product" and grammar is not None and grammar.fits("inside", f"{change.old}\n{change.new}")
    return part == "test" or (not change.binary and (part == "support" or within))


def _weigh_tests(reading: _Reading, declared: Sequence[str], red: Collection[str]) -> Iterator[Remark]:
    yield from (_weighed(one, declared) for one in reading.beside)
    wanted = {plain_name(name.rpartition("::")[2].rpartition(" > ")[2]) for name in red} - {""}
    named = {one.remark.path for one in reading.lost if is_declared(one.remark.path, declared)}
    losses = sum(one.count for one in reading.lost if one.remark.rule in _LOSES and one.remark.path in named)
    gains = sum(count for path, count in reading.spare.items() if is_declared(path, declared))
    for one in reading.lost:
        finding = one.remark
        if plain_name(one.case.name) in wanted and finding.rule != "expected-changed":
            says = f"{finding.says} It failed before this change: to be rid of it is no way to make it pass."
            yield replace(finding, severity="reject", says=says)
        elif finding.rule in _LOSES and finding.path in named and losses <= gains:
            yield replace(finding, rule="tests-exchanged", severity="warn")
        else:
            yield _weighed(finding, declared)


def _weighed(finding: Remark, declared: Sequence[str]) -> Remark:
    """Let a path that the task names change its expectations; ask instead of refusing where a task names none."""
    if finding.rule == "secret" or finding.severity == "warn":
        return finding
    if declared and is_declared(finding.path, declared):
        return replace(finding, severity=max(rule_of(finding.rule).named, finding.severity, key=GRAVITY.index))
    if not declared and finding.severity == "reject":
        return replace(finding, severity="ask")
    return finding


def _files(changes: Sequence[Change], redactor: Redactor) -> Iterator[Remark]:
    yield from judge_settings(changes)
    yield from judge_product(changes, redactor)
    for change in changes:
        part, path, there = part_of(change.path), change.path, change.old is not None
        if part == "ours":
            yield found("own-settings-changed", path)
        gone = next(removed_lines(change), None)
        if part in {"snapshot", "testdata"} and there and (change.new is None or change.binary or gone is not None):
            says = f"{path} {'is gone' if change.new is None else 'holds something else than before'}."
            yield found(f"{part}-changed", path, 1, says, gone.text.strip() if gone is not None else "")


def _runs_less(case: Case, became: Case) -> Iterator[Remark]:
    if case.path != became.path and _looks(case.path) and not _looks(became.path):
        yield became.remark("test-hidden", f"{{}} moved from {case.path} to a place where no runner looks.")
    skipped = became.skip if not case.skip else ""
    if pattern("run", "to_fail").search(became.marks) and not pattern("run", "to_fail").search(case.marks):
        yield became.remark("test-skipped", "{} is expected to fail now.", became.marks)
    nowhere = pattern("run", "shut").match(skipped) and not pattern("run", "platform").search(skipped)
    if became.off or nowhere:
        yield became.remark("test-skipped", "{} is skipped.", became.skip)
    elif skipped:
        yield became.remark("skipped-sometimes", "{} is skipped on a condition.", skipped)
    elif _newly_guarded(case, became):
        yield became.remark("assertion-guarded", "{} may end before it asserts anything.")
    if became.focused and not case.focused:
        yield became.remark("test-focused", "Only {} is told to run.")
    if became.retried and not case.retried:
        yield became.remark("test-retried", "{} is repeated until it passes.")


def _newly_guarded(case: Case, became: Case) -> bool:
    """Tell whether what was asserted always is asserted on a condition now; more on a condition beside it takes nothing."""
    always = [one.key for one in case.assertions if not one.guarded]
    now = [one.key for one in became.assertions if not one.guarded]
    rest = [one.key for one in became.assertions if one.guarded]
    fewer = len(now) < len(always) and len(rest) > len(case.assertions) - len(always)
    return fewer or not {*rest}.isdisjoint({*always} - {*now})


def _looks(path: str) -> bool:
    """Tell whether a runner with common settings looks at a path."""
    grammar = grammar_of(path)
    return grammar is None or grammar.fits("found", path)


def _ends_all(case: Case) -> Iterator[Remark]:
    if case.off:
        yield case.remark("test-skipped", "{} ends every test that comes by it.", case.skip)


def _new_test(case: Case) -> Iterator[Remark]:
    if case.kind != "test":
        yield from _ends_all(case)
    elif case.focused:
        yield case.remark("test-focused", "Only {} is told to run.")
    elif case.off and case.assertions:
        yield case.remark("test-skipped", "The new test {} never runs.", case.skip, "warn")
    elif case.name and case.assertions and all(one.rank == NOTHING for one in case.assertions):
        says = "What the new test {} asserts can never fail."
        yield case.remark("assertion-vacuous", says, case.assertions[0].text, "warn")
