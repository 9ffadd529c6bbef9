"""From evidence to failure: the tree decides, then the ending, then the words of the check."""

import json
from dataclasses import replace

import pytest

from unstuck.agents.claims import session_claim
from unstuck.diagnosis.classifying import classify, evidence_of
from unstuck.diagnosis.rulebook import open_rulebook
from unstuck.model.failure import Kind
from unstuck.model.outcome import End, Ended, Ending, Outcome
from unstuck.model.verdict import CheckKind, CheckResult, Verdict

DONE = Outcome(ended=Ended(ending="exited", exit_code=0), claim="done")


def verdict(
    tail: str = "",
    *,
    exit_code: int = 1,
    kind: CheckKind = "verify",
    command: str = "./verify.sh",
    turned_green: bool = False,
) -> Verdict:
    result = CheckResult(command=command, kind=kind, ended=Ended(ending="exited", exit_code=exit_code, tail=tail))
    return Verdict(
        status="pass" if exit_code == 0 else "fail", tree="t", base="b", results=(result,), turned_green=turned_green
    )


def judged(outcome: Outcome, found: Verdict) -> Kind | None:
    closer = evidence_of(outcome, found)
    failure = classify(outcome, found, open_rulebook().diagnose(closer) if closer else None)
    return failure.kind if failure else None


def ended(ending: Ending, tail: str = "", exit_code: int | None = None, signal: int | None = None) -> Outcome:
    return Outcome(ended=Ended(ending=ending, exit_code=exit_code, tail=tail, signal=signal))


def test_an_agent_that_did_without_what_it_was_denied_is_judged_by_its_work() -> None:
    denied = replace(DONE, end="permission_denied")
    assert judged(denied, replace(verdict("no"), files=("a.py",))) is Kind.CHECK_FAILED
    assert judged(denied, verdict("no")) is Kind.PERMISSION_DENIED, "it changed nothing"


def test_a_record_of_events_is_not_quoted_as_what_an_agent_said() -> None:
    record = '…aks off": 1}}\n{"type": "user", "message": "# Task 1.1: our own brief"}\nError: out of memory\n'
    outcome = replace(ended("silence", record), end="killed")
    failure = classify(outcome, verdict("no"))
    assert failure is not None
    assert failure.detail == "Error: out of memory"


def test_green_and_claimed_is_no_failure() -> None:
    assert judged(DONE, verdict(exit_code=0)) is None


@pytest.mark.parametrize("ending", ["silence", "wall_clock", "signalled", "supervisor_died", "worker_gone", "stopped"])
def test_green_without_a_claim_needs_a_check_that_was_red(ending: Ending) -> None:
    assert judged(ended(ending), verdict(exit_code=0, turned_green=True)) is None
    assert judged(ended(ending), verdict(exit_code=0)) in (Kind.NO_CLAIM, Kind.INTERRUPTED)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        pytest.param(ended("silence"), Kind.HANG, id="hang"),
        pytest.param(ended("wall_clock"), Kind.TIMEOUT, id="timeout"),
        pytest.param(ended("signalled"), Kind.KILLED, id="killed"),
        pytest.param(ended("signalled", signal=11), Kind.AGENT_CRASHED, id="crashed by a signal"),
        pytest.param(
            replace(ended("exited", exit_code=134), end="killed"), Kind.AGENT_CRASHED, id="crashed from inside"
        ),
        pytest.param(replace(ended("exited", exit_code=137), end="tool_hang"), Kind.KILLED, id="killed from inside"),
        pytest.param(replace(ended("silence"), end="tool_hang"), Kind.HANG, id="a tool hangs"),
        pytest.param(replace(DONE, claim="none", end="permission_denied"), Kind.PERMISSION_DENIED, id="denied"),
        pytest.param(ended("not_started"), Kind.AGENT_MISSING, id="missing"),
        pytest.param(ended("exited", exit_code=1), Kind.AGENT_CRASHED, id="crashed"),
        pytest.param(ended("exited", "API Error: 429 too many requests", 1), Kind.RATE_LIMITED, id="limit"),
        pytest.param(
            ended("exited", "prompt is too long: 210000 tokens > 200000 maximum", 1),
            Kind.CONTEXT_EXHAUSTED,
            id="context",
        ),
        pytest.param(ended("exited", "Invalid API key · Please run /login", 1), Kind.AUTH_FAILED, id="login"),
    ],
)
def test_a_red_tree_is_judged_by_how_the_session_ended(outcome: Outcome, expected: Kind) -> None:
    assert judged(outcome, verdict()) is expected


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        pytest.param(
            "E       assert 1 == 2\nFAILED tests/test_a.py::test_x - assert 1 == 2\n1 failed in 0.1s",
            Kind.TEST_FAILED,
            id="tests",
        ),
        pytest.param(
            '  File "a.py", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax',
            Kind.SYNTAX_ERROR,
            id="syntax",
        ),
        pytest.param("OSError: [Errno 28] No space left on device", Kind.DISK_FULL, id="disk"),
        pytest.param("curl: (6) Could not resolve host: registry.example.org", Kind.NETWORK_ERROR, id="network"),
        pytest.param(
            "curl: (7) Failed to connect to localhost port 3000: Connection refused",
            Kind.CHECK_FAILED,
            id="our-own-server",
        ),
        pytest.param("connect ECONNREFUSED 127.0.0.1:5432", Kind.CHECK_FAILED, id="our-own-database"),
        pytest.param("Please read the context manager's rate limit docs", Kind.CHECK_FAILED, id="only-words"),
        pytest.param("", Kind.CHECK_FAILED, id="silence"),
    ],
)
def test_a_red_check_is_judged_by_what_it_printed(tail: str, expected: Kind) -> None:
    assert judged(DONE, verdict(tail)) is expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("curl -fsS http://localhost:3000/health", Kind.NETWORK_ERROR),
        ("sleep 1; curl -s localhost:3000 | grep ok", Kind.NETWORK_ERROR),
        ("./serve & sleep 1; curl -s localhost:3000", Kind.CHECK_FAILED),
        ("python3 -m pytest tests/api", Kind.CHECK_FAILED),
    ],
)
def test_a_check_that_only_asks_a_server_of_this_machine_cannot_have_started_it(command: str, expected: Kind) -> None:
    refused = "curl: (7) Failed to connect to localhost port 3000: Connection refused"
    assert judged(DONE, verdict(refused, command=command)) is expected


@pytest.mark.parametrize(
    ("command", "said", "expected"),
    [
        ("bash run.sh", "bash: run.sh: No such file or directory", Kind.CHECK_FAILED),
        ("cd app && node index.js", "Error: Cannot find module 'index.js'", Kind.CHECK_FAILED),
        ("bash run.sh", "run.sh: line 2: jq: command not found", Kind.COMMAND_NOT_FOUND),
        ("node index.js", "Error: Cannot find module 'express'", Kind.DEPENDENCY_MISSING),
    ],
)
def test_a_script_that_a_check_names_is_the_works_to_bring_and_nobodys_to_install(
    command: str, said: str, expected: Kind
) -> None:
    assert judged(DONE, verdict(said, command=command, exit_code=127 if "bash" in command else 1)) is expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("test", Kind.TEST_FAILED),
        ("lint", Kind.LINT_FAILED),
        ("types", Kind.TYPES_FAILED),
        ("format", Kind.FORMAT_FAILED),
        ("build", Kind.BUILD_BROKEN),
    ],
)
def test_a_gate_that_says_nothing_is_judged_by_what_it_is(kind: CheckKind, expected: Kind) -> None:
    assert judged(DONE, verdict(kind=kind)) is expected


@pytest.mark.parametrize("end", ["killed", "tool_hang"])
@pytest.mark.parametrize(
    ("ending", "expected"),
    [("signalled", Kind.KILLED), ("silence", Kind.HANG), ("first_output", Kind.HANG), ("wall_clock", Kind.TIMEOUT)],
)
def test_a_session_that_was_cut_off_is_judged_by_who_cut_it(end: End, ending: Ending, expected: Kind) -> None:
    """Its output only shows that it breaks off, perhaps in the middle of a tool call."""
    assert judged(replace(ended(ending), end=end), verdict()) is expected


@pytest.mark.parametrize("end", ["killed", "tool_hang"])
def test_a_sandbox_or_shell_that_tells_of_a_signal_by_its_exit_code_is_believed(end: End) -> None:
    told = Outcome(ended=Ended(ending="exited", exit_code=137), claim="none", end=end)
    assert judged(told, verdict()) is Kind.KILLED


def test_a_provider_that_failed_before_the_session_was_cut_off_is_to_blame() -> None:
    assert judged(replace(ended("silence"), end="rate_limited"), verdict()) is Kind.RATE_LIMITED


def test_no_check_at_all_is_unverified_never_passed() -> None:
    inconclusive = Verdict(status="inconclusive", tree="t", base="b", reason="no command")
    assert judged(DONE, inconclusive) is Kind.UNVERIFIED


# --- what a phase's agent reports ----------------------------------------------------------------------

REPORT = {"phase_id": "2a", "status": "complete", "tasks": {"total": 3, "completed": 3}, "quality_gates": {}, "commit_message": "x",
          "files": {}, "plan_updated": False}  # fmt: skip
SHORT = {**REPORT, "tasks": {"total": 3, "completed": 1}}
GAVE_UP = {**SHORT, "status": "failed", "error": {"type": "task_incomplete", "message": "no time left"}}
HONEST = {**GAVE_UP, "error": {"type": "test_failure", "message": "2 tests fail"}}


def reported(result: object) -> Outcome:
    """Return how a session ended that printed such a result."""
    text = result if isinstance(result, str) else json.dumps(result)
    done = Ended(ending="exited", exit_code=0, tail=text)
    return Outcome(ended=done, claim=session_claim(done))


@pytest.mark.parametrize(
    ("result", "kind", "says"),
    [
        pytest.param(REPORT, Kind.CLAIM_REFUTED, "says that it is done, and the checks fail: ", id="refuted"),
        pytest.param(SHORT, Kind.TASK_INCOMPLETE, "stopped before it was done: 1 of 3 tasks completed; ", id="short"),
        pytest.param(json.dumps(REPORT)[:40], Kind.RESULT_UNREADABLE, "cannot be read: not JSON", id="cut-off"),
        pytest.param(GAVE_UP, Kind.AGENT_FAILED, "the checks agree: no time left", id="gave-up"),
        pytest.param(HONEST, Kind.TEST_FAILED, "tests fail", id="an-honest-report-of-red-tests"),
    ],
)
def test_red_work_is_judged_by_the_result_that_the_agent_reports(result: object, kind: Kind, says: str) -> None:
    found = classify(reported(result), verdict("2 failed", kind="test", command="pytest"))
    assert found is not None
    assert (found.kind, says in found.summary) == (kind, True), found.summary


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        pytest.param(REPORT, None, id="complete"),
        pytest.param(SHORT, Kind.TASK_INCOMPLETE, id="short"),
        pytest.param(json.dumps(REPORT)[:40], Kind.RESULT_UNREADABLE, id="cut-off"),
        pytest.param(GAVE_UP, Kind.NO_CLAIM, id="gave-up"),
    ],
)
def test_green_work_lands_whatever_is_reported_if_a_check_turned_green_and_else_only_if_it_is_claimed(
    result: object, kind: Kind | None
) -> None:
    assert classify(reported(result), verdict(exit_code=0, turned_green=True)) is None
    found = classify(reported(result), verdict(exit_code=0))
    assert (found.kind if found else None) is kind
