"""The audit: read a change and say where it makes the checks mean less. Pure: same change, same findings.

The law: an agent may change anything but its judges. What a test asserted must still be asserted, what a gate asked for
must still be asked for. Where the task names a path, its tests may expect something else, but not say less.
"""

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import replace

from unstuck.journal import Remark, Severity
from unstuck.verify.audit.asserting import NOTHING
from unstuck.verify.audit.cases import Case, Suite, read_tests
from unstuck.verify.audit.conserve import Balance, Lost, Pairs, pair, plain_name
from unstuck.verify.audit.grammars import grammar_of
from unstuck.verify.audit.product import judge_product, read_world
from unstuck.verify.audit.settings import judge_settings
from unstuck.verify.change import (
    SYMLINK,
    Change,
    found,
    is_declared,
    is_judge,
    part_of,
    pattern,
    removed_lines,
    rule_of,
)

_LOSES = frozenset({"test-deleted", "assertion-removed", "assertion-loosened", "cases-removed"})
_ORDER = {"reject": 0, "ask": 1, "warn": 2}


def audit(changes: Sequence[Change], declared: Sequence[str] = (), red: Collection[str] = ()) -> tuple[Remark, ...]:
    """Give all findings about a change, gravest first.

    `declared` are the paths that the task names (none: the task has no Files), `red` the names of tests that failed on
    the base: to be rid of one of them is never right.
    """
    changed = [one for one in changes if one.old != one.new or one.binary or one.old_mode != one.new_mode]
    reading = _Reading(changed)
    raw = [*_weigh_tests(reading, declared, red), *(_weighed(one, declared) for one in _files(changed))]
    return tuple(sorted(dict.fromkeys(raw), key=lambda one: (_ORDER[one.severity], one.path, one.line, one.rule)))


def accounted(changes: Sequence[Change]) -> tuple[tuple[str, bool], ...]:
    """Name each test of the base in a changed file, and say whether all that it asserted is asserted in the new form."""
    reading = _Reading([one for one in changes if one.old != one.new])
    lost = {id(one.case) for one in reading.lost}
    return tuple((case.name, id(case) not in lost) for case, _ in reading.pairs if case.kind == "test")


class _Reading:
    """The tests of a change before and after, and what is lost between."""

    def __init__(self, changes: Sequence[Change]) -> None:
        watched = [change for change in changes if _holds_tests(change)]
        self.old = [read_tests(change.path, change.old) for change in watched if change.old is not None]
        self.new = [read_tests(change.path, change.new) for change in watched if change.new is not None]
        self.pairs, fresh = pair(*([case for suite in side for case in suite.cases] for side in (self.old, self.new)))
        balance = Balance(self.pairs, fresh, read_world(changes))
        lost = list(balance.lost())
        self.spare = balance.spare()
        self.lost: list[Lost] = [*lost, *_standing(self.pairs, fresh, lost)]
        self.about_new = [finding for case in fresh for finding in _new_test(case)]
        self.unread = list(_unread(changes, self.old, self.new))


def _weigh_tests(reading: _Reading, declared: Sequence[str], red: Collection[str]) -> Iterator[Remark]:
    yield from (_weighed(one, declared) for one in (*reading.about_new, *reading.unread))
    wanted = {plain_name(name.rpartition("::")[2].rpartition(" > ")[2]) for name in red} - {""}
    named = {one.remark.path for one in reading.lost if is_declared(one.remark.path, declared)}
    losses = sum(one.count for one in reading.lost if one.remark.rule in _LOSES and one.remark.path in named)
    gains = sum(count for path, count in reading.spare.items() if is_declared(path, declared))
    for one in reading.lost:
        finding = one.remark
        was_red = plain_name(one.case.name) in wanted and finding.rule != "expected-changed"
        if was_red:
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
        least: Severity = rule_of(finding.rule).named
        return replace(finding, severity=max(least, finding.severity, key=_ORDER.__getitem__))
    if not declared and finding.severity == "reject":
        return replace(finding, severity="ask")
    return finding


def _files(changes: Sequence[Change]) -> Iterator[Remark]:
    yield from judge_settings(changes)
    yield from judge_product(changes)
    for change in changes:
        part = part_of(change.path)
        if part == "ours":
            yield found("own-settings-changed", change.path, 1, "The supervisor's own settings are changed.")
        elif part == "snapshot" and change.old is not None:
            yield from _record(change)
        elif (
            part == "testdata"
            and change.old is not None
            and (change.new is None or change.binary or any(removed_lines(change)))
        ):
            yield found("testdata-changed", change.path, 1, f"{change.path}, which tests read, is changed.")
        if SYMLINK == change.new_mode != change.old_mode and change.old is not None and is_judge(change.path):
            yield found("check-changed", change.path, 1, f"{change.path} became a link to something else.")


def _record(change: Change) -> Iterator[Remark]:
    """Find recorded output that is another now; what is only added takes nothing back."""
    if change.new is None:
        yield found("snapshot-changed", change.path, 1, f"{change.path} is gone.")
    elif change.binary or (gone := next(removed_lines(change), None)) is not None:
        evidence = "" if change.binary else gone.text.strip() if gone is not None else ""
        yield found("snapshot-changed", change.path, 1, f"{change.path} holds something else than before.", evidence)


def _holds_tests(change: Change) -> bool:
    if change.binary:
        return False
    part = part_of(change.path)
    if part in {"test", "support"}:
        return True
    return part == "product" and change.path.endswith(".rs") and "#[test]" in f"{change.old}{change.new}"


def _unread(changes: Sequence[Change], old: Sequence[Suite], new: Sequence[Suite]) -> Iterator[Remark]:
    fresh = {change.path for change in changes if change.old is None}
    why = {suite.path: suite.unread for suite in (*old, *new) if suite.unread}
    why |= {
        change.path: "it is too large or no text"
        for change in changes
        if change.binary and part_of(change.path) == "test"
    }
    for change in changes:
        if change.path in why and change.path not in fresh:
            says = f"Tests in {change.path} changed and cannot be read here: {why[change.path]}."
            yield found("tests-unread", change.path, 1, says)


def _standing(pairs: Pairs, fresh: Sequence[Case], lost: Sequence[Lost]) -> Iterator[Lost]:
    """Find tests that are still there, but do not run as they did."""
    gone = {id(one.case) for one in lost if one.remark.rule in {"test-deleted", "tests-exchanged"}}
    aids = {key: case for case in fresh if case.kind == "aid" and case.assertions for key in _marks_of(case)}
    for case, became in pairs:
        if case.kind != "test" and became is not None and became.off and not case.off:
            says = f"{became.name or became.path} ends every test that comes by it."
            yield Lost(case, found("test-skipped", became.path, became.line, says, became.skip))
        if case.kind != "test" or case.off:
            continue
        if became is not None:
            yield from (Lost(case, remark) for remark in _runs_less(case, became))
        elif case.assertions and id(case) in gone:
            twin = next((aids[key] for key in _marks_of(case) if key in aids), None)
            if twin is not None:
                says = f"{case.name} is now {twin.name}, which no runner takes for a test."
                yield Lost(case, found("test-hidden", twin.path, twin.line, says))


def _marks_of(case: Case) -> tuple[Hashable, Hashable]:
    """Give what a test and a function have in common that are the same but for their heads."""
    return frozenset(one.key for one in case.assertions), case.body.partition(" ")[2]


def _runs_less(case: Case, became: Case) -> Iterator[Remark]:
    grammar = grammar_of(became.path)
    if case.path != became.path and grammar is not None and _looks(case.path) and not grammar.found.search(became.path):
        says = f"{became.name} moved from {case.path} to a place where no runner looks."
        yield found("test-hidden", became.path, became.line, says)
    if became.off:
        yield found("test-skipped", became.path, became.line, f"{became.name or became.path} is skipped.", became.skip)
    elif (
        became.skip
        and not case.skip
        and pattern("run", "shut").match(became.skip)
        and not pattern("run", "platform").search(became.skip)
    ):
        says = f"{became.path} is built only where somebody asks for it, and {became.name} with it."
        yield found("test-skipped", became.path, became.line, says, became.skip)
    elif became.skip and not case.skip:
        says = f"{became.name or became.path} is skipped on a condition."
        yield found("skipped-sometimes", became.path, became.line, says, became.skip)
    elif became.guards > case.guards or _newly_guarded(case, became):
        says = f"{became.name or became.path} may end before it asserts anything."
        yield found("assertion-guarded", became.path, became.line, says)
    if became.focused and not case.focused:
        yield found("test-focused", became.path, became.line, f"Only {became.name} is told to run.")
    if became.retried and not case.retried:
        yield found("test-retried", became.path, became.line, f"{became.name} is repeated until it passes.")


def _newly_guarded(case: Case, became: Case) -> bool:
    """Tell whether what was asserted always is asserted on a condition now."""
    always = {one.key for one in case.assertions if not one.guarded}
    now = {one.key for one in became.assertions if not one.guarded}
    return any(one.guarded and one.key in always and one.key not in now for one in became.assertions)


def _looks(path: str) -> bool:
    grammar = grammar_of(path)
    return grammar is None or grammar.found.search(path) is not None


def _new_test(case: Case) -> Iterator[Remark]:
    if case.kind != "test":
        if case.off:
            says = f"{case.name or case.path} ends every test that comes by it."
            yield found("test-skipped", case.path, case.line, says, case.skip)
        return
    if case.focused:
        yield found("test-focused", case.path, case.line, f"Only {case.name} is told to run.")
    elif case.off and case.assertions:
        says = f"The new test {case.name or case.path} never runs."
        yield found("test-skipped", case.path, case.line, says, case.skip, "warn")
    elif case.name and case.assertions and all(one.rank == NOTHING for one in case.assertions):
        says = f"What the new test {case.name} asserts can never fail."
        yield found("assertion-vacuous", case.path, case.line, says, case.assertions[0].text, "warn")
