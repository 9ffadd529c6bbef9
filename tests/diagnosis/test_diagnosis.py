"""What is said of real outputs: every kind has examples, and the answer names the decisive line."""

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from unstuck.compat.keyword_lists import auto_claude_type, forgekeeper_category
from unstuck.diagnosis.classifying import classify, evidence_of, setup_failure
from unstuck.diagnosis.evidence import KIND_OF_SESSION_END, KIND_OF_SIGNAL, Evidence
from unstuck.diagnosis.rulebook import Rulebook, guidance, open_rulebook
from unstuck.model.failure import KINDS, Kind
from unstuck.model.outcome import Ended, Outcome
from unstuck.model.verdict import CheckResult, Verdict
from unstuck.policy.profiles import profiles

CASES = [
    case
    for path in sorted((Path(__file__).parent / "cases").glob("*.toml"))
    for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
]
OUTPUTS = [case for case in CASES if "ending" not in case and "setup" not in case]
ENDINGS = [case for case in CASES if "ending" in case]
BY_THE_ENGINE = {Kind.AGENT_MISSING, Kind.HANG, Kind.NO_CLAIM, Kind.SETUP_FAILED, Kind.CHECK_TIMEOUT}
"""Known from how a process ended, never from text."""


@pytest.fixture(scope="module")
def rulebook() -> Rulebook:
    return open_rulebook(Path("/"))


def name(case: dict[str, Any]) -> str:
    words = case.get("command") or case.get("err") or case.get("out") or case.get("ending") or ""
    return f"{case['kind']}-{words[:30]}"


def of(case: dict[str, Any]) -> Evidence:
    return Evidence(
        stdout=case.get("out", ""),
        stderr=case.get("err", ""),
        exit_code=case.get("exit"),
        signal=case.get("signal", ""),
        command=case.get("command", ""),
        timed_out=case.get("timed_out", False),
        end=case.get("end", ""),
        changed=case.get("changed"),
    )


def test_an_output_is_judged_as_its_readers_would(rulebook: Rulebook) -> None:
    offenders = []
    for case in OUTPUTS:
        found = rulebook.diagnose(of(case))
        judged = (str(found.kind) if found else "success", found.resets if found and "resets" in case else None)
        if judged != (case["kind"], case.get("resets") if found else None):
            offenders.append((name(case), *judged))
    assert offenders == []


@pytest.mark.parametrize("case", ENDINGS, ids=name)
def test_an_ending_is_judged_by_the_engine(case: dict[str, Any], rulebook: Rulebook) -> None:
    session = Ended(ending=case["ending"], exit_code=case.get("exit"), tail=case.get("tail", ""))
    outcome = Outcome(ended=session, claim=case.get("claim", "none"))
    checked = Ended(ending=case.get("ended", "exited"), exit_code=case.get("code", 1), tail=case.get("output", "red"))
    results = (CheckResult(command=case.get("command", "check"), kind=case.get("check", "verify"), ended=checked),)
    status = case.get("verdict", "fail")
    verdict = Verdict(status=status, tree="t", base="b", results=results if status == "fail" else (), reason="no check")
    closer = evidence_of(outcome, verdict)
    failure = classify(outcome, verdict, rulebook.diagnose(closer) if closer else None)
    assert failure is not None
    assert failure.kind == case["kind"]


@pytest.mark.parametrize("case", [case for case in CASES if "setup" in case], ids=name)
def test_a_set_up_that_fails_is_told_with_its_command(case: dict[str, Any]) -> None:
    failure = setup_failure(case["setup"], Ended(ending="exited", exit_code=1, tail=case["tail"]))
    assert failure.kind == case["kind"]
    assert case["setup"] in failure.summary


def test_every_kind_has_examples_rules_guidance_and_a_ladder(rulebook: Rulebook) -> None:
    examples = Counter(case["kind"] for case in CASES)
    proven = {rule.proves for rule in rulebook.rules} | {
        *KIND_OF_SESSION_END.values(),
        *KIND_OF_SIGNAL.values(),
        *BY_THE_ENGINE,
    }
    ladders = list(profiles().values())
    assert [
        kind
        for kind in Kind
        if examples[kind] < 3
        or kind not in proven
        or not guidance(kind)
        or not all(policy.ladder_of(kind) for policy in ladders)
        or not KINDS[kind].means
    ] == []


def test_all_seed_types_are_someones_view() -> None:
    facts = KINDS.values()
    assert {fact.type for fact in facts} == {
        "BROKEN_BUILD", "VERIFICATION_FAILED", "CIRCULAR_FIX", "CONTEXT_EXHAUSTED", "UNKNOWN",
    }  # fmt: skip
    assert {fact.category for fact in facts} >= {
        "command_not_found", "tool_not_found", "permission_denied", "timeout", "file_not_found", "invalid_arguments",
        "syntax_error", "network_error", "rate_limited", "disk_full", "unknown",
    }  # fmt: skip
    assert {fact.phase_type for fact in facts} >= {
        "test_failure", "lint_error", "typecheck_error", "format_error", "task_incomplete", "verification_mismatch",
        "timeout", "parse_error", "dependency_missing", "circular_dependency", "file_conflict", "plan_invalid",
    }  # fmt: skip


def test_only_the_agents_own_failures_are_charged() -> None:
    assert KINDS[Kind.TEST_FAILED].charged
    assert not any(KINDS[kind].charged for kind in (Kind.RATE_LIMITED, Kind.DISK_FULL, Kind.NETWORK_ERROR, Kind.KILLED))


# --- the cause, not the noise --------------------------------------------------------------------------------


def test_the_answer_names_the_decisive_line_in_the_middle_of_a_long_log(rulebook: Rulebook) -> None:
    lines = [f"[{number}/90000] Compiling module_{number}.c" for number in range(90_000)]
    lines[40_000] = "\x1b[1msrc/cart.c:12:5: \x1b[31merror:\x1b[0m expected \u2018;\u2019 before \u2018return\u2019\r"
    found = rulebook.diagnose(Evidence(stdout="\n".join(lines), exit_code=2, command="make"))
    assert found is not None
    assert found.kind is Kind.SYNTAX_ERROR
    assert (found.line, found.message) == (
        40_001,
        "src/cart.c:12:5: error: expected \u2018;\u2019 before \u2018return\u2019",
    )
    assert found.where == (("src/cart.c", 12),)


def test_a_test_whose_message_says_syntax_error_is_a_failed_test(rulebook: Rulebook) -> None:
    text = "E       AssertionError: assert 'ok' == 'SyntaxError: invalid syntax'\nFAILED tests/test_a.py::test_b - assert\n1 failed in 0.1s"
    found = rulebook.diagnose(Evidence(stdout=text, exit_code=1, command="pytest"))
    assert found is not None
    assert found.kind is Kind.TEST_FAILED
    assert found.tests == ("tests/test_a.py::test_b",)


def test_warnings_before_the_error_do_not_decide(rulebook: Rulebook) -> None:
    text = "WARNING: connection refused, retrying\n" * 50 + "bash: line 3: jq: command not found"
    found = rulebook.diagnose(Evidence(stderr=text, exit_code=127))
    assert found is not None
    assert found.kind is Kind.COMMAND_NOT_FOUND


def test_a_progress_bar_is_overwritten_as_on_a_terminal(rulebook: Rulebook) -> None:
    text = "downloading 10%\rdownloading 90%\rerror: connect ECONNREFUSED 127.0.0.1:443"
    found = rulebook.diagnose(Evidence(stderr=text, exit_code=1))
    assert found is not None
    assert found.message == "error: connect ECONNREFUSED 127.0.0.1:443"


def test_text_and_exit_code_together_are_surer_than_either(rulebook: Rulebook) -> None:
    found = rulebook.diagnose(Evidence(stderr="bash: git: command not found", exit_code=127))
    assert found is not None
    assert found.confidence >= 0.9


# --- the seeds' own classifiers --------------------------------------------------------------------------------

OBSERVED = {
    "SyntaxError: invalid syntax": "UNKNOWN",
    "IndentationError: unexpected indent": "VERIFICATION_FAILED",
    "ImportError: cannot import name 'x'": "UNKNOWN",
    "ModuleNotFoundError: No module named 'foo'": "UNKNOWN",
    "context deadline exceeded": "CONTEXT_EXHAUSTED",
    "Error: useContext must be used within a Provider": "CONTEXT_EXHAUSTED",
    "API Error: 429 status code: Too Many Requests": "VERIFICATION_FAILED",
    "unexpected EOF while reading": "VERIFICATION_FAILED",
    "Unexpected end of JSON input": "VERIFICATION_FAILED",
    "FAILED tests/test_a.py::test_x - assert 1 == 2": "UNKNOWN",
    "prompt is too long: 210000 tokens > 200000 maximum": "UNKNOWN",
    "Expected ';' at end of declaration (compile error)": "VERIFICATION_FAILED",
}
"""What Auto-Claude's lists make of real messages (ac-classify-observed): kept for who asks for it, and what ours must not say."""


@pytest.mark.parametrize("text", OBSERVED)
def test_auto_claude_type_answers_word_for_word_and_ours_differs(text: str, rulebook: Rulebook) -> None:
    assert auto_claude_type(text) == OBSERVED[text]
    found = rulebook.diagnose(Evidence(stderr=text, exit_code=1))
    assert found is not None
    assert found.facts.type != OBSERVED[text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Error: Cannot find module './utils' from 'src/index.js'", "BROKEN_BUILD"),
        ("AssertionError: Expected 200 but got 404", "VERIFICATION_FAILED"),
        ("Verification failed: expected 200 got 500", "VERIFICATION_FAILED"),
        ("Error: Maximum context length (128k tokens) exceeded", "CONTEXT_EXHAUSTED"),
        ("Error: Connection refused to database server", "UNKNOWN"),
    ],
)
def test_the_seeds_own_examples_hold_for_both(text: str, expected: str, rulebook: Rulebook) -> None:
    assert auto_claude_type(text) == expected
    found = rulebook.diagnose(Evidence(stdout=text))
    assert found is not None
    assert found.facts.type == expected


def test_forgekeeper_category_dilutes_its_confidence_and_ours_does_not(rulebook: Rulebook) -> None:
    bare = Evidence(exit_code=127)
    assert forgekeeper_category(bare) == ("unknown", 0.3)
    found = rulebook.diagnose(bare)
    assert found is not None
    assert found.facts.category == "command_not_found"


AUTH = (
    "Error: authentication required", "Login required", "Error: Unauthorized", "Please log in to continue",
    "Invalid credentials provided", "Auth failed", "Authentication error occurred", "Your session expired",
    "HTTP 401 Unauthorized", "Credentials are missing", "Credentials expired",
    '{"error": "unauthorized", "message": "Please authenticate"}', "NOT AUTHENTICATED", "invalid token", "please log in",
)  # fmt: skip


@pytest.mark.parametrize("text", AUTH)
def test_words_of_authentication_are_an_authentication_failure(text: str, rulebook: Rulebook) -> None:
    found = rulebook.diagnose(Evidence(stdout=text, exit_code=1))
    assert found is not None
    assert found.kind is Kind.AUTH_FAILED


@pytest.mark.parametrize(
    ("text", "resets"),
    [
        ("Limit reached • resets 11:59pm", "11:59pm"),
        ("Limit reached · resets 18:00", "18:00"),
        (
            "Processing task...\nLimit reached · resets Dec 20 at 3pm (America/New_York)\nStack trace follows",
            "Dec 20 at 3pm (America/New_York)",
        ),
        ("usage limit reached", ""),
        ("You have exceeded your limit", ""),
    ],
)
def test_a_limit_is_a_limit_and_tells_when_it_ends(text: str, resets: str, rulebook: Rulebook) -> None:
    found = rulebook.diagnose(Evidence(stdout=text, exit_code=1))
    assert found is not None
    assert (found.kind, found.resets) == (Kind.RATE_LIMITED, resets)
