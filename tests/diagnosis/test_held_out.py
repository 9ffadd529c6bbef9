"""How outputs are judged that no rule was written for: real runs, exception texts of packages, sentences of people."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from benchmarks.classify import VIEWS, classifiers, judge, macro_f1, read_cases

from unstuck.diagnosis.evidence import Evidence
from unstuck.diagnosis.rulebook import open_rulebook

HERE = Path(__file__).parent
SISTERS: Mapping[str, frozenset[str]] = {
    "rate_limited": frozenset({"quota_exhausted", "provider_overloaded"}),
    "auth_failed": frozenset({"permission_denied"}),
    "permission_denied": frozenset({"auth_failed"}),
    "billing": frozenset({"quota_exhausted"}),
    "provider_overloaded": frozenset({"rate_limited", "network_error"}),
}
"""Kinds that a sentence without its context cannot tell apart."""
FLOORS: Mapping[str, float] = {
    "authored": 0.98,
    "authored, held out": 0.93,
    "exception texts of Python packages": 0.85,
    "descriptions of errors in botocore": 0.78,
}


def rows(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def test_outputs_of_tools_that_no_rule_was_written_for_are_judged_rightly() -> None:
    judged = judge(read_cases(HERE / "outputs.jsonl"), classifiers()["ours"])
    wrong = [
        f"{one.case.name}: {one.view} {one.case.gold[one.view]} -> {one.said}"
        for one in judged
        if one.lenient != one.case.gold[one.view]
    ]
    scores = {
        view: macro_f1([(one.case.gold[view], one.lenient) for one in judged if one.view == view]) for view in VIEWS
    }
    assert min(scores.values()) >= 0.97, (scores, wrong)
    assert [one.case.name for one in judged if one.case.ok and one.said != "ok"] == []


@pytest.mark.parametrize("exit_code", [1, None], ids=["failed", "text alone"])
@pytest.mark.parametrize("provenance", FLOORS)
def test_ordinary_words_say_what_went_wrong(provenance: str, exit_code: int | None) -> None:
    rulebook, right, wrong = open_rulebook(Path("/")), Counter[str](), []
    cases = [row for row in rows("sentences.jsonl") if row["provenance"] == provenance]
    for row in cases:
        found = rulebook.diagnose(Evidence(stderr=row["text"], exit_code=exit_code))
        said = str(found.kind) if found else "nothing"
        if said in {row["kind"]} | SISTERS.get(row["kind"], frozenset()):
            right[row["kind"]] += 1
        else:
            wrong.append(f"{row['kind']} -> {said}: {row['text']}")
    assert right.total() >= FLOORS[provenance] * len(cases), "\n".join(wrong)


def test_words_about_errors_are_no_errors() -> None:
    rulebook = open_rulebook(Path("/"))
    alarms = [
        (exit_code, row["text"])
        for row in rows("harmless.jsonl")
        for exit_code in (0, None)
        if rulebook.diagnose(Evidence(stdout=row["text"], exit_code=exit_code)) is not None
    ]
    assert [text for exit_code, text in alarms if exit_code == 0] == []
    assert len(alarms) <= 2, alarms


def test_a_sentence_of_any_words_is_read_in_bounded_time() -> None:
    hostile = " ".join(["token not valid login failed request limit reached phase task wait"] * 6)[:390]
    found = open_rulebook(Path("/")).diagnose(Evidence(stderr=f"{hostile}\n" * 500, exit_code=1))
    assert found is not None
