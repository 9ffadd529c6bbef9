"""Auto-Claude's own judgement: its indicators are understood by our rules, and a profile may ask for its word lists."""

from pathlib import Path

import pytest

from unstuck.compat.keyword_lists import reclassified_by_auto_claude
from unstuck.diagnosis.evidence import Evidence
from unstuck.diagnosis.rulebook import open_rulebook
from unstuck.model.errors import BadUsage
from unstuck.model.failure import KINDS, Failure, Kind
from unstuck.policy.profiles import BadPolicy, profiles

INDICATORS = {
    "BROKEN_BUILD": (
        "syntax error", "compilation error", "module not found: ./utils", "import error: no codec", "cannot find module './a'",
        "unexpected token '}'", "indentation error", "parse error: line 3",
    ),
    "VERIFICATION_FAILED": (
        "verification failed", "expected 200 but got 404", "assertion failed", "test failed",
        "AssertionError: status code 404 != 200",
    ),
    "CONTEXT_EXHAUSTED": ("context window exceeded", "token limit reached", "token limit", "maximum length exceeded"),
}  # fmt: skip


@pytest.mark.parametrize("exit_code", [1, None], ids=["failed", "text alone"])
def test_its_sixteen_indicators_are_understood_in_its_own_spelling(exit_code: int | None) -> None:
    rulebook, wrong = open_rulebook(Path("/")), []
    for expected, texts in INDICATORS.items():
        for text in texts:
            found = rulebook.diagnose(Evidence(stdout=text, exit_code=exit_code))
            if found is None or found.facts.type != expected:
                wrong.append((text, found and found.kind))
    assert wrong == []


@pytest.mark.parametrize(
    ("kind", "detail", "expected"),
    [
        (Kind.SYNTAX_ERROR, "IndentationError: unexpected indent", Kind.CHECK_FAILED),
        (Kind.TEST_FAILED, "no context manager", Kind.CONTEXT_EXHAUSTED),
        (Kind.TEST_FAILED, "1 assertion is red", Kind.TEST_FAILED),
        (Kind.COMMAND_NOT_FOUND, "bash: jqq: command not found", Kind.COMMAND_NOT_FOUND),
        (Kind.TEST_FAILED, "exit code 1", Kind.UNKNOWN),
        (Kind.RATE_LIMITED, "syntax error", Kind.RATE_LIMITED),
        (Kind.INTERRUPTED, "test failed", Kind.INTERRUPTED),
    ],
)
def test_its_word_lists_decide_by_text_alone(kind: Kind, detail: str, expected: Kind) -> None:
    assert reclassified_by_auto_claude(Failure(kind=kind, summary="", detail=detail)).kind is expected


def test_a_profile_names_its_classifier() -> None:
    own = profiles({"mine": {"like": "standard", "classifier": "auto-claude"}})["mine"]
    assert (own.classifier, profiles()["standard"].classifier) == ("auto-claude", "unstuck")
    with pytest.raises((BadUsage, BadPolicy), match="there is no classifier 'claude'"):
        profiles({"mine": {"like": "standard", "classifier": "claude"}})


def test_every_failure_says_how_hard_it_is_to_recover_from() -> None:
    hardness = {facts.difficulty for facts in KINDS.values()}
    assert hardness == {"easy", "medium", "hard", "impossible"}
    assert KINDS[Kind.INVALID_ARGUMENTS].difficulty == "easy"
    assert KINDS[Kind.DISK_FULL].difficulty == "hard"
    assert KINDS[Kind.PLAN_INVALID].difficulty == "impossible"
