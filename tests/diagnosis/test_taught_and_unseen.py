"""How outputs are judged: those that taught the rules and the words, and those from which nothing was ever learned.

`unseen.jsonl` holds outputs of real tools and texts of an independent writer. Whoever learns from a row of it, by a rule or
by a sentence, moves it to `taught.jsonl`: figures on what was learned say nothing about what comes next.
"""

import json
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

import pytest
from benchmarks.classify import VIEWS, classifiers, judge, macro_f1, read_cases
from benchmarks.training.learn_words import LEARNED, examples, made_from

from unstuck.diagnosis.evidence import Evidence
from unstuck.diagnosis.rulebook import open_rulebook
from unstuck.model.failure import KINDS, Kind

HERE = Path(__file__).parent
UNSEEN: Mapping[str, Mapping[str, float]] = {
    "run on": {"type": 0.97, "category": 0.97, "phase_type": 0.97},
    "written by": {"type": 0.82, "category": 0.8, "phase_type": 0.65},
}
"""What real tools print is judged well unseen; what agents and people write in free words, less so."""
EVERY = 4
"""Of thousands of rows that were learned from, every fourth is judged here; `benchmarks/training/learn_words.py` and the benches see all."""
REMEMBERED: Mapping[int | None, float] = {1: 0.93, None: 0.85}
"""The share of the catalogue's own sentences that are judged as they are labelled; without an exit code much is left alone."""


def rows(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def figures(file: str, provenance: str = "") -> tuple[dict[str, float], list[str]]:
    """Return the lenient macro-F1 by view, and what was judged wrongly."""
    kept = {
        row["id"]
        for row in rows(file)[:: EVERY if file == "taught.jsonl" else 1]
        if row["provenance"].startswith(provenance)
    }
    judged = judge([case for case in read_cases(HERE / file) if case.name in kept], classifiers()["ours"])
    wrong = [
        f"{one.case.name}: {one.view} {one.case.gold[one.view]} -> {one.said}"
        for one in judged
        if one.lenient != one.case.gold[one.view]
    ]
    scores = {
        view: macro_f1([(one.case.gold[view], one.lenient) for one in judged if one.view == view]) for view in VIEWS
    }
    alarms = {one.case.name for one in judged if one.case.ok and one.said != "ok"}
    assert len(alarms) <= (1 if file == "unseen.jsonl" else 0), alarms
    return scores, wrong


def test_outputs_that_taught_us_are_judged_rightly() -> None:
    scores, wrong = figures("taught.jsonl")
    assert min(scores.values()) >= 0.97, (scores, wrong)


@pytest.mark.parametrize(("provenance", "floors"), UNSEEN.items(), ids=["run", "written"])
def test_outputs_that_taught_us_nothing_are_judged_as_well_as_when_they_came(
    provenance: str, floors: Mapping[str, float]
) -> None:
    scores, wrong = figures("unseen.jsonl", provenance)
    assert not {view for view, floor in floors.items() if scores[view] < floor}, (scores, wrong)


def test_no_row_that_is_called_unseen_was_learned_from() -> None:
    taught = {" ".join(text.split()) for text, _ in examples()}
    taught |= {" ".join(f"{row.get('stdout', '')} {row.get('stderr', '')}".split()) for row in rows("taught.jsonl")}
    unseen = {row["id"]: f"{row.get('stdout', '')} {row.get('stderr', '')}" for row in rows("unseen.jsonl")}
    assert [name for name, text in unseen.items() if text.strip() and " ".join(text.split()) in taught] == []


def test_what_the_words_weigh_was_learned_from_the_sentences_of_the_catalogue() -> None:
    learned = json.loads(LEARNED.read_text(encoding="utf-8"))
    assert learned["made_from"] == made_from(), "run `make rules`"


@pytest.mark.parametrize("exit_code", REMEMBERED, ids=["failed", "text alone"])
def test_sentences_of_the_catalogue_are_judged_as_they_are_labelled(exit_code: int | None) -> None:
    """With another kind that all three views call the same it is right, too."""
    rulebook, wrong, count = open_rulebook(Path("/")), [], 0
    for text, kind in islice(examples(), 0, None, EVERY):
        if kind == "none":
            continue
        count += 1
        found = rulebook.diagnose(Evidence(stderr=text, exit_code=exit_code))
        wanted = KINDS[Kind(kind)]
        if found is None or (found.type, found.category) != (wanted.type, wanted.category):
            wrong.append(f"{kind} -> {found and found.kind}: {text}")
    assert len(wrong) <= (1 - REMEMBERED[exit_code]) * count, "\n".join(wrong)


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


def test_a_text_of_any_words_is_read_in_bounded_time() -> None:
    hostile = " ".join(["token not valid login failed request limit reached phase task wait"] * 6)[:390]
    found = open_rulebook(Path("/")).diagnose(Evidence(stderr=f"{hostile}\n" * 500, exit_code=1))
    assert found is not None
