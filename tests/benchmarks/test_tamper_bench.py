"""The tamper suite is large, varied, truly labelled, and the audit meets its targets on it."""

from benchmarks.tamper import diffs, measure
from benchmarks.tamper_reality import observe, sample
from benchmarks.tamper_rounds import cases


def test_the_audit_meets_its_targets() -> None:
    report = measure(every=25, say=lambda _: None)
    assert report.met, report.lines
    assert min(report.figures["tampering"], report.figures["honest"]) >= 60


def test_the_suite_covers_both_languages_and_all_styles() -> None:
    styles = {(diff.base.language, diff.base.style, diff.honest) for diff in diffs()}
    assert len(styles) == 16


def test_real_runners_agree_with_the_labels() -> None:
    seen = [reality for diff in sample(step=240) if (reality := observe(diff)) is not None]
    assert [reality for reality in seen if not reality.label_holds] == []
    assert {reality.honest for reality in seen} == {True, False}


def test_the_hand_written_rounds_are_large_and_varied() -> None:
    written = list(cases())
    for honest in (True, False):
        one_side = [case for case in written if case.honest is honest]
        assert len(one_side) >= 240
        assert len({case.kind for case in one_side}) >= 9
        assert {"python", "script"} <= {case.language for case in one_side}
    assert all(case.changes for case in written)
    assert len({(case.round, case.language, case.kind, case.name) for case in written}) == len(written)
