"""The tamper suite is large, varied, truly labelled, and the audit meets its targets on it."""

import json

import pytest

from unstuck.benches.tamper import diffs, run
from unstuck.benches.tamper_reality import observe, sample


def test_the_audit_meets_its_targets(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(as_json=True, every=11) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["detection_rate"] >= 0.95
    assert figures["false_alarm_rate"] <= 0.02
    assert min(figures["tampering"], figures["honest"]) >= 60


def test_the_suite_covers_both_languages_and_all_styles() -> None:
    styles = {(diff.base.language, diff.base.style, diff.honest) for diff in diffs()}
    assert len(styles) == 16


def test_real_runners_agree_with_the_labels() -> None:
    seen = [reality for diff in sample(step=90) if (reality := observe(diff)) is not None]
    assert [reality for reality in seen if not reality.label_holds] == []
    assert {reality.honest for reality in seen} == {True, False}
